"""Payloads of every kind, wherever they lie and however many, give the rows that the oracle says."""

from __future__ import annotations

import gc
import io
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from msmqwire import Payloads, mqcn, mqqb, mqsd
from tests.columns import arrow_consumer
from tests.columns.formats import Format, each_format
from tests.columns.rows import contents
from tests.effort import long_cases


@cache
def payloads_of(kind: Format) -> list[bytes]:
    return [*kind.cases(kind.count, 20240229), *kind.whole]


@each_format
def test_no_payloads(kind: Format) -> None:
    empty: object
    for empty in ([], (), iter([]), Payloads(b"", [0]), pa.array([], pa.binary())):
        batch = kind.decode_batch(empty)
        assert len(batch) == 0
        kind.assert_rows([], batch)
        assert list(kind.encode_batch(batch)) == []


@each_format
def test_null_payloads_give_null_rows(kind: Format) -> None:
    first, second = kind.whole
    batch = kind.assert_rows([None, first, None, None, second, b"", None, first[:-1], None])
    assert batch.fault(0) is None
    assert batch.violation_names(0) == ()
    kind.assert_rows([None] * 9)


@each_format
@pytest.mark.parametrize("dtype", [object, pd.ArrowDtype(pa.binary())])
def test_nulls_of_pandas_give_null_rows(kind: Format, dtype: Any) -> None:
    first, _ = kind.whole
    column = pd.Series([first, pd.NA, b"", None], dtype=dtype)
    assert column[1] is pd.NA
    assert [None if each is None else bytes(each) for each in Payloads.of(column)] == [first, None, b"", None]
    assert kind.decode_batch(column).to_arrow().equals(kind.decode_batch([first, None, b"", None]).to_arrow())
    assert list(Payloads.of_texts(pd.Series(["a", pd.NA], dtype="string")))[1] is None


def test_nan_is_a_null_in_columns_of_objects() -> None:
    """It is how pandas reads an empty cell of text."""
    assert contents(Payloads.of(pd.Series([b"a", np.nan, b""]))) == [b"a", None, b""]
    texts = pd.read_csv(io.StringIO("name,n\na,1\n,2\n"))["name"].astype(object)
    assert contents(Payloads.of_texts(texts)) == [b"a", None]
    for wrong in (1.5, float("inf")):
        with pytest.raises(TypeError, match="float"):
            Payloads.of([wrong])
        with pytest.raises(TypeError, match="float"):
            Payloads.of_texts([wrong])


def test_rows_and_columns_that_a_batch_does_not_have() -> None:
    batch = mqsd.decode_batch([b"oops"])
    assert "type" in batch
    for other in ("nothing", 0, None):
        assert other not in batch
    assert "type" not in mqsd.decode_batch([b"oops"], columns=["version"])
    with pytest.raises(TypeError, match="a Batch is indexed by the name of a column, not by int"):
        batch[0]  # type: ignore[call-overload]
    for row in (-1, 1):
        for ask in (batch.fault, batch.violation_names):
            with pytest.raises(IndexError, match=f"row {row} of 1"):
                ask(row)


@pytest.mark.parametrize("size", [1, 7, 8, 9, 63, 64, 65, *long_cases([31, 32, 33, 1023, 1024, 1025])])
@each_format
def test_sizes_around_words_of_bitmaps(kind: Format, size: int) -> None:
    kind.assert_rows((payloads_of(kind) * 3)[:size])


@each_format
def test_aligned_and_misaligned_payloads_decode_alike(kind: Format) -> None:
    payloads = payloads_of(kind)
    joined = b"".join(payloads)
    sizes = [len(data) for data in payloads]
    for shift in (0, 1, 2, 3, 7):
        batch = kind.decode_batch(bytes(shift) + joined, offsets=np.cumsum([shift, *sizes]))
        kind.assert_rows(payloads, batch)


@each_format
def test_every_kind_of_payloads(kind: Format) -> None:
    """Texts and blobs are found again wherever a payload lies."""
    many = [data if i % 5 else None for i, data in enumerate(payloads_of(kind)[-200:])]
    for type_ in (pa.binary(), pa.large_binary(), pa.binary_view()):
        for given in (pa.array(many, type_), pa.array([b"x", *many], type_)[1:]):
            kind.assert_rows(many, kind.decode_batch(given))
    chunks = pa.chunked_array([pa.array(many[:7], pa.binary()), pa.array(many[7:], pa.binary())])
    kind.assert_rows(many, kind.decode_batch(chunks))
    kind.assert_rows(many, kind.decode_batch(iter(many)))
    kind.assert_rows(many, kind.decode_batch(Payloads.of([b"x", *many, b"y"])[1:-1]))


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("count", [0, 1, 2, 5, *long_cases([2000])])
@each_format
def test_any_number_of_payloads(kind: Format, count: int, strict: bool) -> None:
    payloads: list[bytes | None] = list(payloads_of(kind)[:count])
    if count > 2:
        payloads[1] = payloads[-1] = None
    kind.assert_rows(payloads, strict=strict)


@each_format
def test_slices_in_threads_have_the_rows_of_the_whole(kind: Format) -> None:
    """More rows than a block holds, so that blocks and slices end within lists."""
    payloads = Payloads.of(payloads_of(kind) * 40)
    whole = kind.decode_batch(payloads)
    step = len(payloads) // 3
    with ThreadPoolExecutor(4) as pool:
        slices = pool.map(kind.decode_batch, [payloads[i : i + step] for i in range(0, len(payloads), step)])
        found = pa.Table.from_batches([batch.to_arrow(dictionaries=False) for batch in slices])
    found.validate(full=True)
    assert found.combine_chunks().equals(pa.Table.from_batches([whole.to_arrow(dictionaries=False)]))
    kind.look(whole)


# --- Payloads themselves ---


@pytest.mark.parametrize(
    "form",
    [
        lambda values: np.array(values, object),
        lambda values: pd.Series(values, dtype=object),
        lambda values: pa.array(values).dictionary_encode(),
        lambda values: pa.chunked_array([pa.array(values).dictionary_encode()]),
    ],
)
def test_payloads_of_other_libraries(form: Any) -> None:
    values = [b"ab", None, b"c", b"ab"]
    assert [payload and bytes(payload) for payload in Payloads.of(form(values))] == values
    with pytest.raises(TypeError, match="payload 1 is NaTType, not bytes-like or None"):
        # A Series of pandas 3 is an Arrow stream, with nulls for all that pandas calls missing
        Payloads.of(np.array([b"ab", pd.NaT], object))


class Exported:
    """Arrow capsules that were exported once, as an object gives them to every consumer."""

    def __init__(self, values: pa.Array[Any] | pa.ChunkedArray[Any]) -> None:
        if isinstance(values, pa.Array):
            capsules = values.__arrow_c_array__()
            self.__arrow_c_array__ = lambda requested_schema=None: capsules
        else:
            capsule = values.__arrow_c_stream__()
            self.__arrow_c_stream__ = lambda requested_schema=None: capsule


BINARIES = pa.array([b"ab", None, b"c", b"ab"])
INDEX_TYPES = (pa.int8(), pa.uint8(), pa.int16(), pa.uint16(), pa.int32(), pa.uint32(), pa.int64(), pa.uint64())


@pytest.mark.parametrize("values", [BINARIES, BINARIES.dictionary_encode(), BINARIES.cast(pa.binary_view())])
def test_arrow_capsules_give_their_rows_once(values: pa.Array[Any]) -> None:
    """A second time they are refused: an array's memory may be gone, and a stream at its end would have no rows."""
    for chunks, what in ((values, "array"), (pa.chunked_array([values[:1], values[1:]]), "stream")):
        exported = Exported(chunks)
        for _ in range(3):
            payloads = Payloads.of(exported)
            assert contents(payloads) == BINARIES.to_pylist()
            with pytest.raises(ValueError, match=f"the Arrow {what} was consumed before"):
                Payloads.of(exported)
            assert contents(payloads) == BINARIES.to_pylist()
            exported = Exported(chunks)


@pytest.mark.parametrize("take", [Payloads.of, Payloads.of_texts])
def test_arrow_capsules_that_others_consumed_are_refused(take: Any) -> None:
    array, stream = Exported(BINARIES), Exported(pa.chunked_array([BINARIES]))
    assert pa.array(array) == BINARIES  # type: ignore[call-overload]  # it has __arrow_c_array__
    assert pa.chunked_array(stream).to_pylist() == BINARIES.to_pylist()  # type: ignore[call-overload]
    with pytest.raises(ValueError, match="the Arrow schema was consumed before"):
        take(array)
    with pytest.raises(ValueError, match="the Arrow stream was consumed before"):
        take(stream)
    capsules = BINARIES.__arrow_c_array__()
    array_struct = arrow_consumer.array_of(capsules[1])
    array_struct.release(array_struct)
    array.__arrow_c_array__ = lambda requested_schema=None: capsules
    with pytest.raises(ValueError, match="the Arrow array was consumed before"):
        take(array)
    assert contents(take(BINARIES)) == BINARIES.to_pylist()


@pytest.mark.parametrize("index", INDEX_TYPES, ids=str)
def test_dictionaries(index: Any) -> None:
    values = pa.array([b"ab", None, b"c", b""])[1:]
    indices = pa.array([9, 1, 0, None, 2, 1], index)[1:]
    taken = Payloads.of(pa.DictionaryArray.from_arrays(indices, values))
    assert contents(taken) == [b"c", None, None, b"", b"c"]
    assert taken.nbytes == 2
    assert contents(Payloads.of(pa.DictionaryArray.from_arrays(indices[:0], values))) == []
    for outside in (3, 127, *([] if str(index).startswith("u") else [-1, -128])):
        wrong = pa.DictionaryArray.from_arrays(pa.array([0, outside], index), values, safe=False)
        with pytest.raises(ValueError, match="index 1 of the Arrow array is outside its dictionary"):
            Payloads.of(wrong)
    with pytest.raises(TypeError, match="binary, of any or of one size, not int32"):
        Payloads.of(pa.array([1, 2]).cast(pa.int32()).dictionary_encode())


def test_categories_of_polars() -> None:
    names = ["DIRECT=OS:a\\q", None, "DIRECT=OS:b\\q", "DIRECT=OS:a\\q"]
    assert contents(Payloads.of_texts(pl.Series(names, dtype=pl.Categorical))) == [
        name and name.encode() for name in names
    ]


@pytest.mark.parametrize("item", [np.str_("ab"), np.int64(1), np.float64(1), np.bool_(True), np.datetime64(1, "s")])
def test_memory_of_numpy_scalars_is_no_payload(item: Any) -> None:
    with pytest.raises(TypeError, match=f"payload 1 is {type(item).__name__}, not bytes-like or None"):
        Payloads.of([b"ab", item])
    for decode in (mqsd.decode, mqcn.decode, mqqb.decode):
        with pytest.raises(TypeError, match=f"{type(item).__name__} of numpy is not bytes-like"):
            decode(item)


def test_bytes_and_nulls_of_numpy() -> None:
    values = [np.bytes_(b"ab"), np.void(b"c"), np.float64("nan")]
    assert [payload and bytes(payload) for payload in Payloads.of(values)] == [b"ab", b"c", None]


def test_payload_windows() -> None:
    data = bytes(100)
    payloads = Payloads.of([data, None, b""])
    first = payloads[0]
    assert first is not None
    assert first.readonly
    assert first == data
    assert np.shares_memory(np.frombuffer(first, np.uint8), np.frombuffer(data, np.uint8))
    assert payloads[1] is None
    assert payloads[2] is not None
    assert bytes(payloads[2]) == b""
    del payloads
    gc.collect()
    assert bytes(first) == data
    del first


def test_rows_that_payloads_do_not_have() -> None:
    payloads = Payloads.of([b"a", b"b", b"c"])
    assert contents(payloads.take(np.array([2, 0], np.int64))) == [b"c", b"a"]
    assert contents(payloads.take([])) == []
    for rows in ([3], [-1], np.array([1 << 32]), np.array([-(1 << 32)]), np.array([1 << 63], np.uint64)):
        with pytest.raises(IndexError, match="of 3"):
            payloads.take(rows)
    for wrong in ([0.5], [[0, 1]], 1, "1"):
        with pytest.raises(ValueError, match="integers"):
            payloads.take(wrong)


def test_payloads_are_arrow_too() -> None:
    for payloads in (Payloads.of([b"", None, b"abc", None]), Payloads(b"abcd", [0, 0, 3, 4])[1:], Payloads.of([])):
        capsules = payloads.__arrow_c_array__()
        schema, array = (arrow_consumer.schema_of(capsules[0]), arrow_consumer.array_of(capsules[1]))
        arrow_consumer.check(schema, array)
        expected = contents(payloads)
        assert arrow_consumer.to_list(schema, array) == expected
        again = pa.array(payloads)  # type: ignore[call-overload]  # it has __arrow_c_array__
        again.validate(full=True)
        assert again.type == pa.large_binary()
        assert again.to_pylist() == expected


def fixed(values: list[Any]) -> Any:
    return pa.array(values, pa.binary(52))


REQUESTS = [bytes([0, 1, 0, 0, number]) + bytes(47) for number in range(3)]
MATRIX = np.frombuffer(b"".join(REQUESTS), np.uint8).reshape(3, 52)
OF_ONE_SIZE: dict[str, tuple[Any, list[Any]]] = {
    "rows": (MATRIX, [*REQUESTS]),
    "rows in reverse": (MATRIX[::-1], REQUESTS[::-1]),
    "columns of a matrix": (np.asfortranarray(MATRIX), [*REQUESTS]),
    "parts of rows": (MATRIX[:, :20], [each[:20] for each in REQUESTS]),
    "no rows": (MATRIX[:0], []),
    "rows of nothing": (MATRIX[:, :0], [b""] * 3),
    "S52": (MATRIX.copy().view("S52").ravel(), [*REQUESTS]),
    "V52": (MATRIX.copy().view("V52").ravel(), [*REQUESTS]),
    "records": (np.frombuffer(b"".join(REQUESTS), mqsd.REQUEST_DTYPE), [*REQUESTS]),
    "arrow": (fixed([*REQUESTS]), [*REQUESTS]),
    "arrow with nulls": (fixed([REQUESTS[0], None, REQUESTS[2]]), [REQUESTS[0], None, REQUESTS[2]]),
    "part of arrow": (fixed([None, *REQUESTS])[1:3], REQUESTS[:2]),
    "empty arrow": (fixed([]), []),
    "dictionary": (fixed([*REQUESTS, REQUESTS[0]]).dictionary_encode(), [*REQUESTS, REQUESTS[0]]),
    "chunks": (pa.chunked_array([fixed(REQUESTS[:1]), fixed(REQUESTS[1:])]), [*REQUESTS]),
    "column": (pa.table({"payload": fixed([*REQUESTS])})["payload"], [*REQUESTS]),
}


@pytest.mark.parametrize("given", OF_ONE_SIZE)
def test_payloads_of_one_size(given: str) -> None:
    payloads, expected = OF_ONE_SIZE[given]
    taken = Payloads.of(payloads)
    assert taken.to_pylist() == expected
    assert taken.nbytes == sum(52 if each is None else len(each) for each in expected)  # Arrow has bytes for a null
    assert len(mqsd.decode_batch(payloads)) == len(expected)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (pa.table({"payload": [b"a"]}), "this is a table: give one of its columns"),
        (pa.record_batch({"payload": [b"a"]}), "this is a table: give one of its columns"),
        (pa.array([1.5]), "not double"),
        (pa.array(["a"]), "not string"),
        (pa.array([[b"a"]]), "not list"),
        (pa.array([datetime(2026, 3, 1)]), "not of the format 'tsu:'"),
        (np.zeros(52, np.uint8), "needs offsets="),
        (np.zeros((1, 2, 3), np.uint8), "needs offsets="),
        (np.zeros((2, 3), np.uint16), "needs offsets="),
    ],
)
def test_what_is_no_column_of_payloads_is_called_by_its_name(given: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        Payloads.of(given)


def test_texts_of_one_size_are_refused_by_name() -> None:
    with pytest.raises(TypeError, match=r"strings, not fixed_size_binary\[52\]"):
        Payloads.of_texts(fixed([*REQUESTS]))
