"""Tables of a lake through the data source: ``option("lake", ...)`` in place of a path.

The files are chosen when a query is planned, by the options and by the filters of the query, and read by pyarrow in the
tasks. So rows that a later run has replaced are not read, which ``spark.read.parquet`` would.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSourceReader,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    InputPartition,
    LessThan,
    LessThanOrEqual,
)

from msmqwire.capture.options import nanoseconds, parse_time
from msmqwire.spark.executors import Sent
from msmqwire.spark.lake.scanning import LakeScan, Selection, Within, open_lake, time_within
from msmqwire.spark.lake.schemas import LAKE_TABLES, table_schema
from msmqwire.spark.schema import SparkColumn
from msmqwire.spark.source.options import parse_networks, parse_object
from msmqwire.spark.source.planning import SPLIT_SIZE
from msmqwire.spark.source.pushdown import can_apply, filtered

T = TypeVar("T")

#: The options of a read of a lake, as documented.
LAKE_OPTIONS = ("lake", "table", "run", "versionAsOf", "since", "until", "addresses", "storageOptions")
# A file costs a task as much as reading this many bytes
_OPEN_COST = 1 << 20


@dataclass(frozen=True)
class LakeRead:
    """The options of one read of a lake.

    Attributes
    ----------
    lake, table : str
    run, at : int or None
        The run, or the version of the Delta table, as of which it is read.
    selection : Selection
        The rows to read.
    storage_options : mapping of str to str
        As deltalake has them.
    """

    lake: str
    table: str
    run: int | None
    at: int | None
    selection: Selection
    storage_options: Mapping[str, str]

    @property
    def columns(self) -> tuple[SparkColumn, ...]:
        """All columns of the table."""
        return tuple(SparkColumn(field.name, field.name, field.type) for field in table_schema(self.table))

    @classmethod
    def of(cls, options: Mapping[str, str]) -> LakeRead:
        """Parse and check the options.

        Raises
        ------
        ValueError
            An option is unknown or has a value that it cannot have; the message begins with both.
        """
        given = {name.lower(): value.strip() for name, value in options.items()}
        for name in options:
            if name.lower() in ("path", "paths"):
                raise ValueError("lake and a path: a lake is read with load() alone")
            if name.lower() not in {one.lower() for one in LAKE_OPTIONS}:
                raise ValueError(f"{name}: no such option of a lake; there are {', '.join(LAKE_OPTIONS)}")

        def read(name: str, parse: Callable[[str], T], default: T) -> T:
            text = given.get(name.lower())
            try:
                return default if text is None else parse(text)
            except ValueError as error:
                raise ValueError(f"{name}={error}") from None

        table = given.get("table", "topology").lower()
        if table not in (*LAKE_TABLES, "accounting"):
            raise ValueError(f"table={given['table']!r} is not one of {', '.join((*LAKE_TABLES, 'accounting'))}")
        run, at = read("run", _number, None), read("versionAsOf", _number, None)
        if run is not None and at is not None:
            raise ValueError("run and versionAsOf: give one of them")
        selection = Selection(
            read("since", parse_time, None), read("until", parse_time, None), read("addresses", parse_networks, ())
        )
        selection.check(table)
        nothing: dict[str, Any] = {}
        storage = {name: str(value) for name, value in read("storageOptions", parse_object, nothing).items()}
        return cls(given["lake"], table, run, at, selection, storage)


def _number(text: str) -> int | None:
    if not text.isdecimal():
        raise ValueError(f"{text!r} is not a number")
    return int(text)


@dataclass(frozen=True)
class LakePartition(InputPartition):
    """The files that one task reads."""

    scan: LakeScan


class LakeReader(Sent, DataSourceReader):
    """Reads the files of a table in parallel."""

    def __init__(self, options: LakeRead, columns: tuple[SparkColumn, ...]) -> None:
        self.options = options
        self.columns = columns
        self.filters: tuple[Filter, ...] = ()

    def partitions(self) -> list[InputPartition]:
        """The files that each task reads, at most 64 MiB of them together."""
        options = self.options
        conditions = [*options.selection.conditions(), *(one for each in self.filters for one in _within(each))]
        store = open_lake(options.lake, options.storage_options)
        scan = LakeScan.of(store, options.table, conditions, run=options.run, at=options.at)
        return [LakePartition(part) for part in scan.parts(SPLIT_SIZE, _OPEN_COST)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a task."""
        if not isinstance(partition, LakePartition):
            return  # Spark's own partition, where there is no file to read
        names = [column.name for column in self.columns]
        for batch in self.options.selection.rows(partition.scan, names):
            yield filtered(batch, self.filters)


class PushdownLakeReader(LakeReader):
    """A reader that also applies filters of the query, to files and to rows."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802 (Spark's name)
        """Keep the filters that can be applied; return the others, which Spark applies."""
        columns = {column.name: column for column in self.columns}
        applied = [can_apply(condition, columns) for condition in filters]
        self.filters = tuple(condition for condition, ours in zip(filters, applied, strict=True) if ours)
        return [condition for condition, ours in zip(filters, applied, strict=True) if not ours]


def _within(condition: Filter) -> list[Within]:
    """The conditions on files that a filter of rows implies."""
    if isinstance(condition, In):
        values = [(value, value) for value in condition.value]
    elif isinstance(condition, EqualTo):
        values = [(condition.value, condition.value)]
    elif isinstance(condition, (GreaterThan, GreaterThanOrEqual)):
        values = [(condition.value, None)]
    elif isinstance(condition, (LessThan, LessThanOrEqual)):
        values = [(None, condition.value)]
    else:
        return []
    (column,) = condition.attribute
    if column not in ("time", "time_ns"):
        return [Within(column, tuple(values))]
    if len(values) > 1:
        return []
    since, until = (None if one is None else _nanoseconds(column, one) for one in values[0])
    if until is not None and not isinstance(condition, LessThan):
        # A time in microseconds is up to 999 nanoseconds less than the time of its row
        until += 1000
    return time_within(since, until)


def _nanoseconds(column: str, value: Any) -> int:
    return int(value) if column == "time_ns" else nanoseconds(value)
