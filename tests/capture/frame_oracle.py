"""What a captured frame holds, read slowly with ``struct``: a datagram, a segment, or a part of an IP datagram."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv6Address

from tests.capture.stream_oracle import Segment
from tests.reference import encapsulations
from tests.reference.encapsulations import DamagedError, OtherError, UnsupportedError, need

TYPED = {1: (12, 14), 113: (14, 16), 276: (0, 20), 104: (2, 4)}  # link types: place of the type, size of the header
IPX = 0x8137
VLANS = {0x8100, 0x88A8, 0x9100, 0x9200}
EXTENSIONS = {0, 43, 44, 51, 60, 135, 139, 140}
PAYLOADS = {6, 17, 51, *encapsulations.CARRIERS}  # protocols of IP in which payloads may be


class PartError(Exception):
    """The frame holds a part of an IP datagram."""

    def __init__(self, key: tuple[bytes, bytes, int, int], protocol: int, offset: int, more: bool, data: bytes) -> None:
        super().__init__()
        self.key, self.protocol, self.offset, self.more, self.data = key, protocol, offset, more, data
        self.path: tuple[str, ...] = ()


@dataclass
class Datagram:
    """An IP datagram that waits for parts: its bytes by their place, and where it ends if that is known."""

    at: int  # the record of the part that came first
    time: int | None
    path: tuple[str, ...]
    repeats: bool  # all its parts are those of a datagram that was complete
    parts: list[tuple[int, bytes, bool, int]] = field(default_factory=list)
    octets: dict[int, int] = field(default_factory=dict)
    total: int | None = None
    protocol: int = 0  # of the part with the first byte

    def add(self, part: PartError) -> bool:
        """Put a part where nothing is yet; whether what is there already is the same."""
        end = part.offset + len(part.data)
        if self.total is not None and (end > self.total or (not part.more and end != self.total)):
            raise DamagedError
        if not part.more:
            if any(place >= end for place in self.octets):
                raise DamagedError
            self.total = end
        if part.offset == 0 and 0 not in self.octets:
            self.protocol = part.protocol
        agrees = True
        for place, octet in enumerate(part.data, part.offset):
            agrees &= self.octets.setdefault(place, octet) == octet
        return agrees

    def whole(self) -> bytes | None:
        """All of it, once it is there."""
        if self.total is None or len(self.octets) < self.total:
            return None
        return bytes(self.octets[place] for place in range(self.total))

    def is_foreign(self, ports: set[int]) -> bool:
        """Whether its ports are there and are not ours, or its protocol has none."""
        protocol = self.protocol
        if 0 in self.octets and protocol not in {*PAYLOADS, *EXTENSIONS, *encapsulations.UNSUPPORTED_PROTOCOLS}:
            return True
        if protocol not in (6, 17) or not all(place in self.octets for place in range(4)):
            return False
        found = struct.unpack(">HH", bytes(self.octets[place] for place in range(4)))
        if ports & set(found):
            return False
        if protocol == 6:
            return True
        first = next((data for offset, data, *_ in self.parts if offset == 0), b"")
        return found[1] not in encapsulations.TUNNEL_PORTS and not encapsulations.is_vxlan(first[8:])


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
        inner, rest = encapsulations.packet_information(frame)
        return network_layer(rest, inner)
    if link == 239:
        return encapsulations.netfilter_log(frame)
    if link == 258 or (link == 149 and encapsulations.is_packet_tap(frame)):
        inner, rest = encapsulations.packet_tap(frame)
        return network_layer(rest, inner)
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


def ipx(packet: bytes, ports: set[int], path: str | None) -> tuple[str, int, str, int, bytes]:
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
    found = texts[0], sockets[0], texts[1], sockets[1], packet[30:length]
    if length > len(packet):
        raise CutError(found, path, length - len(packet))
    return found


def ipv4(packet: bytes) -> tuple[int, str, str, bytes, int]:
    """Protocol, addresses, what follows the header, how long that is by its own account."""
    first, total, number, flags, protocol, source, target = struct.unpack(">BxHHHxBxx4s4s", need(packet, 20))
    header = (first & 15) * 4
    if first >> 4 != 4 or header < 20:
        raise DamagedError
    if protocol not in PAYLOADS and (protocol not in (50, 113) or flags & 0x3FFF):
        encapsulations.by_protocol(protocol, b"")
    total = total or len(packet)
    if total < header or len(packet) < header:
        raise DamagedError
    if flags & 0x3FFF:
        data = need(packet[header:], total - header)
        key = (source, target, protocol, number)
        raise PartError(key, protocol, (flags & 0x1FFF) * 8, bool(flags & 0x2000), data)
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
            # RFC 8200 4.5: the next header is not among what fragments of a datagram have in common
            raise PartError((*ends, 0, number), kind, flags & 0xFFF8, bool(flags & 1), need(rest, length))
    return kind, rest, length


def ipv6(packet: bytes) -> tuple[int, str, str, bytes, int]:
    """As ``ipv4``, behind all extension headers."""
    first, length, kind, source, target = struct.unpack(">BxxxHBx16s16s", need(packet, 40))
    if first >> 4 != 6:
        raise DamagedError
    rest = packet[40:]
    length = length or len(rest)
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


class CutError(DamagedError):
    """A datagram lost bytes at its end: its ends and what there is of its payload, how many, and what is around it."""

    def __init__(self, packet: tuple[str, int, str, int, bytes], path: str | None, lost: int) -> None:
        super().__init__()
        self.packet, self.path, self.lost = packet, path, lost


Packet = tuple[tuple[str, int, str, int, bytes] | Segment, str | None]  # and the encapsulations around it


def transport(
    protocol: int, source: str, target: str, rest: bytes, room: int, ports: set[int], path: tuple[str, ...]
) -> Packet:
    """Addresses, ports and payload of what an IP datagram carries; or its segment."""
    protocol, rest, room = encapsulations.security(protocol, rest, room)
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
    if not 8 <= length <= room:
        raise DamagedError
    if length > len(rest):
        raise CutError((source, source_port, target, target_port, rest[8:]), shown, length - len(rest))
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
        shown = "/".join(path) or None
        return ipx(rest, ports, shown), shown
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


def whole_datagram(part: PartError, path: tuple[str, ...], protocol: int, whole: bytes, ports: set[int]) -> Packet:
    """What is in a datagram that was put together, of which this was the last part."""
    source, target, _, _ = part.key
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
    if not ports & set(struct.unpack_from(">HH", frame, 34)) and (
        frame[36] & 63 in TUNNEL_BYTES or (length >= 16 and frame[42:46] == b"\x08\0\0\0")
    ):
        return False
    return not flags & 0x3FFF and 8 <= length <= min(total - 20, len(frame) - 34)
