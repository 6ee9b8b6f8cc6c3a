"""Streams beyond the limits: streams that are forgotten, and packets that do not fit in a block."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from msmqwire import capture
from msmqwire.columns import UNFRAMED_BIT
from tests.capture import build
from tests.capture.build import message, segment
from tests.capture.reading import check, read
from tests.capture.stream_oracle import FIN, RST, SYN
from tests.capture.test_streams import ACK, PACKETS

pytestmark = pytest.mark.usefixtures("everything_is_released")


def test_too_many_streams() -> None:
    limits = capture.StreamLimits(streams=2)
    frames = [segment(PACKETS[0][:10], 0, source=1), segment(PACKETS[1], 20, SYN, source=2)]
    frames += [segment(PACKETS[2], 0, source=3), segment(PACKETS[0][10:], 10, source=1)]
    rows, stats = read(build.pcap(frames), limits=limits)
    assert [row.payload for row in rows if not row.lost] == PACKETS[1:3]
    assert [(row.frame, row.payload, row.lost) for row in rows if row.lost] == [
        (1, PACKETS[0][:10], 6),
        (4, PACKETS[0][10:], UNFRAMED_BIT),  # another stream by then
    ]
    assert stats.streams.evictions == 2
    assert stats.streams.unfinished == 1
    ended = [segment(PACKETS[0], 0, FIN, source=port) for port in range(1, 50)]
    _, stats = read(build.pcap(ended), limits=limits)
    assert (stats.streams.packets, stats.streams.evictions) == (49, 0)


def test_too_much_memory() -> None:
    """Unfinished packets take what came of them, not what they say; the streams seen longest ago go first."""
    frames = [segment(message(bytes(3000), size=1 << 20), 0, source=port) for port in range(1, 101)]
    _, stats = read(build.pcap(frames), limits=capture.StreamLimits(memory=40 * 4096))
    assert stats.streams.evictions == 59
    assert stats.streams.unfinished == 100
    _, stats = read(build.pcap(frames))
    assert stats.streams.evictions == 0


def test_limits_that_cannot_be() -> None:
    for limits in ({"streams": 0}, {"ahead": -1}, {"memory": -1}, {"streams": 1 << 31}):
        with pytest.raises(ValueError, match="StreamLimits"):
            capture.StreamLimits(**limits)


@pytest.mark.parametrize("form", [build.pcap, pytest.param(build.pcapng, marks=pytest.mark.long)])
def test_more_packets_than_a_block_has_room_for(form: Callable[[list[bytes]], bytes]) -> None:
    """Two blocks of one window; the frame that did not fit is taken again."""
    small = message()
    frames = [segment(small * 4000, 1 + 64000 * i) for i in range(6)]
    whole, _ = read(form([segment(b"", 0, SYN), *frames]), block_size=1 << 22)
    assert len(whole) == 24000
    assert [row.stream_offset for row in whole] == list(range(0, 16 * 24000, 16))
    late = [segment(b"", 0, SYN), *frames[1:], build.plain(b"x"), frames[0], build.plain(b"y")]
    rows, _ = read(form(late), block_size=1 << 22, limits=capture.StreamLimits(ahead=1 << 24))
    assert len(rows) == 24002
    assert rows[0].payload == b"x"
    assert rows[-1].payload == b"y"
    del late[-2]
    rows, _ = read(form(late), block_size=1 << 22, limits=capture.StreamLimits(ahead=1 << 24))
    assert [row.payload for row in rows[:2]] == [b"x", b"y"]
    assert len(rows) == 20002


def test_room_is_asked_for_behind_streams_that_end() -> None:
    """A stream that is evicted, or whose ports are reused, delivers its packets before those of the segment."""
    waiting = [segment(b"", 0, SYN), segment(message() * 4000, 101), segment(b"", 64101, FIN)]
    for limits, last in (
        (capture.StreamLimits(streams=1), segment(message() * 1000, 0, source=2)),
        (capture.StreamLimits(), segment(message() * 1000, 9_999_999, SYN)),
    ):
        frames = [segment(message() * 4000, 64000 * i, source=1) for i in range(3)] + [*waiting, last]
        rows, stats = read(build.pcap(frames), block_size=1 << 22, limits=limits)
        assert len(rows) == 3 * 4000 + 4000 + 1000
        assert stats.streams.packets == len(rows)


FULL = 16384 + 2  # packets in streams that a block has room for
HELD = [segment(b"", 999, SYN, source=2), *(segment(message() * 100, 1017 + 1601 * i, source=2) for i in range(4))]
ROOM_IS_NEEDED = {
    "reset": (segment(b"", 8000, RST, source=2), {}),
    "evicted": (segment(PACKETS[0], 0, source=3), {"streams": 1}),
    "begun again": (segment(PACKETS[0], 70000, source=2), {}),
    "answered": (
        segment(b"", 5, SYN | ACK, 1801, 2, src="10.0.0.2", dst="10.0.0.1", acknowledged=70000),
        {},
    ),
}


@pytest.mark.parametrize("cause", ROOM_IS_NEEDED)
def test_streams_that_end_in_a_full_block(cause: str) -> None:
    """Their packets come in the next block; nothing is lost, and none comes twice."""
    last, limits = ROOM_IS_NEEDED[cause]
    frames = [*HELD, segment(b"", 69999, SYN, source=2), last, segment(PACKETS[1], 70000 + len(PACKETS[0]), source=2)]
    for room, form in ((3, build.pcap), (150, build.pcapng)):
        fill = [segment(message() * 3200, 51200 * i, source=1) for i in range(5)]
        fill.append(segment(message() * (FULL - room - 5 * 3200), 51200 * 5, source=1))
        read_limited = partial(read, limits=capture.StreamLimits(**limits), block_size=1 << 22)
        expected, alone = read_limited(form([segment(message(), 0, source=1), *frames]))
        rows, stats = read_limited(form([*fill, *frames]))
        shown, wanted = ([row[2:7] + row[8:] for row in each if row.src_port != 1] for each in (rows, expected))
        assert shown == wanted
        assert len(shown) >= 400
        assert (stats.streams.gaps, stats.streams.streams) == (alone.streams.gaps, alone.streams.streams)


def test_what_memory_is_taken_for_an_eviction_is_read_to_its_end() -> None:
    """It goes on in the next block, even if what it gave up made room enough."""
    pieces = [segment(message() * 4000, 17 + 64000 * i, source=2) for i in range(5)]
    frames = [segment(b"", 0, SYN, source=2), *pieces, *[segment(PACKETS[0], 0, source=port) for port in range(3, 30)]]
    limits = capture.StreamLimits(memory=260_000)
    rows, stats = read(build.pcap(frames), block_size=1 << 22, limits=limits)
    assert [row.src_port for row in rows] == [2] * 20000 + list(range(3, 30))
    assert stats.streams.gaps == 1


def test_pieces_of_many_files(tmp_path: Path) -> None:
    """Segments of 600 files wait behind a gap; the column ``file`` of a block has a byte for each row."""
    paths = []
    for number in range(600):
        path = tmp_path / f"{number:03}.pcap"
        frames = [segment(b"", 0, SYN)] * (number == 0) + [segment(message(b"%04d" % number) * 2, 41 + 40 * number)]
        path.write_bytes(build.pcap(frames))
        paths.append(path)
    names = []
    with capture.open(paths) as blocks:
        for block in blocks:
            names += [Path(str(name)).name for name in block.capture.to_arrow()["file"].to_pylist()]
            assert [bytes(payload or b"")[16:] for payload in block.payloads]
    assert names == [path.name for path in paths for _ in range(2)]
    check(blocks.stats)
