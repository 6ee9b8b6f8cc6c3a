"""A million rows: what the pipeline writes and the data source gives is what one machine reads, in every column."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession

from msmqwire.capture import read_table
from msmqwire.spark import pipeline
from tests.reference import mqsd_cases
from tests.spark.captures import DAY, MONDAY, frame, write_capture
from tests.spark.lake_tables import lake_table
from tests.spark.rows import in_spark_types

CAPTURES, DISTINCT, REPEATED = 4, 10_000, 25
HEADER = 24


@pytest.fixture(scope="module")
def captures(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Captures of a quarter of a million discovery packets each, over several days; a third of them are spoilt."""
    folder = tmp_path_factory.mktemp("captures")
    names = [folder / f"{number}.pcap" for number in range(CAPTURES)]
    for number, name in enumerate(names):
        payloads = mqsd_cases.cases(DISTINCT, seed=number)
        write_capture(
            name, ((MONDAY + at * DAY // 4000 + number, frame(payload)) for at, payload in enumerate(payloads))
        )
        data = name.read_bytes()
        name.write_bytes(data[:HEADER] + data[HEADER:] * REPEATED)
    return names


def test_the_pipeline(spark: SparkSession, captures: list[Path], tmp_path: Path) -> None:
    summary = pipeline.run(spark, captures, tmp_path / "lake", tables="topology")
    assert summary.rows == {"topology": CAPTURES * DISTINCT * REPEATED} == {"topology": 1_000_000}
    assert summary.faults.total() > 10_000
    rows = lake_table(tmp_path / "lake", "topology")
    for name in captures:
        found = rows.filter(pc.equal(rows["file"], str(name))).sort_by("frame")
        plain = found.drop(["day", "capture"])
        assert plain.equals(in_spark_types(read_table(name), plain.schema))
        days = found["time"].cast(pa.date32()).cast(pa.string())
        assert found["day"].cast(pa.string()).equals(days)


def test_the_data_source(spark: SparkSession, captures: list[Path]) -> None:
    """Through Spark's Arrow: a capture in parts with every column, and of a million rows where they are and faults."""
    source = spark.read.format("msmq")
    whole = source.option("splitSize", "12m").load(str(captures[0])).toArrow()
    assert whole.equals(in_spark_types(read_table(captures[0]), whole.schema))
    # No two captures have a time in common
    schema = "frame bigint, time_ns bigint, fault struct<code: string, field: string, offset: bigint>"
    rows = source.schema(schema).option("splitSize", "64m").load(list(map(str, captures))).toArrow()
    assert rows.num_rows == CAPTURES * whole.num_rows == 1_000_000
    assert rows.equals(in_spark_types(read_table(captures, columns=["frame", "time", "fault"]), rows.schema))
