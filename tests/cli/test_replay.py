"""``msmqwire replay``: queues for people and programs, as of any time."""

from __future__ import annotations

import base64
import json
import shutil
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from pyspark.sql import SparkSession

from msmqwire.notification.carried_attributes import CREATED_QUEUE
from msmqwire.notification.sender import QueueCreation, QueueDeletion
from msmqwire.spark import pipeline
from tests.cli.support import EXAMPLES, msmqwire, process, refused, run
from tests.effort import first_of
from tests.notification.sent import MANAGER, ORDERS, SERVICE, captured, captured_packets, changed, packet_of

SESSION = EXAMPLES / "message-session.pcap"


def queues(*arguments: str | Path) -> list[dict[str, Any]]:
    status, output, _ = run("replay", *arguments, "-T", "json")
    assert status == 0
    return [json.loads(line) for line in output.splitlines()]


@pytest.fixture
def created(tmp_path: Path) -> Path:
    path = tmp_path / "created.pcap"
    path.write_bytes(captured(SERVICE.notifications([QueueCreation(queue=ORDERS, queue_manager=ORDERS.identifier)])))
    return path


def test_for_people() -> None:
    status, output, errors = run("replay", SESSION, "--quiet")
    assert (status, errors) == (0, "")
    lines = output.splitlines()
    assert lines[0] == "10.20.1.25  5f1c2a34-77d0-4b6e-9a51-0c8d7e2f4b19  deleted"
    assert lines[2:4] == ["  journaling True", "  quota 65536"]
    assert "10.20.1.10  5f1c2a34-77d0-4b6e-9a51-0c8d7e2f4b19  not known to exist" in lines


def test_json_says_all_and_nothing_more(created: Path) -> None:
    (queue,) = queues(created)
    (event,) = queue.pop("history")
    assert queue == {
        "machine": "10.0.0.2",
        "queue_manager": None,
        "exists": True,
        "authentication": True,
        "base_priority": -3,
        "create_time": 1_709_539_200,
        "identifier": str(ORDERS.identifier),
        "journal_quota": 2048,
        "journaling": True,
        "label": "Zürich 𝄞",
        "modify_time": 1_709_539_201,
        "pathname": r"ledger\orders",
        "privacy_level": "body",
        "quota": 4096,
        "scope": "site",
        "security": "01000480",
        "transactional": True,
        "type": str(ORDERS.type),
    }
    told = event.pop("notified")
    assert {name: queue[name] for name in told} == told
    assert (event["operation"], event["frame"], event["file"]) == ("create", 2, str(created))
    first, second = queues(SESSION)
    assert (first["pathname"], first["label"], second["quota"]) == (None, None, None)


def test_at_a_time() -> None:
    assert queues(SESSION, "--at", "2024-03-04T08:02:00.027899999Z") == []
    (queue,) = queues(SESSION, "--at", "2024-03-04T08:02:00.0279")
    assert queue["exists"] is False
    assert len(queues(SESSION, "--at", "2024-03-04T09:02:01+01:00")) == 2
    assert len(queues(SESSION, "--at", "2024-03-05")) == 2
    assert queues(SESSION, "--at", "08:02") == []
    assert len(queues(SESSION, "--at", "8:02:01")) == 2
    for text in ("yesterday", "2024-13-01", "2024-03-04T08:02:00.0123456789Z", "", "2024-03-04T08:02+99:00"):
        assert "is not an ISO 8601 time" in refused("replay", SESSION, f"--at={text}")


def test_other_ports(tmp_path: Path) -> None:
    moved = tmp_path / "moved.pcap"
    moved.write_bytes(SESSION.read_bytes().replace((1801).to_bytes(2), (2801).to_bytes(2)))
    assert queues(moved) == []
    found, expected = queues(moved, "--ports", "2801"), queues(SESSION)
    assert [queue["identifier"] for queue in found] == [queue["identifier"] for queue in expected]
    assert "no frame has a port that is read (TCP 1801): --ports reads others\n" in run("replay", moved)[2]


def test_counts() -> None:
    status, _, errors = run("replay", SESSION, "-T", "json")
    assert (status, errors.splitlines()[-1]) == (
        0,
        "3 notification messages: 2 queues, 0 disregarded, 0 changes of machines",
    )


def test_text_cannot_steer_a_terminal(tmp_path: Path) -> None:
    queue = type(ORDERS).of({**ORDERS.attributes(), "label": "\x1b[31m\nred"})
    path = tmp_path / "red.pcap"
    path.write_bytes(captured(SERVICE.notifications([QueueCreation(queue=queue, queue_manager=ORDERS.identifier)])))
    _, output, _ = run("replay", path)
    assert "label \ufffd[31m\ufffdred" in output
    assert "\x1b" not in output


def test_damage_has_its_status(tmp_path: Path, created: Path) -> None:
    path = tmp_path / "cut.pcap"
    path.write_bytes(created.read_bytes()[:-5])
    assert run("replay", path)[0] == 2


def test_what_is_no_capture(tmp_path: Path) -> None:
    path = tmp_path / "text.pcap"
    path.write_text("no capture")
    assert "text.pcap" in refused("replay", path)
    assert "text.pcap" in refused("replay", tmp_path)
    assert "No such file" in refused("replay", tmp_path / "none.pcap")


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Has orders with other quotas, and another queue; Pathname in other letters."""
    path = tmp_path / "held.json"
    others = {"journal_quota": 1, "quota": 1, "modify_time": 5, "pathname": r"LEDGER\Orders"}
    held = changed(ORDERS, **others).only(tuple(CREATED_QUEUE.values()))
    values = {**held.attributes(), "security": base64.b64encode(held.security).decode()}
    text = {"queue": [values, {"identifier": str(UUID(int=9)), "pathname": r"ledger\spare", "quota": 3}]}
    path.write_text(json.dumps(text, default=str))
    return path


def test_beside_a_directory(created: Path, directory: Path) -> None:
    status, output, errors = run("replay", created, "--directory", directory, "-T", "json")
    first, second = map(json.loads, output.splitlines())
    assert (first["directory"], first["differences"]) == ("differs", {"journal_quota": 1, "quota": 1})
    assert (first["quota"], first["exists"]) == (4096, True)
    assert (second["directory"], second["differences"]) == ("not_notified", {})
    assert (second["machine"], second["exists"], second["history"]) == (None, None, [])
    assert (second["pathname"], second["quota"]) == (r"ledger\spare", 3)
    assert status == 0
    assert errors.splitlines()[-1] == "compared with the directory: differs 1, not notified 1"
    _, _, errors = run("replay", SESSION, "--directory", directory)
    assert errors.splitlines()[-1] == "compared with the directory: agrees 1, absent 1, not notified 2"
    _, output, _ = run("replay", created, "--directory", directory)
    assert "  directory has quota 1, journal_quota 1\n" in output
    assert f"ledger\\spare  no notification\n  identifier {UUID(int=9)}\n" in output


def test_version_2_is_filled_in_from_the_directory(tmp_path: Path, directory: Path) -> None:
    path = tmp_path / "version2.pcap"
    path.write_bytes(captured(MANAGER.notifications([QueueCreation(queue=ORDERS, queue_manager=ORDERS.identifier)])))
    (plain,) = queues(path)
    assert (plain["pathname"], plain["quota"]) == (None, None)
    filled, _ = queues(path, "--directory", directory)
    assert (filled["pathname"], filled["quota"], filled["directory"]) == (r"LEDGER\Orders", 1, "agrees")


def test_a_lake_says_what_its_captures_say(spark: SparkSession, tmp_path: Path, created: Path, directory: Path) -> None:
    """One of them has grown since it was put in: what is said of it is said once."""
    trailing, session = tmp_path / "trailing.pcap", tmp_path / "session.pcap"
    (notification,) = SERVICE.notifications([QueueDeletion(queue=ORDERS, queue_manager=ORDERS.identifier)])
    trailing.write_bytes(captured_packets([packet_of(notification.body + b"\0")], port=40001))
    captures = [str(created), str(session), str(trailing)]
    whole = SESSION.read_bytes()
    for size in (len(whole) - 500, len(whole)):
        session.write_bytes(whole[:size])
        pipeline.run(spark, captures, tmp_path / "lake")
    # Between the two notifications of the session that tell of a queue
    options = ("--directory", str(directory), "-T", "json")
    at = ("--at", "2024-03-04T08:02:00.03")
    lake = ("replay", "--lake", tmp_path / "lake", *options, *at)
    status, output, said = run(*lake)
    # The last capture has a message that no receiver takes
    assert (status, said.splitlines()[-1]) == (2, "compared with the directory: agrees 1, differs 1, not notified 1")

    def lines(text: str) -> list[dict[str, Any]]:
        return sorted(map(json.loads, text.splitlines()), key=lambda queue: str(queue["machine"]))

    found = lines(output)
    status, output, _ = run("replay", *captures, *options, *at)
    assert (status, lines(output)) == (2, found)
    status, output, _ = run("replay", *captures, *options)
    later = [queue for queue in lines(output) if queue not in found]
    assert (status, [queue["machine"] for queue in later]) == (2, ["10.20.1.10"])
    assert len(lines(output)) == len(found) + 1


@pytest.mark.parametrize("command", ["replay", "summary"])
def test_captures_or_a_lake(command: str, tmp_path: Path, created: Path) -> None:
    assert "name captures, or a lake with --lake" in refused(command)
    assert "name captures or a lake, not both" in refused(command, created, "--lake", tmp_path)
    assert "is not a lake: msmqwire pipeline makes one" in refused(command, "--lake", tmp_path)
    assert "No such file" in refused("replay", created, "--directory", tmp_path / "none.toml")


@pytest.mark.parametrize("encoding", first_of(["cp1252", "ascii"]))
def test_names_that_the_encoding_of_the_output_lacks(encoding: str, tmp_path: Path) -> None:
    capture = tmp_path / "Łódź 𝄞.pcap"
    shutil.copy(SESSION, capture)
    expected = msmqwire("replay", capture, "-q").stdout.decode()
    done = process("replay", capture, "-q", env={"PYTHONIOENCODING": encoding})
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.decode(encoding) == expected.encode(encoding, "backslashreplace").decode(encoding)
    assert b"\\U0001d11e" in done.stdout
