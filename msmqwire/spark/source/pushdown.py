"""Filters of a query, applied where captures are read.

Each is applied to decoded batches exactly as Spark would apply it: the rows that it drops never go to the JVM, which is
the expensive part. Filters on time and addresses also reduce the payloads that are decoded.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import date, datetime
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringContains,
    StringEndsWith,
    StringStartsWith,
)

from msmqwire.capture.options import ReadOptions, nanoseconds
from msmqwire.spark.schema import SparkColumn
from msmqwire.spark.source.scan import ScanOptions

_LEAST, _MOST = -(1 << 63), (1 << 63) - 1

# The result for a null is null, as in Spark
_COMPARISONS: dict[type[Filter], Callable[[Any, Any], Any]] = {
    EqualTo: pc.equal,
    GreaterThan: pc.greater,
    GreaterThanOrEqual: pc.greater_equal,
    LessThan: pc.less,
    LessThanOrEqual: pc.less_equal,
}
_SEARCHES: dict[type[Filter], Callable[..., Any]] = {
    StringStartsWith: pc.starts_with,
    StringEndsWith: pc.ends_with,
    StringContains: pc.match_substring,
}
_LOWER, _UPPER = (EqualTo, GreaterThan, GreaterThanOrEqual), (EqualTo, LessThan, LessThanOrEqual)


class Pushdown:
    """Makes a reader apply filters of the query; unless they are allowed, Spark refuses a reader with this method."""

    columns: tuple[SparkColumn, ...]
    filters: tuple[Filter, ...]

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802 (Spark's name)
        """Keep the filters that can be applied; return the others, which Spark applies."""
        columns = {column.name: column for column in self.columns}
        self.filters = tuple(condition for condition in filters if can_apply(condition, columns))
        return [condition for condition in filters if not can_apply(condition, columns)]


def can_apply(condition: Filter, columns: Mapping[str, SparkColumn]) -> bool:
    """Whether ``filtered`` can apply a filter to batches of these columns."""
    if isinstance(condition, Not):
        return can_apply(condition.child, columns)
    path = condition.attribute  # type: ignore[attr-defined] # all others have one
    if len(path) != 1 or path[0] not in columns:
        return False
    type_ = columns[path[0]].arrow
    if isinstance(condition, (IsNull, IsNotNull)):
        return True
    if type(condition) in _SEARCHES:
        return pa.types.is_string(type_)
    if isinstance(condition, In):
        return all(value is not None and _fits(value, type_) for value in condition.value)
    if isinstance(condition, EqualNullSafe) and condition.value is None:
        return True
    if type(condition) in _COMPARISONS or isinstance(condition, EqualNullSafe):
        return _fits(condition.value, type_)  # type: ignore[attr-defined]
    return False


def filtered(batch: pa.RecordBatch, conditions: Iterable[Filter]) -> pa.RecordBatch:
    """The rows for which all filters are true."""
    masks = [_mask(condition, batch) for condition in conditions]
    return batch.filter(reduce(pc.and_kleene, masks)) if masks else batch


def narrowed(options: ScanOptions, conditions: Iterable[Filter]) -> ScanOptions:
    """Options that leave out payloads that the filters would drop, as far as options can express that.

    Not in mode FAILFAST, where every payload that cannot be decoded ends the job.
    """
    if options.mode == "FAILFAST":
        return options
    read = options.read
    since, until, addresses = read.since, read.until, read.addresses
    for condition in conditions:
        first, end = time_bounds(condition)
        since = max((time for time in (since, first) if time is not None), default=None)
        until = min((time for time in (until, end) if time is not None), default=None)
        if isinstance(condition, (EqualTo, In)) and condition.attribute[0] in ("src", "dst") and not addresses:
            wanted = condition.value if isinstance(condition, In) else (condition.value,)
            addresses = tuple(wanted) if all(map(_is_address, wanted)) else ()
    if since is not None and until is not None and since >= until:
        return options  # no row matches, which options cannot express
    return replace(options, read=ReadOptions.of(read, {"addresses": addresses, "since": since, "until": until}))


def time_bounds(condition: Filter) -> tuple[int | None, int | None]:
    """The nanoseconds since 1970 from which on, and before which, a filter leaves rows; None: no bound."""
    if not isinstance(condition, (*_LOWER, *_UPPER)) or condition.attribute[0] not in ("time", "time_ns"):
        return None, None
    # The time of a row in microseconds is rounded down: it is up to 999 nanoseconds less than that in nanoseconds
    time, slack = (condition.value, 0) if condition.attribute[0] == "time_ns" else (nanoseconds(condition.value), 999)
    until = time if isinstance(condition, LessThan) else time + slack + 1
    return (
        time if isinstance(condition, _LOWER) and _LEAST <= time <= _MOST else None,
        until if isinstance(condition, _UPPER) and _LEAST <= until <= _MOST else None,
    )


def _mask(condition: Filter, batch: pa.RecordBatch) -> Any:
    """For each row true, false, or null where Spark has null."""
    if isinstance(condition, Not):
        return pc.invert(_mask(condition.child, batch))
    column = batch.column(condition.attribute[0])  # type: ignore[attr-defined]
    if isinstance(condition, IsNull):
        return column.is_null()
    if isinstance(condition, IsNotNull):
        return column.is_valid()
    if type(condition) in _SEARCHES:
        return _SEARCHES[type(condition)](column, condition.value)  # type: ignore[attr-defined]
    if isinstance(condition, In):
        found = pc.is_in(column, pa.array(condition.value, column.type))
        return pc.if_else(column.is_valid(), found, None)
    if isinstance(condition, EqualNullSafe):
        if condition.value is None:
            return column.is_null()
        return pc.equal(column, pa.scalar(condition.value, column.type)).fill_null(False)
    value = pa.scalar(condition.value, column.type)  # type: ignore[attr-defined]
    return _COMPARISONS[type(condition)](column, value)


def _fits(value: Any, type_: pa.DataType) -> bool:
    """Whether a literal has the column's type, and Arrow compares it as Spark does."""
    if pa.types.is_integer(type_):
        bits = type_.bit_width
        return type(value) is int and -(1 << (bits - 1)) <= value < 1 << (bits - 1)
    if pa.types.is_string(type_):
        return isinstance(value, str)
    if pa.types.is_boolean(type_):
        return isinstance(value, bool)
    if pa.types.is_date(type_):
        return isinstance(value, date) and not isinstance(value, datetime)
    if pa.types.is_timestamp(type_):
        return isinstance(value, datetime) and value.tzinfo is not None
    return False


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_network(text)
    except ValueError:
        return False
    return "/" not in text
