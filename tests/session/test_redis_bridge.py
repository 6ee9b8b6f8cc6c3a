"""``examples/redis_bridge.py`` with a real Redis: each message once, although all of them are killed."""

from __future__ import annotations

import contextlib
import json
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cli.support import COMMAND, ROOT, environ, process
from tests.effort import long_cases
from tests.net.session_wire import DEADLINE, free_port
from tests.system_programs import require_program

redis = pytest.importorskip("redis", reason="redis is not installed (pip install redis)")

NAME = r"DIRECT=TCP:127.0.0.1\private$\orders"
EXAMPLE = [sys.executable, str(ROOT / "examples" / "redis_bridge.py")]


@contextlib.contextmanager
def running(command: list[str], announcement: bytes = b"") -> Iterator[subprocess.Popen[bytes]]:
    """A process that has announced that it is ready; it is killed at the end."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environ()) as started:
        try:
            assert started.stdout is not None
            while announcement and announcement not in (line := started.stdout.readline()):
                assert line, "it ended"
            yield started
        finally:
            started.kill()


def broker(folder: Path, port: int) -> contextlib.AbstractContextManager[subprocess.Popen[bytes]]:
    """Redis, which confirms what is on disk."""
    options = ["--port", str(port), "--bind", "127.0.0.1", "--dir", str(folder), "--save", ""]
    durable = ["--appendonly", "yes", "--appendfsync", "always"]
    return running([require_program("redis-server"), *options, *durable], b"Ready to accept connections")


@contextlib.contextmanager
def bridge(folder: Path, direction: str, *arguments: str, broker_port: int, port: int) -> Iterator[None]:
    announcement = b"listening" if direction == "receive" else b""
    url = f"redis://127.0.0.1:{broker_port}"
    places = ["--store", str(folder / direction), "--redis", url, "--port", str(port)]
    with running([*EXAMPLE, direction, "orders", *arguments, *places], announcement):
        yield


def until(condition: Callable[[], object], seconds: float = DEADLINE) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_messages_go_to_the_broker_and_back(tmp_path: Path) -> None:
    broker_port, there, back = free_port(), free_port(), free_port()
    rows = b"".join(json.dumps({"body_text": f"{number}", "label": "L"}).encode() + b"\n" for number in range(40))
    with broker(tmp_path, broker_port), bridge(tmp_path, "receive", broker_port=broker_port, port=there):
        done = process("send", NAME, "--rows", "--recoverable", "--port", str(there), input=rows)
        assert done.returncode == 0, done.stderr
        with contextlib.closing(redis.Redis(port=broker_port)) as client:
            until(lambda: client.xlen("orders") == 40)
        command = [*COMMAND, "receive", "--port", str(back), "--count", "40", "--quiet"]
        with (
            subprocess.Popen(command, stdout=subprocess.PIPE, env=environ()) as receiver,
            bridge(tmp_path, "send", NAME, broker_port=broker_port, port=back),
        ):
            output, _ = receiver.communicate(timeout=2 * DEADLINE)
    found = [json.loads(line) for line in output.splitlines()]
    assert [(row["body_text"], row["label"], row["body_type"]) for row in found] == [
        (f"{number}", "L", 31) for number in range(40)
    ]
    assert [row["tx_sequence_number"] for row in found] == [*range(1, 41)]


def test_what_the_broker_has_not_confirmed_stays_in_the_store(tmp_path: Path) -> None:
    """It is killed and comes back, and the bridge is killed meanwhile: the broker has each message once."""
    broker_port, port = free_port(), free_port()
    send = ["send", NAME, "--recoverable", "--port", str(port), "--text"]
    with contextlib.ExitStack() as stack:
        with broker(tmp_path, broker_port):
            first = stack.enter_context(contextlib.ExitStack())
            first.enter_context(bridge(tmp_path, "receive", broker_port=broker_port, port=port))
            assert process(*send, "a").returncode == 0
            with contextlib.closing(redis.Redis(port=broker_port)) as client:
                until(lambda: client.xlen("orders") == 1)
        assert process(*send, "b").returncode == 0, "it is in the store"
        first.close()
        stack.enter_context(broker(tmp_path, broker_port))
        stack.enter_context(bridge(tmp_path, "receive", broker_port=broker_port, port=port))
        client = stack.enter_context(contextlib.closing(redis.Redis(port=broker_port)))
        until(lambda: client.xlen("orders") == 2)
        bodies = [fields[b"body"].decode("utf-16-le") for _, fields in client.xrange("orders")]
    assert bodies == ["a", "b"]


@pytest.mark.parametrize("kills", [2, *long_cases([6])])
def test_bridges_that_are_killed(tmp_path: Path, kills: int) -> None:
    """To the broker and back: the file has each message once and in order, however often either bridge is killed."""
    broker_port, there, back = free_port(), free_port(), free_port()
    count, chance = 200 * kills, random.Random(kills)
    file = tmp_path / "rows" / "private.orders.jsonl"
    rows = b"".join(b'{"body_text": "%d"}\n' % number for number in range(count))
    (tmp_path / "rows.jsonl").write_bytes(rows)
    places = ["--store", str(tmp_path / "sender"), "--port", str(there), "--timeout", "120", "--quiet"]
    receive = ["receive", "--store", str(tmp_path / "receiver"), "-o", str(tmp_path / "rows"), "--port", str(back)]
    with contextlib.ExitStack() as stack:
        stack.enter_context(broker(tmp_path, broker_port))
        source = stack.enter_context((tmp_path / "rows.jsonl").open("rb"))
        command = [*COMMAND, "send", NAME, "--rows", "--transactional", *places]
        sender = stack.enter_context(subprocess.Popen(command, stdin=source, env=environ()))
        stack.callback(sender.kill)
        stack.enter_context(running([*COMMAND, *receive], b"listening"))
        for number in range(kills + 1):
            with (
                bridge(tmp_path, "receive", broker_port=broker_port, port=there),
                bridge(tmp_path, "send", NAME, broker_port=broker_port, port=back),
            ):
                if number < kills:
                    time.sleep(0.5 + chance.random())
                else:
                    assert sender.wait(120) == 0
                    until(lambda: file.exists() and len(file.read_bytes().splitlines()) >= count, 120)
    assert [json.loads(line)["body_text"] for line in file.read_text().splitlines()] == [str(n) for n in range(count)]
