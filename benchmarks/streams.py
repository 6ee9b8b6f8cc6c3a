"""Seeded captures of TCP streams: message packets in connections that take turns."""

from __future__ import annotations

import random
import struct
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from benchmarks.workloads import PCAP_HEADER, SEED

PORT, CONNECTIONS, MOST_IN_SEGMENT = 1801, 16, 1460
BASE_HEADER = struct.Struct("<BBHIII")

Answer = tuple[int, int, int]
"""Packets, their bytes, and a sum over their contents when it is to be checked."""


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
    single pages, which the system takes twice as long to read.
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
