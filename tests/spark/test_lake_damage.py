"""Damaged lakes: nothing is lost in silence, nothing whole is refused, and every message says what to do."""

from __future__ import annotations

import re
import shutil
import socket
from collections import Counter
from contextlib import suppress
from functools import partial
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from msmqwire import cli
from msmqwire.spark import lake as lakes
from msmqwire.spark import pipeline
from msmqwire.spark.lake import LakeError
from msmqwire.spark.lake.committing import Lake
from msmqwire.spark.lake.storage import Storage
from tests.effort import first_of, long_cases
from tests.spark.captures import CAPTURES
from tests.spark.lake_damage import IN_FILE, IN_LOG, active, delete_by_vector, entries, flip, spoil
from tests.spark.lake_runs import Stopped, run, stop, stopped_at
from tests.spark.tasks import TASKS

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


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake of one run."""
    root = tmp_path_factory.mktemp("one run") / "lake"
    run(root, FIRST)
    return root


@pytest.fixture
def root(two_runs: Path, tmp_path: Path) -> Path:
    """A copy of this lake."""
    return Path(shutil.copytree(two_runs, tmp_path / "lake"))


def test_lost_entries_of_accounting_are_noticed(root: Path) -> None:
    """Without them a run would have the number of a run whose files the tables have, and its own were left out."""
    entries(root, "accounting")[-1].unlink()
    message = "ends with run 2, but topology with run 3: entries of its log are lost"
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
    """One line names the table and the file, and the check goes on to the other tables."""
    if (how, at) == ("gone", -1):
        pytest.skip("a log without its last entry is a log: see above")
    entry = entries(root, table)[at]
    spoil(entry, how)
    wanted = re.escape(f"{root}/{table}: Delta cannot read its log, {entry.name}: ") + ".*"
    with pytest.raises(LakeError) as caught:
        run(root, {**SECOND, "e": 4})
    assert re.fullmatch(wanted, str(caught.value))
    assert cli.main(["lake", "optimize", str(root)]) == 1
    assert re.fullmatch(f"msmqwire: {wanted}\n", capsys.readouterr().err)
    other = "topology" if table == "faults" else "faults"
    broken = active(root, other)[0]
    broken.write_bytes(bytes(broken.stat().st_size))
    assert cli.main(["lake", "check", str(root)]) == 2
    out = capsys.readouterr().out
    assert re.search(f"^{wanted}$", out, re.MULTILINE)
    assert f"{broken.relative_to(root)}: cannot be read: " in out


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
def test_a_changed_byte_is_seen_or_changes_no_row(root: Path, table: str) -> None:
    """Of pages, which have checksums, and their headers; also in a file that was merged."""
    Lake(Storage.of(root)).table(table).merge()
    path = active(root, table)[0]
    data, rows = path.read_bytes(), pq.ParquetFile(path).read()
    seen = 0
    footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    for at in range(0, footer, 97):
        path.write_bytes(data[:at] + bytes([data[at] ^ 1 << at % 8]) + data[at + 1 :])
        if any(path.name in problem for problem in lakes.check(root)):
            seen += 1
        else:
            assert pq.ParquetFile(path).read().equals(rows), at
    assert seen > 10
    path.write_bytes(data)
    assert lakes.check(root) == []


def test_a_merge_does_not_spread_damage(root: Path) -> None:
    """A changed byte is not written again with a new checksum."""
    flip(active(root, "topology")[0])
    with pytest.raises(LakeError, match="cannot be read: "):
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


@pytest.mark.parametrize("damage", ["flip", "remove"])
def test_damaged_files_are_skipped_where_that_is_wanted(
    root: Path, damage: str, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    paths = active(root, "topology")
    if damage == "flip":
        flip(paths[0])
    else:
        paths[0].unlink()
    rest = sum(pq.ParquetFile(path).metadata.num_rows for path in paths[1:])
    with pytest.raises(LakeError, match=paths[0].name):
        list(lakes.batches(root, "topology"))
    assert sum(len(batch) for batch in lakes.batches(root, "topology", skip_damaged=True)) == rest
    assert paths[0].name in caplog.text
    assert cli.main(["summary", "--lake", str(root), "-q"]) == 1
    assert cli.main(["summary", "--lake", str(root), "-q", "--skip-damaged"]) != 1
    assert paths[0].name in capsys.readouterr().err
    assert any(paths[0].name in problem for problem in lakes.check(root))


@pytest.mark.parametrize("damage", first_of(["remove", "flip", "cut"]))
def test_damaged_files_are_skipped_through_spark(spark: SparkSession, root: Path, damage: str) -> None:
    paths = active(root, "topology")
    if damage == "flip":
        flip(paths[0])
    elif damage == "cut":
        paths[0].write_bytes(paths[0].read_bytes()[:-1])
    else:
        paths[0].unlink()
    rest = sorted(pq.read_table(paths[1:], columns=["capture", "frame"]).to_pylist(), key=repr)
    reader = spark.read.format("msmq").option("lake", str(root)).option("table", "topology")
    skipping = (
        lakes.read(spark, root, "topology", skip_damaged=True),
        reader.option("ignoreCorruptFiles", "true").load(),
    )
    for frame in skipping:
        found = [row.asDict() for row in frame.select("capture", "frame").collect()]
        assert sorted(found, key=repr) == rest
    for load in (partial(lakes.read, spark, root, "topology"), reader.option("ignoreCorruptFiles", "false").load):
        with pytest.raises(Exception, match=r"FAILED_READ_FILE|PATH_NOT_FOUND|cannot be read|is gone"):
            load().select("capture", "frame").collect()


@pytest.mark.parametrize("damage", ["remove", "cut"])
def test_a_damaged_file_that_its_table_lacks_is_skipped(first: Path, tmp_path: Path, damage: str) -> None:
    """A run was killed after its commit, and one of its files is lost."""
    root = tmp_path / "lake"
    for step in range(100):
        shutil.rmtree(root, ignore_errors=True)
        shutil.copytree(first, root)
        with suppress(Stopped), stopped_at(step, stop):
            run(root, {**FIRST, "d": 1})
        store = Lake(Storage.of(root))
        if pending := store.pending("topology").paths:
            break
    path = root / "topology" / pending[0]
    if damage == "remove":
        path.unlink()
    else:
        path.write_bytes(path.read_bytes()[:-5])
    with pytest.raises(LakeError, match=path.name):
        list(lakes.batches(root, "topology"))
    there = [one for batch in lakes.batches(root, "topology", skip_damaged=True) for one in batch["file"].to_pylist()]
    assert Counter(there) == Counter(FIRST)


def test_a_store_that_cannot_be_reached_is_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        endpoint = f"http://127.0.0.1:{closed.getsockname()[1]}"
    options = {
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_ALLOW_HTTP": "true",
        "AWS_ACCESS_KEY_ID": "anybody",
        "AWS_SECRET_ACCESS_KEY": "anything",
        "AWS_REGION": "us-east-1",
        # Otherwise deltalake tries for some seconds
        "OBJECT_STORE_MAX_RETRIES": "0",
        "max_retries": "0",
    }
    for use in (
        lambda: list(lakes.batches("s3://captures/lake", "topology", lake_options=options)),
        lambda: pipeline.run(TASKS, CAPTURES, "s3://captures/lake", lake_options=options),
    ):
        with pytest.raises(LakeError) as raised:
            use()
        assert re.fullmatch(r"s3://captures/lake: Generic S3 error: [^\x1b\n]*Connection refused.*", str(raised.value))
    for name, value in options.items():
        monkeypatch.setenv(name, value)
    for command in (["lake", "check"], ["lake", "delete", "--before=2024-03-01"], ["summary", "--quiet", "--lake"]):
        assert cli.main([*command, "s3://captures/lake"]) == 1
        (line,) = capsys.readouterr().err.splitlines()
        assert line.startswith("msmqwire: s3://captures/lake")
        assert "\x1b" not in line
        assert "Connection refused" in line
