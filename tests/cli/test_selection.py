"""Which captures, tables and times a command reads: options between files, tables named twice, times of day."""

from __future__ import annotations

import json
import time
from pathlib import Path
from uuid import UUID

import pytest

from msmqwire import mqqb
from msmqwire.capture.files.writing import CaptureWriter, Flow
from tests.cli.support import EXAMPLES, V1, Row, capture, msmqwire, refused, run
from tests.insight.captures import stream, write

LOCAL, SESSION = EXAMPLES / "local-site.pcap", EXAMPLES / "message-session.pcap"


def rows(*words: str | Path) -> list[Row]:
    status, output, errors = run("decode", "-T", "json", "-q", *words)
    assert status == 0, errors
    return [json.loads(line) for line in output.splitlines()]


def test_options_may_stand_between_files() -> None:
    assert rows(LOCAL, "--table", "topology", SESSION) == rows("--table", "topology", LOCAL, SESSION)


def test_a_table_named_again_is_added() -> None:
    found = rows("--table", "sessions", SESSION, "--table", "messages", "--table", "messages")
    assert [row["table"] for row in found] == ["messages"] * 5 + ["sessions"] * 7
    assert "csv holds one table" in refused(
        "decode", SESSION, "--table", "topology", "--table", "messages", "-T", "csv"
    )


def test_ports_of_every_table() -> None:
    assert rows(SESSION, "--ports", "1801", "--table", "messages") == rows(SESSION, "--table", "messages")
    for path in (LOCAL, SESSION):
        assert rows(path, "--ports", "1801") == rows(path, "--ports", "1801,3527") == rows(path)


@pytest.mark.parametrize(
    ("given", "iso"),
    [
        ("08:00", "2024-03-04T08:00"),
        ("8:00:02", "2024-03-04T08:00:02"),
        ("00:00", "2024-03-04"),
        ("23:59:59", "2024-03-04T23:59:59"),
    ],
)
@pytest.mark.parametrize("option", ["--since", "--until"])
def test_a_time_of_day_is_on_the_first_day(tmp_path: Path, option: str, given: str, iso: str) -> None:
    path = tmp_path / "x.pcap"
    path.write_bytes(capture([V1.data] * 5))  # a second apart from 08:00:00.1
    assert rows(path, option, given) == rows(path, option, iso)


def test_a_time_before_now(tmp_path: Path) -> None:
    path = tmp_path / "x.pcap"
    hour_ago = time.time_ns() - 3600 * 10**9
    with path.open("wb") as file:
        writer = CaptureWriter(file)
        for hours in (0, 2, 4):
            writer.datagram(hour_ago - hours * 3600 * 10**9, Flow("192.0.2.1", 50000, "192.0.2.2", 1801), V1.data)
    for since, expected in (("-30m", 0), ("-2h", 1), ("-240m", 2), ("-1d", 3)):
        assert len(rows(path, "--since", since)) == expected
        assert len(rows(path, "--until", since)) == 3 - expected


def test_times_that_are_refused() -> None:
    for given in ("24:00", "8:60", "-2x", "yesterday"):
        said = refused("decode", LOCAL, f"--since={given}")
        assert f"{given!r} is not an ISO 8601 time, as in 2024-03-04" in said
        assert "; other forms are a time of day, as in 08:10, and a distance from now, as in -2h (see" in said


def test_a_capture_that_is_named_twice_is_reported() -> None:
    _, _, errors = run("decode", LOCAL, LOCAL, SESSION, "-T", "json", "-q")
    assert errors == f"msmqwire: {LOCAL} is named 2 times, and is read as often\n"


@pytest.mark.parametrize(
    ("selection", "named"),
    [
        (("--since", "2025-01-01"), "--since"),
        (("--until", "2020-01-01"), "--until"),
        (("--address", "203.0.113.0/24"), "--address"),
        (("--address", "203.0.113.9", "--since", "2024-03-04T08:00"), "--since, --address"),
    ],
)
@pytest.mark.parametrize("command", ["decode", "summary", "detect"])
def test_payloads_that_all_lie_outside(tmp_path: Path, selection: tuple[str, ...], named: str, command: str) -> None:
    path = tmp_path / "x.pcap"
    with path.open("wb") as file:
        writer = CaptureWriter(file)
        for second in range(3):
            at = (1_709_539_200 + second) * 10**9
            writer.datagram(at, Flow("192.0.2.1", 50000, "192.0.2.2", 1801), V1.data)
    expected = (
        f"{named}: none of 3 payloads is selected, from 2024-03-04T08:00:00.000000000Z to "
        "2024-03-04T08:00:02.000000000Z, between 192.0.2.1, 192.0.2.2"
    )
    assert expected in run(command, path, *selection)[2]
    for others in ((), ("--since", "2024-03-04T08:00:02")):
        assert "is selected" not in run(command, path, *others)[2]
    path.write_bytes(capture([]))
    assert "is selected" not in run(command, path, *selection)[2]


@pytest.mark.parametrize("command", ["decode", "summary", "detect"])
def test_captures_without_the_ports_that_are_read(tmp_path: Path, command: str) -> None:
    path, hint = tmp_path / "x.pcap", "no frame has a port that is read ({}): --ports reads others\n"
    with path.open("wb") as file:
        CaptureWriter(file).datagram(0, Flow("192.0.2.1", 50000, "192.0.2.2", 2801), V1.data)
    assert hint.format("UDP 1801, 3527; TCP 1801; IPX 876") in run(command, path)[2]
    assert hint.format("UDP 1801, 3527; TCP 1801; IPX 1801") in run(command, path, "--ports", "1801")[2]
    for others in (("--ports", "2801"), ("--since", "2024-03-04")):
        assert "--ports" not in run(command, path, *others)[2]
    path.write_bytes(capture([]))
    assert "--ports" not in run(command, path)[2]


SENDER = UUID("43cd8907-394c-8f11-4445-9078909ea0fc")


@pytest.fixture
def sent(tmp_path: Path) -> Path:
    """Messages 1 to 5, to queues whose names are alike; the last to two queues."""
    orders = r"DIRECT=OS:host\private$\orders"
    queues = [orders, r"DIRECT=TCP:10.0.0.1\PRIVATE$\Orders", r"DIRECT=OS:host\private$\reorders", f"{orders}2"]
    messages = [
        mqqb.UserMessage(source_queue_manager=SENDER, message_id=number, destination_queue=queue)
        for number, queue in enumerate(queues, 1)
    ]
    first = r"DIRECT=OS:a\private$\first"
    several = mqqb.MultiQueueFormatHeader(destination_queues=(first, orders))
    last = {"source_queue_manager": SENDER, "message_id": 5, "destination_queue": first}
    messages.append(mqqb.UserMessage(multi_queue=several, **last))  # type: ignore[arg-type]
    return write(tmp_path / "x.pcap", stream([mqqb.encode(each) for each in messages]))


@pytest.mark.parametrize(
    ("queue", "numbers"),
    [
        (r"private$\orders", [1, 2, 5]),
        (r"HOST\Private$\Orders", [1, 5]),
        (r"\orders", [1, 2, 5]),
        (r"direct=tcp:10.0.0.1\private$\orders", [2]),
        ("ders", []),
        ("o.ders", []),
        ("first' OR 'a' = 'a", []),
    ],
)
def test_messages_to_a_queue(sent: Path, queue: str, numbers: list[int]) -> None:
    assert [row["message_id"] for row in rows(sent, "--queue", queue)] == numbers


def test_a_message_by_the_identifier_that_windows_prints(sent: Path) -> None:
    (row,) = rows(sent, "--message", rf"{{{str(SENDER).upper()}}}\3", "--columns", "message_id,message_identifier")
    assert row == {"message_id": 3, "message_identifier": rf"{SENDER}\3"}
    assert [found["message_id"] for found in rows(sent, "--where", rf"message_identifier > '{SENDER}\3'")] == [4, 5]
    assert rows(sent, "--message", rf"{SENDER}\1", "--queue", "reorders") == []
    status, _, errors = run("decode", sent, "--message", rf"{SENDER}\1", "--where", "hop_count = 0 OR 1", "-T", "json")
    assert (status, errors.splitlines()[-1]) == (0, "--where --message are true for 1 row")
    for wrong in ("x", str(SENDER), rf"{SENDER}\4294967296", rf"{SENDER}\-1"):
        assert r"is not of the form GUID\NUMBER" in refused("decode", sent, "--message", wrong)
    assert refused("decode", sent, "--queue", "x", "--table", "sessions") == (
        "msmqwire: --queue x: sessions lacks columns of the condition\n"
    )


def test_the_message_identifier_is_taken_back(sent: Path) -> None:
    (row,) = rows(sent, "--message", rf"{SENDER}\2", "--columns", "destination_queue,message_identifier")
    encoded = msmqwire("encode", "-", "--table", "messages", "-T", "hex", "-q", input=json.dumps(row).encode())
    message = mqqb.decode(bytes.fromhex(encoded.stdout.decode()))
    assert isinstance(message, mqqb.UserMessage)
    assert (message.source_queue_manager, message.message_id) == (SENDER, 2)
    for changes in ({"message_id": 3}, {"message_identifier": "2"}, {"message_identifier": 2}):
        line = json.dumps({**row, **changes}).encode()
        assert "message_identifier: " in refused("encode", "-", "--table", "messages", "-T", "hex", input=line)


def test_extension_data_is_written_by_its_text() -> None:
    row = {"destination_queue": r"DIRECT=OS:a\b", "extension_text": '{"rbs2-msg-id":"1"}'}
    encoded = msmqwire("encode", "-", "--table", "messages", "-T", "hex", "-q", input=json.dumps(row).encode())
    message = mqqb.decode(bytes.fromhex(encoded.stdout.decode()))
    assert isinstance(message, mqqb.UserMessage)
    assert bytes(message.extension_data) == b'{"rbs2-msg-id":"1"}'
    line = json.dumps({**row, "extension_data": "00"}).encode()
    assert "extension_text: it contradicts" in refused("encode", "-", "--table", "messages", "-T", "hex", input=line)
