"""TCP streams and IP datagrams that continue from one capture to the next, reassembled on a cluster.

>>> messages = read_streams(spark, "captures/", "messages")  # doctest: +SKIP

The data source reads each capture by itself, unless ``sequence`` is set; then the driver reads all of them once. Here
no process reads all captures: tasks take the frames that the table may need from the captures, Spark brings the frames
between two hosts together in the order of the captures, and the decoder reads them like one capture. ``StreamLimits``
bounds the memory of a task; Spark sorts on disk what does not fit in memory.
"""

from __future__ import annotations

from msmqwire.errors import require

require("pyarrow", "msmqwire.spark.streams")
require("pyspark", "msmqwire.spark.streams")

import logging
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Unpack

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import greatest, least, xxhash64

from msmqwire.capture import ReadOptions
from msmqwire.capture.files.listing import find_files
from msmqwire.capture.files.sources import CapturedFrames, shown_name
from msmqwire.capture.frame_table import FrameReader
from msmqwire.capture.options import ReadKeywords, options_of
from msmqwire.columns.arrow_arrays import integers, strings
from msmqwire.errors import CaptureError
from msmqwire.spark.executors import Sent, map_in_arrow
from msmqwire.spark.schema import SparkColumn, struct_type
from msmqwire.spark.source.options import SourceOptions, parse_size
from msmqwire.spark.source.planning import CapturePart, CapturePartition, tasks_of
from msmqwire.spark.source.scan import Mode, Scan, ScanOptions, describe_problems

__all__ = [
    "Mode",
    "read_streams",
]

log = logging.getLogger(__name__)

# Frames as they are shuffled; ``capture`` is the number of the capture
_FRAMES = "capture int, frame bigint, time_ns bigint, src string, dst string, link int, offset bigint, data binary"


@dataclass(frozen=True)
class _Job(Sent):
    """The parameters of every task."""

    tasks: tuple[CapturePartition, ...]
    captures: tuple[str, ...]
    options: SourceOptions
    columns: tuple[SparkColumn, ...]

    def take(self, numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The frames of the tasks with these numbers."""
        for batch in numbers:
            for number in batch.column(0).to_numpy():
                for part in self.tasks[number].parts:
                    yield from self.frames_of(part)

    def frames_of(self, part: CapturePart) -> Iterator[pa.RecordBatch]:
        """The frames of a part of a capture that the table may need.

        Raises
        ------
        CaptureError
            It is not a capture or, in mode FAILFAST, parts of it cannot be read.
        """
        file = part.files[0].name
        number = self.captures.index(file)
        options = self.options.scan.payloads
        with FrameReader(
            file,
            ports=options.ports,
            copies=options.copies,
            storage_options=options.storage_options,
            resume=part.resume,
            stop=part.stop,
        ) as frames:
            for batch in frames:
                yield pa.record_batch(
                    {
                        "capture": integers(np.full(len(batch), number, np.int32)),
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
        if problems and self.options.scan.mode == "FAILFAST":
            raise CaptureError(problems)
        if problems:
            log.warning("%s", problems)

    def read(self, frames: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows of a partition of frames."""
        scan = Scan(self.options.scan, {self.options.table: self.columns})
        for _, batch in scan.batches(CapturedFrames(self.captured(frames))):
            yield batch
        if problems := describe_problems(scan.stats):
            log.warning("%s", problems)

    def captured(self, frames: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Frames as ``CapturedFrames`` takes them."""
        names = strings([shown_name(name) for name in self.captures])
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
    options: ReadOptions | None = None,
    *,
    mode: Mode = "PERMISSIVE",
    recursive: bool = False,
    split_size: int | str | None = None,
    partitions: int | None = None,
    **keywords: Unpack[ReadKeywords],
) -> DataFrame:
    """Read a table from consecutive captures, with the streams that continue from one capture to the next.

    The rows are those of ``capture.read_table`` for the same captures, in any order. Both give up incomplete streams by
    the same limits, but here the limits apply to each partition, so more streams may be complete.

    Parameters
    ----------
    spark : SparkSession
        Classic or Connect.
    sources : path, folder, glob, URI, or a list of these
        The captures in their order; the captures of a folder or a glob in the order of their names.
    table : {"messages", "notifications", "sessions", "topology"}
    options : ReadOptions, optional
        What to read from the captures; ``columns`` also gives the order of the columns.
    mode, recursive, split_size
        As the options of the data source.
    partitions : int, optional
        The number of partitions into which frames are shuffled; default: Spark's. All frames between two hosts are in
        one partition.
    **keywords
        Fields of ``ReadOptions``, except ``packets``, ``resume``, ``stop`` and ``final``; they replace the fields of
        ``options``.

    Raises
    ------
    FileNotFoundError
        A source matches no file.
    ValueError
        There is no such table, column, mode or file system.

    Examples
    --------
    >>> rotated = ["captures/monday.pcap", "captures/tuesday.pcap"]
    >>> read_streams(spark, rotated, "notifications").groupBy("object").count().show()  # doctest: +SKIP
    """
    several = (sources,) if isinstance(sources, (str, os.PathLike)) else tuple(sources)
    paths = tuple(os.fspath(one) for one in several)
    read = options_of(options or ReadOptions(guid="text"), keywords, unused=("packets", "resume", "stop", "final"))
    scan = ScanOptions((table,), mode, read)
    chosen = _chosen(scan)
    size = parse_size(split_size) if isinstance(split_size, str) else split_size
    source = SourceOptions(paths, scan, recursive=recursive, split_size=size)
    found = (find_files(one, recursive=recursive, storage_options=read.storage_options) for one in paths)
    files = list({file.name: file for group in found for file in group}.values())
    if not files:
        raise FileNotFoundError("no capture was named")
    # Checkpoints between frames need no state of streams: without ports there is none
    tasks = tasks_of(files, replace(source, scan=replace(scan, read=options_of(read, {"ports": ()}))))
    job = _Job(tuple(tasks), tuple(file.name for file in files), source, chosen)
    pair = xxhash64(least("src", "dst"), greatest("src", "dst"))
    frames = map_in_arrow(spark.range(0, len(tasks), 1, len(tasks)), job.take, _FRAMES).withColumn("pair", pair)
    frames = frames.drop("src", "dst")
    frames = frames.repartition("pair") if partitions is None else frames.repartition(partitions, "pair")
    return map_in_arrow(frames.sortWithinPartitions("capture", "frame"), job.read, struct_type(chosen))


def _chosen(scan: ScanOptions) -> tuple[SparkColumn, ...]:
    """The columns that ``scan.read.columns`` names; all columns of the table by default."""
    (table,) = scan.tables
    known = {column.name: column for column in scan.columns(table)}
    columns = scan.read.columns
    names = tuple(known) if columns is None else tuple(columns[table] if isinstance(columns, Mapping) else columns)
    if not names:
        raise ValueError("columns names no column; a row needs at least one")
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise ValueError(f"columns names {', '.join(map(repr, twice))} more than once")
    unknown = [name for name in names if name not in known]
    if unknown:
        raise ValueError(f"{', '.join(map(repr, unknown))}: no such column of {table}; it has {', '.join(known)}")
    return tuple(known[name] for name in names)
