"""``msmqwire decode``: every table of a capture, selection, and counts of what was lost on the way."""

from __future__ import annotations

import gzip
import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from msmqwire.capture import TABLES
from tests.cli.support import (
    COMMAND,
    LOCAL,
    OTHER,
    ROOT,
    SESSION,
    START,
    V1,
    WRITER,
    capture,
    environ,
    expected_rows,
    from_json,
    msmqwire,
    plain_rows,
    refused,
    reply_from,
)
from tests.cli.terminal import Terminal, start

FRAMES: list[Any] = WRITER["message_session"]()
DEADLINE = 60


def shown_tables(text: str) -> list[str]:
    """The tables whose rows are shown, in their order: before each row, or above the rows with chosen columns."""
    return [*dict.fromkeys(re.findall(r"^(?:# )?(\w+)(?:$| +\S.*  2024-)", text, re.MULTILINE))]


def without(tmp_path: Path, *numbers: int) -> Path:
    """The session's capture without frames of these numbers, from 1."""
    path = tmp_path / "lossy.pcap"
    path.write_bytes(WRITER["pcap"]([frame for number, frame in enumerate(FRAMES, 1) if number not in numbers]))
    return path


def plain_json(data: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in data.splitlines()]


# --- For people ---


def test_the_table_form_shows_each_table_that_has_rows() -> None:
    done = msmqwire("decode", SESSION, LOCAL, "-T", "table")
    text = done.stdout.decode()
    assert done.returncode == 0, done.stderr
    assert sorted(shown_tables(text)) == sorted(TABLES)  # in the order of the files
    for shown in (
        "change queue", "delete queue", "PROPID_Q_QUOTA 65536", "mq-dc1.corp.example",
        "user_message", "order_ack", r"DIRECT=TCP:10.20.1.25\private$\orders", "Order 4711", "notification",
        "establish_connection", "session_ack",
    ):  # fmt: skip
        assert shown in text, shown
    for name, value in (("domain_controller", "mq-dc1.corp.example"), ("message_size", 3464), ("ack_timeout", 120000)):
        assert re.search(rf"^  {name} +{value}$", text, re.MULTILINE)
    assert re.search(r"[0-9a-f]{40}… *$", text, re.MULTILINE)  # a body, shortened
    assert not re.search(r"[0-9a-f]{41}", text)
    assert "not shown: null, zero and empty fields" in text
    assert done.stderr.decode().splitlines() == [
        "27 frames: 6 datagrams, 18 segments, 3 of other protocols, 0 malformed",
        "4 rows of topology, 4 of notifications, 5 of messages, 7 of sessions",
        "18 segments of 3 streams, 10 packets",
    ]


def test_rows_of_a_table_come_in_the_order_of_the_wire() -> None:
    text = msmqwire("decode", SESSION, "-T", "table").stdout.decode()
    for name in shown_tables(text):
        frames = [int(number) for number in re.findall(rf"^{name} +(\d+)  2024-", text, re.MULTILINE)]
        assert frames == [row["frame"] for row in expected_rows(SESSION, table=name)]


def test_tables_without_rows_are_named() -> None:
    text = msmqwire("decode", SESSION, "-T", "table").stdout.decode()
    assert "no rows of topology\n" in text
    text = msmqwire("decode", OTHER, "-T", "table").stdout.decode()
    assert shown_tables(text) == ["topology"]
    assert "no rows of notifications, messages, sessions\n" in text


@pytest.mark.parametrize(("name", "apart"), [("b" * 12, ", "), ("b" * 13, r" *\n *")])
def test_a_list_longer_than_a_guid_has_a_line_for_each_item(name: str, apart: str, tmp_path: Path) -> None:
    path = tmp_path / "two-servers.pcapng"
    path.write_bytes(capture([reply_from("a" * 12, name)]))
    text = msmqwire("decode", path, "-T", "table").stdout.decode()
    assert re.search(rf"a{{12}} \(ip\){apart}{name} \(ip\)", text)


@pytest.mark.parametrize("table", list(TABLES))
def test_one_table_for_people_has_no_heading(table: str) -> None:
    done = msmqwire("decode", SESSION, LOCAL, "-T", "table", "--table", table)
    assert shown_tables(done.stdout.decode()) == []
    assert f"\n{len(expected_rows(SESSION, LOCAL, table=table))} rows of {table}\n".encode() in done.stderr


def test_a_terminal_gets_every_table() -> None:
    terminal = Terminal(columns=120)
    process = start(["decode", SESSION], stdout=terminal.descriptor, stderr=subprocess.PIPE)
    process.communicate(timeout=DEADLINE)
    assert process.returncode == 0
    assert shown_tables(terminal.text()) == ["notifications", "messages", "sessions"]


# --- For programs ---


@pytest.mark.parametrize("table", list(TABLES))
def test_a_table_that_is_named(table: str, tmp_path: Path) -> None:
    expected = expected_rows(SESSION, LOCAL, table=table)
    out = tmp_path / "out.parquet"
    assert msmqwire("decode", SESSION, LOCAL, "--table", table, "-o", out).returncode == 0
    assert plain_rows(pq.read_table(out)) == expected
    done = msmqwire("decode", SESSION, LOCAL, "--table", table, "--columns", "frame,fault")
    assert from_json(done.stdout) == [{"frame": row["frame"], "fault": row["fault"]} for row in expected]
    done = msmqwire("decode", SESSION, LOCAL, "--table", table, "-T", "csv")
    assert done.stdout.count(b"\r\n") == len(expected) + 1


def test_json_has_all_tables_and_says_which() -> None:
    rows = plain_json(msmqwire("decode", SESSION, LOCAL).stdout)
    assert rows == plain_json(msmqwire("decode", SESSION, LOCAL, "--table", "all", "-T", "json").stdout)
    assert {next(iter(row)) for row in rows} == {"table"}
    for table in TABLES:
        alone = plain_json(msmqwire("decode", SESSION, LOCAL, "--table", table).stdout)
        assert [row for row in rows if row["table"] == table] == [{"table": table, **row} for row in alone]


@pytest.mark.parametrize("format", ["csv", "parquet"])
def test_formats_of_one_table_refuse_to_leave_out_rows(format: str, tmp_path: Path) -> None:
    """Without --table they have topology, and end at the first row of another table."""
    out = tmp_path / "out"
    said = refused("decode", SESSION, "-T", format, "-o", out)
    assert f"{format} holds one table, topology here, and notifications has rows too; choose one with --table" in said
    assert not out.exists()
    done = msmqwire("decode", LOCAL, SESSION, "-T", format)
    assert (done.returncode, done.stderr.count(b"\n"), b"use -T json" in done.stderr) == (1, 1, True)
    assert msmqwire("decode", LOCAL, "-T", format, "-o", out).returncode == 0
    assert msmqwire("decode", LOCAL, "--table", "topology", "-T", format).stdout == out.read_bytes()


def test_columns_choose_the_tables_that_have_them() -> None:
    rows = plain_json(msmqwire("decode", SESSION, LOCAL, "--columns", "frame,fault").stdout)
    assert {row["table"] for row in rows} == set(TABLES)
    assert {tuple(row) for row in rows} == {("table", "frame", "fault")}
    rows = plain_json(msmqwire("decode", SESSION, LOCAL, "--columns", "label,frame").stdout)
    assert [list(row) for row in rows] == [["label", "frame"]] * 5
    text = msmqwire("decode", SESSION, LOCAL, "-T", "table", "--columns", "frame,kind").stdout.decode()
    assert shown_tables(text) == ["messages", "sessions"]


def test_a_limit_of_rows(tmp_path: Path) -> None:
    everything = plain_json(msmqwire("decode", SESSION, LOCAL).stdout)
    for limit in (1, 5, 19):
        done = msmqwire("decode", SESSION, LOCAL, "-n", str(limit))
        assert plain_json(done.stdout) == everything[:limit]
        assert done.stderr.decode().splitlines()[-1] == f"stopped after {limit} row{'s' * (limit > 1)} (--limit)"
    assert msmqwire("decode", LOCAL, "-T", "csv", "-n", "2").stdout.count(b"\r\n") == 3
    path = tmp_path / "many.pcapng"
    path.write_bytes(capture([V1.data] * 30_000, step=1_000))
    done = msmqwire("decode", path, "--table", "topology", "-n", "3")
    assert done.stdout.count(b"\n") == 3
    assert int(done.stderr.split()[0].replace(b",", b"")) < 30_000  # the rest was not read


# --- Files that can be read once, compressed files ---


def test_every_table_of_standard_input() -> None:
    data = SESSION.read_bytes()
    expected = [{**row, "file": "-"} for row in plain_json(msmqwire("decode", SESSION).stdout)]
    assert plain_json(msmqwire("decode", "-", input=data).stdout) == expected
    assert plain_json(msmqwire("decode", "-", input=gzip.compress(data)).stdout) == expected
    with SESSION.open("rb") as file:  # not a pipe: it can be read again
        assert plain_json(msmqwire("decode", "-", stdin=file).stdout) == expected


def test_every_table_of_a_named_pipe() -> None:
    command = [
        "bash",
        "-c",
        'exec "$@" <(cat examples/message-session.pcap)',
        "bash",
        *COMMAND,
        "decode",
        "-T",
        "table",
    ]
    done = subprocess.run(command, capture_output=True, env=environ(), cwd=ROOT, timeout=DEADLINE)
    assert done.returncode == 0, done.stderr
    assert shown_tables(done.stdout.decode()) == ["notifications", "messages", "sessions"]


def test_a_compressed_file_that_is_cut(tmp_path: Path) -> None:
    path = tmp_path / "cut.pcap.gz"
    path.write_bytes(gzip.compress(SESSION.read_bytes())[:-40])
    for arguments in (("-T", "table"), ("--table", "messages")):
        done = msmqwire("decode", path, *arguments)
        assert done.returncode == 2
        assert b"1 compressed file not read to the end\n" in done.stderr


def test_rows_of_a_pipe_appear_as_they_are_read() -> None:
    """Of all tables, for people."""
    with subprocess.Popen(
        [*COMMAND, "decode", "-", "-T", "table", "-q"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environ(), cwd=ROOT,
    ) as process:  # fmt: skip
        assert process.stdin
        assert process.stdout
        process.stdin.write(SESSION.read_bytes()[:-100])
        process.stdin.flush()
        assert re.match(rb"\w+ +\d+  2024-", process.stdout.readline())
        assert process.poll() is None
        process.stdin.write(SESSION.read_bytes()[-100:])
        process.stdin.close()
        assert b"messages " in process.stdout.read()


# --- Selection ---


def test_selection_by_address_and_time() -> None:
    for table in ("topology", "sessions"):
        done = msmqwire("decode", LOCAL, SESSION, "--table", table, "--address", "10.20.7.0/24", "--address", "::1")
        assert from_json(done.stdout) == expected_rows(LOCAL, SESSION, table=table, addresses=["10.20.7.0/24"])
    times = [row["time"] for row in expected_rows(LOCAL)]
    for option, expected in (("--since", times[2:]), ("--until", times[:2])):
        done = msmqwire("decode", LOCAL, "--table", "topology", option, "2024-03-04T08:00:00.0075Z")
        assert [row["time"] for row in from_json(done.stdout)] == expected
    text = msmqwire("decode", LOCAL, SESSION, "-T", "table", "--until", "2024-03-04T08:01").stdout.decode()
    assert shown_tables(text) == ["topology"]


# --- What was lost ---


def test_a_gap_in_a_stream_is_counted(tmp_path: Path) -> None:
    path = without(tmp_path, 11)
    for arguments in (("-T", "table"), ("--table", "messages"), ("--table", "notifications")):
        done = msmqwire("decode", path, *arguments)
        assert done.returncode == 2, done.stderr
        assert re.search(rb"^\d+ segments of 2 streams, \d+ packets: 1 gap, [\d,]+ bytes missing", done.stderr, re.M)
    assert msmqwire("decode", path, "--table", "topology").returncode == 0  # no stream has topology


def test_an_encrypted_notification_is_counted(tmp_path: Path) -> None:
    from msmqwire import mqqb

    hidden = mqqb.UserMessage(
        destination_queue="PRIVATE=43cd8907-394c-8f11-4445-9078909ea0fc\\3", body=b"?", privacy_level=3
    )
    conversation = WRITER["Conversation"]("10.20.1.10", 50211, "10.20.1.25", 1801)
    conversation.send(0, mqqb.encode(hidden))
    conversation.close()
    path = tmp_path / "encrypted.pcap"
    path.write_bytes(WRITER["pcap"]([WRITER["Frame"](START, frame) for frame in conversation.frames]))
    done = msmqwire("decode", path, "--table", "notifications")
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"1 message to the notify queue encrypted, and so without rows\n" in done.stderr
    assert b"1 message to the notify queue encrypted" in msmqwire("decode", path, "-T", "table").stderr
    assert msmqwire("decode", path, "--table", "messages").returncode == 0
