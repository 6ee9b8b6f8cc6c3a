"""Lakes that are repaired: rows that are there twice are there once, and no row is lost."""

from __future__ import annotations

import contextlib
import random
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError, DeltaError
from deltalake.transaction import RemoveAction

from msmqwire import cli
from msmqwire.spark import lake as lakes
from msmqwire.spark.lake import LakeError
from tests.spark.lake_damage import active, flip
from tests.spark.lake_runs import (
    SCHEDULES,
    active_files,
    be_killed,
    contents,
    expected,
    in_processes,
    merge,
    run,
    run_and_die,
    stopped_at,
)

FIRST = {"a": 3, "b": 5, "c": 1}
SECOND = {**FIRST, "b": 8, "d": 2}
TABLES = ("topology", "faults")


@pytest.fixture(scope="module")
def two_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake of two runs, the second of which replaced rows of the first."""
    root = tmp_path_factory.mktemp("two runs") / "lake"
    for captures in (FIRST, SECOND):
        run(root, captures, share=1)
    return root


@pytest.fixture
def root(two_runs: Path, tmp_path: Path) -> Path:
    """A copy of this lake."""
    return Path(shutil.copytree(two_runs, tmp_path / "lake"))


def files(root: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}


def double(root: Path, times: int = 2) -> None:
    """Double the rows: merges of deltalake itself that began at one version all succeed."""
    for name in TABLES:
        for table in [DeltaTable(root / name) for _ in range(times)]:
            table.optimize.compact()


def remove(root: Path, table: str) -> None:
    """Remove a file of a table, as a log does that has lost an entry: by a commit that says it changes no data."""
    delta = DeltaTable(root / table)
    path = Path(active_files(root, table)[0])
    day: dict[str, str | None] = {"day": path.parent.name.removeprefix("day=")}
    action = RemoveAction(str(path.relative_to(root / table)), False, 0, path.stat().st_size, day)
    delta.create_write_transaction([action], "append", delta.schema(), ["day"])


def rows(root: Path, table: str) -> set[tuple[Any, ...]]:
    """The rows of a table, as any reader of Delta tables finds them."""
    with contextlib.suppress(DeltaError):
        return {
            (row["file"], row["frame"])
            for path in active_files(root, table)
            for row in pq.ParquetFile(path).read(["file", "frame"]).to_pylist()
        }
    return set()


def test_a_sound_lake_is_left_as_it_is(root: Path) -> None:
    before = files(root)
    assert lakes.repair(root) == []
    assert files(root) == before


@pytest.mark.parametrize("damage", [remove, lambda root, _: double(root)])
def test_a_dry_run_and_a_second_repair_change_nothing(root: Path, damage: Any) -> None:
    damage(root, "topology")
    before = files(root)
    said = lakes.repair(root, dry_run=True)
    assert files(root) == before
    assert said
    assert lakes.repair(root) == said
    assert lakes.repair(root) == []


@pytest.mark.long
@pytest.mark.parametrize(("times", "again"), [(2, False), (3, True)])
def test_doubled_rows(root: Path, times: int, again: bool) -> None:
    """Once and again, and after they were merged into one file; the captures may be gone."""
    wanted = dict(SECOND)
    double(root, times)
    if again:
        merge(str(root))
        wanted["other"] = 3
        run(root, wanted)
        double(root)
    assert contents(root)["topology"].total() > sum(wanted.values())
    assert any(problem.startswith("topology: ") for problem in lakes.check(root))
    done = lakes.repair(root)
    assert contents(root) == expected(wanted)
    assert lakes.check(root) == []
    assert all(line.endswith("that other rows are copies of: removed") for line in done)
    run(root, {**wanted, "e": 4})
    assert contents(root) == expected({**wanted, "e": 4})


@pytest.mark.parametrize("table", TABLES)
def test_captures_that_lack_rows(root: Path, table: str) -> None:
    """They keep the others, and are named until a run has found them and read them again."""
    remove(root, table)
    before = rows(root, table)
    done = lakes.repair(root)
    assert done
    assert all(line.endswith(": kept; the next run that finds this capture reads it again") for line in done)
    assert rows(root, table) == before
    assert len(lakes.check(root)) == len(done)
    run(root, {"e": 4})
    assert len(lakes.check(root)) == len(done)
    run(root, {**SECOND, "e": 4})
    assert contents(root) == expected({**SECOND, "e": 4})
    assert lakes.check(root) == []


@pytest.mark.long
def test_doubled_rows_of_captures_that_lack_others(root: Path) -> None:
    remove(root, "topology")
    double(root)
    before = rows(root, "topology")
    lakes.repair(root)
    assert rows(root, "topology") == before
    assert contents(root)["topology"].total() == len(before)
    run(root, SECOND)
    assert contents(root) == expected(SECOND)


def test_a_file_that_cannot_be_read(root: Path) -> None:
    """It stays: its rows may be readable elsewhere, as from a copy of the disk."""
    path = active(root, "topology")[0]
    data = path.read_bytes()
    flip(path)
    before = files(root)
    assert any(f"{path.relative_to(root)}: cannot be read" in problem for problem in lakes.check(root))
    lakes.repair(root, dry_run=True)
    assert files(root) == before
    path.write_bytes(data)
    assert lakes.check(root) == []


def repair_and_die(root: str, step: int) -> None:
    with stopped_at(step, be_killed), contextlib.suppress(CommitFailedError):
        lakes.repair(root)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(SCHEDULES // 2))
def test_a_repair_that_is_killed(root: Path, seed: int) -> None:
    rng = random.Random(seed)
    damages: list[Callable[[], None]] = [
        lambda: double(root),
        lambda: remove(root, "topology"),
        lambda: remove(root, "faults"),
    ]
    for damage in rng.sample(damages, 2):
        damage()
    before = {table: rows(root, table) for table in TABLES}
    for step in rng.sample(range(40), 3):
        (code,) = in_processes((repair_and_die, (str(root), step)))
        assert code in (0, -signal.SIGKILL)
        assert {table: rows(root, table) for table in TABLES} == before
    lakes.repair(root)
    assert {table: rows(root, table) for table in TABLES} == before
    run(root, SECOND)
    assert contents(root) == expected(SECOND)
    assert lakes.check(root) == []


@pytest.mark.long
@pytest.mark.parametrize("seed", range(SCHEDULES // 2))
def test_a_repair_beside_runs(root: Path, seed: int) -> None:
    double(root)
    rng = random.Random(seed)
    codes = in_processes(
        (repair_and_die, (str(root), 1000)),
        (run_and_die, (str(root), {**SECOND, "e": 4, "a": 5}, rng.choice([rng.randrange(60), 1000]))),
        (run_and_die, (str(root), {**SECOND, "f": 4}, 1000)),
        (repair_and_die, (str(root), 1000)),
    )
    assert [code for code in codes if code not in (0, -signal.SIGKILL)] == []
    lakes.repair(root)
    wanted = {**SECOND, "e": 4, "a": 5, "f": 4}
    run(root, wanted)
    assert contents(root) == expected(wanted)
    assert lakes.check(root) == []


def test_the_command(root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def said(*arguments: str) -> tuple[int, str, str]:
        return (cli.main(["lake", "repair", *arguments]), *capsys.readouterr())

    assert said(str(root)) == (0, "", "0 repairs done\n")
    double(root)
    status, out, last = said(str(root), "--dry-run")
    assert (status, last) == (0, "8 repairs to do\n")
    assert "b: 8 rows of topology that other rows are copies of: removed\n" in out
    assert cli.main(["lake", "check", str(root)]) == 2
    capsys.readouterr()
    assert said(str(root)) == (0, out, "8 repairs done\n")
    assert contents(root) == expected(SECOND)
    with pytest.raises(LakeError, match="is not a lake"):
        lakes.repair(tmp_path)
