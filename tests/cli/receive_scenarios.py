"""What initiators do to ``msmqwire receive``, each as a script over one or more connections, with the rows it gives."""

from __future__ import annotations

import struct
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from tests.net.session_wire import Wire
from tests.reference.mqqb_session_packets import (
    GUID_NULL,
    ConnectionParameters,
    EstablishConnection,
    SessionAck,
    SessionHeader,
    UserMessage,
)

QUEUE_MANAGER = bytes(range(16))
QUEUE = "TCP:127.0.0.1\\private$\\orders"


@dataclass
class Initiator:
    """Where the command listens; scripts connect to it."""

    host: str
    port: int

    def connection(self) -> Wire:
        return Wire.connect(self.host, self.port)

    def session(self, parameters: ConnectionParameters | None = None) -> Wire:
        """A connection with its handshake done."""
        wire = self.connection()
        wire.open_session(parameters)
        return wire


Script = Callable[[Initiator], None]


@dataclass(frozen=True)
class Scenario:
    """A script, the labels of the rows in their order, the options of the command and the address it listens on.

    The command ends after as many messages as there are rows; without any, after a message that follows the script.
    """

    name: str
    rule: str
    play: Script
    rows: tuple[str, ...]
    options: tuple[str, ...]
    host: str


SCENARIOS: list[Scenario] = []


def scenario(
    rule: str, *rows: str, options: tuple[str, ...] = (), host: str = "127.0.0.1"
) -> Callable[[Script], Script]:
    """Add a script to the table."""

    def add(play: Script) -> Script:
        SCENARIOS.append(Scenario(play.__name__, rule, play, rows, options, host))
        return play

    return add


def numbers(count: int, first: int = 1) -> tuple[str, ...]:
    return tuple(str(number) for number in range(first, first + count))


def send(wire: Wire, count: int, first: int = 1, *, recoverable: bool = False) -> None:
    for number in range(first, first + count):
        wire.write(wire.message(number, b"%d" % number, recoverable=recoverable))


def read_ack(wire: Wire) -> SessionHeader:
    """The header of the next SessionAck, of an end that sends no messages."""
    packet = wire.read(SessionAck)
    assert not packet.refused
    assert packet.pack() == replace(packet).pack()
    header = packet.header
    assert (header.user_msg_sequence_number, header.recoverable_msg_seq_number) == (0, 0)
    return header


def acknowledged(header: SessionHeader) -> tuple[int, int, int]:
    return header[:3]


# --- the handshake ---


@scenario("2.2.3.1", "1")
def reserved_fields_are_ignored(peer: Initiator) -> None:
    wire = peer.connection()
    request = bytearray(EstablishConnection(wire.identifier, GUID_NULL, 1, 0xF810, padding=bytes(512)).pack())
    request[1], request[16:18], request[18:20] = 0xCD, b"\1\2", b"\xe2\xff"
    wire.write(bytes(request))
    assert not wire.read(EstablishConnection).refused
    wire.write(ConnectionParameters())
    wire.read(ConnectionParameters)
    send(wire, 1)


@scenario("3.1.5.1", *numbers(10))
def session_in_one_segment(peer: Initiator) -> None:
    wire = peer.connection()
    messages = [wire.message(number, b"%d" % number) for number in range(1, 11)]
    wire.write(EstablishConnection(wire.identifier, GUID_NULL), ConnectionParameters(), *messages)
    wire.read(EstablishConnection)
    wire.read(ConnectionParameters)


def transactional(wire: Wire, number: int, previous: int | None = None) -> bytes:
    return wire.message(
        number, b"%d" % number, recoverable=True, tx_sequence_number=number, tx_previous=previous, priority=0
    ).pack()


def transactional_answers(wire: Wire) -> list[UserMessage]:
    """The messages of the receiver up to an OrderAck."""
    found: list[UserMessage] = []
    while not found or found[-1].message_class != 0xFF:
        packet = wire.read_any()
        assert packet is not None
        if isinstance(packet, UserMessage):
            found.append(packet)
    return found


@scenario("S24", *numbers(3))
def transactional_messages(peer: Initiator) -> None:
    """Each once and in order, though they come twice and with a gap."""
    wire = peer.session()
    wire.write(*(transactional(wire, number) for number in (1, 3, 1, 2)))
    (order_ack,) = transactional_answers(wire)
    assert order_ack.body[:16] == struct.pack("<IIII", 1, 1, 2, 1)
    assert order_ack.queue == "TCP:127.0.0.1\\PRIVATE$\\order_queue$"
    again = peer.session()
    again.identifier = wire.identifier
    again.write(*(transactional(again, number) for number in (1, 2, 3)))


@scenario("S40", "1", options=("--queue", "private$\\orders"))
def transactional_messages_for_a_plain_queue(peer: Initiator) -> None:
    wire = peer.session()
    wire.write(transactional(wire, 1), transactional(wire, 2))
    first, second, order_ack = transactional_answers(wire)
    assert [each.message_class for each in (first, second)] == [0x8009, 0x8009]
    assert order_ack.body[:16] == struct.pack("<IIII", 1, 1, 2, 1)
    send(wire, 1)


@scenario("S24", "1", options=("--queue", "other", "--transactional", "private$\\orders"))
def plain_messages_for_a_transactional_queue(peer: Initiator) -> None:
    wire = peer.session()
    wire.write(
        wire.message(5, b"no", recoverable=True, acknowledgments=4, admin_queue="TCP:127.0.0.1\\private$\\admin")
    )
    nack = wire.read(UserMessage)
    assert (nack.message_class, nack.queue, nack.body) == (0x800A, "TCP:127.0.0.1\\private$\\admin", b"no")
    wire.write(transactional(wire, 1))


@scenario("S31", "1", "2")
def recoverable_message_for_another_queue_manager(peer: Initiator) -> None:
    """What came before is acknowledged, then the sessions of its sender are closed at once."""
    wire = peer.session()
    send(wire, 1, recoverable=True)
    wire.write(replace(wire.message(9, b"no", recoverable=True), queue="7", queue_manager_address=b"\x77" * 16))
    assert acknowledged(read_ack(wire)) == (1, 1, 1)
    assert wire.is_closed()
    again = peer.connection()
    again.write(EstablishConnection(wire.identifier, GUID_NULL))
    assert again.is_closed()
    send(peer.session(), 1, 2)


@scenario("3.1.7.15", "1")
def acknowledgments_to_the_administration_queue(peer: Initiator) -> None:
    wire = peer.session()
    asked = {"acknowledgments": 0xF, "admin_queue": "TCP:127.0.0.1\\private$\\admin"}
    wire.write(wire.message(2, b"2", time_to_be_received=0, **asked), wire.message(1, b"1", **asked))
    found = [wire.read(UserMessage).message_class for _ in range(4)]
    assert sorted(found) == [0x0002, 0x0002, 0x4000, 0xC002]


@scenario("3.1.7.3", "1")
def reset_in_a_packet(peer: Initiator) -> None:
    wire = peer.session()
    wire.write(wire.message(1, b"not delivered").pack()[:-1])
    time.sleep(0.05)
    wire.reset()
    send(peer.session(), 1)


# --- messages and their acknowledgment ---


@scenario("S2", *numbers(5))
def duplicates_after_a_reconnection(peer: Initiator) -> None:
    first = peer.session()
    send(first, 4, recoverable=True)
    assert acknowledged(read_ack(first)) == (4, 1, 0b1111)
    first.reset()
    second = peer.connection()
    second.identifier = first.identifier
    second.open_session()
    send(second, 4, recoverable=True)
    assert acknowledged(read_ack(second)) == (4, 1, 0b1111)
    send(second, 1, 5, recoverable=True)
    assert acknowledged(read_ack(second)) == (5, 5, 1)


@scenario("S6", "1", "2")
def header_that_does_not_count_its_message_closes(peer: Initiator) -> None:
    wire = peer.session()
    wire.write(wire.message(1, b"1", session_header=SessionHeader(0, 0, 0, 0, 0)))
    assert acknowledged(read_ack(wire)) == (1, 0, 0), "what is stored is acknowledged before the session closes"
    assert wire.is_closed()
    again = peer.connection()  # delivered before or now, the first message is a row once
    again.identifier = wire.identifier
    again.open_session()
    send(again, 2)


# --- queues ---


@scenario("3.1.5.8.8", "1", "2", options=("--queue", f"DIRECT={QUEUE}", "--queue", "DIRECT=OS:host\\private$\\b"))
def several_queues(peer: Initiator) -> None:
    wire = peer.session()
    send(wire, 1)
    wire.write(wire.message(2, b"2", queue="OS:host\\private$\\b"))


# --- the end ---


@scenario("S18", "1")
def each_session_is_acknowledged_before_leaving(peer: Initiator) -> None:
    silent = peer.session()
    owed = peer.session(ConnectionParameters(120_000, 120_000))
    send(owed, 1)
    assert acknowledged(read_ack(owed)) == (1, 0, 0)
    assert owed.is_closed()
    assert silent.is_closed()


# --- addresses ---


@scenario("2.1.1", "1", options=("--listen", "::1"), host="::1")
def ipv6(peer: Initiator) -> None:
    send(peer.session(), 1)
