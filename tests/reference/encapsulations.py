"""Encapsulations, slow and plain: from one header to the next, with ``struct`` and nothing else."""

from __future__ import annotations

import struct
from typing import NamedTuple

IPV4, IPV6, IPX, ETHERNET, PPP = 0x0800, 0x86DD, 0x8137, 0x6558, 0x880B
VLANS = {0x8100, 0x88A8, 0x9100, 0x9200}
UNSUPPORTED_TYPES = {
    0x88E5: "MACsec",
    0x88E7: "provider backbone bridging",
    0x22F3: "TRILL",
    0x894F: "NSH",
    0x8903: "FabricPath",
}
UNSUPPORTED_PROTOCOLS = {50: "ESP", 108: "IPComp", 115: "L2TP"}
UNSUPPORTED_PORTS = {
    4500: "ESP in UDP",
    1701: "L2TP",
    2152: "GTP-U",
    3544: "Teredo",
    4341: "LISP",
    5247: "CAPWAP",
    37008: "TZSP",
    1194: "OpenVPN",
}
TUNNEL_PORTS = {4789, 8472, 4790, 6081, 6635}
CARRIERS = {4, 41, 47, 137}
MOST = 6


class OtherError(Exception):
    """The frame belongs to another protocol."""


class DamagedError(Exception):
    """The frame cannot be read."""


class UnsupportedError(Exception):
    """The frame has an encapsulation that is not read."""


class Next(NamedTuple):
    """The header that follows: its EtherType, the bytes from it on, and the name of the encapsulation before it."""

    kind: int
    rest: bytes
    name: str | None = None


def need(data: bytes, size: int) -> bytes:
    """The first ``size`` bytes, if they are there."""
    if len(data) < size:
        raise DamagedError
    return data[:size]


def version(rest: bytes) -> int:
    """The EtherType of an IP packet by its version."""
    return IPV6 if need(rest, 1)[0] >> 4 == 6 else IPV4


def mpls(rest: bytes) -> Next:
    """RFC 3032."""
    while not need(rest, 4)[2] & 1:
        rest = rest[4:]
    rest = rest[4:]
    first = need(rest, 1)[0] >> 4
    if first == 1:
        raise OtherError
    if first in (4, 6):
        return Next(version(rest), rest, "mpls")
    known = {IPV4, IPV6, IPX, 0x8100, 0x88A8}
    if first == 0 and not (len(rest) >= 14 and struct.unpack_from(">H", rest, 12)[0] in known):
        need(rest, 4)
        rest = rest[4:]
    return Next(ETHERNET, rest, "mpls")


def pppoe(rest: bytes) -> Next:
    """RFC 2516."""
    kind, code, _, length = struct.unpack(">BBHH", need(rest, 6))
    if (kind, code) != (0x11, 0):
        raise OtherError
    return Next(PPP, rest[6 : 6 + length], "pppoe")


def ppp(rest: bytes) -> Next:
    """RFC 1661, RFC 1662."""
    if need(rest, 1)[0] == 0xFF:
        need(rest, 2)
        rest = rest.removeprefix(b"\xff\x03")
    size = 1 if need(rest, 1)[0] & 1 else 2
    protocol = int.from_bytes(need(rest, size), "big")
    if protocol == 0x3D:
        raise UnsupportedError("multilink PPP")
    if protocol in (0x2D, 0x2F, 0x53, 0x55, 0xFB, 0xFD):
        raise UnsupportedError("compressed or encrypted PPP")
    kinds = {0x21: IPV4, 0x57: IPV6, 0x2B: IPX, 0x281: 0x8847}
    if protocol not in kinds:
        raise OtherError
    return Next(kinds[protocol], rest[size:])


def by_type(kind: int, rest: bytes) -> Next:
    """What an EtherType announces, if that is an encapsulation."""
    if kind in (0x8847, 0x8848):
        return mpls(rest)
    if kind == 0x8864:
        return pppoe(rest)
    if kind == PPP:
        return ppp(rest)
    tags = {0x8926: ("vn-tag", 6), 0x893F: ("e-tag", 8), 0x8909: ("cisco-metadata", 8)}
    if kind in tags:
        name, size = tags[kind]
        return Next(int.from_bytes(need(rest, size)[-2:], "big"), rest[size:], name)
    if kind in UNSUPPORTED_TYPES:
        raise UnsupportedError(UNSUPPORTED_TYPES[kind])
    raise OtherError


def gre(rest: bytes) -> Next:
    """RFC 2784, RFC 2890, RFC 2637."""
    flags, kind = struct.unpack(">HH", need(rest, 4))
    if flags & 7 > 1:
        raise OtherError
    if flags & 0x4000:
        raise UnsupportedError("GRE with routing")
    size = 4 + 4 * sum(bool(flags & bit) for bit in (0x8000, 0x2000, 0x1000))
    size += 4 * (flags & 7 == 1 and bool(flags & 0x80))
    need(rest, size)
    rest = rest[size:]
    if flags & 7 == 1 and not flags & 0x1000:
        raise OtherError
    if kind == 0x88BE:
        size = 8 if flags & 0x1000 else 0
        need(rest, size)
        return Next(ETHERNET, rest[size:], "erspan")
    if kind == 0x22EB:
        last = need(rest, 12)[11]
        frame_type = rest[10] >> 2 & 31
        size = 20 if last & 1 else 12
        need(rest, size)
        rest = rest[size:]
        return Next(version(rest) if frame_type == 2 else ETHERNET, rest, "erspan")
    if kind < 0x600:
        raise OtherError
    return Next(kind, rest, "gre")


def by_protocol(protocol: int, rest: bytes) -> Next:
    """What the protocol of an IP packet announces; ``rest`` ends with the packet."""
    if protocol == 4:
        return Next(IPV4, rest, "ipv4")
    if protocol == 41:
        return Next(IPV6, rest, "ipv6")
    if protocol == 47:
        return gre(rest)
    if protocol == 137:
        return Next(0x8847, rest)
    if protocol in UNSUPPORTED_PROTOCOLS:
        raise UnsupportedError(UNSUPPORTED_PROTOCOLS[protocol])
    raise OtherError


def is_vxlan(data: bytes) -> bool:
    """Whether the bytes are those of VXLAN with an IP packet in Ethernet, whatever their port is."""
    if len(data) < 23 or data[:4] != b"\x08\0\0\0" or data[7]:
        return False
    return {b"\x08\0": 4, b"\x86\xdd": 6}.get(data[20:22]) == data[22] >> 4


def is_inside(protocol: int, data: bytes) -> bool:
    """Whether the bytes are one packet of a protocol, as its lengths say."""
    smallest = {4: 20, 6: 20, 17: 8, 41: 40}
    if protocol not in smallest or len(data) < smallest[protocol]:
        return False
    if protocol == 6:
        return 5 <= data[12] >> 4 <= len(data) // 4 and not data[12] & 14
    at, version, header = {4: (2, 4, 0), 17: (4, None, 0), 41: (4, 6, 40)}[protocol]
    (length,) = struct.unpack_from(">H", data, at)
    return length + header == len(data) and version in (None, data[0] >> 4)


def security(protocol: int, rest: bytes, room: int) -> tuple[int, bytes, int]:
    """Protocol, bytes and length after authentication headers and an ESP that is not encrypted."""
    while protocol == 51:
        following, words = need(rest, 8)[:2]
        size = words * 4 + 8
        need(rest, size)
        if size > room:
            raise DamagedError
        protocol, rest, room = following, rest[size:], room - size
    if protocol != 50:
        return protocol, rest, room
    if room <= len(rest):
        whole = rest[8:room]
        for check in (12, 16, 24, 32, 0):
            size = len(whole) - check
            if room < 8 + 2 + check or size % 4:
                continue
            padding, following = whole[size - 2 : size]
            body, pads = whole[: max(0, size - 2 - padding)], whole[max(0, size - 2 - padding) : size - 2]
            if pads == bytes(range(1, padding + 1)) and is_inside(following, body):
                return following, body, len(body)
    raise UnsupportedError("ESP")


def netfilter_log(rest: bytes) -> tuple[int, bytes]:
    """The type of the network layer and the packet in a frame of NFLOG."""
    family, first, _, _ = need(rest, 4)
    kinds = {2: IPV4, 10: IPV6}
    if first or family not in kinds:
        raise OtherError
    rest = rest[4:]
    while rest:
        order = ">" if need(rest, 4)[3] else "<"
        size, kind = struct.unpack_from(order + "HH", rest)
        if size < 4:
            raise OtherError
        if kind & 255 == 9:
            return kinds[family], rest[4:size]
        size += -size % 4
        need(rest, size)
        rest = rest[size:]
    raise OtherError


def packet_tap(rest: bytes) -> tuple[int, bytes]:
    """The link type and the frame after the header of PKTAP."""
    size, following, link = struct.unpack("<III", need(rest, 12))
    if size < 12 or following != 1 or link in (149, 192, 258):
        raise OtherError
    need(rest, size)
    return link, rest[size:]


def is_packet_tap(rest: bytes) -> bool:
    if len(rest) < 12:
        return False
    size, following = struct.unpack_from("<II", rest)
    return bool(following == 1 and 108 <= size <= len(rest))


def by_port(rest: bytes) -> Next:
    """What the destination port of a UDP datagram announces; ``rest`` ends with its IP packet."""
    (port,) = struct.unpack_from(">2xH", rest)
    if port in UNSUPPORTED_PORTS:
        raise UnsupportedError(UNSUPPORTED_PORTS[port])
    if port not in TUNNEL_PORTS and not is_vxlan(rest[8:]):
        raise OtherError
    (length,) = struct.unpack(">4xH2x", need(rest, 8))
    inside = rest[8 : max(length, 8)]
    if port == 6635:
        return Next(0x8847, inside)
    header = need(inside, 8)
    if port == 6081:
        size = 8 + (header[0] & 63) * 4
        kind = int.from_bytes(header[2:4], "big")
        if header[0] >> 6 or kind < 0x600:
            raise OtherError
        need(inside, size)
        return Next(kind, inside[size:], "geneve")
    if not header[0] & 8:
        raise OtherError
    kind = ETHERNET
    if port == 4790 and header[0] & 4:
        if header[3] == 4:
            raise UnsupportedError("NSH")
        kinds = {1: IPV4, 2: IPV6, 3: ETHERNET, 5: 0x8847}
        if header[3] not in kinds:
            raise OtherError
        kind = kinds[header[3]]
    return Next(kind, inside[8:], "vxlan")


def wireless(rest: bytes, *, padded: bool) -> bytes:
    """The logical link control in a frame of IEEE 802.11."""
    kind, flags = need(rest, 2)
    if kind & 3 or kind & 0x0C != 8 or kind & 0x40:
        raise OtherError
    size = 30 if flags & 3 == 3 else 24
    quality = size if kind & 0x80 else None
    if quality is not None:
        size += 6 if flags & 0x80 else 2
    need(rest, size)
    if flags & 0x40:
        raise UnsupportedError("encrypted 802.11")
    if flags & 4 or rest[22] & 15:
        raise UnsupportedError("802.11 fragments")
    if quality is not None and rest[quality] & 0x80:
        raise UnsupportedError("802.11 aggregates (A-MSDU)")
    if padded:
        size += -size % 4
        need(rest, size)
    return rest[size:]


def radiotap(rest: bytes) -> bytes:
    """The logical link control after radiotap and IEEE 802.11."""
    first, length, present = struct.unpack("<BxHI", need(rest, 8))
    if first or length < 8:
        raise OtherError
    fields, at, word = need(rest, length), 8, present
    while word & 0x80000000 and at + 4 <= length:
        (word,) = struct.unpack_from("<I", fields, at)
        at += 4
    if present & 1:
        at += -at % 8 + 8
    padded = present & 2 and at < length and fields[at] & 0x20
    return wireless(rest[length:], padded=bool(padded))


def packet_information(rest: bytes) -> tuple[int, bytes]:
    """The link type and the frame after per-packet information."""
    first, length, link = struct.unpack("<BxHI", need(rest, 8))
    if first or length < 8 or link == 192:
        raise OtherError
    need(rest, length)
    return link, rest[length:]
