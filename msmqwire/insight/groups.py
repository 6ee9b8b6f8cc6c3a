"""Rows grouped by keys while they are read: memory grows with the distinct keys, up to a limit, not with the rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["MOST_PLACES", "Groups", "integers", "numbers", "pc"]

# pyarrow's stubs do not know functions of arrays and Python values
pc: Any = pyarrow.compute

#: The places of a group that are kept: the first ones.
MOST_PLACES = 10
_PENDING = 1 << 15
_MOST_TABLES = 16
_MOST_BYTES = 128 << 20


class Groups:
    """Counts of rows for each combination of some columns.

    ``add`` takes tables with the key columns, the columns of ``values`` and ``place``, a number that orders rows by
    file and frame. Tables are grouped by Acero.

    Parameters
    ----------
    keys : tuple of str
        The columns whose distinct combinations are the groups.
    values : mapping of str to {"sum", "min", "max"}
        Further columns, and how they are aggregated.
    limit : int
        The most groups that are kept: those with the most rows, and of these the latest. The others are counted.

    Attributes
    ----------
    omitted_groups, omitted_rows : int
        The groups that were dropped because there were too many, and their rows. A group that is dropped, and appears
        again, counts again.
    """

    def __init__(self, keys: tuple[str, ...], values: Mapping[str, str], limit: int) -> None:
        self._keys = keys
        self._values: Any = {"rows": "sum", **values}
        self._limit = limit
        self._raw: list[pa.Table] = []
        self._raw_rows = 0
        self._partial: list[pa.Table] = []
        self.omitted_groups = self.omitted_rows = 0

    def add(self, table: pa.Table) -> None:
        """Count the rows of a table."""
        if not table.num_rows:
            return
        self._raw.append(table.select([*self._keys, *list(self._values)[1:], "place"]))
        self._raw_rows += table.num_rows
        # The columns of a table keep the block alive that they were decoded from
        if self._raw_rows >= _PENDING or len(self._raw) >= _MOST_TABLES:
            self._group()

    def merge(self, groups: pa.Table, omitted_groups: int = 0, omitted_rows: int = 0) -> None:
        """Add groups of another object: the result of its ``table``, and its omissions."""
        self.omitted_groups += omitted_groups
        self.omitted_rows += omitted_rows
        if groups.num_rows:
            self._partial.append(groups)

    def table(self) -> pa.Table | None:
        """The groups, those with the most rows first; None if there were no rows.

        The columns are the keys, ``rows``, the values and ``places``, a list of the first ``MOST_PLACES`` places.
        """
        self._group()
        if not self._partial:
            return None
        self._compact()
        (state,) = self._partial
        first = numbers(pc.list_element(state["places"], 0))
        return state.take(integers(np.lexsort((first, -numbers(state["rows"])))))

    def _group(self) -> None:
        if not self._raw:
            return
        table = pa.concat_tables(self._raw)
        self._raw, self._raw_rows = [], 0
        table = table.append_column("rows", integers(np.ones(table.num_rows, np.int64)))
        grouped = table.group_by(list(self._keys), use_threads=False).aggregate(
            [*self._values.items(), ("place", "list")]
        )
        self._partial.append(self._renamed(grouped, _first(grouped["place_list"].combine_chunks())))
        # Each compaction at least halves the groups or follows as many new ones, so that it costs little for each row
        sizes = [part.num_rows for part in self._partial]
        if sum(sizes[1:]) >= max(sizes[0], _PENDING):
            self._compact()

    def _compact(self) -> None:
        """Merge partial groups, and drop those beyond the limit."""
        table = pa.concat_tables(self._partial)
        if len(self._partial) > 1:
            places = table["places"].combine_chunks()
            numbered = table.drop_columns(["places"]).append_column("row", integers(np.arange(table.num_rows)))
            grouped = numbered.group_by(list(self._keys), use_threads=False).aggregate(
                [*self._values.items(), ("row", "list")]
            )
            table = self._renamed(grouped, _merged(places, grouped["row_list"].combine_chunks()))
        self._partial = [self._trimmed(table)]

    def _renamed(self, grouped: pa.Table, places: Any) -> pa.Table:
        columns: dict[str, Any] = {name: grouped[name] for name in self._keys}
        columns |= {name: grouped[f"{name}_{how}"] for name, how in self._values.items()}
        return pa.table({**columns, "places": places})

    def _trimmed(self, table: pa.Table) -> pa.Table:
        keep = min(self._limit, table.num_rows)
        if table.nbytes > _MOST_BYTES:
            keep = min(keep, max(1, table.num_rows * _MOST_BYTES // (2 * table.nbytes)))
        if keep == table.num_rows:
            return table
        # Of groups with as many rows the latest are kept: a packet is repeated soon or not at all
        order = np.lexsort((-np.arange(table.num_rows), -numbers(table["rows"])))
        self.omitted_groups += table.num_rows - keep
        self.omitted_rows += int(numbers(table["rows"])[order[keep:]].sum())
        return table.take(integers(np.sort(order[:keep]))).combine_chunks()


def _merged(places: Any, rows: Any) -> Any:
    """The places of several rows as one list each."""
    taken = places.take(rows.flatten())
    ends = np.concatenate(([0], np.cumsum(numbers(pc.list_value_length(taken)))))
    return _first(pa.ListArray.from_arrays(integers(ends[numbers(rows.offsets)]).cast(pa.int32()), taken.flatten()))


def _first(lists: Any) -> Any:
    """The first places of each list, in order, each once."""
    group = numbers(pc.list_parent_indices(lists))
    flat = numbers(lists.flatten())
    order = np.lexsort((flat, group))
    group, flat = group[order], flat[order]
    new = np.ones(len(flat), np.bool_)
    new[1:] = (flat[1:] != flat[:-1]) | (group[1:] != group[:-1])
    group, flat = group[new], flat[new]
    starts = np.searchsorted(group, np.arange(len(lists) + 1))
    kept = np.arange(len(flat)) - starts[group] < MOST_PLACES
    ends = np.concatenate(([0], np.cumsum(np.bincount(group[kept], minlength=len(lists)))))
    return pa.ListArray.from_arrays(integers(ends).cast(pa.int32()), integers(flat[kept]))


def integers(values: NDArray[np.int64]) -> Any:
    """Integers as an Arrow array."""
    data: Any = np.ascontiguousarray(values, np.int64)
    return pa.Array.from_buffers(pa.int64(), len(data), [None, pa.py_buffer(data)])


def numbers(values: Any) -> NDArray[np.int64]:
    """An array of integers or booleans as numpy, null as 0."""
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    values = values.cast(pa.int64())
    if values.null_count:
        values = values.fill_null(0)
    if not len(values):
        return np.zeros(0, np.int64)
    return np.frombuffer(values.buffers()[1], np.int64, len(values) + values.offset)[values.offset :]
