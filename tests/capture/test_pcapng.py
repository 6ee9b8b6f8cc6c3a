"""The format of blocks: sections, interfaces and their times, every kind of packet block, every truncation."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from msmqwire import capture
from msmqwire.errors import CaptureError
from tests.capture import build
from tests.capture.reading import Row, read

ORDERS = ("<", ">")
FRAME = build.plain(b"hello")

# A section, an interface that counts nanoseconds, and one frame with the payload "abc", byte for byte
GOLDEN = bytes.fromhex(
    "0a0d0d0a 1c000000 4d3c2b1a 0100 0000 ffffffffffffffff 1c000000"
    "01000000 20000000 0100 0000 00000400 0900 0100 09000000 0000 0000 20000000"
    "06000000 50000000 00000000 9b15ba17 15ab1ee4 2d000000 2d000000"
    "ffffffffffff 025e00000001 0800"
    "45 00 001f 0007 0000 40 11 0000 0a000001 0a0000ff"
    "9c40 0709 000b 0000 616263 000000 50000000"
)


def golden_time() -> int:
    return 0x17BA159BE41EAB15


def test_golden() -> None:
    rows, stats = read(GOLDEN)
    assert rows == [Row(1, golden_time(), "10.0.0.1", 40000, "10.0.0.255", 1801, b"abc")]
    assert stats == capture.CaptureStats(frames=1, payloads=1, bytes_read=len(GOLDEN))


@pytest.mark.parametrize("order", ORDERS)
def test_all_kinds_of_packets(order: str) -> None:
    data = (
        build.section(order)
        + build.interface(order)
        + build.packet(FRAME, order)
        + build.old_packet(FRAME, order)
        + build.simple_packet(FRAME, order)
    )
    rows, stats = read(data)
    time = build.START // 1000 * 1000
    assert [(row.frame, row.time) for row in rows] == [(1, time), (2, time), (3, None)]
    assert {row.payload for row in rows} == {b"hello"}
    assert stats.other == stats.malformed == 0


def test_sections_and_interfaces() -> None:
    """Each section has a byte order and interfaces of its own, each interface a link type and times of its own."""
    data = (
        build.section("<")
        + build.interface("<")
        + build.interface("<", link=build.RAW, resolution=9)
        + build.packet(FRAME, "<", stamp=1_000_000)
        + build.packet(build.ipv4(build.udp(b"raw")), "<", number=1, stamp=2_000_000_001)
        + build.section(">", build.option(2, b"hardware", ">"))
        + build.interface(">", link=build.RAW_IPV6, resolution=0, offset=1000)
        + build.packet(build.ipv6(build.udp(b"six")), ">", stamp=7)
        + build.section("<")
        + build.interface("<", resolution=3)
        + build.packet(FRAME, "<", stamp=1)
    )
    rows, stats = read(data)
    assert [(row.frame, row.time, row.payload) for row in rows] == [
        (1, 1_000_000_000, b"hello"),
        (2, 2_000_000_001, b"raw"),
        (3, 1007_000_000_000, b"six"),
        (4, 1_000_000, b"hello"),
    ]
    assert stats.problems == []


def test_an_interface_may_be_described_between_packets() -> None:
    parts = [build.section()]
    for number in range(300):
        parts += [build.interface(resolution=9, offset=number), build.packet(FRAME, number=number, stamp=number)]
    rows, _ = read(b"".join(parts))
    assert [row.time for row in rows] == [number * 1_000_000_001 for number in range(300)]


STAMPS = (0, 1, 999, 1_000_000, 1_709_539_200_123_456_789, 2**40 + 12345, 2**63 - 1, 2**63, 2**64 - 1)


RESOLUTIONS = (*range(13), 15, 18, 19, 20, 27, 28, 29, 30, 127, *(0x80 | bits for bits in (*range(65), 93, 127)))


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("offset", [0, 3600, -1_000_000_000])
def test_time_stamps(order: str, offset: int) -> None:
    """As exact arithmetic has them, rounded down; null where nanoseconds in 64 bits cannot say them."""
    for resolution in RESOLUTIONS:
        data = build.section(order) + build.interface(order, resolution=resolution, offset=offset)
        rows, stats = read(data + b"".join(build.packet(FRAME, order, stamp=stamp) for stamp in STAMPS))
        assert stats.invalid_times == sum(row.time is None for row in rows)
        units = 2 ** (resolution & 0x7F) if resolution & 0x80 else 10**resolution
        for row, stamp in zip(rows, STAMPS, strict=True):
            exact = stamp * 10**9 // units + offset * 10**9
            seconds = stamp // units + offset
            assert row.time == (exact if abs(seconds) < 9_223_372_036 else None), (resolution, stamp)


@pytest.mark.parametrize("offset", [2**63 - 1, -(2**63), 9_223_372_036, -9_223_372_037, 9_223_372_035, -9_223_372_035])
@pytest.mark.parametrize("resolution", [0, 6, 9, 12, 0x80 | 32])
def test_offsets_that_no_time_can_have(offset: int, resolution: int) -> None:
    data = build.section() + build.interface(resolution=resolution, offset=offset)
    rows, stats = read(data + b"".join(build.packet(FRAME, stamp=stamp) for stamp in STAMPS), block_size=4096)
    assert stats.invalid_times == sum(row.time is None for row in rows)
    units = 2**32 if resolution & 0x80 else 10**resolution
    for row, stamp in zip(rows, STAMPS, strict=True):
        fits = abs(stamp // units + offset) < 9_223_372_036
        assert row.time == (stamp * 10**9 // units + offset * 10**9 if fits else None)


def test_a_missing_time_is_null_in_arrow() -> None:
    import io

    data = build.section() + build.interface() + build.simple_packet(FRAME) + build.packet(FRAME)
    (block,) = capture.open(io.BytesIO(data))
    times = block.capture.to_arrow()["time"]
    assert times.null_count == 1
    assert not times[0].is_valid
    assert block.capture["time"][0].astype(np.int64) == 0


@pytest.mark.parametrize(
    "more",
    [
        build.option(9, b"\x09\x09"),  # not of one byte
        build.option(14, b"\x01\x02"),
        build.option(1, b"a comment") + build.option(0, b"") + build.option(9, b"\x09"),  # behind the end
        struct.pack("<HH", 9, 0xFFFF),  # goes on beyond the block
        struct.pack("<HHI", 9, 1000, 9),
        b"\x09\x00",
    ],
)
def test_options_that_do_not_count(more: bytes) -> None:
    rows, stats = read(build.section() + build.interface(more=more) + build.packet(FRAME))
    assert rows[0].time == build.START // 1000 * 1000
    assert stats.malformed == 0


def test_options_of_a_packet_are_not_its_frame() -> None:
    options = build.option(1, b"a comment") + build.option(0, b"")
    frame = build.plain(b"12345")
    rows, _ = read(build.section() + build.interface() + build.packet(frame, options=options))
    assert rows[0].payload == b"12345"


@pytest.mark.parametrize("order", ORDERS)
def test_blocks_that_are_not_packets(order: str) -> None:
    """They are passed over; those that Wireshark numbers are numbered here as well, among the others."""
    numbered = (9, 0x204, 0x216, 0x221, 0xBAD, 0x40000BAD)
    parts = [build.section(order), build.interface(order)]
    for kind in (4, 5, 7, 8, 10, 0x77, 0xFFFFFFFF, *numbered):
        parts += [build.block(kind, bytes(40), order), build.block(kind, b"", order)]
    rows, stats = read(b"".join([*parts, build.packet(FRAME, order)]))
    assert [row.frame for row in rows] == [2 * len(numbered) + 1]
    assert (stats.other, stats.malformed) == (2 * len(numbered), 0)


@pytest.mark.parametrize(
    ("snapshot", "original", "kept"), [(0, None, 47), (47, 1000, 47), (46, None, 46), (60, None, 47)]
)
def test_simple_packets_are_as_long_as_their_interface_lets(snapshot: int, original: int | None, kept: int) -> None:
    data = build.section() + build.interface(snapshot=snapshot) + build.simple_packet(FRAME, original=original)
    rows, stats = read(data)
    if kept == len(FRAME):
        assert [row.payload for row in rows] == [b"hello"]
    else:
        assert stats.problems[0].what.startswith("the frame is truncated")


@pytest.mark.parametrize("order", ORDERS)
def test_every_truncation(order: str) -> None:
    blocks = [
        build.section(order),
        build.interface(order, resolution=9),
        build.packet(FRAME, order),
        build.block(0x77, b"unknown", order),
        build.simple_packet(build.plain(b"simple"), order),
        build.section(order),
        build.interface(order),
        build.packet(build.plain(b""), order),
    ]
    is_frame = [False, False, True, False, True, False, False, True]
    data = b"".join(blocks)
    whole, _ = read(data)
    ends = np.cumsum([0] + [len(block) for block in blocks]).tolist()
    for size in range(24, len(data) + 1):
        complete = sum(end <= size for end in ends) - 1
        last, frames = ends[complete], sum(is_frame[:complete])
        rows, stats = read(data[:size])
        assert rows == [row for row in whole if row.frame <= frames]
        assert stats.frames == frames + (last < size)
        assert [problem.offset for problem in stats.problems] == [last] * (last < size)
        assert stats.bytes_skipped == size - last


@pytest.mark.parametrize("size", range(1, 24))
def test_a_cut_section_header(size: int) -> None:
    with pytest.raises(CaptureError, match="expected"):
        read(build.section()[:size])


def test_a_section_with_another_magic_is_no_capture() -> None:
    with pytest.raises(CaptureError, match="0a 0d 0d 0a"):
        read(build.block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4E, 1, 0, -1)))


@pytest.mark.parametrize(
    ("bad", "what"),
    [
        (build.packet(FRAME, number=1), "interface 1, but the section describes 1"),
        (build.old_packet(FRAME, number=0xFFFF), "interface 65535, but the section describes 1"),
        (build.packet(FRAME, captured=49), "a frame of 49 bytes in a block with space for 48"),
        (build.packet(FRAME, captured=0xFFFFFFFF), "a frame of 4294967295 bytes in a block with space for 48"),
        (build.block(6, bytes(16)), "a block of 28 bytes; the length must be at least 32"),
        (build.block(6, b""), "a block of 12 bytes; the length must be at least 32"),
        (build.simple_packet(FRAME, original=0xFFFFFFFF), "a frame of 4294967295 bytes in a block with space for 48"),
        (build.simple_packet(FRAME, original=49), "a frame of 49 bytes in a block with space for 48"),
        (build.block(3, b""), "a block of 12 bytes; the length must be at least 16"),
        (build.block(1, b"\1\0\0\0"), "a block of 16 bytes; the length must be at least 20"),
    ],
)  # fmt: skip
def test_packet_blocks_that_cannot_be(bad: bytes, what: str) -> None:
    """The block is malformed; its length is believed, and the next one is read."""
    start = build.section() + build.interface()
    rows, stats = read(start + bad + build.packet(FRAME))
    assert [row.frame for row in rows] == [2]
    assert stats.malformed == 1
    assert stats.problems[0].offset == len(start)
    assert what in stats.problems[0].what
    assert stats.bytes_skipped == 0


def test_packets_without_an_interface() -> None:
    for bad in (build.packet(FRAME), build.simple_packet(FRAME), build.old_packet(FRAME)):
        _, stats = read(build.section() + bad)
        assert "interface 0, but the section describes 0" in stats.problems[0].what
    # the interfaces of one section are not those of the next
    _, stats = read(build.section() + build.interface() + build.section() + build.packet(FRAME))
    assert stats.malformed == 1
