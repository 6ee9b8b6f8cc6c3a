"""The data source ``msmq``: captures as a table, decoded where they are read.

>>> spark.read.format("msmq").option("table", "topology").load("captures/*.pcapng")  # doctest: +SKIP

Options, beside the path that ``load`` is given (a file, a folder, a glob, a URI, or a list of these):

``table``
    The table to read: ``topology`` (when absent), ``notifications``, ``messages`` or ``sessions``.
``ports``
    Ports whose payloads belong, e.g. ``"1801,1802"``; those of the table's protocol when absent.
``addresses``
    Addresses and networks, e.g. ``"10.20.1.0/24,2001:db8::1"``, of which the sender or the receiver must have one.
``since``, ``until``
    From when on, and before when, a payload must have been captured: ISO 8601, UTC without a zone.
``mode``
    What becomes of payloads that cannot be decoded: ``PERMISSIVE`` (default) keeps a row with its ``fault``,
    ``DROPMALFORMED`` leaves it out, ``FAILFAST`` ends the job, as it does for frames that cannot be read, TCP streams
    of which bytes are missing, IP datagrams that are not whole, and compressed files that are cut.
``guid``
    ``text`` (default) or ``binary``.
``recursive``
    ``true``: files in folders below those that are named belong as well.
``sequence``
    ``true``: the captures, by name, are one that was cut, as those of a ring buffer are: TCP streams go on from one to
    the next.
``splitSize``
    Bytes, e.g. ``"64m"``, into which captures that are larger are cut; see ``planning.plan``.
``storageOptions``
    A JSON object: keyword arguments of the file system of a URI, as pyarrow or fsspec has them.
``maxBytesPerTrigger``, ``failOnDataLoss``
    Of ``spark.readStream``; see ``following``.

A narrower ``.schema(...)`` is honoured: only its columns are built and sent to Spark, in its order. So are filters of
the query, where ``spark.sql.python.filterPushdown.enabled`` is set.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, Filter, InputPartition
from pyspark.sql.types import StructType

from msmqwire.spark.schema import SparkColumn, struct_type
from msmqwire.spark.source.files import opened
from msmqwire.spark.source.options import ReadOptions
from msmqwire.spark.source.planning import CapturePartition, plan
from msmqwire.spark.source.pushdown import can_apply, filtered, narrowed
from msmqwire.spark.source.scan import Scan, describe_problems

if TYPE_CHECKING:
    from msmqwire.spark.source.following import MsmqStreamReader

__all__ = ["MsmqDataSource", "MsmqReader", "PushdownReader"]

# The program that Spark asks a reader about filters in, if it does that at all
_PUSHDOWN = "pyspark.sql.worker.data_source_pushdown_filters"

log = logging.getLogger(__name__)


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
        kind = PushdownReader if _filters_are_pushed() else MsmqReader
        return kind(options, chosen_columns(options, schema))

    def streamReader(self, schema: StructType) -> MsmqStreamReader:  # noqa: N802 (Spark's name)
        """What follows rotating captures for ``spark.readStream``; needs Spark 4.2."""
        from msmqwire.spark.source.following import MsmqStreamReader

        options = ReadOptions.of(self.options)
        return MsmqStreamReader(options, chosen_columns(options, schema))


def _filters_are_pushed() -> bool:
    """Whether this process was started to push filters: where its setting is off, Spark refuses a reader that could."""
    program = getattr(sys.modules["__main__"], "__spec__", None)
    return _PUSHDOWN in sys.modules or (program is not None and program.name == _PUSHDOWN)


def chosen_columns(options: ReadOptions, schema: StructType) -> tuple[SparkColumn, ...]:
    """The columns of the table that a user's schema names, in its order.

    Raises
    ------
    ValueError
        A column does not exist, or is given a type that it has not; or there is none.
    """
    if not schema.fields:
        raise ValueError("the schema names no column: a row needs one at least")
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
    """Reads captures, or parts of large ones, side by side."""

    def __init__(self, options: ReadOptions, columns: tuple[SparkColumn, ...]) -> None:
        self.options = options
        self.columns = columns
        self.filters: tuple[Filter, ...] = ()

    def partitions(self) -> list[InputPartition]:
        """What each task reads."""
        return [*plan(self._narrowed())]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a task."""
        assert isinstance(partition, CapturePartition)
        options = self._narrowed()
        for part in partition.parts:
            scan = Scan(options.reading, {options.table: self.columns})
            with opened(part.files, options.storage_options) as sources:
                for _, batch in scan.batches(sources, resume=part.resume, stop=part.stop):
                    yield filtered(batch, self.filters)
            if problems := describe_problems(scan.stats):
                log.warning("%s", problems)

    def _narrowed(self) -> ReadOptions:
        """What is left to read where there are filters."""
        return replace(self.options, reading=narrowed(self.options.reading, self.filters))


class PushdownReader(MsmqReader):
    """Applies the filters of a query as well, those that it can."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802 (Spark's name)
        """Keep the filters that can be applied; the others are for Spark."""
        columns = {column.name: column for column in self.columns}
        applied = [can_apply(condition, columns) for condition in filters]
        self.filters = tuple(condition for condition, ours in zip(filters, applied, strict=True) if ours)
        return [condition for condition, ours in zip(filters, applied, strict=True) if not ours]
