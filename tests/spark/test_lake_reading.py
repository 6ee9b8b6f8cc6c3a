"""Lakes read, looked after and kept elsewhere: by Spark, by polars, in an object store."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import duckdb
import polars
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from msmqwire import cli
from msmqwire.spark import lake, pipeline
from msmqwire.spark.lake import LakeError
from msmqwire.spark.lake.committing import Lake
from msmqwire.spark.lake.storage import Storage
from tests.capture import build
from tests.effort import first_of
from tests.spark.captures import CAPTURES, DAY, MONDAY, PRINTED, ROOT, frame
from tests.spark.lake_runs import Stopped, expected, in_processes, move, run, stop, stopped_at
from tests.spark.lakes import files_of, read
from tests.spark.tasks import TASKS

FIRST = {"a": 3, "b": 5, "c": 1}
SECOND = {**FIRST, "b": 8, "d": 2}


@pytest.fixture(scope="module")
def two_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake of two runs, the second of which replaced rows of the first."""
    lake = tmp_path_factory.mktemp("two runs") / "lake"
    for captures in (FIRST, SECOND):
        run(lake, captures, share=1)
    return lake


@pytest.fixture
def root(two_runs: Path, tmp_path: Path) -> Path:
    """A copy of this lake."""
    return Path(shutil.copytree(two_runs, tmp_path / "lake"))


def rows(frame: Any) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in frame.select("file", "frame").collect())


def wanted(captures: dict[str, int]) -> list[tuple[Any, ...]]:
    return sorted(expected(captures)["topology"])


@pytest.mark.long
def test_a_table_as_of_each_run(spark: SparkSession, root: Path) -> None:
    """OPTIMIZE changes none of them."""
    for _ in range(2):
        assert rows(lake.read(spark, root, "topology")) == wanted(SECOND)
        assert rows(lake.read(spark, root, "topology", run=1)) == wanted(FIRST)
        for number, captures in ((1, FIRST), (2, {**FIRST, "d": 2}), (3, SECOND)):
            assert rows(lake.read(spark, root, "topology", run=number)) == wanted(captures)
            accounts = lake.read(spark, root, "accounting", run=number).select("file", "length").collect()
            assert dict(map(tuple, accounts)) == captures
        lake.optimize(root)
    assert [(one.number, one.captures, one.rows) for one in lake.history(root)] == [(3, 1, 8), (2, 1, 2), (1, 3, 9)]
    with pytest.raises(ValueError, match="run=4 is not one of 1 to 3"):
        lake.read(spark, root, "topology", run=4)
    with pytest.raises(ValueError, match="table='queues' is not one of topology"):
        lake.read(spark, root, "queues")


def test_files_are_chosen_by_day_time_and_capture(spark: SparkSession, root: Path) -> None:
    def files(**settings: Any) -> int:
        return len(lake.read(spark, root, "topology", **settings).inputFiles())

    assert files() == len(files_of(root, "topology")) == 7
    assert files(captures=["b"]) == 2
    assert files(until=MONDAY + DAY) == 4
    assert files(since=MONDAY + 1000, until=MONDAY + DAY) == 0
    assert files(since=MONDAY + DAY, captures=["a", "b"]) == 2
    found = lake.read(spark, root, "topology", since=MONDAY + DAY, captures=["a", "b"])
    assert rows(found) == [("a", 1), ("b", 1), ("b", 3), ("b", 5), ("b", 7)]
    assert lake.read(spark, root, "topology", captures=["none"]).count() == 0
    with pytest.raises(ValueError, match="filter on first_time"):
        lake.read(spark, root, "accounting", since=0)


@pytest.mark.parametrize("every", first_of([2, 1]))
def test_days_are_those_of_the_log(spark: SparkSession, root: Path, every: int) -> None:
    """Another program, which rewrites files, may give them paths without the day."""
    names = ["file", "frame", "day"]

    def both() -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]:
        found = [tuple(row.values()) for batch in lake.batches(root, "topology", names) for row in batch.to_pylist()]
        through_spark = lake.read(spark, root, "topology")
        assert through_spark.columns == next(lake.batches(root, "topology")).schema.names
        return sorted(found), sorted(tuple(row) for row in through_spark.select(names).collect())

    before, _ = both()
    days = {day for _, _, day in before}
    assert len(days) == 2
    move(root, "topology", every)
    assert any(not path.startswith("day=") for path in files_of(root, "topology"))
    assert both() == (before, before)
    since = lake.batches(root, "topology", names, since=MONDAY + DAY)
    assert {day for batch in since for day in batch["day"].to_pylist()} == {max(days)}
    run(root, {**SECOND, "c": 2})
    lake.optimize(root)
    assert lake.check(root) == []
    after, through_spark = both()
    assert after == through_spark
    assert {row[:2] for row in after} == set(wanted({**SECOND, "c": 2}))
    assert len(files_of(root, "topology")) == 2


@pytest.mark.long
def test_times_before_1970(tmp_path: Path) -> None:
    """A bound in nanoseconds drops no file whose times in microseconds were rounded up."""
    capture = tmp_path / "old.pcapng"
    frames = [(stamp, frame(PRINTED[0])) for stamp in (0, 1, 1500, 1999, 2000, 2001)]
    records = (build.packet(data, stamp=stamp) for stamp, data in frames)
    capture.write_bytes(build.section() + build.interface(resolution=9, offset=-1) + b"".join(records))
    pipeline.run(TASKS, capture, tmp_path / "lake")
    times = [stamp - 10**9 for stamp, _ in frames]
    for bound in range(-(10**9) - 1, -(10**9) + 2003, 250):
        for side, wanted in (
            ("since", [one for one in times if one >= bound]),
            ("until", [one for one in times if one < bound]),
        ):
            limits: dict[str, Any] = {side: bound}
            found = lake.batches(tmp_path / "lake", "topology", ["time_ns"], **limits)
            assert [one for batch in found for one in batch["time_ns"].to_pylist()] == wanted


@pytest.mark.parametrize("name", ["%20", "a%41", "back\\slash", "tab\t", "rest\x7f", "^", "a|b", "bytes\udcff"])
def test_a_folder_that_deltalake_misreads_is_refused(tmp_path: Path, name: str) -> None:
    folder = tmp_path / name
    for use in (lambda: pipeline.run(TASKS, CAPTURES, folder), lambda: lake.repair(folder)):
        with pytest.raises(LakeError, match=r"deltalake cannot open a folder whose path has '.*'; choose another"):
            use()
    assert not folder.exists()


def test_a_lake_without_a_name_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would be made in the current folder."""
    monkeypatch.chdir(tmp_path)
    for use in (lambda: pipeline.run(TASKS, CAPTURES, ""), lambda: lake.repair("")):
        with pytest.raises(LakeError, match="'' names no lake: give a folder or a URI"):
            use()
    assert [*tmp_path.iterdir()] == []


def test_a_folder_that_cannot_be_made_is_named() -> None:
    """deltalake says of it that a table is not found."""
    with pytest.raises(OSError, match="'/proc/lake'"):
        pipeline.run(TASKS, CAPTURES, "/proc/lake")


@pytest.mark.parametrize("name", ["100%", "[a]", "{a,b}", "sp ace #?", '"<é>"'])
def test_folders_of_other_names(tmp_path: Path, name: str) -> None:
    """A ``file:`` URI names a lake as it names captures."""
    folder = tmp_path / name
    pipeline.run(TASKS, CAPTURES[0], folder)
    pipeline.run(TASKS, CAPTURES[1], f"file:{quote(str(folder))}")
    assert lake.check(folder.as_uri()) == []
    assert sum(map(len, lake.batches(folder, "topology"))) == 14
    assert list(tmp_path.iterdir()) == [folder]


@pytest.mark.long
def test_spark_reads_what_a_table_lacks(spark: SparkSession, tmp_path: Path) -> None:
    """So it has all rows of a run whose driver died when it had committed to accounting; nothing is written."""
    root = tmp_path / "lake"
    run(root, FIRST)
    for step in range(200):
        trial = Path(shutil.copytree(root, tmp_path / str(step)))
        with pytest.raises(Stopped), stopped_at(step, stop):
            run(trial, SECOND)
        if len(lake.history(trial)) == 3:
            break
    before = read(trial, "topology")
    assert rows(lake.read(spark, trial, "topology")) == wanted(SECOND)
    assert rows(spark.read.format("msmq").options(lake=str(trial), table="topology").load()) == wanted(SECOND)
    assert read(trial, "topology").equals(before)
    assert before.num_rows != len(wanted(SECOND))
    assert lake.check(trial) == []


def test_polars_reads_the_tables(spark: SparkSession, tmp_path: Path) -> None:
    pipeline.run(spark, CAPTURES, tmp_path)
    found = polars.read_delta(str(tmp_path / "topology"))
    assert found.height == 14
    assert str(found["day"].unique().item()) == "2024-03-04"
    accounts = polars.read_delta(str(tmp_path / "accounting"))
    assert found["capture"].n_unique() == accounts.height == 2


def test_duckdb_reads_the_tables(spark: SparkSession, tmp_path: Path) -> None:
    pipeline.run(spark, CAPTURES, tmp_path)
    files = DeltaTable(tmp_path / "topology").file_uris()
    relation = duckdb.sql(
        "SELECT count(*), min(day)::text FROM read_parquet(?, hive_partitioning=true)", params=[files]
    )
    assert relation is not None
    assert relation.fetchall() == [(14, "2024-03-04")]


DELTA_SCAN = """\
import sys
from pathlib import Path

import duckdb
import duckdb_ext

(extension,) = Path(duckdb_ext.__path__[0], "extensions", f"v{duckdb.__version__}").rglob("delta.duckdb_extension")
duckdb.load_extension(str(extension))
for query in sys.argv[1:]:
    print(*duckdb.sql(query).fetchone())
"""


@pytest.mark.long
def test_duckdb_reads_the_tables_with_its_own_reader_of_delta(root: Path, tmp_path: Path) -> None:
    """The extension comes as a package that requires one version of DuckDB, so it is installed apart."""
    apart = tmp_path / "apart"
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(apart), "duckdb-ext-delta"]
    installed = subprocess.run(install, capture_output=True, text=True)
    if installed.returncode:
        pytest.skip(f"duckdb-ext-delta cannot be installed: {installed.stderr.splitlines()[-1]}")
    table = f"FROM delta_scan('{root / 'topology'}')"
    current = f"SELECT count(*), count(DISTINCT day) {table}"
    of_one = f"SELECT count(*), min(day)::text {table} WHERE file = 'b' AND day > '2024-03-04'"
    environment = {**os.environ, "PYTHONPATH": str(apart)}
    command = [sys.executable, "-c", DELTA_SCAN, current, of_one]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [f"{len(wanted(SECOND))} 2", "4 2024-03-05"]


def test_a_pipeline_that_vacuums(spark: SparkSession, tmp_path: Path) -> None:
    for _ in range(2):
        pipeline.run(spark, CAPTURES, tmp_path, tables=["Topology"], overwrite=True, vacuum_hours=0)
    names = {path.relative_to(tmp_path / "topology").as_posix() for path in (tmp_path / "topology").rglob("*.parquet")}
    assert {name for name in names if not name.startswith("_")} == set(files_of(tmp_path, "topology"))
    assert lake.check(tmp_path) == []
    with pytest.raises(ValueError, match="vacuum_hours=-1 is negative"):
        pipeline.run(spark, CAPTURES, tmp_path, vacuum_hours=-1)


def test_vacuum_keeps_what_can_be_read(spark: SparkSession, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of runs under way as well, and those of killed runs only until they are old."""
    under_way = root / "topology" / "day=2024-03-04" / f"{1:032x}-0.parquet"
    shutil.copy(next((root / "topology").rglob("*.parquet")), under_way)
    scratch = root / "accounting" / "_scratch" / "run" / "parts"
    scratch.parent.mkdir(parents=True)
    scratch.touch()
    assert lake.vacuum(root) == []
    assert rows(lake.read(spark, root, "topology", run=1)) == wanted(FIRST)
    listed = lake.vacuum(root, hours=0, dry_run=True)
    assert all((root / name).exists() for name in listed)
    assert sorted(lake.vacuum(root, hours=0)) == sorted(listed)
    assert under_way.exists()
    assert scratch.exists()
    assert not any((root / name).exists() for name in listed)
    assert {name.partition("/")[0] for name in listed} == {"topology", "faults", "accounting"}
    assert rows(lake.read(spark, root, "topology")) == wanted(SECOND)
    for path in (under_way, scratch):
        os.utime(path, (time.time() - 100 * 3600,) * 2)
    gone = lake.vacuum(root, hours=48)
    assert len(gone) == 2
    assert not under_way.exists()
    assert not scratch.exists()
    run(root, {**SECOND, "c": 4})
    assert lake.check(root) == []


def test_check(root: Path) -> None:
    assert lake.check(root) == []
    missing, short, *_ = sorted(files_of(root, "topology"))
    one, other = root / "topology" / missing, root / "topology" / short
    captures = {row["capture"] for path in (one, other) for row in pq.ParquetFile(path).read(["capture"]).to_pylist()}
    one.unlink()
    other.write_bytes(b"")
    problems = lake.check(root)
    assert any(problem.startswith(f"topology/{missing}: is missing") for problem in problems)
    assert any(f"topology/{short}: has 0 bytes, not " in problem for problem in problems)
    assert all(any(f"rows of capture {number}, but" in problem for problem in problems) for number in captures)


def test_the_command(root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def said(*arguments: str) -> tuple[int, str, str]:
        return (cli.main(["lake", *arguments]), *capsys.readouterr())

    assert said("check", str(root)) == (0, "", "0 problems found\n")
    status, text, _ = said("history", str(root))
    assert (status, [line.split("  ")[::2] for line in text.splitlines()]) == (
        0,
        [["3", "1 capture, 8 rows"], ["2", "1 capture, 2 rows"], ["1", "3 captures, 9 rows"]],
    )
    assert "topology: 7 files, now 2\n" in said("optimize", str(root))[1]
    status, text, last = said("vacuum", str(root), "--hours", "0", "--dry-run")
    assert (status, last) == (0, f"{len(text.splitlines())} files to delete\n")
    (root / "topology" / files_of(root, "topology")[0]).unlink()
    assert said("check", str(root))[0] == 2
    status, _, last = said("check", str(tmp_path))
    assert (status, last) == (1, f"msmqwire: {tmp_path}: is not a lake: msmqwire pipeline makes one\n")


@pytest.mark.parametrize(
    ("name", "cause"),
    [
        ("file", "{}: is not a folder, so it is not a lake: msmqwire pipeline makes one"),
        ("s3://", "'{}' names no lake: give a folder or a URI"),
        ("ftp+x://host/lake", "{}: no lake can be there: Unknown scheme: ftp+x. "),
    ],
)
def test_names_that_no_lake_can_have(tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, cause: str) -> None:
    """Each command ends with one line, which says why."""
    (tmp_path / "file").touch()
    place = name if "://" in name else str(tmp_path / name)
    for action in (["lake", "optimize", place], ["lake", "repair", place], ["summary", "--lake", place]):
        status, text, said = cli.main(action), *capsys.readouterr()
        assert (status, text, len(said.splitlines())) == (1, "", 1)
        assert said.startswith(f"msmqwire: {cause.format(place)}")


def test_a_checkpoint_that_cannot_be_written(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As where the disk is full, which deltalake reports as an error of its own."""
    table = Lake(Storage.of(root)).table("topology")
    table.merge()
    version = DeltaTable(root / "topology").version()
    (root / "topology" / "_delta_log" / f"{version:020}.checkpoint.parquet").mkdir()
    status, _, said = cli.main(["lake", "optimize", str(root)]), *capsys.readouterr()
    assert (status, len(said.splitlines())) == (1, 1)
    assert said.startswith(f"msmqwire: {root}/topology: a checkpoint of its log cannot be written: ")
    assert lake.check(root) == []


# In an object store


@pytest.fixture(scope="module")
def bucket() -> Iterator[dict[str, str]]:
    """What reaches a server in a process of its own: deltalake waits for it without letting other threads run."""
    pytest.importorskip("moto")
    command = [sys.executable, "-m", "tests.spark.object_store"]
    server = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert server.stdout is not None
    try:
        yield {
            "AWS_ENDPOINT_URL": server.stdout.readline().strip(),
            "AWS_ACCESS_KEY_ID": "anybody",
            "AWS_SECRET_ACCESS_KEY": "anything",
            "AWS_REGION": "us-east-1",
            "AWS_ALLOW_HTTP": "true",
        }
    finally:
        server.kill()
        server.wait()
        server.stdout.close()


def contents(uri: str, options: dict[str, str]) -> list[tuple[Any, ...]]:
    store = Lake(Storage.of(uri, options))
    found = []
    for path in store.table("topology").active()["path"].to_pylist():
        with store.storage.open(f"topology/{path}") as file:
            found += [tuple(row.values()) for row in pq.ParquetFile(file).read(["file", "frame"]).to_pylist()]
    return sorted(found)


@pytest.mark.long
def test_a_lake_in_an_object_store(spark: SparkSession, bucket: dict[str, str]) -> None:
    uri = "s3://captures/some/lake"
    summary = pipeline.run(spark, CAPTURES, uri, lake_options=bucket, progress=lambda _: None)
    assert (summary.sources, summary.rows["topology"]) == (2, 14)
    assert pipeline.run(spark, CAPTURES, uri, lake_options=bucket).known == 2
    assert pipeline.run(spark, CAPTURES, uri, lake_options=bucket, overwrite=True).sources == 2
    assert len(contents(uri, bucket)) == 14
    with pytest.raises(lake.LakeError, match="needs Hadoop's module for this store, such as hadoop-aws"):
        lake.read(spark, uri, "topology", lake_options=bucket)
    through = spark.read.format("msmq").options(lake=uri, table="topology", storageOptions=json.dumps(bucket))
    assert through.load().count() == 14
    assert sum(lake.delete(uri, where="frame >= 0", dry_run=True, lake_options=bucket).values()) > 14
    lake.optimize(uri, lake_options=bucket)
    assert lake.check(uri, lake_options=bucket) == []
    assert [one.number for one in lake.history(uri, lake_options=bucket)] == [2, 1]
    assert lake.vacuum(uri, hours=0, lake_options=bucket)
    assert lake.check(uri, lake_options=bucket) == []
    assert lake.delete(uri, where="frame >= 0", lake_options=bucket)["topology"] == 14
    assert pipeline.run(spark, CAPTURES, uri, lake_options=bucket, overwrite=True).sources == 2
    assert contents(uri, bucket) == []
    assert lake.check(uri, lake_options=bucket) == []


def run_there(uri: str, captures: dict[str, int], options: dict[str, str]) -> None:
    run(uri, captures, options=options)


@pytest.mark.long
def test_runs_at_once_in_an_object_store(bucket: dict[str, str]) -> None:
    uri = "s3://captures/lake"
    run(uri, FIRST, options=bucket)
    grown = [{**SECOND, "b": 7 + at, f"only {at}": 2} for at in range(3)]
    assert in_processes(*((run_there, (uri, captures, bucket)) for captures in grown)) == [0, 0, 0]
    assert contents(uri, bucket) == wanted({**SECOND, "b": 9, **{f"only {at}": 2 for at in range(3)}})
    assert lake.check(uri, lake_options=bucket) == []


def test_a_refused_put_changes_nothing(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk, or a store that refuses: wherever that is, the next run makes it good."""
    refused = [Storage.create, Storage.sync]
    for method in refused:
        with monkeypatch.context() as patches:

            def full(*_: Any) -> None:
                raise OSError(28, "No space left on device")

            patches.setattr(Storage, method.__name__, full)
            with pytest.raises(OSError, match="No space left"):
                run(root, {**SECOND, "e": 1})
        assert lake.check(root) == []
    run(root, {**SECOND, "e": 1})
    assert lake.check(root) == []


def test_a_log_that_names_files_elsewhere_is_refused(root: Path) -> None:
    entry = root / "topology" / "_delta_log" / f"{1:020}.json"
    name = files_of(root, "topology")[0]
    shutil.rmtree(root / "topology" / "_delta_log" / "_last_checkpoint", ignore_errors=True)
    text = entry.read_text()
    assert '"path":"day=' in text
    entry.write_text(text.replace('"path":"day=', '"path":"../faults/day=', 1))
    assert name
    assert any("which is not in the table" in problem for problem in lake.check(root))
    for use in (lake.optimize, lambda root: list(lake.batches(root, "topology"))):
        with pytest.raises(LakeError, match="which is not in the table"):
            use(root)
