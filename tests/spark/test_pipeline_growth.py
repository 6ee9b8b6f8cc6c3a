"""Captures that grow: the lake has what one read of the capture gives."""

from __future__ import annotations

import gzip
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from msmqwire.errors import CaptureError
from msmqwire.spark import lake as lakes
from msmqwire.spark import pipeline
from msmqwire.spark.source import planning
from tests.capture.traffic import conversation, file_of
from tests.spark.lakes import contents, read, rows, wanted
from tests.spark.tasks import TASKS

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
    for number, size in enumerate(cuts):
        path.write_bytes(data[:size])
        if parts:
            monkeypatch.setattr(planning, "SPLIT_SIZE", rng.choice((2_000, 8_000)))
        summary = pipeline.run(TASKS, path, lake)
        assert (summary.sources, summary.bytes) == (1, size)
        if number == 2:
            lakes.optimize(lake)
        monkeypatch.undo()
        assert contents(lake) == one_read(path, tmp_path / "one")
    assert lakes.check(lake) == []
    assert len(read(lake, "accounting")) == 1
    assert pipeline.run(TASKS, path, lake).known == 1


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
        assert pipeline.run(TASKS, path, lake).bytes == len(data)
        assert contents(lake) == one_read(path, tmp_path / "one")


def _renamed(path: Path, lake: Path) -> Path:
    return path.rename(path.with_name("renamed.pcap"))


def test_the_same_beginning_and_otherwise_different(tmp_path: Path) -> None:
    """Both are there, and a line says so; also where a file has the name of one that was read before."""
    path, other, lake = tmp_path / "growing.pcap", tmp_path / "other.pcap", tmp_path / "lake"
    data = traffic(0)
    path.write_bytes(data[:80_000])
    pipeline.run(TASKS, path, lake)
    other.write_bytes(data[:70_000] + traffic(0, 5)[70_000:90_000])
    summary = pipeline.run(TASKS, other, lake)
    assert summary.sources == 1
    line = f"{other}: begins with the same 64 KiB as {path}, and differs later: added"
    assert line in str(summary).splitlines()
    assert rows(lake) == wanted(path, other)
    assert pipeline.run(TASKS, [path, other], lake).known == 2
    before = rows(lake)
    path.write_bytes(data[:75_000] + traffic(0, 6)[75_000:90_000])
    summary = pipeline.run(TASKS, path, lake)
    assert (summary.sources, len(summary.notes)) == (1, 2)
    assert rows(lake) == before + wanted(path)
    assert pipeline.run(TASKS, [path, other], lake).known == 2
    assert lakes.check(lake) == []


def test_a_shorter_capture_that_cannot_be_compared(tmp_path: Path) -> None:
    """A longer one may begin with it, but its file is gone: it is named and not read, unless with ``overwrite``."""
    path, part, lake = tmp_path / "growing.pcap", tmp_path / "part.pcap", tmp_path / "lake"
    data = traffic(0)
    path.write_bytes(data)
    pipeline.run(TASKS, path, lake)
    part.write_bytes(data[:80_000])
    archived = path.rename(tmp_path / "archived.pcap")
    before = rows(lake)
    problem = f"{part}: begins like {path}, which is longer and cannot be read to compare them"
    for _ in range(2):
        summary = pipeline.run(TASKS, part, lake)
        assert (summary.sources, summary.problems, rows(lake)) == (0, [problem], before)
    with pytest.raises(CaptureError, match="begins like"):
        pipeline.run(TASKS, part, lake, mode="FAILFAST")
    # Where it can be compared, it adds nothing
    archived.rename(path)
    summary = pipeline.run(TASKS, part, lake)
    assert (summary.sources, summary.known, summary.problems, rows(lake)) == (0, 1, [], before)
    path.unlink()
    assert pipeline.run(TASKS, part, lake).known == 1
    assert pipeline.run(TASKS, part, lake, overwrite=True).sources == 1
    assert rows(lake).total() > before.total()
    assert lakes.check(lake) == []


@pytest.mark.long
@pytest.mark.parametrize(
    ("change", "options"),
    [
        (_renamed, {}),
        (lambda path, _: path, {"digest": True}),
        (lambda path, _: path, {"ports": (1801,)}),
        (lambda path, _: path, {"overwrite": True}),
    ],
)
def test_a_capture_that_grows_is_read_again(
    tmp_path: Path, change: Callable[[Path, Path], Path], options: dict[str, Any]
) -> None:
    """Also under another name, as another file, or to be read in another way."""
    data, path, lake = traffic(0), tmp_path / "growing.pcap", tmp_path / "lake"
    path.write_bytes(data[:80_000])
    pipeline.run(TASKS, path, lake)
    path.write_bytes(data)
    path = change(path, lake)
    summary = pipeline.run(TASKS, path, lake, **options)
    assert summary.bytes == path.stat().st_size
    options.pop("overwrite", None)
    found, wanted = contents(lake), one_read(path, tmp_path / "one", **options)
    found["accounting"] = [row for row in found["accounting"] if row["file"] == str(path)]
    assert found == wanted
    assert lakes.check(lake) == []


def test_a_compressed_capture_grows(tmp_path: Path) -> None:
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
