"""``send`` and ``receive`` beside their sessions: names, sizes, addresses, files, pings, counts and exit statuses."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.support import COMMAND, EXAMPLES, ROOT, environ, msmqwire, refused
from tests.net.session_wire import DEADLINE, Wire, free_port, in_thread, listener
from tests.reference.mqqb_session_packets import (
    LARGEST_PACKET,
    RC,
    RF,
    ConnectionParameters,
    Ping,
    SessionAck,
    UserMessage,
    read_ping,
)

NAME = "DIRECT=TCP:127.0.0.1\\private$\\orders"
PRIVATE = "PRIVATE=ba000000-0000-4000-8000-0000000000c7\\1F"


@contextlib.contextmanager
def receiving(*options: str, port: int | None = None) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """The command as a process that listens; killed at the end if it still runs."""
    port = port or free_port()
    command = [*COMMAND, "receive", "--port", str(port), *options]
    running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT, env=environ())
    try:
        yield running, port
    finally:
        if running.poll() is None:
            running.kill()
        running.communicate()


def ended(running: subprocess.Popen[bytes]) -> tuple[int, list[dict[str, object]], str]:
    """Exit status, rows and messages of a command that ends by itself."""
    output, said = running.communicate(timeout=2 * DEADLINE)
    return running.returncode, [json.loads(line) for line in output.splitlines()], said.decode()


def acknowledge(wire: Wire, count: int) -> list[UserMessage]:
    """Take express messages and acknowledge them."""
    messages = [wire.read(UserMessage) for _ in range(count)]
    wire.ack(count)
    wire.read_to_end()
    return messages


def sent_to(listening: socket.socket, count: int, *arguments: str) -> list[UserMessage]:
    """What the command sends to an acceptor that acknowledges all."""
    messages: list[UserMessage] = []

    def play() -> None:
        wire = Wire(listening.accept()[0])
        wire.accept_session()
        messages.extend(acknowledge(wire, count))
        wire.close()

    with in_thread(play):
        command = ("send", *arguments, "--port", str(listening.getsockname()[1]), "--timeout", "20")
        done = msmqwire(*command)
    assert done.returncode == 0, done.stderr
    return messages


# --- send ---


def test_largest_packet_is_sent(tmp_path: Path) -> None:
    overhead = len(UserMessage(bytes(16), 1, queue="TCP:127.0.0.1\\PRIVATE$\\orders").pack())
    body = tmp_path / "body"
    body.write_bytes(os.urandom(LARGEST_PACKET - overhead))
    with listener() as listening:
        (message,) = sent_to(listening, 1, NAME, "--body", str(body))
    assert message.body == body.read_bytes()


@pytest.mark.parametrize(
    "name",
    [
        PRIVATE,
        "PUBLIC=ba000000-0000-4000-8000-0000000000c7",
        "DIRECT=HTTP://127.0.0.1/msmq/private$/orders",
        "MULTICAST=234.1.1.1:8001",
        "DL=ba000000-0000-4000-8000-0000000000c7",
        "DIRECT=SPX:00000012:00a0234f7500\\orders",
        "DIRECT=",
        "orders",
        "",
    ],
)
def test_names_without_a_way(name: str) -> None:
    assert "acknowledg" not in refused("send", name, "--text", "x", "--timeout", "1")


def test_nobody_listens() -> None:
    assert "refused" in refused("send", NAME, "--port", str(free_port()), "--text", "x", "--timeout", "1").lower()


def test_acceptor_that_starts_later() -> None:
    """S17"""
    port = free_port()
    messages: list[UserMessage] = []

    def play() -> None:
        time.sleep(1)
        with socket.socket() as late:
            late.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            late.bind(("127.0.0.1", port))
            late.listen()
            late.settimeout(DEADLINE)
            wire = Wire(late.accept()[0])
            wire.accept_session()
            messages.extend(acknowledge(wire, 1))
            wire.close()

    with in_thread(play):
        done = msmqwire("send", NAME, "--port", str(port), "--text", "x", "--timeout", "20")
    assert done.returncode == 0, done.stderr
    assert len(messages) == 1


@pytest.mark.parametrize(
    ("host", "name"),
    [
        ("127.0.0.1", "DIRECT=OS:localhost\\private$\\orders"),
        ("127.0.0.1", "DIRECT=OS:127.0.0.1\\private$\\orders"),
        ("127.0.0.1", "direct=tcp:127.0.0.1\\PRIVATE$\\orders"),
        ("127.0.0.1", "DIRECT=TCP:127.0.0.1\\orders"),
        ("::1", "DIRECT=TCP:::1\\private$\\orders"),
    ],
)
def test_direct_names(host: str, name: str) -> None:
    with listener(host) as listening:
        (message,) = sent_to(listening, 1, name, "--text", "x")
    assert "orders" in message.queue


def test_interrupted_send() -> None:
    with listener() as listening:
        command = [*COMMAND, "send", NAME, "--port", str(listening.getsockname()[1]), "--text", "x"]
        running = subprocess.Popen(command, stderr=subprocess.PIPE, cwd=ROOT, env=environ())
        wire = Wire(listening.accept()[0])
        wire.accept_session()
        wire.read(UserMessage)
        running.send_signal(signal.SIGINT)
        wire.read_to_end()
        wire.close()
        _, said = running.communicate(timeout=DEADLINE)
    assert running.returncode in (1, 130, -signal.SIGINT)
    assert b"Traceback" not in said


# --- receive ---


def test_seconds() -> None:
    """S18: what is owed is acknowledged, then the command ends with status 0."""
    with receiving("--seconds", "2") as (running, port):
        wire = Wire.connect("127.0.0.1", port)
        wire.open_session(ConnectionParameters(120_000, 120_000))
        wire.write(wire.message(1, recoverable=True))
        assert wire.read(SessionAck).header[:3] == (1, 1, 1)
        assert wire.is_closed()
        status, rows, _ = ended(running)
    assert (status, len(rows)) == (0, 1)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signals_acknowledge_what_is_owed(number: signal.Signals) -> None:
    with receiving() as (running, port):
        wire = Wire.connect("127.0.0.1", port)
        wire.open_session(ConnectionParameters(120_000, 120_000))
        wire.write(wire.message(1))
        assert running.stdout
        assert running.stdout.readline()
        running.send_signal(number)
        assert wire.read(SessionAck).header[:3] == (1, 0, 0)
        assert wire.is_closed()
        _, said = running.communicate(timeout=DEADLINE)
    assert b"Traceback" not in said


def test_reader_that_goes_away() -> None:
    """Messages that nobody can read are not acknowledged."""
    with receiving() as (running, port):
        assert running.stdout
        running.stdout.close()
        wire = Wire.connect("127.0.0.1", port)
        wire.open_session(ConnectionParameters(500, 20_000, 1))
        wire.write(wire.message(1, recoverable=True))
        assert not [packet for packet in wire.read_to_end() if isinstance(packet, SessionAck)]
        assert running.wait(DEADLINE) != 0
        running.stdout = None


def test_ping() -> None:
    """2.1.2, 3.1.7.7"""
    ping_port = free_port()
    with receiving("--ping-port", str(ping_port)) as (_, port):
        Wire.connect("127.0.0.1", port).close()
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
            asking.settimeout(0.2)
            asking.connect(("127.0.0.1", ping_port))
            answer = None
            for _ in range(50):
                try:
                    asking.send(b"no ping")
                    asking.send(Ping(RC | 0x7D00, 0x12345678, bytes(16)).pack())
                    answer = read_ping(asking.recv(100))
                    break
                except TimeoutError:
                    pass
                except ConnectionRefusedError:
                    # Connections are accepted before pings are answered
                    time.sleep(0.2)
    assert answer is not None
    assert (answer.flags & (RC | RF), answer.cookie) == (RC, 0x12345678)


def test_port_in_use() -> None:
    with listener() as listening:
        assert "listen" in refused("receive", "--port", str(listening.getsockname()[1]), "--seconds", "1")
    # Both can be bound, but only one of them can listen
    port = str(free_port())
    said = refused("receive", "--listen", "0.0.0.0", "--listen", "127.0.0.1", "--port", port, "--seconds", "1")
    assert said == f"msmqwire: cannot listen on 127.0.0.1 port {port}: Address already in use\n"


def test_hosts_with_one_address() -> None:
    port = str(free_port())
    done = msmqwire("receive", "--listen", "127.0.0.1", "--listen", "localhost", "--port", port, "--seconds", "0.1")
    assert done.returncode == 0
    assert done.stderr.count(b"127.0.0.1 port") == 1


def test_output_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    said = refused("receive", "--port", "0", "-o", tmp_path / "file")
    assert said == f"msmqwire: cannot write {tmp_path / 'file'}: it is a file; name a folder\n"


@pytest.mark.parametrize(
    "option", [("--queue-manager", "x"), ("--count", "-1"), ("--seconds", "x"), ("--port", "70000")]
)
def test_wrong_options(option: tuple[str, str]) -> None:
    done = msmqwire("receive", *option)
    assert done.returncode in (1, 2)
    assert option[0].encode() in done.stderr


@pytest.mark.parametrize(
    "arguments", [("receive", "--listen", ""), ("receive", "--listen", " "), ("send", NAME, "--host", "")]
)
def test_an_empty_address_is_not_every_address(arguments: tuple[str, ...]) -> None:
    assert "is not the name or the address of a computer" in refused(*arguments)


@pytest.mark.parametrize(
    ("redirection", "arguments", "complaint"),
    [
        ("<&-", ("send", NAME, "--rows"), "standard input is closed"),
        (">&-", ("receive", "--port", "0"), "standard output is closed; name a folder with -o"),
        (">&-", ("receive", "--port", "0", "--notifications", "--directory", EXAMPLES / "enterprise.toml",
                 "--queue-manager", PRIVATE[8:44]), "standard output is closed"),
        (">&-", ("discover",), "standard output is closed"),
    ],
)  # fmt: skip
def test_streams_that_are_closed(redirection: str, arguments: tuple[str | Path, ...], complaint: str) -> None:
    command = ["sh", "-c", f'exec "$@" {redirection}', "sh", *COMMAND, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, env=environ(), cwd=ROOT, timeout=60)
    assert (done.returncode, done.stderr.decode()) == (1, f"msmqwire: {complaint}\n")


@pytest.mark.parametrize(
    ("label", "complaint"),
    [
        ("x" * 250, "label: has 250 code units, at most 249"),
        ("\U0001f600" * 125, "label: has 250 code units, at most 249"),
        ("\udcff", "--label is not valid in the encoding of this terminal"),
    ],
)
def test_labels_that_are_refused(label: str, complaint: str) -> None:
    assert refused("send", NAME, "--label", label, "--text", "x") == f"msmqwire: {complaint}\n"


def test_queue_that_no_packet_names() -> None:
    name = "CONNECTOR=0e000000-0000-4000-8000-000000000001"
    said = refused("send", name, "--directory", EXAMPLES / "enterprise.toml", "--host", "127.0.0.1", "--text", "x")
    assert said == f"msmqwire: destination_queue: {name} is of a kind that a packet cannot carry\n"


def test_body_that_is_a_folder(tmp_path: Path) -> None:
    said = refused("send", NAME, "--body", tmp_path)
    assert said == f"msmqwire: {tmp_path} is a directory; name a file in it\n"


def test_options_with_empty_values(tmp_path: Path) -> None:
    enterprise = tmp_path / "enterprise.toml"
    enterprise.write_text(f'[queue_manager]\nidentifier = "{PRIVATE[8:44]}"\ncomputer_name = ""\n')
    assert "has no ComputerName: name its computer with --host" in refused("send", PRIVATE, "--directory", enterprise)
    unnamed = "has the ComputerName ''\n"
    assert unnamed in refused("send", PRIVATE, "--directory", EXAMPLES / "enterprise.toml", "--from", "")
    assert unnamed in refused("resolve", PRIVATE, "--directory", EXAMPLES / "enterprise.toml", "--from", "")
    assert unnamed in refused("route", "--directory", EXAMPLES / "enterprise.toml", "", "LEDGER")
    assert "--from needs the directory" in refused("send", PRIVATE, "--from", "")
    assert "the name of the directory is empty" in refused(
        "receive", "--directory", "", "--queue-manager", PRIVATE[8:44]
    )


def test_port_0_is_named_where_it_is_valid() -> None:
    assert "is not a port from 0 to 65535" in refused("receive", "--port", "65536")
    assert "is not a port from 1 to 65535" in refused("send", NAME, "--port", "0")


def test_only_loopback_without_listen() -> None:
    with receiving() as (_, port):
        Wire.connect("127.0.0.1", port).close()
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.2", port), DEADLINE)
