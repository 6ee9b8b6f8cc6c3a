"""Places and times of the rows of a result as text, and places as files and frames."""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa
import pytest

from msmqwire.insight.engine import FRAMES
from msmqwire.insight.frames import frames_text, seen_text
from msmqwire.insight.tables import places_as_frames


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def test_places_are_files_and_frames_in_order_and_once() -> None:
    def place(file: int, frame: int) -> int:
        return file << 40 | frame

    lists = [[place(1, 5), place(0, 7), place(1, 5), place(0, (1 << 40) - 1)], [], None, [place(1, 1)]]
    found = places_as_frames(pa.array(lists, pa.list_(pa.int64())), ["a", None], 2)
    assert found.cast(FRAMES).to_pylist() == [
        [{"file": "a", "frame": 7}, {"file": "a", "frame": (1 << 40) - 1}],
        [],
        [],
        [{"file": None, "frame": 1}],
    ]
    assert places_as_frames(pa.array([], pa.list_(pa.int64())), [], 2).to_pylist() == []


def test_frames_as_text() -> None:
    frames = [{"file": "x/a.pcap", "frame": 1}, {"file": "b.pcap", "frame": 5}, {"file": "x/a.pcap", "frame": 3}]
    assert frames_text(frames) == "a.pcap 1 3; b.pcap 5"
    assert frames_text(frames, files=False) == "1 3; 5"
    assert frames_text([{"file": None, "frame": 2}], files=False) == "2"
    assert frames_text([]) == ""


@pytest.mark.parametrize(
    ("first", "last", "wanted"),
    [
        ("2024-03-04 08:00:00.100", "2024-03-04 08:00:00.900", "2024-03-04 08:00:00"),
        ("2024-03-04 08:00:00", "2024-03-04 09:01:02", "2024-03-04 08:00:00 – 09:01:02"),
        ("2024-03-04 08:00:00", "2024-03-05 08:00:00", "2024-03-04 08:00:00 – 2024-03-05 08:00:00"),
    ],
)
def test_the_first_and_the_last_time_as_text(first: str, last: str, wanted: str) -> None:
    assert seen_text(at(first), at(last)) == wanted
    assert seen_text(None, at(last)) == seen_text(at(first), None) == seen_text(None, None) == ""
