"""Tables of a lake through the data source and SQL: current rows, rows of a run, filters that choose files."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from msmqwire.spark import lake
from msmqwire.spark.source.lakes import LakePartition, LakeRead, LakeReader
from tests.spark.lake_runs import expected, run
from tests.spark.lakes import files_of

FIRST = {"a": 3, "b": 5, "c": 1}
SECOND = {**FIRST, "b": 8, "d": 2}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake of two runs, the second of which replaced rows of the first; over two days."""
    path = tmp_path_factory.mktemp("two runs") / "lake"
    for captures in (FIRST, SECOND):
        run(path, captures, share=1)
    return path


def load(spark: SparkSession, root: Path, **options: object) -> DataFrame:
    reader = spark.read.format("msmq").option("lake", str(root))
    return reader.options(**{name: str(value) for name, value in options.items()}).load()


def rows(frame: DataFrame) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in frame.select("file", "frame").collect())


def wanted(captures: dict[str, int]) -> list[tuple[Any, ...]]:
    return sorted(expected(captures)["topology"])


@pytest.fixture
def table(spark: SparkSession) -> Iterator[str]:
    yield "of_lake"
    spark.sql("DROP TABLE IF EXISTS of_lake")


@pytest.mark.long
@pytest.mark.parametrize("name", ["topology", "faults", "accounting"])
def test_every_table_has_the_rows_that_read_gives(spark: SparkSession, root: Path, name: str) -> None:
    given, through_spark = load(spark, root, table=name.upper()), lake.read(spark, root, name)
    assert [field.name for field in given.schema] == [field.name for field in through_spark.schema]
    order = sorted(set(given.columns) & {"capture", "frame"})
    assert given.orderBy(order).collect() == through_spark.select(given.columns).orderBy(order).collect()


def test_sql(spark: SparkSession, root: Path, table: str) -> None:
    spark.sql(f"CREATE TABLE {table} USING msmq OPTIONS (lake '{root}', table 'topology')")
    assert rows(spark.table(table)) == wanted(SECOND)
    found = spark.sql(f"SELECT day, count(*) FROM {table} WHERE day > DATE '2000-01-01' GROUP BY day ORDER BY day")
    assert [tuple(row)[1] for row in found.collect()] == [8, 6]
    # Replaced rows are in the folder, and not in the table
    assert spark.read.parquet(f"{root}/topology").count() > len(wanted(SECOND))


def test_runs(spark: SparkSession, root: Path) -> None:
    assert rows(load(spark, root, run=1)) == wanted(FIRST)
    assert rows(load(spark, root, run=3)) == rows(load(spark, root)) == wanted(SECOND)


def test_a_table_follows_its_lake(spark: SparkSession, root: Path, tmp_path: Path, table: str) -> None:
    copy = Path(shutil.copytree(root, tmp_path / "lake"))
    spark.sql(f"CREATE TABLE {table} USING msmq OPTIONS (lake '{copy}', `table` 'topology')")
    run(copy, {**SECOND, "e": 4})
    assert rows(spark.table(table)) == wanted({**SECOND, "e": 4})


def files(root: Path, **options: str) -> int:
    read = LakeRead.of({"lake": str(root), **options})
    found = LakeReader(read, read.columns).partitions()
    return sum(len(partition.scan.files) for partition in found if isinstance(partition, LakePartition))


def test_options_choose_files(root: Path) -> None:
    assert files(root) == len(files_of(root, "topology")) == 7
    assert files(root, until="2024-03-05") == 4
    assert files(root, since="2024-03-05") == 3


@pytest.mark.long
@pytest.mark.parametrize(
    "condition",
    [
        "day = DATE '2024-03-05'",
        "time >= '2024-03-05'",
        "src = '10.0.0.1'",
        "file IN ('b', 'd')",
        "frame > 1",
        "NOT file = 'a'",
    ],
)
def test_filters_leave_the_rows_that_they_leave_in_spark(spark: SparkSession, root: Path, condition: str) -> None:
    pushing = spark.newSession()
    pushing.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    found = rows(load(pushing, root).where(condition))
    assert found == rows(lake.read(spark, root, "topology").where(condition)) != []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"table": "queues"}, "table='queues' is not one of topology, "),
        ({"run": "4"}, "run=4 is not one of 1 to 3"),
        ({"run": "x"}, "run='x' is not a number"),
        ({"mode": "FAILFAST"}, "mode: no such option of a lake; there are lake, table, run"),
        ({"path": "captures"}, r"lake and a path: a lake is read with load\(\) alone"),
        ({"table": "accounting", "since": "2024-03-04"}, "filter on first_time and last_time"),
        ({"lake": "/no/lake"}, "is not a lake"),
    ],
)
def test_mistakes(spark: SparkSession, root: Path, options: dict[str, str], message: str) -> None:
    with pytest.raises(AnalysisException, match=message):
        load(spark, root, **options).collect()
