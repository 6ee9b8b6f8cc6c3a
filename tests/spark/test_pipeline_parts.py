"""Large captures, cut into parts that tasks decode side by side: what lies in the lake is the same."""

from __future__ import annotations

import dataclasses
import gzip
import shutil
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PythonException
from pyspark.sql import SparkSession

from msmqwire.spark import pipeline
from msmqwire.spark.lake.accounting import AccountingError, Decoded, SourceAccount
from msmqwire.spark.lake.decoding import Decoding, SplitCapture, ToRead
from msmqwire.spark.source import planning
from tests.capture import build
from tests.spark.captures import DAY, MONDAY, PRINTED, SESSION, frame, frames_of, without_a_segment, write_capture
from tests.spark.lakes import contents, files_of
from tests.spark.tasks import TASKS


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """Captures that are cut are small as well; how many parts were made of each."""
    monkeypatch.setattr(planning, "SPLIT_SIZE", 1_500)
    split_captures, found = pipeline._Run._split, {}

    def split(self: pipeline._Run, *arguments: Any) -> dict[str, SplitCapture]:
        splits = split_captures(self, *arguments)
        found.update({Path(name).name: len(each.checkpoints) for name, each in splits.items()})
        return splits

    monkeypatch.setattr(pipeline._Run, "_split", split)
    return found


def captures(folder: Path) -> list[Path]:
    """One with a stream that loses bytes, a cut one, one over days, one of blocks, a compressed one, and none."""
    folder.mkdir()
    names = ["gap.pcap", "cut.pcap", "days.pcap", "sections.pcapng", "days.pcap.gz", "none.pcap"]
    gap, cut, days, blocks, compressed, none = paths = [folder / name for name in names]
    without_a_segment(Path(SESSION), gap)
    cut.write_bytes(Path(SESSION).read_bytes()[:-30])
    payloads = [PRINTED[number % 2] if number % 10 else b"?" for number in range(300)]
    for path, start in ((compressed, MONDAY + 1), (days, MONDAY)):
        write_capture(path, ((start + number * DAY // 100, frame(data)) for number, data in enumerate(payloads)))
    blocks.write_bytes(sections(frames_of(Path(SESSION))))
    compressed.write_bytes(gzip.compress(compressed.read_bytes()[:-1], 0))
    none.write_bytes(b"not a capture\n" * 1000)
    return paths


def sections(frames: list[bytes]) -> bytes:
    """A session over three sections of a pcapng file, in both byte orders, with other units and interfaces in each."""
    first, second, third = frames[:7], frames[7:13], frames[13:]
    seconds = MONDAY // 10**9
    other = build.interface(">", link=build.RAW) + build.interface(">", resolution=9, offset=seconds)
    return b"".join(
        [
            build.pcapng(first),
            build.section(">", build.option(4, b"a program that writes sections", ">")) + other,
            *(build.packet(data, ">", number=1, stamp=10**9 + at) for at, data in enumerate(second)),
            *(build.packet(data[14:], ">", stamp=MONDAY // 1000) for data in second),
            build.section("<") + build.interface() + build.interface(resolution=0x80 | 20),
            *(build.packet(data, number=1, stamp=seconds << 20 | at) for at, data in enumerate(third)),
            build.simple_packet(frame(PRINTED[0])),
        ]
    )


@pytest.mark.long
def test_parts_give_what_the_whole_gives(spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    names = captures(tmp_path / "captures")
    whole = pipeline.run(spark, names, tmp_path / "whole")
    cuts = request.getfixturevalue("small_parts")
    files: list[pipeline.Progress] = []
    parts = pipeline.run(spark, names, tmp_path / "parts", progress=files.append)
    assert dataclasses.replace(parts, seconds=whole.seconds) == whole
    assert (whole.sources, whole.lost > 0, whole.faults["truncated"] > 0) == (5, True, True)
    assert contents(tmp_path / "parts") == contents(tmp_path / "whole")
    assert cuts.keys() == {"gap.pcap", "cut.pcap", "days.pcap", "sections.pcapng"}
    assert files[-1].captures == 6
    few, many = (len(files_of(tmp_path / name, "topology")) for name in ("whole", "parts"))
    assert many > few + 8
    assert pipeline.run(spark, names, tmp_path / "parts").known == 5
    with pytest.raises(PythonException, match=r"msmqwire\.errors\.(Decode|Capture)Error: "):
        pipeline.run(spark, names, tmp_path / "none", mode="FAILFAST")
    assert not files_of(tmp_path / "none", "accounting")


@pytest.mark.usefixtures("small_parts")
def test_a_capture_that_changes_between_its_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its parts count for nothing; the next run reads it."""
    path, lake = tmp_path / "session.pcap", tmp_path / "lake"
    shutil.copy(SESSION, path)
    has_changed = Decoding.has_changed

    def changing(self: Decoding, source: ToRead) -> bool:
        without_a_segment(Path(SESSION), path)
        return has_changed(self, source)

    monkeypatch.setattr(Decoding, "has_changed", changing)
    summary = pipeline.run(TASKS, path, lake)
    assert summary.problems == [f"{path}: has changed while it was read; the next run reads it"]
    monkeypatch.undo()
    summary = pipeline.run(TASKS, path, lake)
    (account,) = contents(lake)["accounting"]
    assert (summary.sources, account["bytes"], account["streams"]["gaps"]) == (1, path.stat().st_size, 1)
    assert len(contents(lake)["messages"]) == summary.rows["messages"] > 0

    path.write_bytes(path.read_bytes() + b"\0" * 16)

    def deleting(self: Decoding, source: ToRead) -> bool:
        path.unlink()
        return has_changed(self, source)

    monkeypatch.setattr(planning, "SPLIT_SIZE", 1_500)
    monkeypatch.setattr(Decoding, "has_changed", deleting)
    summary = pipeline.run(TASKS, path, lake)
    assert summary.problems == [f"{path}: No such file or directory"]
    assert len(contents(lake)["messages"]) > 0


def test_parts_that_do_not_add_up_are_refused() -> None:
    source = ToRead("big.pcap", 100, None)
    found = SourceAccount("big.pcap", bytes=100, frames=7, payloads=7)
    parts = [Decoded([SourceAccount("big.pcap", frames=count, payloads=count)], []) for count in (3, 3, 0)]
    with pytest.raises(AccountingError, match=r"big\.pcap: 6 frames in parts, but 7 in one pass"):
        SplitCapture(found, [], source).joined(parts)
    parts[1].accounts[0].problem = "the disk is on fire"
    (account,) = SplitCapture(found, [], source).joined(parts).accounts
    assert (account.problem, account.frames, account.bytes) == ("the disk is on fire", 0, 100)
