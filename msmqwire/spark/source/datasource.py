"""The data source ``msmq``: captures as a table, decoded where they are read.

>>> spark.read.format("msmq").option("table", "topology").load("captures/*.pcapng")  # doctest: +SKIP

``load`` takes a file, a folder, a glob, a URI, or a list of these. Options:

``table``
    The table to read: ``topology`` (default), ``notifications``, ``messages``, ``sessions`` or
    ``connections``.
``ports``
    Read payloads of these ports, e.g. ``"1801,1802"``; default: the ports of the table's protocol.
``copies``
    ``true`` reads a packet at each interface of pcapng where it was captured.
``addresses``
    Addresses and networks, e.g. ``"10.20.1.0/24,2001:db8::1"``; the sender or the receiver must have one of them.
``since``, ``until``
    Read payloads captured at ``since`` or later and before ``until``: ISO 8601, UTC without a zone.
``mode``
    ``PERMISSIVE`` (default) keeps payloads that cannot be decoded as rows with a ``fault``; ``DROPMALFORMED`` drops
    them; ``FAILFAST`` ends the job at the first one. FAILFAST also ends it for unreadable frames, gaps in TCP
    streams, incomplete IP datagrams, and truncated compressed files.
``guid``
    ``text`` (default) or ``binary``.
``recursive``
    ``true``: read the files of subfolders as well.
``pathGlobFilter``, ``modifiedAfter``, ``modifiedBefore``
    Read only files with such names, or last changed after or before this time: ISO 8601, UTC without a zone.
``ignoreCorruptFiles``
    ``true``: a file that is no capture, or that fails to be read, is skipped from there on with a warning in the
    executor's log; ``false``: it ends the job. Default: ``spark.sql.files.ignoreCorruptFiles`` if the session sets it,
    or else ``true`` with ``PERMISSIVE``. One named file of this machine that is no capture is refused unless the option
    is ``true``.
``sequence``
    ``true``: the captures, in the order of their names, are parts of one capture, as those of a ring buffer; TCP
    streams continue from one to the next. A file that is no capture ends the job.
``splitSize``
    Bytes, e.g. ``"64m"``: larger captures are split; see ``planning.plan``.
``storageOptions``
    A JSON object: keyword arguments of the file system of a URI, as pyarrow or fsspec has them.
``maxBytesPerTrigger``, ``failOnDataLoss``
    For ``spark.readStream``; see ``following``.

``lake``, ``run``
    Read a table of this lake in place of captures, as a run left it; default: the current rows. ``table`` may be
    ``faults`` and ``accounting`` as well, ``since``, ``until`` and ``addresses`` select rows, and ``storageOptions``
    are deltalake's. With ``ignoreCorruptFiles`` files that are missing or malformed are skipped with a warning.

Only the columns of a narrower ``.schema(...)`` are built and sent to Spark, in its order. Filters of the query are
applied by Spark.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, cast

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from msmqwire.capture.files.listing import check_paths
from msmqwire.errors import CaptureError
from msmqwire.spark.executors import Sent, sent
from msmqwire.spark.schema import SparkColumn, struct_type
from msmqwire.spark.source.options import SourceOptions, described, is_lake, of_table
from msmqwire.spark.source.planning import CapturePart, CapturePartition, plan
from msmqwire.spark.source.scan import Scan, converted, describe_problems

log = logging.getLogger(__name__)


class MsmqDataSource(Sent, DataSource):
    """The data source of ``spark.read.format("msmq")``."""

    @classmethod
    def name(cls) -> str:
        """The name that ``format`` takes."""
        return "msmq"

    def schema(self) -> StructType:
        """All columns of the table."""
        _, given = described(StructType(), self.options)
        if is_lake(given):
            from msmqwire.spark.source.lakes import LakeRead

            return described(struct_type(LakeRead.of(given).columns), self.options)[0]
        options = SourceOptions.of(given)
        check_paths(options.paths)
        # Whether a stream will read it, which waits for a capture that was just begun, is not known here
        options.check_capture(may_grow=True)
        return described(struct_type(options.scan.columns(options.table)), self.options)[0]

    def reader(self, schema: StructType) -> DataSourceReader:
        """A reader of the columns of ``schema``."""
        given = of_table(schema, self.options)
        if is_lake(given):
            from msmqwire.spark.source.lakes import LakeRead, LakeReader

            of_lake = LakeRead.of(given)
            return LakeReader(of_lake, chosen_columns(of_lake.table, of_lake.columns, schema))
        options = SourceOptions.of(given)
        return MsmqReader(options, chosen_columns(options.table, options.columns, schema))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 (Spark's name)
        """A reader that follows rotating captures, for ``spark.readStream``."""
        from msmqwire.spark.source.following import MsmqStreamReader

        given = of_table(schema, self.options)
        try:
            if is_lake(given):
                raise ValueError("lake: a lake is read by queries, not by streams; a stream reads captures")
            options = SourceOptions.of(given)
            return MsmqStreamReader(options, chosen_columns(options.table, options.columns, schema))
        except ValueError as error:
            return _RefusedStream(error)


class _RefusedStream(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Raises an error at its first call; without a reader, Spark 4.3 adds an UnboundLocalError of its own."""

    def __init__(self, error: ValueError) -> None:
        self._error = error

    def _refuse(self, *_: Any, **__: Any) -> Any:
        raise self._error

    initialOffset = _refuse  # noqa: N815 (Spark's names)
    getDefaultReadLimit = _refuse  # noqa: N815
    prepareForTriggerAvailableNow = _refuse  # noqa: N815
    latestOffset = _refuse  # noqa: N815
    partitions = _refuse
    read = _refuse


@dataclass(frozen=True)
class _Making(Sent):
    """Makes a data source where the Python of Spark's workers has this package."""

    def source(self, options: dict[str, str]) -> MsmqDataSource:
        """The data source with these options."""
        return MsmqDataSource(options)


def registered() -> type[DataSource]:
    """``MsmqDataSource`` for registration, pickled by value: the Python that Spark starts may lack this package."""
    make = sent(_Making().source)

    class Registered(DataSource):
        def __new__(cls, options: dict[str, str]) -> DataSource:  # type: ignore[misc] # Spark takes any data source
            return cast("DataSource", make(options))

        @classmethod
        def name(cls) -> str:
            return "msmq"

    return Registered


def chosen_columns(table: str, columns: Iterable[SparkColumn], schema: StructType) -> tuple[SparkColumn, ...]:
    """The columns that the user's schema names, in its order; as in Spark, in upper or lower case.

    Raises
    ------
    ValueError
        A column does not exist, is there twice or has another type, or the schema has no column.
    """
    if not schema.fields:
        raise ValueError("the schema has no column; a row needs at least one")
    known = {column.name: column for column in columns}
    names = [name.lower() for name in schema.names]
    for name, field in zip(names, schema, strict=True):
        if name not in known:
            raise ValueError(f"{field.name!r}: no such column of {table}; it has {', '.join(known)}")
        column = known[name]
        if field.dataType != column.spark:
            actual, given = column.spark.simpleString(), field.dataType.simpleString()
            raise ValueError(f"{field.name} is {actual} in {table}; the schema says {given}")
        if not field.nullable:
            raise ValueError(f"{field.name} may be null in {table}; the schema says it is not")
        if names.count(name) > 1:
            raise ValueError(f"{field.name!r}: the schema has this column twice")
    return tuple(replace(known[name], name=field.name) for name, field in zip(names, schema, strict=True))


def _ignores_corrupt_files(options: SourceOptions) -> bool:
    """Return True if a task skips what it cannot read: by the option, or else Spark's setting, or the mode."""
    if options.ignore_corrupt_files is not None:
        return options.ignore_corrupt_files
    task = TaskContext.get()
    # Spark sends the settings of its session to tasks as properties
    setting = None if task is None else task.getLocalProperty("spark.sql.files.ignoreCorruptFiles")
    return options.scan.mode == "PERMISSIVE" if setting is None else setting.lower() == "true"


class MsmqReader(Sent, DataSourceReader):
    """Reads captures, and parts of large captures, in parallel.

    It takes no filters: Spark 4 keeps the reader that has the filters of a query with the DataFrame, view or table, and
    reads later queries, and other parts of the same query, with it (SPARK-58551).
    """

    def __init__(self, options: SourceOptions, columns: tuple[SparkColumn, ...]) -> None:
        self.options = options
        self.columns = columns

    def partitions(self) -> list[InputPartition]:
        """The captures or parts that each task reads."""
        self.options.check_capture()
        return [*plan(self.options)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a task."""
        if not isinstance(partition, CapturePartition):
            return  # Spark's own partition, where there is no capture to read
        yield from converted(self._rows(partition.parts), self.columns)

    def _rows(self, parts: Iterable[CapturePart]) -> Iterator[pa.RecordBatch]:
        """The rows of captures or parts of them, for ``scan.converted``."""
        options = self.options
        for part in parts:
            scan = Scan(options.scan, {options.table: self.columns})
            try:
                for _, batch in scan.rows([file.name for file in part.files], resume=part.resume, stop=part.stop):
                    yield batch
            except (CaptureError, OSError) as error:
                # FAILFAST does not ignore malformed frames. A capture that was read to be split has changed since, or
                # the captures that follow would be left out.
                failed = options.scan.mode == "FAILFAST" and describe_problems(scan.stats) is not None
                if failed or part.stop is not None or options.sequence or not _ignores_corrupt_files(options):
                    raise
                log.warning("%s; the rest of the file is skipped", error)
            if problems := describe_problems(scan.stats):
                log.warning("%s", problems)
