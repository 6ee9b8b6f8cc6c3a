"""TCP streams of random packets, as a network may disturb them, read here and by the oracle."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msmqwire import capture
from tests.capture import build, oracle
from tests.capture.build import internal, message, segment
from tests.capture.reading import Dribble, read
from tests.capture.stream_oracle import ACK, FIN, RST, SYN, Streams
from tests.capture.test_streams import PACKETS

pytestmark = pytest.mark.usefixtures("everything_is_released")


class Sender:
    """Streams of packets, cut into segments, and what a network may do to these."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng

    def content(self) -> bytes:
        """The bytes of a stream."""
        rng = self.rng
        parts = []
        for _ in range(rng.randrange(1, 9)):
            body = rng.choice((b"", bytes(rng.randrange(80)), rng.randbytes(rng.randrange(40)), PACKETS[2], b"\x10"))
            parts.append(rng.choice((message(body, session=rng.random() < 0.5), internal())))
            if rng.random() < 0.1:
                parts.append(rng.choice((b"\x10" * 5, rng.randbytes(9), message(size=7), PACKETS[3][:9])))
        return b"".join(parts)

    def stream(self, source: int) -> list[tuple[int, bytes, int, int]]:
        """The segments of a connection: its port, payload, sequence number and flags."""
        rng, data = self.rng, self.content()
        first = rng.choice((0, 1, 1000, (1 << 32) - rng.randrange(1, 60), (1 << 31) - 9))
        segments = [(source, b"", first - 1, SYN)] if rng.random() < 0.7 else []
        at = rng.choice((0, 0, 0, rng.randrange(len(data))))
        while at < len(data):
            size = rng.choice((1, 5, 16, 40, 200))
            segments.append((source, data[at : at + size], first + at, 0x18))
            at += size
        if rng.random() < 0.5:
            segments.append((source, b"", first + len(data), rng.choice((FIN, RST, FIN | 0x10, SYN))))
            if rng.random() < 0.5:
                again = rng.choice((first, first + 5, first - 200, first + len(data), 77))
                segments.append((source, rng.choice((b"", b"", PACKETS[1])), again - 1, rng.choice((SYN, SYN | ACK))))
                segments += [(source, data[at : at + 40], again + at, 0x18) for at in range(0, len(data), 40)]
        return segments

    def disturb(self, segments: list[tuple[int, bytes, int, int]]) -> None:
        """Swap, repeat, lose, change, join or cut some of them."""
        rng = self.rng
        for _ in range(rng.choice((0, 1, 1, 3, 8))):
            at = rng.randrange(len(segments))
            source, payload, sequence, flags = segments[at]
            action = rng.randrange(9)
            if action == 0:
                other = min(len(segments) - 1, at + rng.randrange(1, 4))
                segments[at], segments[other] = segments[other], segments[at]
            elif action == 1:
                segments.insert(rng.randrange(len(segments) + 1), segments[at])
            elif action == 2 and len(segments) > 1:
                del segments[at]
            elif action == 3 and payload:
                place = rng.randrange(len(payload))
                changed = payload[:place] + rng.randbytes(1) + payload[place + 1 :]
                segments.insert(rng.randrange(len(segments) + 1), (source, changed, sequence, flags))
            elif action == 4 and at + 1 < len(segments) and segments[at + 1][0] == source:
                joined = payload + segments[at + 1][1]
                segments.insert(rng.randrange(len(segments) + 1), (source, joined, sequence, flags))
            elif action == 5 and payload:
                start = rng.randrange(len(payload))
                segments.insert(rng.randrange(len(segments) + 1), (source, payload[start:], sequence + start, flags))
            elif action == 6:
                segments.insert(at, (source, b"\0", sequence - 1, ACK))
            elif action == 7:
                forged = sequence - rng.choice((1, 40, 1000, 1 << 30, -40))
                segments.insert(at, (source, rng.choice((b"", PACKETS[2])), forged, rng.choice((SYN, RST, 0x18))))
            elif action == 8:
                # Of the other side, which answers the latest SYN
                segments.insert(at, (-source, rng.choice((b"", PACKETS[3])), rng.choice((5, 900)), SYN | ACK))

    def frames(self) -> list[bytes]:
        """The frames of some streams between one another, a few of them cut."""
        rng = self.rng
        streams = []
        for _ in range(rng.randrange(1, 4)):
            segments = self.stream(rng.randrange(1, 4))
            self.disturb(segments)
            streams.append(segments)
        frames = []
        syn = size = 0
        while streams:
            segments = rng.choice(streams)
            source, payload, sequence, flags = segments.pop(0)
            if source > 0 and flags & SYN:
                syn, size = sequence, len(payload)
            if source > 0:
                frame = segment(payload, sequence, flags, source=source, acknowledged=6)
            else:
                answer = syn + 1 + rng.choice((0, size, size, rng.randrange(size + 2)))
                back = {"source": 1801, "target": -source, "src": "10.0.0.2", "dst": "10.0.0.1"}
                frame = segment(payload, sequence, flags, acknowledged=answer, **back)  # type: ignore[arg-type]
            frames.append(frame[: -rng.randrange(1, 30)] if rng.random() < 0.02 else frame)
            if not segments:
                streams.remove(segments)
            if rng.random() < 0.05:
                frames.append(build.plain(b"datagram"))
        return frames


def compare(frames: list[bytes], limits: capture.StreamLimits, **options: Any) -> Streams:
    """Read frames here and with the oracle."""
    data = build.pcap(frames)
    rows, stats = read(Dribble(data, [700, 300, 1]) if options else data, limits=limits, **options)
    expected = oracle.read(data, {1801}, Streams(limit=limits.ahead, most=limits.streams))
    assert rows == expected.rows
    assert (stats.segments, stats.other, stats.malformed) == (
        expected.segments,
        expected.other,
        len(expected.malformed),
    )
    counted = expected.streams.account
    assert {name: count for name, count in vars(stats.streams).items() if count} == {
        name: count for name, count in counted.items() if count
    }
    return expected.streams


@pytest.mark.parametrize(
    ("seed", "cases"), [(0, 100), *(pytest.param(seed, 300, marks=pytest.mark.long) for seed in range(5))]
)
def test_any_streams(seed: int, cases: int) -> None:
    rng = random.Random(seed)
    seen: dict[str, int] = {}
    for number in range(cases):
        limits = capture.StreamLimits(ahead=rng.choice((0, 30, 100, 1 << 20)), streams=rng.choice((1, 2, 99)))
        options = {"block_size": 4096} if number % 10 == 0 else {}
        for name, count in compare(Sender(rng).frames(), limits, **options).account.items():
            seen[name] = seen.get(name, 0) + bool(count)
    wanted = "gaps conflicts uncompared duplicate no_packet unfinished evictions skipped missing"
    assert all(seen[name] > cases // 30 for name in wanted.split())


@given(st.randoms(use_true_random=False))
def test_any_streams_of_hypothesis(rng: random.Random) -> None:
    compare(Sender(rng).frames(), capture.StreamLimits())


@pytest.mark.parametrize("network", ["ipv4", "ipv6"])
def test_every_byte_of_the_headers_changed(network: str) -> None:
    """The quick way and the general way agree, whatever stands in a header."""
    kind, ip = (build.IPV4, build.ipv4) if network == "ipv4" else (build.IPV6, build.ipv6)
    frame = build.ethernet(kind, ip(build.tcp(PACKETS[0]), build.TCP))
    compare(
        [
            frame[:place] + bytes([value]) + frame[place + 1 :]
            for place in range(12, len(frame) - len(PACKETS[0]))
            for value in (0, 1, frame[place] ^ 1, frame[place] ^ 0x20, 0x7F, 0x80, 0xFF)
        ],
        capture.StreamLimits(),
    )
