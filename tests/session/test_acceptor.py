"""The accepting side: initialization, messages, acknowledgments."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from msmqwire.session import (
    Acceptor,
    CloseReason,
    Disregarded,
    MessageDisregarded,
    MessageIDHistory,
    MessageReceived,
    SessionClosed,
    SessionOpened,
    SessionState,
    Settings,
)
from tests.reference.mqqb_session_packets import (
    ConnectionParameters,
    EstablishConnection,
    SessionAck,
    SessionHeader,
    UserMessage,
)
from tests.session.peers import OWN, PEER, acknowledgment, incoming, message, only, open_acceptor, packets, state_of

REQUEST = EstablishConnection(PEER.bytes_le, bytes(16), 12345, 0x0310)


def accepted(**options: object) -> Acceptor:
    acceptor = Acceptor(OWN, wall_clock=lambda: 0x60000000, **options)  # type: ignore[arg-type]
    acceptor.connection_made(0.0)
    return acceptor


def test_initialization() -> None:
    """3.1.5.3.1, 3.1.5.4.1."""
    acceptor = accepted()
    assert state_of(acceptor) is SessionState.WAITING_EC_MSG
    assert acceptor.receive_data(REQUEST.pack(), 1.0) == []
    assert packets(acceptor) == [EstablishConnection(PEER.bytes_le, OWN.bytes_le, 12345, 0x0310)]
    assert state_of(acceptor) is SessionState.WAITING_CP_MSG
    assert acceptor.receive_data(ConnectionParameters(700, 30000, 10).pack(), 1.0) == [SessionOpened(PEER)]
    assert packets(acceptor) == [ConnectionParameters(700, 30000, 64)]
    assert acceptor.is_open
    assert (acceptor.ack_wait_timeout, acceptor.recoverable_ack_send_timeout) == (30000, 700)
    assert acceptor.sending.received_window_size == 10


@pytest.mark.parametrize("server", [UUID(int=0), OWN])
def test_server_guid_of_the_request(server: UUID) -> None:
    """S12."""
    acceptor = accepted()
    acceptor.receive_data(EstablishConnection(PEER.bytes_le, server.bytes_le).pack(), 0.0)
    (response,) = packets(acceptor)
    assert response == EstablishConnection(PEER.bytes_le, OWN.bytes_le, 0, 0x0110)


def test_wrong_server_guid() -> None:
    """S12: CS and the own identifier, then the session closes."""
    acceptor = accepted()
    events = acceptor.receive_data(EstablishConnection(PEER.bytes_le, UUID(int=9).bytes_le, 5).pack(), 0.0)
    assert [event.reason for event in only(events, SessionClosed)] == [CloseReason.REFUSED]
    assert packets(acceptor) == [EstablishConnection(PEER.bytes_le, OWN.bytes_le, 5, 0x0110, refused=True)]
    assert acceptor.next_deadline() is None


def test_refused_by_the_caller() -> None:
    acceptor = accepted(refuses=lambda request: f"{request.client_guid} has too many")
    events = acceptor.receive_data(REQUEST.pack(), 0.0)
    assert events == [SessionClosed(CloseReason.REFUSED, f"{PEER} has too many")]
    (response,) = packets(acceptor)
    assert isinstance(response, EstablishConnection)
    assert response.refused


def test_timeouts_out_of_range_are_echoed_and_clamped() -> None:
    """S19."""
    acceptor = accepted()
    acceptor.receive_data(REQUEST.pack() + ConnectionParameters(1, 0xFFFFFFFF, 0).pack(), 0.0)
    assert packets(acceptor)[1] == ConnectionParameters(1, 0xFFFFFFFF, 64)
    assert (acceptor.recoverable_ack_send_timeout, acceptor.ack_wait_timeout) == (500, 120_000)


def test_connection_parameters_with_cs_close() -> None:
    """S15."""
    acceptor = accepted()
    events = acceptor.receive_data(REQUEST.pack() + ConnectionParameters(refused=True).pack(), 0.0)
    assert [event.reason for event in only(events, SessionClosed)] == [CloseReason.REFUSED]


@pytest.mark.parametrize(
    ("state", "packet"),
    [
        ("WAITING_EC_MSG", ConnectionParameters().pack()),
        ("WAITING_EC_MSG", acknowledgment(0)),
        ("WAITING_EC_MSG", incoming(1)),
        ("WAITING_CP_MSG", REQUEST.pack()),
        ("WAITING_CP_MSG", acknowledgment(0)),
        ("WAITING_CP_MSG", incoming(1)),
        ("OPEN", REQUEST.pack()),
        ("OPEN", ConnectionParameters().pack()),
    ],
)
def test_packet_that_the_state_does_not_allow(state: str, packet: bytes) -> None:
    acceptor = accepted()
    for step in (REQUEST.pack(), ConnectionParameters().pack()):
        if acceptor.state != state:
            acceptor.receive_data(step, 0.0)
    assert acceptor.state == state
    events = acceptor.receive_data(packet, 0.0)
    assert [event.reason for event in only(events, SessionClosed)] == [CloseReason.UNEXPECTED_PACKET]
    assert state_of(acceptor) is SessionState.CLOSED


@pytest.mark.parametrize(
    "data",
    [
        b"GET / HTTP/1.1\r\n",
        REQUEST.pack()[:18] + b"\7" + REQUEST.pack()[19:],
        REQUEST.pack()[:8] + b"\x40\0\0\0" + REQUEST.pack()[12:],
    ],
)
def test_malformed_packet(data: bytes) -> None:
    acceptor = accepted()
    (event,) = acceptor.receive_data(data, 0.0)
    assert isinstance(event, SessionClosed)
    assert event.reason is CloseReason.MALFORMED_PACKET
    assert acceptor.receive_data(REQUEST.pack(), 0.0) == []
    assert acceptor.data_to_send() == b""


@pytest.mark.parametrize(
    ("forged", "reason"),
    [
        ({"queue": "TCP:127.0.0.1\\private$\\other"}, Disregarded.NO_SUCH_QUEUE),
        ({"sent_time": 0x5FFFFFF0, "time_to_reach_queue": 5}, Disregarded.EXPIRED),
        ({"queue_manager_address": UUID(int=9).bytes_le}, Disregarded.OTHER_QUEUE_MANAGER),
    ],
)
def test_a_forged_message_that_is_not_accepted_hides_none(forged: dict[str, Any], reason: Disregarded) -> None:
    """It has the identifier of a genuine message, which comes later; only a third one is a duplicate."""
    history = MessageIDHistory()

    def end(address: str) -> Acceptor:
        queues = Acceptor(
            OWN,
            history=history,
            accepts=lambda message: "orders" in str(message.destination_queue),
            address=address,
            wall_clock=lambda: 0x60000000,
        )
        return open_acceptor(queues)

    (event,) = end("192.0.2.1").receive_data(replace(UserMessage(PEER.bytes_le, 1), **forged).pack(), 0.0)
    assert isinstance(event, MessageDisregarded)
    assert event.reason is reason
    (event,) = end("10.0.0.1").receive_data(incoming(1), 0.0)
    assert isinstance(event, MessageReceived)
    (event,) = end("10.0.0.2").receive_data(incoming(1), 0.0)
    assert isinstance(event, MessageDisregarded)
    assert (event.reason, event.first_address) == (Disregarded.DUPLICATE, "10.0.0.1")


def changed(number: int, at: int, old: int, new: int, end: bytes = b"") -> bytes:
    """A recoverable message with a flag of its UserHeader changed, or bytes after its last header."""
    data = bytearray(incoming(number, recoverable=True))
    flags = int.from_bytes(data[at : at + 4], "little")
    assert flags & (old | new) == old
    data[at : at + 4] = (flags & ~old | new).to_bytes(4, "little")
    data[8:12] = (len(data) + len(end)).to_bytes(4, "little")
    return bytes(data) + end


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (changed(1, 60, 0, 0, bytes(4)), "PacketSize"),
        (changed(1, 60, 1 << 21, 0), "PacketSize"),
        (changed(1, 60, 1 << 5, 3 << 5), "Flags"),
    ],
)
def test_a_message_that_breaks_a_rule_is_not_delivered(data: bytes, what: str) -> None:
    """It can be decoded, but not strictly: 3.1.5.1.3 closes the session. The next session takes messages."""
    acceptor = open_acceptor(Acceptor(OWN))
    (event,) = acceptor.receive_data(data + incoming(2), 0.0)
    assert isinstance(event, SessionClosed)
    assert event.reason is CloseReason.MALFORMED_PACKET
    assert what in event.detail
    (received,) = open_acceptor(Acceptor(OWN, history=acceptor.history)).receive_data(incoming(1), 0.0)
    assert isinstance(received, MessageReceived)


def test_session_initialization_timer() -> None:
    """S13: started when the connection is there, restarted by the response."""
    acceptor = accepted()
    assert acceptor.next_deadline() == 60.0
    acceptor.receive_data(REQUEST.pack(), 10.0)
    assert acceptor.next_deadline() == 70.0
    assert acceptor.handle_deadline(69.9) == []
    (event,) = acceptor.handle_deadline(70.0)
    assert isinstance(event, SessionClosed)
    assert event.reason is CloseReason.INITIALIZATION_TIMEOUT


def test_session_cleanup_timer() -> None:
    """3.1.6.2."""
    acceptor = open_acceptor(Acceptor(OWN), 0.0)
    acceptor.receive_data(incoming(1), 1.0)
    assert only(acceptor.handle_deadline(300.0), SessionClosed) == []
    (event,) = only(acceptor.handle_deadline(600.0), SessionClosed)
    assert event.reason is CloseReason.IDLE


def test_express_message_is_acknowledged_after_half_the_ack_wait_timeout() -> None:
    """3.1.5.8.2, S14, S16."""
    acceptor = open_acceptor(Acceptor(OWN))
    (event,) = acceptor.receive_data(incoming(1), 1.0)
    assert isinstance(event, MessageReceived)
    assert (bytes(event.message.body), event.packet) == (b"1", incoming(1))
    assert acceptor.next_deadline() == 11.0
    acceptor.handle_deadline(10.9)
    assert acceptor.data_to_send() == b""
    acceptor.handle_deadline(11.0)
    data = acceptor.data_to_send()
    assert data[8:12] == b"\x24\0\0\0", "PacketSize is 36"
    assert data[20:] == SessionHeader(1).pack()
    assert acceptor.next_deadline() == 300.0, "the Session Ack Send Timer is stopped"


def test_recoverable_message_restarts_the_timer() -> None:
    """3.1.5.8.7, S14: the first recoverable message since the last acknowledgment does, the next ones do not."""
    acceptor = open_acceptor(Acceptor(OWN), parameters=ConnectionParameters(1000, 20000, 64))
    acceptor.receive_data(incoming(1), 1.0)
    acceptor.receive_data(incoming(2, recoverable=True), 2.0)
    assert acceptor.next_deadline() == 3.0
    acceptor.receive_data(incoming(3, recoverable=True), 2.5)
    assert acceptor.next_deadline() == 3.0
    acceptor.handle_deadline(3.0)
    assert packets(acceptor) == [SessionAck(SessionHeader(3, 1, 0b11))]
    acceptor.receive_data(incoming(4, recoverable=True), 4.0)
    assert acceptor.next_deadline() == 5.0
    acceptor.handle_deadline(5.0)
    assert packets(acceptor) == [SessionAck(SessionHeader(4, 3, 1))]


@pytest.mark.parametrize(
    ("own", "theirs", "at"), [(64, 64, 32), (64, 10, 5), (8, 64, 4), (64, 1, 1), (64, 0, 1), (1, 64, 1)]
)
def test_acknowledgment_by_count(own: int, theirs: int, at: int) -> None:
    """S8."""
    settings = Settings(window_size=own)
    acceptor = open_acceptor(Acceptor(OWN, settings=settings), parameters=ConnectionParameters(window_size=theirs))
    for number in range(1, at + 1):
        assert acceptor.data_to_send() == b""
        acceptor.receive_data(incoming(number), 0.0)
    assert packets(acceptor) == [SessionAck(SessionHeader(at, window_size=own))]
    assert acceptor.receiving.unacked_received_msg_count == 0


@pytest.mark.parametrize("window", [20_000, 65_535])
def test_no_window_is_larger_than_the_history(window: int) -> None:
    """Of more messages than are remembered, those sent again after a reconnect would be delivered twice."""
    acceptor = open_acceptor(
        Acceptor(OWN, settings=Settings(window_size=window)), parameters=ConnectionParameters(window_size=window)
    )
    for number in range(1, 5001):
        assert acceptor.data_to_send() == b""
        acceptor.receive_data(incoming(number), 0.0)
    assert packets(acceptor) == [SessionAck(SessionHeader(5000, window_size=10_000))]


def test_bytes_are_acknowledged_before_they_reach_the_limit() -> None:
    acceptor = open_acceptor(Acceptor(OWN, settings=Settings(max_unacknowledged_bytes=1000)))
    acceptor.receive_data(incoming(1), 0.0)
    assert acceptor.data_to_send() == b""
    acceptor.receive_data(UserMessage(PEER.bytes_le, 2, bytes(500)).pack(), 0.0)
    assert packets(acceptor) == [SessionAck(SessionHeader(2))]


def test_33rd_recoverable_message() -> None:
    """S7: the 33rd sends the acknowledgment of 32, and is acknowledged by the timer."""
    acceptor = Acceptor(OWN, settings=Settings(window_size=200))
    open_acceptor(acceptor, parameters=ConnectionParameters(500, 20000, 200))
    for number in range(1, 33):
        acceptor.receive_data(incoming(number, recoverable=True), 0.0)
    assert acceptor.data_to_send() == b""
    acceptor.receive_data(incoming(33, recoverable=True), 0.25)
    assert packets(acceptor) == [SessionAck(SessionHeader(33, 1, 0xFFFFFFFF, window_size=200))]
    assert (acceptor.receiving.unacked_received_msg_count, acceptor.receiving.recoverable_msg_ack_flags) == (1, 1)
    assert acceptor.next_deadline() == 0.75
    acceptor.handle_deadline(0.75)
    assert packets(acceptor) == [SessionAck(SessionHeader(33, 33, 1, window_size=200))]


def test_bytes_of_the_33rd_recoverable_message_are_counted() -> None:
    acceptor = Acceptor(OWN, settings=Settings(window_size=200, max_unacknowledged_bytes=20_000))
    open_acceptor(acceptor, parameters=ConnectionParameters(window_size=200))
    for number in range(1, 33):
        acceptor.receive_data(incoming(number, recoverable=True), 0.0)
    acceptor.receive_data(UserMessage(PEER.bytes_le, 33, bytes(6000), recoverable=True).pack(), 0.0)
    assert packets(acceptor) == [SessionAck(SessionHeader(33, 1, 0xFFFFFFFF, window_size=200))]
    acceptor.receive_data(UserMessage(PEER.bytes_le, 34, bytes(6000), recoverable=True).pack(), 0.0)
    assert packets(acceptor) == [SessionAck(SessionHeader(34, 33, 0b11, window_size=200))]


def test_duplicate_is_counted_and_acknowledged() -> None:
    """S2: with both counts and its flag."""
    acceptor = open_acceptor(Acceptor(OWN))
    events = acceptor.receive_data(2 * incoming(1, recoverable=True), 0.0)
    assert [type(event) for event in events] == [MessageReceived, MessageDisregarded]
    assert only(events, MessageDisregarded)[0].reason is Disregarded.DUPLICATE
    acceptor.handle_deadline(0.5)
    assert packets(acceptor) == [SessionAck(SessionHeader(2, 1, 0b11))]


def test_duplicate_on_the_next_session() -> None:
    first = open_acceptor(Acceptor(OWN))
    first.receive_data(incoming(1), 0.0)
    second = open_acceptor(Acceptor(OWN, history=first.history))
    (event,) = second.receive_data(incoming(1), 1.0)
    assert isinstance(event, MessageDisregarded)


def test_expired_message() -> None:
    """S19: counted and acknowledged, not delivered."""
    acceptor = open_acceptor(Acceptor(OWN, wall_clock=lambda: 1000.9))
    late = UserMessage(PEER.bytes_le, 1, sent_time=900, time_to_reach_queue=99).pack()
    in_time = UserMessage(PEER.bytes_le, 2, sent_time=900, time_to_reach_queue=100).pack()
    events = acceptor.receive_data(late + in_time, 0.0)
    assert [type(event) for event in events] == [MessageDisregarded, MessageReceived]
    acceptor.handle_deadline(10.0)
    assert packets(acceptor) == [SessionAck(SessionHeader(2))]


def test_queue_that_does_not_exist() -> None:
    """3.1.5.8.2: disregarded, but counted."""
    acceptor = open_acceptor(Acceptor(OWN, accepts=lambda message: bytes(message.body) == b"2"))
    events = acceptor.receive_data(incoming(1, recoverable=True) + incoming(2), 0.0)
    assert [type(event) for event in events] == [MessageDisregarded, MessageReceived]
    assert only(events, MessageDisregarded)[0].reason is Disregarded.NO_SUCH_QUEUE
    acceptor.handle_deadline(0.5)
    assert packets(acceptor) == [SessionAck(SessionHeader(2, 1, 1))]


def foreign(number: int, *, recoverable: bool) -> bytes:
    address = UUID(int=77).bytes_le
    return UserMessage(PEER.bytes_le, number, recoverable=recoverable, queue="3", queue_manager_address=address).pack()


def test_message_for_another_queue_manager() -> None:
    acceptor = open_acceptor(Acceptor(OWN))
    (event,) = acceptor.receive_data(foreign(1, recoverable=False), 0.0)
    assert isinstance(event, MessageDisregarded)
    assert event.reason is Disregarded.OTHER_QUEUE_MANAGER
    (closed,) = acceptor.receive_data(foreign(2, recoverable=True), 0.0)
    assert isinstance(closed, SessionClosed)
    assert closed.reason is CloseReason.NOT_FORWARDED
    assert packets(acceptor) == [SessionAck(SessionHeader(1))], "only the first is acknowledged"


def test_message_for_this_queue_manager() -> None:
    acceptor = open_acceptor(Acceptor(UUID(int=77)))
    (event,) = acceptor.receive_data(foreign(1, recoverable=True), 0.0)
    assert isinstance(event, MessageReceived)


def test_leaving() -> None:
    """S18: one SessionAck if one is owed, then close."""
    acceptor = open_acceptor(Acceptor(OWN))
    acceptor.receive_data(incoming(1, recoverable=True), 0.0)
    (event,) = acceptor.close(0.1)
    assert isinstance(event, SessionClosed)
    assert packets(acceptor) == [SessionAck(SessionHeader(1, 1, 1))]
    assert acceptor.close(0.2) == []
    assert open_acceptor(Acceptor(OWN)).close(0.1)[0] == event


def test_counts_of_a_session_header_include_its_message() -> None:
    """S6."""
    acceptor = open_acceptor(Acceptor(OWN))
    events = acceptor.receive_data(incoming(1, recoverable=True, header=SessionHeader(0, 0, 0, 1, 1)), 0.0)
    assert [type(event) for event in events] == [MessageReceived]
    assert acceptor.is_open


@pytest.mark.parametrize(
    "header", [SessionHeader(0, 0, 0, 0, 1), SessionHeader(0, 0, 0, 1, 0), SessionHeader(1, 0, 0, 1, 1)]
)
def test_wrong_counts_close(header: SessionHeader) -> None:
    """3.1.5.5.5, S19; the message itself is delivered."""
    acceptor = open_acceptor(Acceptor(OWN))
    events = acceptor.receive_data(incoming(1, recoverable=True, header=header), 0.0)
    assert [type(event) for event in events] == [MessageReceived, SessionClosed]
    assert only(events, SessionClosed)[0].reason is CloseReason.UNEXPECTED_PACKET


def test_messages_travel_in_both_directions() -> None:
    acceptor = open_acceptor(Acceptor(OWN))
    assert acceptor.send(message(b"answer"), 0.0) == 1
    (sent,) = packets(acceptor)
    assert isinstance(sent, UserMessage)
    assert (sent.source_queue_manager, sent.message_id, sent.body) == (OWN.bytes_le, 1, b"answer")


def test_acknowledgment_on_a_message() -> None:
    """3.1.7.11: on a message sent when more than three quarters of the Session Ack Send Timer have elapsed."""
    acceptor = open_acceptor(Acceptor(OWN))
    acceptor.receive_data(incoming(1), 0.0)
    acceptor.send(message(), 7.5)
    acceptor.send(message(recoverable=True), 7.6)
    acceptor.send(message(), 7.7)
    sent = [packet for packet in packets(acceptor) if isinstance(packet, UserMessage)]
    assert [packet.session_header for packet in sent] == [None, SessionHeader(1, 0, 0, 2, 1), None]
    assert acceptor.receiving.unacked_received_msg_count == 0


def test_counts_wrap() -> None:
    """S9: 0 follows 65535, for both counts."""
    acceptor = open_acceptor(Acceptor(OWN))
    acceptor.receiving.message_received_count = acceptor.receiving.recoverable_message_received_count = 65535
    acceptor.receiving.last_acked_recoverable_msg_seq_number = 65535
    acceptor.receive_data(incoming(1, recoverable=True, header=SessionHeader()), 0.0)
    assert acceptor.is_open
    acceptor.handle_deadline(0.5)
    assert packets(acceptor) == [SessionAck(SessionHeader(0, 0, 1))]
