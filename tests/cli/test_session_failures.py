"""``send`` and ``receive`` when the system fails them: no descriptors, a full disk, input that cannot be read."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest

from msmqwire import mqqb
from msmqwire.cli.console import CommandError
from msmqwire.cli.message_files import MessageOutput
from msmqwire.session import MessageReceived
from tests.cli.support import COMMAND, EXAMPLES, ROOT, environ, limited, msmqwire, process
from tests.net.session_wire import DEADLINE, Wire, free_port

QUEUE = r"DIRECT=TCP:127.0.0.1\private$\orders"
LEDGER = "ba000000-0000-4000-8000-0000000000c7"
PAGE = 4096


@pytest.mark.long
@pytest.mark.skipif(sys.platform == "win32", reason="has no such limit")
def test_more_connections_than_descriptors(tmp_path: Path) -> None:
    """They end neither the command nor its log, and a message is stored."""
    port = free_port()
    command = [*limited("NOFILE", 60), "receive", "--port", str(port), "--count", "1", "-o", str(tmp_path)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, cwd=ROOT, env=environ()) as receiving:
        try:
            silent = [Wire.connect("127.0.0.1", port).socket for _ in range(100)]
            done = msmqwire("send", QUEUE, "--port", str(port), "--text", "x", "--recoverable", "--timeout", "20")
            assert done.returncode == 0, done.stderr
            _, said = receiving.communicate(timeout=DEADLINE)
        finally:
            receiving.kill()
        for each in silent:
            each.close()
    assert [line.split()[0] for line in said.decode().splitlines()] == ["listening", "1"]


def receive_into(place: Path, *rows: bytes, size: int = 0) -> tuple[int, bytes, int]:
    """Send rows to a receiver with a largest size of files: its status, what it said, and the status of the sender.

    The rows go to a folder, or are appended to a file by a redirection.
    """
    port = free_port()
    command = limited("FSIZE", size) if size else COMMAND
    command = [*command, "receive", "--port", str(port), "--quiet", "--count", str(len(rows))]
    with contextlib.ExitStack() as opened:
        if place.is_dir():
            command += ["-o", str(place)]
        output = None if place.is_dir() else opened.enter_context(open(place, "ab"))
        receiving = opened.enter_context(
            subprocess.Popen(command, stdout=output, stderr=subprocess.PIPE, cwd=ROOT, env=environ())
        )
        options = ("--port", str(port), "--rows", "--recoverable", "--timeout", "5")
        done = process("send", QUEUE, *options, input=b"\n".join(rows))
        receiving_status = receiving.wait(DEADLINE)
        assert receiving.stderr is not None
        return receiving_status, receiving.stderr.read(), done.returncode


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="has no such limit, or does not read a redirected output")
@pytest.mark.parametrize("redirected", [False, True])
def test_rows_after_a_disk_was_full_or_a_process_was_killed(tmp_path: Path, redirected: bool) -> None:
    """A row that cannot be written leaves no part of a line, which the next row would be lost in."""
    file = tmp_path / "private.orders.jsonl"
    place, name = (file, "standard output") if redirected else (tmp_path, file)
    small, large = (json.dumps({"body": "00" * size}).encode() for size in (10, 10_000))
    assert receive_into(place, small) == (0, b"", 0)
    before = file.read_bytes()
    status, said, sent = receive_into(place, large, size=len(before) + 5000)
    assert (status, sent) == (1, 1)
    assert said == f"msmqwire: cannot write {name}: File too large\n".encode()
    assert file.read_bytes() == before
    with open(file, "ab") as killed:
        killed.write(b'{"kind":"user_')
    assert receive_into(place, small) == (0, b"", 0)
    first, part, second = file.read_bytes().splitlines()
    assert (first + b"\n", part) == (before, b'{"kind":"user_')
    assert json.loads(second)["body"] == "00" * 10


def received(queue: str) -> MessageReceived:
    """A message for a queue."""
    name = f"DIRECT=TCP:127.0.0.1\\private$\\{queue}"
    message = mqqb.UserMessage(destination_queue=name, body=b"x", message_id=1)
    return MessageReceived(message, mqqb.encode(message))


def test_messages_that_cannot_all_be_written_are_not_written(tmp_path: Path) -> None:
    """They come again: rows of those before the one that failed would be there twice."""
    output = MessageOutput(str(tmp_path))
    asyncio.run(output.write([received("first"), received("second")]))
    before = [file.read_bytes() for file in sorted(tmp_path.iterdir())]
    assert len(before) == 2
    (tmp_path / "private.third.jsonl").symlink_to("/dev/full")
    with pytest.raises(CommandError, match=r"third\.jsonl: No space left on device"):
        asyncio.run(output.write([received(name) for name in ("first", "fourth", "second", "third")]))
    (tmp_path / "private.third.jsonl").unlink()
    after = {file.name: file.read_bytes() for file in sorted(tmp_path.iterdir())}
    assert after.pop("private.fourth.jsonl") == b""
    assert list(after.values()) == before


def test_a_file_that_cannot_be_opened_ends_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its messages are in another file: neither they nor those of other queues are lost or wait."""
    output = MessageOutput(str(tmp_path))
    (tmp_path / "private.third.jsonl").mkdir()
    for _ in range(2):
        asyncio.run(output.write([received(name) for name in ("first", "third", "second")]))
    assert capsys.readouterr().err == (
        f"cannot write {tmp_path}/private.third.jsonl: Is a directory; "
        f"its messages are written to {tmp_path}/others.jsonl\n"
    )
    (tmp_path / "private.third.jsonl").rmdir()
    asyncio.run(output.write([received("third")]))
    rows = {file.name: file.read_bytes().count(b"\n") for file in tmp_path.iterdir()}
    assert rows == {f"private.{name}.jsonl": 2 for name in ("first", "second")} | {
        "others.jsonl": 2,
        "private.third.jsonl": 1,
    }
    (tmp_path / "others.jsonl").unlink()
    for name in ("others", "private.fourth"):
        (tmp_path / f"{name}.jsonl").mkdir()
    with pytest.raises(CommandError, match=r"cannot write .*others\.jsonl: Is a directory"):
        asyncio.run(output.write([received("first"), received("fourth")]))
    assert (tmp_path / "private.first.jsonl").read_bytes().count(b"\n") == 2


def test_rows_of_another_process_are_not_taken_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two receivers may append to one file: one fails after the other has appended to it."""
    shared, row = tmp_path / "private.shared.jsonl", b'{"of":"another"}\n'

    def append(_: str) -> None:
        with open(shared, "ab") as file:
            file.write(row)

    monkeypatch.setattr("msmqwire.cli.message_files.sync_folder", append)
    (tmp_path / "private.third.jsonl").symlink_to("/dev/full")
    with pytest.raises(CommandError, match=r"third\.jsonl: No space left on device"):
        asyncio.run(MessageOutput(str(tmp_path)).write([received("shared"), received("third")]))
    assert shared.read_bytes().endswith(row)


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="sets the size of a pipe")
@pytest.mark.parametrize("notifications", [False, True])
def test_a_reader_that_takes_nothing_does_not_keep_the_command(notifications: bool) -> None:
    """A signal ends it while it waits for the reader of a pipe."""
    port = free_port()
    options, queue = [], QUEUE
    if notifications:
        options = ["--notifications", "--directory", str(EXAMPLES / "enterprise.toml"), "--queue-manager", LEDGER]
        queue = f"PRIVATE={LEDGER}\\3"
    reading, writing = os.pipe()
    fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, PAGE)
    with subprocess.Popen(
        [*COMMAND, "receive", "--port", str(port), *options], stdout=writing, stderr=subprocess.PIPE, cwd=ROOT,
        env=environ(),
    ) as receiving:  # fmt: skip
        os.close(writing)
        try:
            send = ["send", queue, "--host", "127.0.0.1", "--port", str(port), "--count", "100", "--quiet"]
            sending = subprocess.Popen([*COMMAND, *send], cwd=ROOT, env=environ())
            while struct.unpack("i", fcntl.ioctl(reading, termios.FIONREAD, bytes(4)))[0] == 0:
                time.sleep(0.05)
            receiving.send_signal(signal.SIGTERM)
            _, said = receiving.communicate(timeout=DEADLINE)
        finally:
            receiving.kill()
            sending.kill()
            sending.wait()
            os.close(reading)
    assert receiving.returncode == -signal.SIGTERM
    assert said.startswith(b"listening"), said
    assert len(said.splitlines()) == 1, said


def test_a_sender_that_gives_up_ends_the_thread_that_reads_its_rows() -> None:
    """Without a trace of it, while rows wait to be read."""
    rows = b'{"body_text": "x"}\n' * 100_000
    command = [sys.executable, "-X", "dev", *COMMAND[1:], "send", QUEUE, "--port", str(free_port()), "--rows"]
    done = subprocess.run([*command, "--timeout", "0.5"], input=rows, capture_output=True, cwd=ROOT, env=environ())
    assert done.returncode == 1
    said = [line for line in done.stderr.decode().splitlines() if not line.startswith("Executing <")]
    assert len(said) == 1, said
    assert said[0].startswith("msmqwire: no acknowledgment within 0.5 s: cannot connect")


@pytest.mark.long
def test_standard_input_that_cannot_be_read() -> None:
    """What was read before is sent, and the status says that it was not all."""
    port = free_port()
    # A peer that closes before it has read what it was sent resets the connection
    peer, failing = socket.socketpair()
    peer.sendall(b"{}\n")
    failing.sendall(b"not read")
    peer.close()
    with subprocess.Popen(
        [*COMMAND, "receive", "--port", str(port), "--count", "1"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=ROOT,
        env=environ(),
    ) as receiving:
        with failing:
            done = process("send", QUEUE, "--port", str(port), "--rows", "--recoverable", stdin=failing)
        assert receiving.wait(DEADLINE) == 0
    said = done.stderr.decode()
    assert done.returncode == 1
    assert said.startswith("msmqwire: standard input: Connection reset by peer; 1 message received by queue manager ")
    assert said.endswith(", 0 without an acknowledgment\n")
