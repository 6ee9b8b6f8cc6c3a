"""``capture.open``: the payloads of captures, a block at a time."""

from __future__ import annotations

import io
import os
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Self, TypeAlias, TypeVar

from msmqwire.capture.blocks import Block, FileReader, Pool
from msmqwire.capture.captured import CapturedFramesReader
from msmqwire.capture.checkpoint import Checkpoint
from msmqwire.capture.parts import Part
from msmqwire.capture.ranges import END_OF_FILE, SplitReader, cuts_of
from msmqwire.capture.schema import CAPTURE, DEFAULT_PORTS, FRAMES, PACKET_KINDS, TRANSPORTS, StreamLimits
from msmqwire.capture.selection import PayloadSelection
from msmqwire.capture.sources import CapturedFrames, OpenFile, Source, SourceFile, files_of
from msmqwire.capture.state import go_behind, go_on, stop_at
from msmqwire.capture.stats import CaptureStats
from msmqwire.capture.streams import StreamTable
from msmqwire.capture.times import nanoseconds
from msmqwire.columns import Table
from msmqwire.errors import CaptureError

__all__ = ["Capture", "Checkpoints", "Ports", "checkpoints", "open"]

BLOCK_SIZE = 1 << 20
# A capture without a frame: what is left of a file that was read to its end
NOTHING = bytes.fromhex("d4c3b2a1 0200 0400 00000000 00000000 00000400 01000000")

Item = TypeVar("Item")
Ports: TypeAlias = "Iterable[int] | Mapping[str, Iterable[int]]"


def _ports_by_transport(ports: Ports) -> dict[str, frozenset[int]]:
    """The ports of every transport; those given for all are the same for each."""
    if not isinstance(ports, Mapping):
        return dict.fromkeys(TRANSPORTS, frozenset(ports))
    unknown = [name for name in ports if name not in TRANSPORTS]
    if unknown:
        raise ValueError(f"{', '.join(map(repr, unknown))}: no such transport; there is {', '.join(TRANSPORTS)}")
    return {name: frozenset(ports.get(name, ())) for name in TRANSPORTS}


def _kinds(packets: Iterable[str]) -> int:
    """The bits of kinds of packets."""
    wanted = {packets} if isinstance(packets, str) else set(packets)
    unknown = sorted(wanted.difference(PACKET_KINDS))
    if unknown:
        raise ValueError(f"{', '.join(map(repr, unknown))}: no kind of packet; there is {', '.join(PACKET_KINDS)}")
    return sum(1 << bit for bit, name in enumerate(PACKET_KINDS) if name in wanted)


def _nanoseconds(name: str, time: datetime | int | None) -> int | None:
    """Since 1970, as captures have it."""
    if not isinstance(time, datetime):
        return time
    if time.tzinfo is None:
        raise ValueError(f"{name}={time.isoformat()}: has no time zone; captures are in UTC")
    return nanoseconds(time)


def _selection(
    addresses: Iterable[str], since: datetime | int | None, until: datetime | int | None
) -> PayloadSelection | None:
    """Which payloads are wanted; None for all."""
    wanted = [addresses] if isinstance(addresses, str) else list(addresses)
    if not wanted and since is None and until is None:
        return None
    return PayloadSelection(wanted, _nanoseconds("since", since), _nanoseconds("until", until))


class ClosingIterator(Iterator[Item]):
    """An iterator over what files hold; a context manager that closes them."""

    @abstractmethod
    def close(self) -> None:
        """Close the file that is being read; there is nothing more of it."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Capture(ClosingIterator[Block]):
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
        ports: Ports = DEFAULT_PORTS,
        packets: Iterable[str] = PACKET_KINDS,
        columns: Iterable[str] | None = None,
        block_size: int = BLOCK_SIZE,
        limits: StreamLimits | None = None,
        addresses: Iterable[str] = (),
        since: datetime | int | None = None,
        until: datetime | int | None = None,
        threads: int = 1,
        table: Table = CAPTURE,
        resume: Checkpoint | None = None,
        stop: Checkpoint | None = None,
        final: bool = True,
    ) -> None:
        if threads < 1:
            raise ValueError(f"threads={threads} must be at least 1")
        self.stats = CaptureStats()
        self._selection = _selection(addresses, since, until)
        self._ports = _ports_by_transport(ports)
        self._pool = Pool(block_size, columns, table=table)
        seed = int.from_bytes(os.urandom(8), "little")
        self._kinds = _kinds(packets)
        self._limits = limits or StreamLimits()
        self._streams = StreamTable(self._kinds, self._limits, seed)
        # Frames as they were captured are the same whatever is open
        opens = table is not FRAMES
        reading = [sorted(self._ports[name]) for name in TRANSPORTS], self._kinds, self._limits
        self._part = Part(resume, stop, final=final, reading=repr(reading) if opens else None)
        self._threads = threads if self._part.whole else 1
        self._files = self._part.files(list(files_of(source)))
        if opens:
            self._part.begin(self._streams)
        self._file: OpenFile | CapturedFrames | None = None
        self._reader: FileReader | SplitReader | None = None
        self._last: FileReader | SplitReader | None = None
        self._behind = False
        self._exhausted = False
        self._open_next()

    def __next__(self) -> Block:
        while self._reader is not None:
            block = self._reader.next_block()
            if block is not None:
                return block
            self._leave()
            self._open_next()
        raise StopIteration

    def close(self) -> None:
        """Close the file that is being read; blocks stay good, and there are no more of them."""
        if isinstance(self._reader, SplitReader):
            self._reader.close()
        self._reader = None
        self._files = []
        if self._file is not None:
            self._file.close()
            self._file = None

    def checkpoint(self) -> Checkpoint:
        """The place where reading ended, once there are no more blocks.

        That is ``stop``; or, with ``final=False``, the place where what is whole ended; or else the end of the capture,
        with nothing left open.

        Raises
        ------
        RuntimeError
            There may be more blocks, or there was no file.
        """
        if not self._exhausted:
            raise RuntimeError("a capture has a checkpoint when all its blocks were read")
        stop = self._part.stop
        if stop is not None and not stop.offset:
            return self._part.checkpoint_before(stop.file, self._streams)
        if self._last is None:
            raise RuntimeError("a capture of no files has no checkpoint")
        return self._part.checkpoint_of(self._last, self._streams, behind=self._behind)

    def _pass_on(self, size: int) -> Checkpoint | None:
        """Read about ``size`` bytes and forget their rows; the place behind them, None when there are no more."""
        if self._reader is None:
            if not self._files:
                return None
            self._open_next()
        while self._reader is not None:
            reader = self._reader
            assert isinstance(reader, FileReader)
            begin = reader.place
            inside = self._file is not None and self._file.seekable
            if reader.pass_to(begin + size if inside else END_OF_FILE):
                return self._part.checkpoint_of(reader, self._streams, behind=False)
            size -= reader.place - begin
            self._leave()
            if size <= 0 and self._files:
                return self._part.checkpoint_before(self._files[0].name, self._streams)
            self._open_next()
        return self.checkpoint()

    def _leave(self) -> None:
        """The file has been read as far as it is to be."""
        reader = self._reader
        assert reader is not None
        if self._file is not None:
            if self._file.damage:
                self.stats.cut(self._file.name, reader.end, self._file.damage)
            self._file.close()
        self.stats.bytes_read -= reader.end - reader.place
        self._file = self._reader = None
        self._last = reader
        if not self._files:
            self._part.check_end(reader)

    def _open_next(self) -> None:
        """Go on to the next file, if there is one, and read its header."""
        self._exhausted = not self._files
        if not self._files:
            return
        file = self._files.pop(0)
        resume = self._part.resume if self._last is None else None
        try:
            if resume is None or not resume.offset:
                self._file = file.open()
                self._reader = self._reader_of(self._file, last=not self._files)
            else:
                self._reader = self._resumed(file, resume, last=not self._files)
        except BaseException as error:
            damage = "" if self._file is None else self._file.damage
            self.close()
            if damage and isinstance(error, CaptureError):
                raise CaptureError(f"{file.name}: {damage}") from None
            raise

    def _resumed(self, file: SourceFile, resume: Checkpoint, *, last: bool) -> FileReader:
        """What goes on inside a file, or behind it."""
        if not self._part.resume_inside:
            reader = self._file_reader(file.name, io.BytesIO(NOTHING).readinto, last=last, behind=True)
            go_behind(reader, resume.offset, resume.frames)
            return reader
        opened = self._file = file.open()
        if isinstance(opened, CapturedFrames):
            raise ValueError(f"{file.name}: reading cannot go on inside frames that were taken out")
        reader = self._file_reader(file.name, opened.read_into, last=last, behind=not opened.seekable)
        go_on(reader, opened.seek, resume.offset, resume.frames, self._part.resume_inside)
        return reader

    def _reader_of(self, file: OpenFile | CapturedFrames, *, last: bool) -> FileReader | SplitReader:
        """What reads a file, in ranges where that is worth while."""
        if isinstance(file, CapturedFrames):
            self._behind = True
            return CapturedFramesReader(
                file.runs(), self._ports, self._pool, self._streams, self.stats, selection=self._selection, last=last
            )
        descriptor = file.descriptor if self._threads > 1 else None
        cuts = () if descriptor is None else cuts_of(os.fstat(descriptor).st_size)
        if descriptor is None or not cuts:
            return self._file_reader(file.name, file.read_into, last=last, behind=not file.seekable)
        self._behind = True
        return SplitReader(
            file.name,
            descriptor,
            self._ports,
            self._pool,
            self._streams,
            self.stats,
            cuts=cuts,
            threads=self._threads,
            kinds=self._kinds,
            limits=self._limits,
            selection=self._selection,
            last=last,
        )

    def _file_reader(
        self, name: str, read_into: Callable[[memoryview], int], *, last: bool, behind: bool
    ) -> FileReader:
        """What reads a file; ``behind``: to its end, since reading cannot go on inside it later."""
        part = self._part
        self._behind = behind or part.finishes or not last
        reader = FileReader(
            name,
            read_into,
            self._ports,
            self._pool,
            self._streams,
            self.stats,
            selection=self._selection,
            last=last and part.finishes,
            growing=last and part.grows and not behind,
        )
        if last and part.stop is not None and part.stop_inside:
            if behind:
                raise ValueError(f"{name}: is compressed, or a pipe: no part of it can end inside it")
            stop_at(reader, part.stop.offset, part.stop_inside)
        return reader


class Checkpoints(ClosingIterator[Checkpoint]):
    """Checkpoints of a capture about every ``size`` bytes, the last at its end; a context manager.

    Attributes
    ----------
    stats : CaptureStats
        What became of the frames read so far; in the end, of the capture.
    """

    def __init__(self, capture: Capture, size: int) -> None:
        if size < 1:
            raise ValueError(f"size={size} must be at least 1")
        self._capture = capture
        self._size = size
        self.stats = capture.stats

    def __next__(self) -> Checkpoint:
        checkpoint = self._capture._pass_on(self._size)
        if checkpoint is None:
            raise StopIteration
        return checkpoint

    def close(self) -> None:
        """Close the file that is being read; there are no more checkpoints."""
        self._capture.close()


def open(
    source: Source,
    *,
    ports: Ports = DEFAULT_PORTS,
    packets: Iterable[str] = PACKET_KINDS,
    columns: Iterable[str] | None = None,
    block_size: int = BLOCK_SIZE,
    limits: StreamLimits | None = None,
    addresses: Iterable[str] = (),
    since: datetime | int | None = None,
    until: datetime | int | None = None,
    threads: int = 1,
    resume: Checkpoint | None = None,
    stop: Checkpoint | None = None,
    final: bool = True,
) -> Capture:
    """Read the payloads of pcap and pcapng captures, a block at a time.

    A payload is a UDP datagram, an IPX packet, or an MSMQ packet out of a TCP stream that was put back in order.

    Parameters
    ----------
    source : path, glob, binary file object, CapturedFrames, or a list of these
        ``"-"`` is standard input. Files are read in the order given, those of a glob by name. They may be compressed
        (gzip, zstd, lz4, xz, bzip2), whatever their names; zstd and lz4 need ``msmqwire[compression]``.
    ports : iterable of int, or a mapping of transports to such
        A payload belongs to the capture when its source or destination port is one of these. A mapping has ports for
        each of ``udp``, ``tcp`` and ``ipx`` that is to be read.
    packets : iterable of str
        Which packets of TCP streams are payloads: ``"message"`` and ``"session"``, both by default.
    columns : iterable of str, optional
        The capture columns to build (``file``, ``frame``, ``time``, ``src``, ...), all of them by default; ``()`` for
        none.
    block_size : int
        Bytes read at once, at least 4096; a block holds the payloads of one such read.
    limits : StreamLimits, optional
        What may be held of TCP streams.
    addresses : iterable of str
        Addresses and networks (``"10.20.1.25"``, ``"2001:db8::/32"``), of which the sender or the receiver of a payload
        must have one; empty for all.
    since, until : datetime.datetime with a time zone, or int
        The time, or nanoseconds since 1970, from which on and before which a payload must have been captured; a packet
        out of a stream its last frame.
    threads : int
        How many read ranges of a big file side by side. What comes out is the same. Compressed files, pipes and open
        file objects are read from their beginning to their end, and so are parts.
    resume : Checkpoint, optional
        Go on there, as if what is in front of it had just been read with the same arguments; files of the source in
        front of its file are not looked at.
    stop : Checkpoint, optional
        End there; what is behind it is for another reader, which gets what is still open. Files behind its file are not
        looked at.
    final : bool
        The capture will not grow. Else what is still open at its end is not given up, and a record that is not whole is
        left alone: both are for the reader that resumes at ``checkpoint()``.

    Returns
    -------
    Capture
        An iterator of blocks. ``block.payloads`` are views into the block's memory, which lasts as long as somebody
        looks at it; ``block.capture`` is the Batch of capture columns.

    Raises
    ------
    CaptureError
        A file is no capture, or a glob matches nothing; a checkpoint is damaged, or not of this file. Damage inside a
        capture raises nothing: it is in ``stats``.
    OSError
        A file cannot be opened or read.
    ValueError
        A port, an address, a time or a column that is none; a checkpoint in no file of the source, or inside one that
        can only be read from its beginning.
    """
    return Capture(
        source,
        ports=ports,
        packets=packets,
        columns=columns,
        block_size=block_size,
        limits=limits,
        addresses=addresses,
        since=since,
        until=until,
        threads=threads,
        resume=resume,
        stop=stop,
        final=final,
    )


def checkpoints(
    source: Source,
    size: int,
    *,
    ports: Ports = DEFAULT_PORTS,
    packets: Iterable[str] = PACKET_KINDS,
    limits: StreamLimits | None = None,
    addresses: Iterable[str] = (),
    since: datetime | int | None = None,
    until: datetime | int | None = None,
    resume: Checkpoint | None = None,
    final: bool = True,
) -> Checkpoints:
    """Read captures once, at the speed of framing, for places where they can be cut.

    The parts from each checkpoint to the next, the first from the beginning, can then be read with
    ``open(source, resume=, stop=)`` in any order and by several processes: together they give the rows of a serial
    read, and their stats add up to its.

    Parameters
    ----------
    size : int
        Bytes between two checkpoints; a little more, up to the end of a record. There are none inside a compressed file
        or a pipe.
    source, ports, packets, limits, addresses, since, until, resume, final
        As for ``open``, and as the parts will be read.

    Returns
    -------
    Checkpoints
        An iterator. The last checkpoint is at the end: of the capture, with nothing left open, or with ``final=False``
        of what is whole. ``stats`` of the iterator are then those of the capture.

    Raises
    ------
    CaptureError, OSError, ValueError
        As for ``open``.
    """
    capture = Capture(
        source,
        ports=ports,
        packets=packets,
        columns=(),
        limits=limits,
        addresses=addresses,
        since=since,
        until=until,
        resume=resume,
        final=final,
    )
    return Checkpoints(capture, size)
