"""Which captures, or parts of captures, a task reads."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import accumulate

from pyspark.sql.datasource import InputPartition

from msmqwire.capture import Checkpoint, checkpoints, table_options
from msmqwire.capture.files.compression import LONGEST_MAGIC, form_of
from msmqwire.capture.files.sources import shown_name
from msmqwire.spark.source.files import SourceFile, find_files, open_source, opened
from msmqwire.spark.source.options import ReadOptions

__all__ = ["SPLIT_SIZE", "CapturePart", "CapturePartition", "plan", "tasks_of"]

SPLIT_SIZE = 64 << 20
# So many captures keep a cluster busy without being cut
ENOUGH = 32
# Opening a file takes a task as long as reading so many bytes
OPEN_COST = 1 << 20


@dataclass(frozen=True)
class CapturePart:
    """A capture from one checkpoint to another, or all of it.

    Attributes
    ----------
    file : str
    size : int
        In bytes.
    resume, stop : Checkpoint or None
        None for the beginning, and for the end.
    following : tuple of str
        The captures behind it, in a sequence, up to the one that ``stop`` is in.
    """

    file: str
    size: int
    resume: Checkpoint | None = None
    stop: Checkpoint | None = None
    following: tuple[str, ...] = ()

    @property
    def files(self) -> tuple[str, ...]:
        """All that is to be opened."""
        return (self.file, *self.following)


@dataclass(frozen=True)
class CapturePartition(InputPartition):
    """What one task reads, in this order."""

    parts: tuple[CapturePart, ...]


def plan(options: ReadOptions) -> list[CapturePartition]:
    """The tasks, in the order of the captures' names and of what is in them.

    Parts of captures that follow each other, ``splitSize`` bytes of them, 64 MiB where it is absent, are a task. A
    capture that is larger is cut into parts that together give exactly the rows of the whole, unless it is compressed.
    To know where, it is read once here, without looking into payloads. That does not pay where tasks have enough to do
    without it, or the bytes take longer to come than to read: where ``splitSize`` is absent, captures are not cut that
    are less than a 32nd of everything, or on other machines. Where it is 0, each capture is a task.

    The captures of a ``sequence`` are all read once here, and cut as if they were one: streams that go on from one to
    the next are whole in the rows.

    Raises
    ------
    FileNotFoundError
        A source names no file.
    OSError, CaptureError
        A capture that is to be cut cannot be read, or is none.
    ValueError
        There is no file system for a URI.
    """
    files = find_files(options.sources, recursive=options.recursive, storage_options=options.storage_options)
    return tasks_of(files, options)


def tasks_of(files: Sequence[SourceFile], options: ReadOptions) -> list[CapturePartition]:
    """What ``plan`` gives for these captures, in their order."""
    size = SPLIT_SIZE if options.split_size is None else options.split_size
    if options.sequence:
        return list(pack(cut(files, size, options) if size else [_uncut(*files)], size))
    if options.split_size is None:
        least = max(size, sum(file.size for file in files) // ENOUGH)
        large = [file for file in files if file.size > least and "://" not in file.name]
    else:
        large = [file for file in files if file.size > size > 0]

    def parts_of(file: SourceFile) -> list[CapturePart]:
        return [_uncut(file)] if _is_compressed(file, options) else cut([file], size, options)

    # What reads captures does not hold on to the interpreter
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        parts = dict(zip(large, threads.map(parts_of, large), strict=True))
    return list(pack((part for file in files for part in parts.get(file, [_uncut(file)])), size))


def cut(files: Sequence[SourceFile], size: int, options: ReadOptions) -> list[CapturePart]:
    """Parts of captures that follow each other, about equally large, of ``size`` bytes or less."""
    reading = options.reading
    names = [file.name for file in files]
    # As checkpoints have them: a name need not be text
    shown = [shown_name(name) for name in names]
    *begins, total = accumulate((file.size for file in files), initial=0)
    with (
        opened(names, options.storage_options) as sources,
        checkpoints(
            sources,
            max(-(-total // max(-(-total // size), 1)), 1),
            table_options(
                options.table,
                ports=reading.ports,
                addresses=reading.addresses,
                since=reading.since,
                until=reading.until,
            ),
        ) as found,
    ):
        parts = []
        resume, first, begin = None, 0, 0
        for stop in found:
            last = shown.index(stop.file, first)
            end = begins[last] + stop.offset
            # What stops in front of a file has no use for it, but is told of it by its name
            parts.append(CapturePart(names[first], end - begin, resume, stop, tuple(names[first + 1 : last + 1])))
            resume, first, begin = stop, last, end
    return parts


def pack(parts: Iterable[CapturePart], size: int) -> Iterator[CapturePartition]:
    """Parts that follow each other, several to a task while they have no more than ``size`` bytes."""
    waiting: list[CapturePart] = []
    left = size
    for part in parts:
        if waiting and part.size + OPEN_COST > left:
            yield CapturePartition(tuple(waiting))
            waiting, left = [], size
        waiting.append(part)
        left -= part.size + OPEN_COST
    if waiting:
        yield CapturePartition(tuple(waiting))


def _uncut(file: SourceFile, *following: SourceFile) -> CapturePart:
    size = sum(one.size for one in (file, *following))
    return CapturePart(file.name, size, following=tuple(one.name for one in following))


def _is_compressed(file: SourceFile, options: ReadOptions) -> bool:
    with open_source(file.name, options.storage_options) as source:
        return form_of(source.read(LONGEST_MAGIC)) is not None
