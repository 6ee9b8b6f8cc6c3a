"""Spark's streams over rotating captures: what its log makes of restarts and crashes."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow.parquet as parquet
import pytest
from pyspark.errors import AnalysisException, StreamingQueryException
from pyspark.sql import SparkSession

from tests.spark.captures import ROOT
from tests.spark.crashing_query import follow
from tests.spark.rows import as_dicts
from tests.spark.test_following import rotated, serial, traffic, write

COLUMNS = ("file", "frame", "first_frame", "src", "src_port", "stream_offset", "body", "fault")


def in_order(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows in the order of the captures: a frame may end several messages of its stream."""
    return sorted(rows, key=lambda row: (row["file"], row["frame"], row["stream_offset"]))


def same(rows: list[dict[str, Any]], wanted: list[dict[str, Any]]) -> None:
    """Each row once: as often as one serial read has it, and with what that has in it."""
    assert len(rows) == len(wanted) > 20
    for row, one in zip(in_order(rows), in_order(wanted), strict=True):
        assert {name: row[name] for name in COLUMNS} == {name: one[name] for name in COLUMNS}


@pytest.mark.long
def test_each_row_once_over_restarts_into_parquet(spark: SparkSession, tmp_path: Path) -> None:
    """A record, messages and streams are cut where a query ends; the next one goes on there."""
    captures, table = tmp_path / "captures", str(tmp_path / "table")
    captures.mkdir()

    def follow() -> None:
        rows = spark.readStream.format("msmq").options(table="messages", splitSize="8k").load(str(captures))
        assert rows.isStreaming
        writer = rows.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "log"))
        writer.trigger(availableNow=True).start(table).awaitTermination()

    first, second, third = rotated(traffic(30), 3, 2)
    for stage in ({0: first, 1: second[:-7]}, {1: second, 2: third}):
        for number, data in stage.items():
            (captures / f"sensor-{number}.pcapng").write_bytes(data)
        follow()
    same(as_dicts(spark.read.parquet(table)), serial(sorted(captures.iterdir())))
    (captures / "sensor-2.pcapng").write_bytes(third[:500])
    with pytest.raises(StreamingQueryException, match=r"sensor-2\.pcapng: has 500 bytes and had \d+"):
        follow()


@pytest.mark.parametrize(
    ("size", "compressed"),
    [(0, False), *(pytest.param(*case, marks=pytest.mark.long) for case in [(0, True), (12, False), (12, True)])],
)
def test_one_named_capture_that_was_just_begun(
    spark: SparkSession, tmp_path: Path, size: int, *, compressed: bool
) -> None:
    """A stream waits for it, also one that starts; a query over it is refused."""
    capture, (data,) = tmp_path / "one.pcap", rotated(traffic(30), 1, 0)
    data = gzip.compress(data) if compressed else data
    capture.write_bytes(data[:size])
    rows = spark.readStream.format("msmq").option("table", "messages").load(str(capture))
    writer = rows.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "log"))
    with pytest.raises(AnalysisException, match=r"one\.pcap: (is empty|begins with|the gzip stream is truncated)"):
        spark.read.format("msmq").load(str(capture)).collect()
    for content in (data[:size], data):
        capture.write_bytes(content)
        writer.trigger(availableNow=True).start(str(tmp_path / "table")).awaitTermination()
    same(as_dicts(spark.read.parquet(str(tmp_path / "table"))), serial([capture]))


@pytest.mark.parametrize("available_now", [False, pytest.param(True, marks=pytest.mark.long)])
@pytest.mark.parametrize(
    ("schema", "options", "message"),
    [
        ("fil string", {}, "'fil': no such column of topology; it has file, "),
        pytest.param(
            None,
            {"lake": "lake"},
            "lake: a lake is read by queries, not by streams; a stream reads captures",
            marks=pytest.mark.long,
        ),
    ],
)
def test_streams_that_cannot_be_read(
    spark: SparkSession,
    tmp_path: Path,
    schema: str | None,
    options: dict[str, str],
    message: str,
    *,
    available_now: bool,
) -> None:
    """The message ends with the cause."""
    reader = spark.readStream.format("msmq").options(**options)
    if schema is not None:
        reader = reader.schema(schema)
    rows = reader.load() if "lake" in options else reader.load(str(tmp_path))
    writer = rows.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "log"))
    writer = writer.trigger(availableNow=True) if available_now else writer
    with pytest.raises(StreamingQueryException) as refusal:
        writer.start(str(tmp_path / "table")).awaitTermination()
    assert f"ValueError: {message}" in str(refusal.value)
    assert "UnboundLocalError" not in str(refusal.value)


@pytest.mark.long
def test_a_query_that_goes_on(spark: SparkSession, tmp_path: Path) -> None:
    """In batches of bounded size while a capture comes, and aggregated as any other stream may be."""
    captures = tmp_path / "captures"
    captures.mkdir()
    one, two = rotated(traffic(31), 2, 0)
    files = write(captures, [one])
    stream = spark.readStream.format("msmq").option("table", "messages").option("maxBytesPerTrigger", "4k")
    rows = stream.schema("file string, frame bigint, stream_offset bigint").load(str(captures))
    writer = rows.groupBy("file").count().writeStream.format("memory").queryName("followed").outputMode("complete")
    query = writer.option("checkpointLocation", str(tmp_path / "log")).start()
    try:
        query.processAllAvailable()
        files += write(captures, [two], "sensor-1{:02}.pcap")
        query.processAllAvailable()
        progress = [json.loads(json.dumps(one, default=str)) for one in query.recentProgress]
    finally:
        query.stop()
    wanted = serial(files)
    counts = {row["file"]: row["count"] for row in spark.table("followed").collect()}
    assert counts == {str(file): sum(row["file"] == str(file) for row in wanted) for file in files}
    assert sum(one["numInputRows"] for one in progress) == len(wanted)
    size = sum(file.stat().st_size for file in files)
    assert len([one for one in progress if one["numInputRows"]]) >= size // 4096
    end = json.loads(progress[-1]["sources"][0]["endOffset"])
    assert (end["file"], end["offset"]) == (str(files[-1]), files[-1].stat().st_size)


@pytest.mark.long
def test_each_row_once_though_the_driver_is_killed(spark: SparkSession, tmp_path: Path) -> None:
    """It is killed when a batch is written and Spark does not know; what comes then has no part in it."""
    captures, log, sink = (tmp_path / name for name in ("captures", "log", "sink"))
    captures.mkdir()
    sink.mkdir()
    contents = rotated(traffic(33), 3, 0)
    files = write(captures, [contents[0], contents[1][:-100]])
    driver = subprocess.Popen(
        [sys.executable, "-m", "tests.spark.crashing_query", str(captures), str(log), str(sink), "1"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.DEVNULL,
        start_new_session=True,  # a group of its own, so that its JVM dies with it
    )
    try:
        while not (sink / "written").exists():
            assert driver.poll() is None, "it ended by itself"
            time.sleep(0.1)
    finally:
        os.killpg(driver.pid, signal.SIGKILL)
        driver.wait()
    last = written(sink / "1")
    assert last
    files[1].write_bytes(contents[1])
    files += write(captures, contents[2:], "sensor-1{:02}.pcap")
    follow(spark, str(captures), str(log), str(sink))
    batches = [written(folder) for folder in sorted(sink.glob("[0-9]*"), key=lambda folder: int(folder.name))]
    assert batches[1] == last
    assert len(batches) > 3
    same([row for batch in batches for row in batch], serial(files))


def written(folder: Path) -> list[dict[str, Any]]:
    """The rows of a folder of Parquet files."""
    return in_order(parquet.read_table(folder).to_pylist())
