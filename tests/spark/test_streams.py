"""Streams over captures on Spark: the rows of one machine that reads them all, from the first to the last."""

from __future__ import annotations

import itertools
import random
import struct
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from pyspark.errors import PythonException
from pyspark.sql import DataFrame, SparkSession

from msmqwire import capture, mqqb
from msmqwire.spark.schema import convert
from msmqwire.spark.source.scan import ScanOptions
from msmqwire.spark.streams import read_streams
from tests.capture import build
from tests.capture.stream_oracle import FIN, SYN
from tests.capture.test_copies import trace
from tests.effort import long_cases
from tests.spark.captures import ROOT
from tests.spark.rows import as_dicts, read_table

SESSION = ROOT / "examples" / "message-session.pcap"
EVERYWHERE = range(1, 19)
QUEUE = f"PRIVATE={UUID(int=5)}\\4"


def records(path: Path) -> tuple[bytes, list[bytes]]:
    """The header of a little-endian pcap file, and its records."""
    data, at, found = path.read_bytes(), 24, []
    while at < len(data):
        (length,) = struct.unpack_from("<I", data, at + 8)
        found.append(data[at : at + 16 + length])
        at += 16 + length
    return data[:24], found


def share(folder: Path, header: bytes, parts: Iterable[Sequence[bytes]]) -> list[str]:
    """Files with these records, in the order in which a capture that rotates would name them."""
    folder.mkdir()
    files = []
    for number, part in enumerate(parts):
        path = folder / f"rotated.pcap{number:03}"
        path.write_bytes(header + b"".join(part))
        files.append(str(path))
    return files


def in_order(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows by where they come from, with times in nanoseconds alone."""
    for row in rows:
        for name in [name for name in row if f"{name}_ns" in row]:
            time = row.pop(name)
            assert time is None or round(time.timestamp() * 1_000_000) == row[f"{name}_ns"] // 1000
    place = ("file", "frame", "src", "stream_offset", "index")
    return sorted(rows, key=lambda row: [str(row.get(name)) for name in place])


def serial(files: list[str], table: str) -> list[dict[str, Any]]:
    """What one machine reads."""
    columns = ScanOptions((table,)).columns(table)
    return in_order([row for batch in read_table(files, table) for row in convert(batch, columns).to_pylist()])


def found(frame: DataFrame) -> list[dict[str, Any]]:
    """What Spark reads."""
    return in_order(as_dicts(frame))


@pytest.mark.parametrize(
    ("table", "cuts"),
    [
        ("messages", EVERYWHERE),
        ("notifications", EVERYWHERE),
        *long_cases([("messages", (9,)), ("messages", (5, 12, 14)), ("sessions", EVERYWHERE)]),
    ],
)
def test_a_session_cut_into_files(spark: SparkSession, tmp_path: Path, table: str, cuts: Sequence[int]) -> None:
    """Between packets and inside them."""
    header, frames = records(SESSION)
    parts = [frames[start:end] for start, end in itertools.pairwise([0, *cuts, len(frames)])]
    files = share(tmp_path / "files", header, parts)
    rows = found(read_streams(spark, files, table, partitions=2))
    assert rows == serial(files, table)
    whole = serial([str(SESSION)], table)
    for row in rows + whole:
        row["file"] = row["frame"] = row["first_frame"] = None
    assert in_order(rows) == in_order(whole)


def packets(body: bytes, host: int, number: int, *, whole: bool) -> list[bytes]:
    """Frames with a segment between a host and the server; of every third host in IPv6."""
    if host % 3 == 0:
        packet = build.ipv6(body, build.TCP, source=f"2001:db8::{host}", target="2001:db8::ff")
        return [build.ethernet(build.IPV6, packet)]
    ipv4 = partial(build.ipv4, protocol=build.TCP, source=f"10.0.{host}.1", target="10.0.0.2")
    if whole or len(body) < 600:
        return [build.ethernet(build.IPV4, ipv4(body))]
    parts = [
        ipv4(body[:512], fragment=0x2000),
        ipv4(body[512:], fragment=512 // 8),
    ]
    return [build.ethernet(build.IPV4, part[:4] + struct.pack(">H", number) + part[6:]) for part in parts]


def conversation(rng: random.Random, host: int) -> list[bytes]:
    """A ping and a stream of messages, some of it in fragments, late, twice or lost."""
    bodies = [rng.randbytes(rng.choice((9, 900, 9000))) for _ in range(20)]
    messages = [
        mqqb.UserMessage(destination_queue=QUEUE, message_id=number, body=body) for number, body in enumerate(bodies, 1)
    ]
    data = b"".join(map(mqqb.encode, messages))
    segments, at = [build.tcp(b"", 1000, SYN, 40000 + host)], 0
    while at < len(data):
        payload = data[at : at + rng.choice((90, 1400))]
        segments.append(build.tcp(payload, 1001 + at, source=40000 + host))
        at += len(payload)
    segments.append(build.tcp(b"", 1001 + at, FIN, 40000 + host))
    frames = [
        frame
        for number, segment in enumerate(segments)
        for frame in packets(segment, host, number, whole=rng.random() < 0.9)
    ]
    for place in rng.sample(range(1, len(frames)), len(frames) // 10):
        frames[place - 1], frames[place] = frames[place], frames[place - 1]
    if host == 4:
        del frames[len(frames) // 2]
    if host == 5:
        frames.insert(len(frames) // 2, frames[5])
    ping = mqqb.encode(mqqb.Ping(cookie=host, queue_manager=UUID(int=host)))
    return [build.plain(ping, 40000, 3527), *frames]


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Captures of several hosts at a time, that rotated into eleven; by their names they are not in order."""
    rng = random.Random(11)
    conversations = [conversation(rng, host) for host in range(1, 8)]
    frames = []
    while any(conversations):
        frames.append(rng.choice([one for one in conversations if one]).pop(0))
    frames[-1] = frames[-1][:50]
    times = itertools.count(build.START, 1_000_003)
    captured = [build.pcap_record(frame, nano=True, time=next(times)) for frame in frames]
    places = [0, *sorted(rng.sample(range(len(frames)), 10)), len(frames)]
    folder = tmp_path_factory.mktemp("many")
    files = []
    for number, (start, end) in enumerate(itertools.pairwise(places)):
        path = folder / f"capture.pcap{number or ''}"
        path.write_bytes(build.pcap_header(nano=True) + b"".join(captured[start:end]))
        files.append(str(path))
    assert files != sorted(files)
    return files


@pytest.mark.parametrize(("table", "partitions"), [("messages", 3), *long_cases([("messages", None), ("sessions", 2)])])
def test_many_streams(spark: SparkSession, many: list[str], table: str, partitions: int | None) -> None:
    expected = serial(many, table)
    alone = [row for file in many for row in serial([file], table)]
    rows = found(read_streams(spark, many, table, partitions=partitions))
    assert rows == expected
    if table == "messages":
        assert len(expected) > 40
        assert any(row["first_frame"] > row["frame"] for row in expected)  # in another file
        complete = [[row for row in each if row["fault"] is None] for each in (alone, expected)]
        assert len(complete[0]) < len(complete[1])


def test_columns_and_sources_are_those_asked_for(spark: SparkSession, many: list[str]) -> None:
    folder = str(Path(many[0]).parent)
    frame = read_streams(spark, folder, columns=["message_id", "time_ns", "file", "body"], guid="binary")
    assert frame.columns == ["message_id", "time_ns", "file", "body"]
    names = ("message_id", "time_ns", "file", "body")
    expected = [{name: row[name] for name in names} for row in serial(sorted(many), "messages")]
    assert sorted(as_dicts(frame), key=repr) == sorted(expected, key=repr)
    assert read_streams(spark, [folder, many[0]], ports=[1802]).count() == 0


def test_large_captures_are_read_in_parts(spark: SparkSession, many: list[str]) -> None:
    assert max(Path(file).stat().st_size for file in many) > 60_000
    assert found(read_streams(spark, many, split_size="30k", partitions=2)) == serial(many, "messages")


def test_copies_are_read_on_request(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "trace.pcapng"
    path.write_bytes(trace([build.plain(bytes(50))]))
    for copies in (False, True):
        wanted = capture.read_table(path, copies=copies).to_arrow().num_rows
        assert read_streams(spark, path, "topology", copies=copies).count() == wanted == (3 if copies else 1)


def test_failfast_ends_the_job(spark: SparkSession, many: list[str], tmp_path: Path) -> None:
    with pytest.raises(PythonException, match=r"incomplete: \w+ at byte \d+: frame|; the first at byte \d+: "):
        read_streams(spark, many[:-1], mode="FAILFAST", partitions=2).collect()
    cut = tmp_path / "cut.pcap"
    cut.write_bytes(SESSION.read_bytes()[:-5])
    with pytest.raises(PythonException, match=r"cut\.pcap: 1 frame malformed; the first at byte"):
        read_streams(spark, cut, mode="FAILFAST").collect()
    assert read_streams(spark, cut).count() == 5
    with pytest.raises(PythonException, match="begins with"):
        read_streams(spark, [many[0], __file__]).collect()


def test_a_message_that_cannot_be_decoded(spark: SparkSession, tmp_path: Path) -> None:
    good = mqqb.encode(mqqb.UserMessage(destination_queue=QUEUE, message_id=1, body=b"x" * 500))
    bad = good[:20] + b"\xff" * (len(good) - 20)
    frames = [build.segment((good + bad)[at : at + 300], 1 + at) for at in range(0, 2 * len(good), 300)]
    files = share(tmp_path / "files", build.pcap_header(), [[build.pcap_record(frame)] for frame in frames])
    expected = serial(files, "messages")
    assert [row["fault"] is None for row in expected] == [True, False]
    assert found(read_streams(spark, files)) == expected
    assert found(read_streams(spark, files, mode="DROPMALFORMED")) == expected[:1]
    with pytest.raises(PythonException, match=rf"frame 1 of .*rotated\.pcap\d+, byte {len(good)} of its stream"):
        read_streams(spark, files, mode="FAILFAST").collect()


@pytest.mark.parametrize(
    ("sources", "options", "message"),
    [
        (SESSION, {"table": "queues"}, "table='queues' is not one of"),
        (SESSION, {"columns": ["bodies"]}, "'bodies': no such column of messages; it has file, frame"),
        (SESSION, {"columns": ["body", "frame", "body"]}, "columns names 'body' more than once"),
        (SESSION, {"columns": []}, "columns names no column"),
        (SESSION, {"mode": "STRICT"}, "mode='STRICT' is not one of"),
        (SESSION, {"guid": "uuid"}, "guid='uuid' is not one of"),
        (SESSION, {"split_size": "64x"}, "'64x' is not a size in bytes, as in 67108864 or 64m"),
        ("nothing/*.pcap", {}, r"no capture matches 'nothing/\*\.pcap'"),
        ([], {}, "no capture was named"),
    ],
)
def test_mistakes_are_told_at_once(spark: SparkSession, sources: Any, options: Any, message: str) -> None:
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        read_streams(spark, sources, **options)
