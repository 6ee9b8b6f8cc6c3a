"""``send --store``, ``receive --store`` and ``store``, as processes that are killed."""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.support import COMMAND, environ, refused, run
from tests.effort import long_cases
from tests.net.relay import Relay
from tests.net.session_wire import free_port

NAME = r"DIRECT=TCP:127.0.0.1\private$\orders"


@contextlib.contextmanager
def receiving(folder: Path, port: int, *options: str) -> Iterator[subprocess.Popen[bytes]]:
    """A receiver that listens; it is killed at the end."""
    places = ["--store", str(folder / "store"), "-o", str(folder / "rows"), "--port", str(port)]
    with subprocess.Popen([*COMMAND, "receive", *places, *options], stderr=subprocess.PIPE, env=environ()) as started:
        try:
            assert started.stderr is not None
            assert b"listening" in started.stderr.readline()
            yield started
        finally:
            started.kill()


def texts(folder: Path) -> list[str]:
    path = folder / "rows" / "private.orders.jsonl"
    return [json.loads(line)["body_text"] for line in path.read_text().splitlines()]


@pytest.mark.long
def test_a_receiver_that_is_killed(tmp_path: Path) -> None:
    """The sender sends again what was not acknowledged: each message is in the file once, and in order."""
    messages, kills = 3_000, 12
    port, chance = free_port(), random.Random(messages)
    rows = b"".join(b'{"body_text": "%d"}\n' % number for number in range(messages))
    (tmp_path / "input").write_bytes(rows)
    command = [*COMMAND, "send", NAME, "--rows", "--recoverable", "--port", str(port), "--timeout", "300", "--quiet"]
    with (tmp_path / "input").open("rb") as source, subprocess.Popen(command, stdin=source, env=environ()) as sender:
        for _ in range(kills):
            with receiving(tmp_path, port) as receiver:
                time.sleep(chance.random() * 0.4)
                receiver.send_signal(signal.SIGKILL)
        with receiving(tmp_path, port) as receiver:
            assert sender.wait(300) == 0
            receiver.send_signal(signal.SIGTERM)
            receiver.wait(60)
    assert texts(tmp_path) == [str(number) for number in range(messages)]


def test_messages_of_an_earlier_process_count(tmp_path: Path) -> None:
    """What is in the store is delivered first, and counted."""
    port = free_port()
    arguments = ["--port", str(port), "--recoverable", "--quiet"]
    with receiving(tmp_path, port, "--count", "1") as receiver:
        assert subprocess.run([*COMMAND, "send", NAME, "--text", "a", *arguments], env=environ()).returncode == 0
        assert receiver.wait(60) == 0
        assert receiver.stderr is not None
        assert receiver.stderr.read() == b"1 message received\n"
    assert texts(tmp_path) == ["a"]


def test_a_file_that_was_changed(tmp_path: Path) -> None:
    port = free_port()
    with receiving(tmp_path, port, "--count", "1"):
        done = subprocess.run(
            [*COMMAND, "send", NAME, "--text", "a", "--port", str(port), "--recoverable", "--quiet"], env=environ()
        )
        assert done.returncode == 0
    path = tmp_path / "rows" / "private.orders.jsonl"
    path.write_bytes(path.read_bytes() + b"{}\n")
    places = ["--store", str(tmp_path / "store"), "-o", str(tmp_path / "rows")]
    assert "private.orders.jsonl was changed after its last message" in refused("receive", *places)


def test_list_and_copies(tmp_path: Path) -> None:
    identifier = "ba000000-0000-4000-8000-0000000000c7"
    arguments = ["--store", str(tmp_path / "a"), "--queue-manager", identifier, "--port", "0", "--seconds", "0.1"]
    assert run("receive", *arguments, "--quiet")[0] == 0
    status, output, errors = run("store", "list", tmp_path / "a")
    assert (status, errors) == (0, "")
    counts = {"waiting": 0, "acknowledgments": 0, "outputs": {}, "outgoing": 0, "awaiting": 0}
    assert json.loads(output) == {"queue_manager": identifier, **counts}
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    assert "is a copy, or was moved" in refused("store", "list", tmp_path / "b")
    assert run("store", "moved", tmp_path / "b")[0] == 0
    assert run("store", "list", tmp_path / "b")[0] == 0
    shutil.copytree(tmp_path / "a", tmp_path / "c")
    assert run("store", "restored", tmp_path / "c")[0] == 0
    assert "came out of order" in refused("store", "skip", tmp_path / "c", identifier, NAME)


# --- send ---


#: Both ends are killed so often among 10,000 messages, where the environment asks for it.
KILLS = int(os.environ.get("MSMQWIRE_KILLS", "0"))


@pytest.mark.parametrize(
    ("messages", "kills", "longest"),
    [(400, 4, 1.5), *long_cases([(3_000, 20, 1.5), *([(10_000, KILLS, 6.0)] if KILLS else [])])],
)
def test_both_ends_are_killed(tmp_path: Path, messages: int, kills: int, longest: float) -> None:
    """Through a relay that cuts: the file has each message once and in order, however often either end is killed."""
    port, chance = free_port(), random.Random(messages)
    (tmp_path / "input").write_text(
        "".join(f'{{"body_text": "{number}", "key": "{number}"}}\n' for number in range(messages))
    )
    status = None
    with contextlib.ExitStack() as stack:
        relay = stack.enter_context(Relay(port, messages, 400_000).running())
        places = ["--store", str(tmp_path / "sender"), "--port", str(relay.port), "--timeout", "300", "--quiet"]
        start = [*COMMAND, "send", NAME, "--rows", "--transactional", *places]
        receiver = stack.enter_context(receiving(tmp_path, port))
        for number in range(kills + 1):
            with (tmp_path / "input").open("rb") as source:
                # Repeated with the same input, of which the store has the keys
                sender = stack.enter_context(subprocess.Popen(start, stdin=source, env=environ()))
            try:
                status = sender.wait(300 if number == kills else chance.random() * longest + 0.3)
            except subprocess.TimeoutExpired:
                if messages == 10_000 or chance.randrange(2):
                    receiver.kill()
                    receiver = stack.enter_context(receiving(tmp_path, port))
                sender.kill()
        assert status == 0
        receiver.send_signal(signal.SIGTERM)
        receiver.wait(60)
    assert texts(tmp_path) == [str(number) for number in range(messages)]
    listed = run("store", "list", tmp_path / "sender")[1]
    assert (json.loads(listed.splitlines()[0])["outgoing"], len(listed.splitlines())) == (0, 1)


def sent(store: Path, port: int, *options: str, rows: str = "") -> subprocess.CompletedProcess[bytes]:
    command = [*COMMAND, "send", *options, "--store", str(store), "--port", str(port)]
    return subprocess.run(command, input=rows.encode(), capture_output=True, env=environ(), timeout=120)


def test_what_is_left_is_sent_later(tmp_path: Path) -> None:
    """Exit status 4, and send --store alone."""
    port = free_port()
    done = sent(tmp_path / "s", port, NAME, "--text", "a", "--transactional", "--timeout", "0.5")
    assert (done.returncode, done.stdout) == (4, b"")
    assert b"1 message not acknowledged stay in the store: msmqwire send --store" in done.stderr
    done = sent(
        tmp_path / "s", port, NAME, "--transactional", "--rows", "--timeout", "0.5", rows='{"body_text": "b"}\n'
    )
    assert done.returncode == 4
    with receiving(tmp_path, port, "--count", "2") as receiver:
        done = sent(tmp_path / "s", port)
        assert (done.returncode, done.stderr) == (0, b"all messages are acknowledged, 0 rejected or expired\n")
        assert receiver.wait(60) == 0
    assert texts(tmp_path) == ["a", "b"]


def test_rejected_messages(tmp_path: Path) -> None:
    """Exit status 3, a row for each, and a dead letter; with its key as well when the command is repeated."""
    port, name = free_port(), r"DIRECT=TCP:127.0.0.1\private$\missing"
    rows = '{"body_text": "b", "key": "k", "label": "L"}\n'
    with receiving(tmp_path, port, "--queue", "orders"):
        done = sent(tmp_path / "s", port, name, "--rows", "--transactional", "--wait", "final", rows=rows)
        row = json.loads(done.stdout)
        assert (done.returncode, row["message_class_name"], row["label"]) == (3, "nack_bad_dst_q", "L")
        again = sent(tmp_path / "s", port, name, "--rows", "--transactional", "--wait", "final", rows=rows)
        assert (again.returncode, again.stdout) == (3, b"")
    letter = json.loads(run("store", "dead-letter", tmp_path / "s")[1])
    assert {**row, "time": letter["time"]} == letter
    assert run("store", "journal", tmp_path / "s")[1] == ""
    assert run("store", "purge", tmp_path / "s", "dead-letter")[2] == "1 message deleted\n"
    assert run("store", "dead-letter", tmp_path / "s")[1] == ""


def test_each_row_is_committed(tmp_path: Path) -> None:
    """--each, and rows that are left out; --strict commits none of them."""
    port = free_port()
    rows = '{"body_text": "a"}\n{"nonsense": 1}\n{"body_text": "b", "key": 5}\n'
    rows += '{"body_text": "c", "priority": 5, "security_flags": 1}\n'
    with receiving(tmp_path, port):
        done = sent(tmp_path / "s", port, NAME, "--rows", "--transactional", "--each", "--wait", "final", rows=rows)
        assert done.returncode == 2, done.stderr
        last = done.stderr.decode().splitlines()[-1]
        assert last.startswith("2 rows left out; 1 message sent without a SecurityHeader")
        strict = sent(tmp_path / "t", port, NAME, "--rows", "--transactional", "--strict", rows=rows)
        assert strict.returncode == 1
        assert b"line 2: " in strict.stderr
        assert b"nothing is committed" in strict.stderr
        strict = sent(tmp_path / "u", port, NAME, "--rows", "--transactional", "--strict", "--each", rows=rows)
        assert strict.returncode == 1
        assert b"nothing is committed" not in strict.stderr
    assert texts(tmp_path)[:2] == ["a", "c"]
    assert json.loads(run("store", "list", tmp_path / "t")[1])["outgoing"] == 0


def test_plain_messages_have_the_identity_of_the_store(tmp_path: Path) -> None:
    port = free_port()
    with receiving(tmp_path, port, "--count", "2") as receiver:
        for text in ("a", "b"):
            assert sent(tmp_path / "s", port, NAME, "--text", text, "--recoverable", "--quiet").returncode == 0
        receiver.wait(60)
    rows = (tmp_path / "rows" / "private.orders.jsonl").read_text().splitlines()
    identifier = json.loads(run("store", "list", tmp_path / "s")[1])["queue_manager"]
    assert {json.loads(row)["source_queue_manager"] for row in rows} == {identifier}
    assert len({json.loads(row)["message_id"] for row in rows}) == 2


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["store", "list", "missing"], "there is no store"),
        (["store", "moved", "missing"], "there is no store"),
        (["receive", "--quota", "5"], "add --store"),
        (["receive", "--notifications", "--store", "a"], "leave out --queue"),
        (["receive", "--store", "/dev/null/a"], "cannot make a store"),
        (["send", NAME, "--transactional"], "--store DIR"),
        (["send", NAME, "--each"], "add --transactional"),
        (["send", NAME, "--wait", "final"], "add --transactional"),
        (["send"], "name the queue"),
        (["send", "--store", "a", "--text", "b"], "name the queue of the messages"),
        (["send", NAME, "--transactional", "--store", "a", "--wait", "reach"], "leave out"),
        (["store", "journal", "missing"], "there is no store"),
    ],
)
def test_refused(arguments: list[str], text: str) -> None:
    assert text in refused(*arguments)
