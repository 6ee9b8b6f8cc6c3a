"""A second reader of captures, slow and plain, with ``struct`` and nothing else: what the kernels must agree with.

It sees the whole file at once and takes one record and one header at a time. Where the rules are our own (what is
malformed, what is somebody else's, where reading goes on) they are said here a second time.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from tests.capture.frame_oracle import CutError, Datagram, Packet, PartError, datagram, is_plain, whole_datagram
from tests.capture.reading import Row
from tests.capture.stream_oracle import Found, Segment, Streams
from tests.reference.encapsulations import DamagedError, OtherError, UnsupportedError

LARGEST_FRAME, LARGEST_RECORD = 262_144, 262_144 + 65_536
LIFETIME = 30_000_000_000
NUMBERED = {9, 0x204, 0x216, 0x221, 0xBAD, 0x40000BAD}
LARGE = {0x0A0D0D0A, 4, 10, *NUMBERED}  # kinds of blocks that may well be larger than a frame


@dataclass
class Result:
    """What was read, and the account."""

    rows: list[Row] = field(default_factory=list)
    frames: int = 0
    segments: int = 0
    other: int = 0
    unsupported: dict[str | int, int] = field(default_factory=dict)
    invalid_times: int = 0
    fragments: int = 0
    malformed: list[int] = field(default_factory=list)  # offsets
    conflicts: int = 0
    incomplete: int = 0
    told: list[int] = field(default_factory=list)  # offsets of all that is described, in order
    streams: Streams = field(default_factory=Streams)
    skipped: int = 0


class Reader:
    """What both formats share: the account, and the way of a frame."""

    def __init__(self, data: bytes, ports: set[int]) -> None:
        self.data = data
        self.ports = ports
        self.waiting: dict[tuple[bytes, bytes, int, int], Datagram] = {}
        self.complete: dict[object, int] = {}  # parts of datagrams that were complete: the times of the last parts
        self.result = Result()

    def malformed(self, at: int, *, counted: bool = False) -> None:
        """A malformed record at ``at``."""
        self.result.frames += not counted
        self.result.malformed.append(at)
        self.result.told.append(at)

    def frame(self, at: int, data: bytes, link: int, time: int | None) -> None:
        """A frame of the record at ``at``."""
        self.result.frames += 1
        try:
            packet = self.packet(at, data, link, time)
        except OtherError:
            self.result.other += 1
        except UnsupportedError as error:
            (what,) = error.args
            self.result.unsupported[what] = self.result.unsupported.get(what, 0) + 1
        except CutError as cut:
            self.malformed(at, counted=True)
            self.result.rows.append(Row(self.result.frames, time, *cut.packet, encapsulation=cut.path, lost=cut.lost))
        except DamagedError:
            self.malformed(at, counted=True)
        else:
            if packet is None:
                self.result.fragments += 1
            elif isinstance(packet[0], Segment):
                self.result.segments += 1
                segment = packet[0]._replace(encapsulation=packet[1])
                self.found(self.result.streams.take(segment, self.result.frames, time))
            else:
                self.result.rows.append(Row(self.result.frames, time, *packet[0], encapsulation=packet[1]))

    def packet(self, at: int, data: bytes, link: int, time: int | None) -> Packet | None:
        """What a frame holds; None if it waits for other parts of its datagram."""
        try:
            return datagram(data, link, self.ports)
        except PartError as error:
            part = error
        while True:
            whole = self.add(at, part, time)
            if whole is None:
                return None
            try:
                return whole_datagram(part, *whole, self.ports)
            except PartError as error:
                part = error

    def add(self, at: int, part: PartError, time: int | None) -> tuple[tuple[str, ...], int, bytes] | None:
        """Add a part to its datagram; if it is complete, the encapsulations around it, its protocol and its bytes."""
        if not part.data or part.offset + len(part.data) > 65535 or (part.more and len(part.data) % 8):
            raise DamagedError
        key = part.offset, part.data, part.more, part.protocol
        before = self.complete.get((part.key, key))
        repeated = before is not None and abs((time or 0) - before) <= LIFETIME
        waiting = self.waiting.get(part.key)
        if waiting is not None:
            late = None not in (time, waiting.time) and abs((time or 0) - (waiting.time or 0)) > LIFETIME
            if late or (waiting.repeats and not repeated):
                self.forget(part.key)
        waiting = self.waiting.setdefault(part.key, Datagram(at, time, part.path, repeated))
        if not waiting.add(part):
            self.result.conflicts += 1
            self.result.told.append(at)
        waiting.parts.append(key)
        whole = waiting.whole()
        if whole is None:
            return None
        del self.waiting[part.key]
        self.complete.update(((part.key, key), time or 0) for key in waiting.parts)
        return waiting.path, waiting.protocol, whole

    def forget(self, key: tuple[bytes, bytes, int, int]) -> None:
        """A datagram will not be complete."""
        datagram = self.waiting.pop(key)
        if not datagram.repeats and not datagram.is_foreign(self.ports):
            self.result.incomplete += 1
            self.result.told.append(datagram.at)

    def give_up(self) -> None:
        """The capture has ended; datagrams that may be ours are not whole."""
        for key in [*self.waiting]:
            self.forget(key)

    def found(self, packets: Iterable[Found]) -> None:
        """Packets out of streams."""
        for packet in packets:
            place = packet.first_frame, packet.offset, packet.encapsulation, packet.lost
            self.result.rows.append(Row(packet.frame, packet.time, *packet[3:8], *place))

    def lose(self, at: int, candidates: Iterator[int]) -> int:
        """The next place where a record may begin, else the end."""
        found = next(candidates, len(self.data))
        self.result.skipped += found - at
        return found

    def cut(self, at: int) -> Result:
        """The file ends inside the record at ``at``."""
        if at < len(self.data):
            self.malformed(at)
            self.result.skipped += len(self.data) - at
        return self.result


class Pcap(Reader):
    """The classic format."""

    def read(self) -> Result:
        """All of the file."""
        magic = self.data[:4]
        self.order = "<" if magic in (b"\xd4\xc3\xb2\xa1", b"\x4d\x3c\xb2\xa1") else ">"
        self.nano = magic in (b"\x4d\x3c\xb2\xa1", b"\xa1\xb2\x3c\x4d")
        link = struct.unpack_from(self.order + "I", self.data, 20)[0] & 0xFFFF
        at = 24
        while len(self.data) - at >= 16:
            seconds, fraction, captured, _ = self.header(at)
            if captured > LARGEST_FRAME:
                self.malformed(at)
                at = self.lose(at, self.candidates(at + 1))
                continue
            frame = self.data[at + 16 : at + 16 + captured]
            if len(frame) < captured or not (
                is_plain(frame, link, self.ports) or self.sane(at) or self.followed(at, at + 16 + captured)
            ):
                self.malformed(at)
                at = self.lose(at, self.candidates(at + 1))
                continue
            self.result.invalid_times += fraction >= (1_000_000_000 if self.nano else 1_000_000)
            time = seconds * 1_000_000_000 + fraction * (1 if self.nano else 1000)
            self.frame(at, frame, link, time)
            at += 16 + captured
        return self.cut(at)

    def header(self, at: int) -> tuple[int, int, int, int]:
        """The four numbers of a record."""
        one, two, three, four = struct.unpack_from(self.order + "4I", self.data, at)
        return one, two, three, four

    def sane(self, at: int) -> bool:
        """Whether the numbers of the record are in order."""
        _, fraction, captured, original = self.header(at)
        return fraction < 1_000_000_000 and captured <= original

    def followed(self, at: int, following: int) -> bool:
        """Whether the record is followed by one that is in order or near in time, or by the end."""
        if following > len(self.data) - 16:
            return following == len(self.data)
        seconds, fraction, captured, _ = self.header(following)
        near = fraction < 1_000_000_000 and abs(seconds - self.header(at)[0]) <= 86400
        return captured <= LARGEST_FRAME and (near or self.sane(following))

    def plausible(self, at: int) -> bool:
        """Whether a record could begin here."""
        if at > len(self.data) - 16:
            return False
        seconds, _, captured, original = self.header(at)
        return seconds > 0 and 0 < captured <= LARGEST_FRAME and original <= 1 << 24 and self.sane(at)

    def candidates(self, start: int) -> Iterator[int]:
        """Places from ``start`` on that look like a record behind which another follows, or the end."""
        for at in range(start, len(self.data) - 15):
            if self.plausible(at):
                seconds, _, captured, _ = self.header(at)
                following = at + 16 + captured
                if following == len(self.data) or (
                    self.plausible(following) and abs(self.header(following)[0] - seconds) <= 86400
                ):
                    yield at


class Pcapng(Reader):
    """The format of blocks."""

    def read(self) -> Result:
        """All of the file."""
        self.order = "<"
        self.interfaces: list[tuple[int, int, int, int]] = []  # link, snapshot, resolution, offset
        at = 0
        while len(self.data) - at >= 12:
            kind, length = struct.unpack_from(self.order + "II", self.data, at)
            least = 12
            if kind == 0x0A0D0D0A:
                magic, least = self.data[at + 8 : at + 12], 28
                if magic not in (b"\x4d\x3c\x2b\x1a", b"\x1a\x2b\x3c\x4d"):
                    self.malformed(at)
                    at = self.lose(at, self.candidates(at + 1))
                    continue
                self.order = "<" if magic == b"\x4d\x3c\x2b\x1a" else ">"
                self.interfaces = []
                (length,) = struct.unpack_from(self.order + "I", self.data, at + 4)
            lost = length < least or length % 4 or (length > LARGEST_RECORD and kind not in LARGE)
            if not lost and length > len(self.data) - at:
                if length > LARGEST_RECORD:
                    break
                lost = True
            resume = at + 1
            if not lost and struct.unpack_from(self.order + "I", self.data, at + length - 4)[0] != length:
                lost = True
                if length > LARGEST_RECORD:
                    resume = at + length - 4
            if lost:
                self.malformed(at)
                at = self.lose(at, self.candidates(resume))
                continue
            self.block(at, kind, self.data[at : at + length])
            at += length
        return self.cut(at)

    def candidates(self, start: int) -> Iterator[int]:
        """Places from ``start`` on that look like a block with the same length at both ends."""
        for at in range(start, len(self.data) - 11):
            order = self.order
            (kind,) = struct.unpack_from(order + "I", self.data, at)
            if kind == 0x0A0D0D0A:
                magic = self.data[at + 8 : at + 12]
                if magic not in (b"\x4d\x3c\x2b\x1a", b"\x1a\x2b\x3c\x4d"):
                    continue
                order = "<" if magic == b"\x4d\x3c\x2b\x1a" else ">"
            elif not 1 <= kind <= 6:
                continue
            (length,) = struct.unpack_from(order + "I", self.data, at + 4)
            if length % 4 or not 12 <= length <= min(LARGEST_RECORD, len(self.data) - at):
                continue
            if struct.unpack_from(order + "I", self.data, at + length - 4)[0] == length:
                yield at

    def block(self, at: int, kind: int, block: bytes) -> None:
        """One block whose ends are right."""
        if kind == 1:
            if len(block) < 20:
                self.malformed(at)
            else:
                self.interface(block)
        elif kind in (2, 6):
            head = (len(self.interfaces), 0, 0, 0)
            if len(block) >= 32:
                head = struct.unpack_from(self.order + ("HxxIII" if kind == 2 else "IIII"), block, 8)
            if head[0] >= len(self.interfaces) or head[3] > min(len(block) - 32, LARGEST_FRAME):
                self.malformed(at)
                return
            link = self.interfaces[head[0]][0]
            time = self.time(head[0], head[1] << 32 | head[2])
            self.result.invalid_times += time is None
            self.frame(at, block[28 : 28 + head[3]], link, time)
        elif kind == 3:
            if len(block) < 16 or not self.interfaces:
                self.malformed(at)
                return
            link, snapshot, _, _ = self.interfaces[0]
            (size,) = struct.unpack_from(self.order + "I", block, 8)
            size = min(size, snapshot or size)
            if size > len(block) - 16 or size > LARGEST_FRAME:
                self.malformed(at)
                return
            self.frame(at, block[12 : 12 + size], link, None)
        elif kind in NUMBERED:
            self.result.frames += 1
            self.result.other += 1

    def interface(self, block: bytes) -> None:
        """An interface description."""
        link, snapshot = struct.unpack_from(self.order + "HxxI", block, 8)
        resolution, offset, rest = 6, 0, block[16:-4]
        while len(rest) >= 4:
            code, size = struct.unpack_from(self.order + "HH", rest)
            if code == 0 or size > len(rest) - 4:
                break
            value = rest[4 : 4 + size]
            if code == 9 and size == 1:
                resolution = value[0]
            elif code == 14 and size == 8:
                (offset,) = struct.unpack(self.order + "q", value)
            rest = rest[4 + (size + 3) // 4 * 4 :]
        self.interfaces.append((link, snapshot, resolution, offset))

    def time(self, number: int, stamp: int) -> int | None:
        """A time stamp in nanoseconds, if a column can hold it."""
        _, _, resolution, offset = self.interfaces[number]
        units: int = 2 ** (resolution & 0x7F) if resolution & 0x80 else 10**resolution
        seconds = stamp // units + offset
        if not -9_223_372_036 < seconds < 9_223_372_036:
            return None
        return seconds * 1_000_000_000 + stamp % units * 1_000_000_000 // units


def read(data: bytes, ports: set[int], streams: Streams | None = None) -> Result:
    """A capture whose file header is sound."""
    reader = (Pcapng if data[:4] == b"\x0a\x0d\x0d\x0a" else Pcap)(data, ports)
    if streams is not None:
        reader.result.streams = streams
    reader.read()
    reader.give_up()
    reader.found(reader.result.streams.finish())
    return reader.result
