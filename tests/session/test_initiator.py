"""The connecting side: initialization, window, acknowledgments, reconnecting."""

from __future__ import annotations

import itertools

import pytest

from msmqwire import mqqb
from msmqwire.errors import EncodeError
from msmqwire.session import (
    CloseReason,
    ConnectionWanted,
    Initiator,
    MessageExpired,
    MessageIDHistory,
    MessageReceived,
    MessagesAcknowledged,
    SessionClosed,
    SessionOpened,
    SessionState,
    Settings,
)
from tests.contract.checklist import row
from tests.reference.mqqb_session_packets import ConnectionParameters, EstablishConnection, SessionHeader, UserMessage
from tests.session.peers import (
    OWN,
    PEER,
    QUEUE,
    acknowledgment,
    incoming,
    message,
    only,
    open_initiator,
    packets,
    state_of,
)


def identifiers(initiator: Initiator) -> list[int]:
    """MessageIDs of the messages that are sent."""
    return [packet.message_id for packet in packets(initiator) if isinstance(packet, UserMessage)]


def test_initialization() -> None:
    """3.1.5.2.3, 3.1.5.3.2, 3.1.5.4.2, S1, S16."""
    initiator = Initiator(OWN)
    initiator.connection_made(100.0)
    (request,) = packets(initiator)
    assert request == EstablishConnection(OWN.bytes_le, bytes(16), 100_000, 0x0310)
    assert state_of(initiator) is SessionState.WAITING_ECR_MSG
    response = EstablishConnection(OWN.bytes_le, PEER.bytes_le, 100_000, 0x0310)
    assert initiator.receive_data(response.pack(), 100.1) == []
    assert packets(initiator) == [ConnectionParameters(800, 20000, 64)], "8 round trips"
    assert state_of(initiator) is SessionState.WAITING_CPR_MSG
    assert initiator.receive_data(ConnectionParameters(800, 20000, 7).pack(), 100.2) == [SessionOpened(PEER)]
    assert initiator.sending.received_window_size == 7
    assert initiator.remote_queue_manager == PEER


@pytest.mark.parametrize(
    ("round_trip", "timeout", "ack_timeout"),
    [
        (0.0, 500, 20_000),
        (0.0625, 500, 20_000),
        (0.07, 560, 20_000),
        (2.0, 16_000, 32_000),
        (15.0, 120_000, 120_000),
        (20.0, 120_000, 120_000),
    ],
)
def test_timeouts_follow_the_round_trip(round_trip: float, timeout: int, ack_timeout: int) -> None:
    initiator = Initiator(OWN)
    initiator.connection_made(0.0)
    initiator.data_to_send()
    initiator.receive_data(EstablishConnection(OWN.bytes_le, PEER.bytes_le, 0).pack(), round_trip)
    assert packets(initiator) == [ConnectionParameters(timeout, ack_timeout, 64)]


def test_time_stamp_wraps() -> None:
    """The time stamp has 32 bits of milliseconds."""
    start = (2**32 - 50) / 1000
    initiator = Initiator(OWN)
    initiator.connection_made(start)
    (request,) = packets(initiator)
    assert isinstance(request, EstablishConnection)
    assert request.time_stamp == 2**32 - 50
    initiator.receive_data(EstablishConnection(OWN.bytes_le, PEER.bytes_le, 2**32 - 50).pack(), start + 0.1)
    assert packets(initiator) == [ConnectionParameters(800, 20000, 64)]


def test_session_flag_with_a_ping() -> None:
    """2.2.3.1: SE is 0 when a Ping Request was sent."""
    initiator = Initiator(OWN, pinged=True)
    initiator.connection_made(0.0)
    (request,) = packets(initiator)
    assert isinstance(request, EstablishConnection)
    assert request.operating_system == 0x0210


def test_only_the_first_connection_is_pinged() -> None:
    """3.1.5.2.2: not a connection that the Session Retry Connect Timer asks for; SE says which."""
    initiator = Initiator(OWN, pinged=True)
    initiator.send(message(), 0.0)
    assert initiator.pings
    initiator.connection_lost(0.0)
    assert not initiator.pings
    initiator.connection_made(1.0)
    (request,) = packets(initiator)
    assert isinstance(request, EstablishConnection)
    assert request.operating_system == 0x0310
    initiator.connection_lost(2.0)
    assert not initiator.pings, "its message still waits"
    open_initiator(initiator, 3.0)
    initiator.receive_data(acknowledgment(1), 3.0)
    initiator.connection_lost(4.0)
    initiator.send(message(), 5.0)
    assert initiator.pings, "a new session"


def test_a_connection_without_a_message() -> None:
    """It is tried again until the session is open, once; then only messages ask for one."""
    initiator = Initiator(OWN)
    initiator.open(0.0)
    assert initiator.handle_deadline(0.0) == [ConnectionWanted()]
    initiator.connection_lost(0.0)
    assert initiator.handle_deadline(1.0) == [ConnectionWanted()]
    open_initiator(initiator, 1.0)
    initiator.open(1.0)
    initiator.connection_lost(2.0)
    assert state_of(initiator) is SessionState.CLOSED
    assert initiator.next_deadline() is None


@pytest.mark.parametrize("step", ["establish", "parameters", "ack"])
def test_refusal_ends_the_attempts(step: str) -> None:
    """S15, S17."""
    initiator = Initiator(OWN)
    initiator.send(message(), 0.0)
    initiator.connection_made(0.0)
    response = EstablishConnection(OWN.bytes_le, PEER.bytes_le, refused=step == "establish").pack()
    response += ConnectionParameters(refused=step == "parameters").pack()
    response += acknowledgment(0)[:18] + b"\x11" + acknowledgment(0)[19:]
    events = initiator.receive_data(response, 0.0)
    assert [event.reason for event in only(events, SessionClosed)] == [CloseReason.REFUSED]
    assert state_of(initiator) is SessionState.CLOSED
    initiator.connection_lost(0.1)
    assert initiator.next_deadline() is None
    assert len(initiator.outgoing) == 1


def test_identity_of_messages() -> None:
    """S11: identifiers from 1; SourceQueueManager is the identifier of the queue manager."""
    initiator = Initiator(OWN, wall_clock=lambda: 1000.7)
    open_initiator(initiator)
    assert [initiator.send(message(body), 0.0) for body in (b"a", b"b")] == [1, 2]
    sent = packets(initiator)
    assert sent == [
        UserMessage(OWN.bytes_le, number, body, sent_time=1000, queue=QUEUE[7:].replace("private", "PRIVATE"))
        for number, body in ((1, b"a"), (2, b"b"))
    ]


def test_identifiers_of_the_caller_are_not_given_again() -> None:
    """Two messages with one identifier would be duplicates to the receiver, which discards the second."""
    initiator = Initiator(OWN)
    given = mqqb.UserMessage(destination_queue=QUEUE, message_id=3)
    forwarded = mqqb.UserMessage(destination_queue=QUEUE, source_queue_manager=PEER, message_id=77)
    sent = [message(b"a"), given, message(b"b"), forwarded, message(b"c")]
    assert [initiator.send(each, 0.0) for each in sent] == [1, 3, 4, 77, 5]


def test_bytes_are_not_a_message() -> None:
    with pytest.raises(TypeError, match=r"a message is a mqqb.UserMessage\(destination_queue=.*, not bytes"):
        Initiator(OWN).send(b"one", 0.0)  # type: ignore[arg-type]


def test_message_that_is_forwarded_keeps_its_identity() -> None:
    initiator = open_initiator(Initiator(OWN))
    forwarded = mqqb.UserMessage(destination_queue=QUEUE, source_queue_manager=PEER, message_id=77, sent_time=5)
    assert initiator.send(forwarded, 0.0) == 77
    (sent,) = packets(initiator)
    assert isinstance(sent, UserMessage)
    assert (sent.source_queue_manager, sent.message_id, sent.sent_time) == (PEER.bytes_le, 77, 5)


def test_refused_messages() -> None:
    initiator = Initiator(OWN, settings=Settings(max_packet_size=1000))
    transaction = mqqb.TransactionHeader(tx_sequence_id=1, tx_sequence_number=1)
    with pytest.raises(EncodeError, match="transactional"):
        initiator.send(
            mqqb.UserMessage(destination_queue=QUEUE, delivery_mode="recoverable", transaction=transaction), 0.0
        )
    with pytest.raises(EncodeError, match=r"PacketSize: the packet has 1,.* bytes, more than 1,000"):
        initiator.send(message(bytes(1000)), 0.0)
    with pytest.raises(EncodeError, match="SessionHeader"):
        initiator.send(mqqb.UserMessage(destination_queue=QUEUE, session=mqqb.SessionHeader(window_size=1)), 0.0)
    assert len(initiator.outgoing) == 0


@pytest.mark.long
def test_the_receiver_remembers_all_that_is_sent_again() -> None:
    initiator = open_initiator(Initiator(OWN, settings=Settings(window_size=65_535)), window_size=65_535)
    for _ in range(12_000):
        initiator.send(message(), 0.0)
    history = MessageIDHistory()
    sent = identifiers(initiator)
    assert all(history.first_address(incoming(each), 0.0) is None for each in sent)
    initiator.connection_lost(0.0)
    open_initiator(initiator, window_size=65_535)
    assert all(history.first_address(incoming(each), 0.0) is not None for each in sent)
    assert identifiers(initiator) == sent == [*range(1, 10_001)]


def test_unacknowledged_bytes_are_limited() -> None:
    initiator = open_initiator(Initiator(OWN, settings=Settings(max_unacknowledged_bytes=2000)))
    for _ in range(5):
        initiator.send(message(bytes(1000)), 0.0)
    assert identifiers(initiator) == [1, 2]
    initiator.receive_data(acknowledgment(1), 0.0)
    assert identifiers(initiator) == [3]


def test_flags_acknowledge_what_the_count_does_not() -> None:
    initiator = open_initiator(Initiator(OWN))
    initiator.send(message(recoverable=True), 0.0)
    assert initiator.receive_data(acknowledgment(0, 1, 1), 0.0) == [MessagesAcknowledged((1,))]
    assert initiator.sending.unacked_message_count == 0


@pytest.mark.parametrize(("first", "flags"), [(0, 0), (3, 0xFFFFFFFF), (65535, 0), (40000, 0xFFFFFFFF)])
def test_numbers_that_acknowledge_no_recoverable_message(first: int, flags: int) -> None:
    """S10."""
    initiator = open_initiator(Initiator(OWN))
    for _ in range(2):
        initiator.send(message(recoverable=True), 0.0)
    assert initiator.receive_data(acknowledgment(2, first, flags), 0.0) == []
    assert len(initiator.outgoing) == 2


def test_message_of_the_acceptor() -> None:
    initiator = open_initiator(Initiator(OWN))
    initiator.send(message(), 0.0)
    header = SessionHeader(1, 0, 0, 1, 0)
    events = initiator.receive_data(incoming(1, header=header), 0.0)
    assert [type(event) for event in events] == [MessageReceived, MessagesAcknowledged]


@row("QS-50")
def test_a_higher_priority_goes_first() -> None:
    """S49: among the messages that wait, and again on the next session."""
    initiator = Initiator(OWN)
    for priority in (3, 0, 7, 3, 7, 5):
        initiator.send(message(priority=priority), 0.0)
    open_initiator(initiator, window_size=4)
    assert identifiers(initiator) == [3, 5, 6, 1]
    initiator.send(message(priority=6), 1.0)
    assert identifiers(initiator) == [], "the window is full"
    initiator.receive_data(acknowledgment(1, window_size=4), 1.0)
    assert identifiers(initiator) == [7]
    initiator.connection_lost(2.0)
    open_initiator(initiator, 2.0, window_size=64)
    assert identifiers(initiator) == [5, 7, 6, 1, 4, 2]


def test_messages_that_expired_leave_the_order_of_the_others() -> None:
    clock = [1000.0]
    initiator = Initiator(OWN, wall_clock=lambda: clock[0])
    for priority, lifetime in ((1, 100), (6, 5), (4, 100), (7, 5), (4, 100)):
        initiator.send(message(priority=priority, time_to_reach_queue=lifetime), 0.0)
    clock[0] += 10
    assert initiator.handle_deadline(0.0) == [MessageExpired(4), MessageExpired(2), ConnectionWanted()]
    open_initiator(initiator)
    assert identifiers(initiator) == [3, 5, 1]


def test_retries_are_at_most_five_seconds_apart() -> None:
    """S17; an acknowledgment begins the series anew."""
    initiator = Initiator(OWN)
    initiator.send(message(), 0.0)
    initiator.send(message(), 0.0)
    times = []
    for _ in range(12):
        deadline = initiator.next_deadline()
        assert deadline is not None
        times.append(deadline)
        assert initiator.handle_deadline(deadline) == [ConnectionWanted()]
        assert initiator.connection_lost(deadline) == []
    waits = [later - earlier for earlier, later in itertools.pairwise(times)]
    assert waits == pytest.approx([0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0, 5.0, 5.0])
    open_initiator(initiator, 100.0)
    initiator.receive_data(acknowledgment(1), 100.0)
    initiator.connection_lost(100.0)
    assert initiator.next_deadline() == 100.0


def test_closed_by_this_side_is_not_opened_again() -> None:
    initiator = open_initiator(Initiator(OWN))
    initiator.send(message(), 0.0)
    assert [type(event) for event in initiator.close(0.0)] == [SessionClosed]
    assert initiator.connection_lost(0.0) == []
    assert initiator.next_deadline() is None


def test_session_ack_wait_timer_does_not_close_an_idle_session() -> None:
    initiator = open_initiator(Initiator(OWN), 0.0)
    initiator.send(message(), 0.0)
    initiator.receive_data(acknowledgment(1), 1.0)
    for now in (20.0, 40.0, 60.0, 80.0):
        assert initiator.handle_deadline(now) == []
    initiator.send(message(), 100.0)
    assert initiator.handle_deadline(119.9) == []
    (event,) = initiator.handle_deadline(120.0)
    assert isinstance(event, SessionClosed)


def test_messages_expire_while_there_is_no_connection() -> None:
    """Those that have not are the reason for another attempt."""
    clock = [1000.0]
    initiator = Initiator(OWN, wall_clock=lambda: clock[0])
    for lifetime in (5, 1, 5):
        initiator.send(message(time_to_reach_queue=lifetime), 0.0)
    for now, events in (
        (1000.0, [ConnectionWanted()]),
        (1002.0, [MessageExpired(2), ConnectionWanted()]),
        (1006.0, [MessageExpired(1), MessageExpired(3)]),
    ):
        clock[0] = now
        deadline = initiator.next_deadline()
        assert deadline is not None
        assert initiator.handle_deadline(deadline) == events
        assert initiator.connection_lost(deadline, "refused") == []
    assert (len(initiator.outgoing), initiator.outgoing.size, initiator.next_deadline()) == (0, 0, None)
    initiator.send(message(), 10.0)
    deadline = initiator.next_deadline()
    assert deadline is not None
    assert initiator.handle_deadline(deadline) == [ConnectionWanted()]


def test_message_that_expires_as_it_is_sent_is_reported_at_once() -> None:
    """Its event does not wait for a timer or the peer."""
    initiator = open_initiator(Initiator(OWN, wall_clock=iter((1000.5, 1001.0)).__next__))
    initiator.send(message(time_to_reach_queue=0), 1.0)
    assert len(initiator.outgoing) == 0
    deadline = initiator.next_deadline()
    assert deadline is not None
    assert deadline <= 1.0
    assert initiator.handle_deadline(1.0) == [MessageExpired(1)]
    assert initiator.next_deadline() == 300.0


def test_message_is_sent_in_the_second_of_its_sent_time() -> None:
    """3.1.7.1.2: CURRENT_TIME is a number of seconds, as SentTime."""
    initiator = open_initiator(Initiator(OWN, wall_clock=lambda: 1000.5))
    initiator.send(message(time_to_reach_queue=0), 1.0)
    assert identifiers(initiator) == [1]
    assert initiator.handle_deadline(1.0) == []


def test_second_connection_is_refused() -> None:
    initiator = open_initiator(Initiator(OWN))
    with pytest.raises(RuntimeError, match="has a connection"):
        initiator.connection_made(0.0)
