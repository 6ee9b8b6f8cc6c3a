"""Damaged lakes: nothing is lost in silence, nothing whole is refused, and every message says what to do."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from msmqwire import cli
from msmqwire.spark import lake as lakes
from msmqwire.spark.lake import LakeError
from msmqwire.spark.lake.commit import Lake
from msmqwire.spark.lake.storage import Storage
from tests.effort import long_cases
from tests.spark.lake_damage import IN_FILE, IN_LOG, active, delete_by_vector, entries, flip, lose_plans, spoil
from tests.spark.lake_runs import Stopped, contents, expected, run, stop, stopped_at

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


def test_lost_entries_of_accounting_are_noticed(root: Path) -> None:
    """Without them a run would have the number of a run whose files the tables have, and its own were left out."""
    entries(root, "accounting")[-1].unlink()
    message = "ends with run 1, but topology with run 2: entries of its log are lost; run msmqwire lake repair"
    for _ in range(2):
        with pytest.raises(LakeError, match=message):
            run(root, {**SECOND, "e": 4})
    assert [problem for problem in lakes.check(root) if message in problem]


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("how", ["empty", "gone", *long_cases(["cut", "garbled"])])
@pytest.mark.parametrize("at", [-1, -2])
def test_a_log_that_cannot_be_read(
    root: Path, table: str, how: str, at: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line names the table and says what to do, and the check goes on to the other tables."""
    if (how, at) == ("gone", -1):
        pytest.skip("a log without its last entry is a log: see above")
    spoil(entries(root, table)[at], how)
    wanted = (
        re.escape(f"{root}/{table}: its log cannot be read: ") + ".*" + re.escape(f"; run msmqwire lake repair {root}")
    )
    with pytest.raises(LakeError) as caught:
        run(root, {**SECOND, "e": 4})
    assert re.fullmatch(wanted, str(caught.value))
    assert cli.main(["lake", "history", str(root)]) == 1
    assert re.fullmatch(f"msmqwire: {wanted}\n", capsys.readouterr().err)
    other = "topology" if table == "faults" else "faults"
    broken = active(root, other)[0]
    broken.write_bytes(bytes(broken.stat().st_size))
    assert cli.main(["lake", "check", str(root)]) == 2
    out = capsys.readouterr().out
    assert re.search(f"^{wanted}$", out, re.MULTILINE)
    assert f"{broken.relative_to(root)}: cannot be read: " in out


def test_plans_are_not_needed_when_every_table_is_complete(root: Path) -> None:
    lose_plans(root)
    assert lakes.check(root) == []
    lose_plans(root)
    assert [one.number for one in lakes.history(root)] == [2, 1]
    lose_plans(root)
    run(root, {**SECOND, "a": 4})
    assert contents(root) == expected({**SECOND, "a": 4})


@pytest.mark.long
def test_a_plan_that_a_table_needs_is_missed(two_runs: Path, tmp_path: Path) -> None:
    """The tables of a run that was killed lack its rows."""
    seen = False
    for step in range(200):
        root = Path(shutil.copytree(two_runs, tmp_path / str(step)))
        try:
            with stopped_at(step, stop):
                run(root, {**SECOND, "e": 4})
        except Stopped:
            pass
        else:
            break
        before = contents(root)
        lose_plans(root)
        if before["accounting"].total() == len(SECOND) + 1 and before["topology"] == expected(SECOND)["topology"]:
            seen = True
            with pytest.raises(
                LakeError, match=r"is missing, and topology: 0 rows of capture .*; run msmqwire lake repair"
            ):
                run(root, {**SECOND, "e": 4})
        elif before in (expected(SECOND), expected({**SECOND, "e": 4})):
            run(root, {**SECOND, "e": 4})
            assert contents(root) == expected({**SECOND, "e": 4})
        shutil.rmtree(root)
    assert seen


@pytest.mark.parametrize("table", TABLES)
def test_damaged_files_are_named(root: Path, table: str) -> None:
    """One is missing, one is no Parquet file, in one a bit has changed; the check goes on after each."""
    run(root, {**SECOND, "e": 3}, share=1)
    files = active(root, table)[:3]
    flip(files[0])
    files[1].write_bytes(b"x" * files[1].stat().st_size)
    files[2].unlink()
    problems = lakes.check(root)
    for file, what in zip(files, ("cannot be read: ", "cannot be read: ", "is missing"), strict=True):
        assert any(f"{file.relative_to(root)}: {what}" in problem for problem in problems)
    assert all("\n" not in problem for problem in problems)


@pytest.mark.long
@pytest.mark.parametrize("table", ["topology", "accounting"])
def test_every_changed_byte_is_seen(root: Path, table: str) -> None:
    """Of pages, their headers and the footer; and in a file that was merged."""
    Lake(Storage.of(root)).table(table).merge()
    path = active(root, table)[0]
    data = path.read_bytes()
    for at in [*range(0, len(data), 397), *range(len(data) - 8, len(data))]:
        path.write_bytes(data[:at] + bytes([data[at] ^ 1 << at % 8]) + data[at + 1 :])
        assert any(path.name in problem for problem in lakes.check(root)), at
    path.write_bytes(data)
    assert lakes.check(root) == []


def test_a_merge_does_not_spread_damage(root: Path) -> None:
    """A changed byte is not written again with a new checksum."""
    flip(active(root, "topology")[0])
    with pytest.raises(LakeError, match=r"cannot be read: .*; run msmqwire lake repair"):
        Lake(Storage.of(root)).table("topology").merge()


@pytest.mark.parametrize("vector", [IN_LOG, IN_FILE])
def test_rows_that_another_program_has_deleted_are_not_read(
    tmp_path: Path, vector: dict[str, object], capsys: pytest.CaptureFixture[str]
) -> None:
    """They stay in the files, so that a reader without deletion vectors has them, and a merge adds them again."""
    root = tmp_path / "lake"
    run(root, {"a": 6})
    delete_by_vector(root, "topology", None)
    assert lakes.check(root) == []
    delete_by_vector(root, "topology", vector)
    message = re.escape(f"{root}/topology: another program has deleted rows of it by deletion vectors, which ")
    before = sorted(root.rglob("*"))
    for use in (lakes.check, lakes.repair, lakes.optimize, lakes.vacuum):
        if use is lakes.check:
            assert [problem for problem in use(root) if re.match(message, problem)]
        else:
            with pytest.raises(LakeError, match=message):
                use(root)
    for version in (None, 1):
        with pytest.raises(LakeError, match=message):
            list(lakes.batches(root, "topology", ["frame"], run=version))
    assert sorted(root.rglob("*")) == before
    assert cli.main(["summary", "--lake", str(root)]) == 1
    assert re.search(message, capsys.readouterr().err)
