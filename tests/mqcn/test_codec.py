"""One message at a time: ``decode``, ``encode`` and the messages between them."""

from __future__ import annotations

import copy
import gc
import pickle
import struct
import sys
import uuid
from typing import Any

import numpy as np
import pytest

from msmqwire import errors, mqcn
from msmqwire.properties import PROPID_Q_LABEL, PROPID_Q_QMID, PROPID_Q_QUOTA
from tests.columns.formats import NOTIFICATIONS
from tests.reference import mqcn as reference
from tests.reference import propvariant
from tests.reference.mqcn_cases import message_of
from tests.vectors import Vector, get, load

C1, C2, C3 = (get("mqcn", name).data for name in ("C1-delete", "C2-change-queue", "C3-body"))
BOTH = (False, True)
INSTANCE = (101, bytes(16))


def test_every_code_unit_at_every_place_of_a_body() -> None:
    """The units whose lower byte, or whose other case beyond ASCII, is the right one, and some that are near."""
    for at in range(2, len(C3), 2):
        right = C3[at]
        for unit in (right ^ 0x20, right | 0x100, right | 0x8000, right << 8, 0x131, 0x130, 0x17F, 0x212A, 0, 0x20):
            NOTIFICATIONS.assert_agrees(C3[:at] + unit.to_bytes(2, "little") + C3[at + 2 :])


@pytest.mark.parametrize("length", [*range(40), 63, 64, 65, 127, 128, 254, 255, 256, 257, 1000])
def test_names_of_every_length(length: int) -> None:
    head, tail = C3[: 2 + 2 * 110], C3[2 + 2 * 113 :]
    for name in ("a" * length, "<" * length, "~!" * length, "a" * length + "\x7f", " " + "a" * length):
        NOTIFICATIONS.assert_agrees(head + name.encode("utf-16-le") + tail, strict=True)


@pytest.mark.parametrize("length", [*range(1, 70), 122, 123, 124, 125, 255, 256, 257, 258, 381, 382, 1000])
def test_path_names_of_every_length(length: int) -> None:
    for middle in ("\\", "\\private$\\", "\\PRIVATE$\\", "\\system$;", "\\q;", "", ";", "\\;", "\\\\"):
        for name in (f"c{middle}{'n' * length}", f"{'c' * length}{middle}n", f"{'c' * 256}{middle}{'n' * length}"):
            NOTIFICATIONS.assert_agrees(message_of(0, INSTANCE, path=name))


def test_every_unit_in_a_path_name() -> None:
    for unit in (*range(1, 0x180), 0x212A, 0x5C00, 0xD800, 0xDC5C, 0xFF5C, 0xFFFF):
        for name in ("{}\\queue", "comp\\{}", "comp\\queue{}", "c{}p\\q", "c\\private{}\\q", "c\\q{}r", "c\\q;{}"):
            NOTIFICATIONS.assert_agrees(message_of(0, INSTANCE, path=name.format(chr(unit))))


@pytest.mark.parametrize("propid", propvariant.TYPE_OF)
def test_object_of_every_propid(propid: int) -> None:
    """[MS-MQCN] 3.2.5.1, for each PROPID in the first place."""
    type_ = propvariant.TYPE_OF[propid]
    empty = bytes({"VT_CLSID": 16, "VT_LPWSTR": 2, "VT_BOOL": 2}.get(type_, 4 if type_ in propvariant.ELEMENTS else 0))
    value = empty or bytes(struct.calcsize(propvariant.NUMBERS[type_]))
    for command in range(len(reference.COMMANDS)):
        message = NOTIFICATIONS.assert_agrees(message_of(command, (propid, value)))
        assert isinstance(message, mqcn.ChangeNotificationMessage)


# --- messages are values ---


@pytest.mark.parametrize("vector", [vector for vector in load("mqcn") if vector.canonical], ids=str)
def test_updates_are_values(vector: Vector) -> None:
    for update in mqcn.decode(vector.data).updates:
        for other in (pickle.loads(pickle.dumps(update)), copy.copy(update), copy.deepcopy(update)):
            assert other == update
            assert hash(other) == hash(update)
            assert repr(other) == repr(update)
        assert mqcn.ChangeNotificationMessage(1, [update]).updates == (update,)
        assert update != mqcn.decode(vector.data)
        assert "NotificationUpdate" in repr(update)


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
        {"properties": [(PROPID_Q_QMID, GUID.hex)]},
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
    assert NOTIFICATIONS.assert_agrees(data, strict=True) == made
    assert mqcn.encode_body(made) == data + b"\0"


def test_numbers_may_be_of_columns() -> None:
    """A program that builds messages from the columns of others has numbers of numpy."""
    numbers = [(np.uint32(115), GUID), (np.uint32(105), np.uint32(7))]
    assert _message(properties=numbers) == _message(properties=[(115, GUID), (105, 7)])
    assert _body(np.uint8(2)) == _body(2)


@pytest.mark.parametrize(
    ("propid", "value", "other"),
    [
        (PROPID_Q_QMID, GUID, uuid.UUID(int=0)),
        (105, 7, 8),
        (1101, b"", b"a"),
        (1101, b"ab", b"ac"),
        (207, [GUID, uuid.UUID(int=0)], [GUID]),
        (224, ("a", ""), ("", "a")),
    ],
)
def test_properties_are_values(propid: int, value: Any, other: Any) -> None:
    first, again, different = (
        _message(properties=[(propid, each)]).updates[0].properties for each in (value, value, other)
    )
    assert (first == again, first != again) == (True, False)
    assert (first == different, first != different) == (False, True)
    assert hash(first) == hash(again)
    assert first[0] in again
    assert first[0] not in different
    assert first[0] != propid
    assert first[0] != (propid,)
    for copied in (pickle.loads(pickle.dumps(first)), copy.deepcopy(first)):
        assert copied == first
    if isinstance(value, bytes):
        assert first[0] == (propid, value)


def test_encode_takes_messages_only() -> None:
    for wrong in (C1, None, "message", *mqcn.decode(C1).updates, mqcn.decode(C3).body):
        for call in (mqcn.encode, mqcn.encode_body):
            with pytest.raises(TypeError):
                call(wrong)  # type: ignore[arg-type]
