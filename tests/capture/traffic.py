"""Captures of several streams, datagrams and fragments, as tests that cut them in two need them."""

from __future__ import annotations

import random

from tests.capture import build
from tests.capture.build import internal, message, segment
from tests.capture.stream_oracle import FIN, RST, SYN


def file_of(frames: list[bytes], form: int) -> bytes:
    """A capture of these frames in either format and byte order."""
    order = "<>"[form & 1]
    return build.pcapng(frames, order) if form & 2 else build.pcap(frames, order)


def fragments(rng: random.Random) -> list[bytes]:
    """A datagram in two parts, with another frame between them; now and then one of them is lost."""
    data = build.udp(rng.randbytes(80), target=rng.choice((1801, 53)))
    source = f"10.9.0.{rng.randrange(250)}"
    parts = [
        build.ethernet(build.IPV4, build.ipv4(data[:40], fragment=0x2000, source=source)),
        build.plain(b"between"),
        build.ethernet(build.IPV4, build.ipv4(data[40:], fragment=5, source=source)),
    ]
    return parts if rng.random() < 0.8 else parts[rng.randrange(2) :][:2]


def conversation(rng: random.Random, count: int, *, bad: float = 0, fragmented: bool = True) -> list[bytes]:
    """Datagrams, and segments of several streams; with ``bad`` some are lost, repeated, late, or end their stream."""
    frames: list[bytes] = []
    streams: dict[int, tuple[int, bytes]] = {}
    while len(frames) < count:
        if fragmented and rng.random() < 0.03:
            frames += fragments(rng)
        if rng.random() < 0.3:
            frames.append(build.plain(rng.randbytes(rng.randrange(60)), target=rng.choice((1801, 53))))
            continue
        port = 40000 + rng.randrange(6)
        if port not in streams or rng.random() < bad / 5:
            sequence = rng.randrange(1 << 32)
            streams[port] = sequence, b""
            if rng.random() < 0.6:
                frames.append(segment(b"", sequence - 1, SYN, port))
        sequence, data = streams[port]
        if len(data) < 50:
            body = rng.randbytes(rng.randrange(300))
            if rng.random() < bad / 5:
                body += message(b"in another")
            data += internal() if rng.random() < 0.1 else message(body, session=rng.random() < 0.2)
        size = rng.choice((len(data), rng.randrange(1, len(data) + 1)))
        flags = rng.choice((FIN, RST)) if rng.random() < bad / 10 else 0x18
        if rng.random() >= bad / 4:
            frames.append(segment(data[:size], sequence, flags, port))
        streams[port] = (sequence + size) % (1 << 32), data[size:]
        if frames and rng.random() < bad / 2:
            frames.append(rng.choice(frames[-9:]))
        if len(frames) > 9 and rng.random() < bad / 2:
            at = len(frames) - rng.randrange(1, 9)
            frames.insert(at, frames.pop())
    return frames


def several_sections(rng: random.Random, order: str) -> bytes:
    """A pcapng capture of which not all is as its front says: interfaces, sections and other blocks follow."""
    frames = conversation(rng, 100)
    parts = [build.section(order), build.interface(order, resolution=9)]
    for number, frame in enumerate(frames):
        if number == 30:
            parts.append(build.interface(order, resolution=3, offset=77))
        if number == 60:
            order = "<>"[order == "<"]
            parts += [build.section(order), build.interface(order, resolution=6, offset=-5)]
        parts.append(build.packet(frame, order, number=int(30 < number < 60 and number % 2), stamp=number))
        if number % 10 == 5:
            parts.append(build.block(rng.choice((4, 5, 0xBAD)), rng.randbytes(8), order))
    return b"".join(parts)


def malformed(rng: random.Random, data: bytes) -> bytes:
    """The capture with some bits turned and some bytes replaced by others."""
    changed = bytearray(data)
    for _ in range(rng.randrange(1, 8)):
        at = rng.randrange(28, len(changed))
        if rng.random() < 0.5:
            changed[at] ^= 1 << rng.randrange(8)
        else:
            changed[at : at + rng.randrange(60)] = rng.randbytes(rng.randrange(60))
    return bytes(changed)
