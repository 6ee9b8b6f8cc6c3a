"""What acceptors do to ``msmqwire send``, each as a script over one or more connections, with what must come of it."""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from msmqwire import mqqb
from tests.net.session_wire import Wire
from tests.reference.mqqb_session_packets import (
    GUID_NULL,
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


@scenario("S1")
def request_for_a_direct_name_has_no_server_guid(peer: Acceptor) -> None:
    wire = peer.connection()
    request = wire.read(EstablishConnection)
    assert request.server_guid == GUID_NULL
    assert request.client_guid != GUID_NULL
    assert not request.refused
    assert request.operating_system & 0xFF == 0x10
    wire.close()
    acknowledge_one(peer)


@scenario("S1")
def any_server_guid_is_accepted_for_a_direct_name(peer: Acceptor) -> None:
    acknowledge_one(peer)  # with an identifier that nobody could know


@scenario("S16")
def session_flag_is_set_without_a_ping(peer: Acceptor) -> None:
    wire = peer.connection()
    assert wire.read(EstablishConnection).operating_system & 0x100
    wire.close()
    acknowledge_one(peer)


@scenario("3.1.5.3.2", "--timeout", "2", status=1, error="acknowledg")
def response_with_another_client_guid_is_invalid(peer: Acceptor) -> None:
    wire = peer.connection()
    request = wire.read(EstablishConnection)
    wire.write(replace(request, client_guid=wire.identifier, server_guid=wire.identifier))
    assert wire.is_closed()


@scenario("S17", "--timeout", "20", status=1, error="refused")
def refusal_of_the_connection_ends_at_once(peer: Acceptor) -> None:
    wire = peer.connection()
    request = wire.read(EstablishConnection)
    wire.write(replace(request, server_guid=wire.identifier, refused=True))
    assert wire.is_closed()


@scenario("S15", "--timeout", "20", status=1, error="refused")
def refusal_in_connection_parameters_ends_at_once(peer: Acceptor) -> None:
    wire = peer.session(ConnectionParameters(refused=True))
    assert wire.is_closed()


@scenario("S15", "--timeout", "20", status=1, error="refused")
def refusal_in_a_session_ack_ends_at_once(peer: Acceptor) -> None:
    wire = peer.session()
    wire.read(UserMessage)
    wire.write(SessionAck(SessionHeader(0), refused=True))
    assert wire.is_closed()


@scenario("2.2.2.1")
def connection_parameters_are_in_range(peer: Acceptor) -> None:
    wire = peer.connection()
    asked = wire.accept_session()
    assert 0x1F4 <= asked.recoverable_ack_timeout <= 0x1D4C0
    assert 0x4E20 <= asked.ack_timeout <= 0x1D4C0
    assert asked.window_size == 64
    assert not asked.refused
    wire.read(UserMessage)
    wire.ack(1)
    wire.read_to_end()


@scenario("3.1.5.3.2")
def recoverable_ack_timeout_is_eight_round_trips(peer: Acceptor) -> None:
    wire = peer.connection()
    request = wire.read(EstablishConnection)
    time.sleep(0.2)
    wire.write(replace(request, server_guid=wire.identifier))
    asked = wire.read(ConnectionParameters)
    assert 1600 <= asked.recoverable_ack_timeout <= 0x1D4C0
    wire.write(asked)
    wire.read(UserMessage)
    wire.ack(1)
    wire.read_to_end()


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


def out_of_turn(*answers: Callable[[Wire, EstablishConnection], bytes]) -> Script:
    """After the request, packets that do not belong there: the session closes, and the next attempt succeeds."""

    def play(peer: Acceptor) -> None:
        wire = peer.connection()
        request = wire.read(EstablishConnection)
        for answer in answers:
            wire.write(answer(wire, request))
        assert not [packet for packet in wire.read_to_end() if isinstance(packet, UserMessage)]
        acknowledge_one(peer)

    return play


def response(wire: Wire, request: EstablishConnection) -> bytes:
    return replace(request, server_guid=wire.identifier).pack()


for name, rule, answers in (
    ("session_ack_before_the_session", "3.1.5.5", [lambda wire, _: SessionAck(SessionHeader()).pack()]),
    ("connection_parameters_before_the_response", "3.1.5.4", [lambda wire, _: ConnectionParameters().pack()]),
    ("message_before_the_session", "3.1.5.8", [lambda wire, _: wire.message(1).pack()]),
    ("two_responses", "3.1.5.3", [response, response]),
    ("response_of_another_signature", "3.1.5.1.2", [lambda *both: response(*both).replace(b"LIOR", b"ROIL")]),
    ("response_of_another_version", "3.1.5.1.2", [lambda *both: b"\x11" + response(*both)[1:]]),
    ("packet_type_0", "2.2.1", [lambda *both: response(*both)[:18] + b"\0\0" + response(*both)[20:]]),
    ("packet_type_4", "2.2.1", [lambda *both: response(*both)[:18] + b"\4\0" + response(*both)[20:]]),
    ("packet_size_beyond_the_limit", "2.2", [lambda *both: response(*both)[:8] + b"\1\0\x40\0" + response(*both)[12:]]),
    ("packet_size_of_nothing", "2.2", [lambda *both: response(*both)[:8] + bytes(4) + response(*both)[12:]]),
    ("text_of_another_protocol", "3.1.5.1.2", [lambda *_: b"HTTP/1.1 400 Bad Request\r\n\r\n"]),
):
    scenario(rule)(out_of_turn(*answers))
    SCENARIOS[-1] = replace(SCENARIOS[-1], name=name)


@scenario("S13", "--timeout", "1", status=1, error="does not answer")
def silent_acceptor(peer: Acceptor) -> None:
    peer.connection().read_to_end()


@scenario("S17")
def connection_closed_at_once_is_tried_again(peer: Acceptor) -> None:
    peer.connection().close()
    acknowledge_one(peer)


@scenario("S17")
def connection_reset_at_once_is_tried_again(peer: Acceptor) -> None:
    peer.connection().reset()
    acknowledge_one(peer)


@scenario("S17")
def connection_closed_after_the_handshake_is_tried_again(peer: Acceptor) -> None:
    peer.session().close()
    acknowledge_one(peer)


# --- messages ---


@scenario("S11")
def message_is_identified_by_the_session_and_1(peer: Acceptor) -> None:
    wire = peer.session()
    message = wire.read(UserMessage)
    assert (message.source_queue_manager, message.message_id) == (wire.remote, 1)
    wire.ack(1)
    wire.read_to_end()


@scenario("S16")
def queue_manager_address_of_a_direct_name_is_null(peer: Acceptor) -> None:
    wire = peer.session()
    message = wire.read(UserMessage)
    assert (message.queue_manager_address, message.queue.lower()) == (GUID_NULL, r"tcp:127.0.0.1\private$\orders")
    assert message.tx_sequence_number is None
    assert message.session_header is None
    wire.ack(1)
    wire.read_to_end()


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


@scenario("S11", "--count", "10")
def messages_are_numbered_in_order(peer: Acceptor) -> None:
    wire = peer.session()
    assert [wire.read(UserMessage).message_id for _ in range(10)] == list(range(1, 11))
    wire.ack(10)
    wire.read_to_end()


@scenario("3.1.5.5.2", "--count", "10")
def express_messages_are_acknowledged_in_steps(peer: Acceptor) -> None:
    wire = peer.session()
    for number in range(1, 11):
        assert not wire.read(UserMessage).recoverable
        wire.ack(number)
    wire.read_to_end()


@scenario("3.1.5.5.1")
def acknowledgment_of_what_was_acknowledged_changes_nothing(peer: Acceptor) -> None:
    wire = peer.session()
    wire.read(UserMessage)
    wire.ack(0)
    wire.ack(0)
    wire.ack(1)
    wire.read_to_end()


@scenario("3.1.5.5.3", "--recoverable")
def recoverable_message_is_acknowledged_by_its_flag(peer: Acceptor) -> None:
    wire = peer.session()
    assert wire.read(UserMessage).recoverable
    wire.ack(1, 1, 1)
    wire.read_to_end()


@scenario("3.1.5.5.3", "--recoverable")
def recoverable_message_needs_more_than_its_count(peer: Acceptor) -> None:
    wire = peer.session()
    wire.read(UserMessage)
    wire.ack(1)
    assert wire.waits()
    wire.ack(1, 1, 1)
    wire.read_to_end()


@scenario("S10", "--recoverable", "--timeout", "1", status=1, error="acknowledg")
def recoverable_number_0_with_no_flags_acknowledges_nothing(peer: Acceptor) -> None:
    wire = peer.session()
    wire.read(UserMessage)
    wire.ack(1, 0, 0)
    wire.read_to_end()


@scenario("3.1.5.5.3", "--recoverable", "--count", "3")
def flags_acknowledge_single_messages(peer: Acceptor) -> None:
    wire = peer.session()
    for _ in range(3):
        wire.read(UserMessage)
    wire.ack(3, 1, 0b101)
    assert wire.waits()
    wire.close()
    wire = peer.session()
    assert wire.read(UserMessage).message_id == 2
    wire.ack(1, 1, 1)
    wire.read_to_end()


@scenario("3.1.5.5.3", "--recoverable", "--count", "5")
def recoverable_number_acknowledges_all_before_it(peer: Acceptor) -> None:
    wire = peer.session()
    for _ in range(5):
        wire.read(UserMessage)
    wire.ack(5, 4, 0b11)
    wire.read_to_end()


@scenario("3.1.5.5.3", "--recoverable", "--count", "40")
def recoverable_messages_in_two_acknowledgments(peer: Acceptor) -> None:
    wire = peer.session()
    for _ in range(40):
        wire.read(UserMessage)
    wire.ack(32, 1, 0xFFFFFFFF)
    wire.ack(40, 33, 0xFF)
    wire.read_to_end()


@scenario("S4", "--count", "5")
def window_of_1(peer: Acceptor) -> None:
    wire = peer.session(ConnectionParameters(window_size=1))
    for number in range(1, 6):
        wire.read(UserMessage)
        assert wire.waits(0.1)
        wire.ack(number, window=1)
    wire.read_to_end()


@scenario("S4", "--count", "3")
def window_of_0_lets_one_message_through(peer: Acceptor) -> None:
    wire = peer.session(ConnectionParameters(window_size=0))
    for number in range(1, 4):
        wire.read(UserMessage)
        assert wire.waits(0.1)
        wire.ack(number, window=0)
    wire.read_to_end()


@scenario("S4", "--count", "9")
def window_of_a_session_header_replaces_the_first(peer: Acceptor) -> None:
    wire = peer.session(ConnectionParameters(window_size=1))
    wire.read(UserMessage)
    wire.ack(1, window=3)
    for _ in range(3):
        wire.read(UserMessage)
    assert wire.waits(0.1)
    wire.ack(4, window=0)  # as before
    for _ in range(3):
        wire.read(UserMessage)
    assert wire.waits(0.1)
    wire.ack(7, window=1)
    wire.read(UserMessage)
    assert wire.waits(0.1)
    wire.ack(8)
    wire.read(UserMessage)
    wire.ack(9)
    wire.read_to_end()


@scenario("S4", "--count", "100")
def own_window_bounds_a_larger_one(peer: Acceptor) -> None:
    wire = peer.session(ConnectionParameters(window_size=500))
    for _ in range(64):
        wire.read(UserMessage)
    assert wire.waits(0.1)
    wire.ack(64, window=65535)
    for _ in range(36):
        wire.read(UserMessage)
    wire.ack(100)
    wire.read_to_end()


@scenario("S4", "--recoverable", "--count", "70")
def count_opens_the_window_for_recoverable_messages(peer: Acceptor) -> None:
    wire = peer.session()
    for _ in range(64):
        wire.read(UserMessage)
    wire.ack(64)
    for _ in range(6):
        wire.read(UserMessage)
    for first in (1, 33, 65):
        wire.ack(70, first, 0xFFFFFFFF)
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


@scenario("3.1.3.2", "--count", "10")
def what_was_acknowledged_is_not_sent_again(peer: Acceptor) -> None:
    wire = peer.session()
    for _ in range(10):
        wire.read(UserMessage)
    wire.ack(5)
    assert wire.waits(0.1)
    wire.close()
    again = peer.session()
    assert [again.read(UserMessage).message_id for _ in range(5)] == [6, 7, 8, 9, 10]
    again.ack(5)
    again.read_to_end()


@scenario("S17", "--recoverable", "--count", "5")
def a_reset_between_messages_and_acknowledgment(peer: Acceptor) -> None:
    wire = peer.session()
    for _ in range(5):
        wire.read(UserMessage)
    wire.reset()
    again = peer.session()
    assert [again.read(UserMessage).message_id for _ in range(5)] == [1, 2, 3, 4, 5]
    again.ack(5, 1, 0b11111)
    again.read_to_end()


@scenario("S17")
def an_acknowledgment_that_is_cut(peer: Acceptor) -> None:
    wire = peer.session()
    wire.read(UserMessage)
    wire.write(SessionAck(SessionHeader(1)).pack()[:35])
    wire.close()
    acknowledge_one(peer)


@scenario("S19", "--count", "2")
def acknowledgment_above_what_was_sent_closes(peer: Acceptor) -> None:
    wire = peer.session()
    for _ in range(2):
        wire.read(UserMessage)
    wire.ack(3)
    assert wire.is_closed()
    again = peer.session()
    for number in (1, 2):
        assert again.read(UserMessage).message_id == number
    again.ack(2)
    again.read_to_end()


@scenario("S9")
def acknowledgment_far_below_what_was_sent_closes(peer: Acceptor) -> None:
    wire = peer.session()
    wire.read(UserMessage)
    wire.ack(32768)  # (1 - 32768) mod 65536 is 32769: not at most
    assert wire.is_closed()
    acknowledge_one(peer)


@scenario("3.1.5.5.5")
def acknowledgment_with_a_wrong_count_closes(peer: Acceptor) -> None:
    wire = peer.session()
    wire.read(UserMessage)
    wire.write(SessionAck(SessionHeader(0, user_msg_sequence_number=1)))
    assert wire.is_closed()
    acknowledge_one(peer)


@scenario("3.1.5.5.5")
def acknowledgment_with_a_wrong_recoverable_count_closes(peer: Acceptor) -> None:
    wire = peer.session()
    wire.read(UserMessage)
    wire.write(SessionAck(SessionHeader(0, recoverable_msg_seq_number=1)))
    assert wire.is_closed()
    acknowledge_one(peer)


@scenario("3.1.5.5")
def two_acknowledgments_in_one_segment(peer: Acceptor) -> None:
    wire = peer.session()
    wire.read(UserMessage)
    wire.write(SessionAck(SessionHeader(0)), SessionAck(SessionHeader(1)))
    wire.read_to_end()


@scenario("3.1.5.3")
def establish_connection_in_a_session_closes(peer: Acceptor) -> None:
    wire = peer.session()
    wire.read(UserMessage)
    wire.write(EstablishConnection(wire.remote, wire.identifier))
    assert wire.is_closed()
    acknowledge_one(peer)


@scenario("3.1.5.4")
def connection_parameters_in_a_session_close(peer: Acceptor) -> None:
    wire = peer.session()
    wire.read(UserMessage)
    wire.write(ConnectionParameters())
    assert wire.is_closed()
    acknowledge_one(peer)


@scenario("S2", "--recoverable")
def a_message_acknowledged_after_it_was_sent_twice(peer: Acceptor) -> None:
    first = peer.session()
    sent = first.read(UserMessage)
    first.close()
    second = peer.session()
    assert second.read(UserMessage) == sent
    second.ack(1, 1, 1)
    second.read_to_end()


@scenario("S17", "--timeout", "1", status=1, error="acknowledg")
def no_acknowledgment_at_all(peer: Acceptor) -> None:
    wire = peer.session()
    wire.read(UserMessage)
    wire.read_to_end()


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


@scenario("S6", rows=("normal",))
def acknowledgment_on_a_message_that_it_does_not_count(peer: Acceptor) -> None:
    wire = peer.session()
    wire.read(UserMessage)
    wire.write(wire.message(1, session_header=SessionHeader(0, 0, 0, 0, 0)))
    wire.read(SessionAck)  # what is stored is acknowledged before the session closes
    assert wire.is_closed()
    acknowledge_one(peer)


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


@scenario("3.1.5.11", "--wait", "reach", status=3, error="message 1: nack_bad_dst_q: the destination queue",
          rows=("nack_bad_dst_q",))  # fmt: skip
def a_negative_answer(peer: Acceptor) -> None:
    wire = peer.session()
    wire.read_packet()
    wire.ack(1)
    wire.write(answer(wire, 1, BAD_QUEUE))
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


@scenario("3.1.5.8.7", "--admin-queue", r"DIRECT=TCP:127.0.0.1\private$\acks", "--recoverable",
          error="message 1: nack_bad_dst_q", rows=("nack_bad_dst_q",))  # fmt: skip
def a_negative_answer_that_no_option_waits_for_is_a_row(peer: Acceptor) -> None:
    """Before it is acknowledged; the exit status is that of a command that waits for acknowledgments only."""
    wire = peer.session()
    wire.read_packet()
    wire.write(answer(wire, 1, BAD_QUEUE, recoverable=True, queue=r"TCP:127.0.0.1\private$\acks"))
    acknowledgment = wire.read(SessionAck)
    assert acknowledgment.header[:3] == (1, 1, 1)
    wire.write(SessionAck(SessionHeader(1, 1, 1, 1, 1)))
    wire.read_to_end()


@scenario("S44")
def acknowledgments_of_transactions_are_no_rows(peer: Acceptor) -> None:
    wire = peer.session()
    wire.read_packet()
    order = answer(wire, 1, 0x00FF, queue=r"TCP:127.0.0.1\PRIVATE$\order_queue$")
    wire.write(order, wire.message(2, queue=r"OS:sender\private$\Order_Queue$"))
    wire.write(SessionAck(SessionHeader(1, 0, 0, 2, 0)))
    assert [packet.header.ack_sequence_number for packet in wire.read_to_end() if isinstance(packet, SessionAck)] == [2]
