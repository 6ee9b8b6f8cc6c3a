"""Each golden vector: decoded, copied, printed, encoded, truncated, with bytes after it and with each byte changed."""

from __future__ import annotations

import pickle
import re
from operator import itemgetter
from typing import Any

import pytest

from msmqwire.errors import DecodeError
from tests.columns.formats import FORMATS, MESSAGES, NOTIFICATIONS, TOPOLOGY, Format, assert_value, each_format, rebuilt
from tests.columns.rows import assert_arrow, assert_columns, place_of, shown_row
from tests.contract.checklist import row
from tests.reference.reader import Fault
from tests.vectors import Vector

VECTORS = [(kind, vector) for kind in FORMATS for vector in kind.vectors]
TAILS = (b"\0", b"\0\0", b"\xff" * 3, bytes(4), b"\xff" * 8, bytes(19), bytes(60))
#: Of how many vectors the short run takes one: the oracle of messages is slow.
SHARES = {"topology": 8, "notifications": 16, "messages": 32, "sessions": 32}
#: Of how many the long run changes each byte, as the fuzz targets do of all of them; it truncates each vector
CHANGED = {"topology": 1, "notifications": 2, "messages": 4, "sessions": 4}


def named(at: int, long: bool = False) -> Any:
    """One vector as the parameters of a test."""
    kind, vector = VECTORS[at]
    return pytest.param(kind, vector, id=f"{kind}-{vector}", marks=pytest.mark.long if long else ())


each_vector = pytest.mark.parametrize(("kind", "vector"), [named(at) for at in range(len(VECTORS))])
some_vectors = pytest.mark.parametrize(
    ("kind", "vector"), [named(at, long=at % SHARES[str(kind)] > 0) for at, (kind, _) in enumerate(VECTORS)]
)


def ways_of(kind: Format, vector: Vector) -> list[dict[str, Any]]:
    """The ways to decode a vector: by the transports that it has."""
    transports = {outcome.transport for outcome in vector.outcomes}
    return [way for way in kind.ways() if way.get("transport", "unknown") in transports or not kind.transports]


@row("SDW-12", "SDW-13", "SDW-14", "QB-08")
@each_vector
def test_decoded_and_encoded(kind: Format, vector: Vector) -> None:
    for way in ways_of(kind, vector):
        packet = kind.assert_agrees(vector.data, **way)
        if isinstance(packet, Fault):
            with pytest.raises(DecodeError) as caught:
                kind.codec.decode(vector.data, **way)
            assert caught.value.detail
            assert caught.value.field in str(caught.value)
            continue
        assert packet == kind.decode(bytearray(vector.data), **way)
        assert packet != vector.data
        assert packet != None  # noqa: E711
        assert type(packet).__name__ in repr(packet)
        assert pickle.loads(pickle.dumps(packet)).violations == packet.violations
        if kind is kind.read_as(vector.data) and kind.accepts.issuperset(packet.violations):
            assert_value(packet)
            written = kind.encode(packet)
            assert (written == vector.data) is vector.exact
            if kind is not MESSAGES:  # a direct name that is not valid is decoded, but not built
                assert rebuilt(packet) == packet == packet.replace()
                assert kind.encode(rebuilt(packet)) == written


@each_format
def test_in_batches(kind: Format) -> None:
    for way in kind.ways():
        kind.assert_rows(kind.packets, **way)


@each_format
def test_those_that_differ_are_not_equal(kind: Format) -> None:
    found = [(kind.decode(data), kind.read(data)) for data in kind.packets if kind is kind.read_as(data)]
    values = [(compared(kind, outcome), packet) for packet, outcome in found if not isinstance(packet, Fault)]
    # The next ones in order differ least
    values.sort(key=itemgetter(0))
    for at, (value, packet) in enumerate(values):
        for other_value, other in values[at + 1 : at + 9]:
            assert value == other_value or packet != other


def compared(kind: Format, outcome: Any) -> str:
    """The rows of a packet without what is not part of its value."""
    left_out = (*kind.unwritten, "violations", "trailing", "reserved", "user_flags")
    rows = [shown_row(kind.table, each) for each in kind.rows(outcome)]
    return str([{name: value for name, value in each.items() if name not in left_out} for each in rows])


@row("SDW-10", "SDW-11")
@pytest.mark.parametrize("strict", [False, True])
@some_vectors
def test_truncated_and_with_trailing_bytes(kind: Format, vector: Vector, strict: bool) -> None:
    data = vector.data[-4096:] if len(vector.data) > 4096 else vector.data
    payloads = [data[:size] for size in range(len(data) + 1)] + [data + tail for tail in TAILS]
    for way in kind.ways():
        if way["strict"] is strict:
            assert_all_agree(kind, payloads, **way)


def assert_all_agree(kind: Format, payloads: list[bytes], **way: Any) -> None:
    """The rows of a batch are those of the oracle, and a packet alone has the fault of its row."""
    batch, expected = kind.decode_batch(payloads, **way), kind.expected(payloads, **way)
    assert_columns(batch, expected)
    assert_arrow(batch, expected)
    for data, at in zip(payloads, expected.messages, strict=False):
        if kind is kind.read_as(data, way.get("transport", "unknown")):
            packet = kind.decode(data, **way)
            assert (packet if isinstance(packet, Fault) else None) == place_of(batch.fault(int(at)))


@pytest.mark.parametrize("kind", [TOPOLOGY, NOTIFICATIONS], ids=str)
def test_the_detail_of_a_truncated_field_says_what_is_left_of_it(kind: Format) -> None:
    for data in {packet[:size] for packet in kind.packets for size in range(len(packet))}:
        expected = kind.read(data)
        if isinstance(expected, Fault) and expected.code == "truncated":
            with pytest.raises(DecodeError) as caught:
                kind.codec.decode(data)
            needed, left = map(int, re.findall(r"\d+", caught.value.detail))
            assert needed > left == len(data) - expected.offset


@pytest.mark.parametrize(
    ("kind", "vector"),
    [
        named(at, long=at % SHARES[str(kind)] > 0)
        for at, (kind, _) in enumerate(VECTORS)
        if at % CHANGED[str(kind)] == 0
    ],
)
def test_each_byte_changed(kind: Format, vector: Vector) -> None:
    """Each bit turned over, one more, one less, no bits and all bits."""
    data, rest = vector.data[:400], vector.data[400:]
    payloads = [
        data[:at] + bytes((other,)) + data[at + 1 :] + rest
        for at, byte in enumerate(data)
        for other in {*(byte ^ 1 << bit for bit in range(8)), (byte + 1) & 255, (byte - 1) & 255, 0, 255} - {byte}
    ]
    assert_all_agree(kind, payloads, strict=len(data) % 2 == 1)
