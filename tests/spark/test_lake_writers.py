"""Lakes whose tables other writers have changed: readers read what the tables say, and nothing comes back by itself."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, Field, write_deltalake
from deltalake.schema import PrimitiveType

from msmqwire import cli
from msmqwire.spark import lake as lakes
from msmqwire.spark import pipeline
from msmqwire.spark.lake import LakeError
from msmqwire.spark.lake.committing import Lake
from msmqwire.spark.lake.storage import Storage
from tests.spark.lake_damage import active
from tests.spark.lake_runs import Stopped, contents, decoded, expected, merge, relate, run, stop, stopped_at
from tests.spark.tasks import TASKS

EXAMPLES = Path(__file__).parents[2] / "examples"
FIRST = {"a": 3, "b": 5, "c": 1}
SECOND = {**FIRST, "b": 8}
THIRD = {**SECOND, "a": 9, "e": 2}
Rows = Counter[tuple[Any, ...]]


@pytest.fixture(scope="module")
def two_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("two runs") / "lake"
    for captures in (FIRST, SECOND):
        run(root, captures, share=1)
    return root


@pytest.fixture
def root(two_runs: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(two_runs, tmp_path / "lake"))


def read(root: Path) -> Rows:
    found: Rows = Counter()
    for batch in lakes.batches(root, "topology", ["file", "frame"]):
        found.update((row["file"], row["frame"]) for row in batch.to_pylist())
    return found


def without(rows: Rows, frame: int, *files: str) -> Rows:
    """Rows without a frame, of all captures or of some."""
    return Counter({row: count for row, count in rows.items() if row[1] != frame or (files and row[0] not in files)})


@pytest.mark.parametrize("merged", [False, True])
def test_rows_that_another_writer_deletes(root: Path, capsys: pytest.CaptureFixture[str], merged: bool) -> None:
    if merged:
        merge(str(root))
    DeltaTable(root / "topology").delete("frame = 1")
    version = DeltaTable(root / "topology").version()
    assert read(root) == without(expected(SECOND)["topology"], 1)
    assert cli.main(["lake", "check", str(root)]) == 0
    line = f"topology: 2 rows were deleted by another writer in version {version} (DELETE)"
    assert capsys.readouterr().out == line + "\n"
    assert lakes.repair(root, dry_run=True) == []
    run(root, THIRD)
    # Frames that captures a and e did not have are new
    kept = without(expected(THIRD)["topology"], 1, "a", "b")
    assert read(root) == contents(root)["topology"] == kept
    assert lakes.repair(root) == lakes.check(root) == []
    # It is noted: the log is not needed any more
    lakes.optimize(root)
    lakes.vacuum(root, hours=0)
    assert lakes.check(root) == []
    run(root, {**THIRD, "b": 9})
    assert read(root) == kept + Counter([("b", 8)])
    assert lakes.check(root) == []


def test_a_deletion_is_noted_before_its_files_are_deleted(root: Path) -> None:
    DeltaTable(root / "topology").delete("frame = 1")
    lakes.vacuum(root, hours=0)
    assert lakes.check(root) == []
    run(root, THIRD)
    assert read(root) == without(expected(THIRD)["topology"], 1, "a", "b")


@pytest.mark.parametrize("lost", [False, True])
def test_a_deletion_whose_files_are_gone(root: Path, capsys: pytest.CaptureFixture[str], lost: bool) -> None:
    """Another writer has vacuumed before a run noted it: the log has the number of the rows, and not which they are."""
    DeltaTable(root / "topology").delete("frame = 1")
    version = DeltaTable(root / "topology").version()
    DeltaTable(root / "topology").vacuum(0, dry_run=False, enforce_retention_duration=False)
    said = without(expected(SECOND)["topology"], 1)
    assert read(root) == said
    if lost:
        forget(root, "c")
    for _ in range(2):
        assert cli.main(["lake", "check", str(root)]) == (2 if lost else 0)
        line = f"topology: 2 rows were deleted by another writer in version {version} (DELETE)"
        assert capsys.readouterr().out.splitlines()[0] == line
        # Nothing tells the rows that were lost from those that were deleted
        problems = [f"topology: {said} rows of capture" for said in (0, 2, 7)] if lost else []
        assert [problem[: len("topology: 0 rows of capture")] for problem in sorted(lakes.check(root))] == problems
        # The first run notes it
        run(root, {**SECOND, "e": 2})
    if lost:
        return
    assert read(root) == said + Counter({("e", 0): 1, ("e", 1): 1})
    (account,) = (row for batch in lakes.batches(root, "accounting", captures=["b"]) for row in batch.to_pylist())
    assert dict(account["deleted"])["topology"] == 1
    assert lakes.repair(root) == []
    # It accounts for no rows that are lost later
    forget(root, "c")
    assert lakes.check(root) == ["topology: 0 rows of capture c of 1, but 1 in accounting"]


def test_rows_of_a_vacuumed_deletion_do_not_come_back(tmp_path: Path) -> None:
    """Not when their capture is decoded again, nor when it grows; its new frames do come."""
    source, root = tmp_path / "growing.pcap", tmp_path / "lake"
    data = (EXAMPLES / "local-site.pcap").read_bytes()
    source.write_bytes(data)
    pipeline.run(TASKS, source, root)
    before = read(root)
    frame = min(frame for _, frame in before)
    kept = without(before, frame)
    DeltaTable(root / "topology").delete(f"frame = {frame}")
    DeltaTable(root / "topology").vacuum(0, dry_run=False, enforce_retention_duration=False)
    for overwrite in (False, True, True):
        pipeline.run(TASKS, source, root, overwrite=overwrite)
        assert read(root) == kept
        assert lakes.check(root) == []
    second = max(frame for _, frame in kept)
    assert lakes.delete(root, where=f"frame = {second}")["topology"] == 1
    source.write_bytes(data + data[24:])
    pipeline.run(TASKS, source, root)
    frames = next(lakes.batches(root, "accounting", ["frames"]))["frames"][0].as_py() // 2
    again = Counter({(name, number + frames): count for (name, number), count in before.items()})
    assert read(root) == without(kept, second) + again
    assert lakes.check(root) == []


def forget(root: Path, capture: str) -> None:
    """Remove the first file of a capture from the log, as no writer does."""
    table = root / "topology"
    lost = next(path for path in active(root, "topology") if pq.read_table(path)["file"].to_pylist()[0] == capture)
    log = sorted((table / "_delta_log").glob("*.json"))[-1]
    remove = {"path": str(lost.relative_to(table)), "dataChange": False, "deletionTimestamp": 0}
    log.write_text(f"{log.read_text().rstrip()}\n{json.dumps({'remove': remove})}\n")


def test_lost_rows_are_no_deletion(root: Path) -> None:
    """What no commit of another writer accounts for is a problem, and none of it is noted."""
    DeltaTable(root / "topology").delete("file = 'a'")
    forget(root, "c")
    assert cli.main(["lake", "check", str(root)]) == 2
    (problem,) = lakes.check(root)
    assert problem == "topology: 0 rows of capture c of 1, but 1 in accounting"
    run(root, {**SECOND, "e": 1})
    assert lakes.check(root) == [problem]
    assert len(lakes.repair(root)) == 1
    run(root, {**SECOND, "e": 1})
    assert lakes.check(root) == []
    assert read(root) == Counter({row: 1 for row in expected({**SECOND, "e": 1})["topology"] if row[0] != "a"})


def test_changed_rows(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    DeltaTable(root / "topology").update(updates={"src": "'192.0.2.1'"}, predicate="frame = 1")
    assert cli.main(["lake", "check", str(root)]) == 0
    assert "topology: rows were changed by another writer in version " in capsys.readouterr().out
    run(root, {**SECOND, "e": 2})
    assert read(root) == expected({**SECOND, "e": 2})["topology"]
    changed = [row for batch in lakes.batches(root, "topology", addresses=["192.0.2.1"]) for row in batch.to_pylist()]
    assert {row["file"] for row in changed} == {"a", "b"}


def test_a_table_that_another_writer_restores(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It has what capture b had before it grew; no run brings the rows back that were there after that."""
    version = max(
        entry["version"] for entry in DeltaTable(root / "topology").history() if entry.get("msmqwire.run") == "1"
    )
    DeltaTable(root / "topology").restore(version)
    assert cli.main(["lake", "check", str(root)]) == 0
    line = f"8 rows were deleted and 5 rows were added by another writer in version {version + 2} (RESTORE)"
    assert line in capsys.readouterr().out
    assert read(root) == expected(FIRST)["topology"]
    run(root, {**SECOND, "e": 2})
    assert read(root) == expected({**FIRST, "e": 2})["topology"]
    assert lakes.check(root) == []


def test_rows_that_come_back_with_a_restored_table(root: Path) -> None:
    before = DeltaTable(root / "topology").version()
    lakes.delete(root, where="frame = 1")
    DeltaTable(root / "topology").restore(before)
    assert lakes.check(root) == []
    assert any("(RESTORE)" in act for act in lakes.acts(root))
    assert read(root) == expected(SECOND)["topology"]
    assert lakes.delete(root, where="frame = 1")["topology"] == 2
    assert lakes.check(root) == []
    assert read(root) == without(expected(SECOND)["topology"], 1)


def test_rows_that_another_writer_adds(root: Path) -> None:
    (batch, *_) = lakes.batches(root, "topology", captures=["c"])
    rows = pa.Table.from_batches([batch]).set_column(0, "capture", pa.array(["theirs"] * len(batch)))
    write_deltalake(root / "topology", rows, mode="append")
    assert lakes.check(root) == []
    assert any("1 row was added by another writer" in act for act in lakes.acts(root))
    run(root, THIRD)
    assert read(root) == expected(THIRD)["topology"] + Counter([("c", 0)])


def clean_up(table: DeltaTable) -> None:
    table.create_checkpoint()
    table.alter.set_table_properties({"delta.logRetentionDuration": "interval 0 seconds"})
    table.cleanup_metadata()


CHANGES: dict[str, Callable[[DeltaTable], object]] = {
    "add column": lambda table: table.alter.add_columns([Field("note", PrimitiveType("string"))]),
    "properties": lambda table: table.alter.set_table_properties({"delta.enableChangeDataFeed": "true"}),
    "z-order": lambda table: table.optimize.z_order(["file"]),
    "checkpoint": DeltaTable.create_checkpoint,
    "clean-up": clean_up,
    "vacuum": lambda table: (
        table.optimize.compact(),
        table.vacuum(0, dry_run=False, enforce_retention_duration=False),
    ),
}


@pytest.mark.parametrize("name", ["topology", "accounting"])
@pytest.mark.parametrize("change", CHANGES)
def test_changes_that_concern_no_row(root: Path, change: str, name: str) -> None:
    """Also beside a run that read the table before; runs, merges, deletions and readers go on."""
    lake = Lake(Storage.of(root))
    lake.apply_committed_runs()
    # A vacuum of another writer deletes files of a run under way
    group = None if change == "vacuum" else decoded(lake, {"f": 3})
    CHANGES[change](DeltaTable(root / name))
    assert lakes.check(root) == []
    assert lake.commit([group or decoded(lake, {"f": 3})], "snappy", relate) == []
    wanted = {**SECOND, "f": 3}
    assert contents(root) == expected(wanted)
    run(root, {**wanted, "a": 9})
    assert contents(root) == expected({**wanted, "a": 9})
    lakes.optimize(root)
    assert lakes.delete(root, where="frame = 0")["topology"] == 4
    assert read(root) == without(expected({**wanted, "a": 9})["topology"], 0)
    assert lakes.check(root) == lakes.acts(root) == []


def test_a_column_of_another_writer_stays(root: Path) -> None:
    DeltaTable(root / "topology").alter.add_columns([Field("note", PrimitiveType("string"))])
    DeltaTable(root / "topology").update(updates={"note": "'seen'"}, predicate="frame = 2")
    lakes.delete(root, where="frame = 1")
    run(root, {**SECOND, "e": 3})
    lakes.optimize(root)
    found = pa.concat_tables(pq.read_table(path, columns=["note", "frame"]) for path in active(root, "topology"))
    assert [row["frame"] for row in found.to_pylist() if row["note"] == "seen"] == [2, 2]


def state(root: Path, run: int | None = None) -> dict[str, Rows]:
    found = {}
    for table, names in (("topology", ("file", "frame")), ("faults", ("file",)), ("accounting", ("file", "length"))):
        rows = (row for batch in lakes.batches(root, table, names, run=run) for row in batch.to_pylist())
        found[table] = Counter(tuple(row[name] for name in names) for row in rows)
    return found


def test_a_run_is_restored_in_all_tables(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(root, {**THIRD, "b": 11})
    lakes.delete(root, where="frame = 1")
    lakes.optimize(root)
    last = lakes.history(root)[0].number
    states = {number: state(root, number) for number in range(1, last + 1)}
    for number in (2, last, 1, last - 1, 3):
        assert cli.main(["lake", "restore", str(root), "--run", str(number)]) == 1
        assert "give --yes" in capsys.readouterr().err
        assert cli.main(["lake", "restore", str(root), "--run", str(number), "--yes"]) == 0
        assert state(root) == states[number]
        assert contents(root) == states[number]
        assert lakes.check(root) == lakes.repair(root) == lakes.restore(root, number) == []
    run(root, {**THIRD, "b": 12})
    assert state(root) == expected({**THIRD, "b": 12})
    assert cli.main(["lake", "restore", str(root), "--run", "99"]) == 1
    lakes.vacuum(root, hours=0)
    with pytest.raises(LakeError, match=r"is gone|reach back"):
        lakes.restore(root, 1)


@pytest.mark.long
def test_a_restore_that_is_stopped_in_any_step(root: Path, tmp_path: Path) -> None:
    run(root, {**THIRD, "b": 11})
    found = set()
    for step in range(400):
        trial = Path(shutil.copytree(root, tmp_path / str(step)))
        try:
            with stopped_at(step, stop):
                lakes.restore(trial, 2)
        except Stopped:
            pass
        else:
            break
        restored = state(trial) == expected(SECOND)
        assert restored or state(trial) == expected({**THIRD, "b": 11}), step
        found.add(restored)
        assert lakes.check(trial) == [], step
        lakes.restore(trial, 2)
        assert contents(trial) == expected(SECOND), step
        shutil.rmtree(trial)
    assert found == {True, False}


@pytest.mark.long
def test_the_feed_of_changes_nets_to_the_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Over runs with growth, merges, deletions, and an OPTIMIZE of deltalake; so does a reader of appends alone."""
    monkeypatch.setattr("msmqwire.spark.lake.committing._MERGED", {10: 1 << 20})
    root, captures = tmp_path / "lake", {"0": 3}
    run(root, captures)
    DeltaTable(root / "topology").alter.set_table_properties({"delta.enableChangeDataFeed": "true"})
    first = DeltaTable(root / "topology").version() + 1
    before = state(root)["topology"]
    for number in range(1, 61):
        captures |= {str(number): 2, str(number // 3): 3 + number}
        run(root, captures)
        if number % 9 == 4:
            lakes.delete(root, where=f"frame = {number}")
        if number % 20 == 7:
            DeltaTable(root / "topology").optimize.compact()
        if number % 25 == 11:
            lakes.optimize(root)
    net = before.copy()
    feed = pa.table(DeltaTable(root / "topology").load_cdf(starting_version=first).read_all())
    assert len(feed)
    for change in feed.select(["file", "frame", "_change_type"]).to_pylist():
        net[change["file"], change["frame"]] += {"insert": 1, "delete": -1}[change["_change_type"]]
    assert +net == state(root)["topology"]
    assert min(net.values()) == 0
    assert lakes.check(root) == []
    # A commit that only adds files has all rows of new captures, and none of any other
    appended: Rows = Counter()
    for entry in sorted((root / "topology" / "_delta_log").glob("*.json")):
        lines = [json.loads(line) for line in entry.read_text().splitlines()]
        if not any("remove" in line for line in lines):
            for line in lines:
                if "add" in line:
                    rows = pq.read_table(root / "topology" / line["add"]["path"]).select(["file", "frame"])
                    appended.update((row["file"], row["frame"]) for row in rows.to_pylist())
    assert {(str(number), frame) for number in range(1, 61) for frame in range(2)} <= appended.keys()
    assert set(appended.values()) == {1}
