"""Rows as plain columns, whatever the types of their source, and their places and times as text."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest

from msmqwire.columns.plain import guid_text, plain
from msmqwire.insight.rows import FRAMES, Files, Rows, frames_text, seen_text

GUID = UUID("aaaaaaaa-1111-4222-8333-444444444444")


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def batch(**columns: Any) -> pa.RecordBatch:
    """Two rows, the first without a fault."""
    base: dict[str, Any] = {
        "file": pa.array(["a.pcap", "b.pcap"]),
        "frame": pa.array([7, 8], pa.int64()),
        "time": pa.array([1_500, None], pa.timestamp("us", "UTC")),
        "fault": pa.array([None, {"code": "truncated"}], pa.struct([("code", pa.string())])),
    }
    return pa.RecordBatch.from_pydict({**base, **columns})


def test_files_are_numbered_in_the_order_of_their_appearance() -> None:
    files = Files()
    assert [files.number(name) for name in ("b", None, "a", "b", None)] == [0, 1, 2, 0, 1]
    assert files.names == ["b", None, "a"]


def test_places_have_the_file_and_the_frame() -> None:
    files = Files()
    files.number("first.pcap")
    names, frames = pa.array(["b", "a", "b"]), pa.array([1, 2, (1 << 40) - 1], pa.int64())
    places = files.places(names, frames)
    assert places.to_pylist() == [(1 << 40) + 1, (2 << 40) + 2, (2 << 40) - 1]
    assert files.places(names[:0], frames[:0]).to_pylist() == []
    lists = pa.ListArray.from_arrays([0, 2, 2, 3], places)
    wanted = [
        [{"file": "b", "frame": 1}, {"file": "a", "frame": 2}],
        [],
        [{"file": "b", "frame": (1 << 40) - 1}],
    ]
    found = files.frames(lists)
    assert found.type == FRAMES
    assert found.to_pylist() == wanted
    assert files.frames(lists[1:]).to_pylist() == wanted[1:]


def test_rows_without_a_file() -> None:
    files = Files()
    places = files.places(pa.array([None, None], pa.string()), pa.array([3, 4], pa.int64()))
    assert places.to_pylist() == [3, 4]


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


def test_times_are_nanoseconds() -> None:
    assert Rows(batch(), Files())["time"].to_pylist() == [1_500_000, None]
    spark = batch(time_ns=pa.array([1_500_123, None], pa.int64()))
    assert Rows(spark, Files())["time"].to_pylist() == [1_500_123, None]


def test_a_column_is_made_plain_once() -> None:
    rows = Rows(batch(name=pa.array(["x", "y"]).dictionary_encode()), Files())
    assert rows["name"].to_pylist() == ["x", "y"]
    assert rows["name"] is rows["name"]
    assert ("name" in rows, "other" in rows, len(rows)) == (True, False, 2)
    with pytest.raises(KeyError):
        rows["other"]


@pytest.mark.parametrize("form", [pa.string(), pa.large_string(), "dictionary"])
def test_rows_that_equal_a_text(form: Any) -> None:
    for texts, wanted in ((["x", "y"], [True, False]), ([None, "x"], [False, True]), ([None, None], [False, False])):
        column = pa.array(texts, pa.string())
        rows = Rows(batch(name=column.dictionary_encode() if form == "dictionary" else column.cast(form)), Files())
        assert rows.equals("name", "x").tolist() == wanted


def test_tables_of_rows() -> None:
    rows = Rows(batch(list=pa.array([["a", "b"], ["c"]])), Files())
    both = rows.table(size=pa.array([1, 2]), kind="same")
    assert both.to_pylist() == [
        {"place": 7, "time": 1_500_000, "size": 1, "kind": "same"},
        {"place": (1 << 40) + 8, "time": None, "size": 2, "kind": "same"},
    ]
    chunked = pa.chunked_array([[1], [2]])
    assert rows.table(pa.array([False, True]), size=chunked)["size"].to_pylist() == [2]
    exploded = rows.exploded(rows["list"], "item", kind="same")
    assert exploded["item"].to_pylist() == ["a", "b", "c"]
    assert exploded["place"].to_pylist() == [7, 7, (1 << 40) + 8]


@pytest.mark.parametrize(
    "column",
    [
        pa.array(["x", None]),
        pa.array(["x", None]).dictionary_encode(),
        pa.array(["x", None], pa.large_string()),
        pa.array(["x", None], pa.string_view()),
        pa.array(["x", None], pa.large_string()).dictionary_encode(),
    ],
)
def test_texts_of_any_type_are_strings(column: Any) -> None:
    made = plain(column)
    assert made.type == pa.string()
    assert made.to_pylist() == ["x", None]


def test_extension_types_are_removed() -> None:
    stored = pa.ExtensionArray.from_storage(pa.uuid(), pa.array([GUID.bytes, None], pa.binary(16)))
    assert plain(stored).to_pylist() == [GUID.bytes, None]


def test_guids_as_text() -> None:
    wanted = [str(GUID), None]
    assert guid_text(pa.array([GUID.bytes, None], pa.binary(16))).to_pylist() == wanted
    assert guid_text(pa.array(wanted)).to_pylist() == wanted
