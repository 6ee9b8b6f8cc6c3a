"""Functions, table functions, data source and pipeline through Spark Connect, on a server of its own."""

from __future__ import annotations

import os
import re
import signal
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
from pyspark.errors import AnalysisException, PythonException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from msmqwire import spark as msmq
from msmqwire.capture import TABLES
from msmqwire.insight import SECTIONS
from msmqwire.insight import summarize as summarize_alone
from msmqwire.spark import pipeline
from msmqwire.spark.functions import (
    decode_frame,
    decoder_udf,
    decoder_udtf,
)
from msmqwire.spark.insight import detect, summarize
from msmqwire.spark.lake import read
from msmqwire.spark.streams import read_streams
from tests import vectors
from tests.spark import test_streams
from tests.spark.captures import ROOT
from tests.spark.lake_runs import move
from tests.spark.rows import as_dicts, in_spark_types, notification_rows, read_table, topology_rows
from tests.spark.submit import spark_submit
from tests.spark.test_following import rotated, serial, traffic, write
from tests.spark.test_streaming import same

pytestmark = pytest.mark.long

SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"
CAPTURES = f"{ROOT}/examples/*.pcap*"
PACKETS: list[bytes | None] = [*(vector.data for vector in vectors.load("mqsd")), None, b""]
THREE = vectors.get("mqcn", "three-updates").data


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where the server answers."""
    where = [f"--conf=spark.connect.grpc.binding.{name}" for name in ("address=127.0.0.1", "port=0")]
    directory = tmp_path_factory.mktemp("connect")
    with spark_submit("--master=local[2,4]", "--class", SERVER, *where, "spark-internal", directory=directory) as run:
        assert run.stdout is not None
        lines = []
        for line in run.stdout:
            lines.append(line)
            if started := re.search(r"Spark Connect server started at: (\S+)", line):
                break
        else:
            pytest.fail("".join(lines))
        # What it says later is read as well, or it waits for a reader some day
        reader = threading.Thread(target=run.stdout.read, daemon=True)
        reader.start()
        yield f"sc://{started[1]}"


def session_of(server: str) -> Any:
    """A new session; every run collects this file, and the modules of Connect take a quarter of a second to import."""
    from pyspark.sql.connect.session import SparkSession as ConnectSession

    return ConnectSession.builder.remote(server).create()


@pytest.fixture(scope="module")
def connect(server: str) -> Iterator[SparkSession]:
    """A session whose functions are Connect's, beside the classic one that this process may have."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPARK_CONNECT_MODE_ENABLED", "1")
        session = session_of(server)
        session.conf.set("spark.sql.session.timeZone", "UTC")
        yield session
        session.stop()


def payload_frame(spark: SparkSession, payloads: Sequence[bytes | None]) -> DataFrame:
    frame = spark.createDataFrame(list(enumerate(payloads)), "row int, payload binary")
    frame.createOrReplaceTempView("payloads")
    return frame


def test_it_is_connect(connect: SparkSession) -> None:
    assert type(connect).__module__ == "pyspark.sql.connect.session"
    with pytest.raises(Exception, match="JVM_ATTRIBUTE_NOT_SUPPORTED"):
        connect._jvm  # noqa: B018


@pytest.mark.parametrize("form", ["arrow", "pandas"])
def test_functions(connect: SparkSession, form: Any) -> None:
    some = [payload for payload in PACKETS if payload is not None]
    packet = decoder_udf("topology", form=form)("payload").alias("packet")
    packets = payload_frame(connect, some).select("row", packet)
    assert [row["packet"] for row in as_dicts(packets.orderBy("row"))] == topology_rows(some)
    changes = decoder_udf("notifications", form=form)("payload").alias("changes")
    bodies = payload_frame(connect, [THREE, None]).select(changes)
    assert [row["changes"] for row in as_dicts(bodies)] == notification_rows([THREE, None])
    names = connect.createDataFrame([("DIRECT=OS:server\\orders",)], "text string")
    parsed = names.select(decoder_udf("format_names", form=form)("text").alias("name"))
    assert [row["name"]["queue"] for row in as_dicts(parsed)] == ["orders"]


def test_frames_and_sql(connect: SparkSession) -> None:
    expected = [{"row": row, "type": packet and packet["type"]} for row, packet in enumerate(topology_rows(PACKETS))]
    decoded = decode_frame(payload_frame(connect, PACKETS), "payload", "topology", keep=["row"], columns=["type"])
    assert as_dicts(decoded.orderBy("row")) == expected
    msmq.register(connect)
    connect.udtf.register("types", decoder_udtf("topology", keep="row int", columns=["type"]))
    assert as_dicts(connect.sql("SELECT * FROM types(TABLE(payloads)) ORDER BY row")) == expected
    packets = connect.sql("SELECT msmq_decode_topology(payload) AS packet FROM payloads ORDER BY row")
    assert [row["packet"] for row in as_dicts(packets)] == topology_rows(PACKETS)


def test_an_error_of_a_worker_arrives(connect: SparkSession) -> None:
    frame = payload_frame(connect, [THREE[:30]])
    with pytest.raises(PythonException, match="row 0 of its partition, 30 bytes"):
        decode_frame(frame, "payload", "notifications", mode="FAILFAST").collect()


def test_a_killed_worker_loses_and_doubles_nothing(connect: SparkSession, tmp_path: Path) -> None:
    died = tmp_path / "died"

    def die_once(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        if not died.exists():
            died.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        yield from batches

    payloads = payload_frame(connect, PACKETS).mapInArrow(die_once, "row int, payload binary")
    decoded = decode_frame(payloads, "payload", "topology", keep="row", columns=["type"])
    assert sorted(row.row for row in decoded.collect()) == list(range(len(PACKETS)))
    assert died.exists()


def test_the_data_source_is_found_and_can_be_registered(server: str, connect: SparkSession) -> None:
    with read_table(CAPTURES, "topology") as reader:
        there = sum(batch.num_rows for batch in reader)
    fresh = session_of(server)
    try:
        assert fresh.read.format("msmq").load(CAPTURES).count() == there > 0
    finally:
        fresh.stop()
    msmq.register(connect)
    replies = connect.read.format("msmq").option("table", "topology").load(CAPTURES).where("type = 'reply'")
    assert replies.count() == 5


@pytest.mark.parametrize("table", TABLES)
def test_every_table_of_the_data_source(connect: SparkSession, table: str) -> None:
    """In every column the rows of the single machine, in their order."""
    found = connect.read.format("msmq").option("table", table).load(CAPTURES).toArrow()
    assert found.num_rows > 3
    assert found.equals(in_spark_types(read_table(CAPTURES, table), found.schema))


def test_errors_of_the_data_source_arrive(connect: SparkSession) -> None:
    source = connect.read.format("msmq").option("mode", "FAILFAST")
    with pytest.raises(PythonException, match=r"truncated: DirectoryServiceServerArray at byte 64: frame 9 of "):
        source.load(CAPTURES).collect()
    with pytest.raises(AnalysisException, match=r"no capture matches '/nowhere/\*\.pcap'"):
        source.load("/nowhere/*.pcap").collect()


def test_a_folder_that_is_followed(connect: SparkSession, tmp_path: Path) -> None:
    """Streams that go on from file to file, each row once; and the error that ends a query."""
    captures, table = tmp_path / "captures", tmp_path / "table"
    captures.mkdir()

    def follow() -> None:
        rows = connect.readStream.format("msmq").option("table", "messages").load(str(captures))
        writer = rows.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "log"))
        writer.trigger(availableNow=True).start(str(table)).awaitTermination()

    files = write(captures, rotated(traffic(30), 3, 2))
    follow()
    same(parquet.read_table(table).to_pylist(), serial(files))
    os.truncate(files[2], 500)
    with pytest.raises(StreamingQueryException, match=r"sensor-002\.pcap: has 500 bytes and had \d+"):
        follow()


def test_streams_across_files(connect: SparkSession, tmp_path: Path) -> None:
    header, frames = test_streams.records(test_streams.SESSION)
    files = test_streams.share(tmp_path / "files", header, [[frame] for frame in frames])
    rows = test_streams.found(read_streams(connect, files, "messages", partitions=2))
    assert rows == test_streams.serial(files, "messages")
    alone = [row for file in files for row in test_streams.serial([file], "messages")]
    assert sum(row["fault"] is None for row in rows) > sum(row["fault"] is None for row in alone)


def test_the_pipeline(connect: SparkSession, tmp_path: Path) -> None:
    summary = pipeline.run(connect, CAPTURES, str(tmp_path / "lake"))
    assert summary.frames == 39
    assert read(connect, tmp_path / "lake", "topology").count() == summary.rows["topology"] == 14
    move(tmp_path / "lake", "topology", every=2)
    assert read(connect, tmp_path / "lake", "topology").where("day IS NOT NULL").count() == 14


def test_summaries_and_findings(connect: SparkSession) -> None:
    found, expected = summarize(connect, CAPTURES), summarize_alone(CAPTURES)
    for name in SECTIONS:
        assert found.section(name).to_pylist() == expected.section(name).to_pylist()
    assert [each.rule for each in detect(connect, CAPTURES, expected=["10.20.1.10"]).findings()] == [
        "unexpected-directory-server"
    ] * 2
    found.close()
