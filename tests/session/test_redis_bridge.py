"""``examples/redis_bridge.py`` with a real Redis: what it has not confirmed is not acknowledged."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.support import COMMAND, ROOT, environ, process
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
def bridge(direction: str, *arguments: str, broker_port: int, port: int) -> Iterator[None]:
    announcement = b"listening" if direction == "receive" else b""
    url = f"redis://127.0.0.1:{broker_port}"
    with running([*EXAMPLE, direction, "orders", *arguments, "--redis", url, "--port", str(port)], announcement):
        yield


def test_messages_go_to_the_broker_and_back(tmp_path: Path) -> None:
    broker_port, there, back = free_port(), free_port(), free_port()
    rows = b"".join(json.dumps({"body_text": f"{number}", "label": "L"}).encode() + b"\n" for number in range(40))
    with broker(tmp_path, broker_port), bridge("receive", broker_port=broker_port, port=there):
        done = process("send", NAME, "--rows", "--recoverable", "--port", str(there), input=rows)
        assert done.returncode == 0, done.stderr
        client = redis.Redis(port=broker_port)
        assert client.xlen("orders") == 40
        command = [*COMMAND, "receive", "--port", str(back), "--count", "40", "--quiet"]
        with (
            subprocess.Popen(command, stdout=subprocess.PIPE, env=environ()) as receiver,
            bridge("send", NAME, broker_port=broker_port, port=back),
        ):
            output, _ = receiver.communicate(timeout=2 * DEADLINE)
        client.close()
    found = [json.loads(line) for line in output.splitlines()]
    assert [(row["body_text"], row["label"], row["body_type"]) for row in found] == [
        (f"{number}", "L", 31) for number in range(40)
    ]


def test_what_the_broker_has_not_confirmed_is_not_acknowledged(tmp_path: Path) -> None:
    """It is killed and comes back: the sender still has the message, and the broker has it once."""
    broker_port, port = free_port(), free_port()
    with contextlib.ExitStack() as stack:
        with broker(tmp_path, broker_port):
            stack.enter_context(bridge("receive", broker_port=broker_port, port=port))
            assert process("send", NAME, "--text", "a", "--recoverable", "--port", str(port)).returncode == 0
        command = [*COMMAND, "send", NAME, "--text", "b", "--recoverable", "--port", str(port), "--timeout", "60"]
        with subprocess.Popen(command, stderr=subprocess.PIPE, env=environ()) as sender:
            with pytest.raises(subprocess.TimeoutExpired):
                sender.wait(2)
            with broker(tmp_path, broker_port):
                _, said = sender.communicate(timeout=2 * DEADLINE)
                client = redis.Redis(port=broker_port)
                bodies = [fields[b"body"].decode("utf-16-le") for _, fields in client.xrange("orders")]
                client.close()
    assert (sender.returncode, bodies) == (0, ["a", "b"]), said


def test_a_message_is_acknowledged_after_the_handler_returned(tmp_path: Path) -> None:
    """The broker stands still: the handler waits for it, and no acknowledgment is sent."""
    broker_port, port = free_port(), free_port()
    with broker(tmp_path, broker_port) as redis_server, bridge("receive", broker_port=broker_port, port=port):
        redis_server.send_signal(signal.SIGSTOP)
        command = [*COMMAND, "send", NAME, "--text", "a", "--recoverable", "--port", str(port), "--timeout", "60"]
        with subprocess.Popen(command, stderr=subprocess.PIPE, env=environ()) as sender:
            with pytest.raises(subprocess.TimeoutExpired):
                sender.wait(3)
            redis_server.send_signal(signal.SIGCONT)
            _, said = sender.communicate(timeout=2 * DEADLINE)
        client = redis.Redis(port=broker_port)
        length = client.xlen("orders")
        client.close()
    assert (sender.returncode, length) == (0, 1), said


def test_entries_that_were_pending_are_sent_again(tmp_path: Path) -> None:
    """The bridge is killed before the queue manager has acknowledged."""
    broker_port, port = free_port(), free_port()
    with broker(tmp_path, broker_port):
        client = redis.Redis(port=broker_port)
        client.xadd("orders", {"label": "", "body": b"x", "body_type": 0x1011})
        with bridge("send", NAME, broker_port=broker_port, port=port):  # no queue manager listens
            until = time.monotonic() + DEADLINE
            while not pending(client):
                assert time.monotonic() < until
                time.sleep(0.05)
        command = [*COMMAND, "receive", "--port", str(port), "--count", "1", "--quiet"]
        with (
            subprocess.Popen(command, stdout=subprocess.PIPE, env=environ()) as receiver,
            bridge("send", NAME, broker_port=broker_port, port=port),
        ):
            output, _ = receiver.communicate(timeout=2 * DEADLINE)
            until = time.monotonic() + DEADLINE
            while pending(client):
                assert time.monotonic() < until
                time.sleep(0.05)
        client.close()
    assert json.loads(output)["body"] == "78"


def pending(client: Any) -> int:
    """The number of entries that were read and not removed from those that are pending."""
    return sum(group["pending"] for group in client.xinfo_groups("orders"))
