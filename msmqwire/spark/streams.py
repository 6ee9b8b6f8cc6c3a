"""TCP streams and IP datagrams that go on from one capture to the next, put together on a cluster.

>>> messages = read_streams(spark, "captures/", "messages")  # doctest: +SKIP

The data source reads each capture on its own unless ``sequence`` is set, and then its driver reads them all once. Here
nobody does: tasks take the frames out of the captures that the table may need, Spark brings those between two hosts
together, in the order of the captures, and the decoder reads them as it would read all files from the first to the
last. Its memory has the bounds of ``StreamLimits``, whatever a stream holds; Spark sorts on disk what it has no memory
for.
"""

from __future__ import annotations

import logging
import os
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import greatest, least, xxhash64

from msmqwire.capture import CapturedFrames, read_frames, table_options
from msmqwire.capture.files.sources import shown_name
from msmqwire.errors import CaptureError
from msmqwire.spark.schema import SparkColumn, SparkGuid, struct_type
from msmqwire.spark.source.files import find_files, open_source
from msmqwire.spark.source.options import ReadOptions
from msmqwire.spark.source.planning import CapturePart, CapturePartition, tasks_of
from msmqwire.spark.source.remote import StorageOptions
from msmqwire.spark.source.scan import Mode, ReadingOptions, Scan, describe_problems

__all__ = ["read_streams"]

log = logging.getLogger(__name__)

# Frames on their way: the number of the capture, where in it, between whom, and what
_FRAMES = "capture int, frame bigint, time_ns bigint, src string, dst string, link int, offset bigint, data binary"


@dataclass(frozen=True)
class _Job:
    """What every task needs to know."""

    tasks: tuple[CapturePartition, ...]
    captures: tuple[str, ...]
    options: ReadOptions
    columns: tuple[SparkColumn, ...]

    def take(self, numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The frames that the tasks whose numbers come in take out of captures."""
        for batch in numbers:
            for number in batch.column(0).to_numpy():
                for part in self.tasks[number].parts:
                    yield from self.frames_of(part)

    def frames_of(self, part: CapturePart) -> Iterator[pa.RecordBatch]:
        """The frames of a capture, or of a part of one, that the table may need.

        Raises
        ------
        CaptureError
            It is none or, in mode FAILFAST, anything of it cannot be read.
        """
        reading = self.options.reading
        number = pa.scalar(self.captures.index(part.file), pa.int32())
        payloads = table_options(self.options.table, ports=reading.ports)
        with (
            open_source(part.file, reading.storage_options) as source,
            read_frames(source, payloads, resume=part.resume, stop=part.stop) as frames,
        ):
            for batch in frames:
                yield pa.record_batch(
                    {
                        "capture": pa.repeat(number, len(batch)),
                        "frame": batch.column("frame").cast(pa.int64()),
                        "time_ns": batch.column("time").cast(pa.int64()),
                        "src": batch.column("src"),
                        "dst": batch.column("dst"),
                        "link": batch.column("link").cast(pa.int32()),
                        "offset": batch.column("offset").cast(pa.int64()),
                        "data": batch.column("data"),
                    }
                )
        problems = describe_problems(frames.stats)
        if problems and reading.mode == "FAILFAST":
            raise CaptureError(problems)
        if problems:
            log.warning("%s", problems)

    def read(self, frames: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows of a partition of frames."""
        scan = Scan(self.options.reading, {self.options.table: self.columns})
        for _, batch in scan.batches(CapturedFrames(self.captured(frames))):
            yield batch
        if problems := describe_problems(scan.stats):
            log.warning("%s", problems)

    def captured(self, frames: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Frames as ``CapturedFrames`` takes them."""
        names = pa.array([shown_name(name) for name in self.captures])
        for batch in frames:
            yield pa.record_batch(
                {
                    "file": pa.DictionaryArray.from_arrays(batch.column("capture"), names),
                    "time": batch.column("time_ns").cast(pa.timestamp("ns", "UTC")),
                    **{name: batch.column(name) for name in ("frame", "link", "offset", "data")},
                }
            )


def read_streams(
    spark: SparkSession,
    sources: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    table: str = "messages",
    *,
    columns: Iterable[str] | None = None,
    mode: Mode = "PERMISSIVE",
    guid: SparkGuid = "text",
    ports: Iterable[int] | None = None,
    recursive: bool = False,
    split_size: int | None = None,
    storage_options: StorageOptions | None = None,
    partitions: int | None = None,
) -> DataFrame:
    """A table of captures that follow each other, with what crosses from one to the next.

    The rows are those of ``capture.read_table`` over the same captures, in no order. It gives up what it has no room
    for by the same limits, but in each partition for itself, so that here more may be whole.

    Parameters
    ----------
    spark : SparkSession
        Classic or Connect.
    sources : path, folder, glob, URI, or a list of these
        The captures, in their order; those of a folder or of a glob by name.
    table : {"messages", "notifications", "sessions", "topology"}
    columns : iterable of str, optional
        The columns to build and send to Spark, in this order; all of them by default.
    mode, guid, ports, recursive, split_size, storage_options
        As the options of the data source.
    partitions : int, optional
        How many partitions frames are brought together in; by default Spark's for any shuffle. All frames between two
        hosts are in one.

    Raises
    ------
    FileNotFoundError
        A source names no file.
    ValueError
        There is no such table, column, mode or file system.

    Examples
    --------
    >>> rotated = ["captures/monday.pcap", "captures/tuesday.pcap"]
    >>> read_streams(spark, rotated, "notifications").groupBy("object").count().show()  # doctest: +SKIP
    """
    several = (sources,) if isinstance(sources, (str, os.PathLike)) else tuple(sources)
    reading = ReadingOptions(
        (table,),
        mode,
        guid,
        ports=None if ports is None else frozenset(ports),
        storage_options=storage_options or {},
    )
    chosen = _chosen(reading, columns)
    paths = tuple(os.fspath(one) for one in several)
    options = ReadOptions(paths, table, reading, recursive=recursive, split_size=split_size)
    found = (find_files(one, recursive=recursive, storage_options=storage_options) for one in paths)
    files = list({file.name: file for group in found for file in group}.values())
    if not files:
        raise FileNotFoundError("no capture was named")
    # Where a capture is cut matters to frames, and not what is open there: so of no ports
    tasks = tasks_of(files, replace(options, reading=replace(reading, ports=frozenset())))
    job = _Job(tuple(tasks), tuple(file.name for file in files), options, chosen)
    pair = xxhash64(least("src", "dst"), greatest("src", "dst"))
    frames = spark.range(0, len(tasks), 1, len(tasks)).mapInArrow(job.take, _FRAMES).withColumn("pair", pair)
    frames = frames.drop("src", "dst")
    frames = frames.repartition("pair") if partitions is None else frames.repartition(partitions, "pair")
    return frames.sortWithinPartitions("capture", "frame").mapInArrow(job.read, struct_type(chosen))


def _chosen(options: ReadingOptions, columns: Iterable[str] | None) -> tuple[SparkColumn, ...]:
    """The columns of the table that are asked for."""
    (table,) = options.tables
    known = {column.name: column for column in options.columns(table)}
    wanted = tuple(known) if columns is None else (columns,) if isinstance(columns, str) else tuple(columns)
    if not wanted:
        raise ValueError("columns names no column: a row needs one at least")
    twice = [name for name, count in Counter(wanted).items() if count > 1]
    if twice:
        raise ValueError(f"columns names {', '.join(map(repr, twice))} more than once")
    unknown = [name for name in wanted if name not in known]
    if unknown:
        raise ValueError(f"{', '.join(map(repr, unknown))}: no such column of {table}; it has {', '.join(known)}")
    return tuple(known[name] for name in wanted)
