"""The data source: the same rows as the single machine reads, whatever is asked for and however."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException, PythonException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from msmqwire import spark as msmq
from msmqwire.capture import read_table
from tests.spark.captures import without_a_segment
from tests.spark.rows import as_dicts
from tests.spark.submit import ROOT

EXAMPLES = ROOT / "examples"
LOCAL, OTHER = str(EXAMPLES / "local-site.pcap"), str(EXAMPLES / "other-site.pcapng")
CAPTURES = [LOCAL, OTHER]
SESSION = str(EXAMPLES / "message-session.pcap")


def expected(
    *files: str, table: str = "topology", guid: Any = "text", columns: list[str] | None = None
) -> list[dict[str, Any]]:
    """What ``read_table`` gives, with a time as Spark has it."""
    rows = []
    for file in files:
        for batch in read_table(file, table, guid=guid, columns=columns):
            nanoseconds = batch["time"].cast("int64").to_pylist() if "time" in batch.schema.names else []
            batch = batch.drop_columns(["time"]) if nanoseconds else batch
            part = batch.to_pylist()
            for row, time_ns in zip(part, nanoseconds, strict=False):
                row["time_ns"] = time_ns
            rows += part
    return rows


def found(frame: DataFrame) -> list[dict[str, Any]]:
    rows = as_dicts(frame)
    for row in rows:
        time = row.pop("time")
        assert round(time.timestamp() * 1_000_000) == row["time_ns"] // 1000
    return sorted(rows, key=lambda row: (row["file"], row["frame"]))


def load(spark: SparkSession, path: Any, **options: str) -> DataFrame:
    return spark.read.format("msmq").options(**options).load(path)


@pytest.mark.parametrize("guid", ["text", "binary"])
def test_rows_equal_those_of_the_single_machine(spark: SparkSession, guid: str) -> None:
    """Without registration: Spark finds pyspark_msmq."""
    rows = found(load(spark, CAPTURES, table="topology", guid=guid))
    assert len(rows) > 10
    assert rows == expected(LOCAL, OTHER, guid=guid)


@pytest.mark.parametrize("table", ["notifications", "messages", "sessions"])
def test_every_table(spark: SparkSession, table: str) -> None:
    rows = as_dicts(load(spark, SESSION, table=table))
    wanted = expected(SESSION, table=table)
    assert len(rows) == len(wanted) > 3
    for row, one in zip(rows, wanted, strict=True):
        assert {name: row[name] for name in ("frame", "stream_offset", "time_ns", "transport", "fault")} == {
            name: one[name] for name in ("frame", "stream_offset", "time_ns", "transport", "fault")
        }
        assert set(row) == {*one, *(name for name in row if name.removesuffix("_ns") in row), "time"}
    narrow = spark.read.format("msmq").option("table", table).schema("version int, frame bigint")
    if table == "notifications":
        narrow = spark.read.format("msmq").option("table", table).schema("operation string, frame bigint")
        assert as_dicts(narrow.load(SESSION)) == [{name: row[name] for name in ("operation", "frame")} for row in rows]


@pytest.mark.parametrize("mode", ["PERMISSIVE", "FAILFAST"])
def test_bytes_missing_from_streams(spark: SparkSession, tmp_path: Path, mode: str) -> None:
    gap = str(tmp_path / "gap.pcap")
    without_a_segment(Path(SESSION), Path(gap))
    frame = load(spark, gap, table="messages", mode=mode)
    if mode == "PERMISSIVE":
        assert len(as_dicts(frame)) == len(expected(gap, table="messages")) < len(expected(SESSION, table="messages"))
    else:
        with pytest.raises(PythonException, match=r"gap\.pcap: \d+ problems of TCP streams; the first at byte"):
            frame.collect()


def test_paths(spark: SparkSession, tmp_path: Path) -> None:
    """A file, a glob, a folder, a list, a file URI; and what lies in a folder without being a capture."""
    folder = tmp_path / "captures"
    (folder / "below").mkdir(parents=True)
    for file in CAPTURES:
        shutil.copy(file, folder)
    (folder / "_SUCCESS").touch()
    (folder / ".hidden").touch()
    copies = sorted(map(str, folder.glob("*.pcap*")))
    both = expected(*copies)
    assert found(load(spark, copies[0])) == expected(copies[0])
    assert found(load(spark, f"{folder}/*.pcap*")) == both
    assert found(load(spark, str(folder))) == both
    assert found(load(spark, [copies[1], str(folder)])) == both
    assert found(load(spark, f"file://{copies[0]}")) == expected(copies[0])


def test_a_narrower_schema_is_honoured_in_its_order(spark: SparkSession) -> None:
    schema = "servers array<struct<name: string, ip: boolean, ipx: boolean>>, time_ns bigint, frame bigint"
    frame = spark.read.format("msmq").schema(schema).load(OTHER)
    rows = as_dicts(frame)
    assert list(rows[0]) == ["servers", "time_ns", "frame"]
    assert rows == expected(OTHER, columns=["servers", "time", "frame"])


def test_registering_changes_nothing(spark: SparkSession) -> None:
    msmq.register(spark)
    assert found(load(spark, OTHER)) == expected(OTHER)


def test_dropmalformed_leaves_out_what_cannot_be_decoded(spark: SparkSession) -> None:
    everything = expected(OTHER)
    good = [row for row in everything if row["fault"] is None]
    assert 0 < len(good) < len(everything)
    assert found(load(spark, OTHER, mode="dropmalformed")) == good
    narrow = spark.read.format("msmq").option("mode", "DROPMALFORMED").schema("frame bigint").load(OTHER)
    assert as_dicts(narrow) == [{"frame": row["frame"]} for row in good]


def test_failfast_names_file_frame_fault_and_bytes(spark: SparkSession) -> None:
    first = next(row for row in expected(OTHER) if row["fault"])
    assert found(load(spark, LOCAL, mode="FAILFAST")) == expected(LOCAL)
    with pytest.raises(PythonException) as caught:
        load(spark, OTHER, mode="FAILFAST").collect()
    fault = first["fault"]
    assert f"{fault['code']}: {fault['field']} at byte {fault['offset']}" in str(caught.value)
    assert f"frame {first['frame']} of {OTHER}, 88 bytes: 00020000" in str(caught.value)


def test_a_cut_capture_gives_its_rows_and_fails_fast_only_where_asked(spark: SparkSession, tmp_path: Path) -> None:
    cut = tmp_path / "cut.pcap"
    cut.write_bytes(Path(LOCAL).read_bytes()[:-20])
    rows = found(load(spark, str(cut)))
    assert rows == expected(str(cut))
    assert len(rows) == len(expected(LOCAL)) - 1
    with pytest.raises(PythonException, match=r"1 frames cannot be read; the first at byte \d+: the file ends inside"):
        load(spark, str(cut), mode="FAILFAST").collect()


@pytest.mark.parametrize("mode", ["PERMISSIVE", "DROPMALFORMED"])
def test_what_is_no_capture_is_an_error_with_its_name(spark: SparkSession, tmp_path: Path, mode: str) -> None:
    other = tmp_path / "notes.txt"
    other.write_text("not a capture\n" * 10)
    with pytest.raises(PythonException, match=r"notes\.txt: begins with 6e 6f 74 20"):
        load(spark, [LOCAL, str(other)], mode=mode).collect()


@pytest.mark.parametrize(
    ("path", "options", "message"),
    [
        (LOCAL, {"tables": "topology"}, "no such option: tables; there are table, ports, addresses, since"),
        ("gopher://host/captures", {}, "gopher://host: Protocol not known: gopher"),
        (str(EXAMPLES / "*.nothing"), {}, r"no capture matches '.*\.nothing'"),
    ],
)
def test_mistakes_are_told_before_anything_is_read(
    spark: SparkSession, path: str, options: dict[str, str], message: str
) -> None:
    with pytest.raises(AnalysisException, match=message):
        load(spark, path, **options).collect()


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ("frames bigint", "'frames': no such column of topology; it has file, frame, first_frame, time, time_ns, src"),
        ("frame int", "frame is bigint in topology; the schema says int"),
        (StructType([]), "the schema names no column"),
        ("frame bigint not null", "frame may be null in topology; the schema says it is not"),
    ],
)
def test_a_schema_that_does_not_fit(spark: SparkSession, schema: str | StructType, message: str) -> None:
    with pytest.raises(AnalysisException, match=message):
        spark.read.format("msmq").schema(schema).load(LOCAL).collect()


def test_ports(spark: SparkSession) -> None:
    """Port 53 in place of 1801: DNS packets are no discovery packets, and their rows say so."""
    rows = found(load(spark, LOCAL, ports="53"))
    assert [row["frame"] for row in rows] == [2, 3]
    assert all(row["fault"] or row["violations"] for row in rows)
    assert len(found(load(spark, LOCAL, ports="53, 1801"))) == 2 + len(expected(LOCAL))
