"""Ten thousand captures of one packet: all of their rows out of few tasks, and in few files.

The pipeline decodes three thousand of them here; with all it would be one of the longest tests.
"""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.functions import spark_partition_id

from msmqwire.spark import pipeline
from msmqwire.spark.source.files import find_files
from tests.reference import mqsd
from tests.spark.captures import MONDAY, frame, write_capture
from tests.spark.lake_tables import lake_files, lake_table

#: What there is to be: the RequestID of the packet in each capture.
REQUESTS = {f"{number:05}.pcap": uuid.UUID(int=number) for number in range(10_000)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A TopologyClientRequest in each, a second after that of the one before."""
    path = tmp_path_factory.mktemp("captures")
    for number, (name, request) in enumerate(REQUESTS.items()):
        packet = mqsd.write(mqsd.Request(bytes(16), request.bytes_le, bytes(16)))
        write_capture(path / name, [(MONDAY + number * 10**9, frame(packet))])
    return path


def written(lake: Path) -> dict[Path, int]:
    """The files of a lake, and when they were written."""
    return {path: path.stat().st_mtime_ns for path in lake.rglob("*") if path.is_file()}


def test_in_the_pipeline(spark: SparkSession, folder: Path, tmp_path: Path) -> None:
    lake, captures = tmp_path / "lake", folder / "0[012]*.pcap"
    requests = list(REQUESTS.items())[:3_000]
    summary = pipeline.run(spark, captures, lake, tables="topology")
    assert (summary.sources, summary.frames, summary.rows) == (3_000, 3_000, {"topology": 3_000})
    rows = lake_table(lake, "topology", ["file", "request_id"]).to_pylist()
    found = sorted((Path(row["file"]).name, row["request_id"]) for row in rows)
    assert found == [(name, str(request)) for name, request in requests]
    accounts = lake_table(lake, "accounting", ["file", "frames", "rows", "problem"]).to_pylist()
    assert sorted(Path(account.pop("file")).name for account in accounts) == [name for name, _ in requests]
    assert all(account == {"frames": 1, "rows": [("topology", 1)], "problem": None} for account in accounts)
    # One for each of the tasks
    assert {name: len(lake_files(lake, name)) for name in ("topology", "accounting", "faults")} == {
        "topology": 66,
        "accounting": 1,
        "faults": 0,
    }

    before = written(lake)
    again = pipeline.run(spark, captures, lake, tables="topology")
    assert (again.sources, again.known, again.problems, again.duplicates) == (0, 3_000, [], [])
    assert written(lake) == before


def test_tasks_of_the_pipeline(folder: Path) -> None:
    """Each leaves a file of a table for a day."""
    parts = pipeline._parts(find_files(folder))
    assert [file.name for part in parts for file in part] == [str(folder / name) for name in REQUESTS]
    assert len(parts) == 79


def test_in_the_data_source(spark: SparkSession, folder: Path) -> None:
    frame = spark.read.format("msmq").schema("file string, request_id string").load(str(folder))
    rows = frame.withColumn("task", spark_partition_id()).collect()
    found = sorted((Path(row.file).name, row.request_id) for row in rows)
    assert found == [(name, str(request)) for name, request in REQUESTS.items()]
    assert len({row.task for row in rows}) < 200
