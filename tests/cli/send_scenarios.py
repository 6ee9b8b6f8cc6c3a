"""What acceptors do to ``msmqwire send``, each as a script over one or more connections, with what must come of it."""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from msmqwire import mqqb
from tests.net.session_wire import Wire
from tests.reference.mqqb_session_packets import (
    INFINITE,
    ConnectionParameters,
    EstablishConnection,
    SessionAck,
    SessionHeader,
    UserMessage,
)


@dataclass
class Acceptor:
    """A listening socket; scripts accept its connections one by one."""

    socket: socket.socket

    def connection(self) -> Wire:
        return Wire(self.socket.accept()[0])

    def session(self, parameters: ConnectionParameters | None = None) -> Wire:
        """A connection with its handshake done."""
        wire = self.connection()
        wire.accept_session(parameters)
        return wire


Script = Callable[[Acceptor], None]


@dataclass(frozen=True)
class Scenario:
    """A script, the options of the command, its exit status, words of standard error, and the classes of its rows."""

    name: str
    rule: str
    play: Script
    options: tuple[str, ...]
    status: int
    error: str
    rows: tuple[str, ...] = ()


SCENARIOS: list[Scenario] = []


def scenario(
    rule: str, *options: str, status: int = 0, error: str = "", rows: tuple[str, ...] = ()
) -> Callable[[Script], Script]:
    """Add a script to the table."""

    def add(play: Script) -> Script:
        SCENARIOS.append(Scenario(play.__name__, rule, play, options, status, error, rows))
        return play

    return add


def acknowledge_one(peer: Acceptor) -> None:
    """What an attempt after a failed one gets, so that the command can end well."""
    wire = peer.session()
    wire.read(UserMessage)
    wire.ack(1)
    wire.read_to_end()


# --- the handshake ---


@scenario("S17", "--timeout", "20", status=1, error="refused")
def refusal_of_the_connection_ends_at_once(peer: Acceptor) -> None:
    wire = peer.connection()
    request = wire.read(EstablishConnection)
    wire.write(replace(request, server_guid=wire.identifier, refused=True))
    assert wire.is_closed()


@scenario("2.2.3.1")
def reserved_fields_of_the_handshake_are_ignored(peer: Acceptor) -> None:
    wire = peer.connection()
    request = wire.read(EstablishConnection)
    response = bytearray(
        replace(request, server_guid=wire.identifier, operating_system=0xF810, padding=b"x" * 512).pack()
    )
    response[1], response[16:18], response[18:20] = 0xCD, b"\1\2", b"\xe2\xff"
    wire.write(bytes(response))
    wire.write(wire.read(ConnectionParameters))
    wire.read(UserMessage)
    wire.ack(1)
    wire.read_to_end()


@scenario("3.1.5.1")
def handshake_in_single_bytes(peer: Acceptor) -> None:
    wire = peer.connection()
    request = wire.read(EstablishConnection)
    for byte in replace(request, server_guid=wire.identifier).pack():
        wire.write(bytes([byte]))
    for byte in wire.read(ConnectionParameters).pack():
        wire.write(bytes([byte]))
    wire.read(UserMessage)
    for byte in SessionAck(SessionHeader(1)).pack():
        wire.write(bytes([byte]))
    wire.read_to_end()


@scenario("S13", "--timeout", "1", status=1, error="does not answer")
def silent_acceptor(peer: Acceptor) -> None:
    peer.connection().read_to_end()


@scenario("S17")
def connection_reset_at_once_is_tried_again(peer: Acceptor) -> None:
    peer.connection().reset()
    acknowledge_one(peer)


# --- messages ---


@scenario("S22", "--text", "Grüße")
def text_is_utf_16(peer: Acceptor) -> None:
    wire = peer.session()
    message = wire.read(UserMessage)
    assert message.body_type == 31
    assert message.body.decode("utf-16-le").rstrip("\0") == "Grüße"
    wire.ack(1)
    wire.read_to_end()


@scenario("S22", "--body", "/etc/hostname")
def body_is_bytes(peer: Acceptor) -> None:
    wire = peer.session()
    message = wire.read(UserMessage)
    assert message.body_type == 0x1011
    with open("/etc/hostname", "rb") as file:
        assert message.body == file.read()
    wire.ack(1)
    wire.read_to_end()


@scenario("[MS-MQMQ] 2.2.19.3", "--label", "first order")
def label_is_sent(peer: Acceptor) -> None:
    wire = peer.session()
    assert wire.read(UserMessage).label == "first order"
    wire.ack(1)
    wire.read_to_end()


@scenario("S5", "--count", "70")
def all_that_was_not_acknowledged_is_sent_again(peer: Acceptor) -> None:
    wire = peer.session()
    for _ in range(64):
        wire.read(UserMessage)
    wire.close()
    again = peer.session()
    assert again.remote == wire.remote
    assert [again.read(UserMessage).message_id for _ in range(64)] == list(range(1, 65))
    again.ack(64)
    for _ in range(6):
        again.read(UserMessage)
    again.ack(70)
    again.read_to_end()


@scenario("S17", "--timeout", "1", "--count", "200", status=1, error="acknowledg")
def acknowledgment_of_a_part(peer: Acceptor) -> None:
    wire = peer.session()
    for _ in range(64):
        wire.read(UserMessage)
    wire.ack(10)
    wire.read_to_end()


@scenario("S6", rows=("normal",))
def acknowledgment_on_a_message(peer: Acceptor) -> None:
    """A header counts the message that carries it, and the initiator has received it."""
    wire = peer.session()
    wire.read(UserMessage)
    wire.write(wire.message(1, session_header=SessionHeader(1, 0, 0, 1, 0)))
    wire.read_to_end()


# --- properties that the sender decides ---


@scenario("[MS-MQDMPR] 3.1.1.12")
def message_has_four_days_to_reach_its_queue(peer: Acceptor) -> None:
    wire = peer.session()
    message = wire.read(UserMessage)
    assert (message.time_to_reach_queue, message.time_to_be_received, message.priority) == (345_600, INFINITE, 3)
    wire.ack(1)
    wire.read_to_end()


@scenario("[MS-MQMQ] 2.2.19.1", "--time-to-reach-queue", "infinite", "--time-to-be-received", "60", "--priority", "7")
def limits_of_time_and_priority(peer: Acceptor) -> None:
    wire = peer.session()
    message = wire.read(UserMessage)
    assert (message.time_to_reach_queue, message.time_to_be_received, message.priority) == (INFINITE, 60, 7)
    wire.ack(1)
    wire.read_to_end()


@scenario(
    "[MS-MQMQ] 2.2.19.2",
    "--admin-queue", r"DIRECT=OS:audit\private$\acks", "--response-queue", r"audit\private$\answers",
    "--correlation-id", r"{ba000000-0000-4000-8000-0000000000c7}\12", "--extension", "/etc/hostname",
)  # fmt: skip
def queues_and_identifiers_of_the_options(peer: Acceptor) -> None:
    wire = peer.session()
    message = mqqb.decode(wire.read_packet())
    assert isinstance(message, mqqb.UserMessage)
    assert str(message.admin_queue) == r"DIRECT=OS:audit\PRIVATE$\acks"
    assert str(message.response_queue) == r"DIRECT=OS:audit\PRIVATE$\answers"
    assert (str(message.correlation_guid)[:8], message.correlation_ordinal) == ("ba000000", 12)
    assert flags_of(message) == (True, True, True, True)
    with open("/etc/hostname", "rb") as file:
        assert message.extension_data == file.read()
    wire.ack(1)
    wire.read_to_end()


def flags_of(message: mqqb.UserMessage) -> tuple[bool, ...]:
    """PA, NA, PR and NR."""
    return (
        message.positive_arrival_ack, message.negative_arrival_ack,
        message.positive_receive_ack, message.negative_receive_ack,
    )  # fmt: skip


# --- answers of the queue manager: 3.1.5.11, 3.1.7.15 ---

REACHED, RECEIVED, BAD_QUEUE, FULL = 0x0002, 0x4000, 0x8000, 0x8003


def answer(wire: Wire, number: int, message_class: int, of: int = 1, *, queue: str = "", **fields: Any) -> bytes:
    """An administration acknowledgment of the message ``of``, at the queue that it named."""
    packet = bytearray(
        wire.message(number, queue=queue or r"TCP:127.0.0.1\private$\msmqwire_send", label="", **fields).pack()
    )
    # MessagePropertiesHeader: MessageClass at 2, CorrelationID at 4
    start = packet.index(struct.pack("<4I", 0x8003, 0x6602, 0, 0)[:12]) - 44
    packet[start + 2 : start + 24] = struct.pack("<H16sI", message_class, wire.remote, of)
    return bytes(packet)


@scenario("3.1.7.15", "--wait", "reach", rows=("ack_reach_queue",))
def wait_asks_for_an_answer_on_the_session(peer: Acceptor) -> None:
    wire = peer.session()
    message = mqqb.decode(wire.read_packet())
    assert isinstance(message, mqqb.UserMessage)
    assert str(message.admin_queue) == r"DIRECT=TCP:127.0.0.1\PRIVATE$\msmqwire_send"
    assert flags_of(message) == (True, True, False, False)
    wire.ack(1)
    assert wire.waits()
    wire.write(answer(wire, 1, REACHED))
    assert [packet.header.ack_sequence_number for packet in wire.read_to_end() if isinstance(packet, SessionAck)] == [1]


@scenario("3.1.7.2.1", "--wait", "receive", "--recoverable", rows=("ack_reach_queue", "ack_receive"))
def wait_until_an_application_has_received_it(peer: Acceptor) -> None:
    wire = peer.session()
    message = mqqb.decode(wire.read_packet())
    assert isinstance(message, mqqb.UserMessage)
    assert flags_of(message) == (True, True, True, True)
    wire.ack(1, 1, 1)
    wire.write(answer(wire, 1, REACHED, recoverable=True))
    assert isinstance(wire.read_any(), SessionAck)
    assert wire.waits()
    wire.write(answer(wire, 2, RECEIVED, recoverable=True))
    wire.read_to_end()


@scenario("3.1.5.11", "--wait", "receive", "--count", "3", status=3, error="message 2: nack_q_exceed_quota",
          rows=("ack_receive", "nack_q_exceed_quota", "ack_receive"))  # fmt: skip
def answers_before_the_acknowledgment_and_in_another_order(peer: Acceptor) -> None:
    wire = peer.session()
    for _ in range(3):
        wire.read_packet()
    wire.write(
        *(answer(wire, number, what, of) for number, what, of in ((1, RECEIVED, 3), (2, FULL, 2), (3, RECEIVED, 1)))
    )
    wire.write(SessionAck(SessionHeader(3, 0, 0, 3, 0)))
    wire.read_to_end()


@scenario("3.1.5.11", "--wait", "receive", "--timeout", "1", "--count", "3", status=1,
          error="1 reached the queue, 0 received from it, 0 rejected, 0 without an acknowledgment, "
          "3 (message 1, message 2, message 3) without an answer", rows=("ack_reach_queue",))  # fmt: skip
def answers_that_do_not_come_are_counted(peer: Acceptor) -> None:
    wire = peer.session()
    for _ in range(3):
        wire.read_packet()
    wire.ack(3)
    wire.write(answer(wire, 1, REACHED, of=2))
    wire.read_to_end()


@scenario("3.1.7.15", "--wait", "reach", "--timeout", "1", status=1, error="no ack_reach_queue within 1 s: the queue "
          "manager has not said what became of it. it may have rejected it, for an unknown queue")  # fmt: skip
def no_answer(peer: Acceptor) -> None:
    wire = peer.session()
    wire.read_packet()
    wire.ack(1)
    wire.read_to_end()


@scenario("3.1.5.11", "--wait", "reach", status=1, error="the session ended before the answers: the peer closed")
def a_session_that_ends_before_the_answer(peer: Acceptor) -> None:
    wire = peer.session()
    wire.read_packet()
    wire.ack(1)
    wire.close()


@scenario("3.1.5.11", "--wait", "reach", "--timeout", "1", status=1, error="no ack_reach_queue within 1 s",
          rows=("ack_reach_queue", "ack_reach_queue", "normal"))  # fmt: skip
def answers_to_other_messages_answer_nothing(peer: Acceptor) -> None:
    wire = peer.session()
    wire.read_packet()
    wire.ack(1)
    other = bytearray(answer(wire, 2, REACHED))
    place = other.index(wire.remote)
    other[place : place + 16] = bytes(16)
    wire.write(answer(wire, 1, REACHED, of=2), bytes(other), answer(wire, 3, 0))
    wire.read_to_end()


@scenario("S44")
def acknowledgments_of_transactions_are_no_rows(peer: Acceptor) -> None:
    wire = peer.session()
    wire.read_packet()
    order = answer(wire, 1, 0x00FF, queue=r"TCP:127.0.0.1\PRIVATE$\order_queue$")
    wire.write(order, wire.message(2, queue=r"OS:sender\private$\Order_Queue$"))
    wire.write(SessionAck(SessionHeader(1, 0, 0, 2, 0)))
    assert [packet.header.ack_sequence_number for packet in wire.read_to_end() if isinstance(packet, SessionAck)] == [2]
