"""A million rows: what the pipeline writes is what a single machine reads, in every column."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
from pyspark.sql import SparkSession

from msmqwire.capture import read_table
from msmqwire.spark import pipeline
from tests.reference import mqsd_cases
from tests.spark.captures import DAY, MONDAY, frame, write_capture

CAPTURES, DISTINCT, REPEATED = 4, 10_000, 25
HEADER = 24


def test_every_column_of_a_million_rows(spark: SparkSession, tmp_path: Path) -> None:
    folder, lake = tmp_path / "captures", tmp_path / "lake"
    folder.mkdir()
    names = [folder / f"{number}.pcap" for number in range(CAPTURES)]
    for number, name in enumerate(names):
        payloads = mqsd_cases.cases(DISTINCT, seed=number)
        write_capture(
            name, ((MONDAY + at * DAY // 4000 + number, frame(payload)) for at, payload in enumerate(payloads))
        )
        data = name.read_bytes()
        name.write_bytes(data[:HEADER] + data[HEADER:] * REPEATED)
    summary = pipeline.run(spark, folder, lake, tables="topology")
    assert summary.rows == {"topology": CAPTURES * DISTINCT * REPEATED} == {"topology": 1_000_000}
    assert summary.faults.total() > 10_000
    rows = ds.dataset(lake / "topology", partitioning="hive")
    for name in names:
        found = rows.to_table(filter=ds.field("file") == str(name)).sort_by("frame")
        assert found.drop("day").equals(in_spark_types(read_table(name), found.drop("day").schema))
        days = found["time"].cast(pa.date32()).cast(pa.string())
        assert found["day"].cast(pa.string()).equals(days)


def in_spark_types(batches: Any, schema: pa.Schema) -> pa.Table:
    table = pa.Table.from_batches(batches)
    nanoseconds = table["time"].cast(pa.int64())
    table = table.set_column(table.schema.get_field_index("time"), "time", pa.compute.divide(nanoseconds, 1000))
    columns = {**{name: table[name] for name in table.column_names}, "time_ns": nanoseconds}
    return pa.table([columns[field.name].cast(field.type) for field in schema], schema=schema)
