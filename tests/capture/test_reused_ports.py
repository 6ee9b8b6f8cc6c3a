"""Connections one after another on the same ports, with data in any segment: each packet of each of them is a row.

The generator knows the packets of each connection, and a slow reader of the whole capture (tests/reference/tcp.py)
finds them too.
"""

from __future__ import annotations

import random

import pytest

from tests.capture import build
from tests.capture.build import internal, message
from tests.capture.reading import read
from tests.reference import tcp
from tests.reference.tcp import ACK, FIN, RST, SYN, Ends, Segment

pytestmark = pytest.mark.usefixtures("everything_is_released")

DATA = ACK | 8


def content(rng: random.Random) -> bytes:
    """Packets."""
    parts = (rng.choice((message(rng.randbytes(rng.randrange(60))), internal())) for _ in range(rng.randrange(1, 6)))
    return b"".join(parts)


def cut(rng: random.Random, ends: Ends, data: bytes, first: int, at: int) -> list[Segment]:
    """The segments of the bytes from ``at``; some of them come twice, or one place late."""
    segments = []
    while at < len(data):
        size = rng.choice((1, 7, 20, 40, 200))
        segments.append(Segment(ends, (first + at) % tcp.NUMBERS, DATA, data[at : at + size]))
        at += size
    for _ in range(rng.choice((0, 0, 1, 3))):
        place = rng.randrange(len(segments)) if segments else 0
        if len(segments) > 1 and rng.random() < 0.5:
            other = max(0, place - 1)
            segments[other], segments[place] = segments[place], segments[other]
        elif segments:
            segments.insert(rng.randrange(place, len(segments)) + 1, segments[place])
    return segments


def end(rng: random.Random, ends: Ends, data: bytes, first: int) -> list[Segment]:
    """What ends a direction: nothing, FIN or RST, with and without data."""
    after = (first + len(data)) % tcp.NUMBERS
    kind = rng.choice(("none", "none", "fin", "fin with data", "rst", "rst with data"))
    if kind == "fin with data":
        size = rng.randrange(1, len(data))
        return [Segment(ends, (after - size) % tcp.NUMBERS, FIN | ACK, data[-size:])]
    flags = {"none": 0, "fin": FIN | ACK}.get(kind, RST)
    return [Segment(ends, after, flags, b"reset" if kind == "rst with data" else b"")] if flags else []


def initial_number(rng: random.Random, used: list[int]) -> int:
    """A number that no earlier connection of these ports began near to; some wrap soon."""
    while True:
        number = rng.choice((rng.randrange(tcp.NUMBERS), tcp.NUMBERS - rng.randrange(1, 90)))
        if all(1 << 22 <= (number - other) % tcp.NUMBERS <= tcp.NUMBERS - (1 << 22) for other in used):
            used.append(number)
            return number


def connection(
    rng: random.Random, port: int, used: tuple[list[int], list[int]]
) -> tuple[list[Segment], dict[Ends, bytes]]:
    """A connection whose SYNs may carry data, and the bytes of its directions."""
    there: Ends = ("10.0.0.1", port, "10.0.0.2", 1801)
    back = tcp.reverse(there)
    asked, answered = content(rng), content(rng)
    numbers = [initial_number(rng, numbers) for numbers in used]
    early = rng.choice((0, 0, rng.randrange(1, len(asked) + 1), len(asked)))
    acknowledged = rng.choice((0, early, early, rng.randrange(early + 1)))
    served = rng.choice((0, 0, 0, rng.randrange(1, len(answered) + 1)))
    first, second = ((number + 1) % tcp.NUMBERS for number in numbers)
    syn = Segment(there, numbers[0], SYN, asked[:early])
    answer = Segment(back, numbers[1], SYN | ACK, answered[:served], (first + acknowledged) % tcp.NUMBERS)
    begin = [syn]
    if rng.random() < 0.2:
        begin.append(rng.choice((syn, syn._replace(payload=b""))))
    begin.append(answer)
    if rng.random() < 0.1:
        begin.append(answer)
    begin.append(Segment(there, (first + acknowledged) % tcp.NUMBERS, ACK, b""))
    ways = [
        cut(rng, there, asked, first, acknowledged) + end(rng, there, asked, first),
        cut(rng, back, answered, second, rng.choice((0, served))) + end(rng, back, answered, second),
    ]
    while ways[0] or ways[1]:
        begin.append(rng.choice([way for way in ways if way]).pop(0))
    return begin, {there: asked, back: answered}


def traffic(rng: random.Random) -> tuple[list[Segment], dict[Ends, list[bytes]]]:
    """Connections on few ports, one after another on each, and the bytes of each direction of each of them."""
    by_port: list[list[Segment]] = []
    expected: dict[Ends, list[bytes]] = {}
    for port in range(40000, 40000 + rng.randrange(1, 4)):
        mine: list[Segment] = []
        used: tuple[list[int], list[int]] = [], []
        for _ in range(rng.randrange(1, 6)):
            segments, data = connection(rng, port, used)
            mine += segments
            for ends, each in data.items():
                expected.setdefault(ends, []).append(each)
        by_port.append(mine)
    segments = []
    while any(by_port):
        segments.append(rng.choice([mine for mine in by_port if mine]).pop(0))
    return segments, expected


def frame(segment: Segment) -> bytes:
    """The frame of a segment."""
    src, src_port, dst, dst_port = segment.ends
    return build.segment(
        segment.payload, segment.number, segment.flags, src_port, dst_port, src=src, dst=dst,
        acknowledged=segment.acknowledged,
    )  # fmt: skip


def check(rng: random.Random) -> int:
    """Read random connections; how many packets they have."""
    segments, known = traffic(rng)
    found = tcp.read(segments)
    assert found == known
    rows, stats = read(build.pcap(map(frame, segments)))
    by_ends: dict[Ends, list[bytes]] = {}
    for row in rows:
        by_ends.setdefault((row.src, row.src_port, row.dst, row.dst_port), []).append(row.payload)
    assert by_ends == {
        ends: [packet for data in streams for packet in tcp.packets(data)] for ends, streams in found.items()
    }
    assert (stats.streams.gaps, stats.streams.unfinished, stats.streams.no_packet) == (0, 0, 0)
    return len(rows)


@pytest.mark.parametrize(("seed", "cases"), [(0, 300), pytest.param(1, 3_000, marks=pytest.mark.long)])
def test_connections_on_reused_ports(seed: int, cases: int) -> None:
    rng = random.Random(seed)
    assert sum(check(rng) for _ in range(cases)) > 10 * cases


@pytest.mark.parametrize("end", [b"", b"fin", b"rst"])
@pytest.mark.parametrize("acknowledged", [0, 1, 16, 20])
def test_a_syn_with_data_on_used_ports(end: bytes, acknowledged: int) -> None:
    """RFC 7413: the answer may acknowledge none, a part or all of the data, which may come again."""
    there: Ends = ("10.0.0.1", 40000, "10.0.0.2", 1801)
    old, new = message(b"old"), message(b"data")
    assert len(new) == 20
    ended = {b"fin": [Segment(there, 119, FIN, b"")], b"rst": [Segment(there, 120 - 1, RST, b"")]}.get(end, [])
    segments = [
        Segment(there, 99, SYN, b""),
        Segment(there, 100, DATA, old),
        *ended,
        Segment(there, 7999, SYN, new),
        Segment(tcp.reverse(there), 1, SYN | ACK, b"", 8000 + acknowledged),
        Segment(there, 8000 + acknowledged, DATA, new[acknowledged:] + message(b"more")),
    ]
    rows, stats = read(build.pcap(map(frame, segments)))
    assert [row.payload for row in rows] == [old, new, message(b"more")]
    assert stats.streams.duplicate == len(new) - acknowledged
    assert [row.frame for row in rows][1] == len(ended) + 3
