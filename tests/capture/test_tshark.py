"""Captures that Scapy wrote, read by us and by Wireshark: the same frames, times, addresses and payloads."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from scapy.layers.inet import ICMP, IP, TCP, UDP, IPOption_Router_Alert, fragment
from scapy.layers.inet6 import (
    IPv6,
    IPv6ExtHdrDestOpt,
    IPv6ExtHdrFragment,
    IPv6ExtHdrHopByHop,
    IPv6ExtHdrRouting,
    PadN,
    fragment6,
)
from scapy.layers.l2 import ARP, Dot1AD, Dot1Q, Ether
from scapy.packet import Packet, Raw
from scapy.utils import EDecimal, PcapNgWriter, PcapWriter

from msmqwire import capture
from tests.capture import build, wireshark
from tests.capture.reading import Row, read
from tests.effort import long_cases
from tests.system_programs import require_program
from tests.vectors import load

PAYLOADS = [vector.data for vector in load("mqsd")]
START = 1_709_539_200.123456


def datagram(payload: bytes) -> Packet:
    """A UDP datagram from a port of a client."""
    return UDP(sport=50000 + len(payload) % 1000, dport=1801) / Raw(payload)


def answer(payload: bytes) -> Packet:
    """A UDP datagram to a client."""
    return UDP(sport=1801, dport=50000) / Raw(payload)


def pieces(cut: Any, packet: Packet, size: int) -> list[Packet]:
    """The fragments of a packet, by one of Scapy's untyped functions."""
    found: list[Packet] = cut(packet, size)
    return found


def frames() -> list[Packet]:
    """Every way to a payload, with traffic of others between."""
    first = PAYLOADS[0]
    four, six = IP(src="10.20.1.25", dst="10.20.1.255"), IPv6(src="2001:db8::25", dst="fe80::1")
    ether = Ether(src="02:00:5e:00:00:01", dst="ff:ff:ff:ff:ff:ff")
    many = [ether / four / (answer if i % 2 else datagram)(payload) for i, payload in enumerate(PAYLOADS) if payload]
    return [
        *many,
        ether / Dot1Q(vlan=7) / four / datagram(first),
        ether / Dot1AD(vlan=5) / Dot1Q(vlan=6) / four / datagram(first),
        ether / Dot1Q(vlan=5) / Dot1Q(vlan=6) / six / datagram(first),
        ether / IP(src="1.2.3.4", dst="5.6.7.8", options=[IPOption_Router_Alert()]) / datagram(first),
        ether / IP(src="1.2.3.4", dst="5.6.7.8", flags="DF", tos=0xB8, ttl=1) / datagram(first),
        ether / six / datagram(first),
        ether / six / IPv6ExtHdrHopByHop(options=[PadN(optdata=b"\0" * 10)]) / datagram(first),
        ether / six / IPv6ExtHdrHopByHop() / IPv6ExtHdrDestOpt() / IPv6ExtHdrRouting(addresses=["::1"]) / answer(first),
        ether / six / IPv6ExtHdrFragment(offset=0, m=0, id=9) / datagram(first),
        ether / four / datagram(b"x" * 60000),
        ether / four / UDP(sport=1801, dport=1801) / Raw(b"y" * 3),
        ether / four / UDP(sport=53, dport=53) / Raw(first),
        ether / four / TCP(sport=50000, dport=1801) / Raw(first),
        ether / four / ICMP(type=3, code=3) / four / datagram(first),
        ether / ARP(psrc="10.20.1.25", pdst="10.20.1.10"),
        *pieces(fragment, ether / four / datagram(b"z" * 3000), 1000),
        *pieces(fragment6, ether / six / IPv6ExtHdrFragment() / datagram(b"z" * 3000), 1280),
        ether / four / answer(PAYLOADS[1]),
    ]  # fmt: skip


def timed(packets: Iterable[Packet], step: str = "0.001000001") -> list[Packet]:
    """The packets, some time apart."""
    result = []
    for number, packet in enumerate(packets):
        packet.time = EDecimal(str(START)) + EDecimal(step) * number
        result.append(packet)
    return result


def tshark(path: Path) -> tuple[list[Row], int]:
    """The UDP payloads of a file as Wireshark sees them, and the number of its frames."""
    names = [
        "frame.number", "frame.time_epoch", "ip.src", "ipv6.src", "udp.srcport", "ip.dst", "ipv6.dst", "udp.dstport",
        "udp.payload", "icmp.type",
    ]  # fmt: skip
    rows = []
    found = wireshark.fields(path, names)
    for frame, time, ip_src, ipv6_src, src_port, ip_dst, ipv6_dst, dst_port, payload, icmp in found:
        if icmp or "1801" not in (src_port, dst_port):
            continue
        stamp = int(Decimal(time) * 10**9) if time else None
        source, target = ip_src or ipv6_src, ip_dst or ipv6_dst
        rows.append(Row(int(frame), stamp, source, int(src_port), target, int(dst_port), bytes.fromhex(payload)))
    return rows, len(found)


def read_datagrams(path: Path) -> tuple[list[Row], capture.CaptureStats]:
    """Our rows of datagrams; the one TCP segment carries other bytes than packets."""
    rows, stats = read(path)
    return [row for row in rows if row.stream_offset is None], stats


def agree(path: Path) -> list[Row]:
    """Our rows, which are tshark's."""
    rows, stats = read_datagrams(path)
    assert (rows, stats.frames) == tshark(path)
    return rows


@pytest.mark.parametrize(("order", "nano"), [("<", False), (">", True), *long_cases([("<", True), (">", False)])])
def test_pcap(tmp_path: Path, order: str, nano: bool) -> None:
    path = tmp_path / "scapy.pcap"
    with PcapWriter(str(path), linktype=1, endianness=order, nano=nano) as writer:
        writer.write(timed(frames()))
    rows = agree(path)
    assert [row.payload for row in rows[: len(PAYLOADS) - 3]] == [payload for payload in PAYLOADS if payload][
        : len(PAYLOADS) - 3
    ]
    assert len(rows) > len(PAYLOADS) + 10
    _, stats = read(path)
    assert stats.fragments == 3 + 2
    assert stats.malformed == 0


@pytest.mark.parametrize("version", [4, 6])
def test_raw_ip(tmp_path: Path, version: int) -> None:
    path = tmp_path / "raw.pcap"
    network = IP(src="10.0.0.1") if version == 4 else IPv6(src="::1")
    with PcapWriter(str(path), linktype=101) as writer:
        writer.write(timed(network / datagram(payload) for payload in PAYLOADS if payload))
    assert len(agree(path)) > 5


def test_pcapng_by_scapy(tmp_path: Path) -> None:
    path = tmp_path / "scapy.pcapng"
    writer: Any = PcapNgWriter(str(path))
    for packet in timed(frames()):
        writer.write(packet)
    writer.close()
    assert len(agree(path)) > len(PAYLOADS) + 10


@pytest.mark.parametrize("order", ["<", ">"])
def test_interfaces_and_sections(tmp_path: Path, order: str) -> None:
    """Each interface with its own link type and unit, a second section, and blocks that Wireshark numbers."""
    packets = [bytes(packet) for packet in frames()]
    raw = bytes(IP(src="9.9.9.9") / datagram(PAYLOADS[0]))
    parts = [build.section(order)]
    for number, resolution in enumerate((6, 9, 3, 0, 0x80 | 10)):
        link = build.RAW if number == 1 else build.ETHERNET
        parts.append(build.interface(order, link=link, resolution=resolution, offset=number * 5))
        units = 2 ** (resolution & 0x7F) if resolution & 0x80 else 10**resolution
        for index, packet in enumerate(packets[number::5]):
            stamp = 1_709_539_200 * units + index * 977 % units
            parts.append(build.packet(raw if number == 1 else packet, order, number=number, stamp=stamp))
        parts.append(build.simple_packet(packets[0], order))
        parts.append(build.old_packet(packets[1], order, number=0))
        parts += [build.block(kind, bytes(12), order) for kind in (5, 0x77)]
        parts.append(build.block(0xBAD, bytes(8), order))
    other = ">" if order == "<" else "<"
    parts += [build.section(other), build.interface(other, resolution=9)]
    parts += [build.packet(packet, other, stamp=build.START + index) for index, packet in enumerate(packets)]
    path = tmp_path / "many.pcapng"
    path.write_bytes(b"".join(parts))
    rows = agree(path)
    assert any(row.time is None for row in rows)
    assert any(row.src == "9.9.9.9" for row in rows)


@pytest.mark.parametrize("snapshot", [94, 96, *long_cases([60, 200])])
def test_cut_frames(tmp_path: Path, snapshot: int) -> None:
    """A frame that the snapshot length cut has no payload, or all of it: what is left of one would decode wrongly."""
    path = tmp_path / "cut.pcap"
    records = [build.pcap_record(bytes(packet)[:snapshot], original=len(bytes(packet))) for packet in frames()]
    path.write_bytes(build.pcap_header(snapshot=snapshot) + b"".join(records))
    rows, stats = read_datagrams(path)
    whole = {row.frame: row for row in tshark(path)[0]}
    assert all(whole[row.frame].payload == row.payload for row in rows)
    lost = [frame for frame in whole if frame not in {row.frame for row in rows}]
    assert lost
    assert stats.malformed >= len(lost)


@pytest.mark.parametrize("form", ["pcap", "nsecpcap", "pcapng"])
def test_what_text2pcap_made(tmp_path: Path, form: str) -> None:
    """A capture from a hex dump, as people type one off a screen."""
    payloads = [payload for payload in PAYLOADS if payload]
    dump, path = tmp_path / "dump.txt", tmp_path / "made"
    lines = [f"{at:06x} {part.hex(' ')}" for payload in payloads for at, part in _sixteens(payload)]
    dump.write_text("\n".join(lines) + "\n")
    command = [require_program("text2pcap"), "-q", "-F", form, "-u", "40000,1801", "-4", "10.0.0.1,10.0.0.255"]
    done = subprocess.run([*command, str(dump), str(path)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert [row.payload for row in agree(path)] == payloads


def _sixteens(payload: bytes) -> Iterable[tuple[int, bytes]]:
    return ((at, payload[at : at + 16]) for at in range(0, len(payload), 16))
