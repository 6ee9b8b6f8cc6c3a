"""Ranges of a file, each read on its own, and joined: as if the file had been read from its beginning."""

from collections.abc import Callable, Iterable, Iterator, Mapping

from msmqwire.capture.blocks import Block, FileReader, Pool
from msmqwire.capture.selection import PayloadSelection
from msmqwire.capture.stats import CaptureStats
from msmqwire.capture.streams import StreamTable

class RangeReader(FileReader):
    """What begins in ``start`` to ``stop`` of a file, by a guess of what is in front of it.

    ``seek`` goes to an offset of the file that ``read_into`` reads; ``start`` None is the front of the file;
    ``streams`` are this reader's own.

    Attributes
    ----------
    begin : int
        Offset of the first record, as far as is known before the range is joined.
    stop : int
        Records that begin there or behind are left alone.
    """

    begin: int
    stop: int
    def __init__(
        self,
        name: str,
        read_into: Callable[[memoryview], int],
        ports: Mapping[str, Iterable[int]],
        pool: Pool,
        streams: StreamTable,
        seek: Callable[[int], None],
        start: int | None,
        stop: int,
        *,
        selection: PayloadSelection | None = None,
    ) -> None: ...
    def read_all(self, *, keep: bool = True) -> None:
        """Read all of it; without ``keep`` its rows are counted and forgotten."""

class JoiningReader(FileReader):
    """A file from its beginning, read or joined from ranges."""

    def __init__(
        self,
        name: str,
        read_into: Callable[[memoryview], int],
        ports: Mapping[str, Iterable[int]],
        pool: Pool,
        streams: StreamTable,
        stats: CaptureStats,
        seek: Callable[[int], None],
        *,
        selection: PayloadSelection | None = None,
        last: bool = True,
    ) -> None: ...
    def read_to(self, limit: int) -> Iterator[Block]:
        """The blocks up to the first record that begins at ``limit`` or behind."""
    def join(self, found: RangeReader) -> list[Block] | None:
        """The blocks of a range that begins here; None, and nothing is changed, when what it guessed is not so."""
