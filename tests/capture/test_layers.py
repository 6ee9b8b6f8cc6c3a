"""From a frame to its payload: every layer, what belongs to others, what is malformed and why."""

from __future__ import annotations

import pytest

from tests.capture import build, oracle
from tests.capture.reading import read

UDP = build.udp(b"payload")
FRAGMENT_HEADER = build.extension(build.UDP, 8, b"\0\0\0\0\0\x07")[:1] + b"\0\0\0\0\0\0\x07"


def fragment_header(following: int, flags: int) -> bytes:
    return bytes([following, 0]) + flags.to_bytes(2, "big") + b"\0\0\0\x07"


def authentication(following: int, words: int) -> bytes:
    return bytes([following, words - 2]) + bytes(words * 4 - 2)


FOUND = {
    "plain": build.plain(b"payload"),
    "padded": build.plain(b"payload") + bytes(11),
    "type of service and do not fragment": build.ethernet(0x0800, b"\x45\xff" + build.ipv4(UDP, fragment=0x4000)[2:]),
    "reserved flag": build.ethernet(0x0800, build.ipv4(UDP, fragment=0x8000)),
    "vlan": build.ethernet(0x0800, build.ipv4(UDP), [(0x8100, 5)]),
    "qinq": build.ethernet(0x0800, build.ipv4(UDP), [(0x88A8, 5), (0x8100, 6)]),
    "old qinq": build.ethernet(0x86DD, build.ipv6(UDP), [(0x9100, 5), (0x9200, 6), (0x8100, 7)]),
    "many tags": build.ethernet(0x0800, build.ipv4(UDP), [(0x8100, i) for i in range(100)]),
    "options": build.ethernet(0x0800, build.ipv4(UDP, options=b"\x94\x04\0\0")),
    "all options": build.ethernet(0x0800, build.ipv4(UDP, options=b"\1" * 40)),
    "unknown length": build.ethernet(0x0800, build.ipv4(UDP, total=0)),
    "unknown length over ipv6": build.ethernet(0x86DD, build.ipv6(UDP, length=0)),
    "unknown length and an extension": build.ethernet(0x86DD, build.ipv6(build.extension(17) + UDP, 60, length=0)),
    "length in place of a type": build.ethernet(43, b"\xaa\xaa\3\0\0\0\x08\0" + build.ipv4(UDP)),
    "ipv6": build.ethernet(0x86DD, build.ipv6(UDP)),
    "hop by hop": build.ethernet(0x86DD, build.ipv6(build.extension(17, 16) + UDP, 0)),
    "chain": build.ethernet(
        0x86DD,
        build.ipv6(
            build.extension(60)
            + build.extension(43, 24)
            + build.extension(51)
            + authentication(135, 6)
            + build.extension(139)
            + build.extension(140)
            + build.extension(17)
            + UDP,
            0,
        ),
    ),
    "atomic fragment": build.ethernet(0x86DD, build.ipv6(fragment_header(17, 0) + UDP, 44)),
    "jumbogram": build.ethernet(0x86DD, build.ipv6(build.extension(17) + UDP, 0, length=0)),
    "payload length of zero": build.ethernet(0x0800, build.ipv4(build.udp(b""))),
    "bytes behind the datagram": build.ethernet(0x0800, build.ipv4(UDP + b"more")),
}

OTHER = {
    "arp": build.ethernet(0x0806, bytes(46)),
    "spanning tree behind a length": build.ethernet(38, b"\x42\x42\3" + bytes(43)),
    "arp behind a length": build.ethernet(36, b"\xaa\xaa\3\0\0\0\x08\x06" + bytes(38)),
    "tag before something else": build.ethernet(0x0806, bytes(46), [(0x8100, 5)]),
    "tcp to other ports": build.ethernet(0x0800, build.ipv4(build.tcp(b"x", 0, 0x18, 53, 54), build.TCP)),
    "icmp that quotes one of ours": build.ethernet(0x0800, build.ipv4(b"\3\3\0\0\0\0\0\0" + build.ipv4(UDP), 1)),
    "other ports": build.plain(b"payload", 53, 54),
    "other ports, cut": build.plain(b"payload", 53, 54)[:-3],
    "other ports, bad length": build.ethernet(0x0800, build.ipv4(build.udp(b"x", 53, 54, length=3))),
    "tcp over ipv6": build.ethernet(0x86DD, build.ipv6(build.tcp(b"x", 0, 0x18, 53, 54), build.TCP)),
    "no next header": build.ethernet(0x86DD, build.ipv6(build.extension(59) + UDP, 0)),
}

WHOLE_UNITS = build.udp(b"payload.")
FRAGMENTS = {  # what they are, and whether they are the first of their datagram
    "first": (build.ethernet(0x0800, build.ipv4(WHOLE_UNITS, fragment=0x2000)), True),
    "middle": (build.ethernet(0x0800, build.ipv4(WHOLE_UNITS, fragment=0x2001)), False),
    "last": (build.ethernet(0x0800, build.ipv4(UDP, fragment=0x1FFD)), False),
    "first over ipv6": (build.ethernet(0x86DD, build.ipv6(fragment_header(17, 1) + WHOLE_UNITS, 44)), True),
    "last over ipv6": (build.ethernet(0x86DD, build.ipv6(fragment_header(17, 8) + UDP, 44)), False),
    "first of a segment": (build.ethernet(0x0800, build.ipv4(build.tcp(bytes(4)), build.TCP, fragment=0x2000)), True),
}

DAMAGED = {
    "no frame": (b"", "the link layer header is truncated: it needs 14 bytes, 0 were captured"),
    "no type": (build.plain(b"")[:13], "the link layer header is truncated: it needs 14 bytes, 13 were captured"),
    "cut tag": (
        build.ethernet(0x0800, b"", [(0x8100, 1)])[:17],
        "the link layer header is truncated: it needs 18 bytes, 17 were captured",
    ),
    "cut ipv4": (build.plain(b"payload")[:33], "the IP headers are truncated: they need 20 bytes, 19 were captured"),
    "cut options": (
        build.ethernet(0x0800, build.ipv4(UDP, options=b"\1" * 8))[:40],
        "the IP headers are truncated: they need 28 bytes, 26 were captured",
    ),
    "ipv4 of version 5": (build.ethernet(0x0800, build.ipv4(UDP, first=0x55)), "IP version 5; the link layer says 4"),
    "ipv6 of version 4": (build.ethernet(0x86DD, build.ipv6(UDP, version=4)), "IP version 4; the link layer says 6"),
    "short ipv4 header": (build.ethernet(0x0800, build.ipv4(UDP, first=0x44)), "an IP header of 16 bytes"),
    "total below header": (
        build.ethernet(0x0800, build.ipv4(UDP, total=19)),
        "an IP packet of 19 bytes with headers of 20",
    ),
    "cut ipv6": (build.ethernet(0x86DD, build.ipv6(UDP))[:53], "the IP headers are truncated: they need 40 bytes, 39"),
    "cut extension": (
        build.ethernet(0x86DD, build.ipv6(build.extension(17, 64), 0))[: 14 + 40 + 20],
        "the IP headers are truncated: they need 64 bytes, 20 were captured",
    ),
    "extensions beyond the packet": (
        build.ethernet(0x86DD, build.ipv6(build.extension(17, 16) + UDP, 0, length=8)),
        "an IP packet of 48 bytes with headers of 56",
    ),
    "cut udp": (build.plain(b"payload")[:41], "the UDP header is truncated: it needs 8 bytes, 7 were captured"),
    "no room for udp": (
        build.ethernet(0x0800, build.ipv4(UDP, total=25)),
        "the UDP header is truncated: it needs 8 bytes, 5 were captured",
    ),
    "udp length too small": (
        build.ethernet(0x0800, build.ipv4(build.udp(b"payload", length=7))),
        "a UDP datagram of 7 bytes in an IP packet with space for 15",
    ),
    "udp length of zero": (
        build.ethernet(0x0800, build.ipv4(build.udp(b"payload", length=0))),
        "a UDP datagram of 0 bytes in an IP packet with space for 15",
    ),
    "udp length too large": (
        build.ethernet(0x0800, build.ipv4(build.udp(b"payload", length=16)) + b"padding"),
        "a UDP datagram of 16 bytes in an IP packet with space for 15",
    ),
    "cut payload": (
        build.plain(b"payload")[:-1],
        "the frame is truncated: a datagram of 15 bytes, 14 were captured",
    ),
    "cut tcp": (
        build.segment(b"payload")[: 34 + 19],
        "the TCP header is truncated: it needs 20 bytes, 19 were captured",
    ),
    "no room for tcp": (
        build.ethernet(0x0800, build.ipv4(build.tcp(), build.TCP, total=39)),
        "the TCP header is truncated: it needs 20 bytes, 19 were captured",
    ),
    "tcp header too short": (
        build.ethernet(0x0800, build.ipv4(build.tcp(b"payload", words=4), build.TCP)),
        "a TCP header of 16 bytes in an IP packet with space for 27",
    ),
    "tcp header too long": (
        build.ethernet(0x0800, build.ipv4(build.tcp(b"payload", words=7), build.TCP)),
        "a TCP header of 28 bytes in an IP packet with space for 27",
    ),
    "cut payload over ipv6": (
        build.ethernet(0x86DD, build.ipv6(UDP))[:-7],
        "the frame is truncated: a datagram of 15 bytes, 8 were captured",
    ),
}


@pytest.mark.parametrize("name", FOUND)
def test_found(name: str) -> None:
    rows, stats = read(build.pcap([FOUND[name]]))
    assert [row.payload for row in rows] == [b"" if "zero" in name else b"payload"]
    assert (rows[0].src_port, rows[0].dst_port) == (40000, 1801)
    assert rows[0].src in ("10.0.0.1", "2001:db8::1")
    assert rows[0].dst in ("10.0.0.255", "2001:db8::ff")
    assert stats.fragments == 0


@pytest.mark.parametrize("name", OTHER)
def test_other(name: str) -> None:
    _, stats = read(build.pcap([OTHER[name]]))
    assert (stats.frames, stats.other, stats.fragments) == (1, 1, 0)


@pytest.mark.parametrize("name", FRAGMENTS)
def test_fragments_are_never_taken_for_datagrams(name: str) -> None:
    frame, first = FRAGMENTS[name]
    _, stats = read(build.pcap([frame]))
    assert (stats.payloads, stats.fragments, stats.incomplete_datagrams) == (0, 1, 1)
    _, stats = read(build.pcap([frame]), ports=[9])
    assert (stats.payloads, stats.fragments, stats.incomplete_datagrams) == (0, 1, 0 if first else 1)


@pytest.mark.parametrize("name", DAMAGED)
def test_damaged(name: str) -> None:
    frame, what = DAMAGED[name]
    good = build.plain(b"payload")
    data = build.pcap([good, frame, good])
    rows, stats = read(data)
    assert [row.frame for row in rows if not row.lost] == [1, 3]
    assert [row.frame for row in rows if row.lost] == [2] * name.startswith("cut payload")
    (problem,) = stats.problems
    assert problem.what.startswith(what)
    assert problem.offset == 24 + 16 + len(good)
    assert problem.file == "<stream>"


@pytest.mark.parametrize("link", [build.ETHERNET, build.RAW])
@pytest.mark.parametrize("name", [*FOUND, *OTHER])
def test_every_truncation_of_a_frame(name: str, link: int) -> None:
    """A snapshot length may cut a frame anywhere: it is read, another's, or malformed; never read wrongly."""
    frame = {**FOUND, **OTHER}[name][0 if link == build.ETHERNET else 14 :]
    data = build.pcap([frame[:size] for size in range(len(frame) + 1)], link=link)
    rows, stats = read(data)
    expected = oracle.read(data, {1801})
    assert rows == expected.rows
    assert stats.other == expected.other
    assert stats.malformed == len(expected.malformed)
    assert all(row.payload in (b"", b"payload") for row in rows if not row.lost)
    assert all(row.payload == b"payload"[: 7 - row.lost] for row in rows if row.lost)


@pytest.mark.parametrize("name", ["plain", "ipv6", "options", "vlan", "chain"])
def test_every_byte_changed(name: str) -> None:
    """The quick way and the general way agree, whatever stands in a header."""
    frame = FOUND[name]
    frames = [
        frame[:place] + bytes([value]) + frame[place + 1 :]
        for place in range(12, len(frame) - 7)
        for value in (0, 1, frame[place] ^ 1, frame[place] ^ 0x20, 0x7F, 0x80, 0xFF)
    ]
    data = build.pcap(frames)
    rows, stats = read(data)
    expected = oracle.read(data, {1801})
    assert rows == expected.rows
    assert (stats.other, stats.malformed) == (expected.other, len(expected.malformed))
