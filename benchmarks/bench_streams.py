"""TCP streams: from a capture in order to the message packets in it, beside dpkt and Scapy doing the same.

Each peer takes frames apart with its library, keeps the bytes of every direction in order and cuts packets off by
their BaseHeader ([MS-MQMQ] 2.2.19.1), which is the least that gives the same packets. We also look for what is lost,
late or there twice.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

from benchmarks.comparison import OURS, Comparison, Goal
from benchmarks.peers import Peer
from benchmarks.ratios import Contender
from benchmarks.scale import Scale
from benchmarks.streams import BASE_HEADER, PORT, Answer, packets, write_streams
from msmqwire import capture

pytestmark = pytest.mark.benchmark(timer=time.process_time, warmup=True)

WITH_COLUMNS = f"{OURS}, with capture columns"
DPKT, SCAPY = "dpkt, reassembling", "scapy, reassembling"
TARGETS = (Peer(DPKT, lambda _: None, target=100), Peer(SCAPY, lambda _: None, target=1000))

Run = Callable[..., Answer]


def ours(path: Path, columns: tuple[str, ...] | None) -> Run:
    """The payloads of every block."""

    def run(*, check: bool = False) -> Answer:
        found = size = content = 0
        with capture.open(path, ports={"tcp": [PORT]}, columns=columns) as blocks:
            for block in blocks:
                found += len(block.payloads)
                size += block.payloads.nbytes
                if check:
                    content += sum(zlib.crc32(payload or b"") for payload in block.payloads)
        return found, size, content

    return run


def reassembled(segments: Iterable[tuple[object, int, bytes]], wanted: int, *, check: bool) -> Answer:
    """Cut packets off the bytes of every direction that are in order."""
    found = size = content = 0
    expected: dict[object, int] = {}
    held: dict[object, bytearray] = {}
    for ends, sequence, data in segments:
        if not data or expected.setdefault(ends, sequence) != sequence:
            continue
        expected[ends] = (sequence + len(data)) % (1 << 32)
        stream = held.setdefault(ends, bytearray())
        stream += data
        while len(stream) >= BASE_HEADER.size:
            version, _, flags, signature, total, _ = BASE_HEADER.unpack_from(stream)
            if version != 16 or signature != 0x524F494C:
                raise ValueError("no packet")
            if flags & 0x18 == 0x10:
                total += 16
            if len(stream) < total:
                break
            packet = bytes(stream[:total])
            del stream[:total]
            found, size = found + 1, size + total
            if check:
                content += zlib.crc32(packet)
            if found == wanted:
                return found, size, content
    return found, size, content


def by_dpkt(path: Path, wanted: int) -> Run:
    """dpkt takes the frames apart."""
    import dpkt

    def segments() -> Iterator[tuple[object, int, bytes]]:
        with path.open("rb") as file:
            for _, frame in dpkt.pcap.Reader(file):
                ip = dpkt.ethernet.Ethernet(frame).data
                tcp = ip.data
                if PORT in (tcp.sport, tcp.dport):
                    yield (ip.src, tcp.sport, ip.dst, tcp.dport), tcp.seq, tcp.data

    return lambda check=False: reassembled(segments(), wanted, check=check)


def by_scapy(path: Path, wanted: int) -> Run:
    """Scapy does."""
    from scapy.layers import l2  # noqa: F401  binds Ethernet to its link type
    from scapy.layers.inet import IP, TCP
    from scapy.utils import PcapReader

    def segments() -> Iterator[tuple[object, int, bytes]]:
        with PcapReader(str(path)) as reader:
            for frame in reader:
                ip, tcp = frame[IP], frame[TCP]
                if PORT in (tcp.sport, tcp.dport):
                    yield (ip.src, tcp.sport, ip.dst, tcp.dport), tcp.seq, bytes(tcp.payload)

    return lambda check=False: reassembled(segments(), wanted, check=check)


def test_streams(compare: Comparison, scale: Scale, tmp_path: Path) -> None:
    path, rows = tmp_path / "streams.pcap", scale.rows // 20
    truth = write_streams(path, packets(rows))
    mine = []
    for name, columns, goal in ((OURS, (), Goal(0.40, 0.27)), (WITH_COLUMNS, None, Goal())):
        run = ours(path, columns)
        assert run(check=True) == truth
        mine.append((Contender(name, run, rows), goal))
    loops = []
    for name, prepare, sample in ((DPKT, by_dpkt, 4000), (SCAPY, by_scapy, 400)):
        few = scale.sample(sample)
        part = write_streams(tmp_path / f"{few}.pcap", packets(few))
        peer = prepare(tmp_path / f"{few}.pcap", few)
        assert peer(check=True) == part
        loops.append(Contender(name, peer, few, f"{few:,} packets"))
    compare(
        "Capture file (pcap, TCP in order) to message packets",
        yardstick=path.read_bytes(),
        mine=mine,
        loops=loops,
        targets=TARGETS,
    )
    compare.peak_memory(mine[0][0].run, path)
