"""All tables of captures one after the other, for people: captures are read once to count, then once a table."""

from __future__ import annotations

import contextlib
import os
import stat
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import IO, Any, TypedDict, cast

from msmqwire import capture
from msmqwire.capture import TABLES, CaptureStats, TableKind, TableReader
from msmqwire.cli.console import say
from msmqwire.cli.progress import progress

__all__ = ["EveryTable", "Selection", "read_again"]

_COPIED_AT_ONCE = 1 << 18


class Selection(TypedDict):
    """Which payloads are wanted, as ``capture.open`` takes it."""

    addresses: Sequence[str]
    since: datetime | int | None
    until: datetime | int | None


class EveryTable:
    """The tables of captures that can be read more than once, see ``read_again``.

    Attributes
    ----------
    stats : CaptureStats
        What became of the frames; each is counted once, whatever tables it has rows in.
    rows : dict of str to int
        How many rows each table had so far.
    faults : Counter
        How many payloads had a fault, by its code.
    encrypted : int
        Messages to the notify queue that cannot be read because they are encrypted.
    """

    def __init__(self, open_files: Callable[[], list[Any]], selection: Selection, *, strict: bool = False) -> None:
        self.stats = CaptureStats()
        self.rows: dict[str, int] = {}
        self.faults: Counter[str] = Counter()
        self.encrypted = 0
        self._open_files = open_files
        self._selection = selection
        self._strict = strict

    def tables(
        self, columns: Callable[[str], Sequence[str] | None], show: Callable[[int], None]
    ) -> Iterator[tuple[str, TableReader]]:
        """The name and the reader of each table that can have rows; each is to be read to its end.

        ``columns`` says which columns of a table are wanted, ``show`` is told the bytes read so far, of all that there
        are to read once.
        """
        passes = 1 + len(TABLES)
        with capture.open(self._open_files(), columns=(), **self._selection) as counted:
            self.stats = counted.stats
            for _ in counted:
                show(counted.stats.bytes_read // passes)
        for place, (name, kind) in enumerate(TABLES.items(), 1):
            if not _may_have_rows(kind, self.stats):
                continue
            show(self.stats.bytes_read * place // passes)
            with capture.read_table(
                self._open_files(), name, columns=columns(name), strict=self._strict, **self._selection
            ) as reader:
                yield name, reader
            self.rows[name] = reader.rows
            self.faults += reader.faults
            self.encrypted += reader.encrypted


def _may_have_rows(kind: TableKind, stats: CaptureStats) -> bool:
    return bool("tcp" in kind.ports and stats.segments) or bool(kind.ports.keys() - {"tcp"} and stats.payloads)


@contextlib.contextmanager
def read_again(names: Sequence[str], *, wanted: bool) -> Iterator[Callable[[], list[Any]]]:
    """A function that gives the files anew, from where they began, each time it is called.

    What can be read only once, a pipe, is copied to a temporary file first, with progress where that is ``wanted``.
    """
    with contextlib.ExitStack() as stack:
        files: list[Any] = list(names)
        starts: list[tuple[IO[bytes], int]] = []
        for place, name in enumerate(names):
            if name == "-" and sys.stdin.buffer.seekable():
                starts.append((sys.stdin.buffer, sys.stdin.buffer.tell()))
            elif name == "-" or _is_pipe(name):
                if wanted and sys.stderr is not None and sys.stderr.isatty():
                    say(f"reading {name} to its end first; with --table NAME its rows are shown as they come")
                files[place] = stack.enter_context(_copy(name, wanted=wanted))
                starts.append((files[place], 0))

        def open_files() -> list[Any]:
            for file, start in starts:
                file.seek(start)
            return files

        yield open_files


def _is_pipe(name: str) -> bool:
    try:
        return stat.S_ISFIFO(os.stat(name).st_mode)
    except OSError:
        return False


@contextlib.contextmanager
def _copy(name: str, *, wanted: bool) -> Iterator[IO[bytes]]:
    """A temporary file with what a pipe gave, under the pipe's name; it is gone with the process at the latest."""
    with contextlib.ExitStack() as stack:
        pipe: Any = sys.stdin.buffer if name == "-" else stack.enter_context(open(name, "rb"))
        copy = cast(Any, stack.enter_context(tempfile.TemporaryFile(buffering=0)))
        with progress([name], wanted=wanted) as show:
            size = 0
            while data := pipe.read1(_COPIED_AT_ONCE):
                view = memoryview(data)
                while view:
                    view = view[copy.write(view) :]
                size += len(data)
                show(size)
        copy.name = name
        yield copy
