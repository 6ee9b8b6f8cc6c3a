"""Enumerations are declared once, in tables; kernels and stubs agree with them."""

from __future__ import annotations

import ast
import inspect
import pickle
import struct
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pytest

from msmqwire import capture, formatname, mqcn, mqqb, mqsd
from msmqwire.columns import Batch, Table
from msmqwire.columns.schema import UINT32, Column, Enumeration
from msmqwire.errors import EncodeError
from msmqwire.formatname import _kernel as formatname_kernel
from msmqwire.wire import _transport as transport

TABLES: list[tuple[Table, Any]] = [(formatname.FORMAT_NAMES, formatname_kernel.Field)]
ENUMERATIONS = [
    (transport, "Transport"),
    *((formatname_kernel, name) for name in ("NameKind", "Field", "Expected", "Presence")),
]


@pytest.mark.parametrize(("names", "index"), [(0, "int32"), (1, "int8"), (127, "int8"), (128, "int16")])
def test_the_indices_of_a_dictionary_reach_all_names(names: int, index: str) -> None:
    """An enumeration without names gets them from its batch. Arrow's indices have a sign."""
    enumeration = Enumeration(tuple(map(str, range(names))))
    assert (enumeration.name, enumeration.index) == ("string", index)


@pytest.mark.parametrize(("table", "field"), TABLES)
def test_fields_stand_at_their_numbers(table: Table, field: Any) -> None:
    """A fault names its field by the number that the kernel wrote."""
    assert [*field] == list(range(len(table.fields)))
    assert table.fields == tuple(member.name.replace("_", ".") for member in field)


@pytest.mark.parametrize(("module", "name"), ENUMERATIONS)
def test_a_stub_lists_the_members_of_its_enumeration(module: Any, name: str) -> None:
    stub = ast.parse(
        Path(inspect.getfile(module)).parent.joinpath(module.__name__.rpartition(".")[2] + ".pyi").read_text()
    )
    (listed,) = [node for node in stub.body if isinstance(node, ast.ClassDef) and node.name == name]
    members = {
        node.targets[0].id: ast.literal_eval(node.value)
        for node in listed.body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    }
    assert members == {member.name: int(member) for member in getattr(module, name)}
    assert {base.id for base in listed.bases if isinstance(base, ast.Name)} <= {
        base.__name__ for base in getattr(module, name).__mro__
    }


@pytest.mark.parametrize("flags", [mqsd.Violation, mqcn.Violation, mqqb.Violation, mqqb.SessionViolation])
def test_violations_combine_as_flags(flags: Any) -> None:
    first, second, *_ = flags
    both = first | second
    assert isinstance(both, flags)
    assert first in both
    assert both & ~first == second
    assert pickle.loads(pickle.dumps(both)) == both
    assert flags.__doc__


@pytest.mark.parametrize(("bit", "width"), [(0, 1), (1 << 7, 1), (1 << 8, 4), (1 << 31, 4)])
def test_presence_of_a_row_has_room_for_every_bit(bit: int, width: int) -> None:
    columns = (Column("first", UINT32, "", presence=1), Column("last", UINT32, "", presence=bit))
    assert Table("two", "", columns).presence_width == width


# --- Values of batches ---

QUEUE = UUID("557358d1-9150-9595-4997-b6e611ea26c6")
GUIDS = bytes(range(48))
REQUEST = b"\0\1\0\0" + GUIDS
REPLY = b"\0\2\0\0" + GUIDS[:16] + b"\1" + bytes(11) + GUIDS[16:32]
UPDATE = b"\1\1\1\1" + GUIDS[:32] + bytes(24) + b"\1" + struct.pack("<II", 105, 7)
MESSAGE = mqqb.encode(
    mqqb.UserMessage(
        destination_queue=rf"PRIVATE={QUEUE}\3",
        delivery_mode="recoverable",
        security=mqqb.SecurityHeader(security_id=QUEUE.bytes_le, security_flags=2),
        message_class=0x8003,
        body=b"\1\0",
        body_type=17,
    )
)
ACK = mqqb.encode(mqqb.SessionAck(window_size=64))
PING = mqqb.encode(mqqb.Ping(cookie=1, queue_manager=QUEUE))
FRAMES = Path(__file__).parents[2] / "examples" / "local-site.pcap"


def batches() -> dict[str, Batch]:
    """A batch of each table: rows with values, one with a fault, and a null one."""
    return {
        "topology": mqsd.decode_batch([REQUEST, REPLY, b"oops", None]),
        "notifications": mqcn.decode_batch([UPDATE, b"\1\0", b"oops", None]),
        "messages": mqqb.decode_batch([MESSAGE, ACK, b"oops", None]),
        "sessions": mqqb.decode_session_batch([ACK, PING, b"oops", None]),
        "format_names": formatname.parse_batch(
            ["DIRECT=OS:a\\b;journal", f"PUBLIC={QUEUE}", "MULTICAST=224.0.0.1:9", "x", None]
        ),
    }


@pytest.mark.parametrize(
    ("table", "column", "numbers", "names"),
    [
        ("topology", "type", [1, 2, 255, 255], ["request", "reply", None, None]),
        ("notifications", "operation", [1, 255, 255, 255], ["change", None, None, None]),
        ("notifications", "object", [0, 255, 255, 255], ["queue", None, None, None]),
        ("messages", "kind", [0, 255, 255, 255], ["user_message", None, None, None]),
        ("messages", "delivery_mode", [1, 255, 255, 255], ["recoverable", None, None, None]),
        ("messages", "sender_id_type", [2, 255, 255, 255], ["queue_manager", None, None, None]),
        ("messages", "message_class_name", [0x8003, 65535, 65535, 65535], ["nack_q_exceed_quota", None, None, None]),
        ("messages", "body_type_name", [17, 65535, 65535, 65535], ["VT_UI1", None, None, None]),
        ("messages", "body_format", [6, 255, 255, 255], ["binary", None, None, None]),
        ("messages", "notification", [255] * 4, [None] * 4),
        ("sessions", "kind", [3, 0, 255, 255], ["session_ack", "ping", None, None]),
        ("format_names", "kind", [3, 1, 7, 255, 255], ["direct", "public", "multicast", None, None]),
        ("format_names", "suffix", [1, 255, 255, 255, 255], ["journal", None, None, None, None]),
        ("format_names", "protocol", [2, 255, 255, 255, 255], ["os", None, None, None, None]),
    ],
)
def test_columns_have_the_numbers_of_the_protocol(
    table: str, column: str, numbers: list[int], names: list[str | None]
) -> None:
    batch = batches()[table]
    assert batch[column].tolist() == numbers
    assert batch.names(column) == names == batch.to_arrow()[column].to_pylist()
    assert batch.to_arrow(dictionaries=False)[column].to_pylist() == names
    for name in filter(None, names):
        assert batch.equals(column, name).tolist() == [each == name for each in names]


@pytest.mark.parametrize("table", batches())
def test_validity_is_that_of_arrow(table: str) -> None:
    batch = batches()[table]
    rows = batch.to_arrow()
    rows.validate(full=True)
    for name in batch.columns:
        assert batch.is_valid(name).tolist() == rows[name].is_valid().to_pylist(), name


def test_columns_of_a_capture() -> None:
    for block in capture.open(FRAMES):
        rows = block.capture.to_arrow()
        for name in block.capture.columns:
            assert block.capture.is_valid(name).tolist() == rows[name].is_valid().to_pylist(), name
        for name in ("file", "transport", "encapsulation"):
            names = block.capture.names(name)
            assert names == rows[name].to_pylist()
            assert block.capture.equals(name, str(FRAMES)).all() == (name == "file") if name != "transport" else True
        assert block.capture.equals("transport", "udp").all()
        assert (block.capture["encapsulation"] == 255).all()


def test_connections_name_the_file_of_their_segments() -> None:
    """Also one of a file before the last, whose rows come when the capture ends."""
    files = [str(FRAMES.with_name(name)) for name in ("local-site.pcap", "message-session.pcap")]
    with capture.read_table(files, "connections", columns=["file", "outcome"]) as reader:
        rows = {row["file"]: row["outcome"] for row in reader.to_arrow().to_pylist()}
    assert rows == dict(zip(files, ("silent", "closed"), strict=True))


def changed(at: int, value: int, format_: str = "<I") -> bytes:
    packet = bytearray(MESSAGE)
    struct.pack_into(format_, packet, at, value)
    return bytes(packet)


@pytest.mark.parametrize(
    ("column", "at", "format_", "value", "number"),
    [
        ("delivery_mode", 16 + 44, "<I", 3 << 5 | 3 << 10 | 1 << 19 | 1 << 21, 3),
        ("sender_id_type", 16 + 48 + 4, "<H", 9, 9),
        ("message_class_name", 16 + 48 + 4 + 16 + 16 + 2, "<H", 0x1234, 0x1234),
        ("body_type_name", 16 + 48 + 4 + 16 + 16 + 24, "<I", 0x1234, 0x1234),
        ("body_type_name", 16 + 48 + 4 + 16 + 16 + 24, "<I", 0x12345678, 65535),
    ],
)
def test_a_number_without_a_name_stays_the_number(column: str, at: int, format_: str, value: int, number: int) -> None:
    batch = mqqb.decode_batch([changed(at, value, format_)])
    assert len(batch.faults) == 0
    assert batch[column].tolist() == [number]
    assert batch.names(column) == [None] == batch.to_arrow()[column].to_pylist()
    assert batch.is_valid(column).tolist() == [False]
    assert getattr(mqqb.decode(changed(at, value, format_)), column, None) is None


def test_properties_have_the_numbers_of_their_names() -> None:
    values = mqcn.decode_batch([UPDATE])["properties"].values
    assert (values["name"].dtype, values["name"].tolist(), values["id"].tolist()) == (np.uint16, [105], [105])
    assert (values["type"].dtype, values["type"].tolist()) == (np.uint16, [19])


def test_counting_requests_counts_requests() -> None:
    batch = mqsd.decode_batch([REQUEST, b"", None, REPLY])
    assert int((batch["type"] == 0).sum()) == 0
    assert int((batch["type"] == np.frombuffer(REQUEST, mqsd.REQUEST_DTYPE)["header"]["type"][0]).sum()) == 1


def test_guids_as_objects() -> None:
    batch = mqsd.decode_batch([REQUEST, REPLY, None])
    first = UUID(bytes_le=GUIDS[:16])
    assert batch.uuids("enterprise_id") == [first, None, None]
    assert batch.uuids("connected_networks") == [None, [UUID(bytes_le=GUIDS[16:32])], None]
    assert batch.equals("enterprise_id", first).tolist() == [True, False, False]
    assert not batch.equals("enterprise_id", UUID(bytes=GUIDS[:16])).any()
    nil = batch.equals("enterprise_id", UUID(int=0))
    assert nil.dtype == np.bool_
    assert nil.tolist() == [False, False, False]
    sessions = batches()["sessions"]
    assert sessions.equals("queue_manager", QUEUE).tolist() == [False, True, False, False]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda batch: batch.names("violations"), TypeError, "'violations' is not an enumeration"),
        (lambda batch: batch.uuids("type"), TypeError, "'type' has no GUIDs"),
        (lambda batch: batch.names("nombre"), KeyError, "no such column"),
        (lambda batch: batch.names("version"), KeyError, "not among the requested columns"),
        (lambda batch: batch.equals("type", "answer"), ValueError, "'answer' is not one of 'request', 'reply'"),
        (lambda batch: batch.equals("type", 1), TypeError, "'type' has names: compare it with text, not with 1"),
        (lambda batch: batch.equals("site_id", "x"), TypeError, "compare it with a uuid.UUID, not with 'x'"),
        (lambda batch: batch.equals("violations", 1), TypeError, "'violations' has neither names nor GUIDs"),
    ],
)
def test_values_that_a_column_cannot_have(call: Callable[[Any], Any], error: type[Exception], message: str) -> None:
    batch = mqsd.decode_batch([REQUEST], columns=["type", "site_id", "violations"])
    with pytest.raises(error, match=message):
        call(batch)


# --- Times of messages ---


def test_the_time_of_a_message_is_a_time() -> None:
    at = datetime(2024, 3, 4, 8, 2, 0, 999_999, timezone(timedelta(hours=1)))
    message = mqqb.UserMessage(destination_queue="DIRECT=OS:a\\b", sent_time=at)
    assert message.sent_time == at.replace(microsecond=0)
    assert message.sent_time.tzinfo is UTC
    assert message.sent_time_seconds == 1709535720
    assert mqqb.UserMessage(destination_queue="DIRECT=OS:a\\b", sent_time=1709535720) == message
    decoded = mqqb.decode(mqqb.encode(message))
    assert decoded == message
    assert "sent_time=datetime.datetime(2024, 3, 4, 7, 2, tzinfo=datetime.timezone.utc)" in repr(decoded)
    batch = mqqb.decode_batch([mqqb.encode(message)])
    assert batch["sent_time"][0] == np.datetime64(message.sent_time.replace(tzinfo=None))
    assert "sent_time" not in repr(mqqb.UserMessage(destination_queue="DIRECT=OS:a\\b"))


@pytest.mark.parametrize(
    ("time", "message"),
    [
        (datetime(2024, 3, 4), "has no time zone"),
        (datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC), "must be an integer from 0 to 4294967295"),
        (datetime(2106, 2, 7, 6, 28, 16, tzinfo=UTC), "must be an integer from 0 to 4294967295"),
        ("2024-03-04", "must be an integer from 0 to 4294967295"),
    ],
)
def test_times_that_a_message_cannot_have(time: Any, message: str) -> None:
    with pytest.raises(EncodeError, match=f"sent_time: .*{message}"):
        mqqb.UserMessage(destination_queue="DIRECT=OS:a\\b", sent_time=time)
