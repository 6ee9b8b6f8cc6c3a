"""The pipeline: what lies in the lake afterwards, and what the accounts say of it."""

from __future__ import annotations

import datetime
import gzip
import io
import json
import os
import random
import shutil
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PythonException
from pyspark.sql import SparkSession

from msmqwire.capture import StreamStats
from msmqwire.errors import DecodeError
from msmqwire.spark import pipeline
from msmqwire.spark.lake import dayfiles, history, read
from msmqwire.spark.lake.accounting import AccountingError, SourceAccount, check_files
from msmqwire.spark.lake.dayfiles import DayFiles, WrittenFile
from msmqwire.spark.lake.storage import Storage
from msmqwire.spark.source.scan import ReadingOptions, Scan
from tests import vectors
from tests.capture import build
from tests.reference import mqsd_cases
from tests.spark.captures import DAY, MONDAY, frame, without_a_segment, write_capture
from tests.spark.lake_tables import lake_files
from tests.spark.rows import as_dicts, topology_rows
from tests.spark.test_datasource import CAPTURES, LOCAL, OTHER, SESSION, expected, found

PRINTED = [vector.data for vector in vectors.load("mqsd") if vector.section == "[MS-MQSD] 4"]


def table(spark: SparkSession, lake: Path, name: str = "topology") -> list[dict[str, Any]]:
    frame = read(spark, lake, name)
    return found(frame.drop("day", "capture")) if name != "accounting" else as_dicts(frame.orderBy("file"))


def files(lake: Path) -> set[str]:
    return {str(path.relative_to(lake)) for path in lake.rglob("*") if path.is_file()}


def test_the_samples(spark: SparkSession, tmp_path: Path) -> None:
    """The lake has the rows that format("msmq") and the single machine have; Parquet keeps Spark's types."""
    summary = pipeline.run(spark, CAPTURES, tmp_path)
    rows = expected(LOCAL, OTHER)
    assert table(spark, tmp_path) == rows
    source = spark.read.format("msmq").load(CAPTURES)
    assert read(spark, tmp_path, "topology").drop("day", "capture").schema == source.schema
    faulty = [row for row in rows if row["fault"]]
    faults = table(spark, tmp_path, "faults")
    assert [(row["file"], row["frame"], row["table"]) for row in faults] == [
        (row["file"], row["frame"], "topology") for row in faulty
    ]
    assert [{name: row[name] for name in ("code", "field", "offset")} for row in faults] == [
        row["fault"] for row in faulty
    ]
    assert summary.rows == {"topology": len(rows), "notifications": 0, "messages": 0, "sessions": 0}
    assert (summary.sources, summary.frames, summary.payloads, summary.other, summary.segments) == (2, 20, 14, 5, 1)
    assert summary.bytes == sum(os.path.getsize(file) for file in CAPTURES)
    assert "20 frames: 14 datagrams, 1 TCP segment, 0 fragments, 5 of other protocols, 0 that cannot be read" in str(
        summary
    )


def test_accounts_add_up(spark: SparkSession, tmp_path: Path) -> None:
    pipeline.run(spark, CAPTURES, tmp_path)
    local, other = table(spark, tmp_path, "accounting")
    assert (local["file"], other["file"]) == (LOCAL, OTHER)
    assert other["faults"] == {"truncated": 1, "bad_flag": 1, "bad_count": 1}
    for row in (local, other):
        assert row["frames"] == row["payloads"] + row["segments"] + row["other"] + row["damaged"]
        assert row["rows"].pop("topology") == row["payloads"] == len(expected(row["file"]))
        assert row["rows"] == {"notifications": 0, "messages": 0, "sessions": 0}
        assert row["problem"] is None
    rows = [row for row in table(spark, tmp_path) if row["file"] == LOCAL]
    microseconds = [round(local[name].timestamp() * 10**6) for name in ("first_time", "last_time")]
    assert microseconds == [rows[0]["time_ns"] // 1000, rows[-1]["time_ns"] // 1000]


def test_all_tables_of_a_session(spark: SparkSession, tmp_path: Path) -> None:
    """One reading gives every table; a stream that lost bytes says so, and the account adds up without them."""
    gap = tmp_path / "gap.pcap"
    without_a_segment(Path(SESSION), gap)
    lake = tmp_path / "lake"
    summary = pipeline.run(spark, [SESSION, str(gap)], lake)
    for name in ("topology", "notifications", "messages", "sessions"):
        rows = read(spark, lake, name).select("file", "frame", "stream_offset", "time_ns").collect()
        wanted = expected(str(gap), SESSION, table=name)
        columns = ("file", "frame", "stream_offset", "time_ns")
        assert Counter(tuple(row) for row in rows) == Counter(tuple(row[one] for one in columns) for row in wanted)
        assert summary.rows[name] == len(wanted)
    whole, cut = sorted(table(spark, lake, "accounting"), key=lambda row: row["streams"]["gaps"])
    assert (whole["file"], cut["file"]) == (SESSION, str(gap))
    assert whole["rows"] == {"topology": 0, "notifications": 4, "messages": 5, "sessions": 7}
    assert (whole["payloads"], whole["packets"], whole["losses"]) == (2, 10, [])
    for row in (whole, cut):
        assert row["frames"] == row["payloads"] + row["segments"] + row["fragments"] + row["other"] + row["damaged"]
        assert row["payloads"] + row["packets"] == row["rows"]["messages"] + row["rows"]["sessions"]
    assert any("are missing" in loss["what"] for loss in cut["losses"])
    assert summary.lost >= cut["streams"]["gaps"] > 0
    assert f"{cut['streams']['missing']:,} bytes missing in 1 gap" in str(summary)

    # Fewer tables: what the capture had in others is gone, and its session packets are no payloads
    pipeline.run(spark, SESSION, lake, tables=("notifications",))
    (again,) = [row for row in table(spark, lake, "accounting") if row["file"] == SESSION]
    assert (again["rows"], again["packets"], again["streams"]["unselected"]) == ({"notifications": 4}, 5, 5)
    assert read(spark, lake, "messages").where("file = '" + SESSION + "'").count() == 0


def test_a_compressed_capture_that_is_cut(spark: SparkSession, tmp_path: Path) -> None:
    cut = tmp_path / "cut.pcap.gz"
    cut.write_bytes(gzip.compress(Path(OTHER).read_bytes())[:-200])
    summary = pipeline.run(spark, str(cut), tmp_path / "lake")
    (account,) = table(spark, tmp_path / "lake", "accounting")
    assert (summary.cut_files, account["cut_files"]) == (1, 1)
    assert summary.rows["topology"] == len(expected(str(cut))) < len(expected(OTHER))
    assert "1 compressed capture that is cut" in str(summary)
    with pytest.raises(PythonException, match=r"cut\.pcap\.gz: .*1 files are cut"):
        pipeline.run(spark, str(cut), tmp_path / "other", mode="FAILFAST", ports=[9])


def test_messages_that_cannot_be_decoded_are_told_without_their_table(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "bad.pcap"
    path.write_bytes(build.pcap([build.segment(build.message(b"no message"), 0)]))
    summary = pipeline.run(spark, str(path), tmp_path / "lake", tables="notifications")
    assert (summary.faults.total(), summary.unread, summary.lost) == (0, 1, 1)
    assert "1 message that cannot be decoded" in str(summary)
    summary = pipeline.run(spark, str(path), tmp_path / "lake")
    assert (summary.faults.total(), summary.unread, summary.lost) == (1, 1, 0)
    assert "1 message that" not in str(summary)


def test_progress(spark: SparkSession, tmp_path: Path) -> None:
    told: list[pipeline.Progress] = []
    pipeline.run(spark, CAPTURES, tmp_path / "lake", progress=told.append)
    assert told[-1] == pipeline.Progress(2, 2, 20)
    assert told == sorted(told, key=lambda one: one.captures)


def test_failfast_shows_the_packet_out_of_a_stream(tmp_path: Path) -> None:
    path = tmp_path / "bad.pcap"
    packet = build.message(b"no message")
    path.write_bytes(build.pcap([build.segment(packet, 0)]))
    scan = Scan(ReadingOptions(("topology", "messages"), "FAILFAST"))
    with pytest.raises(DecodeError, match=rf"frame 1 of .*bad\.pcap, {len(packet)} bytes: {packet.hex(' ', 4)}"):
        list(scan.batches(str(path)))


@pytest.mark.parametrize("content", [b"", b"no capture, but a file of notes\n", None])
def test_failfast_tells_of_a_fault_though_its_file_has_changed(tmp_path: Path, content: bytes | None) -> None:
    """An error of the second look would hide the fault."""
    path = tmp_path / "bad.pcap"
    data = io.BytesIO(build.pcap([build.segment(build.message(b"no message"), 0)]))
    data.name = str(path)
    if content is None:
        path.mkdir()
    else:
        path.write_bytes(content)
    scan = Scan(ReadingOptions(("messages",), "FAILFAST"))
    with pytest.raises(DecodeError, match=r"frame 1 of .*bad\.pcap, byte 0 of its stream"):
        list(scan.batches(data))


def test_running_again_reads_nothing(spark: SparkSession, tmp_path: Path) -> None:
    pipeline.run(spark, CAPTURES, tmp_path)
    rows, names = table(spark, tmp_path), files(tmp_path)
    summary = pipeline.run(spark, CAPTURES[::-1], tmp_path)
    assert (summary.sources, summary.known, summary.duplicates) == (0, 2, [])
    assert str(summary).splitlines()[1:] == ["2 captures already in the lake"]
    assert files(tmp_path) == names
    again = pipeline.run(spark, CAPTURES, tmp_path, again=True)
    assert (again.sources, again.known) == (2, 0)
    assert table(spark, tmp_path) == rows
    assert [(one.number, one.captures, one.rows) for one in history(tmp_path)] == [(2, 2, 14), (1, 2, 14)]
    assert [path.suffix for path in (tmp_path / "_runs").iterdir()] == [".json"] * 2


def test_rows_lie_by_day(spark: SparkSession, tmp_path: Path) -> None:
    """More rows than a row group, times that jump between days, midnight to the nanosecond."""
    rng = random.Random(7)
    payloads = [*mqsd_cases.cases(3_000, seed=7), PRINTED[0], PRINTED[1]]
    times = [MONDAY + rng.randrange(3 * DAY) for _ in payloads[:-2]] + [MONDAY + DAY - 1, MONDAY + DAY]
    capture = write_capture(tmp_path / "days.pcap", zip(times, map(frame, payloads), strict=True))
    lake = tmp_path / "lake"
    summary = pipeline.run(spark, capture, lake, compression="zstd")
    rows = read(spark, lake, "topology").orderBy("frame").collect()
    monday = datetime.date(2024, 3, 4)
    assert [row.day for row in rows] == [monday + datetime.timedelta((time - MONDAY) // DAY) for time in times]
    outcomes = topology_rows(payloads, transport="udp")
    names = list(outcomes[-1] or {})
    assert [{name: row.asDict(True)[name] for name in names} for row in rows] == outcomes
    faults = Counter(row["fault"]["code"] for row in outcomes if row and row["fault"])
    assert summary.faults == faults
    assert read(spark, lake, "faults").groupBy("code").count().collect()
    assert table(spark, lake, "accounting")[0]["faults"] == faults


def test_what_is_no_capture_is_reported_and_stops_nothing(spark: SparkSession, tmp_path: Path) -> None:
    folder, lake = tmp_path / "captures", tmp_path / "lake"
    folder.mkdir()
    for file in CAPTURES:
        shutil.copy(file, folder)
    (folder / "empty.pcap").touch()
    (folder / "notes.txt").write_text("not a capture\n" * 10)
    (folder / "gone.pcap").symlink_to(folder / "nowhere")
    cut = Path(LOCAL).read_bytes()[:-20]
    (folder / "cut.pcap").write_bytes(cut)
    summary = pipeline.run(spark, [str(folder), str(folder / "gone.pcap")], lake)
    accounts = {Path(row["file"]).name: row for row in table(spark, lake, "accounting")}
    assert sorted(accounts) == [
        "cut.pcap",
        "empty.pcap",
        "gone.pcap",
        "local-site.pcap",
        "notes.txt",
        "other-site.pcapng",
    ]
    assert "is empty" in accounts["empty.pcap"]["problem"]
    assert "begins with 6e 6f 74 20" in accounts["notes.txt"]["problem"]
    assert "No such file" in accounts["gone.pcap"]["problem"]
    assert accounts["gone.pcap"]["digest"] is None
    assert accounts["notes.txt"]["bytes"] == 140
    assert len(summary.problems) == 3
    assert "not read: " in str(summary)
    (loss,) = accounts["cut.pcap"]["losses"]
    assert loss["what"].startswith("the file ends inside this record")
    assert (accounts["cut.pcap"]["damaged"], summary.damaged) == (1, 1)
    copies = [str(folder / name) for name in ("cut.pcap", "local-site.pcap", "other-site.pcapng")]
    assert table(spark, lake) == expected(*copies)

    # What could not be read and can be read now is one source, not two
    (folder / "gone.pcap").unlink()
    shutil.copy(SESSION, folder / "gone.pcap")
    pipeline.run(spark, str(folder / "gone.pcap"), lake)
    gone = [row for row in table(spark, lake, "accounting") if row["file"].endswith("gone.pcap")]
    assert [row["problem"] for row in gone] == [None]


@pytest.mark.parametrize("name", ["notes.txt", "cut.pcap", "other-site.pcapng"])
def test_failfast_commits_nothing(spark: SparkSession, tmp_path: Path, name: str) -> None:
    (tmp_path / "notes.txt").write_text("not a capture\n" * 10)
    (tmp_path / "cut.pcap").write_bytes(Path(LOCAL).read_bytes()[:-20])
    shutil.copy(OTHER, tmp_path)
    with pytest.raises(PythonException, match=name):
        pipeline.run(spark, [LOCAL, str(tmp_path / name)], tmp_path / "lake", mode="FAILFAST")
    assert not any(lake_files(tmp_path / "lake", "accounting"))
    assert {name.partition("/")[0] for name in files(tmp_path / "lake")} == {"accounting"}
    assert pipeline.run(spark, LOCAL, tmp_path / "lake", mode="FAILFAST").sources == 1


def test_a_lake_without_faults_has_an_empty_table_of_them(spark: SparkSession, tmp_path: Path) -> None:
    quiet = write_capture(tmp_path / "quiet.pcap", [(MONDAY, frame(b"dns", port=53))])
    summary = pipeline.run(spark, quiet, tmp_path / "lake")
    assert (summary.frames, summary.other) == (1, 1)
    assert read(spark, tmp_path / "lake", "faults").count() == 0
    assert read(spark, tmp_path / "lake", "topology").where("day >= '1970-01-01'").count() == 0
    (account,) = table(spark, tmp_path / "lake", "accounting")
    assert (account["first_time"], account["rows"]["topology"]) == (None, 0)
    pipeline.run(spark, CAPTURES, tmp_path / "lake")
    assert table(spark, tmp_path / "lake") == expected(LOCAL, OTHER)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"tables": ("queues",)}, "table='queues' is not one of topology"),
        ({"tables": ("topology", "faults")}, "table='faults' is not one of topology"),
        ({"tables": ()}, "no table is asked for"),
        ({"mode": "DROPMALFORMED"}, "a lake keeps an account of every payload"),
        ({"mode": "LENIENT"}, "mode='LENIENT' is not one of"),
        ({"compression": "lzw"}, "compression='lzw' is not one of snappy"),
    ],
)
def test_settings_are_checked_before_anything_runs(
    spark: SparkSession, tmp_path: Path, settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        pipeline.run(spark, LOCAL, tmp_path / "lake", **settings)
    assert not (tmp_path / "lake").exists()


# Without Spark: the account's arithmetic, and files by day


def written(table: str, rows: int) -> WrittenFile:
    return WrittenFile(table, f"{table}.parquet", 0, rows, "")


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"other": 4}, "10 frames, but 9 payloads, segments, fragments, other and damaged"),
        ({"rows": {"topology": 3}}, "4 payloads for topology, but 3 rows of it"),
        ({"claimed": 3}, "4 payloads and packets of streams, but 3 given to tables"),
        ({"streams": StreamStats(bytes=9, framed=4, skipped=3)}, "9 bytes of streams, but 7 framed, skipped and dupli"),
        ({"faults": {"truncated": 2}}, "2 rows of faults, but 1 in its files"),
        ({"given": {"topology": 5}, "rows": {"topology": 5}}, "5 rows of topology, but 4 in its files"),
        ({"rows": {"topology": 4, "messages": 4}}, "4 rows of messages, but 0 in its files"),
    ],
)
def test_an_account_that_does_not_add_up_is_refused(wrong: dict[str, Any], message: str) -> None:
    parts = [written("topology", 3), written("topology", 1), written("faults", 1)]
    right = {
        "frames": 10, "payloads": 4, "other": 5, "damaged": 1, "given": {"topology": 4}, "claimed": 4,
        "rows": {"topology": 4}, "faults": {"truncated": 1},
    }  # fmt: skip
    account = SourceAccount("some.pcap", **right)  # type: ignore[arg-type]
    account.check()
    check_files([account], parts)
    assert SourceAccount.from_dict(json.loads(json.dumps(asdict(account)))) == account
    account = SourceAccount("some.pcap", **{**right, **wrong})
    with pytest.raises(AccountingError, match=f"some.pcap: {message}"):  # noqa: PT012 (one or the other)
        account.check()
        check_files([account], parts)


def test_days_without_end_keep_few_files_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dayfiles, "_ROW_GROUP_ROWS", 10)
    times = [None, *(MONDAY + DAY * (number % 40) for number in range(400))]
    column = pa.array([None if time is None else time // 1000 for time in times]).cast(pa.timestamp("us", "UTC"))
    batch = pa.record_batch({"time": column})
    with DayFiles(Storage.of(tmp_path), "topology", batch.schema, "snappy", "name") as days:
        for start in range(0, len(times), 7):
            days.write(batch.slice(start, 7))
            assert len(days._open) <= 16
    assert not days._open
    written: Counter[str] = Counter()
    for file in days.files:
        content = pq.ParquetFile(tmp_path / "topology" / file.path).read()["time"].cast(pa.date32())
        (day,) = content.unique().to_pylist()
        assert file.path.startswith(f"day={dayfiles.NO_DAY if day is None else day}/name-")
        written[str(day)] += file.rows
    assert sorted(written.values()) == [1, *[10] * 40]
