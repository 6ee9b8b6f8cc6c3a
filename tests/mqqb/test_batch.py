"""Many packets at once: every row of a batch is what the oracle says of its payload."""

from __future__ import annotations

import gc
import sys
from typing import Any

import numpy as np
import pytest

from msmqwire import Batch, mqcn, mqqb
from msmqwire.columns import allocated_bytes
from tests.columns.formats import MESSAGES, SESSIONS
from tests.columns.rows import contents
from tests.mqqb.messages import F7, FULL, GUIDS
from tests.vectors import Vector, load

WHOLE = mqqb.encode(FULL)


@pytest.mark.parametrize("transport", ["unknown", "udp", "tcp"])
def test_the_transport_tells_pings_from_packets(transport: str) -> None:
    payloads = SESSIONS.cases(300, 7)
    batch = SESSIONS.assert_rows(payloads, transport=transport)
    codes = np.full(len(payloads), ["unknown", "udp", "tcp"].index(transport), np.uint8)
    assert mqqb.decode_session_batch(payloads, transport=codes).to_arrow().equals(batch.to_arrow())
    with pytest.raises(ValueError, match="transport"):
        mqqb.decode_session_batch(payloads, transport=codes[1:])
    with pytest.raises(ValueError, match="transport"):
        mqqb.decode_session_batch(payloads, transport="ipx")  # type: ignore[arg-type]


def test_a_message_with_everything_truncated_and_with_a_tail() -> None:
    payloads = [WHOLE[:size] for size in range(len(WHOLE))] + [WHOLE + bytes(size) for size in range(9)]
    for way in MESSAGES.ways():
        MESSAGES.assert_rows(payloads, **way)


@pytest.mark.parametrize(
    "vector",
    [pytest.param(vector, marks=pytest.mark.long if at % 16 else ()) for at, vector in enumerate(load("mqqb"))],
    ids=str,
)
def test_every_shorter_packet(vector: Vector) -> None:
    """As if the sender had truncated it: PacketSize knows."""
    data = vector.data[:2000]
    payloads = [
        data[:8] + (size - behind).to_bytes(4, "little", signed=True) + data[12:size]
        for size in range(16, len(data) + 1)
        for behind in (0, 16)
        if size >= behind
    ]
    (MESSAGES if vector.table == "messages" else SESSIONS).assert_rows(payloads)


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
        assert contents(mqqb.encode_batch(out)) == payloads


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
    assert {batch.fault(row) for row in range(100)} == {
        ("truncated", "Destination.FormatNameList[1]", at + 24, count, 2)
    }


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
