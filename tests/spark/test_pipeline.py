"""The pipeline: the tables of the lake, the counts of each capture, and the summary."""

from __future__ import annotations

import datetime
import gzip
import io
import random
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from pyspark.errors import PythonException
from pyspark.sql import SparkSession

from msmqwire.capture import TABLES, StreamStats
from msmqwire.capture.files.listing import SourceFile
from msmqwire.errors import DecodeError
from msmqwire.spark import lake as lakes
from msmqwire.spark import pipeline
from msmqwire.spark.lake import writing
from msmqwire.spark.lake.accounting import AccountingError, SourceAccount, check_files
from msmqwire.spark.lake.schemas import file_columns
from msmqwire.spark.lake.storage import Storage
from msmqwire.spark.lake.writing import DayFiles, WrittenFile
from msmqwire.spark.source.planning import pack, task_size
from msmqwire.spark.source.scan import Scan, ScanOptions
from tests.capture import build
from tests.reference import mqsd_cases
from tests.spark.captures import (
    CAPTURES,
    DAY,
    EXAMPLES,
    LOCAL,
    MONDAY,
    OTHER,
    PRINTED,
    SESSION,
    frame,
    packets,
    without_a_segment,
    write_capture,
)
from tests.spark.lakes import ALL_TABLES, accounts, assert_rows, files_of, read
from tests.spark.rows import as_dicts
from tests.spark.tasks import TASKS


def files(lake: Path) -> set[str]:
    return {str(path.relative_to(lake)) for path in lake.rglob("*") if path.is_file()}


def test_every_table_and_the_counts_add_up(spark: SparkSession, tmp_path: Path) -> None:
    """A stream that lost bytes says so, and the counts add up without them."""
    gap, lake = tmp_path / "gap.pcap", tmp_path / "lake"
    without_a_segment(Path(SESSION), gap)
    sources = [*CAPTURES, SESSION, str(gap)]
    steps: list[pipeline.Progress] = []
    summary = pipeline.run(spark, sources, lake, progress=steps.append)
    assert_rows(lake, *sources)
    source = spark.read.format("msmq").load(CAPTURES)
    assert lakes.read(spark, lake, "topology").drop("day", "capture").schema == source.schema
    faulty = [row for row in read(lake).to_pylist() if row["fault"]]
    assert read(
        lake, "faults", ["file", "frame", "table", "code", "field", "offset", "value", "needed"]
    ).to_pylist() == [
        {"file": row["file"], "frame": row["frame"], "table": "topology", **row["fault"]} for row in faulty
    ]
    local, other, whole, cut = (accounts(lake)[source] for source in sources)
    for row in (local, other, whole, cut):
        assert row["frames"] == row["payloads"] + row["segments"] + row["fragments"] + row["other"] + row["malformed"]
        found = dict(row["rows"])
        assert row["payloads"] + row["packets"] == found["topology"] + found["messages"] + found["sessions"]
    assert dict(other["faults"]) == {"truncated": 1, "bad_flag": 1, "bad_count": 1}
    assert dict(whole["rows"]) == {"topology": 0, "notifications": 4, "messages": 5, "sessions": 7}
    assert local["problem"] is None
    assert any("are missing" in loss["what"] for loss in cut["losses"])
    assert summary.rows == sum((Counter(dict(row["rows"])) for row in accounts(lake).values()), Counter())
    assert (summary.sources, summary.bytes) == (4, sum(Path(source).stat().st_size for source in sources))
    assert summary.lost >= cut["streams"]["gaps"] > 0
    assert f"1 gap, {cut['streams']['missing']:,} bytes missing" in str(summary)
    assert (steps[-1].captures, steps[-1].total, steps[-1].frames) == (4, 4, summary.frames)

    # Fewer tables: the capture's rows in others are removed, and its session packets are no payloads
    pipeline.run(spark, SESSION, lake, tables=("notifications",))
    again = accounts(lake)[SESSION]
    assert (dict(again["rows"]), again["packets"], again["streams"]["unselected"]) == ({"notifications": 4}, 5, 5)
    assert_rows(lake, *CAPTURES, gap, tables=("messages", "sessions"))


def test_a_compressed_capture_that_is_truncated(tmp_path: Path) -> None:
    cut = tmp_path / "cut.pcap.gz"
    cut.write_bytes(gzip.compress(Path(OTHER).read_bytes())[:-200])
    summary = pipeline.run(TASKS, str(cut), tmp_path / "lake")
    assert (summary.truncated_files, accounts(tmp_path / "lake")[str(cut)]["truncated_files"]) == (1, 1)
    assert_rows(tmp_path / "lake", cut, tables=("topology",))
    assert "1 compressed file not read to the end" in str(summary)


def test_messages_that_cannot_be_decoded_count_without_their_table(tmp_path: Path) -> None:
    path = tmp_path / "bad.pcap"
    path.write_bytes(build.pcap([build.segment(build.message(b"no message"), 0)]))
    summary = pipeline.run(TASKS, str(path), tmp_path / "lake", tables="notifications")
    assert (summary.faults.total(), summary.unread, summary.lost) == (0, 1, 1)
    assert "1 message with faults; the table messages shows them" in str(summary)
    summary = pipeline.run(TASKS, str(path), tmp_path / "lake")
    assert (summary.faults.total(), summary.unread, summary.lost) == (1, 1, 0)
    assert "the table messages" not in str(summary)


@pytest.mark.parametrize("content", [True, b"no capture, but a file of notes\n", None])
def test_failfast_shows_the_packet_of_a_stream(tmp_path: Path, content: bytes | bool | None) -> None:
    """Though its file has changed since: an error of the second reading would hide the fault."""
    path, packet = tmp_path / "bad.pcap", build.message(b"no message")
    data = build.pcap([build.segment(packet, 0)])
    source = io.BytesIO(data)
    source.name = str(path)
    shown = "byte 0 of its stream"
    if content is None:
        path.mkdir()
    elif isinstance(content, bytes):
        path.write_bytes(content)
    else:
        path.write_bytes(data)
        shown = f"{len(packet)} bytes: {packet.hex(' ', 4)}"
    scan = Scan(ScanOptions(("topology", "messages"), "FAILFAST"))
    with pytest.raises(DecodeError, match=rf"frame 1 of .*bad\.pcap, {shown}"):
        list(scan.batches(source))


def test_readers_can_leave_out_files_by_their_statistics(tmp_path: Path) -> None:
    pipeline.run(TASKS, [*CAPTURES, SESSION], tmp_path)
    for name in ("topology", "messages"):
        files = pa.table(DeltaTable(tmp_path / name).get_add_actions(flatten=True)).to_pylist()
        assert files
        for file in files:
            rows = pq.ParquetFile(tmp_path / name / file["path"]).read()
            for column in ("capture", "file", "time", "src", "dst"):
                found = (pc.min(rows[column]).as_py(), pc.max(rows[column]).as_py())
                assert (file[f"min.{column}"], file[f"max.{column}"]) == found, column
                assert file[f"null_count.{column}"] == rows[column].null_count


def test_small_captures_are_put_together_for_a_task() -> None:
    """Opening one counts as a quarter of a MiB, and a task has 256 of them."""
    for captures, parts in ((256, 1), (257, 2), (512, 2), (513, 3)):
        files = [SourceFile(f"{number}.pcap", 0) for number in range(captures)]
        found = [len(task) for task in pack(files, task_size(files))]
        assert found == [256] * (parts - 1) + [captures - 256 * (parts - 1)]


def test_running_again_reads_nothing(tmp_path: Path) -> None:
    pipeline.run(TASKS, CAPTURES, tmp_path)
    names = files(tmp_path)
    summary = pipeline.run(TASKS, CAPTURES[::-1], tmp_path)
    assert (summary.sources, summary.known, summary.duplicates) == (0, 2, [])
    assert str(summary).splitlines()[1:] == ["2 captures already in the lake"]
    assert files(tmp_path) == names
    again = pipeline.run(TASKS, CAPTURES, tmp_path, overwrite=True)
    assert (again.sources, again.known) == (2, 0)
    assert_rows(tmp_path, *CAPTURES)
    assert [(one.number, one.captures, one.rows) for one in lakes.history(tmp_path)] == [(2, 2, 14), (1, 2, 14)]
    # Nothing but Delta tables
    assert {path.name for path in tmp_path.iterdir()} == set(ALL_TABLES)


def test_rows_are_sorted_by_day(spark: SparkSession, tmp_path: Path) -> None:
    """Times that jump between days, midnight to the nanosecond."""
    rng = random.Random(7)
    payloads = [*mqsd_cases.cases(300, seed=7), PRINTED[0], PRINTED[1]]
    times = [MONDAY + rng.randrange(3 * DAY) for _ in payloads[:-2]] + [MONDAY + DAY - 1, MONDAY + DAY]
    capture = write_capture(tmp_path / "days.pcap", zip(times, map(frame, payloads), strict=True))
    summary = pipeline.run(spark, capture, tmp_path / "lake", compression="zstd")
    assert_rows(tmp_path / "lake", capture)
    days = lakes.read(spark, tmp_path / "lake", "topology").orderBy("frame").select("day").collect()
    monday = datetime.date(2024, 3, 4)
    assert [row.day for row in days] == [monday + datetime.timedelta((time - MONDAY) // DAY) for time in times]
    assert Counter(read(tmp_path / "lake", "faults")["code"].to_pylist()) == summary.faults


def test_files_that_are_no_captures_are_reported_and_stop_nothing(tmp_path: Path) -> None:
    folder, lake = tmp_path / "captures", tmp_path / "lake"
    folder.mkdir()
    for file in CAPTURES:
        shutil.copy(file, folder)
    (folder / "empty.pcap").touch()
    (folder / "notes.txt").write_text("not a capture\n" * 10)
    (folder / "gone.pcap").symlink_to(folder / "nowhere")
    cut = Path(write_capture(folder / "cut.pcap", packets(3)))
    cut.write_bytes(cut.read_bytes()[:-20])
    summary = pipeline.run(TASKS, [str(folder), str(folder / "gone.pcap")], lake)
    found = {Path(file).name: row for file, row in accounts(lake).items()}
    assert "is empty" in found["empty.pcap"]["problem"]
    assert "begins with 6e 6f 74 20" in found["notes.txt"]["problem"]
    assert "No such file" in found["gone.pcap"]["problem"]
    assert (found["gone.pcap"]["digest"], found["notes.txt"]["bytes"]) == (None, 140)
    assert len(found) == 6
    assert len(summary.problems) == 3
    assert "not read: " in str(summary)
    (loss,) = found["cut.pcap"]["losses"]
    assert loss["what"].startswith("the file ends inside this record")
    assert (found["cut.pcap"]["malformed"], summary.malformed) == (1, 1)
    assert_rows(lake, *(folder / name for name in ("cut.pcap", "local-site.pcap", "other-site.pcapng")))


@pytest.mark.parametrize("name", ["notes.txt", "other-site.pcapng"])
def test_failfast_commits_nothing(spark: SparkSession, tmp_path: Path, name: str) -> None:
    (tmp_path / "notes.txt").write_text("not a capture\n" * 10)
    shutil.copy(OTHER, tmp_path)
    with pytest.raises(PythonException, match=name):
        pipeline.run(spark, [LOCAL, str(tmp_path / name)], tmp_path / "lake", mode="FAILFAST")
    assert not files_of(tmp_path / "lake", "accounting")
    assert not any(name.endswith(".parquet") for name in files(tmp_path / "lake"))
    assert pipeline.run(spark, LOCAL, tmp_path / "lake", mode="FAILFAST").sources == 1


@pytest.mark.long
def test_a_lake_without_rows_can_be_read(spark: SparkSession, tmp_path: Path) -> None:
    quiet = write_capture(tmp_path / "quiet.pcap", [(MONDAY, frame(b"dns", port=53))])
    summary = pipeline.run(spark, quiet, tmp_path / "lake")
    assert (summary.frames, summary.other) == (1, 1)
    assert lakes.read(spark, tmp_path / "lake", "topology").where("day >= '1970-01-01'").count() == 0
    (account,) = as_dicts(lakes.read(spark, tmp_path / "lake", "accounting"))
    assert (account["first_time"], account["rows"]["topology"]) == (None, 0)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"tables": ("topology", "faults")}, "table='faults' is not one of topology"),
        ({"tables": ()}, "no table"),
        ({"mode": "DROPMALFORMED"}, "mode='DROPMALFORMED': a lake"),
        ({"mode": "LENIENT"}, "mode='LENIENT' is not one of"),
        ({"compression": "lzw"}, "compression='lzw' is not one of snappy"),
    ],
)
def test_settings_are_checked_before_anything_runs(tmp_path: Path, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        pipeline.run(TASKS, LOCAL, tmp_path / "lake", **settings)
    assert not (tmp_path / "lake").exists()


# --- Without Spark: the arithmetic of the counts, and files by day ---


def written(table: str, count: int) -> WrittenFile:
    return WrittenFile(table, f"{table}.parquet", 0, count, "")


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"other": 4}, "10 frames, but 9 payloads, segments, fragments, other, unsupported and malformed"),
        ({"rows": {"topology": 3}}, "4 payloads for topology, but 3 rows of it"),
        ({"claimed": 3}, "4 payloads and packets of streams, but 3 given to tables"),
        ({"streams": StreamStats(bytes=9, framed=4, skipped=3)}, "9 bytes of streams, but 7 framed, skipped and dupli"),
        ({"faults": {"truncated": 2}}, "2 rows of faults, but 1 in its files"),
        ({"given": {"topology": 5}, "rows": {"topology": 5}}, "5 rows of topology, but 4 in its files"),
        ({"rows": {"topology": 4, "messages": 4}}, "4 rows of messages, but 0 in its files"),
    ],
)
def test_counts_that_do_not_add_up_are_refused(wrong: dict[str, Any], message: str) -> None:
    parts = [written("topology", 3), written("topology", 1), written("faults", 1)]
    right = {
        "frames": 10, "payloads": 4, "other": 5, "malformed": 1, "given": {"topology": 4}, "claimed": 4,
        "rows": {"topology": 4}, "faults": {"truncated": 1},
    }  # fmt: skip
    account = SourceAccount("some.pcap", **right)  # type: ignore[arg-type]
    account.check()
    check_files([account], parts)
    account = SourceAccount("some.pcap", **{**right, **wrong})
    with pytest.raises(AccountingError, match=f"some.pcap: {message}"):  # noqa: PT012 (one or the other)
        account.check()
        check_files([account], parts)


def test_days_without_end_keep_few_files_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "_ROW_GROUP_ROWS", 10)
    times = [None, *(MONDAY + DAY * (number % 40) for number in range(400))]
    column = pa.array([None if time is None else time // 1000 for time in times]).cast(pa.timestamp("us", "UTC"))
    batch = pa.record_batch({"time": column})
    columns = [column for column in file_columns("topology") if column.name in ("time", "capture")]
    with DayFiles(Storage.of(tmp_path), "topology", columns, "snappy", "name") as days:
        for start in range(0, len(times), 7):
            days.write(batch.slice(start, 7), str(start))
            assert len(days._open) <= 16
    counts: Counter[str] = Counter()
    for file in days.files:
        path = tmp_path / "topology" / file.path
        (day,) = pq.ParquetFile(path).read()["time"].cast(pa.date32()).unique().to_pylist()
        assert path.parent.name == f"day={writing.NO_DAY if day is None else day}"
        assert file.size == path.stat().st_size
        counts[str(day)] += file.rows
    assert sorted(counts.values()) == [1, *[10] * 40]


@pytest.mark.parametrize("table", TABLES)
def test_every_column_has_its_encoding(table: str, tmp_path: Path) -> None:
    """No column is encoded in a way that wastes space."""
    captures = sorted(map(str, EXAMPLES.glob("*.pcap*")))
    with DayFiles(Storage.of(tmp_path), table, file_columns(table), "snappy", "name") as days:
        for path in captures:
            for _, batch in Scan(ScanOptions((table,))).rows(path):
                days.write(batch, path)
    paths = [tmp_path / table / file.path for file in days.files]
    assert len({path.parent for path in paths}) == len(paths)
    row_group = pq.ParquetFile(paths[0]).metadata.row_group(0)
    for column in map(row_group.column, range(row_group.num_columns)):
        name = column.path_in_schema
        kind = pq.ParquetFile(paths[0]).schema_arrow.field(name.partition(".")[0]).type
        if name in {"frame", "first_frame", "stream_offset"} or name.endswith("_ns") or pa.types.is_timestamp(kind):
            assert "DELTA_BINARY_PACKED" in column.encodings, name
        elif name in {"request_id", "correlation_id"} or column.physical_type == "BOOLEAN" or pa.types.is_binary(kind):
            assert "RLE_DICTIONARY" not in column.encodings, name
        else:
            assert "RLE_DICTIONARY" in column.encodings, name
