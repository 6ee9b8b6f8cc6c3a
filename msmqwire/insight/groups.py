"""Rows grouped by keys while they are read: memory grows with the distinct keys, up to a limit, not with the rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from msmqwire.columns.arrow_arrays import integers
from msmqwire.insight._column import NULL_NUMBER, Column
from msmqwire.insight._group_table import GroupTable

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Groups beyond the limit that are kept until as many follow, so that dropping them costs little for each row
_PENDING = 1 << 15
_MOST_BYTES = 128 << 20


class Groups:
    """Counts of rows for each combination of some columns.

    Parameters
    ----------
    keys : tuple of str
        The columns whose distinct combinations are the groups.
    values : mapping of str to {"sum", "min", "max", "or"}
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
        self._values = values
        self._limit = limit
        self._groups = GroupTable(len(keys), list(values.values()))
        self._types: dict[str, Any] = {}
        self.omitted_groups = self.omitted_rows = 0

    def add(self, table: pa.Table) -> None:
        """Count the rows of a table with the keys, the values and ``place``: a number that orders rows by frame."""
        if table.num_rows:
            columns = {name: _column(table[name]) for name in (*self._keys, *self._values, "place")}
            self.count(columns, columns["place"])

    def count(
        self,
        columns: Mapping[str, Column],
        places: Column,
        mask: NDArray[np.bool_] | None = None,
        rows: Column | None = None,
        ends: Column | None = None,
    ) -> None:
        """Count rows of columns, with the keys and the values; ``mask``, ``rows`` and ``ends`` as in ``GroupTable``."""
        if not self._types:
            self._types = {name: columns[name].type for name in self._keys}
        values = [columns[name] for name in self._values]
        self._groups.add([columns[name] for name in self._keys], values, places, mask, rows, ends)
        if len(self._groups) >= self._limit + max(self._limit, _PENDING) or self._groups.nbytes > _MOST_BYTES:
            self._trim()

    def merge(self, groups: pa.Table, omitted_groups: int = 0, omitted_rows: int = 0) -> None:
        """Add groups of another object: the result of its ``table``, and its omissions."""
        self.omitted_groups += omitted_groups
        self.omitted_rows += omitted_rows
        if groups.num_rows:
            places: Any = groups["places"].combine_chunks()
            columns = {name: _column(groups[name]) for name in (*self._keys, *self._values)}
            ends = Column(places.offsets)
            self.count(columns, Column(places.values), rows=_column(groups["rows"]), ends=ends)

    def table(self) -> pa.Table | None:
        """The groups, those with the most rows first; None if there were no rows.

        The columns are the keys, ``rows``, the values and ``places``, a list of the first ``MOST_PLACES`` places.
        """
        self._trim()
        groups = self._groups
        if not len(groups):
            return None
        ends, places = groups.kept_places
        columns = {name: _array(groups.key(k), self._types[name]) for k, name in enumerate(self._keys)}
        columns["rows"] = integers(groups.rows)
        columns |= {name: _array(groups.value(v), pa.int64()) for v, name in enumerate(self._values)}
        columns["places"] = pa.ListArray.from_arrays(integers(ends).cast(pa.int32()), integers(places))
        order = np.lexsort((places[ends[:-1]], -groups.rows))
        return pa.table(columns).take(integers(order))

    def _trim(self) -> None:
        """Drop groups beyond the limits."""
        groups = self._groups
        keep = min(self._limit, len(groups))
        if groups.nbytes > _MOST_BYTES:
            keep = min(keep, max(1, len(groups) * _MOST_BYTES // (2 * groups.nbytes)))
        if keep == len(groups):
            return
        # Of groups with as many rows the latest are kept: a packet is repeated soon or not at all
        rows = groups.rows
        order = np.lexsort((-np.arange(len(groups)), -rows))
        self.omitted_groups += len(groups) - keep
        self.omitted_rows += int(rows[order[keep:]].sum())
        self._groups = groups.take(np.sort(order[:keep]))


def _column(values: Any) -> Column:
    return Column(values.combine_chunks())


def _array(values: Any, type: pa.DataType) -> Any:
    """Keys or values of groups as an Arrow array."""
    if not isinstance(values, np.ndarray):
        texts = pa.array(values)
        # large binary, which is cast to 16 bytes by way of binary
        return texts.cast(pa.binary()).cast(type) if pa.types.is_fixed_size_binary(type) else texts.cast(type)
    return integers(values, values != NULL_NUMBER).cast(type)
