"""A second reader of TCP streams, slow and plain: one byte at a time, each with the frame it came in.

The kernel must give the same packets and the same account. Where the rules are our own (what is given up and when,
where reading goes on) they are said here a second time.
"""

from __future__ import annotations

import struct
from collections import Counter, OrderedDict
from dataclasses import dataclass, field
from operator import itemgetter
from typing import NamedTuple

FIN, SYN, RST, ACK = 1, 2, 4, 16
SEQUENCES = 1 << 32

# The ends, and whether it is the stream of segments from before the first byte of the one that was there
Key = tuple[str, int, str, int, bool]


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
    acknowledged: int = 0
    encapsulation: str | None = None


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
    encapsulation: str | None
    lost: int = 0  # bytes of it that are missing at its end; with UNFRAMED, of a run those that are not in the row


Origin = tuple[int, int | None]  # the frame of a byte, and its time

#: Bytes of a run that its row has, and the bit of `lost` of such a row.
SHOWN = 64
UNFRAMED = 1 << 31

#: So many bytes of a packet decide no more than one byte less did whether a packet begins.
UNDECIDED = frozenset((2, 3, 4, *range(9, 16)))


def packet_size(data: bytes | bytearray) -> int | None:
    """The whole size of the packet that begins so; 16 while that cannot be told; None if none does."""
    if data[:1] not in (b"", b"\x10") or not b"LIOR".startswith(data[4:8]):
        return None
    if len(data) < 16:
        return 16
    flags, size = map(int, struct.unpack_from("<2xH4xI", data))
    if not 16 <= size <= 4 << 20:
        return None
    return size + (16 if flags & 0x18 == 0x10 else 0)


@dataclass
class Unanswered:
    """A SYN that was not answered yet."""

    first: int
    size: int = 0
    ended: bool = False
    waiting: dict[int, tuple[int, Origin]] = field(default_factory=dict)

    def covers(self, sequence: int) -> bool:
        """Whether a number is one of its bytes, or the next."""
        return (sequence - self.first) % SEQUENCES <= self.size


@dataclass
class Stream:
    """One direction of a connection."""

    first: int
    account: Counter[str]
    ends: tuple[str, int, str, int]
    limit: int
    position: int = 0
    waiting: dict[int, tuple[int, Origin]] = field(default_factory=dict)  # bytes by their place
    open: bytearray = field(default_factory=bytearray)
    origins: list[Origin] = field(default_factory=list)  # of the open bytes
    size: int = 0  # of the packet that is open, by its first 16 bytes
    run: bytearray | None = None  # the bytes since a packet should have begun
    run_origins: list[Origin] = field(default_factory=list)
    skip: int = 0
    searching: bool = False
    ended: bool = False
    end: int = 0  # as far as a FIN, or a segment that was cut, says that there are bytes
    syn_size: int = 0  # bytes in the SYN that began it
    unanswered: Unanswered | None = None
    encapsulation: str | None = None  # of the last segment

    def ahead(self, sequence: int) -> int:
        """How far a sequence number is from the next byte in order."""
        return (sequence - self.first - self.position + SEQUENCES // 2) % SEQUENCES - SEQUENCES // 2

    def is_before(self, sequence: int, length: int) -> bool:
        """Whether all of so many bytes are before the first one."""
        ahead = self.ahead(sequence)
        return 0 < length <= -ahead - self.position and (length, ahead) != (1, -1)

    def take(self, segment: Segment, sequence: int, frame: int, time: int | None) -> list[Found]:
        """The packets that a segment completes."""
        self.encapsulation = segment.encapsulation
        ahead = self.ahead(sequence)
        if segment.flags & RST:  # what it carries is not of the stream
            self.account["bytes"] += len(segment.payload)
            self.account["skipped"] += len(segment.payload)
            self.ended |= ahead >= 0
            return self.drain(flush=ahead >= 0)
        keep_alive = len(segment.payload) == 1 and ahead == -1
        differs = uncompared = False
        after = ahead + len(segment.payload) + segment.missing
        self.ended |= bool(segment.flags & FIN) and after >= 0
        if (segment.flags & FIN or segment.missing) and after >= 0 and ahead <= self.limit:
            self.end = max(self.end, self.position + after)
        self.account["bytes"] += len(segment.payload)
        origin = frame, time
        for at, value in enumerate(segment.payload, self.position + ahead):
            if at < self.position:
                self.account["duplicate"] += 1
                place = at - (self.position - len(self.open))
                differs |= place >= 0 and self.open[place] != value and not keep_alive
                uncompared |= place < 0 and not keep_alive
            elif at in self.waiting:
                self.account["duplicate"] += 1
                differs |= self.waiting[at][0] != value
            else:
                self.waiting[at] = value, origin
        self.account["conflicts"] += differs
        self.account["uncompared"] += uncompared
        return self.drain(flush=False)

    def remember(self, segment: Segment, sequence: int, frame: int, time: int | None) -> None:
        """Keep a SYN that may begin another stream."""
        if self.unanswered is None or self.unanswered.first != sequence:
            self.drop()
            self.unanswered = Unanswered(sequence)
        kept, differs = self.unanswered, False
        kept.size = max(kept.size, len(segment.payload) + segment.missing)
        kept.ended |= bool(segment.flags & FIN)
        self.account["bytes"] += len(segment.payload)
        for at, value in enumerate(segment.payload):
            self.account["duplicate"] += at in kept.waiting
            differs |= kept.waiting.setdefault(at, (value, (frame, time)))[0] != value
        self.account["conflicts"] += differs

    def drop(self) -> None:
        """What an unanswered SYN brought is not read."""
        if self.unanswered is not None:
            self.account["skipped"] += len(self.unanswered.waiting)
            self.account["uncompared"] += bool(self.unanswered.waiting)
            self.unanswered = None

    def drain(self, *, flush: bool) -> list[Found]:
        """Read all bytes in order, and those behind a gap that is given up."""
        found: list[Found] = []
        while True:
            self.feed(found)
            if not self.waiting or not (flush or len(self.waiting) > self.limit):
                return found
            found += self.give_up(min(self.waiting) - self.position)

    def feed(self, found: list[Found]) -> None:
        """Read the bytes in order; add the packets that they complete."""
        while self.position in self.waiting:
            value, origin = self.waiting.pop(self.position)
            self.position += 1
            if self.skip:
                self.skip -= 1
                self.account["skipped"] += 1
                continue
            self.open.append(value)
            self.origins.append(origin)
            count = len(self.open)
            if count in UNDECIDED:
                continue
            if count <= 16:
                self.search(found)
                count = len(self.open)
            if count >= 16 and count == self.size:
                found.append(self.complete())

    def search(self, found: list[Found]) -> None:
        """Skip bytes until a packet may begin with the first that is left; note its size, if all 16 bytes say so."""
        while (size := packet_size(self.open[:16])) is None:
            if not self.searching:
                self.account["no_packet"] += 1
                self.run, self.run_origins = bytearray(), []
            self.searching = True
            self.account["skipped"] += 1
            self.extend_run(1)
            del self.open[0], self.origins[0]
        self.size = size
        if len(self.open) == 16:
            self.searching = False
            found += self.end_run(self.position - 16)

    def extend_run(self, count: int) -> None:
        """Add the first of the open bytes."""
        if self.run is not None:
            self.run += self.open[:count]
            self.run_origins += self.origins[:count]

    def end_run(self, end: int) -> list[Found]:
        """The bytes in which no packet begins, up to a position."""
        if self.run is None:
            return []
        run, self.run = bytes(self.run), None
        (frame, time), (first, _) = max(self.run_origins, key=itemgetter(0)), self.run_origins[0]
        lost = UNFRAMED | max(0, len(run) - SHOWN)
        return [Found(frame, first, time, *self.ends, run[:SHOWN], end - len(run), self.encapsulation, lost)]

    def complete(self) -> Found:
        """All of the packet is there."""
        self.account["packets"] += 1
        self.account["framed"] += len(self.open)
        (frame, time), (first, _) = max(self.origins, key=itemgetter(0)), self.origins[0]
        payload = bytes(self.open)
        self.forget()
        return Found(frame, first, time, *self.ends, payload, self.position - len(payload), self.encapsulation)

    def forget(self) -> None:
        """No packet is open."""
        self.open.clear()
        self.origins.clear()

    def incomplete(self) -> list[Found]:
        """The rows of the run and of the incomplete packet; fewer than 8 bytes found by searching are not a packet."""
        count = len(self.open)
        run = []
        if self.run is not None:
            self.extend_run(count if count < 8 else 0)
            run = self.end_run(self.position - (count if count >= 8 else 0))
        if not count or (self.searching and count < 8):
            return run
        total = 16 if count < 16 else self.size
        (frame, time), (first, _) = max(self.origins, key=itemgetter(0)), self.origins[0]
        place = self.position - count, self.encapsulation, total - count
        return [*run, Found(frame, first, time, *self.ends, bytes(self.open), *place)]

    def give_up(self, gap: int) -> list[Found]:
        """Go on behind what is missing; what there is of the packet that lost bytes."""
        found = self.incomplete()
        self.account["gaps"] += 1
        self.account["missing"] += gap
        rest = self.skip
        if len(self.open) >= 16:
            rest = (packet_size(self.open[:16]) or 0) - len(self.open)
        self.account["skipped"] += len(self.open)
        self.forget()
        self.skip = max(0, rest - gap)
        self.searching = True
        self.position += gap
        return found

    def close(self) -> list[Found]:
        """Nothing more comes."""
        found = self.drain(flush=True)
        self.account["unfinished"] += bool(self.open) and not self.searching
        found += self.incomplete()
        self.account["skipped"] += len(self.open)
        self.forget()
        if self.end > self.position:
            self.account["gaps"] += 1
            self.account["missing"] += self.end - self.position
            self.end = 0
        return found

    @property
    def held(self) -> int:
        """Bytes that wait."""
        return len(self.waiting) + len(self.open) + len(self.unanswered.waiting if self.unanswered else ())


class Streams:
    """All streams of a capture."""

    def __init__(self, *, limit: int = 1 << 20, most: int = 1 << 16) -> None:
        self.limit = limit
        self.most = most
        self.streams: OrderedDict[Key, Stream] = OrderedDict()
        self.account: Counter[str] = Counter()

    def begin(self, key: Key, first: int) -> list[Found]:
        """A stream, in the place of the one that had its key; the packets that its SYN brought."""
        old = self.streams.get(key)
        stream = Stream(first, self.account, key[:4], self.limit)
        self.streams[key] = stream  # where the old one was among those that are forgotten in turn
        self.account["streams"] += 1
        if old is None:
            return []
        assert not old.waiting
        assert not old.open
        stream.encapsulation = old.encapsulation
        if old.unanswered is not None and old.unanswered.first == first:
            stream.syn_size, stream.ended = old.unanswered.size, old.unanswered.ended
            stream.waiting, old.unanswered = old.unanswered.waiting, None
        old.drop()
        return stream.drain(flush=False)

    def answer(self, segment: Segment) -> tuple[list[Found], bool]:
        """A SYN with ACK begins the stream of the SYN that it answers; whether it answers one."""
        found = []
        key = (segment.dst, segment.dst_port, segment.src, segment.src_port, False)
        stream = self.streams.get(key)
        if stream is None:
            return [], False
        if stream.unanswered is not None and stream.unanswered.covers(segment.acknowledged):
            found = stream.close()
            found += self.begin(key, stream.unanswered.first)
        stream = self.streams[key]
        covered = (segment.acknowledged - stream.first) % SEQUENCES <= stream.syn_size
        return found, covered and stream.position <= stream.syn_size

    def begins(self, stream: Stream, segment: Segment, sequence: int, *, answers: bool) -> bool:
        """Whether a new stream begins between the ends of one."""
        if segment.flags & RST:
            return False
        if segment.flags & SYN:
            return stream.ended or (answers and sequence != stream.first)
        length = len(segment.payload) + segment.missing
        if stream.unanswered is None or not (length or segment.flags & FIN):
            return False
        return stream.unanswered.covers(sequence) and stream.ahead(sequence) != 0

    def take(self, segment: Segment, frame: int, time: int | None = None) -> list[Found]:
        """The packets that a segment completes."""
        length = len(segment.payload) + segment.missing
        if not length and not segment.flags & (SYN | FIN | RST):
            return []
        if segment.flags & RST:
            length, segment = 0, segment._replace(flags=segment.flags & ~SYN)
        found: list[Found] = []
        answers = begins = False
        key: Key = (*segment[:4], False)
        syn = bool(segment.flags & SYN)
        sequence = (segment.sequence + syn) % SEQUENCES
        if syn and segment.flags & ACK:
            found, answers = self.answer(segment)
        stream = self.streams.get(key)
        if stream is not None:
            begins = self.begins(stream, segment, sequence, answers=answers)
            if not begins and not syn and stream.is_before(sequence, length):
                key = (*segment[:4], True)
                stream = self.streams.get(key)
                begins = stream is not None and (
                    stream.is_before(sequence, length) or stream.ahead(sequence) > self.limit
                )
        if stream is None:
            if not length and not syn:
                self.account["bytes"] += len(segment.payload)
                self.account["skipped"] += len(segment.payload)
                return found
            if len(self.streams) >= self.most:
                oldest = next(iter(self.streams))
                found += self.streams[oldest].close()
                self.streams[oldest].drop()
                self.account["evictions"] += not self.streams.pop(oldest).ended
        elif begins:
            found += stream.close()
        if stream is None or begins:
            kept = None if stream is None or syn else stream.unanswered
            found += self.begin(key, kept.first if kept else sequence)
        stream = self.streams[key]
        if syn and sequence != stream.first:  # it may be forged
            stream.remember(segment, sequence, frame, time)
            return found
        if syn:
            stream.syn_size = max(stream.syn_size, length)
        self.streams.move_to_end(key)
        return found + stream.take(segment, sequence, frame, time)

    def finish(self) -> list[Found]:
        """The capture has ended."""
        found: list[Found] = []
        for stream in self.streams.values():
            found += stream.close()
            stream.drop()
        return found
