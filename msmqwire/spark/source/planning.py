"""Divides captures among tasks, for the data source, the streams over many files and the pipeline."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import accumulate
from typing import Protocol, TypeVar

from pyspark.sql.datasource import InputPartition

from msmqwire.capture import Checkpoint, checkpoints
from msmqwire.capture.files.listing import SourceFile, is_compressed
from msmqwire.capture.files.sources import shown_name
from msmqwire.errors import CaptureError
from msmqwire.spark.source.options import SourceOptions

# The bytes of a task, which starting it costs little of; up to twice as many where there are more tasks than MANY
SPLIT_SIZE = 64 << 20
MANY = 64
# This many captures occupy a cluster without being split
ENOUGH = 32
# Opening a file takes a task as long as reading this many bytes
OPEN_COST = 1 << 18


class Sized(Protocol):
    """A file, or a part of one, with its bytes."""

    @property
    def size(self) -> int:
        """The size of the stored capture, in bytes."""
        ...


Item = TypeVar("Item", bound=Sized)


def task_size(items: Iterable[Sized]) -> int:
    """The bytes of a task: neither many small tasks nor few large ones."""
    total = sum(OPEN_COST + item.size for item in items)
    return max(SPLIT_SIZE, min(2 * SPLIT_SIZE, total // MANY))


def large(items: Sequence[Item]) -> list[Item]:
    """Those that are worth splitting, though they are read once more for that: other tasks would wait for theirs."""
    least = max(2 * SPLIT_SIZE, sum(item.size for item in items) // ENOUGH)
    return [item for item in items if item.size > least]


def pack(items: Iterable[Item], size: int, open_cost: int | None = None) -> Iterator[list[Item]]:
    """Consecutive items, as many to a task as have at most ``size`` bytes together, ``open_cost`` more for each.

    By default that is ``OPEN_COST``.
    """
    more = OPEN_COST if open_cost is None else open_cost
    waiting: list[Item] = []
    left = size
    for item in items:
        cost = more + item.size
        if waiting and cost > left:
            yield waiting
            waiting, left = [], size
        waiting.append(item)
        left -= cost
    if waiting:
        yield waiting


@dataclass(frozen=True)
class CapturePart:
    """A capture, consecutive captures, or the part of these between two checkpoints.

    Attributes
    ----------
    files : tuple of SourceFile
    size : int
        In bytes.
    resume, stop : Checkpoint or None
        None: the beginning, the end.
    """

    files: tuple[SourceFile, ...]
    size: int
    resume: Checkpoint | None = None
    stop: Checkpoint | None = None


@dataclass(frozen=True)
class CapturePartition(InputPartition):
    """The parts that one task reads, in this order."""

    parts: tuple[CapturePart, ...]


def plan(options: SourceOptions) -> list[CapturePartition]:
    """The tasks, in the order of the captures' names and of their content.

    A task has up to ``splitSize`` bytes (default: 64 MiB, and up to 128 MiB where there are many tasks) of consecutive
    parts. A larger capture is split into parts that have exactly the rows of the capture, unless it is compressed. To
    find the split points, the driver reads it once without decoding payloads. By default that is not done where it does
    not pay: for captures of at most 128 MiB or 1/32 of all bytes, since there are enough tasks, and for captures on
    other machines, since their bytes would travel twice. With ``splitSize`` 0 each capture is a task.

    The captures of a ``sequence`` are all read once by the driver and split as one capture, so TCP streams that
    continue in the next capture are complete.

    Raises
    ------
    FileNotFoundError
        A path matches no file.
    OSError, CaptureError
        A capture to be split cannot be read, or is not a capture.
    ValueError
        There is no file system for a URI.
    """
    return tasks_of(options.files(), options)


def tasks_of(files: Sequence[SourceFile], options: SourceOptions) -> list[CapturePartition]:
    """Plan the tasks that read these captures, in this order; see ``plan``."""
    size = task_size(files) if options.split_size is None else options.split_size
    if options.sequence:
        return _partitions(split(files, size, options) if size else [_unsplit(*files)], size)
    if options.split_size is None:
        to_split = [file for file in large(files) if "://" not in file.name]
    else:
        to_split = [file for file in files if file.size > size > 0]

    def parts_of(file: SourceFile) -> list[CapturePart]:
        try:
            return (
                [_unsplit(file)] if is_compressed(file.name, options.storage_options) else split([file], size, options)
            )
        except (CaptureError, OSError):
            if options.ignore_corrupt_files is not False:
                return [_unsplit(file)]  # reading fails likewise, and reports it
            raise

    # Reading captures releases the GIL
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        parts = dict(zip(to_split, threads.map(parts_of, to_split), strict=True))
    return _partitions((part for file in files for part in parts.get(file, [_unsplit(file)])), size)


def split(files: Sequence[SourceFile], size: int, options: SourceOptions) -> list[CapturePart]:
    """Parts of consecutive captures, of about equal size and at most ``size`` bytes."""
    names = [file.name for file in files]
    # Checkpoints have display names: a file name need not be text
    shown = [shown_name(name) for name in names]
    *begins, total = accumulate((file.size for file in files), initial=0)
    even_size = max(-(-total // max(-(-total // size), 1)), 1)
    with checkpoints(names, even_size, options.scan.payloads) as found:
        parts = []
        resume, first, begin = None, 0, 0
        for stop in found:
            last = shown.index(stop.file, first)
            end = begins[last] + stop.offset
            # The file of a checkpoint at its beginning is not read, but the reader has to know its name
            parts.append(CapturePart(tuple(files[first : last + 1]), end - begin, resume, stop))
            resume, first, begin = stop, last, end
    return parts


def _partitions(parts: Iterable[CapturePart], size: int) -> list[CapturePartition]:
    return [CapturePartition(tuple(of_task)) for of_task in pack(parts, size)]


def _unsplit(*files: SourceFile) -> CapturePart:
    return CapturePart(files, sum(file.size for file in files))
