"""Groups of rows: the same as a dictionary in Python makes, however the rows arrive and whatever is dropped."""

from __future__ import annotations

import random
from collections import defaultdict
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from msmqwire.columns.arrow_arrays import booleans, integers
from msmqwire.insight._group_table import MOST_PLACES
from msmqwire.insight.arrays import numbers, truths
from msmqwire.insight.groups import Groups

Row = tuple[str, int, int]


def table_of(rows: list[Row]) -> pa.Table:
    """Rows of a key, a value and a place, beside a column that is not grouped."""
    names, sizes, places = zip(*rows, strict=True) if rows else ((), (), ())
    return pa.table(
        {
            "place": pa.array(places, pa.int64()),
            "size": pa.array(sizes, pa.int64()),
            "least": pa.array(sizes, pa.int64()),
            "most": pa.array(sizes, pa.int64()),
            "name": pa.array(names, pa.string()),
            "other": pa.array(names, pa.string()),
        }
    )


def groups_of(limit: int = 1000) -> Groups:
    return Groups(("name",), {"size": "sum", "least": "min", "most": "max"}, limit)


def expected(rows: list[Row]) -> list[dict[str, Any]]:
    """The groups of rows, one row after the other."""
    found: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        found[row[0]].append(row)
    made = []
    for name, of_name in found.items():
        sizes = [size for _, size, _ in of_name]
        made.append(
            {
                "name": name,
                "rows": len(of_name),
                "size": sum(sizes),
                "least": min(sizes),
                "most": max(sizes),
                "places": sorted({place for *_, place in of_name})[:10],
            }
        )
    return sorted(made, key=lambda group: (-group["rows"], group["places"][0]))


def result(groups: Groups) -> list[dict[str, Any]]:
    table = groups.table()
    return [] if table is None else table.to_pylist()


@pytest.mark.parametrize("seed", range(20))
def test_groups_are_those_of_a_dictionary(seed: int) -> None:
    rng = random.Random(seed)
    parts: list[list[Row]] = [[], []]
    objects = [groups_of(), groups_of()]
    for _ in range(rng.randrange(1, 30)):
        chosen = rng.randrange(2)
        # A place is in several rows where a packet gives a group several of them
        rows = [
            (f"k{rng.randrange(rng.choice((1, 3, 40)))}", rng.randrange(-5, 50), rng.randrange(1, 60))
            for _ in range(rng.randrange(0, 12))
        ]
        parts[chosen] += rows
        objects[chosen].add(table_of(rows))
        if rng.random() < 0.2:
            assert sorted(result(objects[chosen]), key=str) == sorted(expected(parts[chosen]), key=str)
    whole, other = objects
    assert sorted(result(whole), key=str) == sorted(expected(parts[0]), key=str)
    counted = [row["rows"] for row in result(whole)]
    assert counted == sorted(counted, reverse=True)
    if (table := other.table()) is not None:
        whole.merge(table)
    assert sorted(result(whole), key=str) == sorted(expected(parts[0] + parts[1]), key=str)
    assert (whole.omitted_groups, whole.omitted_rows) == (0, 0)


def test_groups_are_ordered_by_rows_and_then_by_their_first_place() -> None:
    groups = groups_of()
    rows = [("late", 1, 9), ("early", 1, 2), ("often", 1, 8), ("often", 1, 7), ("early", 1, 3), ("once", 1, 1)]
    groups.add(table_of(rows))
    assert result(groups) == expected(rows)
    assert [row["name"] for row in result(groups)] == ["early", "often", "once", "late"]


def test_the_first_places_are_kept_each_once() -> None:
    groups = groups_of()
    groups.add(table_of([("a", 1, place) for place in (*range(40, 20, -1), 30, 30)]))
    groups.add(table_of([("b", 1, place) for place in range(MOST_PLACES)]))
    first, second = result(groups)
    assert first["places"] == list(range(21, 31))
    assert second["places"] == list(range(10))


def test_nothing_has_no_table() -> None:
    groups = groups_of()
    groups.add(table_of([]))
    assert groups.table() is None
    other = groups_of()
    other.add(table_of([("a", 1, 1)]))
    table = other.table()
    assert table is not None
    groups.merge(table.slice(0, 0), 3, 40)
    groups.merge(table.slice(0, 0), 2, 2)
    assert groups.table() is None
    assert (groups.omitted_groups, groups.omitted_rows) == (5, 42)


def test_beyond_the_limit_groups_with_the_most_rows_are_kept_and_of_equal_ones_the_latest() -> None:
    groups = groups_of(3)
    rows = [("a", 1, 1), ("a", 1, 2), ("b", 1, 3), ("c", 1, 4), ("d", 1, 5), ("e", 1, 6), ("e", 1, 7)]
    groups.add(table_of(rows))
    assert [(row["name"], row["rows"]) for row in result(groups)] == [("a", 2), ("e", 2), ("d", 1)]
    assert (groups.omitted_groups, groups.omitted_rows) == (2, 2)
    # The second time they are counted again, in addition
    groups.add(table_of([("b", 1, 8), ("b", 1, 9), ("b", 1, 10)]))
    assert [(row["name"], row["rows"]) for row in result(groups)] == [("b", 3), ("a", 2), ("e", 2)]
    assert (groups.omitted_groups, groups.omitted_rows) == (3, 3)


def test_as_many_groups_as_the_limit_are_all_kept() -> None:
    groups = groups_of(2)
    groups.add(table_of([("a", 1, 1), ("b", 1, 2)]))
    assert len(result(groups)) == 2
    assert (groups.omitted_groups, groups.omitted_rows) == (0, 0)


@pytest.mark.parametrize(("bytes_", "kept"), [(1.0, 8), (0.5, 2), (0.99, 3), (1e-9, 1)])
def test_large_groups_are_kept_up_to_half_of_the_bytes(
    monkeypatch: pytest.MonkeyPatch, bytes_: float, kept: int
) -> None:
    rows = [(f"k{at}", 1, at) for at in range(8)]
    unlimited = groups_of()
    unlimited.add(table_of(rows))
    size = unlimited._groups.nbytes
    assert len(unlimited._groups) == 8
    limit = int(size * bytes_)
    monkeypatch.setattr("msmqwire.insight.groups._MOST_BYTES", limit)
    groups = groups_of()
    groups.add(table_of(rows))
    assert len(result(groups)) == kept == (8 if limit == size else max(1, 8 * limit // (2 * size)))
    assert groups.omitted_groups == groups.omitted_rows == 8 - kept


@pytest.mark.parametrize(
    ("pending", "kept"), [(3, [1, 2, 3, 4, 5, 3, 4, 5, 3, 4]), (6, [1, 2, 3, 4, 5, 6, 7, 8, 3, 4])]
)
def test_groups_are_dropped_when_as_many_follow_as_are_kept(
    monkeypatch: pytest.MonkeyPatch, pending: int, kept: list[int]
) -> None:
    monkeypatch.setattr("msmqwire.insight.groups._PENDING", pending)
    groups, sizes = groups_of(3), []
    for key in range(10):
        groups.add(table_of([(f"k{key}", 1, key)]))
        sizes.append(len(groups._groups))
    assert sizes == kept
    assert [row["name"] for row in result(groups)] == ["k7", "k8", "k9"]
    assert groups.omitted_groups == groups.omitted_rows == 7


def test_32768_groups_wait_for_the_most_frequent() -> None:
    groups = groups_of(1)
    groups.add(table_of([(f"k{key}", 1, key) for key in range(1 << 15)]))
    assert len(groups._groups) == 1 << 15
    groups.add(table_of([("last", 1, 1 << 15)]))
    assert len(groups._groups) == 1


def test_texts_of_dropped_groups_take_no_memory() -> None:
    groups = groups_of(1)
    groups.add(table_of([("x" * 100_000, 1, 1), ("y", 1, 2)]))
    assert groups._groups.nbytes > 100_000
    assert [row["name"] for row in result(groups)] == ["y"]
    assert groups._groups.nbytes < 1_000


@pytest.mark.parametrize(
    ("values", "wanted"),
    [
        (pa.array([1, None, 3], pa.int32()), [1, 0, 3]),
        (pa.array([True, False, None]), [1, 0, 0]),
        # What lies where an item is null is not its value
        (
            pa.Array.from_buffers(pa.int64(), 2, [pa.py_buffer(b"\1"), pa.py_buffer(np.array([5, 7]).tobytes())]),
            [5, 0],
        ),
        (pa.array([1, 2, 3, 4, 5], pa.int64())[2:4], [3, 4]),
        (pa.array([1, None, 3, None, 5], pa.int64())[1:4], [0, 3, 0]),
        (pa.chunked_array([[1], [2, 3]], pa.int64()), [1, 2, 3]),
        (pa.array([], pa.int64()), []),
        (pa.chunked_array([], pa.int64()), []),
    ],
)
def test_numbers_of_arrays(values: Any, wanted: list[int]) -> None:
    found = numbers(values)
    assert found.dtype == np.int64
    assert found.tolist() == wanted


def test_integers_of_arrays() -> None:
    for values in (np.arange(5), np.arange(10)[::2], np.zeros(0, np.int64)):
        made = integers(values)
        assert made.type == pa.int64()
        assert made.to_pylist() == values.tolist()


def test_masks_of_arrays() -> None:
    for mask in (np.arange(9) % 3 == 0, np.zeros(0, np.bool_)):
        assert booleans(mask).to_pylist() == truths(booleans(mask)).tolist() == mask.tolist()
    assert truths(pa.array([True, None, False])).tolist() == [True, False, False]
