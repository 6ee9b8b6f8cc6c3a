"""``msmqwire decode``: the same rows in every format."""

from __future__ import annotations

import io
import json
import re
import shutil
import subprocess
import sys
import uuid
import weakref
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rich.cells import cell_len

from msmqwire import mqqb, mqsd
from msmqwire.capture import TABLES, arrow_schema, table_columns
from msmqwire.cli.formats.parquet import Writer
from msmqwire.cli.target import Sink
from tests.capture import build
from tests.cli.support import (
    LOCAL,
    OTHER,
    SESSION,
    START,
    V1,
    V2,
    V3,
    capture,
    environ,
    expected_rows,
    from_csv,
    from_json,
    msmqwire,
    plain_rows,
    process,
)
from tests.columns.rows import shown_row
from tests.effort import first_of
from tests.insight.captures import FIRST, message, stream, write
from tests.vectors import load


def from_parquet(path: Path) -> list[dict[str, Any]]:
    return plain_rows(pq.read_table(path))


def rows_in(format: str, tmp_path: Path, *sources: str | Path, status: int = 0) -> list[dict[str, Any]]:
    """Rows of captures, by way of the command and a format."""
    if format == "parquet":
        out = tmp_path / "out.parquet"
        done = msmqwire("decode", *sources, "--table", "topology", "-o", out)
        assert done.returncode == status, done.stderr
        assert done.stdout == b""
        return from_parquet(out)
    done = msmqwire("decode", *sources, "--table", "topology", "-T", format)
    assert done.returncode == status, done.stderr
    return from_json(done.stdout) if format == "json" else from_csv(done.stdout)


@pytest.mark.parametrize("format", ["json", "csv", "parquet"])
def test_the_printed_packets(format: str, printed: Path, tmp_path: Path) -> None:
    """Against the golden vectors, not against what the package says."""
    rows = rows_in(format, tmp_path, printed)
    assert len(rows) == 3
    for number, (row, vector) in enumerate(zip(rows, (V1, V2, V3), strict=True)):
        expected: dict[str, Any] = dict.fromkeys(table_columns("topology"))
        expected.update(
            file=str(printed), frame=number + 1, first_frame=number + 1, time=START + 1_000_000_007 * number,
            src="10.20.1.25", src_port=49712, dst="10.20.1.10", dst_port=1801, transport="udp",
            version=0, violations=[],
        )  # fmt: skip
        assert vector.packet is not None
        expected.update(shown_row(mqsd.TOPOLOGY, vector.packet, guid="text"))
        assert row == expected
        assert list(row) == list(expected)


@pytest.mark.parametrize("format", ["json", "csv", "parquet"])
def test_the_sample_captures(format: str, tmp_path: Path) -> None:
    rows = rows_in(format, tmp_path, LOCAL, OTHER, status=2)
    assert rows == expected_rows(LOCAL, OTHER)
    assert {row["file"] for row in rows} == {str(LOCAL), str(OTHER)}
    assert sum(row["fault"] is not None for row in rows) == 3


@pytest.mark.parametrize("format", ["json", "csv", "parquet"])
def test_every_vector(format: str, tmp_path: Path) -> None:
    """Names of all kinds, lone surrogates, the longest lists, every fault and every violation."""
    path = tmp_path / "vectors.pcapng"
    path.write_bytes(capture([vector.data for vector in load("mqsd")]))
    assert rows_in(format, tmp_path, path, status=2) == expected_rows(path)


@pytest.mark.parametrize("format", first_of(["json", "csv", "parquet"]))
def test_rows_of_many_blocks(format: str, tmp_path: Path) -> None:
    path = tmp_path / "many.pcapng"
    path.write_bytes(capture([V1.data, V2.data, V3.data] * 4_000, step=1_000))
    assert rows_in(format, tmp_path, path) == expected_rows(path)


def test_table_shows_the_packets(printed: Path) -> None:
    done = msmqwire("decode", printed, "-T", "table")
    assert done.returncode == 0
    text = done.stdout.decode()
    assert "\x1b" not in text  # not a terminal
    assert str(printed) not in text  # there is one file only
    assert str(printed) in msmqwire("decode", printed, printed, "-T", "table").stdout.decode()
    for shown in (
        "2024-03-04 08:00:00.123456789", "10.20.1.25:49712", "10.20.1.10:1801", "request", "reply", "nt4pec (ip)",
        "\n  request_id              f291a103-e33c-ab4f-a930-be3a33e432dd\n",
        "\n  connected_networks      e6eaba62-d1c6-11db-baac-0003ff4e2d22\n",
    ):  # fmt: skip
        assert shown in text, text
    assert "ipx_networks" not in text
    assert max(map(len, text.splitlines())) <= 120


def test_table_shows_faults_and_violations() -> None:
    text = msmqwire("decode", OTHER, "-T", "table").stdout.decode()
    assert "fault truncated: DirectoryServiceServerArray at byte 64" in text
    assert "reply  ! trailing_bytes" in text
    assert "request  ! ipx_fields_on_ip" in text
    assert "[2001:db8:30::18]:49802" in text


def test_table_and_brief_show_what_is_known_of_rows_with_faults(tmp_path: Path) -> None:
    packets = [b"GET / HTTP/1.0\r\n\r\n", b"\x16\3\1" + bytes(90), b'q"\xe9', message()[:60]]
    frames = [frame for at, data in enumerate(packets) for frame in stream([data], port=40001 + at)]
    path = write(tmp_path / "x.pcap", frames)
    table, brief = (msmqwire("decode", path, "-T", form, "-q").stdout.decode() for form in ("table", "brief"))
    known = (
        ("unrecognized", '"GET / HTTP/1.0\\r\\n\\r\\n"'), ("unrecognized_size", "18"),
        ("unrecognized", "160301" + 34 * "0" + "…"), ("unrecognized_size", "93"), ("unrecognized", "7122e9"),
        ("source_queue_manager", str(FIRST)),
    )  # fmt: skip
    for name, value in known:
        assert re.search(f" {name} +{re.escape(value)}$", table, re.MULTILINE), name
        assert re.search(f"  {name}={re.escape(value)}(  |$)", brief, re.MULTILINE), name
    for text in (table, brief):
        assert text.count("fault bad_signature: BaseHeader at byte 0") == 3
        assert text.count("fault incomplete: UserHeader at byte 16") == 1


def test_a_terminal_without_a_size_is_80_columns_wide(printed: Path) -> None:
    narrow, unknown = (process("decode", printed, "-T", "table", env={"COLUMNS": width}) for width in ("80", "0"))
    assert (unknown.returncode, unknown.stdout) == (narrow.returncode, narrow.stdout)


@pytest.mark.parametrize("width", [30, 60, 80, 100, 120])
def test_table_shows_every_column_in_any_width(width: int, printed: Path) -> None:
    """Columns that do not fit beside each other become records, with a field a line."""
    columns = ("frame", "time", "src", "src_port", "dst", "dst_port", "type", "request_id", "servers", "violations")
    arguments = ("decode", printed, "-T", "table", "--columns", ",".join(columns))
    lines = msmqwire(*arguments, env={"COLUMNS": str(width)}).stdout.decode().splitlines()
    assert V1.packet is not None
    request = shown_row(mqsd.TOPOLOGY, V1.packet, guid="text")["request_id"]
    for shown in (*columns, request, "10.20.1.25", "49712", "reply", "nt4pec (ip)"):
        assert any(shown in line for line in lines), shown
    assert next(line for line in lines if "request_id" in line) == f"request_id  {request}"
    wide = msmqwire(*arguments, env={"COLUMNS": "200"}).stdout.decode().splitlines()
    assert wide[0].split() == [*columns]
    assert 120 < max(map(len, wide)) <= 200


@pytest.mark.parametrize("format", ["brief", "table"])
def test_the_name_of_a_file_is_whole(tmp_path: Path, format: str) -> None:
    file = tmp_path / ("a folder whose name is long " * 3) / "other-site.pcapng"
    file.parent.mkdir()
    shutil.copyfile(OTHER, file)
    shown = msmqwire("decode", file, "-T", format, "--columns", "file,frame", "-q", env={"COLUMNS": "400"})
    assert str(file) in shown.stdout.decode()


def test_records_and_columns(printed: Path) -> None:
    arguments = ("decode", printed, "-T", "table", "--columns", "frame,type,request_id,site_id,servers", "-q")
    records = msmqwire(*arguments, env={"COLUMNS": "60"}).stdout.decode().split("\n\n")
    assert [line.rstrip() for line in records[2].splitlines()] == [
        "frame       3", "type        reply", "request_id", "site_id", "servers     nt4pec (ip)"
    ]  # fmt: skip
    heading, rule, *rows = msmqwire(*arguments).stdout.decode().splitlines()
    assert heading.split() == ["frame", "type", "request_id", "site_id", "servers"]
    assert set(rule) == {"─"}
    assert len(rows) == 3


def test_brief_is_one_line_a_row(tmp_path: Path) -> None:
    lines = msmqwire("decode", SESSION, OTHER, "-T", "brief").stdout.decode().splitlines()
    assert len(lines) == sum(len(expected_rows(SESSION, OTHER, table=table)) for table in TABLES)
    start = f"topology       {OTHER}  2  2024-03-04 08:01:00.002000417  10.30.4.18:"
    assert any(line.startswith(start) for line in lines)
    for part in (
        "request  enterprise_id=", "reply  ! trailing_bytes  ", "  servers=nt4pec (ip)", "  label=Order 4711  ",
        "  fault truncated: DirectoryServiceServerArray at byte 64", "change queue  object_guid=",
    ):  # fmt: skip
        assert any(part in line for line in lines), part
    alone = msmqwire("decode", OTHER, "-T", "brief", "--columns", "frame,src,type,fault").stdout.decode().splitlines()
    assert alone[0] == "2  request  src=10.30.4.18"
    assert alone[7] == "9  fault truncated: DirectoryServiceServerArray at byte 64 (needed 36)  src=10.20.1.10"


def test_brief_has_a_line_for_a_row_without_values() -> None:
    arguments = (
        "decode",
        SESSION,
        OTHER,
        "-q",
        "--table",
        "messages",
        "-T",
        "brief",
        "--columns",
        "correlation_ordinal,label",
    )
    rows = expected_rows(SESSION, OTHER, table="messages")
    shown = msmqwire(*arguments).stdout.decode().splitlines()
    expected = ["  ".join(f"{name}={row[name]}" for name in arguments[-1].split(",") if row[name]) for row in rows]
    assert shown == expected
    assert "" in shown


def test_table_has_the_first_rows_of_columns(tmp_path: Path) -> None:
    """rich takes half a millisecond for a row."""
    path = tmp_path / "many.pcapng"
    path.write_bytes(capture([V2.data] * 1_250))
    heading, _, *rows, last = (
        msmqwire("decode", path, "-T", "table", "--columns", "frame,type").stdout.decode().splitlines()
    )
    assert heading.split() == ["frame", "type"]
    assert {line.index("reply") for line in rows} == {heading.index("type")}
    assert len(rows) == 1_000
    assert last == "250 more rows: -T brief and -T json have them"
    records = msmqwire("decode", path, "-T", "table").stdout.decode()
    assert sum(line.endswith("reply") for line in records.splitlines()) == 1_250


@pytest.mark.parametrize("text", ["日本語の文", "e\u0301\u0301", "🚚 lorry"])
def test_table_has_columns_of_one_width_for_any_text(text: str, tmp_path: Path) -> None:
    path = write(tmp_path / "x.pcap", stream([message(label=text), message(label="plain")]))
    shown = msmqwire("decode", path, "-T", "table", "--columns", "label,message_id", "-q").stdout.decode()
    assert {cell_len(line[: line.rindex("1")]) for line in shown.splitlines()[2:]} == {
        cell_len(line[: line.rindex("message_id")]) for line in shown.splitlines()[:1]
    }


def test_chosen_columns_come_in_the_order_asked_for(printed: Path, tmp_path: Path) -> None:
    chosen = ("servers", "frame", "type")
    expected = [{name: row[name] for name in chosen} for row in expected_rows(printed)]
    arguments = ("decode", printed, "--columns", ",".join(chosen))
    for format, read in (("json", from_json), ("csv", from_csv)):
        rows = read(msmqwire(*arguments, "-T", format).stdout)
        assert rows == expected
        assert [list(row) for row in rows] == [list(chosen)] * 3
    out = tmp_path / "out.parquet"
    assert msmqwire(*arguments, "-o", out).returncode == 0
    assert pq.read_table(out).to_pylist() == expected
    table = msmqwire(*arguments, "-T", "table").stdout.decode()
    assert table.splitlines()[0].split() == list(chosen)
    assert "nt4pec (ip)" in table


def test_faults_count_though_their_column_is_not_asked_for() -> None:
    done = msmqwire("decode", OTHER, "--columns", "frame,type")
    assert done.returncode == 2
    assert b"3 payloads with faults" in done.stderr


def test_strict_makes_violations_faults() -> None:
    done = msmqwire("decode", OTHER, "--table", "topology", "--strict")
    assert from_json(done.stdout) == expected_rows(OTHER, strict=True)
    assert b"4 payloads with faults" in done.stderr


def test_other_ports(tmp_path: Path) -> None:
    assert from_json(msmqwire("decode", LOCAL, "--table", "topology", "--ports", "1").stdout) == []
    done = msmqwire("decode", LOCAL, "--table", "topology", "--ports", "53,1801")
    assert from_json(done.stdout) == expected_rows(LOCAL, ports={53, 1801})
    assert done.returncode == 2


def test_parquet_is_one_compressed_file_of_large_row_groups(tmp_path: Path) -> None:
    path, out = tmp_path / "many.pcapng", tmp_path / "out.parquet"
    path.write_bytes(capture([V1.data] * 20_000))
    assert msmqwire("decode", path, "-o", out).returncode == 0
    file = pq.ParquetFile(out)
    assert file.schema_arrow.equals(arrow_schema("topology", guid="text", dictionaries=False))
    assert file.metadata.num_row_groups == 1
    assert file.metadata.row_group(0).column(0).compression == "ZSTD"


def test_parquet_keeps_guids_binary_when_asked(printed: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.parquet"
    assert msmqwire("decode", printed, "-o", out, "--guid", "binary").returncode == 0
    table = pq.read_table(out)
    assert table.schema.field("request_id").type == pa.binary(16)
    assert V1.packet is not None
    assert table["request_id"][0].as_py() == uuid.UUID(bytes_le=V1.packet["request_id"]).bytes


@pytest.mark.parametrize(
    ("name", "read"),
    [
        ("out.json", from_json),
        ("out.jsonl", from_json),
        ("out.ndjson", from_json),
        ("OUT.CSV", from_csv),
        ("out.parquet", None),
    ],
)
def test_the_format_follows_the_name_of_the_file(name: str, read: Any, printed: Path, tmp_path: Path) -> None:
    out = tmp_path / name
    done = msmqwire("decode", printed, "--table", "topology", "-o", out)
    assert (done.returncode, done.stdout) == (0, b"")
    rows = from_parquet(out) if read is None else read(out.read_bytes())
    assert rows == expected_rows(printed)


def test_a_requested_format_goes_before_the_name(printed: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    assert msmqwire("decode", printed, "--table", "topology", "-T", "json", "-o", out).returncode == 0
    assert from_json(out.read_bytes()) == expected_rows(printed)
    done = msmqwire("decode", printed, "-T", "table", "-o", tmp_path / "out.txt")
    assert done.returncode == 0
    assert "nt4pec (ip)" in (tmp_path / "out.txt").read_text()


def test_no_rows_is_a_complete_answer(tmp_path: Path) -> None:
    path, out = tmp_path / "none.pcapng", tmp_path / "out.parquet"
    path.write_bytes(capture([]))
    assert msmqwire("decode", path, "-T", "json").stdout == b""
    assert msmqwire("decode", path, "-T", "csv").stdout.decode() == ",".join(table_columns("topology")) + "\r\n"
    assert msmqwire("decode", path, "-T", "table").stdout == b"no rows\n"
    assert msmqwire("decode", path, "-o", out).returncode == 0
    assert pq.read_table(out).schema.equals(arrow_schema("topology", guid="text", dictionaries=False))


@pytest.mark.long
@pytest.mark.parametrize("format", ["table", "brief", "json", "csv", "parquet"])
@pytest.mark.parametrize("table", ["topology", "messages"])
def test_threads_write_the_same_bytes(format: str, table: str, tmp_path: Path) -> None:
    """Of several captures, with more rows than a row group and a block have; the counts are the same as well."""
    many = tmp_path / "many.pcapng"
    for_people = format in ("table", "brief")
    many.write_bytes(capture([V1.data, V2.data, V2.data[:30]] * (50 if for_people else 4_000)))
    files = [LOCAL, many, OTHER, SESSION, *[many] * (12 if format == "parquet" and table == "topology" else 0)]
    one, *others = (msmqwire("decode", *files, "-T", format, "--table", table, "-j", jobs) for jobs in ("1", "2", "5"))
    assert one.returncode == (2 if table == "topology" else 0)
    assert others == [one] * 2


def test_threads_write_several_tables_and_the_first_rows_alike(tmp_path: Path) -> None:
    many = tmp_path / "many.pcapng"
    many.write_bytes(capture([V1.data] * 9_000))
    command: list[str | Path] = ["decode", LOCAL, many, SESSION, many, "-T", "json"]
    assert msmqwire(*command) == msmqwire(*command, "-j", "1") == msmqwire(*command, "-j", "3")
    limited = [msmqwire(*command, "-n", "8500", "-j", jobs) for jobs in ("1", "3")]
    assert limited[0] == limited[1]
    assert limited[0].stdout.count(b"\n") == 8500


def test_parquet_keeps_no_buffers_of_small_batches() -> None:
    """Those of a pipe have few rows, in buffers with space for many."""
    values = [np.zeros(1_000) for _ in range(100)]
    held = [weakref.ref(value) for value in values]
    file = io.BytesIO()
    with Sink(file, "a file") as sink:
        writer = Writer(sink, pa.schema({"frame": pa.int64()}))
        while values:
            value = values.pop(0)
            buffer = pa.foreign_buffer(value.ctypes.data, 8, value)
            writer.write(pa.record_batch([pa.Array.from_buffers(pa.int64(), 1, [None, buffer])], ["frame"]))
        del value, buffer
        assert sum(each() is not None for each in held) < 64
        writer.finish()
        assert pq.read_table(io.BytesIO(file.getvalue())).num_rows == 100


@pytest.mark.long
def test_parquet_of_a_large_capture_needs_little_memory(tmp_path: Path) -> None:
    """The rows of 300,000 notifications are 170 MiB; with one row, a process has the package and what it imports."""
    queue, change = f"PRIVATE={uuid.UUID(int=1)}\\3", load("mqcn")[0].data
    message = mqqb.encode(mqqb.UserMessage(destination_queue=queue, body=change))
    data = message * (60_000 // len(message))
    (tmp_path / "small.pcap").write_bytes(build.pcap_header() + build.pcap_record(build.segment(message, 0)))
    count = 0
    with (tmp_path / "large.pcap").open("wb") as file:
        file.write(build.pcap_header())
        while count < 300_000:
            file.write(build.pcap_record(build.segment(data, count // (len(data) // len(message)) * len(data))))
            count += len(data) // len(message)
    program = (
        "import re, sys; from msmqwire.cli import main; status = main(sys.argv[1:]); "
        "print(re.search('VmHWM:.([ 0-9]+)', open('/proc/self/status').read())[1]); sys.exit(status)"
    )
    peaks = []
    for name, rows in (("small.pcap", 1), ("large.pcap", count)):
        done = subprocess.run(
            [sys.executable, "-c", program, "decode", "-j1", "--table=notifications", "-o", "out.parquet", name],
            cwd=tmp_path, env=environ(), capture_output=True, text=True, check=True,
        )  # fmt: skip
        assert pq.ParquetFile(tmp_path / "out.parquet").metadata.num_rows == rows
        peaks.append(int(done.stdout) >> 10)
    assert peaks[1] - peaks[0] < 90, peaks


def test_events_for_a_siem() -> None:
    """The members and formats of Suricata's eve.json; the rest is what JSON lines have."""
    done = msmqwire("decode", LOCAL, SESSION, "-T", "eve")
    events = [json.loads(line) for line in done.stdout.splitlines()]
    rows = [json.loads(line) for line in msmqwire("decode", LOCAL, SESSION, "-T", "json").stdout.splitlines()]
    assert len(events) == len(rows) > 5
    assert {event["proto"] for event in events} == {"TCP", "UDP"}
    names = {"file": "pcap_filename", "frame": "pcap_cnt", "src": "src_ip", "src_port": "src_port"}
    names |= {"dst": "dest_ip", "dst_port": "dest_port"}
    for event, row in zip(events, rows, strict=True):
        details = event["msmq"]
        assert event["event_type"] == "msmq"
        seen = datetime.strptime(event["timestamp"], "%Y-%m-%dT%H:%M:%S.%f%z")
        assert seen == datetime.fromisoformat(row["time"])
        assert {event[name] for name in names.values()} == {row[name] for name in names}
        assert event["proto"] == row["transport"].upper()
        assert details == {name: row[name] for name in row if name not in {*names, "time", "transport"}}
    (event,) = map(
        json.loads, msmqwire("decode", LOCAL, "-T", "eve", "-n", "1", "--columns", "type").stdout.splitlines()
    )
    assert event == {"event_type": "msmq", "msmq": {"table": "topology", "type": "request"}}
