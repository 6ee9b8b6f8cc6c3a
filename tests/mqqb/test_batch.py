"""Many packets at once: every row of a batch is what the oracle says of its payload."""

from __future__ import annotations

import gc
import sys
from typing import Any

import numpy as np
import pytest

from msmqwire import Batch, Payloads, mqcn, mqqb, mqsd
from msmqwire.columns import allocated_bytes
from msmqwire.errors import EncodeError
from tests.mqqb.messages import F7, F8, FULL, GUIDS, TABLES, some, vectors
from tests.mqqb.rows import Expected, assert_arrow, assert_columns, decode_batch, read_all
from tests.reference.mqqb import Table

BOTH = (False, True)
WHOLE = mqqb.encode(FULL)


def assert_rows(payloads: Any, table: Table, *, strict: bool = False, **options: Any) -> Batch:
    """A batch of these payloads, its numpy columns and its Arrow export."""
    transport = options.get("transport", "unknown")
    expected = Expected(read_all(payloads, table, strict=strict, transport=transport), table)
    batch = decode_batch(payloads, table, strict=strict, **options)
    assert_columns(batch, expected)
    assert_arrow(batch, expected)
    return batch


@pytest.mark.parametrize("transport", ["unknown", "udp", "tcp"])
def test_the_transport_tells_pings_from_packets(transport: str) -> None:
    payloads = some("sessions", 300)
    batch = assert_rows(payloads, "sessions", transport=transport)
    codes = np.full(len(payloads), ["unknown", "udp", "tcp"].index(transport), np.uint8)
    assert mqqb.decode_session_batch(payloads, transport=codes).to_arrow().equals(batch.to_arrow())
    with pytest.raises(ValueError, match="transport"):
        mqqb.decode_session_batch(payloads, transport=codes[1:])
    with pytest.raises(ValueError, match="transport"):
        mqqb.decode_session_batch(payloads, transport="ipx")  # type: ignore[arg-type]


def test_every_truncation_and_tail() -> None:
    for data, table in ((WHOLE, "messages"), (F8, "sessions")):
        payloads = [data[:size] for size in range(len(data))] + [data + bytes(size) for size in range(9)]
        for strict in BOTH:
            assert_rows(payloads, table, strict=strict)  # type: ignore[arg-type]


def raw_values(batch: Batch) -> dict[str, Any]:
    """What the memory of the columns holds, in null rows as well."""
    views = {column.name: batch[column.name] for column in batch.table.columns if not column.derived}
    parts = {
        f"{name}.{part}": getattr(view, part).tolist()
        for name, view in views.items()
        for part in ("offset", "length", "offsets")
        if hasattr(view, part)
    }
    return parts | {name: repr(view.tolist()) for name, view in views.items() if isinstance(view, np.ndarray)}


def test_rows_without_a_part_after_rows_with_it() -> None:
    security = mqqb.SecurityHeader(security_flags=1, security_id=b"\1\1" + bytes(10))
    plain = [mqqb.encode(mqqb.UserMessage(body=b"hello")), mqqb.encode(mqqb.UserMessage(security=security))]
    out: Any = None
    # Pairs of plain messages, then full messages, then pairs again
    cases = ((50, 0, 0), (35, 40, 45), (0, 5, 48), (17, 0, 0), (50, 1, 50), (100, 0, 0), (0, 300, 0), (100, 0, 0))
    for before, full, after in cases:
        payloads = plain * before + [WHOLE] * full + plain * after
        out = mqqb.decode_batch(payloads, out=out)
        assert raw_values(out) == raw_values(mqqb.decode_batch(payloads))
        assert [bytes(packet) for packet in mqqb.encode_batch(out)] == payloads


# --- Hostile ---


@pytest.mark.parametrize("count", [0xFFFFFFFF, 0x80000000, 0x7FFFFFFF, 0x10000])
def test_a_list_of_four_thousand_million_queues_allocates_nothing(count: int) -> None:
    honest = mqqb.encode(
        mqqb.UserMessage(
            multi_queue=mqqb.MultiQueueFormatHeader(
                destination_queues=("DL=" + "0" * 8 + "-0000-0000-0000-" + "0" * 12,)
            )
        )
    )
    at = honest.index(b"\x64\0\0\0\1\0\0\0") + 4
    liar = honest[:at] + count.to_bytes(4, "little") + honest[at + 4 :]
    before = allocated_bytes()
    usual = mqqb.decode_batch([honest] * 100)
    cost = allocated_bytes() - before
    del usual
    batch = mqqb.decode_batch([liar] * 100)
    assert allocated_bytes() - before <= cost + 100 * 40
    assert {batch.fault(row) for row in range(100)} == {("truncated", "Destination.FormatNameList[1]", at + 24)}


# --- From a message to its notification ---


def test_notifications_are_found_and_linked() -> None:
    delete = bytes.fromhex(
        "01010201000102030405060708090a0b0c0d0e0f0000000000000000000000000000000000000000000000000000000000"
    ) + bytes(12)
    queue = f"PRIVATE={GUIDS[0]}\\3"
    direct = "DIRECT=OS:server\\private$\\NOTIFY_QUEUE$"
    messages = [
        mqqb.UserMessage(destination_queue=queue, body=delete),
        mqqb.UserMessage(destination_queue=f"PRIVATE={GUIDS[0]}\\4", body=delete),
        mqqb.UserMessage(destination_queue=direct, body=b"\1"),
        mqqb.UserMessage(destination_queue=queue, body=delete, privacy_level=3),
        mqqb.UserMessage(destination_queue=queue, body=delete, message_class=1),
        mqqb.UserMessage(destination_queue=queue),
    ]
    payloads: list[bytes | None] = [*map(mqqb.encode, messages), None, b"oops"]
    batch = mqqb.decode_batch(payloads)
    found = batch.notifications()
    assert found.rows.tolist() == [0, 2, 5]
    assert found.encrypted.tolist() == [3]
    assert [bytes(body) for body in found.payloads if body is not None] == [delete, b"\1", b""]
    first = found.payloads[0]
    assert np.shares_memory(np.frombuffer(first, np.uint8), np.frombuffer(payloads[0], np.uint8))  # type: ignore[arg-type]
    told = mqcn.decode_batch(found.payloads)
    assert len(told.messages) == 4
    del batch
    assert bytes(found.payloads[0]) == delete  # type: ignore[arg-type]


def test_notifications_need_their_columns() -> None:
    for columns in (["kind"], ["body"], ["notification"]):
        with pytest.raises(KeyError, match="notification and body"):
            mqqb.decode_batch([F7], columns=columns).notifications()
    only = mqqb.decode_batch([F7], columns=["notification", "body"]).notifications()
    assert (len(only.payloads), len(only.rows), len(only.encrypted)) == (0, 0, 0)


@pytest.mark.usefixtures("everything_is_released")
def test_bodies_keep_the_payload() -> None:
    data = bytes(bytearray(WHOLE))
    before = sys.getrefcount(data)
    batch = mqqb.decode_batch([data])
    label, body, found = batch["label"][0], batch["body"][0], batch.notifications()
    del batch
    gc.collect()
    assert sys.getrefcount(data) > before
    assert label.tobytes().decode("utf-16-le") == FULL.label
    assert np.shares_memory(body, np.frombuffer(data, np.uint8))
    assert bytes(found.payloads[0]) == b"hello"  # type: ignore[arg-type]
    packet: Any = mqqb.decode(data)
    view = packet.body
    del label, body, found, packet
    gc.collect()
    assert bytes(view) == b"hello"
    del view
    gc.collect()
    assert sys.getrefcount(data) == before


# --- encode_batch ---


def _good(table: Table) -> list[bytes]:
    """What an encoder writes of the payloads that it accepts."""
    written = []
    for data in [*some(table, 1000), *vectors(table)]:
        if len(data) > 16 and (data[4:8] != b"LIOR" or bool(data[2] & 8)) == (table == "sessions"):
            try:
                written.append(mqqb.encode(mqqb.decode(data)))
            except Exception:
                continue
    return written


@pytest.mark.parametrize("table", TABLES)
def test_encode_batch_gives_the_payloads_back(table: Table) -> None:
    payloads = _good(table)
    assert len(payloads) > 100
    written = mqqb.encode_batch(decode_batch(payloads, table))
    assert isinstance(written, Payloads)
    assert [bytes(data) for data in written if data is not None] == payloads
    packets = [mqqb.decode(data) for data in payloads]
    assert [bytes(data) for data in mqqb.encode_batch(packets) if data is not None] == payloads
    again = mqqb.encode_batch(decode_batch(payloads[:3], table), out=written)
    assert again is written
    assert [bytes(data) for data in again if data is not None] == payloads[:3]


@pytest.mark.parametrize(
    ("payloads", "row"), [([WHOLE, None], 1), ([b""], 0), ([WHOLE, WHOLE, WHOLE + bytes(8)], 2)], ids=str
)
def test_rows_that_no_sender_writes_are_refused(payloads: list[bytes | None], row: int) -> None:
    with pytest.raises(EncodeError) as raised:
        mqqb.encode_batch(mqqb.decode_batch(payloads))
    assert raised.value.row == row


def test_encode_batch_needs_columns() -> None:
    with pytest.raises(ValueError, match="label"):
        mqqb.encode_batch(mqqb.decode_batch([WHOLE], columns=["body", "violations"]))
    with pytest.raises(ValueError, match="topology"):
        mqqb.encode_batch(mqsd.decode_batch([]))
    following = ("packet_size", "message_class_name", "notification", "fault")
    names = [name for name in mqqb.MESSAGES.names if name not in following]
    assert bytes(mqqb.encode_batch(mqqb.decode_batch([WHOLE], columns=names))[0]) == WHOLE  # type: ignore[arg-type]


def test_packets_are_refused_by_row() -> None:
    with pytest.raises(EncodeError) as raised:
        mqqb.encode_batch([FULL, mqqb.decode(WHOLE + bytes(4))])
    assert raised.value.row == 1
