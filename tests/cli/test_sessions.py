"""``msmqwire send`` and ``receive``: with each other, and with a peer that is a socket and the reference's packets."""

from __future__ import annotations

import array
import contextlib
import fcntl
import json
import os
import signal
import socket
import subprocess
import sys
import termios
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

import pytest

from msmqwire.cli.queues import chosen_queues
from msmqwire.errors import FormatNameError
from msmqwire.mqqb import UserMessage as Message
from msmqwire.mqqb import decode
from tests.cli.support import COMMAND, Done, msmqwire, process
from tests.net.session_wire import Wire, free_port
from tests.reference.mqqb_session_packets import (
    ConnectionParameters,
    EstablishConnection,
    SessionAck,
    SessionHeader,
    UserMessage,
)

QUEUE = r"DIRECT=TCP:127.0.0.1\private$\orders"
GUID = uuid.UUID(int=5)
PEER = uuid.UUID(int=6)
NIL = uuid.UUID(int=0)


@contextlib.contextmanager
def receiving(*options: str, output: Any = subprocess.PIPE) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """A receiver that listens; the process and its port."""
    port = free_port()
    command = [*COMMAND, "receive", "--port", str(port), *options]
    with subprocess.Popen(command, stdout=output, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        line = process.stderr.readline()
        assert line.startswith(b"listening on "), line + process.stderr.read()
        try:
            yield process, port
        finally:
            process.kill()


def send(port: int, *options: str, name: str = QUEUE, data: bytes | None = None) -> tuple[int, str]:
    command = ("send", name, "--port", str(port), "--quiet", *options)
    # A process reads rows: the thread that does so is not waited for
    done: Done | subprocess.CompletedProcess[bytes]
    done = msmqwire(*command) if data is None else process(*command, input=data)
    assert done.stdout == b""
    return done.returncode, done.stderr.decode()


def rows_of(data: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in data.splitlines()]


def test_text_and_bytes(tmp_path: Path) -> None:
    """S22."""
    body = tmp_path / "body"
    body.write_bytes(b"\0\xff")
    with receiving("--count", "4") as (process, port):
        assert send(port, "--text", "h\u00e9", "--recoverable", "--label", "L", "--count", "2") == (0, "")
        assert send(port, "--body", str(body), "--recoverable") == (0, "")
        assert send(port, "--recoverable") == (0, "")
        rows = rows_of(process.communicate(timeout=30)[0])
        assert process.returncode == 0
    assert [row["body"] for row in rows] == ["6800e900", "6800e900", "00ff", ""]
    assert [row["body_type"] for row in rows] == [31, 31, 0x1011, 0]
    assert [row["message_id"] for row in rows] == [1, 2, 1, 1]
    assert [row["label"] for row in rows] == ["L", "L", "", ""]
    assert len({row["source_queue_manager"] for row in rows}) == 3
    assert {row["delivery_mode"] for row in rows} == {"recoverable"}
    assert all(row["fault"] is None and row["violations"] == [] for row in rows)


def test_rows_are_those_of_decode(tmp_path: Path) -> None:
    """What ``receive`` writes, ``send --rows`` reads."""
    with receiving("--count", "40") as (process, port):
        lines = "".join(json.dumps({"body_text": f"{number}", "label": f"{number}"}) + "\n" for number in range(20))
        assert send(port, "--rows", "--recoverable", data=lines.encode()) == (0, "")
        assert process.stdout is not None
        first = [process.stdout.readline() for _ in range(20)]
        assert send(port, "--rows", data=b"".join(first)[:-1]) == (0, "")
        second = rows_of(process.communicate(timeout=30)[0])
    assert [row["body_text"] for row in rows_of(b"".join(first))] == [f"{number}" for number in range(20)]
    changed = {"source_queue_manager", "sent_time", "received_time", "src_port", "token"}
    for before, after in zip(rows_of(b"".join(first)), second, strict=True):
        assert {**before, **dict.fromkeys(changed)} == {**after, **dict.fromkeys(changed)}


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (b"{", "expected a JSON object"),
        pytest.param(b"0" * (65 << 20), "it has more than 67,108,864 bytes", marks=pytest.mark.long, id="too long"),
        *(
            pytest.param(line, problem, marks=pytest.mark.long)
            for line, problem in (
                (b"[]", "expected a JSON object"),
                (b'{"more": 1}', "more: no such column of messages"),
                (b'{"table": "sessions"}', "only rows of the table messages"),
                (b'{"fault": {"code": "truncated"}}', "is no message that can be sent"),
                (b'{"body": "x"}', "body: "),
                (b'{"tx_sequence_id": 1, "tx_sequence_number": 1, "delivery_mode": "recoverable"}', "transactional"),
            )
        ),
    ],
)
def test_a_row_that_cannot_be_sent(line: bytes, problem: str) -> None:
    """It is left out, and the rows around it are sent; with --strict only those before it."""
    data = b'{"body_text": "a"}\n\n' + line + b'\n{"body_text": "b"}\n'
    with receiving("--count", "3") as (process, port):
        status, error = send(port, "--rows", "--recoverable", data=data)
        strict_status, strict_error = send(port, "--rows", "--recoverable", "--strict", data=data)
        assert [row["body_text"] for row in rows_of(process.communicate(timeout=30)[0])] == ["a", "b", "a"]
    assert (status, strict_status) == (2, 1)
    for said in (error, strict_error):
        assert said.startswith("msmqwire: standard input: line 3: ")
        assert problem in said
        assert said.count("\n") == 1
    assert error.endswith("; left out\n")
    assert "; 1 message received by queue manager " in strict_error
    assert strict_error.endswith(", 0 without an acknowledgment\n")


def test_rows_that_are_left_out_are_counted() -> None:
    """The hundredth line about them is the last."""
    with receiving("--count", "1") as (process, port):
        command = [*COMMAND, "send", QUEUE, "--port", str(port), "--rows", "--recoverable"]
        done = subprocess.run(command, input=b"{\n" * 150 + b"{}\n", capture_output=True, timeout=120)
        assert len(rows_of(process.communicate(timeout=30)[0])) == 1
    *lines, last = done.stderr.decode().splitlines()
    assert (done.returncode, len(lines), lines[-1]) == (2, 101, "further rows that are left out are counted")
    assert last.startswith("1 message received by queue manager ")
    assert last.endswith(", 150 rows left out")


def test_a_file_for_each_queue(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    with receiving("-o", str(folder), "--queue-manager", str(GUID)) as (process, port):
        for name in (QUEUE, r"DIRECT=OS:localhost\orders", rf"PRIVATE={GUID}\1F", QUEUE):
            assert send(port, "--text", "x", "--recoverable", "--host", "127.0.0.1", name=name) == (0, "")
        process.terminate()
        assert process.communicate(timeout=30)[0] == b""
        assert process.returncode == -signal.SIGTERM
    found = {path.name: len(rows_of(path.read_bytes())) for path in folder.iterdir()}
    assert found == {"private.orders.jsonl": 2, "public.orders.jsonl": 1, f"name.private_3d_{GUID}_5c_1f.jsonl": 1}


def test_only_chosen_queues() -> None:
    with receiving("--queue", r"private$\orders", "--count", "1") as (process, port):
        assert send(port, "--text", "other", "--recoverable", name=r"DIRECT=TCP:127.0.0.1\private$\other") == (0, "")
        assert send(port, "--text", "orders", "--recoverable") == (0, "")
        output, errors = process.communicate(timeout=30)
    assert [row["body_text"] for row in rows_of(output)] == ["orders"]
    line, last = errors.decode().splitlines()
    queue = r"DIRECT=TCP:127.0.0.1\PRIVATE$\other"
    assert line == f"127.0.0.1: messages to {queue} are acknowledged and not written: it is not a chosen queue"
    assert last == "1 message received, 1 no such queue"


# --- A peer of ``receive`` ---


def connected(port: int, window_size: int = 64) -> Wire:
    """A sender whose session is open."""
    wire = Wire.connect("127.0.0.1", port)
    wire.open_session(ConnectionParameters(window_size=window_size))
    return wire


def test_no_message_after_the_last_is_acknowledged() -> None:
    """S18: of five messages that come at once, the first three."""
    with receiving("--count", "3") as (process, port):
        peer = connected(port)
        peer.write(*(peer.message(number, recoverable=True) for number in range(1, 6)))
        assert peer.read_to_end() == [SessionAck(SessionHeader(3, 1, 0b111))]
        assert len(rows_of(process.communicate(timeout=30)[0])) == 3


def test_a_recoverable_message_is_on_disk_before_it_is_acknowledged(tmp_path: Path) -> None:
    with receiving("-o", str(tmp_path)) as (process, port):
        peer = connected(port, window_size=1)
        peer.write(peer.message(1, recoverable=True))
        assert peer.read_any() == SessionAck(SessionHeader(1, 1, 1))
        process.kill()
        process.wait()
    assert len(rows_of((tmp_path / "private.orders.jsonl").read_bytes())) == 1


def test_an_output_that_cannot_be_written() -> None:
    if not os.path.exists("/dev/full"):
        pytest.skip("needs /dev/full")
    with open("/dev/full", "wb") as full, receiving(output=full) as (process, port):
        peer = connected(port, window_size=1)
        peer.write(peer.message(1, recoverable=True))
        assert process.wait(30) == 1
        assert process.stderr is not None
        assert process.stderr.read() == b"msmqwire: cannot write standard output: No space left on device\n"
        assert peer.is_closed(), "it is not acknowledged"


def test_refusals_are_reported() -> None:
    with receiving("--queue-manager", str(GUID)) as (process, port):
        peer = Wire.connect("127.0.0.1", port)
        peer.write(EstablishConnection(PEER.bytes_le, PEER.bytes_le))
        response = peer.read(EstablishConnection)
        assert (response.refused, response.server_guid) == (True, GUID.bytes_le)
        assert peer.is_closed()
        assert process.stderr is not None
        assert process.stderr.readline().startswith(
            b"127.0.0.1: the session is closed: the peer asked for queue manager"
        )


# --- A peer of ``send`` ---


@contextlib.contextmanager
def accepting(serve: Callable[[socket.socket, int], None], port: int = 0) -> Iterator[int]:
    """A queue manager that serves connections one after the other; ``serve`` gets their number."""
    with socket.create_server(("127.0.0.1", port)) as listening:

        def run() -> None:
            for number in range(100):
                try:
                    connection, _ = listening.accept()
                except OSError:
                    return
                with connection:
                    serve(connection, number)

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        yield listening.getsockname()[1]


def initialize_and_wait(connection: socket.socket) -> None:
    Wire(connection).accept_session()
    time.sleep(5)


def unread(pipe: IO[bytes]) -> int:
    """How many bytes of a pipe its reader has not taken."""
    count = array.array("i", [0])
    fcntl.ioctl(pipe, termios.FIONREAD, count)
    return count[0]


@pytest.mark.long
def test_a_message_that_expired_is_not_waited_for() -> None:
    """Rows after it are sent; the error at the end counts it, and names no connection that failed before."""

    def serve(connection: socket.socket, _: int) -> None:
        wire = Wire(connection)
        wire.identifier = GUID.bytes_le
        wire.accept_session()
        wire.read(UserMessage)
        wire.ack(1, 1, 1)
        wire.read_to_end()

    port = free_port()
    command = [*COMMAND, "send", QUEUE, "--port", str(port), "--quiet", "--rows", "--recoverable", "--timeout", "4"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0) as process:
        assert process.stdin is not None
        process.stdin.write(b'{"time_to_reach_queue": 1}\n')
        while unread(process.stdin):
            time.sleep(0.05)
        # The second of the row begins when it was read, which is late on a busy machine
        time.sleep(2.5)
        with accepting(serve, port):
            process.stdin.write(b'{"body_text": "b"}\n')
            time.sleep(3)
            assert process.poll() is None
            _, error = process.communicate(timeout=30)
    expected = (
        "msmqwire: 1 message expired before the queue manager took them; "
        f"1 message received by queue manager {GUID}, 1 (line 1) without an acknowledgment\n"
    )
    assert (process.returncode, error.decode()) == (1, expected)


@pytest.mark.long
def test_the_state_of_the_session_when_an_acknowledgment_is_late() -> None:
    """An error of an earlier connection is not the reason."""
    port = free_port()
    command = [*COMMAND, "send", QUEUE, "--port", str(port), "--quiet", "--timeout", "5"]
    with subprocess.Popen(command, stderr=subprocess.PIPE) as process:
        time.sleep(2.5)
        with accepting(lambda connection, _: initialize_and_wait(connection), port):
            _, error = process.communicate(timeout=30)
    assert error.decode().startswith("msmqwire: no acknowledgment within 5 s: the session is open")


@pytest.mark.parametrize(
    ("serve", "reason"),
    [
        (lambda connection, _: None, "the peer closed the connection"),
        (
            lambda connection, _: connection.sendall(b"HTTP/1.1 400\r\n"),
            "bad_version: VersionNumber at byte 0: is 0x48",
        ),
        (lambda connection, _: initialize_and_wait(connection), "the session is open"),
    ],
)
def test_not_acknowledged_in_time(serve: Callable[[socket.socket, int], None], reason: str) -> None:
    with accepting(serve) as port:
        status, error = send(port, "--timeout", "1.5")
    assert status == 1
    assert error.startswith("msmqwire: no acknowledgment within 1.5 s: ")
    assert reason in error or "connection was lost" in error
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["NONSENSE"], "bad_type: FormatName"),
        ([r"DIRECT=HTTP://host/MSMQ\q"], "messages are sent over TCP only"),
        ([f"PUBLIC={GUID}"], "no directory is given to find this queue: --directory SOURCE"),
        ([rf"PRIVATE={GUID}\1"], "the computer of queue manager"),
        (["MULTICAST=234.1.1.1:8001"], "a multicast name has no single host"),
        ([QUEUE, "--from", "HERE"], "--from needs the directory"),
        ([QUEUE, "--rows", "--count", "2"], "--count repeats one message"),
        ([QUEUE, "--count", "0"], "'0' is not a number, at least 1"),
        ([QUEUE, "--body", "missing"], "missing: No such file"),
        ([QUEUE, "--label", 300 * "x"], "label: has 300 code units"),
    ],
)
def test_wrong_usage(arguments: list[str], error: str) -> None:
    done = msmqwire("send", *arguments)
    assert (done.returncode, done.stdout) == (1, b"")
    assert error in done.stderr.decode()
    assert done.stderr.count(b"\n") == 1


def test_too_large_is_refused_before_connecting(tmp_path: Path) -> None:
    """S22."""
    body = tmp_path / "body"
    connections = []
    with accepting(lambda _connection, number: connections.append(number)) as port:
        for size, error in (((4 << 20) - 100, "PacketSize: too_large"), ((4 << 20) + 1, "the limit of a packet")):
            body.write_bytes(bytes(size))
            status, text = send(port, "--body", str(body))
            assert status == 1
            assert error in text
    assert connections == []


def test_route_to_the_next_hop(tmp_path: Path) -> None:
    """The next hop of the directory is where ``send`` connects, with its identifier as ServerGuid."""
    site, here, there = (uuid.UUID(int=number) for number in (0x51, 0xA1, 0xA2))
    network = uuid.UUID(int=0xC1)
    machine = '[[queue_manager]]\nidentifier = "{}"\ncomputer_name = "{}"\nsite_identifier_list = ["{}"]\n'
    machine += 'connected_network_identifier_list = ["{}"]\n'
    directory = tmp_path / "enterprise.toml"
    directory.write_text(
        f'[[site]]\nidentifier = "{site}"\nname = "S"\n'
        + machine.format(here, "HERE", site, network)
        + machine.format(there, "localhost", site, network)
    )
    seen = []

    def serve(connection: socket.socket, _: int) -> None:
        wire = Wire(connection)
        request = wire.read(EstablishConnection)
        seen.append(uuid.UUID(bytes_le=request.server_guid))
        wire.write(EstablishConnection(request.client_guid, request.server_guid, refused=True))

    name = rf"PRIVATE={there}\1"
    with accepting(serve) as port:
        for source in (["--from", "HERE"], []):
            status, error = send(port, "--directory", str(directory), *source, name=name)
            assert (status, error) == (1, f"msmqwire: queue manager {there} refused the session\n")
    assert seen == [there, there]


# --- Names ---


@pytest.mark.parametrize(
    ("name", "queue", "chosen"),
    [
        ("orders", r"DIRECT=OS:a\private$\Orders", True),
        ("ORDERS", r"DIRECT=OS:a\orders", True),
        (r"private$\orders", r"DIRECT=OS:a\orders", False),
        (r"HERE\private$\orders", r"DIRECT=TCP:10.0.0.1\PRIVATE$\orders", True),
        (r".\orders", r"DIRECT=OS:a\orders", True),
        (r".\orders", r"DIRECT=OS:a\private$\orders", False),
        (r"DIRECT=OS:b\orders", r"DIRECT=OS:a\orders", True),
        (rf"PRIVATE={PEER}\1F", rf"PRIVATE={PEER}\1F", True),
        ("notify_queue$", rf"PRIVATE={PEER}\3", True),
        (r"FormatName:DIRECT=OS:b\orders", r"DIRECT=OS:a\orders", True),
        (r"private$\orders=open", r"DIRECT=OS:a\private$\Orders=Open", True),
    ],
)
def test_names_of_queues(name: str, queue: str, chosen: bool) -> None:
    accepts = chosen_queues([name], queue_manager=PEER)
    assert accepts is not None
    address = {} if queue.startswith("DIRECT") else {"queue_manager_address": PEER}
    assert accepts(Message(destination_queue=queue, **address)) is chosen  # type: ignore[arg-type]


@pytest.mark.parametrize("queue", ["Neue Bestellung", "Bücher", "Очередь", "注文", "a+b"])
def test_queues_with_names_beyond_the_grammar(queue: str) -> None:
    """Blanks, and letters that are not ASCII: a packet has them in a direct name."""
    received = decode(UserMessage(PEER.bytes_le, 1, queue=f"TCP:10.0.0.1\\PRIVATE$\\{queue}").pack(), strict=True)
    assert isinstance(received, Message)
    for name in (queue, queue.upper(), f"here\\private$\\{queue}", f"DIRECT=OS:here\\private$\\{queue.lower()}"):
        accepts = chosen_queues([name])
        assert accepts is not None
        assert accepts(received), name
    for name in (f"{queue}2", f".\\{queue}", f"DIRECT=OS:here\\{queue}"):
        other = chosen_queues([name])
        assert other is not None
        assert not other(received), name


@pytest.mark.parametrize("name", ["", "a\\\\b", "a\\b\\c\\d", "DIRECT=OS", "="])
def test_names_that_are_no_queue(name: str) -> None:
    with pytest.raises(FormatNameError):
        chosen_queues([name])


def test_help_needs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    for command in ("send", "receive"):
        done = subprocess.run([*COMMAND, command, "--help"], capture_output=True, timeout=60)
        assert done.returncode == 0
        assert b"exit status:" in done.stdout
    assert sys.executable in COMMAND
