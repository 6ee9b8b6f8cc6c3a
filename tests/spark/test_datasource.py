"""The data source: the rows that ``read_table`` gives, for every path, table, column and option."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pytest
from pyspark.errors import AnalysisException, PythonException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from msmqwire import spark as msmq
from msmqwire.capture import TABLES
from msmqwire.spark import pipeline
from tests.capture import build
from tests.capture.stream_oracle import SYN
from tests.spark.captures import CAPTURES, EXAMPLES, LOCAL, OTHER, SESSION, without_a_segment
from tests.spark.rows import as_dicts, in_spark_types, read_table


def load(spark: SparkSession, path: Any, schema: str | None = None, **options: str) -> DataFrame:
    reader = spark.read.format("msmq").options(**options)
    return (reader if schema is None else reader.schema(schema)).load(path)


def assert_rows(frame: DataFrame, *files: str, table: str = "topology", least: int = 4, **options: Any) -> None:
    """The frame has the rows of ``read_table``, in their order."""
    found = frame.toArrow()
    assert found.num_rows >= least
    assert found.equals(in_spark_types(read_table(list(files), table, **options), found.schema))


@pytest.mark.parametrize(
    ("files", "table", "guid"),
    [
        (CAPTURES, "topology", "text"),
        (CAPTURES, "topology", "binary"),
        ([SESSION], "notifications", "text"),
        ([SESSION], "messages", "text"),
        ([SESSION], "sessions", "text"),
    ],
)
def test_rows_equal_those_of_read_table(spark: SparkSession, files: list[str], table: str, guid: Any) -> None:
    """Without registration: Spark finds pyspark_msmq."""
    assert_rows(load(spark, files, table=table, guid=guid), *files, table=table, guid=guid)


def test_paths(spark: SparkSession, tmp_path: Path) -> None:
    """A file, a glob, a folder, a list, a file URI; other files of a folder are left out."""
    folder = tmp_path / "captures"
    (folder / "below").mkdir(parents=True)
    for file in CAPTURES:
        shutil.copy(file, folder)
    (folder / "_SUCCESS").touch()
    (folder / ".hidden").touch()
    one, other = copies = sorted(map(str, folder.glob("*.pcap*")))
    msmq.register(spark)  # which changes nothing
    for path in (f"{folder}/*.pcap*", str(folder), [other, str(folder)]):
        assert_rows(load(spark, path, "file string, frame bigint"), *copies)
    assert_rows(load(spark, f"file://{one}", "file string, frame bigint"), one)


def test_a_data_source_that_spark_finds_stays(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another one in its place is started with the Python of executors, which the driver may not have."""
    registered: list[object] = []
    monkeypatch.setattr(type(spark.dataSource), "register", lambda _, source: registered.append(source))
    msmq.register(spark)
    assert not registered
    assert_rows(load(spark, OTHER, "file string, frame bigint"), OTHER)


def test_a_narrower_schema_gives_its_columns_in_its_order(spark: SparkSession) -> None:
    frame = load(spark, OTHER, "servers array<struct<name: string, ip: boolean, ipx: boolean>>, time_ns bigint")
    assert frame.columns == ["servers", "time_ns"]
    assert_rows(frame, OTHER)


@pytest.mark.parametrize(
    "kind", ["captures", *(pytest.param(each, marks=pytest.mark.long) for each in ("lake", "stream"))]
)
def test_columns_of_a_schema_are_named_in_any_case(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    """As everywhere in Spark; the rows have the names that the schema has."""
    schema, columns = "FILE string, Time_NS bigint, TYPE string", ["FILE", "Time_NS", "TYPE"]
    if kind == "lake":
        pipeline.run(spark, LOCAL, str(tmp_path / "lake"))
        found = spark.read.format("msmq").schema(schema).option("lake", str(tmp_path / "lake")).load()
    elif kind == "stream":
        stream = spark.readStream.format("msmq").schema(schema).load(LOCAL)
        writer = stream.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "log"))
        writer.trigger(availableNow=True).start(str(tmp_path / "rows")).awaitTermination()
        found = spark.read.parquet(str(tmp_path / "rows"))
    else:
        found = load(spark, LOCAL, schema)
    assert found.columns == columns
    rows = load(spark, LOCAL, schema.lower())
    assert [tuple(row) for row in found.orderBy("time_ns").collect()] == [tuple(row) for row in rows.collect()] != []
    assert found.where("type = 'reply'").count() == rows.where("type = 'reply'").count() > 0


def test_dropmalformed_leaves_out_rows_with_a_fault(spark: SparkSession) -> None:
    everything = load(spark, OTHER).toArrow()
    good = everything.filter(pc.is_null(everything["fault"]))
    assert 0 < len(good) < len(everything)
    assert load(spark, OTHER, mode="dropmalformed").toArrow().equals(good)
    narrow = load(spark, OTHER, "frame bigint", mode="DROPMALFORMED").toArrow()
    assert narrow.equals(good.select(["frame"]))


def test_failfast_names_file_frame_fault_and_bytes(spark: SparkSession) -> None:
    assert_rows(load(spark, LOCAL, "frame bigint", mode="FAILFAST"), LOCAL)
    message = rf"truncated: DirectoryServiceServerArray at byte 64: frame 9 of {OTHER}, 88 bytes: 00020000"
    with pytest.raises(PythonException, match=message):
        load(spark, OTHER, mode="FAILFAST").collect()


@pytest.mark.parametrize(
    ("source", "table", "message"),
    [
        (LOCAL, "topology", r"1 frame malformed; the first at byte \d+: the file ends inside"),
        (SESSION, "messages", r"\d+ gaps?, [\d,]+ bytes missing.*; the first at byte"),
    ],
)
def test_a_capture_that_is_incomplete(
    spark: SparkSession, tmp_path: Path, source: str, table: str, message: str
) -> None:
    """Its rows are there; FAILFAST ends the job."""
    incomplete = tmp_path / "incomplete.pcap"
    if table == "topology":
        incomplete.write_bytes(Path(source).read_bytes()[:-20])
    else:
        without_a_segment(Path(source), incomplete)
    assert_rows(load(spark, str(incomplete), table=table), str(incomplete), table=table, least=3)
    for options in ({}, {"ignoreCorruptFiles": "true"}):
        with pytest.raises(PythonException, match=rf"incomplete\.pcap: {message}"):
            load(spark, str(incomplete), table=table, mode="FAILFAST", **options).collect()


def test_a_file_that_is_no_capture_is_an_error_with_its_name(spark: SparkSession, tmp_path: Path) -> None:
    other = tmp_path / "notes.txt"
    other.write_text("not a capture\n" * 10)
    rows = load(spark, LOCAL).collect()
    assert load(spark, [LOCAL, str(other)]).collect() == rows
    for options in ({"mode": "DROPMALFORMED"}, {"ignoreCorruptFiles": "false"}):
        with pytest.raises(PythonException, match=r"notes\.txt: begins with 6e 6f 74 20"):
            load(spark, [LOCAL, str(other)], **options).collect()


def test_one_named_file_that_is_no_capture_is_refused_by_the_driver(spark: SparkSession, tmp_path: Path) -> None:
    other = tmp_path / "notes.txt"
    other.write_text("not a capture\n" * 10)
    message = r"notes\.txt: begins with 6e 6f 74 20.*; with ignoreCorruptFiles=true it has no rows"
    with pytest.raises(AnalysisException, match=message):
        load(spark, str(other))
    with pytest.raises(AnalysisException, match=message):
        load(spark, str(other), "frame bigint").collect()
    assert load(spark, str(other), ignoreCorruptFiles="true").collect() == []
    with pytest.raises(AnalysisException, match=message):
        load(spark, f"file://{other}")
    link = tmp_path / "link.pcap"
    link.symlink_to(tmp_path / "gone.pcap")
    with pytest.raises(AnalysisException, match=r"No such file or directory: '.*link\.pcap'"):
        load(spark, str(link))


@pytest.mark.long
def test_the_setting_of_spark_about_corrupt_files_is_honoured(spark: SparkSession, tmp_path: Path) -> None:
    """The option comes first, then the setting where the session has it, then the mode."""
    other = tmp_path / "notes.txt"
    other.write_text("not a capture\n" * 10)
    paths, setting = [LOCAL, str(other)], "spark.sql.files.ignoreCorruptFiles"
    rows = load(spark, LOCAL).count()
    session = spark.newSession()
    session.conf.set(setting, "false")
    assert load(session, paths, ignoreCorruptFiles="true").count() == rows
    with pytest.raises(PythonException, match=r"notes\.txt: begins with 6e 6f 74 20"):
        load(session, paths).count()
    session.conf.set(setting, "true")
    assert load(session, paths, mode="DROPMALFORMED").count() == load(session, LOCAL, mode="DROPMALFORMED").count()
    with pytest.raises(PythonException, match=r"notes\.txt: begins with 6e 6f 74 20"):
        load(session, paths, ignoreCorruptFiles="false").count()


@pytest.mark.long
def test_tables_in_any_case(spark: SparkSession) -> None:
    assert load(spark, LOCAL, table="TOPOLOGY").collect() == load(spark, LOCAL).collect()


def test_files_are_chosen_by_name_and_time(spark: SparkSession, tmp_path: Path) -> None:
    for day, name in enumerate(("a.pcap", "b.pcap", "c.txt"), 1):
        shutil.copy(LOCAL, tmp_path / name)
        os.utime(tmp_path / name, (day * 86400, day * 86400))

    def names(**options: str) -> set[str]:
        return {Path(row.file).name for row in load(spark, str(tmp_path), "file string", **options).collect()}

    assert names(pathGlobFilter="*.pcap") == {"a.pcap", "b.pcap"}
    assert names(modifiedAfter="1970-01-02") == {"b.pcap", "c.txt"}
    assert names(modifiedBefore="1970-01-03") == {"a.pcap"}
    assert names(pathGlobFilter="*.pcapng") == set()


@pytest.mark.parametrize(
    "clauses",
    [
        "OPTIONS (`table` 'sessions', ports '1801') LOCATION '{}'",
        pytest.param("OPTIONS (path '{}', TABLE 'sessions', ports 1801)", marks=pytest.mark.long),
    ],
)
def test_a_table_of_a_catalog_keeps_its_options(spark: SparkSession, clauses: str) -> None:
    path = str(EXAMPLES / "message-session.pcap")
    spark.sql(f"CREATE TABLE of_captures USING msmq {clauses.format(path)}")
    try:
        found = spark.table("of_captures").drop("time").collect()
        assert found == load(spark, path, table="sessions", ports="1801").drop("time").collect()
        assert len(found) > 1
    finally:
        spark.sql("DROP TABLE of_captures")


def test_a_table_of_a_catalog_with_columns_is_refused(spark: SparkSession) -> None:
    """Spark passes none of its options."""
    spark.sql(f"CREATE TABLE with_columns (frame BIGINT) USING msmq LOCATION '{LOCAL}'")
    try:
        with pytest.raises(AnalysisException, match=r"no path: .*, or CREATE TABLE without columns: of a table with"):
            spark.table("with_columns").collect()
    finally:
        spark.sql("DROP TABLE with_columns")


@pytest.mark.parametrize(
    ("path", "schema", "options", "message"),
    [
        (
            LOCAL,
            None,
            {"tables": "topology"},
            "tables: no such option; there are table, ports, copies, addresses, since",
        ),
        ("/no/capture.pcap", None, {}, "/no/capture.pcap: there is no such file or folder"),
        ("gopher://host/captures", None, {}, "gopher://host: Protocol not known: gopher"),
        (str(EXAMPLES / "*.nothing"), None, {}, r"no capture matches '.*\.nothing'"),
        (
            LOCAL,
            "frames bigint",
            {},
            "'frames': no such column of topology; it has file, frame, first_frame",
        ),
        (LOCAL, "frame int", {}, "frame is bigint in topology; the schema says int"),
        (LOCAL, StructType([]), {}, "the schema has no column"),
        (LOCAL, "frame bigint, type string, FRAME bigint", {}, "'frame': the schema has this column twice"),
        (LOCAL, "frame bigint not null", {}, "frame may be null in topology; the schema says it is not"),
    ],
)
def test_mistakes_are_reported_before_anything_is_read(
    spark: SparkSession, path: str, schema: Any, options: dict[str, str], message: str
) -> None:
    with pytest.raises(AnalysisException, match=message):
        load(spark, path, schema, **options).collect()


@pytest.mark.long
def test_ports(spark: SparkSession) -> None:
    """Port 53 in place of 1801: DNS packets are no discovery packets, and their rows say so."""
    rows = as_dicts(load(spark, LOCAL, ports="53"))
    assert [row["frame"] for row in rows] == [2, 3]
    assert all(row["fault"] or row["violations"] for row in rows)
    assert load(spark, LOCAL, ports="53, 1801").count() == 2 + 4


@pytest.mark.parametrize("module", ["source.datasource", "functions.decoder"])
def test_workers_import_no_pandas(module: str) -> None:
    """The processes that Spark starts to plan a read, to read, and to run Arrow functions need no pandas."""
    code = f"import sys, msmqwire.spark.{module}; sys.exit('pandas' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_tasks_of_the_pipeline_import_no_pandas(tmp_path: Path) -> None:
    """Nor do those that decode captures into files of a lake: packets of all tables, faults, other protocols."""
    foreign = tmp_path / "foreign.pcap"
    foreign.write_bytes(build.pcap([build.segment(b"", 0, SYN), build.segment(b"GET / HTTP/1.0\r\n\r\n", 1)]))
    captures = [LOCAL, OTHER, SESSION, str(foreign)]
    program = """\
import json, sys
import numpy as np, pyarrow as pa
from msmqwire.capture import TABLES
from msmqwire.spark import pipeline
from msmqwire.columns.arrow_arrays import integers
from msmqwire.spark.lake.planning import identify
from msmqwire.spark.lake.storage import Storage
from msmqwire.spark.lake.decoding import Decoding, Stage
from msmqwire.spark.source.scan import ScanOptions
storage = Storage.of(sys.argv[1])
text = json.dumps([[name, 1 << 20, identify(name, {}), ""] for name in sys.argv[2:]]).encode()
with storage.create("parts") as file:
    file.write(text)
stage = Stage(storage, "parts", [0, len(text)], Decoding(storage, ScanOptions(tuple(TABLES)), "snappy"))
(result,) = stage.run(iter([pa.record_batch({"id": integers(np.arange(1))})]))
sys.exit(len(result) != 1 or "pandas" in sys.modules)
"""
    lake = tmp_path / "lake"
    lake.mkdir()
    subprocess.run([sys.executable, "-c", program, lake, *captures], check=True)
    assert {path.relative_to(lake).parts[0] for path in lake.rglob("*.parquet")} == {*TABLES, "faults"}
