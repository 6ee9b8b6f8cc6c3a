"""One message at a time: ``decode``, ``encode`` and the messages between them."""

from __future__ import annotations

import copy
import gc
import pickle
import sys
import uuid
from typing import Any

import numpy as np
import pytest

from msmqwire import errors, mqcn
from msmqwire.properties import PROPID_Q_LABEL, PROPID_Q_QMID, PROPID_Q_QUOTA
from tests.mqcn.messages import LENIENT, assert_message, build, decode
from tests.reference import mqcn as reference
from tests.reference import propvariant
from tests.vectors import Vector, get, load

VECTORS = load("mqcn")
C1, C2, C3 = (get("mqcn", name).data for name in ("C1-delete", "C2-change-queue", "C3-body"))
BOTH = (False, True)


def assert_decodes_like_the_oracle(data: bytes, strict: bool = False) -> None:
    assert_message(decode(data, strict=strict), reference.read(data, strict=strict))


@pytest.mark.parametrize("vector", VECTORS, ids=str)
def test_decodes_vector(vector: Vector) -> None:
    for outcome in vector.outcomes:
        message = decode(vector.data, strict=outcome.strict)
        if outcome.fault is not None:
            assert message == outcome.fault
            continue
        assert not isinstance(message, reference.Fault)
        assert message.violations == outcome.violations
        assert_decodes_like_the_oracle(vector.data, outcome.strict)


@pytest.mark.parametrize("vector", VECTORS, ids=str)
def test_encodes_vector(vector: Vector) -> None:
    model = reference.read(vector.data)
    if isinstance(model, reference.Fault):
        return
    message = mqcn.decode(vector.data)
    if message.violations:
        with pytest.raises(errors.EncodeError):
            mqcn.encode(message)
        if set(message.violations) <= LENIENT:
            assert mqcn.encode(message, enforce=False) == vector.data
            assert mqcn.encode(build(model), enforce=False) == vector.data
        else:
            with pytest.raises(errors.EncodeError):
                mqcn.encode(message, enforce=False)
        return
    written = mqcn.encode(message)
    assert type(written) is bytes
    assert (written == vector.data) is vector.exact
    assert written == reference.write(model)
    assert mqcn.encode(build(model)) == written
    assert mqcn.encode_body(message) == written + b"\0"


@pytest.mark.parametrize("vector", VECTORS, ids=str)
def test_every_truncation(vector: Vector) -> None:
    for size in range(len(vector.data) + 1):
        assert_decodes_like_the_oracle(vector.data[:size], strict=size % 2 == 0)


def test_every_code_unit_at_every_place_of_a_body() -> None:
    """The units whose lower byte, or whose other case beyond ASCII, is the right one, and some that are near."""
    for at in range(2, len(C3), 2):
        right = C3[at]
        for unit in (right ^ 0x20, right | 0x100, right | 0x8000, right << 8, 0x131, 0x130, 0x17F, 0x212A, 0, 0x20):
            assert_decodes_like_the_oracle(C3[:at] + unit.to_bytes(2, "little") + C3[at + 2 :])


@pytest.mark.parametrize("length", [*range(40), 63, 64, 65, 127, 128, 254, 255, 256, 257, 1000])
def test_names_of_every_length(length: int) -> None:
    head, tail = C3[: 2 + 2 * 110], C3[2 + 2 * 113 :]
    for name in ("a" * length, "<" * length, "~!" * length, "a" * length + "\x7f", " " + "a" * length):
        assert_decodes_like_the_oracle(head + name.encode("utf-16-le") + tail, strict=True)


@pytest.mark.parametrize("length", [*range(1, 70), 122, 123, 124, 125, 255, 256, 257, 258, 381, 382, 1000])
def test_path_names_of_every_length(length: int) -> None:
    for middle in ("\\", "\\private$\\", "\\PRIVATE$\\", "\\system$;", "\\q;", "", ";", "\\;", "\\\\"):
        for name in (f"c{middle}{'n' * length}", f"{'c' * length}{middle}n", f"{'c' * 256}{middle}{'n' * length}"):
            assert_decodes_like_the_oracle(_create(name))


def test_every_unit_in_a_path_name() -> None:
    for unit in (*range(1, 0x180), 0x212A, 0x5C00, 0xD800, 0xDC5C, 0xFF5C, 0xFFFF):
        for name in ("{}\\queue", "comp\\{}", "comp\\queue{}", "c{}p\\q", "c\\private{}\\q", "c\\q{}r", "c\\q;{}"):
            assert_decodes_like_the_oracle(_create(name.format(chr(unit))))


def _create(name: str) -> bytes:
    guid = bytes(16)
    properties = (reference.Property(101, guid),)
    return reference.write(reference.Message(1, (reference.Update("create", guid, properties, name),)), enforce=False)


@pytest.mark.parametrize("propid", propvariant.TYPE_OF)
def test_object_of_every_propid(propid: int) -> None:
    """[MS-MQCN] 3.2.5.1, for each PROPID in the first place."""
    number = reference.Property(propid, {"VT_CLSID": bytes(16), "VT_LPWSTR": "", "VT_BLOB": b""}.get(_type(propid), 0))
    if propvariant.TYPE_OF[propid].endswith("VT_VECTOR"):
        number = reference.Property(propid, () if _type(propid) != "VT_UI1|VT_VECTOR" else b"")
    for command in reference.COMMANDS:
        update = reference.Update(command, bytes(16), (number,), guid_identifier=bytes(16))
        assert_decodes_like_the_oracle(reference.write(reference.Message(1, (update,)), enforce=False))


def _type(propid: int) -> str:
    return propvariant.TYPE_OF[propid]


# --- messages are values ---

CANONICAL = [vector for vector in VECTORS if vector.canonical]


@pytest.mark.parametrize("vector", CANONICAL, ids=str)
def test_messages_are_values(vector: Vector) -> None:
    message = mqcn.decode(vector.data)
    model = reference.read(vector.data)
    assert isinstance(model, reference.Message)
    pickled = pickle.loads(pickle.dumps(message))
    others = (mqcn.decode(bytearray(vector.data)), build(model), pickled, copy.copy(message), copy.deepcopy(message))
    for other in others:
        assert other == message
        assert (other != message) is False
        assert hash(other) == hash(message)
        assert repr(other) == repr(message)
        assert_message(other, model)
        assert mqcn.encode(other) == vector.data
    assert message != vector.data
    assert message != None  # noqa: E711
    assert type(message).__name__ in repr(message)


@pytest.mark.parametrize("vector", CANONICAL, ids=str)
def test_updates_are_values(vector: Vector) -> None:
    for update in mqcn.decode(vector.data).updates:
        for other in (pickle.loads(pickle.dumps(update)), copy.copy(update), copy.deepcopy(update)):
            assert other == update
            assert hash(other) == hash(update)
            assert repr(other) == repr(update)
        assert mqcn.ChangeNotificationMessage(1, [update]).updates == (update,)
        assert update != mqcn.decode(vector.data)
        assert "NotificationUpdate" in repr(update)


def test_messages_that_differ_are_not_equal() -> None:
    outcomes = [(vector.data, reference.read(vector.data)) for vector in VECTORS]
    models = [(mqcn.decode(data), model) for data, model in outcomes if isinstance(model, reference.Message)]
    for message, model in models:
        for other, other_model in models:
            if _values(model) != _values(other_model):
                assert message != other


def _values(model: reference.Message) -> list[dict[str, Any]]:
    """The rows without what is not part of the value."""
    others = ("violations", "reserved")
    return [{name: item for name, item in row.items() if name not in others} for row in reference.plain_rows(model)]


@pytest.mark.parametrize("vector", [vector for vector in VECTORS if not vector.outcomes[0].fault], ids=str)
def test_pickle_keeps_violations(vector: Vector) -> None:
    message = mqcn.decode(vector.data)
    again = pickle.loads(pickle.dumps(message))
    assert again == message
    assert again.violations == message.violations == vector.outcomes[0].violations
    assert [update.violations for update in again.updates] == [update.violations for update in message.updates]


def test_messages_cannot_be_changed() -> None:
    message = mqcn.decode(C2)
    for name in ("version", "updates", "body", "violations"):
        with pytest.raises(AttributeError):
            setattr(message, name, None)
    for name in ("command", "path_name", "properties", "guid_identifier", "object", "violations"):
        with pytest.raises(AttributeError):
            setattr(message.updates[0], name, None)


def test_arrays_of_a_message_are_views_of_the_callers_buffer() -> None:
    data = get("mqcn", "change-machine-with-riders").data
    whole = np.frombuffer(data, np.uint8)
    values = {item.id: item.value for item in mqcn.decode(data).updates[0].properties}
    for propid, shape in ((206, (8,)), (207, (2, 16))):
        assert values[propid].shape == shape
        assert values[propid].dtype == np.uint8
        assert np.shares_memory(values[propid], whole)
        assert not values[propid].flags.writeable


def test_a_view_keeps_the_callers_buffer() -> None:
    data = bytes(bytearray(get("mqcn", "change-machine-with-riders").data))
    before = sys.getrefcount(data)
    value = mqcn.decode(data).updates[0].properties[5].value
    gc.collect()
    assert sys.getrefcount(data) > before
    assert value.tobytes() == bytes.fromhex("010004007f000001")
    del value
    update = mqcn.decode(data).updates[0]
    gc.collect()
    assert sys.getrefcount(data) > before
    assert update.properties[7].value == "Windows"
    del update
    gc.collect()
    assert sys.getrefcount(data) == before


# --- errors speak ---


def test_an_error_says_what_was_needed_and_what_was_there() -> None:
    with pytest.raises(errors.DecodeError) as caught:
        mqcn.decode(C2[:87])
    error = caught.value
    assert (error.code, error.field, error.offset) == ("truncated", "PropertyValue[1]", 85)
    assert "4" in error.detail
    assert "2" in error.detail
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), again.args, str(again)) == (type(error), error.args, str(error))


@pytest.mark.parametrize("vector", [vector for vector in VECTORS if vector.outcomes[1].fault], ids=str)
def test_every_fault_has_its_detail(vector: Vector) -> None:
    with pytest.raises(errors.DecodeError) as caught:
        mqcn.decode(vector.data, strict=True)
    assert caught.value.detail
    assert caught.value.field in str(caught.value)


# --- what encode refuses ---

GUID = uuid.UUID("0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0")
PATH = "srv1\\orders"


def _message(**changes: Any) -> mqcn.ChangeNotificationMessage:
    fields: dict[str, Any] = {
        "command": "change",
        "guid_identifier": GUID,
        "guid_master_id": GUID,
        "properties": [(PROPID_Q_QMID, GUID)],
    }
    update = mqcn.NotificationUpdate(**fields | changes)
    return mqcn.ChangeNotificationMessage(1, [update])


def _body(event: Any = 1, guid: Any = GUID, name: Any = "dc1") -> mqcn.ChangeNotificationMessage:
    return mqcn.ChangeNotificationMessage(2, body=mqcn.NotificationBody(event, guid, name))


@pytest.mark.parametrize(
    "changes",
    [
        {"path_name": PATH},
        {"guid_identifier": None},
        {"path_name": "", "guid_identifier": None, "command": "create"},
        {"path_name": "queue", "guid_identifier": None, "command": "create"},
        {"path_name": "a\\b\0", "guid_identifier": None, "command": "create"},
        {"path_name": "a\\" + "b" * 125, "guid_identifier": None, "command": "create"},
        {"path_name": "a\\\ud800", "guid_identifier": None, "command": "create"},
        {"properties": [(7, "x")]},
        {"properties": [(0, 0)]},
        {"properties": [(120, 0)]},
        {"properties": [(1 << 32, 0)]},
        {"properties": [(-1, 0)]},
        {"properties": [(PROPID_Q_QUOTA, -1)]},
        {"properties": [(PROPID_Q_QUOTA, 1 << 32)]},
        {"properties": [(PROPID_Q_QUOTA, "1")]},
        {"properties": [(PROPID_Q_LABEL, "a\0b")]},
        {"properties": [(PROPID_Q_LABEL, b"ab")]},
        {"properties": [(PROPID_Q_QMID, str(GUID))]},
    ],
)
@pytest.mark.parametrize("enforce", BOTH)
def test_encode_refuses(changes: dict[str, Any], enforce: bool) -> None:
    with pytest.raises(errors.EncodeError) as caught:
        mqcn.encode(_message(**changes), enforce=enforce)
    assert caught.value.field
    assert caught.value.field in str(caught.value)


@pytest.mark.parametrize(
    "make",
    [
        lambda: mqcn.ChangeNotificationMessage(1, []),
        lambda: mqcn.ChangeNotificationMessage(2),
        lambda: mqcn.ChangeNotificationMessage(0, _message().updates),  # type: ignore[arg-type]
        lambda: mqcn.ChangeNotificationMessage(3, _message().updates),  # type: ignore[arg-type]
        lambda: mqcn.ChangeNotificationMessage(2, _message().updates),
        lambda: mqcn.ChangeNotificationMessage(1, (), _body().body),
        lambda: mqcn.ChangeNotificationMessage(2, _message().updates, _body().body),
        lambda: _body(0),
        lambda: _body(5),
        lambda: _body(-1),
        lambda: _body(name=""),
        lambda: _body(name="a" * 257),
        lambda: _body(name="a b"),
        lambda: _body(name="a\0"),
        lambda: _body(name="a\x7f"),
        lambda: _body(name="\u0100"),
        lambda: _body(name="\ud800"),
    ],
)
@pytest.mark.parametrize("enforce", BOTH)
def test_encode_refuses_messages(make: Any, enforce: bool) -> None:
    with pytest.raises(errors.EncodeError):
        mqcn.encode(make(), enforce=enforce)


@pytest.mark.parametrize(
    "make",
    [
        lambda: _message(command="rename"),
        lambda: _message(command=1),
        lambda: _message(command=None),
        lambda: _message(guid_identifier="not a guid"),
        lambda: _message(guid_master_id=None),
        lambda: _message(guid_identifier=None, path_name=b"a\\b", command="create"),
        lambda: _message(properties=[PROPID_Q_QUOTA]),
        lambda: _message(properties=[("PROPID_Q_QUOTA", 1)]),
        lambda: _message(properties=5),
        lambda: _body(guid="not a guid"),
        lambda: _body(event="1"),
        lambda: _body(name=b"dc1"),
        lambda: _body(name=None),
        lambda: mqcn.ChangeNotificationMessage("1", _message().updates),  # type: ignore[arg-type]
        lambda: mqcn.ChangeNotificationMessage(1, [C1]),  # type: ignore[list-item]
        lambda: mqcn.ChangeNotificationMessage(2, body=("1", GUID)),  # type: ignore[arg-type]
    ],
)
def test_values_of_another_kind_are_refused(make: Any) -> None:
    with pytest.raises((TypeError, ValueError, errors.EncodeError)):
        mqcn.encode(make())


@pytest.mark.parametrize(
    "message",
    [
        lambda: _message(properties=iter([(PROPID_Q_QMID, GUID)])),
        lambda: _message(properties=[mqcn.PropertyValue(PROPID_Q_QMID, GUID), (1101, bytearray(b"\1\2"))]),
        lambda: _message(properties=[(202, GUID), (219, 0), (207, [GUID, GUID]), (206, np.arange(9, dtype=np.uint8))]),
        lambda: _message(properties=[(202, GUID), (219, 1), (207, np.zeros((3, 16), np.uint8)), (216, "")]),
        lambda: _message(command="delete", properties=((1403, 1), (1404, 1))),
        lambda: mqcn.ChangeNotificationMessage(1, iter(_message().updates * 3)),
        lambda: _body(4, GUID, "<>&~!" * 51 + "a"),
        lambda: _body(3, uuid.UUID(int=0), "</DomainController></Notification>"),
    ],
)
def test_what_encode_accepts_decodes_equal(message: Any) -> None:
    made = message()
    data = mqcn.encode(made)
    assert mqcn.decode(data, strict=True) == made
    model = reference.read(data, strict=True)
    assert isinstance(model, reference.Message)
    assert reference.write(model) == data
    assert_message(made, model)


def test_encode_takes_messages_only() -> None:
    for wrong in (C1, None, "message", *mqcn.decode(C1).updates, mqcn.decode(C3).body):
        for call in (mqcn.encode, mqcn.encode_body):
            with pytest.raises(TypeError):
                call(wrong)  # type: ignore[arg-type]
