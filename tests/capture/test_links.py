"""Every link layer that a capture may have, and IPX in each of Novell's frame types."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from msmqwire import capture
from tests.capture import build, oracle, wireshark
from tests.capture.reading import read

IPV4, IPV6 = build.ipv4(build.udp(b"payload")), build.ipv6(build.udp(b"payload"))
IPX = build.ipx(b"payload")
PORTS = {1801, 876}

LINKS = {  # what it is: link type, frame
    "cooked": (build.COOKED, build.cooked(build.IPV4, IPV4)),
    "cooked over ipv6": (build.COOKED, build.cooked(build.IPV6, IPV6)),
    "cooked with a tag": (build.COOKED, build.cooked(build.VLAN, b"\0\5\x08\0" + IPV4)),
    "cooked, second version": (build.COOKED2, build.cooked2(build.IPV4, IPV4)),
    "cooked, second version, over ipv6": (build.COOKED2, build.cooked2(build.IPV6, IPV6)),
    "loopback of a little-endian machine": (build.LOOPBACK, b"\2\0\0\0" + IPV4),
    "loopback of a big-endian machine": (build.LOOPBACK, b"\0\0\0\2" + IPV4),
    "loopback over ipv6, NetBSD": (build.LOOPBACK, b"\x18\0\0\0" + IPV6),
    "loopback over ipv6, FreeBSD": (build.LOOPBACK, b"\x1c\0\0\0" + IPV6),
    "loopback over ipv6, macOS": (build.LOOPBACK, b"\x1e\0\0\0" + IPV6),
    "loopback of OpenBSD": (build.OPENBSD_LOOPBACK, b"\0\0\0\2" + IPV4),
    "subnetwork access protocol": (build.ETHERNET, build.ethernet(63, b"\xaa\xaa\3\0\0\0\x86\xdd" + IPV6)),
}

NOVELL = {  # the frame types by Novell's names
    "Ethernet_II": (build.ETHERNET, build.ethernet(0x8137, IPX)),
    "Ethernet_802.3": (build.ETHERNET, build.ethernet(len(IPX), IPX)),
    "Ethernet_802.2": (build.ETHERNET, build.ethernet(len(IPX) + 3, b"\xe0\xe0\3" + IPX)),
    "Ethernet_SNAP": (build.ETHERNET, build.ethernet(len(IPX) + 8, b"\xaa\xaa\3\0\0\0\x81\x37" + IPX)),
    "padded": (build.ETHERNET, build.ethernet(len(IPX), IPX + bytes(23))),
    "in a VLAN": (build.ETHERNET, build.ethernet(len(IPX), IPX, [(build.VLAN, 5)])),
    "raw, cooked": (build.COOKED, build.cooked(1, IPX)),
    "802.2, cooked": (build.COOKED, build.cooked(4, b"\xe0\xe0\3" + IPX)),
    "Ethernet_II, cooked, second version": (build.COOKED2, build.cooked2(0x8137, IPX)),
    "loopback": (build.LOOPBACK, b"\x17\0\0\0" + IPX),
}

OTHERS = {
    "cooked, of another protocol": (build.COOKED, build.cooked(0x0806, bytes(28))),
    "cooked, of a protocol without a number": (build.COOKED, build.cooked(0x000C, bytes(28))),
    "a family that is not ours": (build.LOOPBACK, b"\7\0\0\0" + IPV4),
    "a family that no machine writes": (build.LOOPBACK, b"\2\0\0\2" + IPV4),
    "other sockets": (build.ETHERNET, build.ethernet(0x8137, build.ipx(b"payload", 0x451, 0x452))),
    "SPX": (build.ETHERNET, build.ethernet(0x8137, build.ipx(bytes(12), kind=5))),
}

DAMAGED = {
    "cut cooked header": (
        build.COOKED,
        build.cooked(build.IPV4, b"")[:15],
        "the link layer header is truncated: it needs 16",
    ),
    "cut second version": (
        build.COOKED2,
        bytes(19),
        "the link layer header is truncated: it needs 20 bytes, 19 were captured",
    ),
    "cut family": (build.LOOPBACK, b"\2\0\0", "the link layer header is truncated: it needs 4 bytes, 3 were captured"),
    "cut link control": (
        build.ETHERNET,
        build.ethernet(3, b"\xaa\xaa"),
        "the link layer header is truncated: it needs 17",
    ),
    "cut access protocol": (
        build.ETHERNET,
        build.ethernet(7, b"\xaa\xaa\3\0\0\0\x08"),
        "the link layer header is truncated: it needs 22 bytes, 21 were captured",
    ),
    "cut IPX header": (
        build.ETHERNET,
        build.ethernet(0x8137, IPX[:29]),
        "the IPX header is truncated: it needs 30 bytes, 29 were captured",
    ),
    "short IPX packet": (
        build.ETHERNET,
        build.ethernet(0x8137, build.ipx(b"payload", length=29)),
        "an IPX packet of 29 bytes; the minimum is 30",
    ),
    "cut IPX packet": (
        build.ETHERNET,
        build.ethernet(0x8137, IPX[:-1]),
        "the frame is truncated: a datagram of 37 bytes, 36 were captured",
    ),
}


@pytest.mark.parametrize("name", LINKS)
def test_link_layers(name: str) -> None:
    link, frame = LINKS[name]
    (row,), stats = read(build.pcap([frame], link=link))
    assert (row.src_port, row.dst_port, row.payload) == (40000, 1801, b"payload")
    assert row.src in ("10.0.0.1", "2001:db8::1")
    assert stats.payloads == 1


@pytest.mark.parametrize("name", NOVELL)
def test_novell_frames(name: str) -> None:
    link, frame = NOVELL[name]
    (row,), _ = read(build.pcap([frame], link=link), ports=PORTS)
    assert row[2:7] == ("00000002:025e00000001", 0x4003, "00000002:ffffffffffff", 876, b"payload")
    assert not read(build.pcap([frame], link=link), ports=[1801])[0]


@pytest.mark.parametrize("name", OTHERS)
def test_other_frames(name: str) -> None:
    link, frame = OTHERS[name]
    _, stats = read(build.pcap([frame], link=link), ports=PORTS)
    assert (stats.frames, stats.other) == (1, 1)


@pytest.mark.parametrize("name", DAMAGED)
def test_damaged_frames(name: str) -> None:
    link, frame, what = DAMAGED[name]
    _, stats = read(build.pcap([frame], link=link), ports=PORTS)
    (problem,) = stats.problems
    assert problem.what.startswith(what)


@pytest.mark.parametrize("name", [*LINKS, *NOVELL, *OTHERS])
def test_every_truncation_and_changed_byte(name: str) -> None:
    link, frame = {**LINKS, **NOVELL, **OTHERS}[name]
    frames = [frame[:size] for size in range(len(frame) + 1)]
    frames += [
        frame[:place] + bytes([value]) + frame[place + 1 :]
        for place in range(len(frame))
        for value in (0, 1, frame[place] ^ 1, 0x7F, 0xE0, 0xFF)
    ]
    data = build.pcap(frames, link=link)
    rows, stats = read(data, ports=PORTS)
    expected = oracle.read(data, PORTS)
    assert rows == expected.rows
    assert (stats.other, stats.malformed) == (expected.other, len(expected.malformed))


def test_an_interface_a_link() -> None:
    """Interfaces of one pcapng section may be of every kind."""
    frames = [*LINKS.values(), *NOVELL.values()]
    rows, _ = read(build.interface_per_frame(frames), ports=PORTS)
    assert [row.frame for row in rows] == list(range(1, len(frames) + 1))


def test_transport_column() -> None:
    data = build.pcap([build.plain(b"one"), NOVELL["Ethernet_802.3"][1]])
    with capture.open(io.BytesIO(data)) as blocks:
        (block,) = blocks
    table = block.capture.to_arrow()
    assert table["transport"].to_pylist() == ["udp", "ipx"]
    assert table["src"].to_pylist() == ["10.0.0.1", "00000002:025e00000001"]


def test_tshark_sees_the_same(tmp_path: Path) -> None:
    cases = {name: case for name, case in {**LINKS, **NOVELL}.items() if name != "loopback"}
    path = tmp_path / "links.pcapng"
    path.write_bytes(build.interface_per_frame(cases.values()))
    shown = wireshark.fields(path, ["udp.dstport", "ipx.dst.socket", "udp.length", "ipx.len"])
    expected = {name: ["1801", "", "15", ""] if name in LINKS else ["", "0x036c", "", "37"] for name in cases}
    assert dict(zip(cases, shown, strict=True)) == expected
