"""Runs, merges, vacuums and readers of a lake at random, some of them killed: each row is there once."""

from __future__ import annotations

import contextlib
import random
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest
from deltalake.exceptions import CommitFailedError

from msmqwire.spark import lake as lakes
from msmqwire.spark.lake.committing import Lake
from msmqwire.spark.lake.storage import Storage
from msmqwire.spark.lake.tables import LakeTable
from tests.spark.lake_runs import (
    PROCESSES,
    SCHEDULES,
    active_files,
    contents,
    expected,
    in_processes,
    merge,
    merge_and_die,
    optimize,
    run,
    run_and_die,
    watch,
)


def vacuum(root: str) -> None:
    """Delete at once what no table has."""
    lakes.vacuum(root, hours=0)


def schedule(root: Path, seed: int) -> None:
    """Three rounds, each of them beside a reader: runs over captures that overlap and grow, merges, and vacuum."""
    rng = random.Random(seed)
    lake, over = str(root / "lake"), root / "over"
    largest = {str(number): rng.randrange(1, 5) for number in range(8)}
    for number in range(4):
        run(lake, dict(list(largest.items())[number * 2 : number * 2 + 2]))
    reader = PROCESSES.Process(target=watch, args=(lake, str(over)), daemon=True)  # a failure must not leave it
    reader.start()
    for _ in range(3):
        calls: list[tuple[Any, tuple[Any, ...]]] = []
        for _ in range(rng.randrange(1, 4)):
            captures = {f"{rng.randrange(12)}": rng.randrange(1, 9) for _ in range(4)}
            for file, rows in captures.items():
                captures[file] = largest[file] = max(rows, largest.get(file, 0))
            calls.append((run_and_die, (lake, captures, rng.choice([rng.randrange(60), 1000]))))
        calls += [(merge, (lake,)), (merge_and_die, (lake, rng.choice([rng.randrange(30), 1000])))]
        # Of two merges by deltalake itself neither is refused, so there is at most one
        calls += rng.sample([(vacuum, (lake,)), (optimize, (lake,))], rng.randrange(3))
        rng.shuffle(calls)
        codes = in_processes(*calls)
        for code, (call, _) in zip(codes, calls, strict=True):
            assert code == 0 or (code == -signal.SIGKILL and call in (run_and_die, merge_and_die))
    over.touch()
    reader.join()
    assert reader.exitcode == 0
    run(lake, largest)
    assert contents(lake) == expected(largest)
    assert lakes.check(lake) == []


@pytest.mark.long
@pytest.mark.parametrize("seed", range(SCHEDULES))
def test_each_row_is_there_once(tmp_path: Path, seed: int) -> None:
    schedule(tmp_path, seed)


def test_a_run_and_vacuum_while_files_are_rewritten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The files of the version that is read are gone; the next one has this run and another."""
    root, without, waiting = str(tmp_path), Lake._without, [True]
    run(root, {"a": 1})

    def late(self: Lake, *gone: Any) -> Any:
        if waiting:
            waiting.clear()
            run(root, {"a": 3, "b": 2})
            vacuum(root)
        return without(self, *gone)

    monkeypatch.setattr(Lake, "_without", late)
    run(root, {"a": 3})
    assert contents(root) == expected({"a": 3, "b": 2})
    assert [one.number for one in lakes.history(root)] == [3, 2, 1]


@pytest.mark.long
def test_of_two_merges_at_once_one_is_refused(tmp_path: Path) -> None:
    """deltalake's own ``optimize.compact`` beside ours, first or last, as well."""
    first = {"a": 3, "b": 5, "c": 1}
    for share, captures in enumerate((first, {**first, "a": 4, "d": 2}), 1):
        run(tmp_path / "lake", captures, share=share)
    wanted = expected({**first, "a": 4, "d": 2})
    assert contents(tmp_path / "lake") == wanted

    def ours(table: LakeTable) -> None:
        table.merge()

    def foreign(table: LakeTable) -> None:
        with contextlib.suppress(CommitFailedError):
            table.delta.optimize.compact()

    for number, (one, other) in enumerate([(ours, ours), (ours, foreign), (foreign, ours)]):
        root = Path(shutil.copytree(tmp_path / "lake", tmp_path / str(number)))
        for name in ("topology", "faults", "accounting"):
            tables = [Lake(Storage.of(root)).table(name) for _ in range(2)]
            # Both have read the same version
            assert len({table.delta.version() for table in tables}) == 1
            one(tables[0])
            other(tables[1])
        assert contents(root) == wanted
        assert lakes.check(root) == []
        assert all(len(active_files(root, name)) <= 2 for name in ("topology", "faults", "accounting"))
