"""Deleted rows of a lake: they are gone, and stay gone."""

from __future__ import annotations

import contextlib
import datetime
import math
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from msmqwire import cli
from msmqwire.insight.sql import SqlError
from msmqwire.spark import lake as lakes
from msmqwire.spark import pipeline
from msmqwire.spark.lake import LakeError
from msmqwire.spark.lake.committing import Lake
from msmqwire.spark.lake.deleting import _Condition
from msmqwire.spark.lake.schemas import file_schema
from msmqwire.spark.lake.storage import Storage
from tests.spark.lake_runs import (
    PROCESSES,
    Captures,
    Stopped,
    contents,
    expected,
    in_processes,
    merge,
    run,
    stop,
    stopped_at,
)
from tests.spark.tasks import TASKS

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
FIRST = {"a": 3, "b": 5, "c": 1}
GROWN = {"a": 9, "b": 5, "c": 1, "d": 4}
# What these runs give the sender of frame 1
HOST = "10.0.0.1"
# Of a run of a deletion
MOST_STEPS = 400


@pytest.fixture
def root(first: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(first, tmp_path / "lake"))


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("first") / "lake"
    run(root, FIRST)
    return root


def left(captures: Captures, *frames: int) -> dict[str, Counter[tuple[Any, ...]]]:
    """The rows of captures without some frames."""
    rows = expected(captures)
    rows["topology"] = Counter({row: count for row, count in rows["topology"].items() if row[1] not in frames})
    return rows


def read(root: Path, table: str = "topology", **options: Any) -> Counter[tuple[Any, ...]]:
    """The rows of a lake as its readers find them."""
    return Counter(
        (row["file"], row["frame"])
        for batch in lakes.batches(root, table, ["file", "frame"], **options)
        for row in batch.to_pylist()
    )


def test_deleted_rows_stay_deleted(root: Path) -> None:
    assert lakes.delete(root, addresses=[HOST], dry_run=True)["topology"] == 2
    assert contents(root) == expected(FIRST)
    assert lakes.delete(root, addresses=[HOST])["topology"] == 2
    assert contents(root) == left(FIRST, 1)
    assert lakes.check(root) == []
    (deletion, _) = lakes.history(root)
    assert (deletion.number, deletion.captures, deletion.rows, deletion.deleted) == (2, 0, 0, 2)
    assert lakes.delete(root, addresses=[HOST])["topology"] == 0
    assert lakes.history(root)[0].number == 2
    assert read(root, run=1) == expected(FIRST)["topology"]
    run(root, GROWN)
    # Capture d is new, and the other frames of capture a
    assert contents(root)["topology"] == left(GROWN, 1)["topology"] + Counter({("d", 1): 1})
    deleted = [dict(row["deleted"]) for row in rows(root, "accounting") if row["deleted"]]
    assert sum(row.get("topology", 0) for row in deleted) == 2
    assert lakes.repair(root) == lakes.check(root) == []


def rows(root: Path, table: str) -> list[dict[str, Any]]:
    return [row for batch in lakes.batches(root, table) for row in batch.to_pylist()]


def place_of(row: dict[str, Any]) -> tuple[Any, ...]:
    return row["capture"], row["frame"], row["stream_offset"]


def test_conditions(root: Path) -> None:
    days = expected(FIRST)
    assert lakes.delete(root, before=datetime.date(2024, 3, 5), captures=["b"])["topology"] == 3
    assert lakes.delete(root, where="frame >= 4 OR file = 'c'") == {
        "messages": 0, "topology": 1, "notifications": 0, "sessions": 0, "faults": 1,
    }  # fmt: skip
    assert read(root) == days["topology"] - Counter([("b", 0), ("b", 2), ("b", 4), ("c", 0)])
    (capture,) = {row["capture"] for row in rows(root, "topology") if row["file"] == "a"}
    assert lakes.delete(root, captures=[capture])["topology"] == 3
    assert lakes.check(root) == []


def test_conditions_compare_names_without_case() -> None:
    guid = "ABCDEF01-0000-4000-8000-000000000000"
    schema = file_schema("messages")
    rows = [{"destination_queue": "DIRECT=OS:Beta\\q", "source_queue_manager": guid.lower(), "label": "Order"}]
    (batch,) = pa.Table.from_pylist([{**dict.fromkeys(schema.names), **row} for row in rows], schema).to_batches()
    for where, found in (
        ("destination_queue = 'direct=os:beta\\Q'", True), (f"source_queue_manager = '{guid}'", True),
        ("label = 'order'", False), ("time - sent_time > INTERVAL 1 SECOND", False),
    ):  # fmt: skip
        condition = _Condition(where)
        assert condition.binds("messages")
        assert condition.mask(batch).to_pylist() == [found]


@pytest.mark.parametrize(
    ("conditions", "message"),
    [
        ({}, "name at least one"),
        ({"captures": ["e"]}, "has no capture e"),
        ({"where": "nowhere = 1"}, "nowhere"),
        ({"where": "frame"}, "is not a condition"),
        ({"where": "frame = 1) FROM batch --"}, "where: "),
        ({"where": "frame IN (SELECT frame FROM read_csv('/etc/passwd'))"}, "where: "),
        ({"addresses": ["10.0.0.300"]}, "10.0.0.300"),
    ],
)
def test_what_is_refused(root: Path, conditions: dict[str, Any], message: str) -> None:
    with pytest.raises((LakeError, SqlError, ValueError), match=message):
        lakes.delete(root, **conditions)
    assert contents(root) == expected(FIRST)


@pytest.mark.long
def test_a_deletion_that_is_stopped_in_any_step(first: Path, tmp_path: Path) -> None:
    """It happened or it did not; readers see its result, and what comes next completes it."""
    found = set()
    for step in range(MOST_STEPS):
        root = Path(shutil.copytree(first, tmp_path / str(step)))
        try:
            with stopped_at(step, stop):
                lakes.delete(root, addresses=[HOST])
        except Stopped:
            pass
        else:
            assert contents(root) == left(FIRST, 1)
            break
        number = lakes.history(root)[0].number
        found.add(number)
        state = expected(FIRST) if number == 1 else left(FIRST, 1)
        assert read(root) == state["topology"], step
        assert lakes.check(root) == [], step
        if step % 2:
            run(root, GROWN)
            again = {("d", 1): 1} if number > 1 else {("d", 1): 1, ("a", 1): 1, ("b", 1): 1}
            assert contents(root)["topology"] == left(GROWN, 1)["topology"] + Counter(again), step
        else:
            lakes.delete(root, addresses=[HOST])
            assert contents(root) == left(FIRST, 1), step
        assert lakes.check(root) == [], step
        shutil.rmtree(root)
    assert found == {1, 2}


@contextlib.contextmanager
def power(root: Path) -> Iterator[Callable[[], list[Path]]]:
    """The files of a lake that a power failure would lose: they, or their names, are not synchronised with the disk."""
    safe = {path for path in root.rglob("*") if path.is_file()}
    written: set[Path] = set()

    def fsync(descriptor: int) -> None:
        path = Path(os.readlink(f"/proc/self/fd/{descriptor}"))
        if path.is_dir():
            safe.update(written.intersection(path.iterdir()))
        else:
            written.add(path)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", fsync)
        yield lambda: sorted(path for path in root.rglob("*") if path.is_file() and path not in safe)


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("torn", [False, True])
def test_a_deletion_that_a_power_failure_ends(first: Path, tmp_path: Path, torn: bool) -> None:
    """What was not synchronised in the step is gone, or half of it is: no row is lost, none comes back."""
    found: Counter[int] = Counter()
    spoilt = 0
    for step in range(MOST_STEPS):
        root = Path(shutil.copytree(first, tmp_path / str(step))).resolve()
        stopped = False
        with power(root) as lost:
            try:
                with stopped_at(step, stop):
                    lakes.delete(root, addresses=[HOST])
            except Stopped:
                stopped = True
            for path in lost():
                data = path.read_bytes()
                path.unlink()
                if torn:
                    path.write_bytes(data[: len(data) // 2])
                if torn and path.parent.name == "_delta_log":
                    # Delta's to mend: the line names the entry, without which the log is as before
                    assert any(path.name in problem for problem in lakes.check(root)), step
                    spoilt += 1
                    path.unlink()
        number = lakes.history(root)[0].number
        found[number] += 1
        assert read(root) == (expected(FIRST) if number == 1 else left(FIRST, 1))["topology"], step
        assert lakes.check(root) == [], step
        lakes.delete(root, addresses=[HOST])
        assert contents(root) == left(FIRST, 1), step
        assert lakes.check(root) == [], step
        shutil.rmtree(root)
        if not stopped:
            break
    assert not stopped
    assert min(found[1], found[2]) > 5
    assert (spoilt > 0) == torn


@pytest.mark.long
@pytest.mark.timeout(900)
def test_the_command_is_killed(first: Path, tmp_path: Path) -> None:
    """At moments over all of its time: it happened or it did not, and what comes next completes it."""
    command = [sys.executable, "-m", "msmqwire", "lake", "delete", "--address", HOST, "--yes"]
    random = Random(1)
    duration = math.inf
    codes: Counter[int] = Counter()
    for number in range(24):
        root = Path(shutil.copytree(first, tmp_path / str(number)))
        started = time.monotonic()
        process = subprocess.Popen([*command, str(root)], cwd=ROOT, stdout=subprocess.DEVNULL)
        # The first is left to its end, the second is killed at once; others import most of their time
        delay = None if number == 0 else 0 if number == 1 else duration * (0.5 + 0.6 * random.random())
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(delay)
        process.kill()
        codes[code := process.wait()] += 1
        if code == 0:
            duration = min(duration, time.monotonic() - started)
        is_done = lakes.history(root)[0].number == 2
        assert read(root) == (left(FIRST, 1) if is_done else expected(FIRST))["topology"]
        assert lakes.check(root) == []
        assert lakes.delete(root, addresses=[HOST])["topology"] == (0 if is_done else 2)
        assert contents(root) == left(FIRST, 1)
        assert lakes.check(root) == []
        shutil.rmtree(root)
    assert codes.keys() == {0, -signal.SIGKILL}


def delete_on_full_disks(first: str, disk: str) -> None:
    """Delete rows of a lake on a file system with so much space left, from none to enough."""
    failed = 0
    for space in range(0, 1 << 20, 4096):
        root, filler = Path(disk, "lake"), Path(disk, "filler")
        shutil.copytree(first, root)
        left_over = shutil.disk_usage(disk).free
        filler.write_bytes(bytes(max(0, left_over - space)))
        try:
            lakes.delete(root, addresses=[HOST])
        except (OSError, LakeError, DeltaError) as error:
            if "space" not in str(error):
                raise
            failed += 1
            is_full = True
        else:
            is_full = False
        filler.unlink()
        is_done = lakes.history(root)[0].number == 2
        assert read(root) == (left(FIRST, 1) if is_done else expected(FIRST))["topology"], space
        assert lakes.check(root) == [], space
        lakes.delete(root, addresses=[HOST])
        assert contents(root) == left(FIRST, 1), space
        assert lakes.check(root) == [], space
        shutil.rmtree(root)
        if not is_full:
            print(failed, "full disks")
            return


@pytest.mark.long
@pytest.mark.timeout(900)
def test_a_deletion_on_a_full_disk(first: Path, tmp_path: Path) -> None:
    """On a file system of its own, where the machine lets us mount one."""
    program = "import sys; from tests.spark.test_lake_deletion import delete_on_full_disks as run; run(*sys.argv[1:])"
    script = f'mount -t tmpfs -o size=4m none "$3" || exit 77; exec "$1" -c "{program}" "$2" "$3"'
    (tmp_path / "disk").mkdir()
    done = subprocess.run(
        ["unshare", "--mount", "--map-root-user", "sh", "-c", script, "sh", sys.executable, first, tmp_path / "disk"],
        capture_output=True, cwd=ROOT, text=True, timeout=600,
    )  # fmt: skip
    if done.returncode == 77 or "unshare" in done.stderr:
        pytest.skip("no file system can be mounted here")
    assert done.returncode == 0, done.stderr
    assert int(done.stdout.split()[0]) > 5


def delete_and_grow(root: str) -> None:
    for frame in range(4, 9):
        lakes.delete(root, where=f"frame = {frame}")


@pytest.mark.long
@pytest.mark.usefixtures("no_sync")
@pytest.mark.parametrize("seed", range(4))
def test_deletions_beside_runs_merges_and_readers(tmp_path: Path, seed: int) -> None:
    root, over = tmp_path / "lake", tmp_path / "over"
    start = {f"{name}": 9 for name in range(6)}
    run(root, start)
    reader = PROCESSES.Process(target=read_until, args=(str(root), str(over)))
    reader.start()
    codes = in_processes(
        (delete_and_grow, (str(root),)),
        (run, (str(root), {**start, "0": 12 + seed, "x": 9})),
        (run, (str(root), {**start, "1": 11, "y": 9})),
        (merge, (str(root),)),
        (merge, (str(root),)),
    )
    over.touch()
    reader.join()
    assert codes == 5 * [0]
    assert reader.exitcode == 0
    found = contents(root)["topology"]
    assert set(found.values()) == {1}
    for name in start:
        assert not {(name, frame) for frame in range(4, 9)} & found.keys()
        assert {(name, frame) for frame in range(4)} <= found.keys()
    assert {("0", frame) for frame in range(9, 12 + seed)} <= found.keys()
    assert lakes.check(root) == []


def read_until(root: str, over: str) -> None:
    """Read the lake until a file appears: no row is there twice."""
    while not Path(over).exists():
        assert set(read(Path(root)).values()) == {1}


def test_captures_that_are_decoded_again(tmp_path: Path) -> None:
    """Neither another run, nor ``overwrite``, growth, other tables or ``repair`` bring rows back."""
    source, root = tmp_path / "growing.pcap", tmp_path / "lake"
    data = (EXAMPLES / "local-site.pcap").read_bytes()
    source.write_bytes(data)
    pipeline.run(TASKS, source, root, tables=["topology"])
    before = read(root)
    (host, _) = sorted({row["src"] for row in rows(root, "topology")})[:2]
    gone = {(row["file"], row["frame"]) for row in rows(root, "topology") if host in (row["src"], row["dst"])}
    assert gone
    assert lakes.delete(root, addresses=[host])["topology"] == len(gone)
    kept = Counter({row: count for row, count in before.items() if row not in gone})
    for options in ({"tables": ["topology"]}, {"tables": ["topology"], "overwrite": True}, {}, {"overwrite": True}):
        pipeline.run(TASKS, source, root, **options)
        assert read(root) == kept
        assert lakes.check(root) == lakes.repair(root) == []
    copy = tmp_path / "copy.pcap"
    copy.write_bytes(data)
    pipeline.run(TASKS, [source, copy], root)
    source.write_bytes(data + data[24:])
    pipeline.run(TASKS, [source, copy], root)
    frames = max(frame for _, frame in before)
    again = Counter({(name, frame + frames): count for (name, frame), count in before.items()})
    assert read(root) == kept + again
    assert lakes.check(root) == []


def test_a_deleted_capture_does_not_come_back_with_other_tables(tmp_path: Path) -> None:
    root = tmp_path / "lake"
    pipeline.run(TASKS, EXAMPLES / "message-session.pcap", root, tables=["messages"])
    assert lakes.delete(root, captures=[str(EXAMPLES / "message-session.pcap")])["messages"] == 5
    summary = pipeline.run(TASKS, EXAMPLES / "message-session.pcap", root)
    assert summary.sources == 1
    assert not any(rows(root, table) for table in ("messages", "sessions", "notifications", "topology", "faults"))
    assert lakes.check(root) == []


def test_changes_and_faults_go_with_their_message(tmp_path: Path) -> None:
    root = tmp_path / "lake"
    pipeline.run(TASKS, sorted(EXAMPLES.glob("*.pcap*")), root)
    (message, *_) = [row for row in rows(root, "messages") if row["notification"]]
    place = place_of(message)
    changes = [row for row in rows(root, "notifications") if place_of(row) == place]
    assert changes
    where = f"label = '' AND capture = '{place[0]}' AND frame = {place[1]} AND stream_offset = {place[2]}"
    assert lakes.delete(root, where=where)["notifications"] == len(changes)
    assert place not in map(place_of, rows(root, "notifications"))
    assert lakes.check(root) == []


def test_the_command(root: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert cli.main(["lake", "delete", str(root), "--address", HOST, "--dry-run"]) == 0
    assert "topology: 2 rows" in capsys.readouterr().out
    assert contents(root) == expected(FIRST)
    assert cli.main(["lake", "delete", str(root), "--address", HOST]) == 1
    assert "give --yes" in capsys.readouterr().err
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    for answer in ("n", ""):
        monkeypatch.setattr("builtins.input", lambda _, answer=answer: answer)
        assert cli.main(["lake", "delete", str(root), "--address", HOST]) == 1
    assert contents(root) == expected(FIRST)
    assert cli.main(["lake", "delete", str(root), "--address", HOST, "--yes"]) == 0
    assert "vacuum" in capsys.readouterr().err
    assert contents(root) == left(FIRST, 1)
    assert cli.main(["lake", "delete", str(root), "--yes"]) == 1
    assert cli.main(["lake", "delete", str(root), "--where", "nowhere = 1", "--yes"]) == 1
    assert "nowhere" in capsys.readouterr().err


def test_retention(root: Path) -> None:
    pipeline.run(TASKS, EXAMPLES / "local-site.pcap", root, retention_days=36_500)
    assert contents(root)["topology"] > expected(FIRST)["topology"]
    summary = pipeline.run(TASKS, EXAMPLES / "local-site.pcap", root, retention_days=30)
    assert summary.deleted["topology"] == expected(FIRST)["topology"].total() + 4
    assert not read(root)
    assert pipeline.run(TASKS, EXAMPLES / "local-site.pcap", root, overwrite=True).sources == 1
    assert not read(root)
    assert lakes.check(root) == []
    assert Lake(Storage.of(root)).run == DeltaTable(root / "topology").transaction_version("msmqwire")
