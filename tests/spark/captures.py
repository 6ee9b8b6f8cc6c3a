"""The sample captures, and captures packed by hand: any payloads, at any times."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterable
from pathlib import Path

from tests import vectors

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
LOCAL, OTHER, SESSION = (
    str(EXAMPLES / name) for name in ("local-site.pcap", "other-site.pcapng", "message-session.pcap")
)
CAPTURES = [LOCAL, OTHER]
#: The packets printed in [MS-MQSD] 4
PRINTED = [vector.data for vector in vectors.load("mqsd") if vector.section == "[MS-MQSD] 4"]

DAY = 86_400_000_000_000
#: 2024-03-04 00:00:00 UTC, in nanoseconds
MONDAY = 1_709_510_400_000_000_000


def frame(payload: bytes, port: int = 1801) -> bytes:
    """A UDP datagram over IPv4 over Ethernet, from port 50000."""
    udp = struct.pack(">4H", 50000, port, 8 + len(payload), 0) + payload
    ip = struct.pack(">BBHHHBBH8B", 0x45, 0, 20 + len(udp), 0, 0, 64, 17, 0, 10, 0, 0, 1, 10, 0, 0, 2)
    return b"\x02" * 12 + b"\x08\x00" + ip + udp


def frames_of(source: Path) -> list[bytes]:
    """The frames of a little-endian pcap file."""
    data, at, frames = source.read_bytes(), 24, []
    while at < len(data):
        (length,) = struct.unpack_from("<I", data, at + 8)
        frames.append(data[at + 16 : at + 16 + length])
        at += 16 + length
    return frames


def packets(count: int, *, start: int = 0) -> list[tuple[int, bytes]]:
    """Times and frames with a discovery packet each, an hour apart."""
    return [(MONDAY + number * DAY // 24, frame(PRINTED[number % 2])) for number in range(start, start + count)]


def without_a_segment(source: Path, target: Path, least: int = 1000) -> None:
    """A little-endian pcap file without its first frame over TCP of ``least`` bytes or more."""
    data, at = source.read_bytes(), 24
    while True:
        (length,) = struct.unpack_from("<I", data, at + 8)
        if length >= least and data[at + 16 + 23] == 6:
            break
        at += 16 + length
    target.write_bytes(data[:at] + data[at + 16 + length :])


def large(frames: Iterable[tuple[int, bytes]], content: int = 0) -> list[tuple[int, bytes]]:
    """Frames after others that nobody looks at: a lake knows a capture of so many bytes whatever its name."""
    return [(MONDAY, frame(random.Random(content).randbytes(40_000), port=53))] * 2 + list(frames)


def write_capture(path: Path, frames: Iterable[tuple[int, bytes]]) -> str:
    """A pcap file with nanosecond times; the path as text."""
    records = [struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 65535, 1)]
    for time, data in frames:
        records.append(struct.pack("<4I", time // 10**9, time % 10**9, len(data), len(data)) + data)
    path.write_bytes(b"".join(records))
    return str(path)
