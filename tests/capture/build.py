"""Captures packed with ``struct``: files, records and the layers inside frames, good and bad."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from functools import cache
from ipaddress import ip_address

PORT = 1801
IPV4, IPV6, ARP, VLAN, QINQ = 0x0800, 0x86DD, 0x0806, 0x8100, 0x88A8
UDP, TCP = 17, 6
ETHERNET, RAW, RAW_IPV4, RAW_IPV6, COOKED, COOKED2, LOOPBACK, OPENBSD_LOOPBACK = 1, 101, 228, 229, 113, 276, 0, 108

START = 1_709_539_200_123_456_789  # 2024-03-04 08:00:00.123456789 UTC


# Frames


@cache
def packed(address: str) -> bytes:
    """The bytes of an address; tests use few, and in many frames."""
    return ip_address(address).packed


def udp(
    payload: bytes, source: int = 40000, target: int = PORT, *, length: int | None = None, checksum: int = 0
) -> bytes:
    """A UDP datagram; ``length`` says something else than the truth."""
    return struct.pack(">4H", source, target, 8 + len(payload) if length is None else length, checksum) + payload


def tcp(
    payload: bytes = b"",
    sequence: int = 0,
    flags: int = 0x18,
    source: int = 40000,
    target: int = PORT,
    *,
    options: bytes = b"",
    words: int | None = None,
    acknowledged: int = 0,
) -> bytes:
    """A TCP segment; ``words`` says something else than the truth about its header."""
    size = 5 + len(options) // 4 if words is None else words
    numbers = sequence % (1 << 32), acknowledged % (1 << 32)
    head = struct.pack(">HHIIBBHHH", source, target, *numbers, size << 4, flags, 65535, 0, 0)
    return head + options + payload


def ipv4(
    body: bytes,
    protocol: int = UDP,
    *,
    source: str = "10.0.0.1",
    target: str = "10.0.0.255",
    options: bytes = b"",
    fragment: int = 0,
    total: int | None = None,
    first: int | None = None,
) -> bytes:
    """An IPv4 packet; ``fragment`` is the field of flags and offset, ``first`` the byte of version and length."""
    words = 5 + len(options) // 4
    size = words * 4 + len(body) if total is None else total
    head = 0x40 | words if first is None else first
    return (
        struct.pack(">BBHHHBBH", head, 0, size, 7, fragment, 64, protocol, 0)
        + packed(source)
        + packed(target)
        + options
        + body
    )


def ipv6(
    body: bytes,
    next_header: int = UDP,
    *,
    source: str = "2001:db8::1",
    target: str = "2001:db8::ff",
    length: int | None = None,
    version: int = 6,
) -> bytes:
    """An IPv6 packet; ``body`` begins with the extension headers, if ``next_header`` announces one."""
    size = len(body) if length is None else length
    return struct.pack(">IHBB", version << 28, size, next_header, 64) + packed(source) + packed(target) + body


def extension(next_header: int, size: int = 8, content: bytes = b"") -> bytes:
    """An extension header that says how long it is in units of 8 bytes."""
    return struct.pack(">BB", next_header, size // 8 - 1) + content.ljust(size - 2, b"\0")


def ethernet(kind: int, body: bytes, tags: Iterable[tuple[int, int]] = ()) -> bytes:
    """An Ethernet frame with VLAN tags, each a type and an identifier, outermost first."""
    header = bytes.fromhex("ffffffffffff 025e00000001")
    for tag, identifier in tags:
        header += struct.pack(">HH", tag, identifier)
    return header + struct.pack(">H", kind) + body


def ipx(payload: bytes, source: int = 0x4003, target: int = 876, *, kind: int = 4, length: int | None = None) -> bytes:
    """An IPX packet; ``length`` says something else than the truth."""
    size = 30 + len(payload) if length is None else length
    ends = bytes.fromhex("00000002 ffffffffffff"), bytes.fromhex("00000002 025e00000001")
    return (
        struct.pack(">HHBB", 0xFFFF, size, 0, kind)
        + struct.pack(">10sH", ends[0], target)
        + struct.pack(">10sH", ends[1], source)
        + payload
    )


def cooked(kind: int, body: bytes) -> bytes:
    """A frame of Linux's cooked capture."""
    return struct.pack(">HHH8sH", 0, 1, 6, bytes.fromhex("025e00000001") + b"\0\0", kind) + body


def cooked2(kind: int, body: bytes) -> bytes:
    """A frame of Linux's cooked capture, the second version."""
    return struct.pack(">HxxIHBB8s", kind, 3, 1, 0, 6, bytes.fromhex("025e00000001") + b"\0\0") + body


def plain(payload: bytes, source: int = 40000, target: int = PORT) -> bytes:
    """The common frame: a UDP datagram in IPv4 in Ethernet."""
    return ethernet(IPV4, ipv4(udp(payload, source, target)))


def segment(
    payload: bytes = b"",
    sequence: int = 0,
    flags: int = 0x18,
    source: int = 40000,
    target: int = PORT,
    *,
    src: str = "10.0.0.1",
    dst: str = "10.0.0.2",
    acknowledged: int = 0,
) -> bytes:
    """The common frame of a stream: a TCP segment in IPv4 in Ethernet."""
    body = tcp(payload, sequence, flags, source, target, acknowledged=acknowledged)
    return ethernet(IPV4, ipv4(body, TCP, source=src, target=dst))


# MSMQ packets


def message(body: bytes = b"", *, session: bool = False, size: int | None = None) -> bytes:
    """A packet that is a message as far as a stream is concerned, with a SessionHeader behind it or not."""
    total = 16 + len(body) if size is None else size
    return struct.pack("<BBH4sII", 16, 7, 0x13 if session else 3, b"LIOR", total, 300) + body + bytes(16 * session)


def internal(body: bytes = b"\0\0\1\0", *, session: bool = True) -> bytes:
    """A packet that is none, a SessionAck for one: its PacketSize counts its SessionHeader."""
    body += bytes(16 * session)
    flags = 0x1B if session else 0xB
    return struct.pack("<BBH4sII", 16, 9, flags, b"LIOR", 16 + len(body), 0xFFFFFFFF) + body


# The classic format


def pcap_header(order: str = "<", *, nano: bool = False, link: int = ETHERNET, snapshot: int = 65535) -> bytes:
    """The file header."""
    return struct.pack(order + "IHHiIII", 0xA1B23C4D if nano else 0xA1B2C3D4, 2, 4, 0, 0, snapshot, link)


def pcap_record(
    frame: bytes,
    order: str = "<",
    *,
    nano: bool = False,
    time: int = START,
    captured: int | None = None,
    original: int | None = None,
) -> bytes:
    """A record; ``captured`` and ``original`` say something else than the truth."""
    seconds, nanoseconds = divmod(time, 1_000_000_000)
    fraction = nanoseconds if nano else nanoseconds // 1000
    size = len(frame) if captured is None else captured
    return struct.pack(order + "4I", seconds, fraction, size, size if original is None else original) + frame


def pcap(frames: Iterable[bytes], order: str = "<", *, nano: bool = False, link: int = ETHERNET) -> bytes:
    """A whole file; frames are a millisecond and a nanosecond apart."""
    records = (
        pcap_record(frame, order, nano=nano, time=START + number * 1_000_001) for number, frame in enumerate(frames)
    )
    return pcap_header(order, nano=nano, link=link) + b"".join(records)


# The format of blocks


def block(kind: int, body: bytes, order: str = "<", *, length: int | None = None, last: int | None = None) -> bytes:
    """A block; ``length`` and ``last`` say something else than the truth at its ends."""
    body += b"\0" * (-len(body) % 4)
    size = 12 + len(body) if length is None else length
    return struct.pack(order + "II", kind, size) + body + struct.pack(order + "I", size if last is None else last)


def option(code: int, value: bytes, order: str = "<") -> bytes:
    """An option."""
    return struct.pack(order + "HH", code, len(value)) + value + b"\0" * (-len(value) % 4)


def section(order: str = "<", options: bytes = b"") -> bytes:
    """A section header of unknown length."""
    return block(0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1) + options, order)


def interface(
    order: str = "<",
    *,
    link: int = ETHERNET,
    snapshot: int = 0,
    resolution: int | None = None,
    offset: int | None = None,
    more: bytes = b"",
) -> bytes:
    """An interface description with the time options asked for, behind an option of another kind."""
    options = option(2, b"eth0", order)
    if resolution is not None:
        options += option(9, bytes([resolution]), order)
    if offset is not None:
        options += option(14, struct.pack(order + "q", offset), order)
    return block(1, struct.pack(order + "HHI", link, 0, snapshot) + options + more + option(0, b"", order), order)


def packet(
    frame: bytes,
    order: str = "<",
    *,
    number: int = 0,
    stamp: int = START // 1000,
    captured: int | None = None,
    options: bytes = b"",
) -> bytes:
    """An enhanced packet block; ``stamp`` is in the unit of its interface, microseconds by default."""
    size = len(frame) if captured is None else captured
    head = struct.pack(order + "5I", number, stamp >> 32, stamp & 0xFFFFFFFF, size, size)
    return block(6, head + frame + b"\0" * (-len(frame) % 4) + options, order)


def old_packet(frame: bytes, order: str = "<", *, number: int = 0, stamp: int = START // 1000) -> bytes:
    """An obsolete packet block."""
    head = struct.pack(order + "HHIIII", number, 0, stamp >> 32, stamp & 0xFFFFFFFF, len(frame), len(frame))
    return block(2, head + frame, order)


def simple_packet(frame: bytes, order: str = "<", *, original: int | None = None) -> bytes:
    """A simple packet block."""
    return block(3, struct.pack(order + "I", len(frame) if original is None else original) + frame, order)


def interface_per_frame(frames: Iterable[tuple[int, bytes]]) -> bytes:
    """A pcapng file of frames, each with its link type."""
    blocks = (interface(link=link) + packet(frame, number=number) for number, (link, frame) in enumerate(frames))
    return section() + b"".join(blocks)


def pcapng(frames: Iterable[bytes], order: str = "<", **description: int) -> bytes:
    """A whole file of one section and one interface."""
    blocks = (packet(frame, order, stamp=START // 1000 + 1000 * n) for n, frame in enumerate(frames))
    return section(order) + interface(order, **description) + b"".join(blocks)  # type: ignore[arg-type]
