"""Round trips: what is written is read equal, what is read without a violation is written back as it was."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msmqwire import mqcn, propvariant
from msmqwire.errors import EncodeError
from tests.mqcn.messages import LENIENT, assert_message, build, decode
from tests.property.notifications import VALUES, any_messages, bodies, messages, payloads
from tests.propvariant.values import VT, plain
from tests.reference import mqcn as reference
from tests.reference import propvariant as values
from tests.reference.propvariant import TYPE_OF


@settings(max_examples=20)
@pytest.mark.parametrize("type_", values.TYPES)
@given(st.data())
def test_values_of_every_type(type_: str, data: st.DataObject) -> None:
    value = data.draw(VALUES[type_])
    written = propvariant.encode(VT[type_], value)
    again = propvariant.decode(VT[type_], written)
    assert propvariant.encode(VT[type_], again) == written
    assert (plain(type_, again), len(written)) == values.read(type_, written)


@settings(max_examples=5)
@pytest.mark.parametrize("propid", TYPE_OF)
@given(st.data())
def test_every_propid(propid: int, data: st.DataObject) -> None:
    value = data.draw(VALUES[TYPE_OF[propid]])
    (update,) = mqcn.decode(bytes.fromhex("0101 0101" + "00" * 56 + "00")).updates
    made = mqcn.NotificationUpdate(
        command="change",
        guid_identifier=update.guid_identifier,
        guid_master_id=update.guid_master_id,
        properties=[(propid, value)],
    )
    message = mqcn.ChangeNotificationMessage(1, [made])
    written = mqcn.encode(message, enforce=False)
    again = mqcn.decode(written)
    assert again == message
    model = reference.read(written)
    assert isinstance(model, reference.Message)
    assert_message(again, model)
    assert reference.write(model, enforce=False) == written


@settings(max_examples=120)
@given(messages)
def test_what_is_encoded_is_decoded_equal(message: Any) -> None:
    assert message.violations == ()
    data = mqcn.encode(message)
    for payload in (data, mqcn.encode_body(message)):
        again = mqcn.decode(payload, strict=True)
        assert again == message
        assert hash(again) == hash(message)
        assert mqcn.encode(again) == data
    assert pickle.loads(pickle.dumps(message)) == message
    model = reference.read(data, strict=True)
    assert_message(message, model)
    assert isinstance(model, reference.Message)
    assert build(model) == message
    assert reference.write(model) == data


@settings(max_examples=150)
@given(any_messages)
def test_what_is_encoded_without_the_rules_is_decoded_equal(message: Any) -> None:
    data = mqcn.encode(message, enforce=False)
    assert mqcn.decode(data) == message
    model = reference.read(data)
    assert_message(message, model)
    assert isinstance(model, reference.Message)
    assert reference.write(model, enforce=False) == data
    if message.violations:
        with pytest.raises(EncodeError):
            mqcn.encode(message)
    else:
        assert mqcn.encode(message) == data


@given(bodies, st.booleans())
def test_both_forms_of_a_body(body: Any, closing_space: bool) -> None:
    message = mqcn.ChangeNotificationMessage(2, body=body)
    data = mqcn.encode(message, closing_space=closing_space)
    assert mqcn.decode(data, strict=True) == message
    model = reference.read(data)
    assert isinstance(model, reference.Message)
    assert reference.write(model, closing_space=closing_space) == data


@given(payloads(), st.booleans())
def test_any_payload_is_what_the_oracle_says(data: bytes, strict: bool) -> None:
    expected = reference.read(data, strict=strict)
    message = decode(data, strict=strict)
    assert_message(message, expected)
    if isinstance(message, reference.Fault):
        assert 0 <= message.offset <= len(data)
        return
    assert isinstance(expected, reference.Message)
    if message.violations:
        with pytest.raises(EncodeError):
            mqcn.encode(message)
    if set(message.violations) <= LENIENT:
        written = mqcn.encode(message, enforce=False)
        assert mqcn.decode(written) == message
        assert written == reference.write(expected, enforce=False)
