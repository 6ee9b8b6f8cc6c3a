"""Tables of a lake as DataFrames, without a Delta reader in the JVM."""

from __future__ import annotations

import datetime
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, lit
from pyspark.sql.types import StructType

from msmqwire.capture import ReadOptions
from msmqwire.errors import LakeError
from msmqwire.spark.executors import Sent, map_in_arrow
from msmqwire.spark.lake.committing import Pending
from msmqwire.spark.lake.scanning import LakeFile, LakeScan, Selection, open_lake
from msmqwire.spark.lake.schemas import lake_columns
from msmqwire.spark.lake.storage import LakeOptions
from msmqwire.spark.lake.writing import day_name, path_of
from msmqwire.spark.schema import struct_type

# With the defaults of Spark a task lists each file: 10 s of CPU time for 1,000 files
_LISTING = {
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "16",
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "2000",
}


def read(
    spark: SparkSession,
    lake: str | os.PathLike[str],
    table: str,
    run: int | None = None,
    *,
    since: datetime.datetime | int | None = None,
    until: datetime.datetime | int | None = None,
    captures: Iterable[str] | None = None,
    skip_damaged: bool = False,
    lake_options: LakeOptions | None = None,
) -> DataFrame:
    """Read a table of a lake, as of one run.

    The files are chosen here, by their days and statistics, and read by Spark's own Parquet reader.

    Parameters
    ----------
    spark : SparkSession
    lake : path or URI
    table : str
        One of ``capture.TABLES``, ``faults`` or ``accounting``.
    run : int, optional
        Read the table as this run left it; the last run where it is absent. ``history`` lists the runs.
    since, until : datetime.datetime with a time zone, or int, optional
        Only rows from this time on, and before this time; an integer is nanoseconds since 1970.
    captures : iterable of str, optional
        Only rows of these captures, by ``file``.
    skip_damaged : bool
        Skip files that are missing or malformed, with a warning in the log of the driver or of the executor for each.
    lake_options : mapping of str to str, optional
        deltalake's ``storage_options`` of the URI. Spark finds its own credentials.

    Raises
    ------
    ValueError
        There is no such table or run, or ``accounting`` is to be read by time.
    LakeError
        It is not a lake, or files of this run are gone, or the JVM cannot read from the object store.

    Examples
    --------
    >>> from msmqwire.spark import lake
    >>> lake.read(spark, "lake", "topology", since=1709510400_000_000_000).count()  # doctest: +SKIP
    """
    window = ReadOptions(since=since, until=until)
    names = None if captures is None else tuple(captures)
    selection = Selection(window.since, window.until, (), names, skip_damaged)
    selection.check(table)
    scan = selection.scan(open_lake(lake, lake_options), table, run)
    frame = _parquet(spark, scan.there() if skip_damaged else scan, skip_damaged)
    if window.since is not None:
        frame = frame.where(col("time_ns") >= window.since)
    if window.until is not None:
        frame = frame.where(col("time_ns") < window.until)
    return frame if names is None else frame.where(col("file").isin(list(names)))


def _parquet(spark: SparkSession, scan: LakeScan, skip_damaged: bool) -> DataFrame:
    schema = struct_type(lake_columns(scan.table))
    if not scan.files:
        return spark.createDataFrame([], schema)
    # Spark knows S3 as s3a
    root = scan.storage.path(scan.table).replace("s3://", "s3a://", 1)
    # Spark finds the day of most files in their paths
    paths: dict[bool, list[str]] = {}
    paths_elsewhere: dict[tuple[datetime.date | None, bool], list[str]] = {}
    for file in scan.files:
        if _is_day_in_path(scan.table, file):
            paths.setdefault(file.is_pending, []).append(f"{root}/{file.path}")
        else:
            paths_elsewhere.setdefault((file.day, file.is_pending), []).append(f"{root}/{file.path}")
    frames = []
    with _settings(spark, _LISTING), _file_systems(root):
        reader = spark.read.option("__globPaths__", "false").option("parquet.page.verify-checksum.enabled", "true")
        if skip_damaged:
            # Otherwise as the session sets it
            reader = reader.option("ignoreCorruptFiles", "true").option("ignoreMissingFiles", "true")
        for (day, is_pending), of_day in paths_elsewhere.items():
            frame = reader.schema(StructType(schema.fields[:-1])).parquet(*of_day)
            frame = frame.withColumn("day", lit(day).cast("date"))
            frames.append(frame if is_pending else _kept(frame, scan.pending))
        for is_pending, some in paths.items():
            frame = reader.schema(schema).option("basePath", root).parquet(*some)
            frames.append(frame if is_pending else _kept(frame, scan.pending))
        found = reduce(lambda one, other: one.unionAll(other), frames)
        # Through Spark Connect, nothing is listed before somebody asks
        _ = found.columns
    return found


def _kept(frame: DataFrame, pending: Pending) -> DataFrame:
    """The rows that are neither replaced nor deleted."""
    if pending.deletions:
        return map_in_arrow(frame, _Kept(pending).rows, frame.schema)
    return frame.where(~col("capture").isin(list(pending.replaced))) if pending.replaced else frame


@dataclass(frozen=True)
class _Kept(Sent):
    """Leaves out rows that are replaced or deleted."""

    pending: Pending

    def rows(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The other rows."""
        return map(self.pending.kept, batches)


def _is_day_in_path(table: str, file: LakeFile) -> bool:
    """Return True if a file has its day in its path, where Spark finds it; other writers choose other paths."""
    return table == "accounting" or file.path == path_of(file.path.rpartition("/")[2], day_name(file.day))


@contextmanager
def _file_systems(root: str) -> Iterator[None]:
    """Say what the JVM lacks where it cannot read from an object store."""
    try:
        yield
    except Exception as error:  # Spark's, and py4j's
        if not re.search("ClassNotFoundException|UNSUPPORTED_FILE_SYSTEM|No FileSystem for scheme", str(error)):
            raise
        raise LakeError(
            f"{root}: the JVM of Spark cannot read it: it needs Hadoop's module for this store, such as hadoop-aws; "
            "format('msmq').option('lake', ...) needs none"
        ) from None


@contextmanager
def _settings(spark: SparkSession, settings: dict[str, str]) -> Iterator[None]:
    before = {name: str(spark.conf.get(name)) for name in settings}
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)
