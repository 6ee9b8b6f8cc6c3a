"""A million rows, and ten thousand captures of one packet: through pipeline and data source, with every column."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.functions import spark_partition_id

from msmqwire.capture.files.listing import SourceFile, find_files
from msmqwire.spark import pipeline
from msmqwire.spark.source.planning import pack, task_size
from tests.reference import mqsd_cases
from tests.spark.captures import DAY, MONDAY, frame, write_capture
from tests.spark.lakes import accounts, assert_rows, files_of, read
from tests.spark.rows import in_spark_types, read_table

pytestmark = pytest.mark.long

CAPTURES, DISTINCT, REPEATED = 4, 10_000, 25
HEADER = 24
#: The RequestID of the packet in each capture
REQUESTS = {f"{number:05}.pcap": uuid.UUID(int=number) for number in range(10_000)}


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Captures of a quarter of a million discovery packets each, over several days; a third are malformed."""
    folder = tmp_path_factory.mktemp("large")
    names = [folder / f"{number}.pcap" for number in range(CAPTURES)]
    for number, name in enumerate(names):
        payloads = mqsd_cases.cases(DISTINCT, seed=number)
        write_capture(
            name, ((MONDAY + at * DAY // 4000 + number, frame(payload)) for at, payload in enumerate(payloads))
        )
        data = name.read_bytes()
        name.write_bytes(data[:HEADER] + data[HEADER:] * REPEATED)
    return names


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A request in each capture, a second after that of the one before."""
    path = tmp_path_factory.mktemp("small")
    for number, (name, request) in enumerate(REQUESTS.items()):
        packet = b"\0\1\0\0" + bytes(16) + request.bytes_le + bytes(16)
        write_capture(path / name, [(MONDAY + number * 10**9, frame(packet))])
    return path


def test_a_million_rows_in_the_pipeline(spark: SparkSession, large: list[Path], tmp_path: Path) -> None:
    summary = pipeline.run(spark, large, tmp_path / "lake", tables="topology")
    assert summary.rows == {"topology": CAPTURES * DISTINCT * REPEATED} == {"topology": 1_000_000}
    assert summary.faults.total() > 10_000
    assert_rows(tmp_path / "lake", *large, tables=("topology",))


def test_a_million_rows_in_the_data_source(spark: SparkSession, large: list[Path]) -> None:
    """A capture in parts with every column, and the places and faults of a million rows."""
    source = spark.read.format("msmq")
    whole = source.option("splitSize", "12m").load(str(large[0])).toArrow()
    assert whole.equals(in_spark_types(read_table(large[0]), whole.schema))
    schema = "frame bigint, time_ns bigint, fault "
    schema += "struct<code: string, field: string, offset: bigint, value: bigint, needed: bigint>"
    rows = source.schema(schema).option("splitSize", "64m").load(list(map(str, large))).toArrow()
    assert rows.num_rows == CAPTURES * whole.num_rows == 1_000_000
    assert rows.equals(in_spark_types(read_table(large, columns=["frame", "time", "fault"]), rows.schema))


def tasks(captures: Path) -> list[list[SourceFile]]:
    files = find_files(captures)
    return list(pack(files, task_size(files)))


def test_many_captures_in_the_pipeline(spark: SparkSession, small: Path, tmp_path: Path) -> None:
    lake, captures = tmp_path / "lake", small / "0[012]*.pcap"
    summary = pipeline.run(spark, captures, lake, tables="topology")
    assert (summary.sources, summary.frames, summary.rows) == (3_000, 3_000, {"topology": 3_000})
    found = {Path(row["file"]).name: row["request_id"] for row in read(lake).to_pylist()}
    assert found == {name: str(request) for name, request in list(REQUESTS.items())[:3_000]}
    assert len(read(lake)) == len(accounts(lake)) == 3_000
    # One for each of the tasks
    counts = [len(files_of(lake, name)) for name in ("topology", "accounting", "faults")]
    assert counts == [len(tasks(captures)), 1, 0]
    assert counts[0] < 70
    again = pipeline.run(spark, captures, lake, tables="topology")
    assert (again.sources, again.known, again.problems, again.duplicates) == (0, 3_000, [], [])
    assert len(tasks(small)) == 40  # of 256 captures


def test_many_captures_in_the_data_source(spark: SparkSession, small: Path) -> None:
    source = spark.read.format("msmq").schema("file string, request_id string").load(str(small))
    rows = source.withColumn("task", spark_partition_id()).collect()
    assert {Path(row.file).name: row.request_id for row in rows} == {name: str(one) for name, one in REQUESTS.items()}
    assert len(rows) == 10_000
    assert len({row.task for row in rows}) < 200
