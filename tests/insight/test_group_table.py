"""The kernel of groups: the same groups as a dictionary in Python makes, of every type of column."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from msmqwire import Payloads
from msmqwire.insight._column import NULL_NUMBER, Column
from msmqwire.insight._group_table import MOST_PLACES, OPERATIONS, GroupTable

TEXTS = st.none() | st.sampled_from(["", "a", "b", "exactly8", "nine char", "é" * 40]) | st.text(max_size=20)
# Both words of the last one are the number of a null
GUIDS = st.none() | st.sampled_from([bytes(16), bytes(range(16)), b"\xff" * 16, (bytes(7) + b"\x80") * 2])
NUMBERS = st.none() | st.integers(-3, 3) | st.integers(-(2**62), 2**62)


@dataclass(frozen=True)
class Row:
    """A row of three keys, and of a value that is aggregated in every way."""

    text: str | None
    guid: bytes | None
    number: int | None
    value: int | None
    place: int
    is_chosen: bool
    rows: int


ROWS = st.lists(
    st.builds(
        Row,
        text=TEXTS,
        guid=GUIDS,
        number=NUMBERS,
        value=st.none() | st.integers(0, 2**40),
        place=st.integers(0, 40),
        is_chosen=st.booleans(),
        rows=st.integers(0, 3),
    ),
    max_size=60,
)


def grouped(rows: list[Row]) -> list[tuple[Any, ...]]:
    """The groups in the order of their appearance, row by row."""
    found: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in rows:
        if row.is_chosen:
            found[row.text, row.guid, row.number].append(row)
    made = []
    for key, group in found.items():
        values = [row.value for row in group if row.value is not None]
        bits = 0
        for value in values:
            bits |= value
        aggregated = (sum(values), min(values, default=None), max(values, default=None), bits)
        places = tuple(sorted({row.place for row in group})[:MOST_PLACES])
        made.append((*key, sum(row.rows for row in group), *aggregated, places))
    return made


def texts_of(table: GroupTable, key: int) -> Payloads:
    """A key of texts or GUIDs."""
    column = table.key(key)
    assert isinstance(column, Payloads)
    return column


def numbers_of(table: GroupTable, key: int) -> NDArray[np.int64]:
    """A key of numbers."""
    column = table.key(key)
    assert isinstance(column, np.ndarray)
    return column


def contents(table: GroupTable) -> list[tuple[Any, ...]]:
    """The groups of a table as ``grouped`` returns them."""
    texts = [None if text is None else bytes(text).decode() for text in texts_of(table, 0)]
    guids = [None if guid is None else bytes(guid) for guid in texts_of(table, 1)]
    plain = [numbers_of(table, 2), table.rows, *(table.value(v) for v in range(4))]
    numbers = [[None if value == NULL_NUMBER else int(value) for value in values] for values in plain]
    ends, places = table.kept_places
    kept = [tuple(places[begin:end].tolist()) for begin, end in pairwise(ends)]
    return list(zip(texts, guids, *numbers, kept, strict=True))


def add(table: GroupTable, rows: list[Row], text_type: Any) -> None:
    texts: pa.Array[Any] = pa.array([row.text for row in rows], pa.string())
    texts = texts.dictionary_encode() if text_type == "dictionary" else texts.cast(text_type)
    # A slice: its values and validity begin inside of their buffers
    guids = pa.array([None, bytes(16), *(row.guid for row in rows)], pa.binary(16))[2:]
    value = Column(pa.array([row.value for row in rows], pa.int64()))
    table.add(
        [Column(texts), Column(guids), Column(pa.array([row.number for row in rows], pa.int64()))],
        [value] * 4,
        Column(pa.array([row.place for row in rows], pa.uint32())),
        np.array([row.is_chosen for row in rows], np.bool_),
        Column(pa.array([row.rows for row in rows], pa.uint8())),
    )


@given(parts=st.lists(ROWS, max_size=4), text_type=st.sampled_from(["dictionary", pa.string(), pa.large_string()]))
def test_groups_are_those_of_a_dictionary(parts: list[list[Row]], text_type: Any) -> None:
    table = GroupTable(3, OPERATIONS)
    for rows in parts:
        add(table, rows, text_type)
    expected = grouped([row for rows in parts for row in rows])
    if not expected and not any(parts):
        assert len(table) == 0
        return
    assert contents(table) == expected
    # Some of the groups, and all of them merged into an empty table
    chosen = np.arange(len(expected))[::2].astype(np.int64)
    assert contents(table.take(chosen)) == expected[::2]
    merged = GroupTable(3, OPERATIONS)
    ends, places = table.kept_places
    keys = [
        Column(pa.array(texts_of(table, k)).cast(pa.binary()))  # type: ignore[call-overload]  # it has __arrow_c_array__
        for k in range(2)
    ]
    keys.append(Column.of_numbers(numbers_of(table, 2), pa.int64()))
    values = [Column.of_numbers(table.value(v), pa.int64()) for v in range(4)]
    kept, rows_ = (Column.of_numbers(each, pa.int64()) for each in (places, table.rows))
    for _ in range(2):
        merged.add(keys, values, kept, rows=rows_, ends=Column.of_numbers(ends, pa.int64()))
    twice = [(*each[:3], 2 * each[3], 2 * each[4], *each[5:]) for each in expected]
    assert contents(merged) == twice


def test_groups_beyond_every_first_size() -> None:
    table = GroupTable(1, ["sum"])
    texts = pa.array([f"text {at % 5000}" for at in range(20_000)])
    ones = Column(pa.array([1])).repeated(len(texts))
    table.add([Column(texts)], [ones], Column(pa.array(range(len(texts)), pa.int64())))
    assert [bytes(text or b"").decode() for text in texts_of(table, 0)] == [f"text {at}" for at in range(5000)]
    assert set(table.value(0).tolist()) == set(table.rows.tolist()) == {4}
    ends, places = table.kept_places
    assert ends.tolist() == list(range(0, 20_001, 4))
    assert places[:4].tolist() == [0, 5000, 10_000, 15_000]


def test_more_groups_than_the_cache_has_space_for() -> None:
    """The memory of groups is fetched before their rows are counted, in any order of the rows."""
    rng = np.random.default_rng(1)
    table = GroupTable(2, ["sum", "max"])
    expected: dict[tuple[bytes | None, int], list[int]] = defaultdict(list)
    distinct = [None, *(rng.bytes(16) for _ in range(20_000))]
    for part in range(4):
        chosen = np.repeat(rng.integers(0, len(distinct), 10_000), rng.integers(1, 3, 10_000))
        guids = [distinct[at] for at in chosen.tolist()]
        numbers = (chosen % 3).tolist()
        values = rng.integers(0, 1000, len(chosen)).tolist()
        value = Column(pa.array(values, pa.int64()))
        places = Column(pa.array(range(part << 20, (part << 20) + len(chosen)), pa.int64()))
        table.add([Column(pa.array(guids, pa.binary(16))), Column(pa.array(numbers))], [value, value], places)
        for guid, number, each in zip(guids, numbers, values, strict=True):
            expected[guid, number].append(each)
    keys = [None if guid is None else bytes(guid) for guid in table.key(0)]
    assert list(zip(keys, table.key(1).tolist(), strict=True)) == list(expected)  # type: ignore[union-attr]
    assert table.rows.tolist() == list(map(len, expected.values()))
    assert table.value(0).tolist() == list(map(sum, expected.values()))
    assert table.value(1).tolist() == list(map(max, expected.values()))


@pytest.mark.parametrize("form", ["dictionary", "string"])
def test_either_of_two_columns(form: str) -> None:
    one, other = pa.array(["a", None, "b", "b"]), pa.array(["c", "b", None, "d"])
    columns = [Column(each.dictionary_encode() if form == "dictionary" else each) for each in (one, other)]
    mask = np.array([True, False, False, True])
    table = GroupTable(1, [])
    table.add([Column.either(mask, *columns)], [], Column(pa.array(range(4))))
    table.add([Column.either(~mask, *columns)], [], Column(pa.array(range(4))))
    texts = [None if text is None else bytes(text).decode() for text in table.key(0)]
    assert dict(zip(texts, table.rows.tolist(), strict=True)) == {"a": 1, "b": 3, None: 2, "c": 1, "d": 1}
    with pytest.raises(ValueError, match="different lengths"):
        Column.either(mask[:3], *columns)
    with pytest.raises(TypeError, match="texts are needed, not int64 and string"):
        Column.either(mask, Column(pa.array([1, 2, 3, 4])), columns[0])


@pytest.mark.parametrize(
    ("array", "wanted"),
    [
        (pa.array([True, None, False]), [1, None, 0]),
        (pa.array([-1, None], pa.int8()), [-1, None]),
        (pa.array([255, None], pa.uint8()), [255, None]),
        (pa.array([-2, 7], pa.int16())[1:], [7]),
        (pa.array([65535], pa.uint16()), [65535]),
        (pa.array([-(2**31)], pa.int32()), [-(2**31)]),
        (pa.array([2**32 - 1], pa.uint32()), [2**32 - 1]),
        (pa.array([2**63 - 1], pa.uint64()), [2**63 - 1]),
        (pa.array([5, None], pa.timestamp("ns", "UTC")), [5, None]),
        (pa.nulls(2), [None, None]),
        (pa.array([], pa.int64()), []),
    ],
)
def test_columns_of_numbers(array: Any, wanted: list[int | None]) -> None:
    column = Column(array)
    assert column.type == array.type
    assert [None if value == NULL_NUMBER else value for value in column.array.tolist()] == wanted


def test_columns_that_cannot_be_grouped() -> None:
    for array in (pa.array([1.5]), pa.array([[1]]), pa.array([1, 1]).dictionary_encode()):
        with pytest.raises(TypeError, match="cannot be grouped"):
            Column(array)
    outside = pa.DictionaryArray.from_arrays(pa.array([0, 5], pa.int8()), pa.array(["a"]), safe=False)
    with pytest.raises(ValueError, match="index 1 of the Arrow dictionary is outside its values"):
        Column(outside)
    with pytest.raises(ValueError, match="no first value"):
        Column(pa.array([], pa.int64())).repeated(1)


def test_a_key_stays_of_its_kind() -> None:
    guids, texts = Column(pa.array([bytes(16)], pa.binary(16))), Column(pa.array(["a"]))
    place = Column(pa.array([0]))
    table = GroupTable(1, [])
    table.add([texts], [], place, np.zeros(1, np.bool_))  # no group has a key of a text yet
    table.add([guids], [], place)
    with pytest.raises(TypeError, match="key 0 cannot be string: in other rows it is of another kind"):
        table.add([texts], [], place)
    assert len(table) == 1


def test_arguments_are_checked() -> None:
    two, one = Column(pa.array([1, 2])), Column(pa.array([1]))
    table = GroupTable(1, ["sum"])
    for keys, values, extra in (
        ([], [two], {}),
        ([two], [], {}),
        ([one], [two], {}),
        ([two], [one], {}),
        ([two], [two], {"rows": one}),
        ([two], [two], {"mask": np.ones(1, np.bool_)}),
        ([two], [two], {"ends": two}),
    ):
        with pytest.raises(ValueError, match=r"other keys or values|different lengths"):
            table.add(keys, values, two, **extra)
    for ends in ([0, 1, 3], [0, -1, 2]):
        with pytest.raises(ValueError, match="places"):
            table.add([two], [two], two, ends=Column(pa.array(ends)))
    with pytest.raises(ValueError, match="cannot be repeated"):
        table.add([one], [one], one.repeated(9), ends=Column(pa.array([0, 9])))
    with pytest.raises(ValueError, match="at most 16"):
        GroupTable(17, [])
    with pytest.raises(ValueError, match="not in tuple"):
        GroupTable(1, ["mean"])
    for call in (lambda: table.key(1), lambda: table.value(1), lambda: table.take(np.array([0], np.int64))):
        with pytest.raises(IndexError):
            call()
