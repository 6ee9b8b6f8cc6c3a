"""``capture.open``: the payloads of captures, a block at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from types import TracebackType

from msmqwire.capture.blocks import Block, FileReader, Pool
from msmqwire.capture.schema import DEFAULT_PORTS
from msmqwire.capture.sources import OpenFile, Source, files_of
from msmqwire.capture.stats import CaptureStats
from msmqwire.errors import CaptureError

__all__ = ["Capture", "open"]

BLOCK_SIZE = 1 << 20


class Capture(Iterator[Block]):
    """The blocks of one or more captures, in order; a context manager that closes what it opened.

    Attributes
    ----------
    stats : CaptureStats
        What became of the frames read so far.
    """

    def __init__(
        self,
        source: Source,
        *,
        ports: Iterable[int] = DEFAULT_PORTS,
        columns: Iterable[str] | None = None,
        block_size: int = BLOCK_SIZE,
    ) -> None:
        self.stats = CaptureStats()
        self._ports = frozenset(ports)
        self._pool = Pool(block_size, columns)
        self._files = iter(list(files_of(source)))
        self._file: OpenFile | None = None
        self._reader: FileReader | None = None
        self._open_next()

    def __next__(self) -> Block:
        while self._reader is not None:
            block = self._reader.next_block()
            if block is not None:
                return block
            if self._file is not None and self._file.damage:
                self.stats.cut(self._file.name, self._reader.end, self._file.damage)
            self._open_next()
        raise StopIteration

    def __enter__(self) -> Capture:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file that is being read; blocks stay good, and there are no more of them."""
        self._reader = None
        self._files = iter(())
        if self._file is not None:
            self._file.close()
            self._file = None

    def _open_next(self) -> None:
        """Go on to the next file, if there is one, and read its header."""
        if self._file is not None:
            self._file.close()
        self._file = self._reader = None
        for opener in self._files:
            self._file = opener()
            try:
                self._reader = FileReader(self._file.name, self._file.read_into, self._ports, self._pool, self.stats)
            except BaseException as error:
                damage, name = self._file.damage, self._file.name
                self.close()
                if damage and isinstance(error, CaptureError):
                    raise CaptureError(f"{name}: {damage}") from None
                raise
            return


def open(
    source: Source,
    *,
    ports: Iterable[int] = DEFAULT_PORTS,
    columns: Iterable[str] | None = None,
    block_size: int = BLOCK_SIZE,
) -> Capture:
    """Read the UDP payloads of pcap and pcapng captures, a block at a time.

    Parameters
    ----------
    source : path, glob, binary file object, or a list of these
        ``"-"`` is standard input. Files are read in the order given, those of a glob by name. They may be compressed
        (gzip, zstd, lz4, xz, bzip2), whatever their names; zstd and lz4 need ``msmqwire[compression]``.
    ports : iterable of int
        A payload belongs to the capture when its source or destination port is one of these.
    columns : iterable of str, optional
        The capture columns to build (``file``, ``frame``, ``time``, ``src``, ...), all of them by default; ``()`` for
        none.
    block_size : int
        Bytes read at once, at least 4096; a block holds the payloads of one such read.

    Returns
    -------
    Capture
        An iterator of blocks. ``block.payloads`` are views into the block's memory, which lasts as long as somebody
        looks at it; ``block.capture`` is the Batch of capture columns.

    Raises
    ------
    CaptureError
        A file is no capture, or a glob matches nothing. Damage inside a capture raises nothing: it is in ``stats``.
    OSError
        A file cannot be opened or read.
    """
    return Capture(source, ports=ports, columns=columns, block_size=block_size)
