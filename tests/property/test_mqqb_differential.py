"""The codec of MQQB and its oracle agree on many payloads, half of them mutated."""

from __future__ import annotations

from collections import Counter
from itertools import product

import numpy as np
import pytest

from msmqwire import mqqb
from msmqwire.errors import EncodeError
from tests.mqqb.messages import TABLES
from tests.mqqb.packets import assert_packet, decode, table_of
from tests.mqqb.rows import Expected, assert_arrow, assert_columns, decode_batch, read_all
from tests.reference import mqqb as reference
from tests.reference.mqqb import TRANSPORTS, Table, Transport
from tests.reference.mqqb_cases import cases
from tests.reference.mqqb_writer import WRITABLE, write
from tests.vectors import Vector, load

VECTORS = load("mqqb")
#: All vectors, of which the short run takes every sixteenth.
SIXTEENTH = [pytest.param(vector, marks=pytest.mark.long if at % 16 else ()) for at, vector in enumerate(VECTORS)]

#: All vectors, strictly or not; the short run takes every fourth strictly.
TRUNCATED = [
    pytest.param(vector, strict, marks=pytest.mark.long if strict and at % 4 else ())
    for strict in (False, True)
    for at, vector in enumerate(VECTORS)
]

#: Table, strictly or not, share that is mutated, seed and number of cases.
WAYS = [
    pytest.param(table, strict, broken, seed, count, marks=marks)
    for count, marks in ((125, ()), (2_500, pytest.mark.long))
    for seed, (table, broken, strict) in enumerate(product(TABLES, (0.0, 1.0), (False, True)), 101)
]


def assert_agreement(payloads: list[bytes], table: Table, *, strict: bool, transport: Transport = "unknown") -> None:
    """The rows of payloads, joined and in a list, are what the oracle says."""
    expected = Expected(read_all(payloads, table, strict=strict, transport=transport), table)
    joined, offsets = b"".join(payloads), np.cumsum([0, *map(len, payloads)])
    batch = decode_batch(joined, table, offsets=offsets, strict=strict, transport=transport)
    assert_columns(batch, expected)
    assert_arrow(batch, expected)
    again = decode_batch(payloads, table, strict=strict, transport=transport)
    assert again.to_arrow().equals(batch.to_arrow())
    assert np.array_equal(again.faults, batch.faults)


@pytest.mark.parametrize(("vector", "strict"), TRUNCATED, ids=str)
def test_every_truncation(vector: Vector, strict: bool) -> None:
    data = vector.data[-4096:] if len(vector.data) > 4096 else vector.data
    payloads = [data[:size] for size in range(len(data) + 1)] + [data + bytes(size) for size in range(1, 20)]
    for transport in TRANSPORTS if vector.table == "sessions" else ("unknown",):
        assert_agreement(payloads, vector.table, strict=strict, transport=transport)


@pytest.mark.parametrize("vector", SIXTEENTH, ids=str)
def test_every_shorter_packet(vector: Vector) -> None:
    """As if the sender had cut it: PacketSize knows."""
    data = vector.data[:2000]
    payloads = [
        data[:8] + (size - behind).to_bytes(4, "little", signed=True) + data[12:size]
        for size in range(16, len(data) + 1)
        for behind in (0, 16)
        if size >= behind
    ]
    assert_agreement(payloads, vector.table, strict=False)


@pytest.mark.parametrize("vector", SIXTEENTH, ids=str)
def test_every_change_of_a_byte(vector: Vector) -> None:
    """Each bit of each byte turned over, and each byte as 0 and as 255."""
    data = vector.data[:400]
    rest = vector.data[400:]
    payloads = [
        data[:at] + bytes((value,)) + data[at + 1 :] + rest
        for at in range(len(data))
        for value in {*(data[at] ^ 1 << bit for bit in range(8)), 0, 255}
    ]
    assert_agreement(payloads, vector.table, strict=False)


def _transport(data: bytes) -> Transport:
    """What the payload travels on, so that every packet is read as what it is."""
    return "tcp" if data[4:8] == b"LIOR" else "udp"


@pytest.mark.parametrize(("table", "strict", "broken", "seed", "count"), WAYS)
def test_packets_and_the_oracle_agree(table: Table, strict: bool, broken: float, seed: int, count: int) -> None:
    found: Counter[str] = Counter()
    for data in cases(count, seed, table, broken=broken):
        transport = _transport(data)
        expected = reference.read(data, table_of(data), strict=strict, transport=transport)
        packet = decode(data, strict=strict, transport=transport)
        assert_packet(packet, expected)
        if isinstance(expected, reference.Fault) or isinstance(packet, reference.Fault):
            found["fault"] += 1
        elif set(expected.violations) - WRITABLE:
            found["refused"] += 1
            with pytest.raises(EncodeError):
                mqqb.encode(packet)
        else:
            found["written"] += 1
            assert mqqb.encode(packet) == write(expected), data.hex()
    assert found["written"] > count // 100
    assert broken == 0 or found["fault"] > count // 5


@pytest.mark.parametrize("table", ["messages", "sessions"])
def test_encoded_batches_and_the_oracle_agree(table: Table) -> None:
    """What an encoder may write, written by the batch from columns."""
    good, written = [], []
    for data in cases(3_000, 13, table, broken=0.2):
        model = reference.read(data, table)
        if isinstance(model, reference.Packet) and not set(model.violations) - WRITABLE:
            good.append(data)
            written.append(write(model))
    assert len(good) > 400
    assert list(map(bytes, mqqb.encode_batch(decode_batch(good, table)))) == written
