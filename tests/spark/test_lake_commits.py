"""The commits of a lake: runs that are stopped in any step, several at once, and OPTIMIZE in between."""

from __future__ import annotations

import os
import shutil
import signal
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from deltalake.transaction import AddAction, RemoveAction

from msmqwire.errors import LakeError
from msmqwire.spark import lake as lakes
from msmqwire.spark.lake.accounting import ACCOUNTING
from msmqwire.spark.lake.committing import Lake
from msmqwire.spark.lake.storage import Storage
from tests.spark.lake_runs import (
    Stopped,
    active_files,
    contents,
    decoded,
    expected,
    in_processes,
    optimize,
    relate,
    run,
    run_and_die,
    stop,
    stopped_at,
)
from tests.spark.lakes import ALL_TABLES

FIRST = {"a": 3, "b": 5, "c": 1, "d": 2}
#: One has grown, and there are new ones.
SECOND = {**FIRST, "b": 8, "e": 4, "f": 1}
#: The captures after each run: what is new comes first, then what replaces others.
STATES = {1: FIRST, 2: {**FIRST, "e": 4, "f": 1}, 3: SECOND}
MOST_STEPS = 400


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake of one run."""
    root = tmp_path_factory.mktemp("first") / "lake"
    run(root, FIRST)
    assert contents(root) == expected(FIRST)
    return root


def settled(root: Path) -> Lake:
    lake = Lake(Storage.of(root))
    lake.apply_committed_runs()
    return lake


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
    # What is new, and what replaces others
    assert settled(lake).run == 3
    run(lake, SECOND)
    assert settled(lake).run == 3


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
        assert contents(lake) == expected(STATES[found.run]), step
        outcomes[found.run] += 1
        if step % 2:
            optimize(lake)
        run(lake, SECOND)
        assert contents(lake) == expected(SECOND), step
        shutil.rmtree(lake)
    assert min(outcomes[run] for run in STATES) > 2


def test_of_two_runs_one_commits_first(first: Path, tmp_path: Path) -> None:
    """The other leaves out what is known by now, and decodes again what shared its files."""
    root = Path(shutil.copytree(first, tmp_path / "lake"))
    lake = settled(root)
    groups = [decoded(lake, captures) for captures in ({"b": 8, "e": 4}, {"g": 2})]
    run(root, {"b": 9})
    refused = lake.commit(groups, "snappy", relate)
    assert refused == groups[:1]
    assert contents(root) == expected({**FIRST, "b": 9, "g": 2})
    assert lake.run == 3
    # It has grown beyond what another run has committed meanwhile, of which its rows take the place
    groups = [decoded(lake, {"b": 12})]
    run(root, {"b": 11})
    assert lake.commit(groups, "snappy", relate) == []
    assert contents(root) == expected({**FIRST, "b": 12, "g": 2})


@pytest.mark.long
def test_overlapping_runs_at_once(first: Path, tmp_path: Path) -> None:
    lake = Path(shutil.copytree(first, tmp_path / "lake"))
    grown = [{**SECOND, "b": 7 + at, f"only {at}": 3} for at in range(3)]
    assert in_processes(*((run, (str(lake), captures)) for captures in grown)) == [0, 0, 0]
    everything = {**SECOND, "b": 9, **{f"only {at}": 3 for at in range(3)}}
    assert contents(lake) == expected(everything)


def read(root: Path, run: int | None = None) -> dict[str, Counter[tuple[Any, ...]]]:
    """The rows of a lake as its own readers find them."""
    names = {"topology": ("file", "frame"), "faults": ("file",), "accounting": ("file", "length")}
    return {
        table: Counter(
            tuple(row[name] for name in columns)
            for batch in lakes.batches(root, table, columns, run=run)
            for row in batch.to_pylist()
        )
        for table, columns in names.items()
    }


@pytest.mark.long
def test_a_reader_adds_what_a_stopped_run_has_left(
    first: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It writes nothing, whatever step the run was stopped in, and the tables agree with each other."""
    lacked = 0
    for step in range(0, MOST_STEPS, 3):
        lake = Path(shutil.copytree(first, tmp_path / str(step)))
        try:
            with stopped_at(step, stop):
                run(lake, SECOND)
        except Stopped:
            pass
        else:
            break
        before = {path: path.stat().st_mtime_ns for path in lake.rglob("*")}
        number = lakes.history(lake)[0].number
        assert read(lake) == expected(STATES[number]), step
        lacked += contents(lake) != expected(STATES[number])
        for earlier in range(1, number + 1):
            assert read(lake, earlier) == expected(STATES[earlier]), (step, earlier)
        assert lakes.check(lake) == []
        assert {path: path.stat().st_mtime_ns for path in lake.rglob("*")} == before
        shutil.rmtree(lake)
    assert lacked > 3


def test_a_run_whose_log_was_cleaned_up_is_an_error(first: Path, tmp_path: Path) -> None:
    lake = Path(shutil.copytree(first, tmp_path / "lake"))
    for more in ({"e": 4}, {"f": 1}):
        run(lake, {**FIRST, **more})
    for name in ("topology", "faults", "accounting"):
        DeltaTable(lake / name).create_checkpoint()
        for entry in sorted((lake / name / "_delta_log").glob("*.json"))[:-1]:
            entry.unlink()
    assert read(lake, 3) == read(lake) == expected({**FIRST, "e": 4, "f": 1})
    for run_ in (1, 2):
        for name in ("topology", "accounting"):
            with pytest.raises(LakeError, match=f"its log does not reach back to run {run_}"):
                list(lakes.batches(lake, name, ["file"], run=run_))


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
        assert contents(lake) == expected(STATES[found.run]), step
        outcomes[found.run] += 1
        if step % 2:
            optimize(lake)
        run(lake, SECOND)
        assert contents(lake) == expected(SECOND), step
        shutil.rmtree(lake)
        if code == 0:
            break
    assert code == 0
    assert min(outcomes[run] for run in STATES) > 15


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
    """After many runs every table has few files."""
    monkeypatch.setattr("msmqwire.spark.lake.committing._MERGED", {4: 1 << 20})
    for number in range(12):
        run(tmp_path, {f"{number}": 1})
    run(tmp_path, {"last": 1})
    for name in ("accounting", "topology"):
        assert len(DeltaTable(tmp_path / name).file_uris()) <= 2
    assert contents(tmp_path) == expected({**{f"{number}": 1 for number in range(12)}, "last": 1})


def test_a_lake_that_has_seen_another_run_knows_its_captures(tmp_path: Path) -> None:
    """To merge files or delete rows is to see the runs that others have committed meanwhile."""
    first = Lake(Storage.of(tmp_path), create=True)
    first.commit([decoded(first, {"a": 1})], "snappy", relate)
    run(tmp_path, {"b": 2})
    first.table("accounting").refresh()
    groups = [decoded(first, {name: 2}) for name in ("b", "c")]
    assert first.commit(groups, "snappy", relate) == groups[:1]
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
        for path in [root / action.path for action in actions]:
            assert {path, *(folder for folder in path.parents if folder.is_relative_to(lake))} <= durable
            committed.append(path)
        create(table, actions, *rest, **named)

    create = DeltaTable.create_write_transaction
    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(DeltaTable, "create_write_transaction", commit)
    monkeypatch.setattr("msmqwire.spark.lake.committing._MERGED", {2: 1 << 20})
    for captures in (FIRST, SECOND):
        run(lake, captures)
    assert {lake / "accounting", lake / "topology"} <= {folder for path in committed for folder in path.parents}
    # What deltalake itself has rewritten, and the log
    assert {Path(path) for name in ("topology", "accounting") for path in active_files(lake, name)} <= durable
    assert {path for path in lake.glob("*/_delta_log/*.json") if int(path.stem)} <= durable


@pytest.mark.parametrize("name", ["../outside.parquet", "/etc/passwd", "day=2024-03-04/../../x.parquet", "s3://b/x"])
def test_names_that_leave_the_lake_are_refused(first: Path, tmp_path: Path, name: str) -> None:
    lake = Path(shutil.copytree(first, tmp_path / "lake"))
    (path,) = active_files(lake, "accounting")
    rows = pq.ParquetFile(path).read().to_pylist()
    rows[0]["files"] = [f"topology/{name}"]
    pq.write_table(pa.Table.from_pylist(rows, schema=ACCOUNTING), path)
    shutil.rmtree(lake / "topology" / "_delta_log")
    message = "is not the name of a file of topology"
    for act in (settled, lambda lake: list(lakes.batches(lake, "topology"))):
        with pytest.raises(LakeError, match=message):
            act(lake)
    assert any(message in problem for problem in lakes.check(lake))


@pytest.mark.parametrize(("content", "found"), [(None, "is missing"), (b"", "is not as the run that")])
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
    assert not (lake / "faults" / "_delta_log").exists()


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
