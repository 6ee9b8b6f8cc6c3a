"""Captures that grow: each run reads what is new, and the lake has what one read of the capture gives."""

from __future__ import annotations

import gzip
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from msmqwire.spark import lake as lakes
from msmqwire.spark import pipeline
from msmqwire.spark.source import planning
from tests.capture.traffic import conversation, file_of
from tests.spark.lakes import contents, read
from tests.spark.tasks import TASKS

#: Of the bytes that a run reads besides those that are new: the file header, and a record that was incomplete.
MOST_READ_AGAIN = 4096 + 2048
LEAST = 64 << 10


def traffic(form: int, seed: int = 0, count: int = 600) -> bytes:
    """Streams with losses and repeats, and fragments, as pcap in two byte orders or pcapng."""
    return file_of(conversation(random.Random(seed), count, bad=0.2), form)


def one_read(path: Path, folder: Path, **options: Any) -> dict[str, list[dict[str, Any]]]:
    shutil.rmtree(folder, ignore_errors=True)
    pipeline.run(TASKS, path, folder, **options)
    return contents(folder)


@pytest.mark.long
@pytest.mark.parametrize("parts", [False, True])
@pytest.mark.parametrize("form", range(4))
def test_at_each_size_the_lake_has_what_one_read_gives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: int, parts: bool
) -> None:
    rng = random.Random(10 * form + parts)
    path, lake = tmp_path / "growing.pcap", tmp_path / "lake"
    data = traffic(form, form, 900)
    cuts = sorted({*(rng.randrange(LEAST, len(data)) for _ in range(5)), len(data)})
    resumed = 0
    for number, (before, size) in enumerate(zip([0, *cuts], cuts, strict=False)):
        path.write_bytes(data[:size])
        if parts:
            monkeypatch.setattr(planning, "SPLIT_SIZE", rng.choice((2_000, 8_000)))
        summary = pipeline.run(TASKS, path, lake)
        assert summary.sources == 1
        if not parts:
            assert size - before <= summary.bytes <= size - before + MOST_READ_AGAIN
        resumed += summary.bytes < size
        if number == 2:
            lakes.optimize(lake)
        monkeypatch.undo()
        assert contents(lake) == one_read(path, tmp_path / "one")
    assert resumed == len(cuts) - 1
    assert lakes.check(lake) == []
    assert len({row["capture"] for row in _accounting(lake)}) == 1
    assert pipeline.run(TASKS, path, lake).known == 1


def _accounting(lake: Path) -> list[dict[str, Any]]:
    return read(lake, "accounting").to_pylist()


@pytest.mark.long
def test_bytes_written_after_a_run_began_are_left_to_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also of a capture in parts, which counts as unchanged when it has grown."""
    data = traffic(0)
    for parts in (False, True):
        path, lake = tmp_path / "growing.pcap", tmp_path / f"lake-{parts}"
        size = len(data) * 3 // 4
        path.write_bytes(data[:size])
        first = one_read(path, tmp_path / "one")
        stamp = path.stat()

        def written_on(self: pipeline._Run, *arguments: Any, path: Path = path, parts: bool = parts) -> None:
            monkeypatch.undo()
            path.write_bytes(data)
            if parts:
                monkeypatch.setattr(planning, "SPLIT_SIZE", 10_000)
            self._decode_all(*arguments)

        monkeypatch.setattr(pipeline._Run, "_decode_all", written_on)
        summary = pipeline.run(TASKS, path, lake)
        monkeypatch.undo()
        assert summary.bytes == size or parts
        (account,) = contents(lake)["accounting"]
        assert (account["length"], account["size"], account["modified_ns"]) == (size, size, stamp.st_mtime_ns)
        assert contents(lake) == first
        assert pipeline.run(TASKS, path, lake).bytes <= len(data) - size + MOST_READ_AGAIN
        assert contents(lake) == one_read(path, tmp_path / "one")


def _renamed(path: Path, lake: Path) -> Path:
    return path.rename(path.with_name("renamed.pcap"))


def _without_seam(path: Path, lake: Path) -> Path:
    for seam in lake.glob("_runs/*.seam"):
        seam.unlink()
    return path


def _with_damaged_seam(path: Path, lake: Path) -> Path:
    for seam in lake.glob("_runs/*.seam"):
        content = bytearray(seam.read_bytes())
        content[len(content) // 2] ^= 0xFF
        seam.write_bytes(content)
    return path


def _other_after_the_beginning(path: Path, lake: Path) -> Path:
    content = bytearray(path.read_bytes())
    content[70_000:] = traffic(0, 5)[70_000 : len(content) + 5_000]
    path.write_bytes(content)
    return path


@pytest.mark.long
@pytest.mark.parametrize(
    ("change", "options"),
    [
        (_renamed, {}),
        (_without_seam, {}),
        (_with_damaged_seam, {}),
        (_other_after_the_beginning, {}),
        (lambda path, _: path, {"digest": True}),
        (lambda path, _: path, {"ports": (1801,)}),
        (lambda path, _: path, {"again": True}),
    ],
)
def test_what_is_read_from_its_beginning(
    tmp_path: Path, change: Callable[[Path, Path], Path], options: dict[str, Any]
) -> None:
    """A capture under another name, or whose seam is lost, or that is another file, or is to be read in another way."""
    data, path, lake = traffic(0), tmp_path / "growing.pcap", tmp_path / "lake"
    path.write_bytes(data[:80_000])
    pipeline.run(TASKS, path, lake)
    path.write_bytes(data)
    path = change(path, lake)
    summary = pipeline.run(TASKS, path, lake, **options)
    assert summary.bytes == path.stat().st_size
    options.pop("again", None)
    found, wanted = contents(lake), one_read(path, tmp_path / "one", **options)
    found["accounting"] = [row for row in found["accounting"] if row["file"] == str(path)]
    assert found == wanted
    assert lakes.check(lake) == []


@pytest.mark.long
def test_a_compressed_capture_is_read_from_its_beginning(tmp_path: Path) -> None:
    data, path, lake = traffic(2), tmp_path / "growing.pcapng.gz", tmp_path / "lake"
    for size in (90_000, len(data)):
        path.write_bytes(gzip.compress(data[:size], 1))
        assert pipeline.run(TASKS, path, lake).bytes == path.stat().st_size
        assert contents(lake) == one_read(path, tmp_path / "one")


@pytest.mark.long
def test_two_runs_read_what_is_new_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second to commit adds nothing, or reads again what the capture has beyond the first."""
    data, path, lake = traffic(0), tmp_path / "growing.pcap", tmp_path / "lake"
    for last in (len(data), 85_000):
        shutil.rmtree(lake, ignore_errors=True)
        path.write_bytes(data[:80_000])
        pipeline.run(TASKS, path, lake)
        path.write_bytes(data)

        def other_first(self: pipeline._Run, *arguments: Any, last: int = last) -> None:
            monkeypatch.undo()
            path.write_bytes(data[:last])
            pipeline.run(TASKS, path, lake)
            path.write_bytes(data)
            self._add(*arguments)

        monkeypatch.setattr(pipeline._Run, "_add", other_first)
        summary = pipeline.run(TASKS, path, lake)
        assert (summary.sources, summary.duplicates) == ((0, [str(path)]) if last == len(data) else (1, []))
        found, wanted = contents(lake), one_read(path, tmp_path / "one")
        # The second run notes the file under its time, as a copy
        for contained in (found, wanted):
            rows = [row for row in contained["accounting"] if row["rows"]]
            contained["accounting"] = [{**row, "modified_ns": None} for row in rows]
        assert found == wanted
        assert lakes.check(lake) == []
