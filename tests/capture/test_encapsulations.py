"""Packets inside of packets: every encapsulation, with fragments and streams inside, and those that are not read."""

from __future__ import annotations

import io
import random
import struct
from functools import partial
from pathlib import Path

import pytest

from msmqwire import capture
from msmqwire.capture.frames._encapsulations import ENCAPSULATIONS, MAX_ENCAPSULATIONS
from msmqwire.capture.frames._frame import UNSUPPORTED_ENCAPSULATIONS
from tests.capture import build, oracle, wireshark
from tests.capture.reading import PORTS, read
from tests.capture.test_fragments import PARTS, PAYLOAD, part

PLAIN = build.plain(b"payload")
IPV4, IPV6 = build.ipv4(build.udp(b"payload")), build.ipv6(build.udp(b"payload"))
LLC4, LLC6 = b"\xaa\xaa\3\0\0\0\x08\0" + IPV4, b"\xaa\xaa\3\0\0\0\x86\xdd" + IPV6
PPP, PPP_HDLC, PPP_ETHER, CISCO_HDLC, WLAN, RADIOTAP, PPI, PPP_DIRECTION, MPLS = 9, 50, 51, 104, 105, 127, 192, 204, 219
USER2, NFLOG, PKTAP = 149, 239, 258
OUTER = partial(build.ipv4, source="192.0.2.1", target="192.0.2.2")
OUTER6 = partial(build.ipv6, source="2001:db8:1::1", target="2001:db8:1::2")


def ip(protocol: int, body: bytes) -> bytes:
    """A frame with an IPv4 packet that carries an encapsulation."""
    return build.ethernet(0x0800, OUTER(body, protocol))


def ip6(protocol: int, body: bytes) -> bytes:
    return build.ethernet(0x86DD, OUTER6(body, protocol))


def udp(port: int, body: bytes) -> bytes:
    return ip(17, build.udp(body, 50001, port))


def gre(kind: int, body: bytes, flags: int = 0, fields: bytes = b"") -> bytes:
    return struct.pack(">HH", flags, kind) + fields + body


def vxlan(body: bytes, flags: int = 8, protocol: int = 0) -> bytes:
    return struct.pack(">BxxBI", flags, protocol, 77 << 8) + body


def geneve(kind: int, body: bytes, options: bytes = b"") -> bytes:
    return struct.pack(">BBHI", len(options) // 4, 0, kind, 77 << 8) + options + body


def label(bottom: bool) -> bytes:
    return struct.pack(">I", 100 << 12 | bottom << 8 | 64)


def pppoe(body: bytes) -> bytes:
    return struct.pack(">BBHH", 0x11, 0, 5, len(body)) + body


def wlan(body: bytes, flags: int = 1, kind: int = 8, *, sequence: int = 0, after: bytes = b"") -> bytes:
    """A frame of IEEE 802.11; ``after`` is what follows the third address."""
    addresses = bytes.fromhex("ffffffffffff 025e00000001 025e00000002")
    return struct.pack("<BBH", kind, flags, 0) + addresses + struct.pack("<H", sequence) + after + body


def radiotap(body: bytes, present: int = 0, fields: bytes = b"") -> bytes:
    return struct.pack("<BxHI", 0, 8 + len(fields), present) + fields + body


def authentication(following: int, body: bytes, check: int = 12) -> bytes:
    """AH (RFC 4302)."""
    return struct.pack(">BBHII", following, (check + 4) // 4, 0, 9, 1) + bytes(check) + body


def esp(following: int, body: bytes, check: int = 12) -> bytes:
    """ESP without encryption (RFC 4303, RFC 2410)."""
    padding = bytes(range(1, -(len(body) + 2) % 4 + 1))
    return struct.pack(">II", 9, 1) + body + padding + struct.pack(">BB", len(padding), following) + bytes(check)


def attribute(kind: int, value: bytes, order: str = "<") -> bytes:
    """An attribute of NFLOG."""
    return struct.pack(order + "HH", 4 + len(value), kind) + value + bytes(-len(value) % 4)


def nflog(packet: bytes, family: int = 2, order: str = "<") -> bytes:
    """A frame of NFLOG with two attributes before the packet, as Linux writes them."""
    attributes = attribute(1, bytes(4), order) + attribute(10, b"msmq\0", order) + attribute(9, packet, order)
    return struct.pack(">BBH", family, 0, 100) + attributes


def pktap(frame: bytes, link: int = 1, following: int = 1) -> bytes:
    """A frame of PKTAP with its header of 108 bytes, as macOS writes it."""
    return struct.pack("<III", 108, following, link) + b"en0".ljust(96, b"\0") + frame


UDP = build.udp(b"payload")

FOUND: dict[str, tuple[int, bytes, str | None]] = {  # what it is: link type, frame, encapsulation
    "vxlan": (1, udp(4789, vxlan(PLAIN)), "vxlan"),
    "vxlan on the port of Linux": (1, udp(8472, vxlan(PLAIN)), "vxlan"),
    "vxlan over ipv6": (1, ip6(17, build.udp(vxlan(PLAIN), 50001, 4789)), "vxlan"),
    "vxlan with a tag inside": (1, udp(4789, vxlan(build.ethernet(0x0800, IPV4, [(0x8100, 5)]))), "vxlan"),
    "vxlan-gpe": (1, udp(4790, vxlan(IPV4, 0x0C, 1)), "vxlan"),
    "vxlan-gpe over ipv6": (1, udp(4790, vxlan(IPV6, 0x0C, 2)), "vxlan"),
    "gre": (1, ip(47, gre(0x0800, IPV4)), "gre"),
    "gre of ipv6, over ipv6": (1, ip6(47, gre(0x86DD, IPV6)), "gre"),
    "gre with every field": (1, ip(47, gre(0x0800, IPV4, 0xB000, bytes(12))), "gre"),
    "gre of ethernet": (1, ip(47, gre(0x6558, PLAIN, 0x2000, bytes(4))), "gre"),
    "gre of ppp": (1, ip(47, gre(0x880B, b"\x21" + IPV4, 0x3081, bytes(12))), "gre"),
    "erspan I": (1, ip(47, gre(0x88BE, PLAIN)), "erspan"),
    "erspan II": (1, ip(47, gre(0x88BE, PLAIN, 0x1000, bytes(4) + b"\x10\5\0\1" + bytes(4))), "erspan"),
    "erspan III": (1, ip(47, gre(0x22EB, PLAIN, 0x1000, bytes(4) + b"\x20\5\0\1" + bytes(8))), "erspan"),
    "erspan III with a subheader": (
        1,
        ip(47, gre(0x22EB, PLAIN, 0x1000, bytes(4) + b"\x20\5\0\1" + bytes(7) + b"\1" + b"\x0c" + bytes(7))),
        "erspan",
    ),
    "geneve": (1, udp(6081, geneve(0x6558, PLAIN)), "geneve"),
    "geneve with options": (1, udp(6081, geneve(0x0800, IPV4, bytes(12))), "geneve"),
    "ip in ip": (1, ip(4, IPV4), "ipv4"),
    "6in4": (1, ip(41, IPV6), "ipv6"),
    "ipv4 in ipv6": (1, ip6(4, IPV4), "ipv4"),
    "ipv6 in ipv6": (1, ip6(41, IPV6), "ipv6"),
    "mpls": (1, build.ethernet(0x8847, label(False) + label(True) + IPV4), "mpls"),
    "mpls of ipv6": (1, build.ethernet(0x8848, label(True) + IPV6), "mpls"),
    "mpls of ethernet": (1, build.ethernet(0x8847, label(True) + PLAIN), "mpls"),
    "mpls of ethernet with a control word": (1, build.ethernet(0x8847, label(True) + bytes(4) + PLAIN), "mpls"),
    "mpls in ip": (1, ip(137, label(True) + IPV4), "mpls"),
    "mpls in udp": (1, udp(6635, label(True) + IPV4), "mpls"),
    "pppoe": (1, build.ethernet(0x8864, pppoe(b"\0\x21" + IPV4) + bytes(6)), "pppoe"),
    "pppoe of ipv6": (1, build.ethernet(0x8864, pppoe(b"\0\x57" + IPV6)), "pppoe"),
    "vn-tag": (1, build.ethernet(0x8926, bytes(4) + b"\x08\0" + IPV4), "vn-tag"),
    "vn-tag and vlan": (1, build.ethernet(0x8926, bytes(4) + b"\x81\0\0\5\x08\0" + IPV4), "vn-tag"),
    "vn-tag before a length": (1, build.ethernet(0x8926, bytes(4) + struct.pack(">H", len(LLC4)) + LLC4), "vn-tag"),
    "e-tag": (1, build.ethernet(0x893F, bytes(6) + b"\x86\xdd" + IPV6), "e-tag"),
    "cisco metadata": (1, build.ethernet(0x8909, b"\1\1\0\1\0\5\x08\0" + IPV4), "cisco-metadata"),
    "vlan before mpls": (1, build.ethernet(0x8847, label(True) + IPV4, [(0x8100, 5)]), "mpls"),
    "gre in vxlan in gre": (
        1,
        ip(47, gre(0x6558, udp(4789, vxlan(ip(47, gre(0x0800, IPV4)))))),
        "gre/vxlan/gre",
    ),
    "ppp": (PPP, b"\xff\3\0\x21" + IPV4, None),
    "ppp, short": (PPP, b"\x21" + IPV4, None),
    "ppp in hdlc": (PPP_HDLC, b"\xff\3\0\x57" + IPV6, None),
    "ppp with a direction": (PPP_DIRECTION, b"\1\xff\3\0\x21" + IPV4, None),
    "ppp of mpls": (PPP, b"\xff\3\2\x81" + label(True) + IPV4, "mpls"),
    "pppoe, the link": (PPP_ETHER, pppoe(b"\0\x21" + IPV4), "pppoe"),
    "cisco hdlc": (CISCO_HDLC, b"\x0f\0\x08\0" + IPV4, None),
    "mpls, the link": (MPLS, label(True) + IPV4, "mpls"),
    "wlan": (WLAN, wlan(LLC4), None),
    "wlan, qos": (WLAN, wlan(LLC6, 2, 0x88, after=b"\0\0"), None),
    "wlan, four addresses": (WLAN, wlan(LLC4, 3, after=bytes(6)), None),
    "wlan, ht control": (WLAN, wlan(LLC4, 0x81, 0x88, after=bytes(6)), None),
    "radiotap": (RADIOTAP, radiotap(wlan(LLC4)), None),
    "radiotap with a time": (RADIOTAP, radiotap(wlan(LLC4), 3, bytes(9)), None),
    "radiotap, padded": (
        RADIOTAP,
        radiotap(wlan(LLC4, 1, 0x88, after=bytes(4)), 2, b"\x20"),
        None,
    ),
    "radiotap with more words": (
        RADIOTAP,
        radiotap(wlan(LLC4, 1, 0x88, after=bytes(4)), 0x80000003, bytes(16) + b"\x20"),
        None,
    ),
    "vxlan on another port": (1, udp(10000, vxlan(PLAIN)), "vxlan"),
    "vxlan of ipv6 on another port": (1, ip6(17, build.udp(vxlan(build.ethernet(0x86DD, IPV6)), 9, 10)), "vxlan"),
    "ah": (1, ip(51, authentication(17, UDP)), None),
    "ah over ipv6": (1, ip6(51, authentication(17, UDP)), None),
    "ah in ah of a tunnel": (1, ip(51, authentication(51, authentication(4, IPV4, 16))), "ipv4"),
    "esp": (1, ip(50, esp(17, UDP)), None),
    "esp over ipv6": (1, ip6(50, esp(17, UDP)), None),
    "esp, a check of 16 bytes": (1, ip(50, esp(17, UDP, 16)), None),
    "esp of a tunnel": (1, ip(50, esp(4, IPV4)), "ipv4"),
    "esp of a tunnel of ipv6": (1, ip(50, esp(41, IPV6)), "ipv6"),
    "ah and esp": (1, ip(51, authentication(50, esp(17, UDP, 0))), None),
    "nflog": (NFLOG, nflog(IPV4), None),
    "nflog of ipv6": (NFLOG, nflog(IPV6, 10), None),
    "nflog, big-endian": (NFLOG, nflog(IPV4, order=">"), None),
    "pktap": (PKTAP, pktap(PLAIN), None),
    "pktap of raw ip": (PKTAP, pktap(IPV4, 12), None),
    "pktap, a link type of users": (USER2, pktap(PLAIN), None),
    "ppi of wlan": (PPI, struct.pack("<BBHI", 0, 0, 8, 105) + wlan(LLC4), None),
    "ppi of ethernet": (PPI, struct.pack("<BBHI", 0, 0, 16, 1) + bytes(8) + PLAIN, None),
}
# Wireshark takes the subheader of ERSPAN III, padding, and PPP in GRE in other ways, or guesses where nothing says
NOT_COMPARED = {
    "vxlan on the port of Linux", "gre of ppp", "mpls of ethernet", "mpls, the link",
    "vxlan on another port", "vxlan of ipv6 on another port", "nflog, big-endian", "pktap, a link type of users",
    "esp, a check of 16 bytes", "ah and esp",
}  # fmt: skip
# Which guesses that the check has 12 bytes
NULL_ESP = "esp.enable_null_encryption_decode_heuristic:TRUE"

UNSUPPORTED = {
    "ESP": (1, ip(50, bytes(40))),
    "ESP in UDP": (1, udp(4500, bytes(40))),
    "IPComp": (1, ip6(108, bytes(40))),
    "L2TP": (1, udp(1701, bytes(40))),
    "GTP-U": (1, udp(2152, bytes(40))),
    "Teredo": (1, udp(3544, bytes(40))),
    "LISP": (1, udp(4341, bytes(40))),
    "CAPWAP": (1, udp(5247, bytes(40))),
    "TZSP": (1, udp(37008, bytes(40))),
    "OpenVPN": (1, udp(1194, bytes(40))),
    "MACsec": (1, build.ethernet(0x88E5, bytes(40))),
    "provider backbone bridging": (1, build.ethernet(0x88E7, bytes(40))),
    "TRILL": (1, build.ethernet(0x22F3, bytes(40))),
    "NSH": (1, udp(4790, vxlan(bytes(40), 0x0C, 4))),
    "FabricPath": (1, build.ethernet(0x8903, bytes(40))),
    "GRE with routing": (1, ip(47, gre(0x0800, IPV4, 0x4000))),
    "compressed or encrypted PPP": (PPP, b"\xff\3\0\xfd" + bytes(40)),
    "multilink PPP": (PPP, b"\xff\3\0\x3d" + bytes(40)),
    "encrypted 802.11": (RADIOTAP, radiotap(wlan(bytes(40), 0x41))),
    "802.11 fragments": (WLAN, wlan(LLC4, 5)),
    "802.11 aggregates (A-MSDU)": (WLAN, wlan(LLC4, 1, 0x88, after=b"\x80\0")),
    "more than 6 encapsulations": (1, ip(4, b"".join(build.ipv4(b"", 4, total=0) for _ in range(6)) + IPV4)),
}

OTHER = {
    "vxlan without its flag": (1, udp(4789, vxlan(PLAIN, 0))),
    "geneve of a later version": (1, udp(6081, b"\x40" + geneve(0x6558, PLAIN)[1:])),
    "gre of a later version": (1, ip(47, gre(0x0800, IPV4, 2))),
    "gre that only acknowledges": (1, ip(47, gre(0x880B, bytes(8), 0x2081))),
    "gre keepalive": (1, ip(47, gre(0, b""))),
    "arp in vxlan": (1, udp(4789, vxlan(build.ethernet(0x0806, bytes(28))))),
    "mpls echo": (1, build.ethernet(0x8847, label(True) + b"\x10\0\0\7" + bytes(20))),
    "pppoe discovery": (1, build.ethernet(0x8863, bytes(40))),
    "pppoe that ends a session": (1, build.ethernet(0x8864, b"\x11\xa7" + bytes(40))),
    "link control of ppp": (PPP, b"\xff\3\xc0\x21" + bytes(40)),
    "vxlan of arp on another port": (1, udp(10000, vxlan(build.ethernet(0x0806, bytes(28))))),
    "nflog of a bridge": (NFLOG, nflog(IPV4, 7)),
    "nflog without a packet": (NFLOG, nflog(IPV4)[:24]),
    "pktap without a packet": (PKTAP, pktap(PLAIN, following=0)),
    "beacon": (WLAN, wlan(bytes(40), 0, 0x80)),
    "wlan without data": (WLAN, wlan(b"", 1, 0x48)),
}


def test_every_encapsulation_has_a_case() -> None:
    assert {name for _, _, path in FOUND.values() if path for name in path.split("/")} == {*ENCAPSULATIONS.values()}
    assert {*UNSUPPORTED} == {*UNSUPPORTED_ENCAPSULATIONS.values()}


@pytest.mark.parametrize("name", FOUND)
def test_found(name: str) -> None:
    link, frame, path = FOUND[name]
    (row,), stats = read(build.pcap([frame], link=link))
    assert (row.src_port, row.dst_port, row.payload, row.encapsulation) == (40000, 1801, b"payload", path)
    # Of its own packet, or of the outer one where only headers are between IP and UDP
    assert row.src in ("10.0.0.1", "2001:db8::1", "192.0.2.1", "2001:db8:1::1")
    assert stats.payloads == 1


@pytest.mark.parametrize("name", UNSUPPORTED)
def test_unsupported(name: str) -> None:
    link, frame = UNSUPPORTED[name]
    _, stats = read(build.pcap([frame, frame], link=link))
    assert (stats.frames, stats.unsupported, stats.unsupported_links) == (2, 2, {})
    assert stats.unsupported_encapsulations == {name: 2}


@pytest.mark.parametrize("name", OTHER)
def test_other(name: str) -> None:
    link, frame = OTHER[name]
    _, stats = read(build.pcap([frame], link=link))
    assert (stats.frames, stats.other) == (1, 1)


@pytest.mark.parametrize(
    ("link", "name"),
    [
        (195, "195 (IEEE802_15_4_WITHFCS)"),
        (149, "149 (USER2)"),
        (300, "300"),
        (319, "319 or more"),
        (1000, "319 or more"),
    ],
)
def test_link_types_that_are_not_read(link: int, name: str) -> None:
    _, stats = read(build.pcap([PLAIN, PLAIN], link=link))
    assert (stats.unsupported, stats.unsupported_links, stats.other) == (2, {name: 2}, 0)
    assert (stats + stats).unsupported_links == {name: 4}


def test_esp_that_may_be_encrypted() -> None:
    """One whose trailer does not fit its contents is not read, and neither is one of which that was not captured."""
    whole = ip(50, esp(17, UDP))
    rng = random.Random(1)
    noise = [ip(50, rng.randbytes(80)) for _ in range(500)]
    _, stats = read(build.pcap([whole[:-1], *noise]))
    assert stats.unsupported_encapsulations == {"ESP": 501}
    (row,), _ = read(build.pcap([whole]))
    assert row.payload == b"payload"


def test_fragments_of_vxlan_on_another_port() -> None:
    data = build.udp(vxlan(build.plain(bytes(200))), 50001, 10000)
    parts = [build.ipv4(data[:96], fragment=0x2000), build.ipv4(data[96:], fragment=12)]
    (row,), _ = read(build.pcap([build.ethernet(0x0800, part) for part in parts]))
    assert (row.encapsulation, row.payload) == ("vxlan", bytes(200))


def test_fragments_of_ah() -> None:
    data = authentication(17, UDP)
    parts = [build.ipv4(data[:24], 51, fragment=0x2000), build.ipv4(data[24:], 51, fragment=3)]
    (row,), stats = read(build.pcap([build.ethernet(0x0800, part) for part in parts]))
    assert row.payload == b"payload"
    parts = [build.ipv4(part, 50, fragment=0x2000) for part in (bytes(24), bytes(24))]
    _, stats = read(build.pcap([build.ethernet(0x0800, part) for part in parts]))
    assert (stats.unsupported, stats.incomplete_datagrams) == (2, 0)


def test_nsh_in_ethernet() -> None:
    _, stats = read(build.pcap([build.ethernet(0x894F, bytes(40))]))
    assert stats.unsupported_encapsulations == {"NSH": 1}


def test_ipx_in_ppp() -> None:
    (row,), _ = read(build.pcap([b"\xff\3\0\x2b" + build.ipx(b"payload", target=PORTS[0])], link=PPP))
    assert row.payload == b"payload"


@pytest.mark.parametrize("depth", [MAX_ENCAPSULATIONS, MAX_ENCAPSULATIONS + 1])
def test_depth_is_bounded(depth: int) -> None:
    packet = IPV4
    for _ in range(depth):
        packet = build.ipv4(packet, 4)
    rows, stats = read(build.pcap([packet], link=build.RAW))
    expected = ["/".join(["ipv4"] * depth)] if depth == MAX_ENCAPSULATIONS else []
    assert [row.encapsulation for row in rows] == expected
    assert stats.unsupported == (not expected)


def test_the_ports_of_a_capture_come_first() -> None:
    """A datagram to or from a selected port is a payload, even if its port is that of an encapsulation."""
    (row,), _ = read(build.pcap([udp(4789, vxlan(PLAIN))]), ports=[4789])
    assert (row.payload, row.encapsulation) == (vxlan(PLAIN), None)


@pytest.mark.parametrize("name", [*FOUND, *UNSUPPORTED, *OTHER])
def test_every_truncation_and_changed_byte(name: str) -> None:
    link, frame = FOUND[name][:2] if name in FOUND else {**UNSUPPORTED, **OTHER}[name]
    frames = [frame[:size] for size in range(len(frame) + 1)]
    frames += [
        frame[:place] + bytes([value]) + frame[place + 1 :]
        for place in range(len(frame))
        for value in (0, 1, frame[place] ^ 1, frame[place] ^ 0x40, 0x7F, 0x88, 0xFF)
    ]
    data = build.pcap(frames, link=link)
    rows, stats = read(data)
    expected = oracle.read(data, {1801})
    assert rows == expected.rows
    assert (stats.other, stats.malformed) == (expected.other, len(expected.malformed))
    named = {name: count for name, count in expected.unsupported.items() if isinstance(name, str)}
    assert (stats.unsupported_encapsulations, stats.unsupported) == (named, sum(expected.unsupported.values()))


def test_a_packet_that_extends_beyond_its_encapsulation() -> None:
    """A mirror truncates the packets it sends: what is there of a segment is read, a truncated datagram is not."""
    body = vxlan(PLAIN[:-3])
    _, stats = read(build.pcap([udp(4789, body)]))
    (problem,) = stats.problems
    assert problem.what == "the frame is truncated: a datagram of 15 bytes, 12 were captured"
    frames = [udp(4789, vxlan(build.segment(build.message(b"body")[:20], 1)[:size])) for size in (54 + 10, 54 + 20)]
    _, stats = read(build.pcap(frames))
    assert stats.streams.bytes == 10 + 20


@pytest.mark.parametrize("kind", [1, 4])
def test_cisco_hdlc_has_no_numbers_of_linux(kind: int) -> None:
    """These announce IEEE 802.2 in the cooked captures of Linux alone."""
    rows, stats = read(build.pcap([struct.pack(">BBH", 0x0F, 0, kind) + LLC4], link=CISCO_HDLC))
    assert (rows, stats.other, stats.malformed) == ([], 1, 0)


def test_streams_and_fragments_inside() -> None:
    """A stream is one whether its segments come through an encapsulation or not; fragments are put together inside."""
    message = build.message(bytes(200))
    halves = message[:100], message[100:]
    one = udp(4789, vxlan(build.segment(halves[0], 1)))
    two = ip(47, gre(0x0800, build.segment(halves[1], 101)[14:]))
    pieces = [ip(47, gre(0x6558, piece)) for piece in PARTS]
    third = udp(4789, vxlan(build.segment(message, 1 + len(message))))
    data = build.pcap([one, *pieces, two, third, build.segment(message, 1 + 2 * len(message))])
    rows, stats = read(data)
    assert [(row.frame, row.payload, row.encapsulation) for row in rows] == [
        (5, PAYLOAD, "gre"),
        (6, message, "gre"),
        (7, message, "vxlan"),
        (8, message, None),
    ]
    assert rows == oracle.read(data, {1801}).rows
    assert (stats.fragments, stats.streams.packets) == (3, 3)


def cut(packet: bytes, size: int) -> list[bytes]:
    """An IPv4 packet in fragments of this many bytes, in Ethernet."""
    body, header = packet[20:], packet[:20]
    found = []
    for at in range(0, len(body), size):
        flags = at // 8 | (0x2000 if at + size < len(body) else 0)
        total = 20 + len(body[at : at + size])
        fields = header[:2] + struct.pack(">HHH", total, 9, flags) + header[8:]
        found.append(build.ethernet(0x0800, fields + body[at : at + size]))
    return found


def test_fragments_of_an_encapsulation() -> None:
    """An encapsulation in fragments, with fragments inside: two datagrams, one in the other."""
    outer = [piece for inner in PARTS[1:] for piece in cut(udp(4789, vxlan(inner))[14:], 104)]
    direct = part(0, 256)
    data = build.pcap([*outer, direct])
    rows, stats = read(data)
    assert [(row.frame, row.payload) for row in rows] == [(len(outer) + 1, PAYLOAD)]
    assert rows == oracle.read(data, {1801}).rows
    assert (stats.payloads, stats.fragments) == (1, len(outer))
    with capture.open(io.BytesIO(data)) as blocks:
        (block,) = blocks
    assert block.capture["first_frame"].tolist() == [len(outer) + 1]


@pytest.mark.parametrize("truncated", [PLAIN[:-3], build.ethernet(0x8137, build.ipx(b"payload", target=PORTS[0]))[:-3]])
def test_a_packet_that_extends_beyond_its_encapsulation_in_fragments(truncated: bytes) -> None:
    """A truncated datagram gives a row, whether or not its encapsulation came in fragments."""
    mirrored = ip(47, gre(0x88BE, truncated, 0x1000, bytes(12)))
    data = build.pcap([mirrored, *cut(mirrored[14:], 32)])
    rows, stats = read(data)
    whole, last = rows[0], len(cut(mirrored[14:], 32)) + 1
    assert (whole.payload, whole.lost, whole.encapsulation) == (b"payl", 3, "erspan")
    assert [row._replace(time=None) for row in rows] == [whole._replace(frame=f, time=None) for f in (1, last)]
    assert rows == oracle.read(data, {*PORTS}).rows
    assert (stats.malformed, stats.fragments) == (2, last - 2)
    assert [problem.ends != "" for problem in stats.problems] == [True, True]


def test_first_frame_inside_of_fragments() -> None:
    """The frame with the first byte of the payload, through both kinds of fragments."""
    outer = [piece for inner in PARTS for piece in cut(udp(4789, vxlan(inner))[14:], 48)]
    data = build.pcap(outer)
    with capture.open(io.BytesIO(data)) as blocks:
        (block,) = blocks
    # 8 bytes of UDP, 8 of VXLAN, 14 of Ethernet, 20 of IP: the UDP datagram inside begins at 50
    assert block.capture["first_frame"].tolist() == [1 + 50 // 48]


def test_many_encapsulations_in_a_block() -> None:
    """More paths than a block has numbers for: another block."""
    frames = []
    for number in range(3**MAX_ENCAPSULATIONS):
        packet = IPV4
        for bit in range(MAX_ENCAPSULATIONS):
            protocol = (4, 47, 137)[number // 3**bit % 3]
            packet = build.ipv4({4: b"", 47: gre(0x0800, b""), 137: label(True)}[protocol] + packet, protocol)
        frames.append(packet)
    data = build.pcap(frames, link=build.RAW)
    rows, _ = read(data)
    assert rows == oracle.read(data, {1801}).rows
    assert len({row.encapsulation for row in rows}) == len(frames)


def test_tshark_sees_the_same(tmp_path: Path) -> None:
    cases = {name: (link, frame) for name, (link, frame, _) in FOUND.items() if name not in NOT_COMPARED}
    path = tmp_path / "encapsulations.pcapng"
    path.write_bytes(build.interface_per_frame(cases.values()))
    shown = wireshark.fields(path, ["udp.dstport", "udp.payload"], occurrence="l", preferences=[NULL_ESP])
    assert dict(zip(cases, shown, strict=True)) == {name: ["1801", b"payload".hex()] for name in cases}


def test_rows_without_the_column() -> None:
    with capture.open(io.BytesIO(build.pcap([ip(47, gre(0x0800, IPV4))])), columns=["frame"]) as blocks:
        assert [block.capture["frame"].tolist() for block in blocks] == [[1]]
