"""Many packets at once: every row of a batch is what the oracle says of its payload."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
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


@pytest.mark.parametrize("strict", BOTH)
@pytest.mark.parametrize("table", TABLES)
def test_rows_are_what_the_oracle_says(table: Table, strict: bool) -> None:
    assert_rows([*vectors("messages"), *vectors("sessions"), *some(table, 1500)], table, strict=strict)


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


@pytest.mark.parametrize("table", TABLES)
def test_null_payloads_give_null_rows(table: Table) -> None:
    payloads: list[bytes | None] = [None, F7, None, None, WHOLE, b"", F8, None]
    batch = assert_rows(payloads, table)
    assert batch.fault(0) is None
    assert batch.fault(5) is not None
    assert_rows([None] * 40, table)
    assert_rows([], table)


@pytest.mark.parametrize("size", [1, 7, 8, 9, 31, 32, 33, 63, 64, 65, 97])
def test_sizes_around_blocks(size: int) -> None:
    for table in TABLES:
        assert_rows(some(table, size), table)


def test_every_kind_of_payloads() -> None:
    many: list[bytes | None] = [data if i % 5 else None for i, data in enumerate([*some("messages", 200), WHOLE])]
    expected = Expected(read_all(many, "messages"), "messages")
    for type_ in (pa.binary(), pa.large_binary(), pa.binary_view()):
        for given in (pa.array(many, type_), pa.array([b"x", *many], type_)[1:]):
            batch = mqqb.decode_batch(given)
            assert_columns(batch, expected)
            assert_arrow(batch, expected)
    joined = b"".join(data or b"" for data in many)
    sizes = np.array([len(data or b"") for data in many])
    for shift in (0, 1, 3):
        batch = mqqb.decode_batch(bytes(shift) + joined, offsets=np.cumsum([shift, *sizes]))
        plain = Expected(read_all([data or b"" for data in many], "messages"), "messages")
        assert_columns(batch, plain)


@pytest.mark.parametrize("table", TABLES)
def test_columns_alone_and_together(table: Table) -> None:
    payloads = [*some(table, 150), *vectors(table)]
    whole = decode_batch(payloads, table).to_arrow()
    for name in whole.schema.names:
        batch = decode_batch(payloads, table, columns=[name])
        assert batch.columns == (name,)
        assert batch.to_arrow().schema.names == [name]
        assert batch.to_arrow()[name].equals(whole[name])
    with pytest.raises(KeyError, match="not among"):
        decode_batch(payloads, table, columns=["kind"])["packet_size"]
    with pytest.raises(ValueError, match="no such column"):
        decode_batch(payloads, table, columns=["nothing"])


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("threads", [2, 3, 64])
def test_threads(table: Table, threads: int) -> None:
    payloads: list[bytes | None] = [*some(table, 333), None, *vectors(table)]
    one = decode_batch(payloads, table)
    more = decode_batch(payloads, table, threads=threads)
    assert more.to_arrow().equals(one.to_arrow())
    np.testing.assert_array_equal(more.faults, one.faults)


def test_out_is_written_again() -> None:
    rng = random.Random(3)
    out = mqqb.decode_batch([])
    for count in (200, 10, 0, 300):
        payloads = rng.sample(some("messages", 400), count)
        assert mqqb.decode_batch(payloads, out=out) is out
        assert_columns(out, Expected(read_all(payloads, "messages"), "messages"))
    held = out.to_arrow()
    with pytest.raises(BufferError):
        mqqb.decode_batch([], out=out)
    del held
    for other in (mqsd.decode_batch([]), mqqb.decode_session_batch([])):
        with pytest.raises(ValueError, match="batch of"):
            mqqb.decode_batch([], out=other)


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


def test_memory_is_bounded_by_the_payloads() -> None:
    rng = random.Random(5)
    for payloads in (
        some("messages", 2000),
        [rng.randbytes(rng.randint(0, 90)) for _ in range(3000)],
        [b""] * 3000,
        [WHOLE] * 500,
    ):
        before = allocated_bytes()
        batch = mqqb.decode_batch(payloads)
        total = sum(map(len, payloads))
        assert allocated_bytes() - before <= 8192 + 600 * len(payloads) + 10 * total
        del batch
        assert allocated_bytes() == before


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


@pytest.mark.parametrize(
    ("column", "value", "field"),
    [
        ("priority", 8, "priority"),
        ("hop_count", 200, "hop_count"),
        ("hop_count", 31, "BaseHeader"),
        ("transaction_id", 1 << 20, "transaction_id"),
        ("tx_sequence_number", 0, "BaseHeader"),
        ("sent_time", np.datetime64(-1, "s"), "sent_time"),
        ("allocation_body_size", 0, "BaseHeader"),
        ("security_flags", 0x10, "BaseHeader"),
    ],
)
def test_numbers_of_a_batch_can_be_changed_but_not_to_what_no_sender_writes(
    column: str, value: Any, field: str
) -> None:
    batch = mqqb.decode_batch([WHOLE, WHOLE])
    batch["message_id"][1] = 43
    again = mqqb.decode_batch(mqqb.encode_batch(batch))
    assert again["message_id"].tolist() == [42, 43]
    batch[column][1] = value
    with pytest.raises(EncodeError) as raised:
        mqqb.encode_batch(batch)
    assert (raised.value.field, raised.value.row) == (field, 1)


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
