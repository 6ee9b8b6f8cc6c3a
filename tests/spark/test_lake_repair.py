"""Lakes that are mended: whatever is malformed, after the next run every row is there once."""

from __future__ import annotations

import contextlib
import random
import re
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from msmqwire import cli
from msmqwire.spark import lake as lakes
from msmqwire.spark.lake import LakeError
from msmqwire.spark.lake.checksums import is_as_written
from msmqwire.spark.lake.rewriting import parquet_file
from msmqwire.spark.lake.storage import Storage
from msmqwire.spark.lake.tables import LakeTable
from tests.effort import first_of, long_cases
from tests.spark.lake_damage import active, entries, flip, lose_plans, spoil
from tests.spark.lake_runs import (
    SCHEDULES,
    Stopped,
    active_files,
    be_killed,
    contents,
    expected,
    in_processes,
    merge,
    run,
    run_and_die,
    stop,
    stopped_at,
)
from tests.spark.lakes import read

FIRST = {"a": 3, "b": 5, "c": 1}
SECOND = {**FIRST, "b": 8, "d": 2}
TABLES = ("topology", "faults", "accounting")


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


def without_accounting(found: dict[str, Any]) -> dict[str, Any]:
    return {name: rows for name, rows in found.items() if name != "accounting"}


def rows(root: Path) -> dict[str, Any]:
    return without_accounting(contents(root))


def readable(root: Path) -> dict[str, set[Any]]:
    """The rows in those files of the tables that can be read."""
    found: dict[str, set[Any]] = {}
    for table in ("topology", "faults"):
        try:
            paths = active_files(root, table)
        except (DeltaError, ValueError):
            continue
        for path in paths:
            # The checksum of the file is wrong, or it is none
            with contextlib.suppress(LakeError, FileNotFoundError):
                name = str(Path(path).relative_to(root))
                with parquet_file(Storage.of(root), name) as source:
                    if not is_as_written(Storage.of(root), name, Path(path).stat().st_size):
                        continue
                    rows = source.read(["file", "frame"]).to_pylist()
                found.setdefault(table, set()).update((row["file"], row["frame"]) for row in rows)
    return found


def repaired(root: Path) -> list[str]:
    """What a repair has done; no row is lost, and captures that lack rows are all that is left to say."""
    before = readable(root)
    done = lakes.repair(root)
    after = readable(root)
    assert all(rows <= after[table] for table, rows in before.items())
    lacking = [
        re.fullmatch(r"\w+: (\d+) rows of capture \d+, but (\d+) in accounting", one) for one in lakes.check(root)
    ]
    assert all(match and int(match[1]) < int(match[2]) for match in lacking)
    assert lakes.repair(root) == []
    return done


def mended(root: Path, wanted: dict[str, int] = SECOND) -> list[str]:
    """What a repair has done; afterwards there is nothing to do, and the next run makes every row there once."""
    done = repaired(root)
    for captures in (wanted, {**wanted, "e": 4}):
        run(root, captures)
        assert rows(root) == without_accounting(expected(captures))
    assert lakes.check(root) == []
    accounts = read(root, "accounting", ["capture", "replaces"])
    numbers = accounts["capture"].to_pylist()
    assert len(set(numbers)) == len(numbers)
    assert set(pc.list_flatten(accounts["replaces"]).to_pylist()).isdisjoint(numbers)
    return done


def test_a_sound_lake_is_left_as_it_is(root: Path) -> None:
    before = files(root)
    assert lakes.repair(root) == []
    assert files(root) == before


def double(root: Path, times: int = 2) -> None:
    """Double the rows: merges of deltalake itself that began at one version all succeed."""
    for name in ("topology", "faults"):
        for table in [DeltaTable(root / name) for _ in range(times)]:
            table.optimize.compact()


@pytest.mark.long
@pytest.mark.parametrize(
    "damage",
    [
        lambda root: spoil(entries(root, "accounting")[-1], "cut"),
        lambda root: flip(active(root, "topology")[0]),
        lose_plans,
        double,
    ],
)
def test_a_dry_run_and_a_second_repair_change_nothing(root: Path, damage: Callable[[Path], object]) -> None:
    damage(root)
    before = files(root)
    said = lakes.repair(root, dry_run=True)
    assert {path: data for path, data in files(root).items() if path in before} == before
    assert bool(said) == bool(lakes.repair(root))
    assert lakes.repair(root) == []


@pytest.mark.long
@pytest.mark.parametrize("times", [2, 3])
@pytest.mark.parametrize("again", [False, True])
def test_doubled_rows(root: Path, times: int, again: bool) -> None:
    """Once and again, and after they were merged into one file."""
    double(root, times)
    if again:
        merge(str(root))
        run(root, {"other": 3})
        double(root)
    assert contents(root)["topology"].total() > 13
    assert any(problem.startswith("topology: ") for problem in lakes.check(root))
    wanted = {**SECOND, "other": 3} if again else SECOND
    done = repaired(root)
    # Without a run, which may not find the captures any more
    assert contents(root) == expected(wanted)
    assert lakes.check(root) == []
    assert all(line.endswith("that other rows are copies of: removed") for line in done)
    mended(root, wanted)


@pytest.mark.long
def test_doubled_rows_beside_damage(root: Path) -> None:
    double(root)
    flip(active(root, "topology")[0])
    mended(root)


@pytest.mark.long
@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("how", ["empty", "cut", "garbled", "gone"])
@pytest.mark.parametrize("at", [0, 1, -2, -1])
def test_logs(root: Path, table: str, how: str, at: int) -> None:
    entry = entries(root, table)[at]
    spoil(entry, how)
    done = mended(root)
    assert any(line.startswith(f"{table}/_delta_log/{entry.name}: cannot be read") for line in done) or (
        (how, at) == ("gone", -1)
    )


@pytest.mark.long
@pytest.mark.parametrize("table", TABLES)
def test_a_log_with_a_checkpoint(root: Path, table: str) -> None:
    delta = DeltaTable(root / table)
    delta.create_checkpoint()
    wanted = {**SECOND, "more": 1}
    run(root, wanted)
    (checkpoint,) = (root / table / "_delta_log").glob("*.checkpoint.parquet")
    checkpoint.write_bytes(b"PAR1")
    mended(root, wanted)
    wanted["e"] = 4
    DeltaTable(root / table).create_checkpoint()
    for entry in (root / table / "_delta_log").glob("*"):
        entry.write_bytes(b"?")
    # As deltalake deletes entries that a checkpoint replaces
    entries(root, table)[0].unlink()
    assert mended(root, wanted)


@pytest.mark.parametrize(
    "content", [b"{}", *long_cases([b"[]", b'{"version": -100000000, "size": 1}', b"[" * 200_000])]
)
def test_a_last_checkpoint_without_a_version(root: Path, content: bytes) -> None:
    DeltaTable(root / "topology").create_checkpoint()
    before = rows(root)
    hint = root / "topology" / "_delta_log" / "_last_checkpoint"
    hint.write_bytes(content)
    assert any("topology: its log cannot be read" in problem for problem in lakes.check(root))
    assert "topology/_delta_log/_last_checkpoint: cannot be read: deleted" in lakes.repair(root)
    assert lakes.check(root) == []
    assert rows(root) == before


@pytest.mark.parametrize("content", first_of([b"", None]))
@pytest.mark.parametrize("table", first_of(TABLES))
def test_a_last_checkpoint_of_a_log_that_was_cleaned_up(root: Path, table: str, content: bytes | None) -> None:
    """The checkpoint that it names is all that the log has of its files, so that it must stay."""
    DeltaTable(root / table).create_checkpoint()
    for entry in entries(root, table)[:-1]:
        entry.unlink()
    before = contents(root)
    hint = root / table / "_delta_log" / "_last_checkpoint"
    if content is None:
        hint.unlink()
    else:
        hint.write_bytes(content)
    done = [] if content is None else [f"{table}/_delta_log/_last_checkpoint: cannot be read: deleted"]
    assert bool(lakes.check(root)) == bool(done)
    assert lakes.repair(root, dry_run=True)[:1] == lakes.repair(root) == done
    assert lakes.check(root) == []
    assert contents(root) == before


@pytest.mark.long
def test_the_earlier_one_of_two_checkpoints_stays(root: Path) -> None:
    for captures in (SECOND, {**SECOND, "more": 1}):
        run(root, captures)
        DeltaTable(root / "topology").create_checkpoint()
    before = contents(root)
    log = root / "topology" / "_delta_log"
    earlier, last = sorted(log.glob("*.checkpoint.parquet"))
    for entry in entries(root, "topology"):
        if entry.name < earlier.name:
            entry.unlink()
    last.write_bytes(b"PAR1")
    done = [f"topology/_delta_log/{name}: cannot be read: deleted" for name in ("_last_checkpoint", last.name)]
    assert lakes.repair(root) == done
    assert contents(root) == before


@pytest.mark.long
@pytest.mark.parametrize("content", [b"[" * 200_000, b'{"a":' * 200_000])
def test_json_that_is_nested_too_deeply(root: Path, content: bytes) -> None:
    for path in (entries(root, "topology")[-1], *(root / "_runs").iterdir()):
        path.write_bytes(content)
    assert lakes.check(root)
    assert mended(root)


@pytest.mark.parametrize("table", ["topology", "accounting"])
def test_an_entry_far_after_the_others_is_deleted(root: Path, table: str) -> None:
    """The hundred million entries before it are not written."""
    before = files(root)
    (root / table / "_delta_log" / f"{10**8:020}.json").write_bytes(b"{}")
    done = [f"{table}/_delta_log/{10**8:020}.json: the entries before it are not there: deleted"]
    assert lakes.repair(root, dry_run=True)[:1] == done
    assert lakes.repair(root) == done
    assert files(root) == before


@pytest.mark.parametrize("table", first_of(["topology", "faults"]))
def test_a_lake_that_was_repaired_is_damaged_again(root: Path, table: str) -> None:
    """The plan of a repair is that of the runs before it too, and has nothing of what they wrote."""
    entries(root, "accounting")[-1].unlink()
    assert lakes.repair(root)
    for entry in entries(root, table)[1:]:
        entry.unlink()
    assert any("entries of its log are lost" in problem for problem in lakes.check(root))
    with pytest.raises(LakeError, match=rf"{table}: ends with run 0, not 2: entries of its log are lost; run msmqwire"):
        lakes.history(root)
    mended(root)


@pytest.mark.long
@pytest.mark.parametrize("table", TABLES)
def test_a_log_that_has_lost_a_merge(root: Path, table: str) -> None:
    """The files that were merged are in the table again, with rows that were replaced since; so are later files."""
    merge(str(root))
    lost = entries(root, table)[-1]
    wanted = {**SECOND, "a": 4, "more": 1}
    run(root, wanted, share=1)
    before = contents(root)
    spoil(lost, "garbled")
    done = mended(root, wanted)
    assert contents(root)["topology"] == before["topology"] + expected({"e": 4})["topology"]
    removed = [line for line in done if re.fullmatch(r"accounting: \d+ rows replaced or there twice: removed", line)]
    assert len(removed) == (table == "accounting")


@pytest.mark.long
@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("damage", [flip, Path.unlink, lambda path: path.write_bytes(b"no Parquet")])
def test_data_files(root: Path, table: str, damage: Callable[[Path], object]) -> None:
    path = active(root, table)[0]
    damage(path)
    done = mended(root)
    assert any(line.startswith(f"{path.relative_to(root)}: ") and line.endswith(": left out") for line in done)


@pytest.mark.long
def test_captures_that_are_gone_keep_what_can_be_read(root: Path) -> None:
    """Their account is restored from its file, or made from their rows."""
    before = rows(root)
    entries(root, "accounting")[-1].write_bytes(b"")
    done = lakes.repair(root)
    assert sum("its row of accounting is restored" in line for line in done) == 2
    assert rows(root) == before
    for path in (root / "accounting").glob("*.parquet"):
        path.write_bytes(b"")
    done = lakes.repair(root)
    assert sum("without accounting: kept until a run reads the file again" in line for line in done) == len(SECOND)
    assert rows(root) == before
    mended(root)


def test_plans(root: Path) -> None:
    lose_plans(root)
    mended(root)


@pytest.mark.long
def test_damage_of_a_run_that_was_killed(two_runs: Path, tmp_path: Path) -> None:
    for step in range(0, 200, 7):
        root = Path(shutil.copytree(two_runs, tmp_path / str(step)))
        try:
            with stopped_at(step, stop):
                run(root, {**SECOND, "a": 4, "e": 4})
        except Stopped:
            pass
        else:
            break
        lose_plans(root)
        repaired(root)
        run(root, {**SECOND, "a": 4, "e": 4})
        assert contents(root)["topology"] == expected({**SECOND, "a": 4, "e": 4})["topology"], step
        shutil.rmtree(root)


def damage_at_random(root: Path, seed: int) -> None:
    rng = random.Random(seed)
    for table in TABLES:
        if rng.randrange(2):
            spoil(rng.choice(entries(root, table)), rng.choice(["empty", "cut", "garbled"]))
    for path in root.rglob("*.parquet"):
        if not rng.randrange(6):
            flip(path, rng.random())
    if rng.randrange(2):
        lose_plans(root)


def repair_and_die(root: str, step: int) -> None:
    with stopped_at(step, be_killed):
        lakes.repair(root)


def repair_beside(root: str) -> None:
    lakes.repair(root)


@pytest.mark.long
@pytest.mark.parametrize("seed", [*range(SCHEDULES // 2), 35])
def test_a_repair_that_is_killed(root: Path, seed: int) -> None:
    damage_at_random(root, seed)
    for step in random.Random(seed).sample(range(20), 3):
        (code,) = in_processes((repair_and_die, (str(root), step)))
        assert code in (0, -signal.SIGKILL)
    lakes.repair(root)
    mended(root)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(SCHEDULES // 2))
def test_a_repair_beside_runs(root: Path, seed: int) -> None:
    double(root)
    rng = random.Random(seed)
    codes = in_processes(
        (repair_beside, (str(root),)),
        (run_and_die, (str(root), {**SECOND, "e": 4, "a": 5}, rng.choice([rng.randrange(60), 1000]))),
        (run_and_die, (str(root), {**SECOND, "f": 4}, 1000)),
        (repair_beside, (str(root),)),
    )
    assert [code for code in codes if code not in (0, -signal.SIGKILL)] == []
    lakes.repair(root)
    wanted = {**SECOND, "e": 4, "a": 5, "f": 4}
    run(root, wanted)
    assert contents(root)["topology"] == expected(wanted)["topology"]
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


@pytest.mark.long
def test_a_log_of_which_only_an_entry_far_on_is_left(root: Path) -> None:
    """A log may begin with any version; the hundred million before it are not looked for."""
    first, *others = entries(root, "topology")
    for entry in others:
        entry.unlink()
    first.rename(first.with_name(f"{10**8:020}.json"))
    assert lakes.check(root)


@pytest.mark.parametrize(
    ("name", "is_checkpoint"),
    [
        ("_last_checkpoint", True),
        (f"{20:020}.checkpoint.parquet", True),
        (f"{20:020}.checkpoint.{1:010}.{2:010}.parquet", True),
        (f"{20:020}.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.json", True),
        (f".{20:020}.checkpoint.parquet.crc", False),
        (f"{20:020}.checkpoint.parquet.tmp", False),
    ],
)
def test_names_of_checkpoints(tmp_path: Path, name: str, is_checkpoint: bool) -> None:
    """A table whose log was cleaned up has one of them; what another program leaves beside them makes no table."""
    log = tmp_path / "topology" / "_delta_log"
    log.mkdir(parents=True)
    (log / name).touch()
    assert LakeTable(Storage.of(tmp_path), "topology").has_log is is_checkpoint
