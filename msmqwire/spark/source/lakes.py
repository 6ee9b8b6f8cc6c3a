"""Tables of a lake through the data source: ``option("lake", ...)`` in place of a path.

The files are chosen by the options when a query is planned, and read by pyarrow in the tasks. So rows that a later run
has replaced are not read, which ``spark.read.parquet`` would.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from msmqwire.capture.options import ReadOptions, parse_bool, parse_strings
from msmqwire.spark.executors import Sent
from msmqwire.spark.lake.scanning import LakeScan, Selection, open_lake
from msmqwire.spark.lake.schemas import ALL_TABLES, lake_columns
from msmqwire.spark.schema import SparkColumn
from msmqwire.spark.source.options import named
from msmqwire.spark.source.planning import SPLIT_SIZE, pack

# A file costs a task as much as reading this many bytes
_OPEN_COST = 1 << 20


@dataclass(frozen=True)
class LakeRead:
    """The options of one read of a lake.

    Attributes
    ----------
    lake, table : str
    run : int or None
        The run as of which it is read; None: the last one.
    selection : Selection
        The rows to read.
    storage_options : mapping of str to str
        As deltalake has them.
    """

    lake: str
    table: str
    run: int | None
    selection: Selection
    storage_options: Mapping[str, str]

    @property
    def columns(self) -> tuple[SparkColumn, ...]:
        """All columns of the table."""
        return lake_columns(self.table)

    @classmethod
    def of(cls, options: Mapping[str, str]) -> LakeRead:
        """Parse and check the options.

        Raises
        ------
        ValueError
            An option is unknown or has a value that it cannot have; the message begins with both.
        """
        if {"path", "paths"} & {name.lower() for name in options}:
            raise ValueError("lake and a path: a lake is read with load() alone")
        given = named(options, (*_PARSERS, *_OF_READING), of=" of a lake")
        values = parse_strings({name: given[name] for name in given if name in _PARSERS}, _PARSERS)
        read = ReadOptions.from_strings({name: given[name] for name in given if name in _OF_READING})
        table = values.get("table", "topology")
        if table not in ALL_TABLES:
            raise ValueError(f"table={table!r} is not one of {', '.join(ALL_TABLES)}")
        skip_damaged = values.get("ignore_corrupt_files", False)
        selection = Selection(read.since, read.until, read.addresses, skip_damaged=skip_damaged)
        selection.check(table)
        storage = {name: str(value) for name, value in read.storage_options.items()}
        return cls(values["lake"], table, values.get("run"), selection, storage)


def _number(text: str) -> int:
    if not text.isdecimal():
        raise ValueError(f"{text!r} is not a number")
    return int(text)


# The options of a read of a lake, and the function that parses each; ReadOptions parses the others
_PARSERS: dict[str, Callable[[str], Any]] = {
    "lake": str,
    "table": str.lower,
    "run": _number,
    "ignoreCorruptFiles": parse_bool,
}
_OF_READING = ("since", "until", "addresses", "storageOptions")


@dataclass(frozen=True)
class LakePartition(InputPartition):
    """The files that one task reads."""

    scan: LakeScan


class LakeReader(Sent, DataSourceReader):
    """Reads the files of a table in parallel."""

    def __init__(self, options: LakeRead, columns: tuple[SparkColumn, ...]) -> None:
        self.options = options
        self.columns = columns

    def partitions(self) -> list[InputPartition]:
        """The files that each task reads, at most 64 MiB of them together."""
        options = self.options
        store = open_lake(options.lake, options.storage_options)
        scan = options.selection.scan(store, options.table, options.run)
        tasks = pack(scan.files, SPLIT_SIZE, _OPEN_COST)
        return [LakePartition(replace(scan, files=tuple(files))) for files in tasks]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a task."""
        if not isinstance(partition, LakePartition):
            return  # Spark's own partition, where there is no file to read
        for batch in self.options.selection.rows(partition.scan, [column.source for column in self.columns]):
            yield batch.rename_columns([column.name for column in self.columns])
