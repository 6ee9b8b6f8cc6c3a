"""The data source ``msmq``: captures as a table, decoded where they are read.

>>> spark.read.format("msmq").option("table", "topology").load("captures/*.pcapng")  # doctest: +SKIP

Options, beside the path that ``load`` is given (a file, a folder, a glob, or a list of these):

``table``
    The table to read: ``topology`` (when absent), ``notifications``, ``messages`` or ``sessions``.
``ports``
    Ports whose payloads belong, e.g. ``"1801,1802"``; those of the table's protocol when absent.
``mode``
    What becomes of payloads that cannot be decoded: ``PERMISSIVE`` (default) keeps a row with its ``fault``,
    ``DROPMALFORMED`` leaves it out, ``FAILFAST`` ends the job, as it does for frames that cannot be read, TCP streams
    of which bytes are missing, and compressed files that are cut.
``guid``
    ``text`` (default) or ``binary``.

A narrower ``.schema(...)`` is honoured: only its columns are built and sent to Spark, in its order.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from msmqwire.spark.reading import ReadingOptions, Scan, describe_problems
from msmqwire.spark.schema import SparkColumn, struct_type
from msmqwire.spark.sources import expand

__all__ = ["MsmqDataSource", "MsmqReader", "ReadOptions"]

OPTIONS = ("table", "ports", "mode", "guid")
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class ReadOptions:
    """The options of one read, out of Spark's case-insensitive mapping of strings."""

    sources: tuple[str, ...]
    table: str
    reading: ReadingOptions

    @classmethod
    def of(cls, options: Mapping[str, str]) -> ReadOptions:
        """Read and check the options.

        Raises
        ------
        ValueError
            An option is unknown or has a value that it cannot have.
        """
        given = {name.lower(): value for name, value in options.items()}
        paths = given.pop("paths", None)
        path = given.pop("path", None)
        sources = tuple(json.loads(paths)) if paths is not None else (path,) if path is not None else ()
        if not sources:
            raise ValueError('no path: read.format("msmq").load("captures/*.pcapng")')
        unknown = sorted(set(given) - set(OPTIONS))
        if unknown:
            raise ValueError(f"no such option: {', '.join(unknown)}; there are {', '.join(OPTIONS)}")
        ports = given.get("ports")
        table = given.get("table", "topology")
        reading = ReadingOptions(
            tables=(table,),
            mode=given.get("mode", "PERMISSIVE").upper(),  # type: ignore[arg-type] # checked there
            guid=given.get("guid", "text").lower(),  # type: ignore[arg-type]
            ports=None if ports is None else parse_ports(ports),
        )
        return cls(sources, table, reading)


def parse_ports(text: str) -> frozenset[int]:
    """Ports as an option says them: numbers between commas.

    Raises
    ------
    ValueError
        They are not.
    """
    try:
        return frozenset(int(port) for port in text.split(","))
    except ValueError:
        raise ValueError(f"ports={text!r} are not numbers between commas") from None


class MsmqDataSource(DataSource):
    """Captures as a table; what ``spark.read.format("msmq")`` makes."""

    @classmethod
    def name(cls) -> str:
        """The name that ``format`` takes."""
        return "msmq"

    def schema(self) -> StructType:
        """All columns of the table."""
        options = ReadOptions.of(self.options)
        return struct_type(options.reading.columns(options.table))

    def reader(self, schema: StructType) -> MsmqReader:
        """A reader of the columns that ``schema`` has."""
        options = ReadOptions.of(self.options)
        return MsmqReader(options, chosen_columns(options, schema))


def chosen_columns(options: ReadOptions, schema: StructType) -> tuple[SparkColumn, ...]:
    """The columns of the table that a user's schema names, in its order.

    Raises
    ------
    ValueError
        A column does not exist, or is given a type that it has not.
    """
    known = {column.name: column for column in options.reading.columns(options.table)}
    for field in schema:
        if field.name not in known:
            raise ValueError(f"{field.name!r}: no such column of {options.table}; it has {', '.join(known)}")
        column = known[field.name]
        if field.dataType != column.spark:
            there, asked = column.spark.simpleString(), field.dataType.simpleString()
            raise ValueError(f"{field.name} is {there} in {options.table}; the schema says {asked}")
        if not field.nullable:
            raise ValueError(f"{field.name} may be null in {options.table}; the schema says it is not")
    return tuple(known[field.name] for field in schema)


class MsmqReader(DataSourceReader):
    """Reads each capture in a task of its own."""

    def __init__(self, options: ReadOptions, columns: tuple[SparkColumn, ...]) -> None:
        self.options = options
        self.columns = columns

    def partitions(self) -> list[InputPartition]:
        """A partition for each file."""
        return [InputPartition(path) for path in expand(self.options.sources)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one file."""
        scan = Scan(self.options.reading, {self.options.table: self.columns})
        for _, batch in scan.batches(partition.value):
            yield batch
        if problems := describe_problems(scan.stats):
            log.warning("%s", problems)
