"""``send`` and ``receive`` as processes on real sockets: cuts, silence, garbage, and peers that do not read."""

from __future__ import annotations

import contextlib
import json
import random
import resource
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.cli.support import COMMAND, ROOT, environ
from tests.net.relay import Relay
from tests.net.session_wire import DEADLINE, Wire, free_port, listener
from tests.reference.mqqb_session_packets import ConnectionParameters, SessionAck, UserMessage

QUEUE = "DIRECT=TCP:127.0.0.1\\private$\\orders"
MIB = 1 << 20


class Receiving:
    """``msmqwire receive`` as a process that writes its rows to a file."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.port = free_port()
        self.rows_file = folder / "rows.json"
        command = [*COMMAND, "receive", "--port", str(self.port), *options]
        with open(self.rows_file, "wb") as output:
            self.process = subprocess.Popen(command, stdout=output, stderr=subprocess.PIPE, cwd=ROOT, env=environ())
        Wire.connect("127.0.0.1", self.port).close()

    def rows(self) -> list[dict[str, object]]:
        return [json.loads(line) for line in self.rows_file.read_text("utf-8").splitlines()]

    def memory(self) -> int:
        """Bytes of the resident set."""
        size: int = psutil.Process(self.process.pid).memory_info().rss
        return size

    def stop(self) -> str:
        """End it as an operator does; what it said."""
        self.process.send_signal(signal.SIGTERM)
        _, said = self.process.communicate(timeout=2 * DEADLINE)
        assert self.process.returncode == -signal.SIGTERM, said
        return said.decode()


@pytest.fixture
def receiving(tmp_path: Path) -> Iterator[Receiving]:
    made = Receiving(tmp_path)
    try:
        yield made
    finally:
        if made.process.poll() is None:
            made.process.kill()
        made.process.communicate()


def deliver(receiving: Receiving) -> None:
    """A message of another client, acknowledged: the command works."""
    wire = Wire(socket.create_connection(("127.0.0.1", receiving.port), DEADLINE, ("127.0.0.2", 0)))
    wire.open_session(ConnectionParameters(window_size=1))
    wire.write(wire.message(1, b"works"))
    assert wire.read(SessionAck).header.ack_sequence_number == 1
    wire.close()


def relayed(receiving: Receiving, folder: Path, count: int, longest: int, *options: str, seed: int = 1) -> Relay:
    """Send messages of 1 kB through a relay that cuts, and look at the rows."""
    body = folder / "body"
    body.write_bytes(random.Random(seed).randbytes(1000))
    relay = Relay(receiving.port, seed, longest)
    with relay.running():
        command = [*COMMAND, "send", QUEUE, "--port", str(relay.port), "--count", str(count), "--body", str(body)]
        done = subprocess.run([*command, "--timeout", "240", *options], capture_output=True, cwd=ROOT, env=environ())
    assert done.returncode == 0, done.stderr
    receiving.stop()
    assert [row["message_id"] for row in receiving.rows()] == list(range(1, count + 1))
    return relay


@pytest.mark.long
@pytest.mark.parametrize("options", [(), ("--recoverable",)], ids=["express", "recoverable"])
def test_messages_through_a_relay_that_cuts(receiving: Receiving, tmp_path: Path, options: tuple[str, ...]) -> None:
    assert relayed(receiving, tmp_path, 300, 200_000, *options).cuts >= 2


@pytest.mark.long
@pytest.mark.parametrize("options", [(), ("--recoverable",)], ids=["express", "recoverable"])
def test_10_000_messages_through_a_relay_that_cuts(
    receiving: Receiving, tmp_path: Path, options: tuple[str, ...]
) -> None:
    assert relayed(receiving, tmp_path, 10_000, 2_000_000, *options).cuts >= 5


@contextlib.contextmanager
def open_files(least: int) -> Iterator[None]:
    """Room for many sockets, here and in processes started from here."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < least:
        pytest.skip(f"no more than {hard} open files are allowed here")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, least), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.long
def test_1_000_silent_connections(tmp_path: Path) -> None:
    with open_files(4096):
        receiving = Receiving(tmp_path)
        deliver(receiving)
        before = receiving.memory()
        silent = []
        try:
            for _ in range(1000):
                silent.append(socket.create_connection(("127.0.0.1", receiving.port), DEADLINE))
            deliver(receiving)
            assert receiving.memory() - before < 32 * MIB
        finally:
            for each in silent:
                each.close()
            receiving.stop()
    assert len(receiving.rows()) == 2


def test_garbage(receiving: Receiving) -> None:
    chance = random.Random(7)
    valid = b"".join(packet.pack() for packet in (ConnectionParameters(), UserMessage(bytes(16), 1, b"x" * 100)))
    for number in range(200):
        wire = Wire.connect("127.0.0.1", receiving.port)
        data = bytearray(valid * 3) if number % 2 else bytearray(chance.randbytes(chance.randrange(1, 5000)))
        for _ in range(5):
            data[chance.randrange(len(data))] = chance.randrange(256)
        with contextlib.suppress(ConnectionError):
            if number % 3 == 0:
                wire.open_session()
            wire.write(bytes(data))
        wire.close()
    deliver(receiving)
    receiving.stop()


def test_incomplete_packets_are_bounded(receiving: Receiving) -> None:
    """Each of many sessions begins a packet of 4 MiB and sends the half of it."""
    deliver(receiving)
    before = receiving.memory()
    wires = []
    for _ in range(8):
        wire = Wire.connect("127.0.0.1", receiving.port)
        wire.open_session()
        packet = wire.message(1, bytes(4 * MIB - 1000)).pack()
        wire.write(packet[: 2 * MIB])
        wires.append(wire)
    deliver(receiving)
    assert receiving.memory() - before < 8 * 5 * MIB
    for wire in wires:
        wire.close()
    receiving.stop()


def test_a_duplicate_of_another_address_is_reported_once(receiving: Receiving) -> None:
    """One who knows an identifier can make the genuine message a duplicate, but not in silence."""
    identifier = bytes(range(16))
    for address, label in (("127.0.0.2", "forged"), ("127.0.0.3", "genuine"), ("127.0.0.3", "again")):
        wire = Wire(socket.create_connection(("127.0.0.1", receiving.port), DEADLINE, (address, 0)))
        wire.identifier = identifier
        wire.open_session(ConnectionParameters(window_size=1))
        wire.write(UserMessage(identifier, 7, b"x", label=label, recoverable=True))
        assert wire.read(SessionAck).header.ack_sequence_number == 1
        wire.close()
    deliver(receiving)
    said = receiving.stop()
    assert [row["label"] for row in receiving.rows()] == ["forged", "works"]
    (line,) = [line for line in said.splitlines() if "is a duplicate" in line]
    assert line.startswith(
        "127.0.0.3: message 03020100-0504-0706-0809-0a0b0c0d0e0f\\7 is a duplicate and not written: "
    )
    assert line.endswith("127.0.0.2 sent one with this identifier before; further ones are only counted")


@pytest.mark.long
def test_sender_that_reads_no_acknowledgment(receiving: Receiving) -> None:
    """Acknowledgments that nobody reads stop the reading, not fill the memory."""
    deliver(receiving)
    wire = Wire.connect("127.0.0.1", receiving.port)
    wire.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    wire.open_session(ConnectionParameters(window_size=1))
    before = receiving.memory()
    wire.socket.settimeout(1)
    sent = 0
    try:
        while sent < 60_000:
            wire.write(*(wire.message(number) for number in range(sent + 1, sent + 101)))
            sent += 100
    except TimeoutError:
        pass
    deliver(receiving)
    assert receiving.memory() - before < 32 * MIB
    wire.reset()
    receiving.stop()


def test_acceptor_that_does_not_read(tmp_path: Path) -> None:
    """What waits to be sent is bounded, however large the messages are."""
    body = tmp_path / "body"
    body.write_bytes(bytes(MIB))
    with listener() as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        port = str(listening.getsockname()[1])
        command = [*COMMAND, "send", QUEUE, "--port", port, "--body", str(body), "--count", "300", "--timeout", "3"]
        process = subprocess.Popen(command, stderr=subprocess.PIPE, cwd=ROOT, env=environ())
        wire = Wire(listening.accept()[0])
        wire.accept_session()
        largest = 0
        watched = psutil.Process(process.pid)
        while process.poll() is None:
            with contextlib.suppress(psutil.NoSuchProcess):
                largest = max(largest, watched.memory_info().rss)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(0.05)
        _, said = process.communicate()
    assert process.returncode == 1, said
    assert 0 < largest < 300 * MIB
