"""Payloads as they come: one buffer with offsets, sequences of bytes-like, Arrow arrays and streams."""

from __future__ import annotations

import array
import mmap
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from msmqwire import Payloads, mqsd
from tests.columns.formats import TOPOLOGY
from tests.columns.rows import assert_columns, contents
from tests.reference.mqsd_cases import cases
from tests.vectors import load

PACKETS = [*(vector.data for vector in load("mqsd")), b"", b"\0", *cases(200, seed=99)]
WITH_NULLS = [data if i % 3 else None for i, data in enumerate(PACKETS)]
JOINED = b"".join(PACKETS)
OFFSETS = np.cumsum([0, *map(len, PACKETS)])


def _array(data: bytes) -> Any:
    return np.frombuffer(data, np.uint8)


def _inner(data: bytes) -> memoryview:
    return memoryview(b"xyz" + data)[3:]


def assert_payloads(given: Any, expected: Sequence[bytes | None], offsets: Any = None) -> None:
    """The same payloads, and the same rows made of them."""
    payloads = Payloads.of(given, offsets)
    assert len(payloads) == len(expected)
    assert contents(payloads) == list(expected)
    outcomes = TOPOLOGY.expected(expected)
    assert_columns(mqsd.decode_batch(payloads), outcomes)
    assert_columns(mqsd.decode_batch(given, offsets=offsets), outcomes)


# --- one buffer with offsets ---


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint32, np.uint64, ">i4", ">i8"])
@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview, _array, pa.py_buffer])
def test_offsets(kind: Callable[[bytes], Any], dtype: Any) -> None:
    assert_payloads(kind(JOINED), PACKETS, OFFSETS.astype(dtype))


def test_offsets_of_any_integer_sequence() -> None:
    plain = OFFSETS.tolist()
    for offsets in (plain, tuple(plain), array.array("q", plain), pa.array(plain)):
        assert_payloads(JOINED, PACKETS, offsets)
    assert_payloads(b"abcdef", [b"b", b"", b"cde"], np.array([1, 2, 2, 5], np.uint8))
    assert_payloads(JOINED, PACKETS, np.repeat(OFFSETS, 2)[::2])
    assert_payloads(b"", [], [0])
    assert_payloads(b"", [b"", b""], [0, 0, 0])


def test_offsets_are_copied() -> None:
    offsets = OFFSETS.copy()
    payloads = Payloads(JOINED, offsets)
    offsets[:] = 1 << 40
    assert bytes(payloads[5]) == PACKETS[5]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "offsets",
    [
        [],
        [-1, 3],
        [0, 7],
        [0, 1 << 40],
        [0, (1 << 63) - 1],
        [3, 2],
        [0, 4, 3, 6],
        [0, -(1 << 63), 6],
        [0.0, 6.0],
        [[0, 6]],
        ["0", "6"],
        0,
        np.array([0, (1 << 64) - 1, 6], np.uint64),
        np.array([1 << 63, 6], np.uint64),
        np.array([0, -1, 6], np.int32),
        np.array([True, False]),
    ],
)
def test_bad_offsets_are_refused(offsets: Any) -> None:
    for call in (lambda: Payloads(b"abcdef", offsets), lambda: mqsd.decode_batch(b"abcdef", offsets=offsets)):
        with pytest.raises(ValueError, match="offsets"):
            call()


def test_one_buffer_needs_offsets() -> None:
    for given in (b"abc", bytearray(b"abc"), memoryview(b"abc"), np.zeros(3, np.uint8)):
        with pytest.raises(TypeError, match="offsets"):
            mqsd.decode_batch(given)


def test_a_map_of_a_file_is_a_buffer() -> None:
    with mmap.mmap(-1, len(JOINED)) as area:
        area[:] = JOINED
        assert_payloads(area, PACKETS, OFFSETS)


# --- sequences ---


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview, _array, _inner, pa.py_buffer])
@pytest.mark.parametrize("sequence", [list, tuple, iter])
def test_sequences(sequence: Callable[[list[Any]], Any], kind: Callable[[bytes], Any]) -> None:
    items = [None if data is None else kind(data) for data in WITH_NULLS]
    assert_columns(mqsd.decode_batch(sequence(items)), TOPOLOGY.expected(WITH_NULLS))
    assert_columns(mqsd.decode_batch(sequence([kind(data) for data in PACKETS])), TOPOLOGY.expected(PACKETS))


def test_a_sequence_may_mix_kinds() -> None:
    kinds: tuple[Callable[[bytes], Any], ...] = (bytes, bytearray, memoryview, _array, _inner, pa.py_buffer)
    assert_payloads([kinds[i % 6](data) for i, data in enumerate(PACKETS)], PACKETS)


def test_items_of_wider_types_are_bytes() -> None:
    data = PACKETS[2] + bytes(-len(PACKETS[2]) % 4)
    wide = [np.frombuffer(data, np.uint32), array.array("H", np.frombuffer(data, np.uint16))]
    assert_payloads(wide, [data] * 2)


def test_a_list_changed_later_changes_nothing() -> None:
    items: list[Any] = list(PACKETS)
    payloads = Payloads.of(items)
    items.clear()
    assert contents(payloads) == PACKETS


@pytest.mark.parametrize("wrong", [["abc"], [b"abc", 5], [b"abc", [b"d"]], "abc", 5, None, {"a": 1}])
def test_other_things_are_refused(wrong: Any) -> None:
    with pytest.raises(TypeError):
        mqsd.decode_batch(wrong)


def test_references_to_objects_are_no_payloads() -> None:
    """The memory of such an array holds addresses: a column of a DataFrame as an array with two dimensions."""
    rows: Any = np.array([[PACKETS[0]], [PACKETS[1]]], object)
    for call in (
        lambda: mqsd.decode_batch(rows),
        lambda: mqsd.decode_batch(rows, offsets=[0, 8]),
        lambda: mqsd.decode(rows),
        lambda: mqsd.decode(rows.data),
    ):
        with pytest.raises(TypeError, match="Python objects"):
            call()
    assert_payloads(rows[:, 0], PACKETS[:2])


def test_strided_buffers_are_refused() -> None:
    data = np.zeros((4, 4), np.uint8)
    for wrong in (memoryview(b"abcdef")[::2], data[:, 1]):
        with pytest.raises((ValueError, BufferError)):
            mqsd.decode_batch([wrong])
        with pytest.raises((ValueError, BufferError)):
            mqsd.decode_batch(wrong, offsets=[0, 1])


# --- Arrow ---

TYPES = [pa.binary(), pa.large_binary(), pa.binary_view()]


@pytest.mark.parametrize("type_", TYPES, ids=str)
@pytest.mark.parametrize("expected", [PACKETS, WITH_NULLS, [None, None], [], [b"", None, b""]])
def test_arrow_arrays(expected: list[bytes | None], type_: pa.DataType) -> None:
    assert_payloads(pa.array(expected, type_), expected)


@pytest.mark.parametrize("type_", TYPES, ids=str)
@pytest.mark.parametrize("bounds", [(0, 0), (0, 1), (1, 9), (7, 8), (8, 40), (13, 200), (9999, 9999)])
def test_arrow_slices(bounds: tuple[int, int], type_: pa.DataType) -> None:
    chosen = slice(*bounds)
    for values in (PACKETS, WITH_NULLS):
        assert_payloads(pa.array(values, type_)[chosen], values[chosen])
        assert_payloads(pa.array(values, type_)[1:][chosen], values[1:][chosen])


def chunked(chunks: list[pa.Array[Any]], type_: pa.DataType) -> pa.ChunkedArray[Any]:
    made: pa.ChunkedArray[Any] = pa.chunked_array(chunks, type_)  # type: ignore[call-overload]  # its stub wants one type
    return made


@pytest.mark.parametrize("type_", TYPES, ids=str)
def test_arrow_streams(type_: pa.DataType) -> None:
    values = WITH_NULLS
    for cuts in ([], [0], [5], [5, 5, 9], [1, 2, 3, 100]):
        bounds = [0, *cuts, len(values)]
        chunks = [pa.array(values[a:b], type_) for a, b in pairwise(bounds)]
        assert_payloads(chunked(chunks, type_), values)
        sliced = chunked([pa.array([None, *values], type_)[1:]], type_)
        assert_payloads(sliced, values)
    assert_payloads(chunked([], type_), [])
    assert_payloads(chunked([pa.array([], type_)] * 2, type_), [])


@pytest.mark.parametrize("type_", TYPES, ids=str)
def test_short_and_long_values_of_a_view(type_: pa.DataType) -> None:
    """A view of 12 bytes at most holds the value itself."""
    values = [bytes(range(size)) for size in (0, 1, 4, 11, 12, 13, 16, 100)]
    assert_payloads(pa.array(values, type_), values)
    assert_payloads(pa.chunked_array([pa.array(values[:5], type_), pa.array(values[5:], type_)]), values)


@pytest.mark.parametrize("type_", [pa.string(), pa.int32(), pa.list_(pa.uint8()), pa.null()], ids=str)
def test_arrays_of_other_types_are_refused(type_: pa.DataType) -> None:
    for given in (pa.array([None], type_), pa.chunked_array([pa.array([None], type_)])):
        with pytest.raises(TypeError, match="must be Arrow binary, of any or of one size, not "):
            mqsd.decode_batch(given)


def test_tables_are_refused() -> None:
    table = pa.table({"payload": pa.array(PACKETS)})
    for given in (table, table.to_batches()[0]):
        with pytest.raises(TypeError, match="give one of its columns"):
            mqsd.decode_batch(given)


def test_a_stream_that_fails_says_why() -> None:
    def broken() -> Any:
        yield pa.record_batch({"payload": pa.array([b"a"])})
        raise RuntimeError("the disk is gone")

    class Stream:
        """Chunks of a column, of which the second cannot be had."""

        def __init__(self) -> None:
            schema = pa.schema([("payload", pa.binary())])
            self.reader = pa.RecordBatchReader.from_batches(schema, broken())

        def __arrow_c_stream__(self, requested_schema: object = None) -> object:
            return self.reader.__arrow_c_stream__(requested_schema)

    with pytest.raises((TypeError, OSError)):
        mqsd.decode_batch(Stream())


# --- Payloads ---


@pytest.mark.parametrize(
    "payloads",
    [
        Payloads.of(WITH_NULLS),
        Payloads.of(pa.array(WITH_NULLS, pa.binary())),
        Payloads.of(pa.array([b"x", *WITH_NULLS], pa.large_binary())[1:]),
        Payloads.of(pa.array(WITH_NULLS, pa.binary_view())),
        Payloads.of(pa.chunked_array([pa.array(WITH_NULLS[:9]), pa.array(WITH_NULLS[9:])])),
    ],
    ids=["list", "binary", "large-sliced", "view", "chunked"],
)
def test_payloads_behave_like_a_sequence(payloads: Payloads) -> None:
    plain = contents(payloads)
    assert plain == WITH_NULLS
    for bounds in ((0, 5), (3, 50), (-4, None), (None, None), (9, 3), (200, 9999), (None, -1)):
        part = payloads[slice(*bounds)]
        assert isinstance(part, Payloads)
        assert contents(part) == WITH_NULLS[slice(*bounds)]
        assert part.nbytes == sum(len(item) for item in WITH_NULLS[slice(*bounds)] if item is not None)
        twice = part[1:]
        assert contents(twice) == WITH_NULLS[slice(*bounds)][1:]
    last = payloads[-2]
    assert (None if last is None else bytes(last)) == WITH_NULLS[-2]
    for index in (len(payloads), -len(payloads) - 1, 1 << 62):
        with pytest.raises(IndexError):
            payloads[index]
    for step in (2, -1, -3):
        assert contents(payloads[::step]) == WITH_NULLS[::step]
    assert Payloads.of(payloads) is payloads


def test_payloads_of_offsets_behave_alike() -> None:
    for dtype in (np.int32, np.int64):
        payloads = Payloads(JOINED, OFFSETS.astype(dtype))
        part = payloads[10:20]
        assert isinstance(part, Payloads)
        assert contents(part) == PACKETS[10:20]
        assert part.nbytes == sum(map(len, PACKETS[10:20]))
        assert_columns(mqsd.decode_batch(part), TOPOLOGY.expected(PACKETS[10:20]))
