"""The commits of a lake: runs that are stopped in any step, several at once, and OPTIMIZE in between."""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from deltalake.transaction import AddAction, RemoveAction

from msmqwire.spark.lake.captures import capture_numbers
from msmqwire.spark.lake.commit import Lake
from msmqwire.spark.lake.storage import RUNS, LakeError, Storage
from tests.spark.lake_runs import (
    Stopped,
    active_files,
    contents,
    decoded,
    expected,
    in_processes,
    optimize,
    run,
    run_and_die,
    stop,
    stopped_at,
)
from tests.spark.lakes import ALL_TABLES

FIRST = {"a": 3, "b": 5, "c": 1, "d": 2}
#: One has grown, and there are new ones; what shares files with it has not.
SECOND = {**FIRST, "b": 8, "e": 4, "f": 1}
MOST_STEPS = 400


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake of one run."""
    root = tmp_path_factory.mktemp("first") / "lake"
    run(root, FIRST)
    assert contents(root) == expected(FIRST)
    return root


def settled(root: Path) -> Lake:
    return Lake(Storage.of(root))


def test_a_run_lists_no_log_that_it_knows(first: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A log is longer with every run, and to open a table or to update it lists all of it."""
    lake = Path(shutil.copytree(first, tmp_path / "lake"))
    listed: list[str] = []
    open_table, update = DeltaTable.__init__, DeltaTable.update_incremental

    def opened(self: DeltaTable, table_uri: str | Path, *arguments: Any, **named: Any) -> None:
        listed.append(Path(table_uri).name)
        open_table(self, table_uri, *arguments, **named)

    def updated(self: DeltaTable) -> None:
        listed.append("update")
        update(self)

    monkeypatch.setattr(DeltaTable, "__init__", opened)
    monkeypatch.setattr(DeltaTable, "update_incremental", updated)
    run(lake, {**FIRST, "e": 4})
    assert Counter(listed) == {"accounting": 1, "topology": 1, "faults": 1}
    settled(lake).create(["messages"])
    again = settled(lake)
    listed.clear()
    again.create(["messages"])
    assert not listed
    assert contents(lake) == expected({**FIRST, "e": 4})


def test_runs_add_and_replace(first: Path, tmp_path: Path) -> None:
    lake = Path(shutil.copytree(first, tmp_path / "lake"))
    run(lake, SECOND)
    assert contents(lake) == expected(SECOND)
    assert settled(lake).run == 2
    run(lake, SECOND)
    assert settled(lake).run == 2


@pytest.mark.long
def test_a_run_stopped_in_some_steps(first: Path, tmp_path: Path) -> None:
    """A table has nothing of a run that did not happen; the next one does what is left; and no row is there twice.

    ``test_processes_killed_in_every_step`` leaves out no step.
    """
    outcomes: Counter[int] = Counter()
    for step in range(3, MOST_STEPS, 7):
        lake = Path(shutil.copytree(first, tmp_path / str(step)))
        try:
            with stopped_at(step, stop):
                run(lake, SECOND)
        except Stopped:
            pass
        else:
            break
        found = settled(lake)
        assert contents(lake) in (expected(FIRST), expected(SECOND)), step
        outcomes[found.run] += 1
        if step % 2:
            optimize(lake)
        run(lake, SECOND)
        assert contents(lake) == expected(SECOND), step
        shutil.rmtree(lake)
    assert outcomes[1] > 2
    assert outcomes[2] > 2


def test_of_two_runs_one_commits_first(first: Path, tmp_path: Path) -> None:
    """The other leaves out what is known by now, and decodes again what shared its files."""
    root = Path(shutil.copytree(first, tmp_path / "lake"))
    lake = settled(root)
    numbers = iter(range(10**6, 10**7))
    groups = [decoded(lake.storage, captures, numbers) for captures in ({"b": 8, "e": 4}, {"g": 2})]
    run(root, {"b": 9})
    refused = lake.commit(groups, "snappy")
    assert refused == groups[:1]
    assert contents(root) == expected({**FIRST, "b": 9, "g": 2})
    assert lake.run == 3
    # A number that is taken is none for another capture
    with pytest.raises(AssertionError):
        assert not lake.commit([decoded(lake.storage, {"h": 1}, iter([groups[1].accounts[0].capture, 9]))], "snappy")


@pytest.mark.long
def test_overlapping_runs_at_once(first: Path, tmp_path: Path) -> None:
    lake = Path(shutil.copytree(first, tmp_path / "lake"))
    grown = [{**SECOND, "b": 7 + at, f"only {at}": 3} for at in range(3)]
    assert in_processes(*((run, (str(lake), captures)) for captures in grown)) == [0, 0, 0]
    everything = {**SECOND, "b": 9, **{f"only {at}": 3 for at in range(3)}}
    assert contents(lake) == expected(everything)


@pytest.mark.long
def test_a_killed_process(first: Path, tmp_path: Path) -> None:
    lake = Path(shutil.copytree(first, tmp_path / "lake"))
    assert in_processes((run_and_die, (str(lake), SECOND, 20))) == [-signal.SIGKILL]
    run(lake, SECOND)
    assert contents(lake) == expected(SECOND)


@pytest.mark.long
def test_processes_killed_in_every_step(first: Path, tmp_path: Path) -> None:
    """The schedules of ``test_lake_schedules.py`` kill several at once, beside merges, vacuums and readers."""
    outcomes: Counter[int] = Counter()
    for step in range(MOST_STEPS):
        lake = Path(shutil.copytree(first, tmp_path / str(step)))
        (code,) = in_processes((run_and_die, (str(lake), SECOND, step)))
        found = settled(lake)
        assert contents(lake) in (expected(FIRST), expected(SECOND)), step
        outcomes[found.run] += 1
        if step % 2:
            optimize(lake)
        run(lake, SECOND)
        assert contents(lake) == expected(SECOND), step
        shutil.rmtree(lake)
        if code == 0:
            break
    assert code == 0
    assert outcomes[1] > 15
    assert outcomes[2] > 15


def test_a_foreign_optimize_loses_and_doubles_nothing(first: Path, tmp_path: Path) -> None:
    lake = Path(shutil.copytree(first, tmp_path / "lake"))
    optimize(lake)
    run(lake, SECOND)
    optimize(lake)
    assert contents(lake) == expected(SECOND)
    run(lake, {**SECOND, "a": 9})
    assert contents(lake) == expected({**SECOND, "a": 9})


@pytest.mark.long
def test_a_lake_stays_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After many runs every table has few files, and a run reads only the last plan."""
    monkeypatch.setattr("msmqwire.spark.lake.commit._MERGED", {4: 1 << 20})
    read: list[str] = []
    read_plan = Lake._read_plan

    def noted(self: Lake, name: str) -> object:
        read.append(name)
        return read_plan(self, name)

    monkeypatch.setattr(Lake, "_read_plan", noted)
    for number in range(12):
        run(tmp_path, {f"{number}": 1})
    read.clear()
    run(tmp_path, {"last": 1})
    assert len(set(read)) <= 2
    for name in ("accounting", "topology"):
        assert len(DeltaTable(tmp_path / name).file_uris()) <= 2
    assert contents(tmp_path) == expected({**{f"{number}": 1 for number in range(12)}, "last": 1})


def test_a_lake_that_has_seen_another_run_knows_its_captures(tmp_path: Path) -> None:
    """To merge files or delete rows is to see the runs that others have committed meanwhile."""
    first = Lake(Storage.of(tmp_path), create=True)
    numbers = capture_numbers()
    first.commit([decoded(first.storage, {"a": 1}, numbers)], "snappy")
    run(tmp_path, {"b": 2})
    first.table("accounting").refresh()
    groups = [decoded(first.storage, {name: 2}, numbers) for name in ("b", "c")]
    assert first.commit(groups, "snappy") == groups[:1]
    assert (first.run, contents(tmp_path)) == (3, expected({"a": 1, "b": 2, "c": 2}))


def test_files_are_durable_before_the_commit_that_names_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A power failure at any moment leaves no commit that names a file which is not on the disk."""
    lake = tmp_path.resolve() / "lake"
    durable: set[Path] = set()
    committed: list[Path] = []

    def fsync(descriptor: int, sync: Callable[[int], None] = os.fsync) -> None:
        durable.add(Path(os.readlink(f"/proc/self/fd/{descriptor}")))
        sync(descriptor)

    def commit(table: DeltaTable, actions: list[AddAction | RemoveAction], *rest: Any, **named: Any) -> None:
        root = next(lake / name for name in ALL_TABLES if table.table_uri.rstrip("/").endswith(f"/{name}"))
        for path in [*(root / action.path for action in actions), *(lake / RUNS).glob("*.json")]:
            assert {path, *(folder for folder in path.parents if folder.is_relative_to(lake))} <= durable
            committed.append(path)
        create(table, actions, *rest, **named)

    create = DeltaTable.create_write_transaction
    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(DeltaTable, "create_write_transaction", commit)
    monkeypatch.setattr("msmqwire.spark.lake.commit._MERGED", {2: 1 << 20})
    for captures in (FIRST, SECOND):
        run(lake, captures)
    assert {lake / "accounting", lake / "topology", lake / RUNS} <= {
        folder for path in committed for folder in path.parents
    }
    # What deltalake itself has rewritten, and the log
    assert {Path(path) for name in ("topology", "accounting") for path in active_files(lake, name)} <= durable
    assert {path for path in lake.glob("*/_delta_log/*.json") if int(path.stem)} <= durable


def plan_of(root: Path) -> Path:
    return root / settled(root).plan_file


@pytest.mark.parametrize("name", ["../outside.parquet", "/etc/passwd", "day=2024-03-04/../../x.parquet", "s3://b/x"])
def test_names_that_leave_the_lake_are_refused(first: Path, tmp_path: Path, name: str) -> None:
    lake = Path(shutil.copytree(first, tmp_path / "lake"))
    path = plan_of(lake)
    plan = json.loads(path.read_text())
    plan["add"]["topology"][0][0] = name
    path.write_text(json.dumps(plan))
    shutil.rmtree(lake / "topology" / "_delta_log")
    with pytest.raises(LakeError, match="is not the name of a file of topology"):
        settled(lake)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"add": {"../other": []}}, "names a table that a lake does not have"),
        ({"previous": {"topology": [7, "x"]}}, "follows a later one"),
        ({"delete": {"topology": ["1) OR (1 = 1"]}}, "is no plan"),
        ({"run": None}, "is no plan"),
    ],
)
def test_a_forged_plan_is_refused(first: Path, tmp_path: Path, change: dict[str, object], message: str) -> None:
    lake = Path(shutil.copytree(first, tmp_path / "lake"))
    path = plan_of(lake)
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(LakeError, match=message):
        settled(lake)


@pytest.mark.parametrize(("content", "found"), [(None, "is missing"), (b"", "has 0 bytes, not ")])
def test_a_file_that_is_not_as_it_was_written_is_not_added(
    first: Path, tmp_path: Path, content: bytes | None, found: str
) -> None:
    lake = Path(shutil.copytree(first, tmp_path / "lake"))
    shutil.rmtree(lake / "faults" / "_delta_log")
    file = next((lake / "faults").rglob("*.parquet"))
    if content is None:
        file.unlink()
    else:
        file.write_bytes(content)
    with pytest.raises(LakeError, match=f"{file.name}: {found}"):
        settled(lake)
    assert not DeltaTable(lake / "faults").file_uris()


def test_what_is_no_lake_is_refused(first: Path, tmp_path: Path) -> None:
    with pytest.raises(LakeError, match="is not a lake: msmqwire pipeline makes one"):
        settled(tmp_path)
    old = tmp_path / "old"
    old.mkdir()
    (old / "_lake.json").write_text("{}")
    with pytest.raises(LakeError, match="a lake of an earlier version; run the pipeline again into a new lake"):
        run(old, FIRST)
    lake = Path(shutil.copytree(first, tmp_path / "lake"))
    shutil.rmtree(lake / "accounting")
    with pytest.raises(LakeError, match="accounting is missing"):
        run(lake, FIRST)
