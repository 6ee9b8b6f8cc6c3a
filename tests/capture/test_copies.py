"""Packets that pcapng numbers: those captured at several interfaces, as pktmon does, are read once."""

from __future__ import annotations

import io
import random
import struct
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from msmqwire import capture
from msmqwire.capture import Checkpoint
from tests.capture import build, wireshark
from tests.capture.build import message, segment

pytestmark = pytest.mark.usefixtures("everything_is_released")

COMPONENTS = 3


def numbered(frame: bytes, number: int, interface: int, order: str = "<", *, before: bytes = b"") -> bytes:
    """A packet with its number, after other options."""
    options = before + build.option(5, struct.pack(order + "Q", number), order) + build.option(0, b"", order)
    return build.packet(frame, order, number=interface, options=options)


def trace(frames: list[bytes], order: str = "<", *, first: int = 1000) -> bytes:
    """A trace of pktmon as etl2pcapng writes it: each packet at each component."""
    parts = [build.section(order), *(build.interface(order) for _ in range(COMPONENTS))]
    for number, frame in enumerate(frames, first):
        parts += [numbered(frame, number, component, order) for component in range(COMPONENTS)]
    return b"".join(parts)


def read(data: bytes, **options: Any) -> tuple[list[tuple[int, bytes]], capture.CaptureStats]:
    with capture.open(io.BytesIO(data), **options) as blocks:
        rows = [
            (frame, bytes(payload or b""))
            for block in blocks
            for frame, payload in zip(block.capture["frame"].tolist(), block.payloads, strict=True)
        ]
    stats = blocks.stats
    assert stats.frames == stats.payloads + stats.segments + stats.fragments + stats.other + stats.malformed
    return rows, stats


@pytest.mark.parametrize("order", "<>")
def test_copies_are_read_once(order: str) -> None:
    frames = [build.plain(b"one"), build.plain(b"two!!"), segment(message(b"text"), 1)]
    data = trace(frames, order)
    rows, stats = read(data)
    assert rows == [(1, b"one"), (4, b"two!!"), (7, message(b"text"))]
    assert (stats.copies, stats.other, stats.streams.uncompared) == (6, 6, 0)
    assert "6 frames not read, whose packets" in "\n".join(stats.report({}, {}))
    rows, stats = read(data, copies=True)
    assert len(rows) == 7
    assert (stats.copies, stats.other, stats.streams.uncompared) == (0, 0, 2)


def test_what_is_no_copy() -> None:
    frame = build.plain(b"payload")
    start = build.section() + build.interface() * 2
    comment = build.option(1, b"comment")
    short = build.packet(frame, number=1, options=build.option(5, b"1234567"))
    for blocks, rows in (
        (numbered(frame, 5, 0) * 2, 2),  # at one interface: another packet with the same number
        (numbered(frame, 5, 0) + numbered(frame, 6, 1), 2),
        (numbered(frame, 5, 0) + numbered(frame, 5 + 1024, 0) + numbered(frame, 5, 1), 3),  # too long ago
        (numbered(frame, 5, 0) + build.section() + build.interface() * 2 + numbered(frame, 5, 1), 2),
        (build.packet(frame) + build.packet(frame, number=1), 2),
        (build.packet(frame, options=comment) + build.packet(frame, number=1, options=comment), 2),
        (numbered(frame, 5, 0) + short, 2),
        (numbered(frame, 5, 0) + build.packet(frame, number=1, options=build.option(0, b"") + bytes(12)), 2),
        (numbered(frame, 0, 0) + numbered(frame, 0, 1), 1),
        (numbered(frame, 1 << 63, 1) + numbered(frame, 1 << 63, 0), 1),
        (numbered(frame, 5, 0, before=comment) + numbered(frame, 5, 1, before=comment), 1),
    ):
        assert len(read(start + blocks)[0]) == rows


def test_options_that_are_malformed() -> None:
    """Whatever is after a packet, nothing beyond its block is read, and the packet is a row."""
    frame = build.plain(b"payload")
    start = build.section() + build.interface() * 2
    whole = build.option(1, b"abc") + build.option(5, bytes(8)) + build.option(0, b"")
    rng = random.Random(2)
    for size in range(0, len(whole), 4):
        for _ in range(20):
            options = bytearray(whole[:size])
            for _ in range(rng.randrange(3) if size else 0):
                options[rng.randrange(size)] = rng.randrange(256)
            rows, stats = read(start + build.packet(frame, number=rng.randrange(2), options=bytes(options)))
            assert (len(rows), stats.malformed) == (1, 0)


def test_parts_at_every_record(tmp_path: Path) -> None:
    path = tmp_path / "capture"
    frames = [build.plain(bytes([number])) for number in range(20)]
    path.write_bytes(trace(frames, first=(1 << 64) - 10 >> 1))
    for copies in (False, True):
        with capture.open(path, copies=copies) as blocks:
            expected = [bytes(payload or b"") for block in blocks for payload in block.payloads]
        with capture.checkpoints(path, 1, copies=copies) as checkpoints:
            found = list(checkpoints)
        assert len(found) > 60
        rows, total = [], capture.CaptureStats()
        for resume, stop in pairwise([None, *found]):
            again = None if resume is None else Checkpoint.from_bytes(resume.to_bytes())
            with capture.open(path, resume=again, stop=stop, copies=copies) as blocks:
                rows += [bytes(payload or b"") for block in blocks for payload in block.payloads]
                assert blocks.checkpoint() == stop
            total += blocks.stats
        assert rows == expected
        assert total == checkpoints.stats
        with pytest.raises(ValueError, match="was made with other"):
            capture.open(path, resume=found[5], copies=not copies)


def test_a_checkpoint_is_bounded(tmp_path: Path) -> None:
    path = tmp_path / "capture"
    path.write_bytes(trace([build.plain(b"")] * 3000))
    sizes = [len(each.state) for each in capture.checkpoints(path, 50_000)]
    assert max(sizes) < 1024 * 16 + 1000


@pytest.mark.parametrize("order", "<>")
def test_a_section_and_nothing_else(order: str) -> None:
    _, stats = read(build.section(order))
    assert stats.empty_files == 1
    assert "pktmon start needs --capture" in "\n".join(stats.report({}, {}))
    for data in (build.section(order) + build.interface(order), build.pcap([]), trace([build.plain(b"")])):
        assert read(data)[1].empty_files == 0
    assert (stats + stats).empty_files == 2


def test_wireshark_reads_the_numbers(tmp_path: Path) -> None:
    path = tmp_path / "capture.pcapng"
    path.write_bytes(trace([build.plain(b"one"), build.plain(b"two")]))
    rows = wireshark.fields(path, ["frame.packet_id", "frame.interface_id"])
    assert [(int(number, 0), int(interface)) for number, interface in rows] == [
        (number, interface) for number in (1000, 1001) for interface in range(COMPONENTS)
    ]
