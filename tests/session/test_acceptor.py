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
from tests.session.peers import OWN, PEER, incoming, message, only, open_acceptor, packets, state_of

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


def test_refused_by_the_caller() -> None:
    acceptor = accepted(refuses=lambda request: f"{request.client_guid} has too many")
    events = acceptor.receive_data(REQUEST.pack(), 0.0)
    assert events == [SessionClosed(CloseReason.REFUSED, f"{PEER} has too many")]
    (response,) = packets(acceptor)
    assert isinstance(response, EstablishConnection)
    assert response.refused


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


def test_bytes_of_the_33rd_recoverable_message_are_counted() -> None:
    acceptor = Acceptor(OWN, settings=Settings(window_size=200, max_unacknowledged_bytes=20_000))
    open_acceptor(acceptor, parameters=ConnectionParameters(window_size=200))
    for number in range(1, 33):
        acceptor.receive_data(incoming(number, recoverable=True), 0.0)
    acceptor.receive_data(UserMessage(PEER.bytes_le, 33, bytes(6000), recoverable=True).pack(), 0.0)
    assert packets(acceptor) == [SessionAck(SessionHeader(33, 1, 0xFFFFFFFF, window_size=200))]
    acceptor.receive_data(UserMessage(PEER.bytes_le, 34, bytes(6000), recoverable=True).pack(), 0.0)
    assert packets(acceptor) == [SessionAck(SessionHeader(34, 33, 0b11, window_size=200))]


def test_duplicate_on_the_next_session() -> None:
    first = open_acceptor(Acceptor(OWN))
    first.receive_data(incoming(1), 0.0)
    second = open_acceptor(Acceptor(OWN, history=first.history))
    (event,) = second.receive_data(incoming(1), 1.0)
    assert isinstance(event, MessageDisregarded)


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
