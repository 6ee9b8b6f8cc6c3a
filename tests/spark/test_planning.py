"""What each task reads: small captures together, large ones in parts, and always the rows of the whole."""

from __future__ import annotations

import gzip
import json
import os
import pickle
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.errors import PythonException
from pyspark.sql import SparkSession
from pyspark.sql.functions import spark_partition_id

from msmqwire.capture import TABLES
from msmqwire.errors import CaptureError, DecodeError
from msmqwire.spark.source import planning
from msmqwire.spark.source.datasource import MsmqReader
from msmqwire.spark.source.options import SourceOptions, parse_size
from msmqwire.spark.source.planning import CapturePart, pack, plan
from tests.capture import build
from tests.spark.captures import EXAMPLES, frames_of
from tests.spark.object_store import object_store

COPIES = 120
REQUEST = bytes.fromhex(
    "0001000061baeae6c6d1db11baac0003ff4e2d2203a191f23ce34faba930be3a33e432ddf61bc5dcadd44345873971568e8f9128"
)


def traffic() -> Iterator[bytes]:
    """Sessions of many clients at once, discovery between them, and a datagram of which a part comes much later.

    Wherever it is cut, all streams are open.
    """
    session = frames_of(EXAMPLES / "message-session.pcap")
    site = frames_of(EXAMPLES / "local-site.pcap")
    datagram = build.udp(REQUEST + bytes(1600 - len(REQUEST)))
    first = build.ipv4(datagram[:800], fragment=0x2000, source="10.9.9.9", target="10.20.1.10")
    last = build.ipv4(datagram[800:], fragment=100, source="10.9.9.9", target="10.20.1.10")
    yield build.ethernet(build.IPV4, first)
    for number, frame in enumerate(session):
        for copy in range(COPIES):
            # Another client each time; nobody looks at checksums
            yield frame.replace(bytes((10, 20, 1, 25)), bytes((10, 21, copy, 25)))
        yield site[number % len(site)]
    yield build.ethernet(build.IPV4, last)
    yield build.ethernet(
        build.IPV4, build.ipv4(datagram[:800], fragment=0x2000, source="10.9.9.8", target="10.20.1.10")
    )


def write_pcap(path: Path) -> None:
    path.write_bytes(build.pcap(traffic(), nano=True))


def write_pcapng(path: Path) -> None:
    """Sections in both byte orders, two interfaces with resolutions of their own."""
    blocks = []
    order = "<"
    for number, frame in enumerate(traffic()):
        if number % 900 == 0:
            order = ">" if order == "<" else "<"
            blocks += [build.section(order), build.interface(order), build.interface(order, resolution=9)]
        stamp = build.START + number * 1_000_001
        blocks.append(build.packet(frame, order, number=number % 2, stamp=stamp if number % 2 else stamp // 1000))
    path.write_bytes(b"".join(blocks))


@pytest.fixture(scope="module")
def captures(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("captures")
    found = {"pcap": folder / "traffic.pcap", "pcapng": folder / "traffic.pcapng"}
    write_pcap(found["pcap"])
    write_pcapng(found["pcapng"])
    return found


def reader_of(path: Any, **options: str) -> MsmqReader:
    read = SourceOptions.of({"path": str(path), **options})
    return MsmqReader(read, read.scan.columns(read.table))


def table_of(reader: MsmqReader, partitions: list[Any] | None = None) -> pa.Table:
    """What the tasks read, each by itself and with what is sent to it."""
    batches: list[pa.RecordBatch] = []
    for partition in reader.partitions() if partitions is None else partitions:
        there, part = pickle.loads(pickle.dumps((reader, partition)))
        batches += there.read(part)
    return pa.Table.from_batches(batches)


def rows_of(reader: MsmqReader, partitions: list[Any] | None = None) -> list[dict[str, Any]]:
    """The same as dictionaries."""
    rows: list[dict[str, Any]] = table_of(reader, partitions).to_pylist()
    return rows


@pytest.mark.parametrize("table", list(TABLES))
@pytest.mark.parametrize("kind", ["pcap", "pcapng"])
@pytest.mark.parametrize("size", ["64k", "250000"])
def test_parts_have_the_rows_of_the_whole(captures: dict[str, Path], table: str, kind: str, size: str) -> None:
    path = captures[kind]
    whole = table_of(reader_of(path, table=table, splitSize="0"))
    cut = reader_of(path, table=table, splitSize=size)
    partitions = cut.partitions()
    assert len(partitions) > path.stat().st_size // parse_size(size)
    assert table_of(cut, partitions).equals(whole)
    assert len(whole) >= (COPIES if table != "topology" else 3)


@pytest.mark.parametrize(
    "options",
    [
        {"ports": "1801,50311"},
        {"addresses": "10.21.7.0/24"},
        {"since": "2024-03-04T08:00:00.9", "until": "2024-03-04T08:00:01.8"},
        {"mode": "DROPMALFORMED"},
    ],
)
def test_parts_of_a_selection(captures: dict[str, Path], options: dict[str, str]) -> None:
    whole = rows_of(reader_of(captures["pcap"], table="messages", splitSize="0", **options))
    assert rows_of(reader_of(captures["pcap"], table="messages", splitSize="64k", **options)) == whole
    assert whole


def test_what_is_missing_is_told_once_for_all_parts(captures: dict[str, Path], caplog: Any) -> None:
    """The datagram whose last part never comes; the one whose parts are far from each other is none of these."""
    reader = reader_of(captures["pcap"], splitSize="64k")
    rows_of(reader)
    message = r"traffic\.pcap: 1 datagram incomplete; the first at byte \d+: .* 800 bytes were captured"
    (record,) = caplog.records
    assert re.search(message, record.getMessage())
    strict = reader_of(captures["pcap"], splitSize="64k", mode="FAILFAST")
    *others, last = strict.partitions()
    rows_of(strict, others)
    with pytest.raises(CaptureError, match=message):
        rows_of(strict, [last])


def test_a_capture_that_changes_after_planning(captures: dict[str, Path], tmp_path: Path) -> None:
    """It is read up to its planned size; a shorter capture is an error."""
    path = tmp_path / "traffic.pcap"
    content = captures["pcap"].read_bytes()
    path.write_bytes(content)
    reader = reader_of(path, table="messages", splitSize="64k")
    partitions = reader.partitions()
    whole = rows_of(reader, partitions)
    path.write_bytes(content + content[24:])
    assert rows_of(reader, partitions) == whole
    path.write_bytes(content[: len(content) // 2])
    with pytest.raises(CaptureError, match=r"traffic\.pcap: "):
        rows_of(reader, partitions)


def test_what_is_not_split(captures: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compressed captures; and, unless it is asked for, what is no large part of everything."""
    packed = tmp_path / "traffic.pcap.gz"
    packed.write_bytes(gzip.compress(captures["pcap"].read_bytes(), 1))
    monkeypatch.setattr(planning, "OPEN_COST", 0)
    assert len(plan(SourceOptions.of({"path": str(packed), "splitSize": "10k"}))) == 1

    monkeypatch.setattr(planning, "SPLIT_SIZE", 100_000)
    path = str(captures["pcap"])
    assert len(plan(SourceOptions.of({"path": path}))) == 10
    with monkeypatch.context() as larger:
        larger.setattr(planning, "SPLIT_SIZE", captures["pcap"].stat().st_size // 2)
        assert len(plan(SourceOptions.of({"path": path}))) == 1
    monkeypatch.setattr(planning, "ENOUGH", 1)
    assert len(plan(SourceOptions.of({"path": path}))) == 1
    assert len(plan(SourceOptions.of({"path": path, "splitSize": "100000"}))) == 10
    assert len(plan(SourceOptions.of({"path": path, "splitSize": "0"}))) == 1


@pytest.mark.long
def test_captures_on_other_machines(captures: dict[str, Path]) -> None:
    """They are cut where that is asked for."""
    with object_store() as store:
        uri = store.put("traffic.pcapng", captures["pcapng"])
        options = {"table": "sessions", "storageOptions": json.dumps(store.options)}
        whole = rows_of(reader_of(captures["pcapng"], table="sessions"))
        for given, count in (({}, 1), ({"splitSize": "100000"}, 10)):
            reader = reader_of(uri, **options, **given)
            partitions = reader.partitions()
            assert len(partitions) == count
            assert rows_of(reader, partitions) == [row | {"file": uri} for row in whole]


@pytest.mark.parametrize("table", list(TABLES))
def test_a_sequence_has_the_rows_of_what_was_cut(captures: dict[str, Path], tmp_path: Path, table: str) -> None:
    """Files as a ring buffer leaves them: of one capture, cut wherever one was full; some were compressed since."""
    frames = list(traffic())
    times = [build.START + number * 1_000_001 for number in range(len(frames))]
    for number, start in enumerate(range(0, len(frames), 333)):
        records = zip(frames[start : start + 333], times[start : start + 333], strict=True)
        content = build.pcap_header(nano=True)
        content += b"".join(build.pcap_record(frame, nano=True, time=time) for frame, time in records)
        name = tmp_path / f"ring_{number:05}.pcap"
        name.write_bytes(gzip.compress(content, 1) if number % 3 == 1 else content)

    def content_of(reader: MsmqReader) -> pa.Table:
        found = table_of(reader)
        return found.drop_columns([name for name in ("file", "frame", "first_frame") if name in found.column_names])

    whole = content_of(reader_of(captures["pcap"], table=table))
    assert content_of(reader_of(tmp_path, table=table, sequence="true", splitSize="0")).equals(whole)
    for size in ("50000", "200k", "1g"):
        reader = reader_of(tmp_path, table=table, sequence="true", splitSize=size)
        assert content_of(reader).equals(whole)
    assert len(reader_of(tmp_path, table=table, sequence="true", splitSize="50000").partitions()) > 8
    if table == "messages":
        alone = content_of(reader_of(tmp_path, table=table))
        assert "incomplete" in pc.struct_field(alone["fault"], "code").to_pylist()
        assert "incomplete" not in pc.struct_field(whole["fault"], "code").to_pylist()


@pytest.mark.parametrize("size", ["0", "64m"])
def test_a_sequence_with_a_file_that_is_no_capture(tmp_path: Path, size: str) -> None:
    """It would leave out the captures after it."""
    for name in ("a.pcap", "c.pcap"):
        shutil.copy(EXAMPLES / "local-site.pcap", tmp_path / name)
    (tmp_path / "b.pcap").write_bytes(b"no capture, but a file of notes")
    assert len(rows_of(reader_of(tmp_path, splitSize=size))) == 2 * 4
    with pytest.raises(CaptureError, match=r"b\.pcap: begins with"):
        rows_of(reader_of(tmp_path, sequence="true", splitSize=size, ignoreCorruptFiles="true"))


def test_a_fault_in_a_stream_that_began_in_another_capture(tmp_path: Path) -> None:
    frames = frames_of(EXAMPLES / "message-session.pcap")
    broken = bytearray(frames[10])
    broken[broken.index(b"LIOR") + 60] ^= 0xFF
    for name, part in (("a.pcap", frames[:8]), ("b.pcap", [*frames[8:10], bytes(broken), *frames[11:]])):
        (tmp_path / name).write_bytes(build.pcap(part))
    reader = reader_of(tmp_path, table="messages", sequence="true", mode="FAILFAST")
    with pytest.raises(DecodeError, match=r"DestinationQueue at byte 64: frame 5 of .*b\.pcap, byte 1164 of its"):
        rows_of(reader)


def test_small_captures_are_read_together(tmp_path: Path) -> None:
    for number in range(600):
        shutil.copy(EXAMPLES / "local-site.pcap", tmp_path / f"{number:03}.pcap")
    reader = reader_of(tmp_path)
    partitions = reader.partitions()
    assert [len(partition.parts) for partition in partitions] == [255, 255, 90]  # type: ignore[attr-defined]
    assert [len(batch) for batch in reader.read(partitions[0])] == [512, 508]
    rows = rows_of(reader, partitions)
    assert len(rows) == 600 * 4
    assert [row["file"] for row in rows] == sorted(row["file"] for row in rows)
    assert len(reader_of(tmp_path, splitSize="0").partitions()) == 600


def test_a_name_that_is_no_text(captures: dict[str, Path], tmp_path: Path) -> None:
    path = os.fsencode(tmp_path) + b"/caf\xe9.pcap"
    shutil.copy(os.fsencode(captures["pcap"]), path)
    rows = rows_of(reader_of(tmp_path, table="sessions", splitSize="100k"))
    assert {row["file"] for row in rows} == {path.decode(errors="replace")}
    assert len(rows) == len(rows_of(reader_of(captures["pcap"], table="sessions")))


def test_packing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "OPEN_COST", 1)
    parts = [CapturePart((), size) for size in (3, 4, 2, 20, 0, 0, 9, 5, 3)]
    packed = [[part.size for part in task] for task in pack(parts, 10)]
    assert packed == [[3, 4], [2], [20], [0, 0], [9], [5, 3]]
    assert list(pack([], 10)) == []
    assert [len(task) for task in pack(parts, 0)] == [1] * 9


@pytest.mark.long
def test_in_spark(spark: SparkSession, captures: dict[str, Path], tmp_path: Path) -> None:
    """A large capture in parts and small ones together, found below a folder, side by side in two workers."""
    folder = tmp_path / "day=1"
    folder.mkdir()
    shutil.copy(captures["pcapng"], folder / "a.pcapng")
    for name in ("b.pcap", "c.pcap"):
        shutil.copy(EXAMPLES / "message-session.pcap", folder / name)
    source = spark.read.format("msmq").option("table", "notifications").option("splitSize", "500k")
    frame = source.option("recursive", "true").load(str(tmp_path)).withColumn("task", spark_partition_id())
    rows = [row.asDict(recursive=True) for row in frame.drop("time").collect()]
    assert len({row.pop("task") for row in rows}) >= 3
    expected = rows_of(reader_of(folder, table="notifications", splitSize="0"))
    assert rows == [{name: value for name, value in row.items() if name != "time"} for row in expected]


@pytest.mark.long
def test_other_machines_in_spark(spark: SparkSession) -> None:
    """What is refused is read again there, for the error that says why."""
    with object_store() as store:
        uri = store.put("captures/other-site.pcapng", EXAMPLES / "other-site.pcapng")
        source = spark.read.format("msmq").option("storageOptions", json.dumps(store.options))
        rows = [
            row.asDict(recursive=True) for row in source.load("s3://captures/captures/*.pcapng").drop("time").collect()
        ]
        assert [row.pop("file") for row in rows] == [uri] * len(rows)
        expected = rows_of(reader_of(EXAMPLES / "other-site.pcapng"))
        assert rows == [{k: v for k, v in row.items() if k not in ("file", "time")} for row in expected]
        with pytest.raises(PythonException, match=rf"frame 9 of {uri}, 88 bytes: 00020000"):
            source.option("mode", "FAILFAST").load(uri).collect()
        url = store.url("captures/other-site.pcapng")
        with pytest.raises(PythonException, match=rf"frame 9 of {url}, 88 bytes: 00020000"):
            spark.read.format("msmq").option("mode", "FAILFAST").load(url).collect()


@pytest.mark.long
def test_a_capture_over_http_in_spark(spark: SparkSession, captures: dict[str, Path]) -> None:
    """In parts, each read from where it begins: every row once, and streams that are cut in two are whole."""
    with object_store() as store:
        store.put("traffic.pcapng", captures["pcapng"])
        url = store.url("traffic.pcapng")
        source = spark.read.format("msmq").option("table", "messages").option("splitSize", "200k")
        frame = source.load(url).withColumn("task", spark_partition_id()).drop("time", "sent_time")
        rows = [row.asDict(recursive=True) for row in frame.collect()]
    assert len({row.pop("task") for row in rows}) >= 3
    expected = rows_of(reader_of(captures["pcapng"], table="messages"))
    assert len(rows) == 5 * COPIES
    assert rows == [{**{name: row[name] for name in rows[0]}, "file": url} for row in expected]
