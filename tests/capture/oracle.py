"""A second reader of captures, slow and plain, with ``struct`` and nothing else: what the kernels must agree with.

It sees the whole file at once and takes one record and one header at a time. Where the rules are our own (what is
damaged, what is somebody else's, where reading goes on) they are said here a second time.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv6Address

from tests.capture.reading import Row
from tests.capture.stream_oracle import Found, Segment, Streams
from tests.reference import encapsulations
from tests.reference.encapsulations import DamagedError, OtherError, UnsupportedError, need

LARGEST_FRAME, LARGEST_RECORD = 262_144, 262_144 + 65_536
LIFETIME = 30_000_000_000
NUMBERED = {9, 0x204, 0x216, 0x221, 0xBAD, 0x40000BAD}
LARGE = {0x0A0D0D0A, 4, 10, *NUMBERED}  # kinds of blocks that may well be larger than a frame
TYPED = {
    1: (12, 14),
    113: (14, 16),
    276: (0, 20),
    104: (2, 4),
}
IPX = 0x8137
VLANS = {0x8100, 0x88A8, 0x9100, 0x9200}
EXTENSIONS = {0, 43, 44, 51, 60, 135, 139, 140}


class PartError(Exception):
    """The frame holds a part of an IP datagram."""

    def __init__(self, key: tuple[bytes, bytes, int, int], offset: int, more: bool, data: bytes) -> None:
        super().__init__()
        self.key, self.offset, self.more, self.data = key, offset, more, data
        self.path: tuple[str, ...] = ()


@dataclass
class Datagram:
    """An IP datagram that waits for parts: its bytes by their place, and where it ends if that is known."""

    at: int  # the record of the part that came first
    time: int | None
    path: tuple[str, ...]
    repeats: bool  # all its parts are those of a datagram that was complete
    parts: list[tuple[int, bytes, bool]] = field(default_factory=list)
    octets: dict[int, int] = field(default_factory=dict)
    total: int | None = None

    def add(self, part: PartError) -> bool:
        """Put a part where nothing is yet; whether what is there already is the same."""
        end = part.offset + len(part.data)
        if self.total is not None and (end > self.total or (not part.more and end != self.total)):
            raise DamagedError
        if not part.more:
            if any(place >= end for place in self.octets):
                raise DamagedError
            self.total = end
        agrees = True
        for place, octet in enumerate(part.data, part.offset):
            agrees &= self.octets.setdefault(place, octet) == octet
        return agrees

    def whole(self) -> bytes | None:
        """All of it, once it is there."""
        if self.total is None or len(self.octets) < self.total:
            return None
        return bytes(self.octets[place] for place in range(self.total))

    def is_foreign(self, protocol: int, ports: set[int]) -> bool:
        """Whether its ports are there and are not ours."""
        if protocol not in (6, 17) or not all(place in self.octets for place in range(4)):
            return False
        found = struct.unpack(">HH", bytes(self.octets[place] for place in range(4)))
        return not ports & set(found) and not (protocol == 17 and found[1] in encapsulations.TUNNEL_PORTS)


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
    damaged: list[int] = field(default_factory=list)  # offsets
    conflicts: int = 0
    incomplete: int = 0
    told: list[int] = field(default_factory=list)  # offsets of all that is described, in order
    streams: Streams = field(default_factory=Streams)
    skipped: int = 0


def network_layer(frame: bytes, link: int) -> tuple[int, bytes]:
    """The type of the network layer and all behind the link layer."""
    if link in (228, 229):
        return (0x0800 if link == 228 else 0x86DD), frame
    if link in (12, 14, 101):
        return (0x86DD if need(frame, 1)[0] >> 4 == 6 else 0x0800), frame
    if link in (0, 108):
        return loopback(need(frame, 4)), frame[4:]
    if link in (105, 127):
        wireless = encapsulations.wireless(frame, padded=False) if link == 105 else encapsulations.radiotap(frame)
        return logical_link(wireless)
    if link == 192:
        return network_layer(*reversed(encapsulations.packet_information(frame)))
    if link in (9, 51, 219):
        return {9: encapsulations.PPP, 51: 0x8864, 219: 0x8847}[link], frame
    if link == 204:
        need(frame, 1)
        return encapsulations.PPP, frame[1:]
    if link in (50, 104):
        if need(frame, 4)[0] not in (0x0F, 0x8F):
            return encapsulations.PPP, frame
        link = 104
    if link not in TYPED:
        raise UnsupportedError(link)
    at, size = TYPED[link]
    (kind,) = struct.unpack_from(">H", need(frame, size), at)
    kind, rest = tags(kind, frame[size:])
    if kind < 0x600:
        if link == 1 or (link != 104 and kind in (1, 4)):
            return logical_link(rest)
        raise OtherError
    return kind, rest


def tags(kind: int, rest: bytes) -> tuple[int, bytes]:
    """The type and the bytes after VLAN tags."""
    while kind in VLANS:
        _, kind = struct.unpack(">HH", need(rest, 4))
        rest = rest[4:]
    return kind, rest


def loopback(family: bytes) -> int:
    """The type that an address family stands for, in either byte order."""
    kinds = {2: 0x0800, 23: IPX, 24: 0x86DD, 28: 0x86DD, 30: 0x86DD}
    for order in "<>":
        (number,) = struct.unpack(order + "I", family)
        if number in kinds:
            return kinds[number]
    raise OtherError


def logical_link(rest: bytes) -> tuple[int, bytes]:
    """What stands behind a length in place of a type."""
    points = need(rest, 3)[:2]
    if points == b"\xff\xff":
        return IPX, rest
    if points == b"\xe0\xe0":
        return IPX, rest[3:]
    if points == b"\xaa\xaa":
        (kind,) = struct.unpack(">6xH", need(rest, 8))
        if kind >= 0x600:
            return kind, rest[8:]
    raise OtherError


def ipx(packet: bytes, ports: set[int]) -> tuple[str, int, str, int, bytes]:
    """Addresses, sockets and payload of an IPX packet."""
    if len(packet) >= 30:
        target, source = packet[6:18], packet[18:30]
        sockets = struct.unpack(">10xH", source) + struct.unpack(">10xH", target)
        if packet[5] == 5 or not ports & set(sockets):
            raise OtherError
    (length,) = struct.unpack(">2xH26x", need(packet, 30))
    if length < 30:
        raise DamagedError
    texts = [f"{end[:4].hex()}:{end[4:10].hex()}" for end in (source, target)]
    return texts[0], sockets[0], texts[1], sockets[1], need(packet, length)[30:]


def ipv4(packet: bytes) -> tuple[int, str, str, bytes, int]:
    """Protocol, addresses, what follows the header, how long that is by its own account."""
    first, total, number, flags, protocol, source, target = struct.unpack(">BxHHHxBxx4s4s", need(packet, 20))
    header = (first & 15) * 4
    if first >> 4 != 4 or header < 20:
        raise DamagedError
    if protocol not in {6, 17, *encapsulations.CARRIERS}:
        encapsulations.by_protocol(protocol, b"")
    total = total or len(packet)
    if total < header or len(packet) < header:
        raise DamagedError
    if flags & 0x3FFF:
        data = need(packet[header:], total - header)
        key = (source, target, protocol, number)
        raise PartError(key, (flags & 0x1FFF) * 8, bool(flags & 0x2000), data)
    return protocol, str(IPv4Address(source)), str(IPv4Address(target)), packet[header:], total - header


def extensions(rest: bytes, kind: int, length: int, ends: tuple[bytes, bytes]) -> tuple[int, bytes, int]:
    """The last next header, what follows, how long that is by its own account."""
    while kind in EXTENSIONS:
        following, units, flags, number = struct.unpack(">BBHI", need(rest, 8))
        size = 8 if kind == 44 else units * 4 + 8 if kind == 51 else units * 8 + 8
        need(rest, size)
        fragment, rest, kind, length = kind == 44, rest[size:], following, length - size
        if length < 0:
            raise DamagedError
        if fragment and flags & 0xFFF9:
            if kind not in {6, 17, *encapsulations.CARRIERS, *EXTENSIONS}:
                encapsulations.by_protocol(kind, b"")
            raise PartError((*ends, kind, number), flags & 0xFFF8, bool(flags & 1), need(rest, length))
    return kind, rest, length


def ipv6(packet: bytes) -> tuple[int, str, str, bytes, int]:
    """As ``ipv4``, behind all extension headers."""
    first, length, kind, source, target = struct.unpack(">BxxxHBx16s16s", need(packet, 40))
    if first >> 4 != 6:
        raise DamagedError
    rest = packet[40:]
    if length == 0 and kind == 0:
        length = len(rest)
    kind, rest, length = extensions(rest, kind, length, (source, target))
    return kind, str(IPv6Address(source)), str(IPv6Address(target)), rest, length


def segment(source: str, target: str, rest: bytes, room: int) -> Segment:
    """A TCP segment; of one that was cut as much as is there."""
    if room < 20:
        raise DamagedError
    source_port, target_port, sequence, acknowledged, words, flags = struct.unpack(">HHIIBB6x", need(rest, 20))
    header = words // 16 * 4
    if not 20 <= header <= room:
        raise DamagedError
    payload = rest[header:room]
    ends = source, source_port, target, target_port
    return Segment(*ends, sequence, flags, payload, room - header - len(payload), acknowledged)


Packet = tuple[tuple[str, int, str, int, bytes] | Segment, str | None]  # and the encapsulations around it


def transport(
    protocol: int, source: str, target: str, rest: bytes, room: int, ports: set[int], path: tuple[str, ...]
) -> Packet:
    """Addresses, ports and payload of what an IP datagram carries; or its segment."""
    selected = min(len(rest), room) < 4 or ports & set(struct.unpack(">HH", rest[:4]))
    if protocol == 17 and not selected:
        return network(encapsulations.by_port(rest[:room]), ports, path)
    if protocol not in (6, 17):
        return network(encapsulations.by_protocol(protocol, rest[:room]), ports, path)
    if not selected:
        raise OtherError
    shown = "/".join(path) or None
    if protocol == 6:
        return segment(source, target, rest, room), shown
    if room < 8 or len(rest) < 8:
        raise DamagedError
    source_port, target_port, length = struct.unpack(">HHH2x", rest[:8])
    if not 8 <= length <= min(room, len(rest)):
        raise DamagedError
    return (source, source_port, target, target_port, rest[8:length]), shown


def network(following: encapsulations.Next, ports: set[int], path: tuple[str, ...]) -> Packet:
    """What is in the header that follows."""
    kind, rest, name = following
    if name is not None:
        if len(path) == encapsulations.MOST:
            raise UnsupportedError("more than 6 encapsulations")
        path = (*path, name)
    if kind == encapsulations.ETHERNET:
        return network(encapsulations.Next(*network_layer(rest, 1)), ports, path)
    if kind in VLANS or kind < 0x600:
        kind, rest = tags(kind, rest)
        if kind < 0x600:
            kind, rest = logical_link(rest)
        return network(encapsulations.Next(kind, rest), ports, path)
    if kind == IPX:
        return ipx(rest, ports), "/".join(path) or None
    if kind not in (0x0800, 0x86DD):
        return network(encapsulations.by_type(kind, rest), ports, path)
    try:
        packet = ipv4(rest) if kind == 0x0800 else ipv6(rest)
    except PartError as part:
        part.path = path
        raise
    return transport(*packet, ports, path)


def datagram(frame: bytes, link: int, ports: set[int]) -> Packet:
    """Addresses, ports and payload of a frame, or its segment; and the encapsulations around it."""
    return network(encapsulations.Next(*network_layer(frame, link)), ports, ())


def whole_datagram(part: PartError, path: tuple[str, ...], whole: bytes, ports: set[int]) -> Packet:
    """What is in a datagram that was put together, of which this was the last part."""
    source, target, protocol, _ = part.key
    if len(source) == 4:
        texts = str(IPv4Address(source)), str(IPv4Address(target))
        return transport(protocol, *texts, whole, len(whole), ports, path)
    try:
        protocol, rest, room = extensions(whole, protocol, len(whole), (b"", b""))
    except PartError:
        raise OtherError from None
    return transport(protocol, str(IPv6Address(source)), str(IPv6Address(target)), rest, room, ports, path)


# The high bytes, modulo 64, of the ports of encapsulations: only the general way looks for these
TUNNEL_BYTES = {port >> 8 & 63 for port in (*encapsulations.TUNNEL_PORTS, *encapsulations.UNSUPPORTED_PORTS)}


def is_plain(frame: bytes, link: int, ports: set[int]) -> bool:
    """Whether it is a whole UDP datagram in IPv4 without options in Ethernet without tags: its record is believed."""
    if link != 1 or not 42 <= len(frame) <= 14 + 0xFFFF or frame[12:15] != b"\x08\0\x45" or frame[23] != 17:
        return False
    total, flags, length = struct.unpack_from(">H2xH", frame, 16) + struct.unpack_from(">H", frame, 38)
    if not ports & set(struct.unpack_from(">HH", frame, 34)) and frame[36] & 63 in TUNNEL_BYTES:
        return False
    return not flags & 0x3FFF and 8 <= length <= min(total - 20, len(frame) - 34)


class Reader:
    """What both formats share: the account, and the way of a frame."""

    def __init__(self, data: bytes, ports: set[int]) -> None:
        self.data = data
        self.ports = ports
        self.waiting: dict[tuple[bytes, bytes, int, int], Datagram] = {}
        self.complete: dict[object, int] = {}  # parts of datagrams that were complete: the times of the last parts
        self.result = Result()

    def damaged(self, at: int, *, counted: bool = False) -> None:
        """A damaged record at ``at``."""
        self.result.frames += not counted
        self.result.damaged.append(at)
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
        except DamagedError:
            self.damaged(at, counted=True)
        else:
            if packet is None:
                self.result.fragments += 1
            elif isinstance(packet[0], Segment):
                self.result.segments += 1
                self.found(self.result.streams.take(packet[0], self.result.frames, time))
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
                return whole_datagram(part, whole[0], whole[1], self.ports)
            except PartError as error:
                part = error

    def add(self, at: int, part: PartError, time: int | None) -> tuple[tuple[str, ...], bytes] | None:
        """Add a part to its datagram; the encapsulations around the datagram, and its bytes, if it is complete."""
        if not part.data or part.offset + len(part.data) > 65535 or (part.more and len(part.data) % 8):
            raise DamagedError
        key = part.offset, part.data, part.more
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
        return waiting.path, whole

    def forget(self, key: tuple[bytes, bytes, int, int]) -> None:
        """A datagram will not be complete."""
        datagram = self.waiting.pop(key)
        if not datagram.repeats and not datagram.is_foreign(key[2], self.ports):
            self.result.incomplete += 1
            self.result.told.append(datagram.at)

    def give_up(self) -> None:
        """The capture has ended; datagrams that may be ours are not whole."""
        for key in [*self.waiting]:
            self.forget(key)

    def found(self, packets: Iterable[Found]) -> None:
        """Packets out of streams."""
        for packet in packets:
            row = Row(packet.frame, packet.time, *packet[3:8], packet.first_frame, packet.offset)
            self.result.rows.append(row)

    def lose(self, at: int, candidates: Iterator[int]) -> int:
        """The next place where a record may begin, else the end."""
        found = next(candidates, len(self.data))
        self.result.skipped += found - at
        return found

    def cut(self, at: int) -> Result:
        """The file ends inside the record at ``at``."""
        if at < len(self.data):
            self.damaged(at)
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
                self.damaged(at)
                at = self.lose(at, self.candidates(at + 1))
                continue
            frame = self.data[at + 16 : at + 16 + captured]
            if len(frame) < captured or not (
                is_plain(frame, link, self.ports) or self.sane(at) or self.followed(at + 16 + captured)
            ):
                self.damaged(at)
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

    def followed(self, at: int) -> bool:
        """Whether a record that is in order stands here, or the end."""
        if at > len(self.data) - 16:
            return at == len(self.data)
        return self.header(at)[2] <= LARGEST_FRAME and self.sane(at)

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
                    self.damaged(at)
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
                self.damaged(at)
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
                self.damaged(at)
            else:
                self.interface(block)
        elif kind in (2, 6):
            head = (len(self.interfaces), 0, 0, 0)
            if len(block) >= 32:
                head = struct.unpack_from(self.order + ("HxxIII" if kind == 2 else "IIII"), block, 8)
            if head[0] >= len(self.interfaces) or head[3] > min(len(block) - 32, LARGEST_FRAME):
                self.damaged(at)
                return
            link = self.interfaces[head[0]][0]
            self.frame(at, block[28 : 28 + head[3]], link, self.time(head[0], head[1] << 32 | head[2]))
        elif kind == 3:
            if len(block) < 16 or not self.interfaces:
                self.damaged(at)
                return
            link, snapshot, _, _ = self.interfaces[0]
            (size,) = struct.unpack_from(self.order + "I", block, 8)
            size = min(size, snapshot or size)
            if size > len(block) - 16 or size > LARGEST_FRAME:
                self.damaged(at)
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
