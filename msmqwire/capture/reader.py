"""``capture.open``: the payloads of captures, one block after the other."""

from __future__ import annotations

import io
import os
import stat
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Self, TypeVar, Unpack

from msmqwire.capture._state import resume_at_end, resume_reader, stop_at
from msmqwire.capture.capture_range import CaptureRange
from msmqwire.capture.checkpoint import Checkpoint
from msmqwire.capture.files._blocks import Block, Pool
from msmqwire.capture.files._captured import CapturedFramesReader
from msmqwire.capture.files._file_reader import FileReader
from msmqwire.capture.files.listing import STANDARD_INPUT
from msmqwire.capture.files.sources import CapturedFrames, OpenFile, Source, UnopenedFile, files_of
from msmqwire.capture.frames._selection import PayloadSelection
from msmqwire.capture.options import DEFAULT_PACKETS, ReadKeywords, ReadOptions, options_of
from msmqwire.capture.schema import CAPTURE, DEFAULT_PORTS, FRAMES, RECORDS, TRANSPORTS
from msmqwire.capture.stats import CaptureStats
from msmqwire.capture.tcp._packets import PACKET_KINDS
from msmqwire.capture.tcp._streams import StreamTable
from msmqwire.columns import Table
from msmqwire.columns.data_frames import pandas_frame, polars_frame, python_rows
from msmqwire.errors import CaptureError

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

# An empty capture: it stands for a file that was already read to its end
EMPTY_CAPTURE = bytes.fromhex("d4c3b2a1 0200 0400 00000000 00000000 00000400 01000000")
END_OF_FILE = (1 << 64) - 1

Item = TypeVar("Item")


class ClosingIterator(Iterator[Item]):
    """An iterator over what files contain; a context manager that closes the files.

    Files are read once: to iterate again after the end raises ``RuntimeError``. An iterator over what another one
    returns has that as ``_inner``.
    """

    stats: CaptureStats
    _inner: ClosingIterator[Any]
    _was_iterated = False

    def __iter__(self) -> Self:
        if self._was_iterated and self._has_ended():
            raise RuntimeError("this reader has ended, and files are read once: open the capture again")
        self._was_iterated = True
        return self

    def _has_ended(self) -> bool:
        """Return True if there is nothing more: all was read, or the reader was closed."""
        return self._inner._has_ended()

    def close(self) -> None:
        """Close the file that is being read. What was returned stays valid; the iterator has ended."""
        self._inner.close()

    def _contents(self) -> str:
        """The counts that ``repr`` shows."""
        return f"{self.stats.payloads:,} datagrams"

    def __repr__(self) -> str:
        state = "ended" if self._has_ended() else "open"
        return f"<{type(self).__name__}: {self._contents()} of {self.stats.frames:,} frames read, {state}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class ArrowReader(ClosingIterator["pa.RecordBatch"]):
    """An iterator of record batches that is an Arrow stream as well.

    Attributes
    ----------
    schema : pyarrow.Schema
        Known before anything is read.
    """

    schema: pa.Schema

    def __arrow_c_schema__(self) -> object:
        """The schema for any Arrow consumer."""
        return self.schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The remaining rows for any Arrow consumer, read as it asks for them."""
        import pyarrow as pa

        rows: Any = pa.RecordBatchReader.from_batches(self.schema, iter(self))
        return rows.__arrow_c_stream__(requested_schema)

    def to_arrow(self) -> pa.Table:
        """The rows that are left, in memory.

        Raises
        ------
        RuntimeError
            The rows were read.
        """
        import pyarrow as pa

        return pa.Table.from_batches(iter(self), self.schema)

    def to_pylist(self) -> list[dict[str, Any]]:
        """All rows as dicts by the names of the columns, GUIDs and times as text.

        Raises
        ------
        RuntimeError
            Rows were read.
        """
        return python_rows(self._with_text_guids())

    def to_pandas(self, **options: Any) -> pd.DataFrame:
        """All rows as a DataFrame of pandas, GUIDs as text.

        A column of uint64 with nulls is of pandas' UInt64, unless an option says otherwise: other numbers with nulls
        are floats, which have 53 bits.

        Parameters
        ----------
        **options
            Those of ``pyarrow.Table.to_pandas``.

        Raises
        ------
        RuntimeError
            Rows were read.
        """
        return pandas_frame(self._with_text_guids(), options)

    def to_polars(self) -> pl.DataFrame:
        """All rows as a DataFrame of polars, GUIDs as text.

        Raises
        ------
        RuntimeError
            Rows were read.
        """
        return polars_frame(self._with_text_guids())

    def _with_text_guids(self) -> pa.Table:
        """All rows with GUIDs as text."""
        return self.to_arrow()


class Capture(ClosingIterator[Block]):
    """The blocks of one or more captures, in order; a context manager that closes the files.

    Attributes
    ----------
    stats : CaptureStats
        The counts of the frames read so far.
    """

    def __init__(self, source: Source, options: ReadOptions, *, table: Table = CAPTURE) -> None:
        self.stats = CaptureStats()
        self._process = os.getpid()
        ports = dict.fromkeys(TRANSPORTS, DEFAULT_PORTS) if options.ports is None else options.ports
        self._selection = PayloadSelection(ports, options.addresses, options.since, options.until)
        self._limits = options.file_limits
        self._copies = options.copies
        columns = options.columns
        self._pool = Pool(options.block_size, columns if columns is None else tuple(columns), table=table)
        packets = DEFAULT_PACKETS if options.packets is None else options.packets
        kinds = sum(PACKET_KINDS[name] for name in packets)
        self._streams = StreamTable(kinds, options.limits, int.from_bytes(os.urandom(8), "little"))
        # Rows of FRAMES do not depend on the streams, so any checkpoint will do
        reassembles = table not in (FRAMES, RECORDS)
        reading = [sorted(ports[name]) for name in TRANSPORTS], kinds, options.limits, options.copies
        self._part = CaptureRange(
            options.resume, options.stop, final=options.final, reading=repr(reading) if reassembles else None
        )
        self._files = self._part.files(list(files_of(source, options.storage_options)))
        if reassembles:
            self._part.begin(self._streams)
        self._file: OpenFile | CapturedFrames | None = None
        self._reader: FileReader | None = None
        self._last: FileReader | None = None
        self._to_end = False
        self._exhausted = False
        self._open_next()

    def __next__(self) -> Block:
        self._check_process()
        while self._reader is not None:
            block = self._reader.next_block()
            if block is not None:
                return block
            self._leave()
            self._open_next()
        raise StopIteration

    def _has_ended(self) -> bool:
        # Without any file there are no rows that could have been read before
        return self._reader is None and not (self._exhausted and self._last is None)

    def _is_ready(self) -> bool:
        """Return True if the file that is being read is no pipe, or one that has data."""
        return not isinstance(self._file, OpenFile) or self._file.ready()

    def close(self) -> None:
        """Close the file that is being read. Blocks stay valid; there are no more of them."""
        self._reader = None
        self._files = []
        if self._file is not None:
            self._file.close()
            self._file = None

    def checkpoint(self) -> Checkpoint:
        """The place where reading ended; call it after the last block.

        This is ``stop``; or, with ``final=False``, the end of the last complete record; or else the end of the capture,
        with no stream or datagram open.

        Raises
        ------
        RuntimeError
            There may be more blocks, or there was no file.
        """
        if not self._exhausted:
            raise RuntimeError("the checkpoint is available after the last block was read")
        stop = self._part.stop
        if stop is not None and not stop.offset:
            return self._part.checkpoint_before(stop.file, self._streams)
        if self._last is None:
            raise RuntimeError("a capture without files has no checkpoint")
        return self._part.checkpoint_of(self._last, self._streams, at_end=self._to_end)

    def _check_process(self) -> None:
        """Refuse to read in a forked process: it shares the offset of the open file, and each would miss rows."""
        if os.getpid() != self._process:
            raise RuntimeError(
                f"this reader was opened by process {self._process}, and process {os.getpid()} shares the offset of "
                "its file: open the capture in each process"
            )

    def _pass(self, size: int) -> Checkpoint | None:
        """Read about ``size`` bytes without their rows; the checkpoint after them, None after the last."""
        self._check_process()
        if self._reader is None:
            if not self._files:
                return None
            self._open_next()
        while self._reader is not None:
            reader = self._reader
            begin = reader.place
            inside = self._file is not None and self._file.seekable
            if reader.pass_to(begin + size if inside else END_OF_FILE):
                return self._part.checkpoint_of(reader, self._streams, at_end=False)
            size -= reader.place - begin
            self._leave()
            if size <= 0 and self._files:
                return self._part.checkpoint_before(self._files[0].name, self._streams)
            self._open_next()
        return self.checkpoint()

    def _leave(self) -> None:
        """Close a file that was read."""
        reader = self._reader
        assert reader is not None
        if self._file is not None:
            if self._file.problem:
                self.stats._add_truncated(self._file.name, reader.end, self._file.problem)
            self._file.close()
        if reader.is_empty:
            self.stats.empty_files += 1
        self.stats.bytes_read -= reader.end - reader.place
        self._file = self._reader = None
        self._last = reader
        if not self._files:
            self._part.check_end(reader)

    def _open_next(self) -> None:
        """Open the next file, if there is one, and read its header."""
        self._exhausted = not self._files
        if not self._files:
            return
        file = self._files.pop(0)
        resume = self._part.resume if self._last is None else None
        try:
            if resume is None or not resume.offset:
                self._file = file.open(self._limits)
                self._reader = self._reader_of(self._file, last=not self._files)
            else:
                self._reader = self._resumed(file, resume, last=not self._files)
        except BaseException as error:
            problem = "" if self._file is None else self._file.problem
            self.close()
            if problem and isinstance(error, CaptureError):
                raise type(error)(f"{file.name}: {problem}") from None
            raise

    def _resumed(self, file: UnopenedFile, resume: Checkpoint, *, last: bool) -> FileReader:
        """A reader that resumes inside a file or at its end."""
        if not self._part.resume_inside:
            ended = OpenFile(file.name, io.BytesIO(EMPTY_CAPTURE), ours=False)
            reader = self._file_reader(ended, last=last, to_end=True)
            resume_at_end(reader, resume.offset, resume.frames)
            return reader
        opened = self._file = file.open(self._limits)
        if isinstance(opened, CapturedFrames):
            raise ValueError(f"{file.name}: reading cannot resume inside captured frames")
        reader = self._file_reader(opened, last=last)
        resume_reader(reader, opened.seek, resume.offset, resume.frames, self._part.resume_inside)
        return reader

    def _reader_of(self, file: OpenFile | CapturedFrames, *, last: bool) -> FileReader:
        if isinstance(file, CapturedFrames):
            self._to_end = True
            return CapturedFramesReader(file.runs(), self._selection, self._pool, self._streams, self.stats, last=last)
        return self._file_reader(file, last=last)

    def _file_reader(self, file: OpenFile, *, last: bool, to_end: bool = False) -> FileReader:
        """A reader of a file; ``to_end``: nothing more will be read of it, even if it has grown."""
        part = self._part
        to_end = to_end or not file.seekable
        self._to_end = to_end or part.finishes or not last
        reader = FileReader(
            file.name,
            file.read_into,
            self._selection,
            self._pool,
            self._streams,
            self.stats,
            last=last and part.finishes,
            growing=last and part.grows and not to_end,
            size=part.size if last and part.size is not None else END_OF_FILE,
            most_interfaces=self._limits.interfaces,
            copies=self._copies,
            ready=file.ready,
        )
        if last and part.stop is not None and part.stop_inside:
            if to_end:
                raise ValueError(f"{file.name}: is compressed, or a pipe: reading cannot stop inside it")
            stop_at(reader, part.stop.offset, part.stop_inside)
        return reader


class Checkpoints(ClosingIterator[Checkpoint]):
    """Checkpoints of a capture, about ``size`` bytes apart, the last at its end; a context manager.

    Attributes
    ----------
    stats : CaptureStats
        The counts of the frames read so far; after the last checkpoint, of the capture.
    """

    def __init__(self, capture: Capture, size: int) -> None:
        if size < 1:
            raise ValueError(f"size={size} must be at least 1")
        self._inner = self._capture = capture
        self._size = size
        self.stats = capture.stats

    def __next__(self) -> Checkpoint:
        checkpoint = self._capture._pass(self._size)
        if checkpoint is None:
            raise StopIteration
        return checkpoint


def open(source: Source, options: ReadOptions | None = None, **keywords: Unpack[ReadKeywords]) -> Capture:
    """Read the payloads of pcap and pcapng captures, one block after the other.

    A payload is a UDP datagram, an IPX packet, or an MSMQ packet in a reassembled TCP stream.

    Parameters
    ----------
    source : path, folder, glob, URI, binary file object, or a list of these
        ``"-"`` is standard input. Files are read in the given order, those of a folder or a glob sorted by name.
        A file may be compressed (gzip, zstd, lz4, xz, bzip2), whatever its name; zstd needs
        ``backports.zstd`` before Python 3.14, lz4 needs ``lz4``.
    options : ReadOptions, optional
        What to read, and how. ``columns`` are capture columns (``file``, ``frame``, ``time``, ``src``, ...).
    **keywords
        Fields of ``ReadOptions``, except ``guid``, ``dictionaries``, ``strict`` and ``jobs``; they replace the fields
        of ``options``.

    Returns
    -------
    Capture
        An iterator of blocks. ``block.payloads`` are views into the memory of the block, which stays valid as long as a
        view exists; ``block.capture`` is the Batch of capture columns.

    Raises
    ------
    CaptureFormatError
        A file is not a capture; a checkpoint is malformed or of another file. Malformed records inside a capture raise
        nothing: they are reported in ``stats``.
    OSError
        A file cannot be opened or read; ``FileNotFoundError``: a name stands for no file; ``CaptureReadError``: the
        file cannot be read as it is.
    ValueError
        An option has a value that it cannot have; there is no file system for a URI; a checkpoint is in no
        file of the source, or inside a file that can only be read from its beginning.
    """
    return Capture(source, options_of(options, keywords, unused=("guid", "dictionaries", "strict", "jobs")))


def first_time(files: Sequence[str]) -> int | None:
    """When the first of these captures begins, in nanoseconds since 1970; None if no frame in it has a time.

    Raises
    ------
    ValueError
        It is standard input or another pipe, which can be read only once.
    """
    file = files[0]
    if file == STANDARD_INPUT or (os.path.exists(file) and stat.S_ISFIFO(os.stat(file).st_mode)):
        raise ValueError(
            "a time of day needs the day when the capture begins, which a pipe does not tell: give the date"
        )
    with Capture(file, ReadOptions(ports=range(1 << 16), block_size=1 << 16), table=FRAMES) as blocks:
        for block in blocks:
            times = block.capture["time"][block.capture.is_valid("time")]
            if len(times):
                return int(times[0])
    return None


def checkpoints(
    source: Source, size: int, options: ReadOptions | None = None, **keywords: Unpack[ReadKeywords]
) -> Checkpoints:
    """Read captures once, at the speed of framing, and return checkpoints that split them into parts.

    Each part, from one checkpoint to the next, can be read with ``open(source, resume=, stop=)``, in any order and by
    several processes. Together the parts have the rows of a serial read, and their stats add up to its stats.

    Parameters
    ----------
    source : path, folder, glob, URI, binary file object, or a list of these
        As for ``open``.
    size : int
        Bytes between two checkpoints; a little more, to the end of a record. A compressed file or a pipe has no
        checkpoints inside it.
    options : ReadOptions, optional
        The options that the parts will be read with.
    **keywords
        Fields of ``ReadOptions``, except ``columns``, ``guid``, ``dictionaries``, ``strict`` and ``jobs``; they replace
        the fields of ``options``.

    Returns
    -------
    Checkpoints
        An iterator. The last checkpoint is at the end of the capture, with no stream or datagram open, or with
        ``final=False`` at the end of its last complete record. ``stats`` of the iterator are then those of the capture.

    Raises
    ------
    CaptureError, OSError, ValueError
        As for ``open``.
    """
    read = options_of(options, keywords, unused=("columns", "guid", "dictionaries", "strict", "jobs"))
    return Checkpoints(Capture(source, options_of(read, {"columns": ()})), size)
