"""TCP streams: from a capture in order to the message packets in it, beside dpkt and Scapy doing the same.

Each peer takes frames apart with its library, keeps the bytes of every direction in order and cuts packets off by
their BaseHeader ([MS-MQMQ] 2.2.19.1), which is the least that gives the same packets. We also look for what is lost,
late or there twice.
"""

from __future__ import annotations

import random
import struct
import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

from benchmarks.comparison import OURS, Comparison
from benchmarks.peers import Peer
from benchmarks.ratios import Contender
from benchmarks.scale import Scale
from benchmarks.workloads import PCAP_HEADER, SEED
from msmqwire import capture

pytestmark = pytest.mark.benchmark(timer=time.process_time, warmup=True)

PORT, CONNECTIONS, MOST_IN_SEGMENT = 1801, 16, 1460
WITH_COLUMNS = f"{OURS}, with capture columns"
DPKT, SCAPY = "dpkt, reassembling", "scapy, reassembling"
TARGETS = (Peer(DPKT, lambda _: None, target=100), Peer(SCAPY, lambda _: None, target=1000))
BASE_HEADER = struct.Struct("<BBHIII")

Answer = tuple[int, int, int]
"""Packets, their bytes, and a sum over their contents when it is to be checked."""
Run = Callable[..., Answer]


def packets(count: int) -> Iterator[bytes]:
    """Messages of the sizes that notifications, acknowledgments and documents have, some with a SessionHeader."""
    rng = random.Random(SEED)
    content = rng.randbytes(1 << 16)
    for _ in range(count):
        size = rng.choice((200, 300, 420, 700, 2224, 4000))
        start, session = rng.randrange(1 << 15), rng.random() < 0.3
        head = BASE_HEADER.pack(16, 0, 0x13 if session else 3, 0x524F494C, size, 300)
        yield head + content[start : start + size - 16 + 16 * session]


def record(number: int, connection: int, payload: bytes, sequence: int, *, answer: bool = False) -> bytes:
    """A frame of the connection, with its checksums left out."""
    ports, hosts = (40000 + connection, PORT), (b"\x0a\0\0\x01", b"\x0a\0\0\x02")
    if answer:
        ports, hosts = ports[::-1], hosts[::-1]
    tcp = struct.pack(">HHIIBBHHH", *ports, sequence % (1 << 32), 1, 0x50, 0x10, 8192, 0, 0)
    ip = struct.pack(">BBHHHBBH", 0x45, 0, 40 + len(payload), number & 0xFFFF, 0x4000, 128, 6, 0) + b"".join(hosts)
    frame = bytes(12) + b"\x08\0" + ip + tcp + payload
    return struct.pack("<IIII", 1_195_200_000 + number // 1000, number % 1000, len(frame), len(frame)) + frame


def write_streams(path: Path, packets: Iterable[bytes]) -> Answer:
    """A capture of packets in connections that take turns, every second segment acknowledged; what is in it.

    It is written in large pieces, as the one of datagrams is: of a file written in small ones the page cache keeps
    single pages, and reading it takes the system twice as long, whoever reads.
    """
    sequences = [(1 << 32) - 5000 * connection for connection in range(CONNECTIONS)]
    found, size, content, number = 0, 0, 0, 0
    with path.open("wb", buffering=1 << 24) as file:
        file.write(PCAP_HEADER)
        for packet in packets:
            connection = found % CONNECTIONS
            for start in range(0, len(packet), MOST_IN_SEGMENT):
                part = packet[start : start + MOST_IN_SEGMENT]
                file.write(record(number, connection, part, sequences[connection]))
                sequences[connection] += len(part)
                number += 1
                if number % 3 == 2:
                    file.write(record(number, connection, b"", 1, answer=True))
                    number += 1
            found, size, content = found + 1, size + len(packet), content + zlib.crc32(packet)
    return found, size, content


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
    for name, columns, goal in ((OURS, (), 0.40), (WITH_COLUMNS, None, None)):
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
