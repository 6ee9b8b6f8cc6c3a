"""Packets that lost bytes at their ends: what is whole is there, at every byte where they may be cut."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from msmqwire import Batch, Payloads, mqqb
from tests.columns.formats import MESSAGES, SESSIONS, Format
from tests.mqqb.messages import FULL
from tests.reference import mqqb as reference
from tests.reference import mqqb_incomplete

#: Columns that need all of a message
OF_WHOLE = {
    "kind", "notification", "trailing", "body_type_name", "body_format", "body_text",
    "extension_format", "extension_text", "sender_sid", "srmp_envelope",
    "http_body", "message_body_size", "message_body_offset", "compound_body", "soap_header", "soap_body",
    "destination_queues", "admin_queues", "response_queues", "multi_queue_signature", "acknowledged_tx_sequence_id",
    "acknowledged_tx_sequence_number", "acknowledged_previous_tx_sequence_number",
    "acknowledged_source_queue_manager", "acknowledged_message_id",
}  # fmt: skip
#: Headers after the body, whose columns the oracle leaves to the test of their first field
RARE = ("SoapHeader", "SoapBody", "Destination", "Administration", "Response.", "MQFSignature", "SRMP", "Compound")


each_table = pytest.mark.parametrize("kind", [MESSAGES, SESSIONS], ids=str)


def complete(kind: Format) -> list[bytes]:
    """Complete packets of a table without trailing bytes."""
    packets = [*kind.packets, *kind.whole, *kind.cases(80, 7)]
    outcomes = [(data, kind.read(data)) for data in packets]
    return [
        data
        for data, outcome in outcomes
        if isinstance(outcome, reference.Packet) and "trailing_bytes" not in outcome.violations and len(data) < 2000
    ]


def transport_of(kind: Format, packet: bytes) -> dict[str, str]:
    """The option that a packet is decoded with."""
    return {"transport": "tcp" if packet[4:8] == b"LIOR" else "udp"} if kind.transports else {}


def cuts(kind: Format, packet: bytes) -> tuple[Batch, list[mqqb_incomplete.Incomplete]]:
    """A batch of all beginnings of a packet, and what the oracle says of each."""
    sizes = range(1, len(packet))
    payloads = Payloads.of([packet[:size] for size in sizes], lost=[len(packet) - size for size in sizes])
    batch = kind.decode_batch(payloads, **transport_of(kind, packet))
    return batch, [mqqb_incomplete.cut(packet, size, kind.table.name) for size in sizes]  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", [SESSIONS, pytest.param(MESSAGES, marks=pytest.mark.long)], ids=str)
def test_every_byte_of_packets(kind: Format) -> None:
    packets = complete(kind)
    assert len(packets) > 20
    for packet in packets:
        assert_cuts(kind, packet)


def test_every_byte_of_messages_to_several_queues() -> None:
    packets = [packet for packet in complete(MESSAGES) if MESSAGES.read(packet).values.get("destination_queues")]
    for packet in packets[:3]:
        assert_cuts(MESSAGES, packet)


def assert_cuts(kind: Format, packet: bytes) -> None:
    """What is whole in a packet is there, and the fault is at the first field that is not, wherever it is cut."""
    batch, expected = cuts(kind, packet)
    arrow = batch.to_arrow()
    for column in batch.table.columns:
        if column.name not in OF_WHOLE or kind is SESSIONS:
            values = [each.values.get(column.name) for each in expected]
            _assert_present(batch, arrow.column(column.name), column.name, values)
    faults = batch.faults
    assert (faults["row"] == np.arange(len(batch))).all()
    for row, each in enumerate(expected):
        code, field, offset, value, needed = batch.fault(row)  # type: ignore[misc]
        assert code == "incomplete"
        if each.field.startswith(RARE) or field.startswith(RARE):
            continue
        assert (field, offset) == (each.field, each.offset)
        assert needed == each.needed
        assert value is None or value <= needed
        assert (faults["needed"][row], faults["available"][row]) == (each.needed, each.available)


def _assert_present(batch: Batch, arrow: pa.Array[Any], name: str, values: list[Any]) -> None:
    present = np.array([value is not None and getattr(value, "form", "") != "unresolved" for value in values], bool)
    np.testing.assert_array_equal(batch.is_valid(name), present, name)
    assert [not null for null in arrow.is_null().to_pylist()] == present.tolist(), name
    if not present.any():
        return
    last = int(np.flatnonzero(present)[-1])
    assert len({str(value) for value in arrow.filter(present.tolist()).to_pylist()}) == 1, name
    assert arrow[last].as_py() is not None


@each_table
def test_what_is_whole_has_the_values_of_the_packet(kind: Format) -> None:
    for packet in complete(kind)[:60]:
        batch, _ = cuts(kind, packet)
        (whole,) = kind.decode_batch([packet], **transport_of(kind, packet)).to_arrow().to_pylist()
        for row in batch.to_arrow().to_pylist():
            assert row["violations"] is None
            for name, value in row.items():
                if value is not None and name != "fault":
                    assert value == whole[name], name


def test_lists_of_queues_before_the_session_header() -> None:
    queues = ("DIRECT=OS:server\\one", "DIRECT=OS:server\\two")
    header = mqqb.MultiQueueFormatHeader(destination_queues=queues)
    packet = mqqb.encode(mqqb.UserMessage(multi_queue=header, session=mqqb.SessionHeader(window_size=1)))
    sizes = [len(packet) - 16, len(packet) - 1, len(packet) - 17]
    batch = mqqb.decode_batch(
        Payloads.of([packet[:size] for size in sizes], lost=[len(packet) - size for size in sizes])
    )
    assert batch.fault(0)[:3] == ("incomplete", "SessionHeader", len(packet) - 16)  # type: ignore[index]
    assert batch.to_arrow()["destination_queues"].to_pylist() == [[*queues], [*queues], None]


@each_table
def test_a_packet_that_is_too_short_with_its_lost_bytes_is_truncated(kind: Format) -> None:
    batch = kind.decode_batch(Payloads.of([b"\x10"], lost=[3]), **({"transport": "tcp"} if kind.transports else {}))
    assert batch.fault(0)[:3] == ("truncated", "BaseHeader", 0)


def test_among_complete_packets_and_in_reused_memory() -> None:
    packet = mqqb.encode(FULL)
    payloads = [packet, packet[:100], b"no packet", packet[:70], packet] * 50
    lost = [0, len(packet) - 100, 0, len(packet) - 70, 0] * 50
    out = mqqb.decode_batch([packet] * 300)
    expected = mqqb.decode_batch(Payloads.of(payloads, lost=lost)).to_arrow()
    codes = [fault and fault["code"] for fault in expected["fault"].to_pylist()[:5]]
    assert codes == [None, "incomplete", "truncated", "incomplete", None]
    for _ in range(2):
        out = mqqb.decode_batch(Payloads.of(payloads, lost=lost), out=out)
        assert out.to_arrow().equals(expected)
        out = mqqb.decode_batch([packet] * 260, out=out)
        assert not out.faults.size
        assert out.is_valid("body").all()
    picked = Payloads.of(payloads, lost=lost).take(np.arange(1, 250, 5, dtype=np.uint32))
    assert mqqb.decode_batch(picked).is_valid("message_id").all()
    assert not mqqb.decode_batch(picked).is_valid("body").any()
    with pytest.raises(ValueError, match="lost="):
        Payloads.of(payloads, lost=[1])
