"""``capture.open``: the payloads of captures, a block at a time."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from types import TracebackType
from typing import TypeAlias

from msmqwire.capture.blocks import Block, FileReader, Pool
from msmqwire.capture.captured import CapturedFramesReader
from msmqwire.capture.ranges import SplitReader, cuts_of
from msmqwire.capture.schema import CAPTURE, DEFAULT_PORTS, PACKET_KINDS, TRANSPORTS, StreamLimits
from msmqwire.capture.selection import PayloadSelection
from msmqwire.capture.sources import CapturedFrames, OpenFile, Source, files_of
from msmqwire.capture.stats import CaptureStats
from msmqwire.capture.streams import StreamTable
from msmqwire.columns import Table
from msmqwire.errors import CaptureError

__all__ = ["Capture", "Ports", "open"]

BLOCK_SIZE = 1 << 20
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

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
    return (time - _EPOCH) // timedelta(microseconds=1) * 1000


def _selection(
    addresses: Iterable[str], since: datetime | int | None, until: datetime | int | None
) -> PayloadSelection | None:
    """Which payloads are wanted; None for all."""
    wanted = [addresses] if isinstance(addresses, str) else list(addresses)
    if not wanted and since is None and until is None:
        return None
    return PayloadSelection(wanted, _nanoseconds("since", since), _nanoseconds("until", until))


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
    ) -> None:
        if threads < 1:
            raise ValueError(f"threads={threads} must be at least 1")
        self._threads = threads
        self.stats = CaptureStats()
        self._selection = _selection(addresses, since, until)
        self._ports = _ports_by_transport(ports)
        self._pool = Pool(block_size, columns, table=table)
        seed = int.from_bytes(os.urandom(8), "little")
        self._kinds = _kinds(packets)
        self._limits = limits or StreamLimits()
        self._streams = StreamTable(self._kinds, self._limits, seed)
        self._files = list(files_of(source))
        self._file: OpenFile | CapturedFrames | None = None
        self._reader: FileReader | SplitReader | None = None
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
        if isinstance(self._reader, SplitReader):
            self._reader.close()
        self._reader = None
        self._files = []
        if self._file is not None:
            self._file.close()
            self._file = None

    def _open_next(self) -> None:
        """Go on to the next file, if there is one, and read its header."""
        if self._file is not None:
            self._file.close()
        self._file = self._reader = None
        if not self._files:
            return
        self._file = self._files.pop(0)()
        try:
            self._reader = self._reader_of(self._file, last=not self._files)
        except BaseException as error:
            damage, name = self._file.damage, self._file.name
            self.close()
            if damage and isinstance(error, CaptureError):
                raise CaptureError(f"{name}: {damage}") from None
            raise

    def _reader_of(self, file: OpenFile | CapturedFrames, *, last: bool) -> FileReader | SplitReader:
        """What reads a file, in ranges where that is worth while."""
        if isinstance(file, CapturedFrames):
            return CapturedFramesReader(
                file.runs(), self._ports, self._pool, self._streams, self.stats, selection=self._selection, last=last
            )
        descriptor = file.descriptor if self._threads > 1 else None
        cuts = () if descriptor is None else cuts_of(os.fstat(descriptor).st_size)
        if descriptor is None or not cuts:
            return FileReader(
                file.name,
                file.read_into,
                self._ports,
                self._pool,
                self._streams,
                self.stats,
                selection=self._selection,
                last=last,
            )
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
        file objects are read from their beginning to their end.

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
    ValueError
        A port, an address, a time or a column that is none.
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
    )
