"""The kernels and the oracle read the same rows and give the same account, of sound captures and of broken ones."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.capture import build, oracle
from tests.capture.reading import Dribble, read

CASES = 4000

FRAMES = [
    build.plain(b"hello"),
    build.plain(b"x" * 52),
    build.plain(b"", 53, 54),
    build.plain(b"padded").ljust(60, b"\0"),
    build.ethernet(build.ARP, bytes(46)),
    build.ethernet(build.IPV6, build.ipv6(build.udp(b"six"))),
    build.ethernet(build.IPV6, build.ipv6(build.extension(60) + build.extension(17, 16) + build.udp(b"far"), 0)),
    build.ethernet(build.IPV4, build.ipv4(build.udp(b"tags"), options=b"\1" * 8), [(build.QINQ, 5), (build.VLAN, 6)]),
    build.ethernet(build.IPV4, build.ipv4(build.udp(b"part"), fragment=0x2000)),
    build.ethernet(build.IPV4, build.ipv4(bytes(20), build.TCP)),
    b"",
]


def sections(order: str) -> bytes:
    """Every kind of block that is read, in two sections."""
    raw = build.ipv4(build.udp(b"raw"))
    return b"".join(
        [
            build.section(order),
            build.interface(order, snapshot=60),
            build.simple_packet(FRAMES[1], order),
            build.old_packet(FRAMES[0], order),
            build.interface(order, link=build.RAW, resolution=0x80 | 20, offset=-3600),
            build.packet(raw, order, number=1, stamp=12345678901234),
            build.block(0xBAD, b"custom", order),
            build.section("<"),
            build.packet(FRAMES[0]),
            build.interface(resolution=9),
            build.packet(FRAMES[0], options=build.option(1, b"a comment")),
        ]
    )


BASES = [
    *(build.pcap(FRAMES, order, nano=nano) for order in "<>" for nano in (False, True)),
    build.pcap([build.ipv4(build.udp(b"raw")), build.ipv6(build.udp(b"six"))] * 3, link=build.RAW),
    *(build.pcapng(FRAMES, order) for order in "<>"),
    *(sections(order) for order in "<>"),
]


def header_size(data: bytes | bytearray) -> int:
    """The bytes that make a file a capture."""
    return 12 if data.startswith(b"\x0a\x0d\x0d\x0a") else 24


def compare(data: bytes, ports: set[int] | None = None) -> None:
    ports = {1801} if ports is None else ports
    rows, stats = read(data, ports=ports, block_size=16384)
    expected = oracle.read(data, ports)
    assert rows == expected.rows
    assert (stats.frames, stats.other, stats.malformed) == (expected.frames, expected.other, len(expected.malformed))
    assert (stats.fragments, stats.fragment_conflicts) == (expected.fragments, expected.conflicts)
    assert (stats.incomplete_datagrams, stats.invalid_times) == (expected.incomplete, expected.invalid_times)
    assert stats.unsupported == sum(expected.unsupported.values())
    assert [problem.offset for problem in stats.problems] == expected.told[:100]
    assert stats.bytes_skipped == expected.skipped
    assert stats.bytes_read == len(data)


def flip(data: bytearray, at: int, rng: random.Random) -> None:
    data[at] ^= 1 << rng.randrange(8)


def number(data: bytearray, at: int, rng: random.Random) -> None:
    value = rng.choice((0, 1, 4, 8, 12, 16, 28, 0xFFFF, 0x10000, 0x40000, 0x40001, 0x50000, 0xFFFFFFFF, 0xFFFFFFFC))
    data[at : at + 4] = struct.pack(rng.choice("<>") + "I", value)


def remove(data: bytearray, at: int, rng: random.Random) -> None:
    del data[at : at + rng.randrange(1, 9)]


def insert(data: bytearray, at: int, rng: random.Random) -> None:
    data[at:at] = rng.choice((rng.randbytes(rng.randrange(1, 9)), bytes(rng.randrange(1, 40)), b"\xff" * 20))


def cut(data: bytearray, at: int, rng: random.Random) -> None:
    del data[at:]


def repeat(data: bytearray, at: int, rng: random.Random) -> None:
    data += data[at : at + rng.randrange(200)]


CHANGES: list[Callable[[bytearray, int, random.Random], None]] = [flip, flip, number, remove, insert, cut, repeat]


def broken(count: int, seed: int) -> Iterator[bytes]:
    """Captures with a few changes behind their first bytes."""
    rng = random.Random(seed)
    while count:
        data = bytearray(rng.choice(BASES))
        size = header_size(data)
        for _ in range(rng.choice((0, 1, 1, 1, 2, 5))):
            if len(data) > size:
                rng.choice(CHANGES)(data, rng.randrange(size, len(data)), rng)
        if len(data) >= 24:
            count -= 1
            yield bytes(data)


@pytest.mark.parametrize("data", BASES, ids=range(len(BASES)))
def test_sound(data: bytes) -> None:
    for ports in ({1801}, {53}, {40000}, set()):
        compare(data, ports)


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(1, 4))])
def test_broken(seed: int) -> None:
    rng = random.Random(seed)
    for data in broken(CASES // 4, seed):
        compare(data)
        if rng.random() < 0.2:
            sizes = [rng.choice((1, 7, 16, 64, 300)) for _ in range(5)]
            assert read(Dribble(data, sizes), block_size=4096) == read(data, block_size=16384)


def test_the_cases_are_broken_in_every_way() -> None:
    """A comparison that compares nothing but sound captures would prove little."""
    results = [oracle.read(data, {1801}) for data in broken(1000, 0)]
    assert sum(bool(result.malformed) for result in results) > 500
    assert sum(bool(result.skipped) for result in results) > 300
    assert sum(len(result.rows) > 2 and result.skipped > 0 for result in results) > 100


@given(st.sampled_from(BASES), st.binary(max_size=300))
def test_anything_behind_the_header(base: bytes, rest: bytes) -> None:
    data = base[: 28 if base.startswith(b"\x0a\x0d\x0d\x0a") else 24] + rest
    compare(data)
    compare(base + rest)


@given(st.lists(st.binary(max_size=120), max_size=8), st.sampled_from([1, 12, 14, 101, 228, 229]))
def test_any_frames(frames: list[bytes], link: int) -> None:
    compare(build.pcap(frames, link=link))
    compare(build.pcapng(frames, link=link))


def test_any_headers() -> None:
    """Frames that are right but for a few bytes of their headers."""
    rng = random.Random(7)
    frames = []
    for _ in range(6000):
        frame = bytearray(rng.choice(FRAMES[:10]))
        for _ in range(rng.choice((1, 1, 2, 3))):
            frame[rng.randrange(12, min(len(frame), 90))] = rng.choice((rng.randrange(256), 0, 1, 0xFF))
        frames.append(bytes(frame[: rng.choice((len(frame), rng.randrange(len(frame) + 1)))]))
    compare(build.pcap(frames))
