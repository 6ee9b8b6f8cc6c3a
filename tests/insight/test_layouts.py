"""The layouts and the kernels agree on every vector; ``decode --hex`` shows which bytes are which field."""

from __future__ import annotations

import json
import struct
from typing import Any
from uuid import UUID

import numpy as np
import pytest

from msmqwire import mqcn, mqqb
from msmqwire.capture import TABLES
from msmqwire.columns.byte_map import byte_parts, layouts
from msmqwire.columns.fields import WireField
from msmqwire.insight.layouts import LAYOUTS, byte_map, guess
from msmqwire.mqcn.schema import OPERATIONS
from msmqwire.mqsd import TOPOLOGY
from msmqwire.properties import PROPID_Q_LABEL
from tests.cli.support import msmqwire, run
from tests.vectors import Vector, get, load

PING = "0000485504000000d1587355509195954997b6e611ea26c6"
CONNECTION = (
    "10c00b004c494f523c020000ffffffff00000200d1587355509195954997b6e611ea26c6"
    "0789cd434c39118f44459078909ea0fc4ecade1d1003"
)


def cases() -> list[Any]:
    found = []
    for table in ("topology", *sorted({vector.table for vector in load("mqqb")})):
        vectors = load("mqsd") if table == "topology" else [v for v in load("mqqb") if v.table == table]
        rows = TABLES[table].decode_batch([vector.data for vector in vectors]).to_arrow(guid="binary").to_pylist()
        for vector, row in zip(vectors, rows, strict=True):
            if row["fault"] is None:
                layout = "ping" if row.get("kind") == "ping" else table
                found.append(pytest.param(layout, vector.data, row, id=vector.name))
    return found


@pytest.mark.parametrize(("layout", "payload", "row"), cases())
def test_layouts_and_kernels_agree(layout: str, payload: bytes, row: dict[str, Any]) -> None:
    assert guess(payload) == layout or row["version"]
    parts = list(byte_map(layout, payload))
    assert parts[0].start == 0
    assert [part.end for part in parts[:-1]] == [part.start for part in parts[1:]]
    assert parts[-1].end == len(payload)
    assert all(part.start < part.end and not part.truncated for part in parts)
    shown = {part.field.shown: part for part in parts if part.field.shown}
    for column, part in shown.items():
        value = UUID(bytes_le=part.value).bytes if part.field.type == "guid" else part.value
        assert row[column] == value, column
    # What a layout leaves out, the packet lacks
    for column in {field.shown for field in LAYOUTS[layout] if field.shown} - shown.keys():
        assert not row[column], column


@pytest.mark.parametrize("vector", load("mqcn"), ids=lambda vector: vector.name)
def test_layouts_and_decoded_notifications_agree(vector: Vector) -> None:
    parts = list(byte_map("notifications", vector.data))
    assert b"".join(vector.data[part.start : part.end] for part in parts) == vector.data
    if vector.packet is None:
        return
    assert not any(part.truncated for part in parts)
    message = mqcn.decode(vector.data)
    found = {part.name: part.value for part in parts}
    expected: dict[str, Any] = {"Version": message.version, "NumberOfUpdateNotifications": vector.data[1]}
    for number, update in enumerate(message.updates):
        count = len(update.properties)
        fields: dict[str, Any] = {
            "Command": OPERATIONS.index(update.command),
            "UseGuid": update.use_guid,
            "PathName": None if update.use_guid else utf16(update.path_name or "") + bytes(2),
            "GuidIdentifier": update.guid_identifier and update.guid_identifier.bytes_le,
            "GuidMasterId": update.guid_master_id.bytes_le,
            "Reserved": update.reserved,
            "NumberOfProperties": count,
        }
        for place, (propid, value) in enumerate(update.properties):
            fields |= {f"PropertyId[{place}]": propid, f"PropertyValue[{place}]": (propid, plain(value))}
        expected |= {
            f"NotificationUpdate[{number}].{name}": value for name, value in fields.items() if value is not None
        }
    for name, value in found.items():
        if ".PropertyValue[" in name:
            found[name] = (value.id, plain(value.value))
    rest = found.keys() - expected.keys()
    assert rest <= {"NotificationBody", "trailing bytes"}
    assert {name: found[name] for name in found.keys() - rest} == expected
    assert ("NotificationBody" in rest) == (message.version == 2)


def utf16(text: str) -> bytes:
    return text.encode("utf-16-le", "surrogatepass")


def plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray) else value


def test_a_property_that_cannot_be_sized() -> None:
    """Its bytes are those that are left."""
    update = get("mqcn", "C2-change-queue").data
    *_, value = byte_map("notifications", update[:61] + struct.pack("<I", 99) + update[65:])
    assert (value.name, value.truncated, value.end) == ("NotificationUpdate[0].PropertyValue[0]", True, len(update))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_truncated_payloads_have_a_map(layout: str) -> None:
    for payload in (bytes.fromhex(CONNECTION), bytes.fromhex(PING), b"\xff" * 64):
        for size in range(len(payload)):
            parts = list(byte_map(layout, payload[:size]))
            assert sum(part.end - part.start for part in parts) == size
            assert [part.truncated for part in parts[:-1]] == [False] * (len(parts) - 1)


def test_the_last_field_may_be_truncated() -> None:
    for size in range(len(bytes.fromhex(PING))):
        *_, last = byte_map("ping", bytes.fromhex(PING)[:size])
        assert last.truncated
        assert last.end == size


def test_an_expression_that_no_field_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(layouts(TOPOLOGY), "odd", (WireField("Odd", "bytes", size="left[1]"),))
    with pytest.raises(ValueError, match=r"left\[1\] is no expression of a field"):
        list(byte_parts(TOPOLOGY, "odd", b"x"))


@pytest.mark.parametrize("missing", range(4))
def test_padding_ends_with_the_packet(missing: int) -> None:
    """A SessionHeader follows at PacketSize, also where the padding before it is too short."""
    packet = mqqb.encode(mqqb.UserMessage(destination_queue="DIRECT=OS:a\\b", body=b"x"))
    assert packet[-3:] == bytes(3)
    packet = packet[: len(packet) - missing]
    (flags,) = struct.unpack_from("<H", packet, 2)
    packet = packet[:2] + struct.pack("<H", flags | 0x10) + packet[4:8] + struct.pack("<I", len(packet)) + packet[12:]
    parts = list(byte_map("messages", packet + bytes(16)))
    header = [part for part in parts if part.name.startswith("SessionHeader.")]
    assert (header[0].start, header[-1].end) == (len(packet), len(packet) + 16)
    assert [part.end - part.start for part in parts if part.name == "MessagePropertiesHeader padding"] == [
        3 - missing
    ] * (missing < 3)


def test_the_command() -> None:
    status, output, errors = run("decode", "--hex", PING, "-T", "table")
    assert (status, errors) == (0, "")
    assert "     8  d1 58 73 55 50 91 95 95 49 97 b6 e6 11 ea 26 c6      Ping.QMGuid  557358d1-9150" in output
    assert json.loads(run("decode", "--hex", PING, "-T", "json")[1])["cookie"] == 4
    status, output, errors = run("decode", "--hex", CONNECTION, "-T", "table")
    assert (status, "truncated: PacketSize at byte 8" in errors) == (2, True)
    assert "TimeStamp  501140046 (0x1ddeca4e)" in output
    for wrong in (["zz"], [PING, PING], [PING, "--table", "x"], [PING, "--limit", "1"]):
        assert run("decode", "--hex", *wrong)[0] == 1


def test_standard_input_may_be_a_hexdump() -> None:
    lines = ("00 00 48 55 04 00 00 00 d1 58 73 55 50 91 95 95   ..HU.....XsUP...", "49 97 b6 e6 11 ea 26 c6   I.....&.")
    dump = "".join(f"{16 * at:04x}   {line}\n" for at, line in enumerate(lines))
    assert json.loads(msmqwire("decode", "--hex", "-", "-T", "json", input=dump.encode()).stdout)["cookie"] == 4


def test_properties_do_not_copy_what_follows_them() -> None:
    """A packet of 4 MiB has room for hundreds of thousands of them."""

    class Counted(bytes):
        sliced = 0

        def __getitem__(self, key: Any) -> Any:
            found = super().__getitem__(key)
            type(self).sliced += len(found) if isinstance(found, bytes) else 0
            return found

    values = [(PROPID_Q_LABEL, "label")] * 200
    update = mqcn.NotificationUpdate(
        command="change", guid_identifier=UUID(int=1), guid_master_id=UUID(int=2), path_name=None, properties=values
    )
    body = mqcn.encode_body(mqcn.ChangeNotificationMessage(1, [update]), enforce=False)
    parts = list(byte_map("notifications", Counted(body)))
    assert [part.value.value for part in parts if part.field.type == "value"] == ["label"] * 200
    assert Counted.sliced < 2 * len(body)


def test_the_body_of_a_notification() -> None:
    body = get("mqcn", "C1-delete").data
    for table in ((), ("--table", "notifications")):
        row = json.loads(run("decode", "--hex", body.hex(), *table, "-T", "json")[1])
        assert (row["operation"], row["object"]) == ("delete", "queue")
