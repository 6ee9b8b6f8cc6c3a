"""``capture.write``: the frames of a capture, or of rows, are read again as they were captured."""

from __future__ import annotations

import io
import random
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from msmqwire import capture
from msmqwire.capture.chosen_frames import open_records
from msmqwire.errors import CaptureFormatError
from tests.capture import build
from tests.capture.traffic import conversation, file_of, malformed, several_sections

EXAMPLE = "examples/message-session.pcap"
# What depends on the other frames of a capture
PLACE = ["file", "frame", "first_frame", "stream_offset"]


def records(source: Any) -> list[tuple[Any, ...]]:
    """Every frame of a capture: time, link type, length and bytes."""
    found: list[tuple[Any, ...]] = []
    with open_records(source) as blocks:
        for block in blocks:
            columns: Any = block.capture
            times, timed = columns["time"].astype(np.int64), columns.is_valid("time")
            payloads = [bytes(data or b"") for data in block.payloads]
            lengths = [max(int(size), len(data)) for size, data in zip(columns["length"], payloads, strict=True)]
            times = [int(time) if ok else None for time, ok in zip(times, timed, strict=True)]
            found += zip(times, columns["link"].tolist(), lengths, payloads, strict=True)
        assert blocks.stats.malformed or len(found) == blocks.stats.frames - blocks.stats.other
    return found


def written(source: Any, **chosen: Any) -> bytes:
    file = io.BytesIO()
    count = capture.write(file, source, **chosen)
    assert count == len(records(io.BytesIO(file.getvalue())))
    return file.getvalue()


@pytest.mark.parametrize("form", range(4))
def test_all_frames_are_the_same(form: int) -> None:
    frames = conversation(random.Random(form), 300)
    source = file_of(frames, form)
    before = records(io.BytesIO(source))
    assert [row[3] for row in before] == frames
    assert records(io.BytesIO(written(io.BytesIO(source)))) == before


def test_links_lengths_and_times() -> None:
    """Several interfaces, a frame that a snapshot length cut, one before 1970, one without a time, an empty one."""
    early = struct.pack("<HHq4x", 14, 8, -5_000_000_000)
    parts = [
        build.section(),
        build.block(1, struct.pack("<HHI", build.RAW, 0, 0)),
        build.block(1, struct.pack("<HHI", build.ETHERNET, 0, 0) + early),
        build.block(6, struct.pack("<5I", 0, 5, 6, 20, 1500) + bytes(20)),
        build.block(6, struct.pack("<5I", 1, 5, 6, 0, 0)),
        build.block(3, struct.pack("<I", 60) + bytes(60)),
    ]
    before = records(io.BytesIO(b"".join(parts)))
    assert [row[1:3] for row in before] == [(build.RAW, 1500), (build.ETHERNET, 0), (build.RAW, 60)]
    assert before[0][0] > 0 > before[1][0]
    assert before[2][0] is None
    assert records(io.BytesIO(written(io.BytesIO(b"".join(parts))))) == before
    untimed = b"".join([*parts[:1], parts[2], *parts[4:], build.section(), parts[1], parts[5], parts[5]])
    assert records(io.BytesIO(written(io.BytesIO(untimed)))) == records(io.BytesIO(untimed))


def test_a_window_of_empty_frames() -> None:
    """They are the most rows that a window can have."""
    count = (4 << 20) // 16
    source = build.pcap_header() + build.pcap_record(b"") * count
    assert capture.write(io.BytesIO(), io.BytesIO(source)) == count


@pytest.mark.parametrize("order", "<>")
def test_sections_and_malformed_records(order: str) -> None:
    rng = random.Random(order)
    source = several_sections(rng, order)
    for data in (source, *(malformed(rng, source) for _ in range(20))):
        try:
            before = records(io.BytesIO(data))
        except CaptureFormatError:
            continue
        assert records(io.BytesIO(written(io.BytesIO(data)))) == before


def test_numbers_choose_frames() -> None:
    before = records(EXAMPLE)
    found = written(EXAMPLE, frames=np.array([3, 19, 4, 4, 1000]))
    assert records(io.BytesIO(found)) == [before[2], before[3], before[18]]


def test_rows_choose_frames() -> None:
    rows = capture.read_table(EXAMPLE, "messages").to_arrow()
    assert any(row["first_frame"] < row["frame"] for row in rows.select(["first_frame", "frame"]).to_pylist())
    found = capture.read_table(io.BytesIO(written(EXAMPLE, rows=rows)), "messages").to_arrow()
    assert found.drop_columns(PLACE) == rows.drop_columns(PLACE)
    for number in range(rows.num_rows):
        row = rows.slice(number, 1)
        found = capture.read_table(io.BytesIO(written(EXAMPLE, rows=row)), "messages").to_arrow()
        assert row.drop_columns(PLACE).to_pylist()[0] in found.drop_columns(PLACE).to_pylist()


def test_frames_of_others_between_are_not_written(tmp_path: Path) -> None:
    message = build.message(bytes(2000))
    parts = [message[:1000], message[1000:]]
    mine = [build.segment(part, 1 + 1000 * place) for place, part in enumerate(parts)]
    other = build.segment(message[:1000], 1, src="10.9.9.9")
    path = tmp_path / "a.pcap"
    path.write_bytes(build.pcap([mine[0], other, build.ethernet(build.ARP, bytes(28)), mine[1]]))
    rows = capture.read_table(path, "messages", columns=capture.FRAME_COLUMNS).to_arrow()
    (row,) = (place for place, frame in enumerate(rows["frame"].to_pylist()) if frame == 4)
    assert [each[3] for each in records(io.BytesIO(written(path, rows=rows.slice(row, 1))))] == mine


def test_a_packet_that_begins_in_the_file_before(tmp_path: Path) -> None:
    message = build.message(bytes(2000))
    mine = [build.segment(part, 1 + 1000 * place) for place, part in enumerate((message[:1000], message[1000:]))]
    other = build.ethernet(build.ARP, bytes(28))
    files = [tmp_path / "1.pcap", tmp_path / "2.pcap"]
    files[0].write_bytes(build.pcap([other, other, mine[0], other]))
    files[1].write_bytes(build.pcap([other, mine[1]]))
    rows = capture.read_table(files, "messages", columns=capture.FRAME_COLUMNS).to_arrow()
    assert [(row["frame"], row["first_frame"]) for row in rows.to_pylist()] == [(2, 3)]
    assert [each[3] for each in records(io.BytesIO(written(files, rows=rows)))] == mine


def test_a_file_has_its_name_when_it_is_complete(tmp_path: Path) -> None:
    target = tmp_path / "out.pcapng"
    target.write_bytes(b"before")
    with pytest.raises(OSError, match=r"none\.pcap"):
        capture.write(target, tmp_path / "none.pcap")
    assert target.read_bytes() == b"before"
    assert capture.write(target, EXAMPLE, frames=[1]) == 1
    assert len(records(target)) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["out.pcapng"]


def test_refusals(tmp_path: Path) -> None:
    path = tmp_path / "a.pcap"
    path.write_bytes(Path(EXAMPLE).read_bytes())
    with pytest.raises(ValueError, match="is one of the files to read"):
        capture.write(path, [path])
    with pytest.raises(ValueError, match="has 2 files: give rows"):
        capture.write(io.BytesIO(), [path, EXAMPLE], frames=[1])
    with pytest.raises(ValueError, match="give one of them"):
        capture.write(io.BytesIO(), path, frames=[1], rows=pa.table({"frame": [1]}))
    with pytest.raises(ValueError, match="rows lack file, first_frame, src"):
        capture.write(io.BytesIO(), path, rows=pa.table({"frame": [1]}))
    assert path.read_bytes() == Path(EXAMPLE).read_bytes()
