"""Bounded by what is read: time for each byte and peak memory, at x, 2x and 4x, over families made to be expensive."""

from __future__ import annotations

import gzip
import io
import random
import re
import struct
import time
import uuid
from collections.abc import Callable, Iterator
from itertools import count, pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from msmqwire import capture, mqcn, mqqb, mqsd
from tests.capture import build
from tests.capture.build import PORT, ethernet, ipv4, segment, tcp

#: Bytes of the smallest of three files of a family.
SIZE = 1 << 20

START = build.section() + build.interface()


def packet(frame: bytes) -> bytes:
    return build.packet(frame)


def fragments(*, overlap: bool) -> Iterator[bytes]:
    """Datagrams that are never complete; with ``overlap`` of one datagram whose parts differ."""
    part = bytes(range(256)) * 4
    for number in count():
        identification = 7 if overlap else number & 0xFFFF
        offset = number % 60 if overlap else number % 2 * 128
        head = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(part), identification, 0x2000 | offset, 64, 17, 0)
        yield packet(ethernet(build.IPV4, head + bytes((10, 0, number >> 16 & 255, 1, 10, 0, 0, 2)) + part))


def streams() -> Iterator[bytes]:
    """A stream for each segment, each with the beginning of a packet of 4 MiB."""
    head = build.message(size=4 << 20) + bytes(64)
    for number in count():
        body = tcp(head, 1, source=number & 0xFFFF, target=PORT)
        yield packet(ethernet(build.IPV4, ipv4(body, build.TCP, source=f"10.{number >> 16 & 255}.0.1")))


def gaps() -> Iterator[bytes]:
    """One stream whose every other byte is missing."""
    return (packet(segment(b"x", 1000 + 2 * number)) for number in count())


def shuffled() -> Iterator[bytes]:
    """One stream whose segments are out of order, in the worst order within the limit of segments."""
    for block in count():
        for number in range(900, -1, -1):
            yield packet(segment(b"x" * 64, 1 + 64 * (901 * block + number)))


def repeats() -> Iterator[bytes]:
    """Segments that overlap all but one of their bytes with those before, which wait."""
    return (packet(segment(b"y" * 1000, 5000 + number % 5000)) for number in count())


def signatures() -> Iterator[bytes]:
    """A stream full of signatures of packets that are none."""
    return (packet(segment(b"\x10\0\0\0LIOR" * 150, 1 + 1200 * number)) for number in count())


def noise() -> Iterator[bytes]:
    """Bytes among which no record begins, though many look as if."""
    rng = random.Random(7)
    return (struct.pack("<II", 6, rng.choice((64, 1 << 20, 1 << 24))) + rng.randbytes(24) for _ in count())


FAMILIES: dict[str, Callable[[], Iterator[bytes]]] = {
    "tiny blocks": lambda: (build.block(0x1234, b"") for _ in count()),
    "tiny frames": lambda: (packet(b"") for _ in count()),
    "interfaces": lambda: (build.interface() for _ in count()),
    "sections": lambda: (build.section() for _ in count()),
    "options": lambda: (build.block(1, struct.pack("<HHI", 1, 0, 0) + bytes((2, 0, 0, 0)) * 4000) for _ in count()),
    "fragments": lambda: fragments(overlap=False),
    "overlapping fragments": lambda: fragments(overlap=True),
    "streams": streams,
    "gaps": gaps,
    "shuffled segments": shuffled,
    "repeated segments": repeats,
    "signatures": signatures,
    "noise": noise,
    "datagrams of one byte": lambda: (packet(build.plain(b"\1")) for _ in count()),
    "foreign link types": lambda: (build.section() + build.interface(link=999) + packet(b"x") for _ in count()),
}


def capture_of(family: str, size: int) -> bytes:
    data = bytearray(START)
    for part in FAMILIES[family]():
        if len(data) >= size:
            break
        data += part
    return bytes(data)


class Cost(NamedTuple):
    """CPU seconds, the least of some runs, and the largest growth of resident memory."""

    seconds: float
    memory: int


def resident(name: str) -> int:
    return int(re.search(rf"{name}:\s*(\d+) kB", Path("/proc/self/status").read_text())[1]) << 10  # type: ignore[index]


def cost(work: Callable[[], object], runs: int = 3) -> Cost:
    seconds, memory = [], 0
    for _ in range(runs):
        Path("/proc/self/clear_refs").write_text("5")  # the peak starts again
        before, start = resident("VmRSS"), time.process_time()
        work()
        seconds.append(time.process_time() - start)
        memory = max(memory, resident("VmHWM") - before)
    return Cost(min(seconds), memory)


def read_all(data: bytes) -> None:
    with capture.open(io.BytesIO(data)) as blocks:
        for _ in blocks:
            pass


def assert_linear(costs: list[Cost], size: int, nanoseconds: int) -> None:
    """Twice the bytes take twice as long, with room for noise, and at most so long for each byte."""
    seconds = [each.seconds for each in costs]
    for one, twice in pairwise(seconds):
        assert twice <= 2 * 1.75 * one + 0.02, seconds
    assert seconds[-1] <= 4 * size * nanoseconds * 1e-9 + 0.02, seconds


def check_capture(family: str, form: str, size: int) -> None:
    read_all(capture_of(family, 4096))
    costs = []
    for times in (1, 2, 4):
        data = capture_of(family, times * size)
        data = gzip.compress(data, 1) if form == "gzip" else data
        costs.append(cost(lambda data=data: read_all(data)))  # type: ignore[misc]
    assert_linear(costs, size, 250)
    # A stream holds a page for the packet it begins. All hold 64 MiB at most (StreamLimits), datagrams 16, windows 6
    assert costs[-1].memory <= min(96 << 20, 30 * 4 * size), costs


@pytest.mark.parametrize("family", FAMILIES)
def test_captures(family: str) -> None:
    check_capture(family, "plain", SIZE // 2)


@pytest.mark.long
@pytest.mark.parametrize("form", ["plain", "gzip"])
@pytest.mark.parametrize("family", FAMILIES)
def test_large_captures(family: str, form: str) -> None:
    check_capture(family, form, 4 * SIZE)


def message(**fields: Any) -> bytes:
    return mqqb.encode(mqqb.UserMessage(**fields))


NIL = uuid.UUID(int=0)
QUEUE = b"\1\1\0\0"
HEAD = b"\1\1\1\1" + bytes(56)

#: One payload of about so many bytes, and what decodes it.
PAYLOADS: dict[str, tuple[Callable[[int], bytes], Callable[..., Any]]] = {
    "servers": (
        lambda size: mqsd.encode(
            mqsd.TopologyServerReply(
                correlation_id=NIL,
                connected_networks=[NIL],
                responding_site_id=NIL,
                servers=[mqsd.DirectoryServiceServer("a")] * (size // 8),
            )
        ),
        mqsd.decode_batch,
    ),
    "a name of a server": (
        lambda size: mqsd.encode(
            mqsd.TopologyServerReply(
                correlation_id=NIL,
                connected_networks=[NIL],
                responding_site_id=NIL,
                servers=[mqsd.DirectoryServiceServer("\u0119" * (size // 2))],
            )
        ),
        mqsd.decode_batch,
    ),
    "a path": (lambda size: QUEUE + "a\\private$".encode("utf-16-le") * (size // 20) + bytes(43), mqcn.decode_batch),
    "texts": (
        lambda size: HEAD + b"\1" + struct.pack("<II", 223, size // 2) + b"\0\0" * (size // 2),
        mqcn.decode_batch,
    ),
    "closings": (lambda size: b"\2\1" + "</Notification".encode("utf-16-le") * (size // 28), mqcn.decode_batch),
    "a body": (lambda size: message(body=bytes(size)), mqqb.decode_batch),
    "noise after a message": (lambda size: message() + b"LIOR" * (size // 4), mqqb.decode_batch),
}


@pytest.mark.parametrize("name", PAYLOADS)
def test_payloads(name: str) -> None:
    """The batch, its Arrow form with all its texts, and the faults and violations of a payload of up to 1 MiB."""
    make, decode_batch = PAYLOADS[name]

    def use(payload: bytes) -> None:
        batch = decode_batch([payload])
        batch.to_arrow()
        assert len(batch.faults) + len(batch.violations) > 0

    use(make(256))
    costs = []
    for size in (SIZE // 4, SIZE // 2, SIZE):
        payload = make(size)
        costs.append(cost(lambda payload=payload: use(payload)))  # type: ignore[misc]
    assert_linear(costs, SIZE // 4, 500)
    assert costs[-1].memory <= 64 * SIZE, costs
