"""Summaries: each role and loss has a capture that shows it; limits, forms of rows, and the command."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from msmqwire.capture import ReadOptions, read_tables
from msmqwire.insight import COLUMNS, SECTIONS, Summary, summarize
from msmqwire.insight.engine import Engine
from tests.capture.build import segment
from tests.cli.support import run
from tests.insight.captures import EXAMPLES, FIRST, SECOND, THIRD, WRITER, datagram, hopped, message, stream, write

OUTCOMES = ("silent", "refused", "established", "closed", "reset")


def summary_of(source: Any, **options: Any) -> Summary:
    return summarize(read_tables(source, COLUMNS, columns=COLUMNS, **options))


def rows(summary: Summary, name: str, *columns: str) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in summary.section(name).select(list(columns)).to_pylist()]


@pytest.fixture(scope="module")
def busy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Messages of three queue managers to several queues, acknowledgments, one message twice, one through a router."""
    frames = []
    for number in range(300):
        source = (FIRST, SECOND, THIRD)[number % 3]
        packet = message(source, f"OS:host{number % 5}\\orders", number, body=b"x" * (number % 7))
        if number % 10 == 0:
            packet = message(source, "OS:host\\admin", number, message_class=0x8002 if number % 20 else 2)
        frames += stream([packet], client=f"10.0.0.{number % 3}", port=30000 + number)
    frames += stream([message(FIRST, number=9999), message(FIRST, number=9999)], client="10.0.0.9")
    frames += stream([hopped(message(FIRST, number=7), 2)], client="10.0.0.5")
    return write(tmp_path_factory.mktemp("busy") / "busy.pcap", frames)


def test_the_examples_in_full() -> None:
    summary = summary_of(EXAMPLES)
    assert {(table, count) for table, count in rows(summary, "totals", "in_table", "rows")} == {
        ("topology", 10), ("topology", 4), ("sessions", 7), ("messages", 5), ("notifications", 4),
    }  # fmt: skip
    unanswered = [row for row in rows(summary, "discovery", "request_id", "client", "replies") if not row[2]]
    assert unanswered == [("7d1c2e90-0b03-4a55-8e11-3c9f5d20a4b3", "10.30.4.18", 0)]
    assert ("truncated", "DirectoryServiceServerArray", [9]) in [
        (code, field, [each["frame"] for each in frames])
        for code, field, frames in rows(summary, "problems", "code", "field", "frames")
    ]
    assert rows(summary, "notifications", "machine", "operation", "applied", "changes") == [
        ("10.20.1.25", "change", True, 2),
        ("10.20.1.25", "delete", True, 1),
        ("10.20.1.10", "change", True, 1),
    ]
    assert ("10.20.1.25", ["client", "queue_manager", "receiver"]) in rows(summary, "hosts", "address", "roles")
    assert not any(missing for (missing,) in rows(summary, "sessions", "missing_bytes"))


def test_roles_and_names(busy: Path) -> None:
    summary = summary_of(busy)
    (found,) = (row[1:] for row in rows(summary, "hosts", "address", "roles", "evidence") if row[0] == "10.0.0.5")
    assert found == (["queue_manager", "router"], ["message", "forwarded message"])
    # A router is not at the address of the queue manager whose message it forwards
    assert (str(FIRST), "10.0.0.5") not in rows(summary, "queue_managers", "queue_manager", "address")
    assert sum(count for negative, count in rows(summary, "classes", "negative", "messages") if negative) == 15


def test_who_tried_to_connect(tmp_path: Path) -> None:
    """A scan, a sender whose messages stay in its queue, a port that refuses, and a session."""
    syn, rst, ack = 2, 4, 16
    frames = [segment(b"", 9, syn, src="10.0.0.9", dst=f"10.0.1.{number}") for number in range(20)]
    frames += [
        segment(b"", 5, syn, 40000 + number, src="10.0.0.8", dst="10.0.2.1") for number in range(3) for _ in "12"
    ]
    frames.append(segment(b"", 9, syn, src="10.0.0.7", dst="10.0.2.1"))
    frames.append(segment(b"", 0, rst | ack, 1801, 40000, src="10.0.2.1", dst="10.0.0.7", acknowledged=10))
    path = write(tmp_path / "x.pcap", [*frames, *stream([message()])])
    found = rows(summary_of(path), "connections", "src", "dst", "connections", "segments", *OUTCOMES)
    assert found[0] == ("10.0.0.8", "10.0.2.1", 3, 6, 3, 0, 0, 0, 0)
    assert sorted(row for row in found if row[0] == "10.0.0.9") == sorted(
        ("10.0.0.9", f"10.0.1.{number}", 1, 1, 1, 0, 0, 0, 0) for number in range(20)
    )
    assert [row for row in found if row[0] in ("10.0.0.7", "192.0.2.7")] == [
        ("10.0.0.7", "10.0.2.1", 1, 1, 0, 1, 0, 0, 0), ("192.0.2.7", "10.20.1.25", 1, 1, 0, 0, 0, 1, 0),
    ]  # fmt: skip


def test_a_connection_that_was_captured_in_part_is_not_silent(tmp_path: Path) -> None:
    frames = stream([message(), message(number=2)])
    client = [frame for frame in frames if frame[26:30] == frames[0][26:30]]
    assert rows(summary_of(write(tmp_path / "x.pcap", client)), "connections", "silent", "closed") == [(0, 1)]
    assert rows(summary_of(write(tmp_path / "y.pcap", frames[3:])), "connections", "silent") == []


def test_missing_bytes_of_a_session(tmp_path: Path) -> None:
    packets = [message(number=number, body=b"y" * 1000) for number in range(6)]
    frames = stream(packets)
    # Packets 2 and 3 are not captured; the fourth begins a segment
    lost = write(tmp_path / "lost.pcap", [*frames[:5], *frames[7:]])
    ((missing, count),) = rows(summary_of(lost), "sessions", "missing_bytes", "packets")
    assert (missing, count) == (2 * len(packets[0]), 4)


def test_incomplete_packets_count_as_missing_bytes(tmp_path: Path) -> None:
    packets = [message(number=number, body=b"y" * 1000) for number in range(6)]
    frames = stream(packets)
    frames[4] = frames[4][:154]  # the first 100 bytes of the second packet
    ((missing, decoded, count),) = rows(
        summary_of(write(tmp_path / "cut.pcap", frames)), "sessions", "missing_bytes", "bytes", "packets"
    )
    assert (missing, decoded, count) == (len(packets[1]), 5 * len(packets[0]), 6)


@pytest.mark.parametrize("guid", ["binary", "uuid", "text"])
def test_any_form_of_columns(busy: Path, guid: Any) -> None:
    expected = summary_of(busy)
    summary = Summary()
    for table, batch in read_tables(busy, COLUMNS, columns=COLUMNS, guid=guid):
        columns = [
            column.dictionary_encode() if pa.types.is_string(column.type) else column for column in batch.columns
        ]
        summary.add(table, pa.RecordBatch.from_arrays(columns, batch.schema.names))
    for name in SECTIONS:
        assert summary.section(name) == expected.section(name)


def test_limits_are_reported(busy: Path) -> None:
    whole, cut = summary_of(busy), summarize(read_tables(busy, COLUMNS, columns=COLUMNS), limits={"queues": 4})
    table = cut.section("queues")
    groups, packets = cut.omitted("queues")
    assert table.num_rows == 4
    assert groups == whole.section("queues").num_rows - 4
    left, expected = (sum(row["messages"] for row in each.to_pylist()) for each in (table, whole.section("queues")))
    assert packets + left == expected
    with pytest.raises(ValueError, match="no section nothing"):
        Summary({"nothing": 1})


def test_what_was_omitted_may_be_asked_first(busy: Path) -> None:
    cut = summarize(read_tables(busy, COLUMNS, columns=COLUMNS), limits={"queues": 4})
    groups, packets = cut.omitted("queues")
    assert (groups > 0, packets > 0) == (True, True)
    assert cut.omitted("queues") == (groups, packets)


def test_rows_that_are_stored_in_parts(monkeypatch: pytest.MonkeyPatch, busy: Path) -> None:
    expected = summary_of(busy)
    monkeypatch.setattr("msmqwire.insight.engine._MOST_ROWS", 7)
    found = summary_of(busy, block_size=4096)
    for name in SECTIONS:
        assert found.section(name) == expected.section(name)


def test_the_command(tmp_path: Path, busy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    status, output, errors = run("summary", *EXAMPLES, "-T", "json")
    assert status == 2
    assert {json.loads(line)["table"] for line in output.splitlines()} == SECTIONS.keys() - {"repeated"}
    assert "3 payloads with faults" in errors
    target = tmp_path / "queues.parquet"
    assert run("summary", busy, "-q", "--table", "queues", "-o", target)[0] == 0
    assert pq.read_table(target).to_pylist() == summary_of(busy).section("queues").to_pylist()
    status, output, _ = run("summary", busy, "-q", "-T", "table", "--table", "hosts")
    assert "router" in output
    assert "busy.pcap" not in output
    _, output, _ = run("summary", busy, *EXAMPLES, "-q", "-T", "table", "--table", "hosts")
    assert "busy.pcap" in output
    _, output, _ = run("summary", *EXAMPLES, "-q", "-T", "brief", "--table", "conversations", "-j", "2")
    assert any("queues=PRIVATE=" in line and ", DIRECT=TCP:10.20.1.25" in line for line in output.splitlines())
    _, output, _ = run("summary", busy, "-q", "-T", "brief", "--table", "timeline")
    assert {"event=finding", "event=first_message"} <= set(output.split())
    monkeypatch.setenv("COLUMNS", "120")
    for name in ("queue_managers", "sessions", "discovery"):
        _, output, _ = run("summary", *EXAMPLES, "-q", "-T", "table", "--table", name)
        assert "  frames" in output.splitlines()[0]  # a heading: no records
    _, output, _ = run("summary", busy, "-q", "-T", "brief", "--table", "totals")
    assert "seen=2024-03-04 08:00:00 – 08:00:02" in output
    for wrong in (["-T", "csv"], ["--table", "nothing"], ["--lake", "lake"]):
        assert run("summary", busy, *wrong)[0] == 1


def test_hostile_names_stay_text(tmp_path: Path) -> None:
    path = write(tmp_path / "x.pcap", stream([message(queue="OS:\x1b[31m\\<script>")]))
    _, output, _ = run("summary", path, "-q", "-T", "brief")
    assert "\x1b" not in output
    assert "<script>" in output


def test_a_request_without_an_answer_and_a_ping(tmp_path: Path) -> None:
    frames = [datagram(WRITER["request"](FIRST, SECOND)), datagram(WRITER["ping"](4, THIRD), to=3527)]
    summary = summary_of(write(tmp_path / "x.pcap", frames))
    assert rows(summary, "discovery", "request_id", "requests", "replies") == [(str(FIRST), 1, 0)]
    assert rows(summary, "queue_managers", "queue_manager", "address", "evidence") == [
        (str(THIRD), "192.0.2.7", "ping")
    ]


@pytest.mark.long
def test_the_command_reads_a_lake(spark: Any, tmp_path: Path, busy: Path) -> None:
    from msmqwire.spark import pipeline

    pipeline.run(spark, [str(busy), *map(str, EXAMPLES)], str(tmp_path / "lake"))
    status, output, _ = run("summary", "--lake", tmp_path / "lake", "-T", "json")
    assert status == 2

    def known(text: str) -> list[str]:
        rows = [json.loads(line) for line in text.splitlines()]
        # The lake has other paths of files, and times in microseconds
        return sorted(
            str({name: value for name, value in row.items() if name not in ("file", "frames")})
            for row in rows
            if row["table"] not in ("repeated", "connections")
        )

    assert known(output) == known(run("summary", busy, *EXAMPLES, "-q", "-T", "json")[1])


def test_ports_that_are_used_again(tmp_path: Path) -> None:
    path = write(tmp_path / "x.pcap", [*stream([message(), message(number=2)]), *stream([message(number=3)])])
    ((packets, missing),) = rows(summary_of(path), "sessions", "packets", "missing_bytes")
    assert (packets, missing) == (3, 0)


def test_captures_and_rows_are_summarized_alike(busy: Path) -> None:
    expected = summary_of(busy)
    for source in (busy, str(busy), f"{busy.parent}/*.pcap", [busy], iter([str(busy)]), busy.open("rb")):
        found = summarize(source)
        assert [found.rows(table) for table in COLUMNS] == [expected.rows(table) for table in COLUMNS]
        for name in ("hosts", "queues", "sessions", "minutes"):
            assert found.section(name).drop_columns(["frames"]) == expected.section(name).drop_columns(["frames"])
    assert summarize(busy, options=ReadOptions(addresses=["10.0.0.5"], jobs=2)).rows("messages") == 1
    assert summarize([]).rows("messages") == summarize(iter(())).rows("messages") == 0
    with pytest.raises(ValueError, match="options are for captures"):
        summarize([], options=ReadOptions())


def test_a_summary_is_shown_on_a_screen() -> None:
    assert repr(Summary()) == "<Summary of 0 files>"
    shown = repr(summary_of(EXAMPLES)).splitlines()
    assert shown[0] == "<Summary of 3 files"
    assert "  5 rows of messages" in shown
    assert "  section hosts: 7 rows" in shown
    assert "  section classes: 1 row" in shown
    assert len(shown) < 24


def test_batches_of_other_types_follow_each_other(busy: Path) -> None:
    summary = Summary()
    for dictionaries in (True, False):
        for table, batch in read_tables(busy, COLUMNS, columns=COLUMNS, guid="binary", dictionaries=dictionaries):
            summary.add(table, batch)
    assert summary.rows("messages") == 2 * summary_of(busy).rows("messages")
    with pytest.raises(KeyError, match="messages: no column file"):
        summary.add("messages", pa.RecordBatch.from_pydict({"frame": [1]}))


def test_few_rows_with_many_properties_do_not_wait_in_memory(tmp_path: Path) -> None:
    update = b"\1\1" + bytes(56) + b"\xff" + struct.pack("<I", 104) * 255 + bytes(255)
    body = bytes((1, 100)) + update * 100
    path = write(tmp_path / "x.pcap", stream([message(queue="OS:server\\private$\\notify_queue$", body=body)] * 40))
    engine, most = Engine(SECTIONS.values()), 0
    summary = Summary(engine=engine)
    for table, batch in read_tables(path, columns=COLUMNS, block_size=1 << 18):
        summary.add(table, batch)
        most = max(most, sum(each.nbytes for each in engine._waiting[table]))
    assert summary.rows("notifications") == 4000
    assert most < 16 << 20


def test_queues_of_the_busiest_pairs() -> None:
    """Where they are not counted they are null, and none of the busiest pairs is left out for one that comes later."""
    summary = Summary({"conversations": 200_000})
    pairs = 100_002
    for table, batch in read_tables(EXAMPLES, columns=summary.columns, guid="binary"):
        if table == "messages" and not summary.rows("messages"):
            rows = batch.take(pa.array([0] * pairs))
            at = rows.schema.get_field_index("src")
            senders = pa.array([None, *(f"10.{n >> 16}.{n >> 8 & 255}.{n & 255}" for n in range(1, pairs))])
            rows = rows.set_column(at, "src", senders)
            at = rows.schema.get_field_index("frame")
            summary.add("messages", rows.set_column(at, "frame", pa.array(range(1, pairs + 1), pa.uint64())))
    found = summary.section("conversations").sort_by("first_seen")
    counts = {row["frames"][0]["frame"]: row["queue_count"] for row in found.to_pylist()}
    assert len(counts) == pairs
    assert {frame for frame, count in counts.items() if count is None} == {100_001, 100_002}
    assert {counts[frame] for frame in range(1, 100_001)} == {1}
