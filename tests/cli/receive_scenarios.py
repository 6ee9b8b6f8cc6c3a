"""What initiators do to ``msmqwire receive``, each as a script over one or more connections, with the rows it gives."""

from __future__ import annotations

import struct
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from tests.net.session_wire import Wire
from tests.reference.mqqb_session_packets import (
    GUID_NULL,
    INFINITE,
    LARGEST_PACKET,
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


@scenario("3.1.5.3.1", "1")
def response_echoes_the_request(peer: Initiator) -> None:
    wire = peer.connection()
    wire.write(EstablishConnection(wire.identifier, GUID_NULL, 0x12345678))
    response = wire.read(EstablishConnection)
    assert (response.client_guid, response.time_stamp) == (wire.identifier, 0x12345678)
    assert (response.server_guid, response.refused) == (QUEUE_MANAGER, False)
    assert response.padding == b"\x5a" * 512
    wire.write(ConnectionParameters())
    wire.read(ConnectionParameters)
    send(wire, 1)


@scenario("S12", "1")
def null_server_guid_is_valid(peer: Initiator) -> None:
    send(peer.session(), 1)


@scenario("S12", "1")
def own_server_guid_is_valid(peer: Initiator) -> None:
    wire = peer.connection()
    wire.write(EstablishConnection(wire.identifier, QUEUE_MANAGER))
    assert not wire.read(EstablishConnection).refused
    wire.write(ConnectionParameters())
    wire.read(ConnectionParameters)
    send(wire, 1)


@scenario("S12")
def another_server_guid_is_refused(peer: Initiator) -> None:
    wire = peer.connection()
    wire.write(EstablishConnection(wire.identifier, wire.identifier, 5))
    response = wire.read(EstablishConnection)
    assert response.refused
    assert (response.client_guid, response.server_guid) == (wire.identifier, QUEUE_MANAGER)
    assert response.time_stamp == 5
    assert wire.is_closed()


@scenario("2.2.3.1")
def session_flag_is_echoed(peer: Initiator) -> None:
    for flag in (0, 0x100):
        wire = peer.connection()
        wire.write(EstablishConnection(wire.identifier, GUID_NULL, 1, 0x10 | flag))
        response = wire.read(EstablishConnection)
        assert response.operating_system & 0x1FF == 0x10 | flag
        wire.close()


@scenario("3.1.5.4.1")
def parameters_are_echoed_with_the_own_window(peer: Initiator) -> None:
    parameters = peer.connection().open_session(ConnectionParameters(700, 30000, 5))
    assert parameters == ConnectionParameters(700, 30000, 64)


@scenario("S19", "1")
def parameters_out_of_range_are_echoed(peer: Initiator) -> None:
    for parameters in (ConnectionParameters(0, 0, 7), ConnectionParameters(INFINITE, INFINITE, 65535)):
        wire = peer.connection()
        assert wire.open_session(parameters) == replace(parameters, window_size=64)
    send(wire, 1)


@scenario("S19", "1", "2")
def timer_of_an_acknowledgment_is_clamped(peer: Initiator) -> None:
    wire = peer.session(ConnectionParameters(0, 0))
    send(wire, 1, recoverable=True)
    assert wire.waits(0.2)
    assert acknowledged(read_ack(wire)) == (1, 1, 1)
    send(wire, 1, 2)


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


@scenario("3.1.5.1", "1")
def session_in_single_bytes(peer: Initiator) -> None:
    wire = peer.connection()
    everything = (EstablishConnection(wire.identifier, GUID_NULL), ConnectionParameters(), wire.message(1, b"1"))
    for byte in b"".join(packet.pack() for packet in everything):
        wire.write(bytes([byte]))
    wire.read(EstablishConnection)
    wire.read(ConnectionParameters)


@scenario("3.1.5.1", *numbers(10))
def session_in_one_segment(peer: Initiator) -> None:
    wire = peer.connection()
    messages = [wire.message(number, b"%d" % number) for number in range(1, 11)]
    wire.write(EstablishConnection(wire.identifier, GUID_NULL), ConnectionParameters(), *messages)
    wire.read(EstablishConnection)
    wire.read(ConnectionParameters)


def closes(*packets: Callable[[Wire], bytes]) -> Script:
    """After these bytes the session closes without a row or an acknowledgment; the next one works."""

    def play(peer: Initiator) -> None:
        wire = peer.connection()
        wire.write(*(packet(wire) for packet in packets))
        assert not [packet for packet in wire.read_to_end() if isinstance(packet, SessionAck)]
        send(peer.session(), 1)

    return play


def request(wire: Wire) -> bytes:
    return EstablishConnection(wire.identifier, GUID_NULL).pack()


def parameters(_: Wire) -> bytes:
    return ConnectionParameters().pack()


def with_bytes(make: Callable[[Wire], bytes], offset: int, data: bytes) -> Callable[[Wire], bytes]:
    """A packet with some bytes replaced."""

    def made(wire: Wire) -> bytes:
        packet = make(wire)
        return packet[:offset] + data + packet[offset + len(data) :]

    return made


def message(wire: Wire) -> bytes:
    return wire.message(1, b"not delivered").pack()


def ack(_: Wire) -> bytes:
    return SessionAck(SessionHeader()).pack()


for name, rule, packets in (
    ("parameters_before_the_request", "3.1.5.4", [parameters]),
    ("message_before_the_request", "3.1.5.8", [message]),
    ("message_before_the_parameters", "3.1.5.8", [request, message]),
    ("acknowledgment_before_the_session", "3.1.5.5", [request, ack]),
    ("two_requests", "3.1.5.3", [request, request]),
    ("request_in_a_session", "3.1.5.3", [request, parameters, request]),
    ("parameters_in_a_session", "3.1.5.4", [request, parameters, parameters]),
    ("refused_parameters", "S15", [request, lambda _: ConnectionParameters(refused=True).pack()]),
    ("refused_acknowledgment", "S15", [request, parameters, lambda _: SessionAck(SessionHeader(), True).pack()]),
    ("packet_type_0", "2.2.1", [with_bytes(request, 18, b"\0\0")]),
    ("packet_type_4", "2.2.1", [with_bytes(request, 18, b"\4\0")]),
    ("packet_type_15", "2.2.1", [request, parameters, with_bytes(ack, 18, b"\x0f\0")]),
    ("signature_of_a_request", "3.1.5.1.2", [with_bytes(request, 4, b"ROIL")]),
    ("version_of_a_request", "3.1.5.1.2", [with_bytes(request, 0, b"\x11")]),
    ("signature_in_a_session", "3.1.5.1.2", [request, parameters, with_bytes(message, 4, b"ROIL")]),
    ("packet_size_beyond_the_limit", "2.2", [request, parameters, with_bytes(message, 8, b"\1\0\x40\0")]),
    ("packet_size_below_a_header", "2.2", [request, parameters, with_bytes(message, 8, b"\x0f\0\0\0")]),
    ("body_beyond_the_packet", "3.1.5.1.3", [request, parameters, lambda wire: malformed_message(wire)]),
    ("text_of_another_protocol", "3.1.5.1.2", [lambda _: b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"]),
    ("zeros", "3.1.5.1.2", [lambda _: bytes(4096)]),
    ("transactional_message_without_order", "S32", [request, parameters, lambda wire: transactional(wire, 1, 1)]),
    ("acknowledgment_above_what_was_sent", "S19", [request, parameters, lambda _: SessionAck(SessionHeader(1)).pack()]),
    ("wrong_count", "3.1.5.5.5", [request, parameters, lambda _: SessionAck(SessionHeader(0, 0, 0, 1)).pack()]),
    ("wrong_recoverable_count", "3.1.5.5.5",
     [request, parameters, lambda _: SessionAck(SessionHeader(0, 0, 0, 0, 1)).pack()]),
):  # fmt: skip
    scenario(rule, "1")(closes(*packets))
    SCENARIOS[-1] = replace(SCENARIOS[-1], name=name)


def malformed_message(wire: Wire) -> bytes:
    """MessageSize is more than the packet holds."""
    data = wire.message(1, b"not delivered", label="").pack()
    at = data.index(b"not delivered") - 56
    return data[: at + 32] + b"\xff\xff\0\0" + data[at + 36 :]


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


@scenario("3.1.6", "1")
def packet_that_is_cut(peer: Initiator) -> None:
    wire = peer.session()
    wire.write(wire.message(1, b"not delivered").pack()[:-1])
    wire.close()
    send(peer.session(), 1)


@scenario("3.1.7.3", "1")
def reset_in_a_packet(peer: Initiator) -> None:
    wire = peer.session()
    wire.write(wire.message(1, b"not delivered").pack()[:-1])
    time.sleep(0.05)
    wire.reset()
    send(peer.session(), 1)


# --- messages and their acknowledgment ---


@scenario("3.1.6.4", "1")
def recoverable_message_is_acknowledged(peer: Initiator) -> None:
    wire = peer.session()
    send(wire, 1, recoverable=True)
    header = read_ack(wire)
    assert acknowledged(header) == (1, 1, 1)
    assert header.window_size == 64


@scenario("3.1.6.4", *numbers(5))
def recoverable_messages_are_acknowledged_together(peer: Initiator) -> None:
    wire = peer.session()
    send(wire, 5, recoverable=True)
    assert acknowledged(read_ack(wire)) == (5, 1, 0b11111)


@scenario("2.2.20.4", *numbers(6))
def second_acknowledgment_begins_after_the_first(peer: Initiator) -> None:
    wire = peer.session()
    send(wire, 3, recoverable=True)
    assert acknowledged(read_ack(wire)) == (3, 1, 0b111)
    send(wire, 3, 4, recoverable=True)
    assert acknowledged(read_ack(wire)) == (6, 4, 0b111)


@scenario("3.1.5.8.7", *numbers(5))
def flags_count_recoverable_messages_only(peer: Initiator) -> None:
    wire = peer.session()
    for number in range(1, 6):
        send(wire, 1, number, recoverable=number % 2 == 0)
    assert acknowledged(read_ack(wire)) == (5, 1, 0b11)


@scenario("S14", *numbers(2))
def recoverable_message_hastens_the_acknowledgment(peer: Initiator) -> None:
    wire = peer.session()
    send(wire, 1)
    assert wire.waits(0.7)
    send(wire, 1, 2, recoverable=True)
    assert acknowledged(read_ack(wire)) == (2, 1, 1)


def half_a_window(window: int, *, recoverable: bool) -> Script:
    def play(peer: Initiator) -> None:
        wire = peer.session(ConnectionParameters(120_000, 120_000, window))
        at_once = max(1, min(64, window) // 2)
        done = 0
        for _ in range(2):
            send(wire, at_once, done + 1, recoverable=recoverable)
            header = read_ack(wire)
            flags = (1 << at_once) - 1
            assert acknowledged(header) == (done + at_once, *((done + 1, flags) if recoverable else (0, 0)))
            done += at_once

    return play


for window in (0, 1, 2, 3, 10, 64, 65535):
    for recoverable in (False, True):
        scenario("S8", *numbers(2 * max(1, min(64, window) // 2)))(half_a_window(window, recoverable=recoverable))
        kind = "recoverable" if recoverable else "express"
        SCENARIOS[-1] = replace(SCENARIOS[-1], name=f"{kind}_messages_in_half_of_a_window_of_{window}")


@scenario("S4", *numbers(4))
def window_of_a_header_replaces_the_first(peer: Initiator) -> None:
    wire = peer.session(ConnectionParameters(120_000, 120_000, 64))
    wire.write(wire.message(1, b"1", session_header=SessionHeader(0, 0, 0, 1, 0, 2)))
    assert acknowledged(read_ack(wire)) == (1, 0, 0)
    wire.write(wire.message(2, b"2", session_header=SessionHeader(0, 0, 0, 2, 0, 0)))
    assert acknowledged(read_ack(wire)) == (2, 0, 0)
    wire.write(SessionAck(SessionHeader(0, 0, 0, 2, 0, 64)))
    send(wire, 1, 3)
    assert wire.waits()
    send(wire, 1, 4)


@scenario("S2", "1", "2")
def duplicate_is_acknowledged_and_discarded(peer: Initiator) -> None:
    wire = peer.session()
    send(wire, 1, recoverable=True)
    assert acknowledged(read_ack(wire)) == (1, 1, 1)
    send(wire, 1, recoverable=True)
    assert acknowledged(read_ack(wire)) == (2, 2, 1)
    send(wire, 1, 2)


@scenario("S2", "1", "2")
def duplicate_of_an_express_message_counts(peer: Initiator) -> None:
    wire = peer.session(ConnectionParameters(500, 20000, 2))
    for count in (1, 2, 3):
        send(wire, 1)
        assert acknowledged(read_ack(wire)) == (count, 0, 0)
    send(wire, 1, 2)


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


@scenario("S3", "1", "1")
def same_identifier_of_another_source(peer: Initiator) -> None:
    for _ in range(2):
        send(peer.session(ConnectionParameters(500, 20000, 1)), 1)


@scenario("S3", "here", "there")
def source_of_a_message_is_not_the_session(peer: Initiator) -> None:
    wire = peer.session()
    wire.write(wire.message(1, b"here"), UserMessage(QUEUE_MANAGER[::-1], 1, label="there"))


@scenario("S6", "1", "2")
def header_counts_its_message(peer: Initiator) -> None:
    wire = peer.session()
    wire.write(wire.message(1, b"1", session_header=SessionHeader(0, 0, 0, 1, 0)))
    wire.write(wire.message(2, b"2", recoverable=True, session_header=SessionHeader(0, 0, 0, 2, 1)))
    assert acknowledged(read_ack(wire)) == (2, 1, 1)


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


@scenario("S6", "1", "2")
def header_of_a_duplicate_counts_it(peer: Initiator) -> None:
    wire = peer.session(ConnectionParameters(500, 20000, 1))
    send(wire, 1)
    assert acknowledged(read_ack(wire)) == (1, 0, 0)
    wire.write(wire.message(1, b"1", session_header=SessionHeader(0, 0, 0, 2, 0, 1)))
    assert acknowledged(read_ack(wire)) == (2, 0, 0)
    send(wire, 1, 2)


@scenario("S6", *numbers(2))
def acknowledgment_of_nothing_is_welcome(peer: Initiator) -> None:
    wire = peer.session()
    wire.write(SessionAck(SessionHeader()))
    send(wire, 2)
    wire.write(SessionAck(SessionHeader(0, 0, 0, 2, 0)))


@scenario("S19", "2")
def expired_message_is_acknowledged_and_not_delivered(peer: Initiator) -> None:
    wire = peer.session()
    wire.write(wire.message(1, b"1", recoverable=True, sent_time=int(time.time()) - 100, time_to_reach_queue=50))
    assert acknowledged(read_ack(wire)) == (1, 1, 1)
    send(wire, 1, 2)


@scenario("3.1.7.1.2", "1", "2")
def message_that_has_time_left_is_delivered(peer: Initiator) -> None:
    wire = peer.session()
    wire.write(wire.message(1, b"1", sent_time=int(time.time()) - 100, time_to_reach_queue=10_000))
    wire.write(wire.message(2, b"2", sent_time=int(time.time()) + 100, time_to_reach_queue=0))


@scenario("2.2", "large", "2")
def message_of_4_mebibytes(peer: Initiator) -> None:
    wire = peer.session()
    overhead = len(wire.message(1, label="large").pack())
    wire.write(wire.message(1, bytes(LARGEST_PACKET - overhead), label="large"))
    send(wire, 1, 2)


@scenario("2.1.1", *("a", "b") * 3)
def two_sessions_at_once(peer: Initiator) -> None:
    one, other = (peer.session(ConnectionParameters(500, 20000, 1)) for _ in range(2))
    for number in range(1, 4):
        for wire, body in ((one, b"a"), (other, b"b")):
            wire.write(wire.message(number, body))
            read_ack(wire)


# --- queues ---


@scenario("3.1.5.8.2", "1", "3", options=("--queue", f"DIRECT={QUEUE}"))
def message_to_another_queue_is_counted_and_disregarded(peer: Initiator) -> None:
    wire = peer.session(ConnectionParameters(500, 20000, 1))
    send(wire, 1)
    read_ack(wire)
    wire.write(wire.message(2, b"2", queue="TCP:127.0.0.1\\private$\\others"))
    assert acknowledged(read_ack(wire)) == (2, 0, 0)
    send(wire, 1, 3)


@scenario("[MS-MQMQ] 2.1", "1", options=("--queue", f"DIRECT={QUEUE.upper()}"))
def queue_names_have_no_case(peer: Initiator) -> None:
    send(peer.session(), 1)


@scenario("3.1.5.8.8", "1", "2", options=("--queue", f"DIRECT={QUEUE}", "--queue", "DIRECT=OS:host\\private$\\b"))
def several_queues(peer: Initiator) -> None:
    wire = peer.session()
    send(wire, 1)
    wire.write(wire.message(2, b"2", queue="OS:host\\private$\\b"))


@scenario("3.1.5.8.5", "1")
def private_queue_of_the_own_identifier(peer: Initiator) -> None:
    wire = peer.session()
    wire.write(wire.message(1, b"1", queue="7", queue_manager_address=QUEUE_MANAGER))


# --- the end ---


@scenario("S18", "1", "2")
def last_acknowledgment_before_leaving(peer: Initiator) -> None:
    wire = peer.session(ConnectionParameters(120_000, 120_000))
    send(wire, 1, recoverable=True)
    send(wire, 1, 2)
    assert acknowledged(read_ack(wire)) == (2, 1, 1)
    assert wire.is_closed()


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
