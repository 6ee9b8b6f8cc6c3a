"""``receive --store`` and ``store``, as processes that are killed."""

from __future__ import annotations

import contextlib
import json
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


@pytest.mark.parametrize(("messages", "kills"), [(300, 3), *long_cases([(10_000, 40)])])
def test_a_receiver_that_is_killed(tmp_path: Path, messages: int, kills: int) -> None:
    """The sender sends again what was not acknowledged: each message is in the file once, and in order."""
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
    assert json.loads(output) == {"queue_manager": identifier, "waiting": 0, "acknowledgments": 0, "outputs": {}}
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    assert "is a copy, or was moved" in refused("store", "list", tmp_path / "b")
    assert run("store", "moved", tmp_path / "b")[0] == 0
    assert run("store", "list", tmp_path / "b")[0] == 0
    shutil.copytree(tmp_path / "a", tmp_path / "c")
    assert run("store", "restored", tmp_path / "c")[0] == 0
    assert "came out of order" in refused("store", "skip", tmp_path / "c", identifier, NAME)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["store", "list", "missing"], "there is no store"),
        (["store", "moved", "missing"], "there is no store"),
        (["receive", "--quota", "5"], "add --store"),
        (["receive", "--notifications", "--store", "a"], "leave out --queue"),
        (["receive", "--store", "/dev/null/a"], "cannot make a store"),
    ],
)
def test_refused(arguments: list[str], text: str) -> None:
    assert text in refused(*arguments)
