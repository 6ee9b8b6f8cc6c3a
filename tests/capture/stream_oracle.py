"""A second reader of TCP streams, slow and plain: one byte at a time, each with the frame it came in.

The kernel must give the same packets and the same account. Where the rules are our own (what is given up and when,
where reading goes on) they are said here a second time.
"""

from __future__ import annotations

import struct
from collections import Counter, OrderedDict
from dataclasses import dataclass, field
from typing import NamedTuple

FIN, SYN, RST = 1, 2, 4
SEQUENCES = 1 << 32


class Segment(NamedTuple):
    """What a frame brings: its payload as far as it was captured, and how many bytes of it were not."""

    src: str
    src_port: int
    dst: str
    dst_port: int
    sequence: int
    flags: int
    payload: bytes
    missing: int = 0


class Found(NamedTuple):
    """A packet, and the frames of its last and first bytes."""

    frame: int
    first_frame: int
    time: int | None
    src: str
    src_port: int
    dst: str
    dst_port: int
    payload: bytes
    offset: int


class Byte(NamedTuple):
    """A byte and where it was captured."""

    value: int
    frame: int
    time: int | None


def packet_size(data: bytes) -> int | None:
    """The whole size of the packet that begins so; 16 while that cannot be told; None if none does."""
    if data[:1] not in (b"", b"\x10") or not b"LIOR".startswith(data[4:8]):
        return None
    if len(data) < 16:
        return 16
    flags, size = struct.unpack_from("<2xH4xI", data)
    if not 16 <= size <= 4 << 20:
        return None
    return size + (16 if flags & 0x18 == 0x10 else 0)


@dataclass
class Stream:
    """One direction of a connection."""

    first: int
    account: Counter[str]
    ends: tuple[str, int, str, int]
    limit: int
    position: int = 0
    waiting: dict[int, Byte] = field(default_factory=dict)
    open: list[Byte] = field(default_factory=list)
    size: int = 0  # of the packet that is open, by its first 16 bytes
    skip: int = 0
    searching: bool = False
    ended: bool = False

    def take(self, segment: Segment, sequence: int, frame: int, time: int | None) -> list[Found]:
        """The packets that a segment completes."""
        ahead = (sequence - self.first - self.position + SEQUENCES // 2) % SEQUENCES - SEQUENCES // 2
        keep_alive = len(segment.payload) == 1 and ahead == -1
        differs = False
        for at, value in enumerate(segment.payload, self.position + ahead):
            self.account["bytes"] += 1
            if at < self.position:
                self.account["duplicate"] += 1
                place = at - (self.position - len(self.open))
                differs |= place >= 0 and self.open[place].value != value and not keep_alive
            elif at in self.waiting:
                self.account["duplicate"] += 1
                differs |= self.waiting[at].value != value
            else:
                self.waiting[at] = Byte(value, frame, time)
        self.account["conflicts"] += differs
        found = self.drain(flush=False)
        self.ended |= bool(segment.flags & (FIN | RST))
        if segment.flags & RST and ahead >= 0:
            found += self.drain(flush=True)
        return found

    def drain(self, *, flush: bool) -> list[Found]:
        """Read all bytes in order, and those behind a gap that is given up."""
        found = []
        while True:
            while self.position in self.waiting:
                packet = self.feed(self.waiting.pop(self.position))
                if packet is not None:
                    found.append(packet)
            if not self.waiting or not (flush or len(self.waiting) > self.limit):
                return found
            self.give_up(min(self.waiting) - self.position)

    def feed(self, byte: Byte) -> Found | None:
        """One byte in order; the packet that it completes."""
        self.position += 1
        if self.skip:
            self.skip -= 1
            self.account["skipped"] += 1
            return None
        self.open.append(byte)
        while len(self.open) <= 16:
            size = packet_size(self.content)
            if size is not None:
                self.size = size
                break
            self.account["no_packet"] += not self.searching
            self.searching = True
            self.account["skipped"] += 1
            del self.open[0]
        if len(self.open) >= 16:
            self.searching = False
            if len(self.open) == self.size:
                return self.complete()
        return None

    @property
    def content(self) -> bytes:
        """The bytes of the open packet that matter for where it ends."""
        return bytes(byte.value for byte in self.open[:16])

    def complete(self) -> Found:
        """All of the packet is there."""
        self.account["packets"] += 1
        self.account["framed"] += len(self.open)
        last = max(self.open, key=lambda byte: byte.frame)
        payload = bytes(byte.value for byte in self.open)
        first = self.open[0].frame
        self.open.clear()
        return Found(last.frame, first, last.time, *self.ends, payload, self.position - len(payload))

    def give_up(self, gap: int) -> None:
        """Go on behind what is missing."""
        self.account["gaps"] += 1
        self.account["missing"] += gap
        rest = self.skip
        if len(self.open) >= 16:
            rest = (packet_size(self.content) or 0) - len(self.open)
        self.account["skipped"] += len(self.open)
        self.open.clear()
        self.skip = max(0, rest - gap)
        self.searching = True
        self.position += gap

    def close(self) -> list[Found]:
        """Nothing more comes."""
        found = self.drain(flush=True)
        self.account["unfinished"] += bool(self.open) and not self.searching
        self.account["skipped"] += len(self.open)
        self.open.clear()
        return found

    @property
    def held(self) -> int:
        """Bytes that wait."""
        return len(self.waiting) + len(self.open)


class Streams:
    """All streams of a capture."""

    def __init__(self, *, limit: int = 1 << 20, most: int = 1 << 16) -> None:
        self.limit = limit
        self.most = most
        self.streams: OrderedDict[tuple[str, int, str, int], Stream] = OrderedDict()
        self.account: Counter[str] = Counter()

    def take(self, segment: Segment, frame: int, time: int | None = None) -> list[Found]:
        """The packets that a segment completes."""
        length = len(segment.payload) + segment.missing
        if not length and not segment.flags & (SYN | FIN | RST):
            return []
        found = []
        ends = segment[:4]
        sequence = (segment.sequence + bool(segment.flags & SYN)) % SEQUENCES
        stream = self.streams.get(ends)
        if stream is None:
            if not length and not segment.flags & SYN:
                return []
            if len(self.streams) >= self.most:
                oldest = next(iter(self.streams))
                found += self.streams[oldest].close()
                self.account["evictions"] += not self.streams.pop(oldest).ended
        elif segment.flags & SYN and sequence != stream.first:
            found += stream.close()
            stream = None
        if stream is None:
            stream = self.streams[ends] = Stream(sequence, self.account, ends, self.limit)
            self.account["streams"] += 1
        self.streams.move_to_end(ends)
        return found + stream.take(segment, sequence, frame, time)

    def finish(self) -> list[Found]:
        """The capture has ended."""
        return [found for stream in self.streams.values() for found in stream.close()]
