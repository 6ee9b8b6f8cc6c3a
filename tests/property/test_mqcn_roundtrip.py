"""Round trips of notifications: values of every type, every PROPID, messages that break a rule, forms of a body."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msmqwire import mqcn, propvariant
from msmqwire.errors import EncodeError
from tests.columns.formats import NOTIFICATIONS
from tests.property.notifications import VALUES, any_messages, bodies
from tests.propvariant.values import VT, plain
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
    assert NOTIFICATIONS.assert_agrees(written) == message


@given(any_messages)
def test_what_is_encoded_without_the_rules_is_decoded_equal(message: Any) -> None:
    data = mqcn.encode(message, enforce=False)
    assert NOTIFICATIONS.assert_agrees(data) == message
    if message.violations:
        with pytest.raises(EncodeError):
            mqcn.encode(message)
    else:
        assert mqcn.encode(message) == data


@given(bodies, st.booleans())
def test_both_forms_of_a_body(body: Any, closing_space: bool) -> None:
    message = mqcn.ChangeNotificationMessage(2, body=body)
    data = mqcn.encode(message, closing_space=closing_space)
    assert NOTIFICATIONS.assert_agrees(data, strict=True) == message
    assert ("</ObjectGuid >" in data[2:].decode("utf-16-le")) is closing_space
    assert mqcn.encode_body(message) == mqcn.encode(message) + b"\0"
