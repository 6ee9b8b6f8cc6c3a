"""Ranges of a file, joined: whatever is in it and wherever it is cut, what a serial read gives."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msmqwire import capture
from msmqwire.capture import joining, ranges, reader
from msmqwire.capture.blocks import Block
from tests.capture import build
from tests.capture.build import message, segment
from tests.capture.reading import Row, check, read, rows_of
from tests.capture.traffic import conversation, damaged, file_of, several_sections

CASES = 80


pytestmark = pytest.mark.usefixtures("everything_is_released")


class CountingReader(joining.JoiningReader):
    """Tells how many ranges it took, and how many it read itself."""

    taken, refused = 0, 0

    def join(self, found: joining.RangeReader) -> list[Block] | None:
        blocks = super().join(found)
        CountingReader.taken += blocks is not None
        CountingReader.refused += blocks is None
        return blocks


def split(source: Any, cuts: Sequence[int], **options: Any) -> tuple[list[Row], capture.CaptureStats, int]:
    """All rows of a capture that is cut there, its account, and how many ranges were read again."""
    CountingReader.taken = CountingReader.refused = 0
    rows = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reader, "cuts_of", lambda size: [cut for cut in cuts if cut < size])
        patch.setattr(ranges, "JoiningReader", CountingReader)
        with capture.open(source, ports={1801}, threads=2, **options) as blocks:
            for block in blocks:
                rows += rows_of(block)
    check(blocks.stats)
    return rows, blocks.stats, CountingReader.refused


def compare(path: Path, data: bytes, cuts: Sequence[int], **options: Any) -> int:
    """Read a file both ways; how many ranges were read again."""
    path.write_bytes(data)
    rows, stats, refused = split(path, cuts, **options)
    assert (rows, stats) == read(path, **options)
    return refused


def some_cuts(rng: random.Random, size: int) -> list[int]:
    return sorted(rng.sample(range(25, size), rng.randrange(1, 20)))


@pytest.mark.parametrize("form", range(4))
def test_captures_that_are_sound(tmp_path: Path, form: int) -> None:
    rng = random.Random(form)
    refused = 0
    for _ in range(CASES // 8):
        data = file_of(conversation(rng, 200), form)
        refused += compare(tmp_path / "capture", data, [len(data) // 3, len(data) * 2 // 3], block_size=1 << 16)
    assert refused == 0, "every guess is right, so that nothing is read twice"


@pytest.mark.parametrize("form", range(4))
def test_any_cuts(tmp_path: Path, form: int) -> None:
    rng = random.Random(form)
    for _ in range(CASES // 4):
        data = file_of(conversation(rng, rng.choice((20, 100, 400))), form)
        compare(tmp_path / "capture", data, some_cuts(rng, len(data)), block_size=4096)


@pytest.mark.parametrize("form", range(4))
def test_streams_with_losses_and_repeats(tmp_path: Path, form: int) -> None:
    rng = random.Random(form)
    for _ in range(CASES // 2):
        data = file_of(conversation(rng, rng.choice((20, 100, 400)), bad=rng.choice((0.1, 0.5, 1))), form)
        compare(tmp_path / "capture", data, some_cuts(rng, len(data)), block_size=4096)


@pytest.mark.parametrize("form", range(4))
def test_damaged_captures(tmp_path: Path, form: int) -> None:
    rng = random.Random(form)
    for _ in range(CASES // 2):
        data = damaged(rng, file_of(conversation(rng, 150, bad=0.2), form))
        compare(tmp_path / "capture", data, some_cuts(rng, len(data)), block_size=4096)


@pytest.mark.parametrize("form", range(4))
def test_payloads_that_hold_captures(tmp_path: Path, form: int) -> None:
    """A payload is a capture itself, without its front: its records follow each other as those around them do."""
    rng = random.Random(form)
    inner = file_of([build.plain(b"%d" % number) for number in range(40)], form)
    frames = [build.plain(inner[12 + 4 * rng.randrange(20) :]) for _ in range(30)]
    data = file_of(frames, form)
    again = sum(compare(tmp_path / "capture", data, some_cuts(rng, len(data)), block_size=4096) for _ in range(30))
    assert again > 0, "this file is to fool the search"


@pytest.mark.parametrize("form", range(4))
def test_messages_that_hold_messages(tmp_path: Path, form: int) -> None:
    rng = random.Random(form)
    stream = b"".join(message(b"".join(message(b"false" * 9) for _ in range(20))) for _ in range(20))
    frames = [segment(stream[at : at + 100], 1 + at) for at in range(0, len(stream), 100)]
    data = file_of(frames, form)
    again = sum(compare(tmp_path / "capture", data, some_cuts(rng, len(data)), block_size=4096) for _ in range(30))
    assert again > 0


def test_a_message_over_several_ranges(tmp_path: Path) -> None:
    stream = message(b"\0" * 500_000) + message(b"next")
    frames = [segment(stream[at : at + 1400], 1 + at) for at in range(0, len(stream), 1400)]
    data = build.pcap([*frames, *[build.plain(b"datagram")] * 100])
    assert compare(tmp_path / "capture", data, range(100_000, len(data), 100_000)) == 0


@pytest.mark.parametrize("order", "<>")
def test_sections_and_interfaces(tmp_path: Path, order: str) -> None:
    """What is at the front of the file does not hold for all of it."""
    rng = random.Random(9)
    data = several_sections(rng, order)
    for _ in range(60):
        compare(tmp_path / "capture", data, some_cuts(rng, len(data)), block_size=4096)


def test_streams_over_files(tmp_path: Path) -> None:
    rng = random.Random(2)
    for case in range(CASES // 8):
        frames = conversation(rng, 300, bad=case % 3 / 4, fragmented=False)
        for number in range(3):
            part = file_of(frames[number * 100 : number * 100 + 100], rng.randrange(4))
            (tmp_path / f"{number}.pcap").write_bytes(part)
        source = tmp_path / "*.pcap"
        rows, stats, _ = split(source, sorted(rng.sample(range(30, 5000), 5)), block_size=4096)
        assert (rows, stats) == read(source, block_size=4096)


def test_streams_beyond_the_limits(tmp_path: Path) -> None:
    rng = random.Random(3)
    for case in range(CASES // 4):
        limits = capture.StreamLimits(ahead=rng.choice((0, 300)), memory=rng.choice((300, 3000)), streams=1 + case % 7)
        data = file_of(conversation(rng, 200, bad=0.5), case % 4)
        compare(tmp_path / "capture", data, some_cuts(rng, len(data)), limits=limits, block_size=4096)


def test_selections(tmp_path: Path) -> None:
    rng = random.Random(6)
    for case in range(CASES // 8):
        data = file_of(conversation(rng, 200, bad=0.3), case % 4)
        since = build.START + 50_000_000
        options: dict[str, Any] = {"since": since, "until": since + 60_000_000} if case % 2 else {}
        compare(tmp_path / "capture", data, some_cuts(rng, len(data)), addresses=["10.9.0.0/16", "10.0.0.2"], **options)


def test_a_segment_in_fragments(tmp_path: Path) -> None:
    """It belongs to a stream that goes on around it."""
    stream = b"".join(message(b"%d" % number * 9) for number in range(60))
    frames = []
    for at in range(0, len(stream), 80):
        data = build.tcp(stream[at : at + 80], 1 + at)
        if at % 400:
            frames.append(build.ethernet(build.IPV4, build.ipv4(data, build.TCP, target="10.0.0.2")))
        else:
            frames += [
                build.ethernet(build.IPV4, build.ipv4(data[:40], build.TCP, target="10.0.0.2", fragment=0x2000)),
                build.ethernet(build.IPV4, build.ipv4(data[40:], build.TCP, target="10.0.0.2", fragment=5)),
            ]
    rng = random.Random(8)
    for form in range(4):
        data = file_of(frames, form)
        for _ in range(10):
            compare(tmp_path / "capture", data, some_cuts(rng, len(data)), block_size=4096)


def test_snapshots(tmp_path: Path) -> None:
    """Frames are cut, and with them the segments."""
    rng = random.Random(4)
    for case in range(CASES // 8):
        frames = [frame[: rng.choice((90, 1000))] for frame in conversation(rng, 200)]
        data = file_of(frames, case % 4)
        compare(tmp_path / "capture", data, some_cuts(rng, len(data)), block_size=4096)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), st.integers(0, 3), st.sampled_from((0.0, 0.3, 1.0)), st.data())
def test_any_cuts_at_all(
    tmp_path_factory: pytest.TempPathFactory, seed: int, form: int, bad: float, draw: st.DataObject
) -> None:
    data = file_of(conversation(random.Random(seed), 60, bad=bad), form)
    cuts = sorted(draw.draw(st.sets(st.integers(12, len(data) + 5), min_size=1, max_size=12)))
    path = tmp_path_factory.getbasetemp() / "any-cuts"
    compare(path, data, cuts, block_size=4096)


def test_every_cut(tmp_path: Path) -> None:
    stream = message(b"first") + message(b"second") + message(b"third")
    frames = [segment(stream[at : at + 25], 1 + at) for at in range(0, len(stream), 25)]
    for form in range(4):
        data = file_of([build.plain(b"datagram"), *frames, build.plain(b"last")], form)
        path = tmp_path / "capture"
        path.write_bytes(data)
        expected = read(path)
        for cut in range(1, len(data) + 2):
            assert split(path, [cut])[:2] == expected


@pytest.mark.parametrize("columns", [(), ("frame",), ("stream_offset",), ("first_frame", "time", "file")])
def test_some_columns(tmp_path: Path, columns: tuple[str, ...]) -> None:
    path = tmp_path / "capture"
    data = file_of(conversation(random.Random(1), 300), 0)
    path.write_bytes(data)
    found = []
    for threads in (1, 2):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(reader, "cuts_of", lambda size: range(5000, size, 5000))
            with capture.open(path, ports={1801}, columns=columns, threads=threads) as blocks:
                values: dict[str, list[Any]] = {name: [] for name in columns}
                for block in blocks:
                    for name in columns:
                        values[name] += block.capture[name].tolist()
                found.append((values, blocks.stats))
    assert found[0] == found[1]


def test_a_big_file_is_cut(tmp_path: Path) -> None:
    path = tmp_path / "capture"
    frames = conversation(random.Random(7), 300)
    records = build.pcap(frames)[24:]
    path.write_bytes(build.pcap_header() + records * (3 * ranges.RANGE_SIZE // len(records)))
    expected = read(path)
    with capture.open(path, ports={1801}, threads=2) as blocks:
        rows = [row for block in blocks for row in rows_of(block)]
    assert (rows, blocks.stats) == expected
    assert len(ranges.cuts_of(path.stat().st_size)) >= 2


def test_stopping_early(tmp_path: Path) -> None:
    path = tmp_path / "capture"
    path.write_bytes(file_of(conversation(random.Random(1), 300), 0))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reader, "cuts_of", lambda size: range(1000, size, 1000))
        with capture.open(path, ports={1801}, threads=3, block_size=4096) as blocks:
            assert len(next(blocks)) > 0
        with pytest.raises(StopIteration):
            next(blocks)


def test_what_cannot_be_cut(tmp_path: Path) -> None:
    data = file_of(conversation(random.Random(1), 100), 0)
    path = tmp_path / "capture"
    path.write_bytes(data)
    with path.open("rb") as file:
        rows, stats, _ = split(file, [1000])
    assert (CountingReader.taken, rows, stats.frames) == (0, *read(data)[:1], read(data)[1].frames)
    with pytest.raises(ValueError, match="threads=0"):
        capture.open(path, threads=0)
