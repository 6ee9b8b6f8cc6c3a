"""Which parts of which captures a task reads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import IO

from pyspark.sql.datasource import InputPartition

from msmqwire.spark.options import ReadOptions
from msmqwire.spark.remote import StorageOptions
from msmqwire.spark.sources import SourceFile, find_files, open_source

__all__ = ["SPLIT_SIZE", "CapturePart", "CapturePartition", "plan"]

SPLIT_SIZE = 64 << 20
# Opening a file costs a task as much as reading so many bytes
OPEN_COST = 1 << 20


@dataclass(frozen=True)
class CapturePart:
    """A capture."""

    file: SourceFile

    @property
    def size(self) -> int:
        """How many bytes it has."""
        return self.file.size

    def open(self, storage_options: StorageOptions) -> IO[bytes]:
        """Open it."""
        return open_source(self.file.name, storage_options)


@dataclass(frozen=True)
class CapturePartition(InputPartition):
    """What one task reads, in this order."""

    parts: tuple[CapturePart, ...]


def plan(options: ReadOptions) -> Iterator[CapturePartition]:
    """The tasks, in the order of the captures' names.

    Raises
    ------
    FileNotFoundError
        A source names no file.
    OSError, CaptureError
        A capture that is to be cut cannot be read.
    ValueError
        There is no file system for a URI.
    """
    files = find_files(options.sources, recursive=options.recursive, storage_options=options.storage_options)
    return pack((CapturePart(file) for file in files), SPLIT_SIZE if options.split_size is None else options.split_size)


def pack(parts: Iterable[CapturePart], size: int) -> Iterator[CapturePartition]:
    """Parts that follow each other, several to a task while they have no more than ``size`` bytes."""
    waiting: list[CapturePart] = []
    left = size
    for part in parts:
        cost = part.size + OPEN_COST
        if waiting and cost > left:
            yield CapturePartition(tuple(waiting))
            waiting, left = [], size
        waiting.append(part)
        left -= cost
    if waiting:
        yield CapturePartition(tuple(waiting))
