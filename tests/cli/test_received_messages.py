"""What ``msmqwire receive`` says of messages beside their rows, and what it adds to the rows."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path

from tests.cli.test_sessions import connected, receiving
from tests.net.session_wire import Wire
from tests.reference.mqqb_session_packets import SessionAck, UserMessage

PEER = bytes(range(1, 17))
SOURCE = "04030201-0605-0807-090a-0b0c0d0e0f10"


def message(number: int, *, transactional: bool = False, **fields: object) -> bytes:
    number_or_none = number if transactional else None
    return UserMessage(PEER, number, b"x", True, tx_sequence_number=number_or_none, **fields).pack()  # type: ignore[arg-type]


def ended(process: subprocess.Popen[bytes]) -> list[str]:
    """The lines on standard error after SIGTERM."""
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == -signal.SIGTERM
    return errors.decode().splitlines()


def acknowledgment(peer: Wire) -> SessionAck:
    while not isinstance(packet := peer.read_any(), SessionAck):
        assert packet is not None
    return packet


def test_columns_of_rows(tmp_path: Path) -> None:
    with receiving("-o", str(tmp_path)) as (process, port):
        peer = connected(port, window_size=1)
        peer.write(message(1, transactional=True, priority=0))
        acknowledgment(peer)
        peer.write(message(2))
        acknowledgment(peer)
        assert ended(process) == ["2 messages received"]
    first, second = (json.loads(line) for line in (tmp_path / "private.orders.jsonl").read_bytes().splitlines())
    assert (first["src"], first["src_port"]) == ("127.0.0.1", peer.socket.getsockname()[1])
    assert first["token"] == rf"{SOURCE}:DIRECT=TCP:127.0.0.1\private$\orders:4294967297:1"
    assert (first["tx_sequence_id"], first["tx_sequence_number"]) == (4294967297, 1)
    assert second["token"] == f"{SOURCE}:2"
    assert first["received_time"] <= second["received_time"]


def test_rejected_transactional_messages_are_reported_once_for_a_source() -> None:
    with receiving("--queue", "other") as (process, port):
        peer = connected(port)
        peer.write(b"".join(message(number, transactional=True) for number in range(1, 4)))
        acknowledgment(peer)
        first, last = ended(process)
    assert first == (
        rf"127.0.0.1: transactional messages of {SOURCE} to DIRECT=TCP:127.0.0.1\private$\orders are rejected: "
        "name the queue with --transactional to receive them"
    )
    assert last == "0 messages received, 3 no such queue"


def test_a_sequence_that_is_not_in_order_is_reported_once() -> None:
    with receiving() as (process, port):
        peer = connected(port, window_size=64)
        peer.write(b"".join(message(number, transactional=True) for number in (1, *range(3, 33))))
        acknowledgment(peer)
        first, last = ended(process)
    assert first.startswith(f"127.0.0.1: the last 10 transactional messages of {SOURCE} to ")
    assert last == "1 message received, 30 out of order"


def test_a_message_for_another_queue_manager_is_named() -> None:
    with receiving() as (process, port):
        peer = connected(port)
        peer.write(message(1) + message(7, queue="9", queue_manager_address=bytes(16)[:-1] + b"\1"))
        acknowledgment(peer)
        assert peer.read_any() is None
        first, last = ended(process)
    name = r"PRIVATE=00000000-0000-0000-0000-000000000001\9"
    assert first.startswith(rf"127.0.0.1: the session is closed: message {SOURCE}\7 to {name} is for queue manager ")
    assert last == "1 message received"


def test_acknowledgments_that_cannot_be_sent_are_counted() -> None:
    with receiving() as (process, port):
        peer = connected(port, window_size=1)
        peer.write(message(1, acknowledgments=3, admin_queue="OS:elsewhere\\private$\\admin"))
        acknowledgment(peer)
        assert ended(process) == ["1 message received; 2 acknowledgments not sent"]


def test_higher_priorities_first(tmp_path: Path) -> None:
    """Of one batch; transactional messages have 0, whatever they say, and keep their order."""
    with receiving("-o", str(tmp_path)) as (process, port):
        peer = connected(port, window_size=10)
        packets = [message(number, priority=priority) for number, priority in ((1, 0), (2, 7), (3, 3), (4, 7))]
        packets.insert(0, message(1, transactional=True, priority=0))
        peer.write(b"".join(packets))
        acknowledgment(peer)
        ended(process)
    rows = [json.loads(line) for line in (tmp_path / "private.orders.jsonl").read_bytes().splitlines()]
    assert [(row["message_id"], row["priority"]) for row in rows] == [(2, 7), (4, 7), (3, 3), (1, 0), (1, 0)]
    assert [row["tx_sequence_number"] for row in rows] == [None, None, None, 1, None]
