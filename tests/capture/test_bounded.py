"""Bounded by what is read: instructions and peak memory at x, 2x and 4x, over families made to be expensive.

Run as ``python -m tests.capture.test_bounded FOLDER``, it does the work of each family and size, whose captures are in
the folder, between two marks of ``benchmarks.instructions``.
"""

from __future__ import annotations

import gzip
import io
import itertools
import random
import re
import struct
import sys
import uuid
from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.instructions import count_between_marks
from msmqwire import capture, formatname, mqcn, mqqb, mqsd
from msmqwire.wire._utf16 import to_utf8
from tests.capture import build
from tests.capture.build import PORT, ethernet, ipv4, segment, tcp
from tests.system_programs import require_program

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


@lru_cache(2)  # of a small and a large one, plain and compressed in turn
def capture_of(family: str, size: int) -> bytes:
    data = bytearray(START)
    for part in FAMILIES[family]():
        if len(data) >= size:
            break
        data += part
    return bytes(data)


def resident(name: str) -> int:
    return int(re.search(rf"{name}:\s*(\d+) kB", Path("/proc/self/status").read_text())[1]) << 10  # type: ignore[index]


def memory_of(work: Callable[[], object]) -> int:
    """How much resident memory grows at most."""
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts again
    before = resident("VmRSS")
    work()
    return resident("VmHWM") - before


def read_all(data: bytes) -> None:
    with capture.open(io.BytesIO(data)) as blocks:
        for _ in blocks:
            pass


@pytest.mark.parametrize(
    ("form", "times"), [("plain", 1), ("gzip", 1), pytest.param("plain", 8, marks=pytest.mark.long)]
)
@pytest.mark.parametrize("family", FAMILIES)
def test_memory_of_captures(family: str, form: str, times: int) -> None:
    read_all(capture_of(family, 4096))
    size = 2 * SIZE * times
    data = capture_of(family, size)
    compressed = gzip.compress(data, 1) if form == "gzip" else data
    # A stream holds a page for the packet it begins. All hold 64 MiB at most (StreamLimits), datagrams 16, windows 6
    assert memory_of(lambda: read_all(compressed)) <= min(96 << 20, 30 * size)


def test_packets_that_end_in_one_window_are_in_several_blocks() -> None:
    """Streams that lack a byte each hold 64 MiB: in one block they took gigabytes in some tables."""
    size, count = 300_000, 40
    packets = build.message(bytes(size))
    frames = []
    for host in range(count):
        for start in range(0, len(packets) - 1, 60_000):
            part = packets[start : min(start + 60_000, len(packets) - 1)]
            frames.append(packet(segment(part, 1 + start, src=f"10.0.1.{host}")))
    frames += [packet(segment(packets[-1:], len(packets), src=f"10.0.1.{host}")) for host in range(count)]
    with capture.open(io.BytesIO(START + b"".join(frames)), block_size=1 << 16) as blocks:
        sizes = [(len(block), block.payloads.nbytes) for block in blocks]
    assert sum(rows for rows, _ in sizes) == count
    assert max(nbytes for _, nbytes in sizes) <= (1 << 16) + (1 << 18) + 2 * size


def message(**fields: Any) -> bytes:
    return mqqb.encode(mqqb.UserMessage(**fields))


def reply(*servers: str) -> bytes:
    return mqsd.encode(
        mqsd.TopologyServerReply(
            correlation_id=NIL,
            connected_networks=[NIL],
            responding_site_id=NIL,
            servers=[mqsd.DirectoryServiceServer(name) for name in servers],
        )
    )


def properties(size: int) -> bytes:
    """Updates of a queue, each with 255 times the same property."""
    update = b"\1\1" + bytes(56) + b"\xff" + struct.pack("<I", 104) * 255 + bytes(255)
    count = size // len(update)
    return bytes((1, count)) + update * count


NIL = uuid.UUID(int=0)
QUEUE = b"\1\1\0\0"
HEAD = b"\1\1\1\1" + bytes(56)
REQUEST = mqsd.encode(mqsd.TopologyClientRequest(enterprise_id=NIL, request_id=NIL, site_id=NIL))

#: Payloads of about so many bytes, and what decodes them.
PAYLOADS: dict[str, tuple[Callable[[int], list[bytes]], Callable[..., Any]]] = {
    "servers": (lambda size: [reply(*["a"] * (size // 8))], mqsd.decode_batch),
    "a name of a server": (lambda size: [reply("\u0119" * (size // 2))], mqsd.decode_batch),
    "violations": (lambda size: [REQUEST + b"\0"] * (size // 53), mqsd.decode_batch),
    "faults": (lambda size: [bytes(16)] * (size // 16), mqsd.decode_batch),
    "a path": (lambda size: [QUEUE + "a\\private$".encode("utf-16-le") * (size // 20) + bytes(43)], mqcn.decode_batch),
    "properties": (lambda size: [properties(size)], mqcn.decode_batch),
    "texts": (
        lambda size: [HEAD + b"\1" + struct.pack("<II", 223, size // 2) + b"\0\0" * (size // 2)],
        mqcn.decode_batch,
    ),
    "closings": (lambda size: [b"\2\1" + "</Notification".encode("utf-16-le") * (size // 28)], mqcn.decode_batch),
    "a body": (lambda size: [message(body=bytes(size))], mqqb.decode_batch),
    "noise after a message": (lambda size: [message() + b"LIOR" * (size // 4)], mqqb.decode_batch),
}


def use(name: str, payloads: list[bytes]) -> None:
    """The batch, its Arrow form with all its texts, and the faults and violations."""
    batch = PAYLOADS[name][1](payloads)
    batch.to_arrow()
    assert len(batch.faults) + len(batch.violations) > 0


@pytest.mark.parametrize("name", PAYLOADS)
def test_memory_of_payloads(name: str) -> None:
    make, _ = PAYLOADS[name]
    use(name, make(2048))
    payloads = make(SIZE // 4)
    assert memory_of(lambda: use(name, payloads)) <= 64 * SIZE // 4 + (1 << 20)


# --- Instructions ---

#: Bytes of the smallest of three inputs.
COUNTED = 64 << 10

#: Families that are read compressed as well: the work of a decompressor does not depend on the frames.
COMPRESSED = ("tiny blocks", "streams", "noise")

#: How often each work is counted: some 60,000 instructions more or fewer are the allocator's.
COUNTS = 2


def works(captures: Callable[[str, int], bytes]) -> Iterator[tuple[str, Callable[[], object]]]:
    """The work of each family, and of some compressed, at x, 2x and 4x."""
    for family, times in itertools.product(FAMILIES, (1, 2, 4)):
        data = captures(family, times * COUNTED)
        yield family, lambda data=data: read_all(data)  # type: ignore[misc]
        if family in COMPRESSED:
            packed = gzip.compress(data, 1)
            yield f"{family}, gzip", lambda packed=packed: read_all(packed)  # type: ignore[misc]
    for name, times in itertools.product(PAYLOADS, (1, 2, 4)):
        payloads = PAYLOADS[name][0](times * COUNTED)
        yield name, lambda name=name, payloads=payloads: use(name, payloads)  # type: ignore[misc]
    for times in (1, 2, 4):
        text = "DIRECT=OS:a\\" + "q" * (times * COUNTED)
        yield "a format name", lambda text=text: formatname.parse_batch([text]).to_arrow()  # type: ignore[misc]


@pytest.mark.long
def test_instructions_grow_with_the_input(tmp_path: Path) -> None:
    """Twice the bytes take twice the instructions at most; what is the same for every size counts for nothing."""
    require_program("valgrind")
    # Made here: under valgrind it would take longer than to read them
    for family, times in itertools.product(FAMILIES, (1, 2, 4)):
        (tmp_path / f"{family} {times * COUNTED}").write_bytes(capture_of(family, times * COUNTED))
    counted = np.reshape(count_between_marks("-m", "tests.capture.test_bounded", str(tmp_path)), (-1, COUNTS))
    counts: dict[str, list[float]] = {}
    for (name, _), least in zip(works(capture_of), np.min(counted, axis=1), strict=True):
        counts.setdefault(name, []).append(least)
    for name, (once, twice, four) in counts.items():
        assert four - twice <= 2 * 1.25 * (twice - once) + 200_000, (name, counts[name])
        assert four <= 700 * 4 * COUNTED + 5_000_000, (name, counts[name])


if __name__ == "__main__":
    made = Path(sys.argv[1])
    for _name, work in works(lambda family, size: (made / f"{family} {size}").read_bytes()):
        work()
        for _ in range(COUNTS):
            to_utf8(b"")
            work()
            to_utf8(b"")
