"""The statements of [MS-MQQB] 2.1, 2.2 and 3.1 on sessions, and the decisions where the text says two things."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from msmqwire.session import CloseReason, MessageIDHistory, answer_ping
from tests.contract.checklist import row
from tests.reference.mqqb_session_packets import (
    GUID_NULL,
    RC,
    RF,
    ConnectionParameters,
    EstablishConnection,
    Packet,
    Ping,
    SessionAck,
    SessionHeader,
    UserMessage,
    internal,
    read_ping,
)
from tests.session.driven import (
    OWN,
    PEER,
    WALL_TIME,
    Driven,
    ack,
    headers,
    new_acceptor,
    new_initiator,
    numbers,
    open_acceptor,
    open_initiator,
    request,
    response,
)

LONG = ConnectionParameters(120_000, 120_000)


def kinds(packets: list[Packet]) -> list[type]:
    return [type(packet) for packet in packets]


# --- 2.1, 2.2: initialization ---


@row("QS-01")
def test_messages_follow_the_initialization() -> None:
    end = new_initiator()
    sent = end.send(2)
    assert kinds(sent) == [EstablishConnection]
    assert kinds(end.give(response())) == [ConnectionParameters]
    assert kinds(end.give(ConnectionParameters())) == [UserMessage, UserMessage]
    acceptor = new_acceptor()
    assert acceptor.send(2) == []
    assert kinds(acceptor.give(request())) == [EstablishConnection]
    assert kinds(acceptor.give(ConnectionParameters())) == [ConnectionParameters, UserMessage, UserMessage]


@row("QS-02")
def test_ping_response() -> None:
    for flags in (0, RC, 0xFFFC):
        for refuse in (False, True):
            answer = read_ping(answer_ping(Ping(flags, 0xFEDCBA98, PEER.bytes_le).pack(), OWN, refuse=refuse))
            assert answer == Ping(flags & RC | RF * refuse, 0xFEDCBA98, OWN.bytes_le)
    assert answer_ping(Ping(0, 1, PEER.bytes_le, signature=0x5549).pack(), OWN, refuse=False) == b""


@row("QS-03")
def test_other_packet_types() -> None:
    for number in (0, *range(4, 16)):
        end = new_acceptor()
        assert end.give(internal(number, bytes(552))) == []
        assert end.closed is CloseReason.MALFORMED_PACKET


@row("QS-04")
def test_response_repeats_the_request() -> None:
    for flag in (0, 0x100):
        end = new_acceptor()
        (answer,) = end.give(request(time_stamp=0xFEDCBA98, operating_system=0x10 | flag))
        assert answer == EstablishConnection(PEER.bytes_le, OWN.bytes_le, 0xFEDCBA98, 0x10 | flag)
        assert answer.padding == b"\x5a" * 512


@row("QS-05")
def test_counts_begin_at_0() -> None:
    end = open_acceptor()
    end.give(end.message(1, recoverable=True))
    end.send(1)
    end.session.connection_lost(end.now)
    end.session.connection_made(end.now)  # type: ignore[attr-defined]
    session = end.session
    assert not any(
        (
            session.sending.message_sent_count,
            session.sending.recoverable_message_sent_count,
            session.receiving.message_received_count,
            session.receiving.recoverable_message_received_count,
            session.receiving.recoverable_msg_ack_flags,
            session.receiving.last_acked_recoverable_msg_seq_number,
            session.receiving.unacked_received_msg_count,
            session.sending.unacked_message_count,
        )
    )


@row("QS-06")
def test_direct_name_takes_any_server() -> None:
    end = new_initiator()
    (asked,) = end.take()
    assert isinstance(asked, EstablishConnection)
    assert asked.server_guid == GUID_NULL
    end.give(response(server=b"any identifier  "))
    assert end.closed is None
    assert end.session.remote_queue_manager.bytes_le == b"any identifier  "


@row("QS-07")
def test_server_guid_of_a_request() -> None:
    for server in (GUID_NULL, OWN.bytes_le):
        end = new_acceptor()
        (answer,) = end.give(request(server))
        assert isinstance(answer, EstablishConnection)
        assert (answer.refused, end.closed) == (False, None)
    end = new_acceptor()
    (answer,) = end.give(request(b"another manager "))
    assert isinstance(answer, EstablishConnection)
    assert (answer.refused, answer.server_guid) == (True, OWN.bytes_le)
    assert end.closed is CloseReason.REFUSED


@row("QS-08")
def test_invalid_responses() -> None:
    end = new_initiator()
    end.give(response(refused=True))
    assert end.closed is CloseReason.REFUSED
    end = new_initiator()
    end.give(EstablishConnection(PEER.bytes_le, PEER.bytes_le))
    assert end.closed is CloseReason.UNEXPECTED_PACKET
    end = new_initiator(remote_queue_manager=PEER)
    end.give(response(server=b"another manager "))
    assert end.closed is CloseReason.UNEXPECTED_PACKET
    end = new_initiator(remote_queue_manager=PEER)
    end.give(response())
    assert end.closed is None


@row("QS-09")
def test_round_trips() -> None:
    for seconds, timeout in ((0.0, 500), (0.05, 500), (0.1, 800), (1.0, 8000), (10.0, 80_000), (20.0, 120_000)):
        end = new_initiator()
        (asked,) = end.take()
        assert isinstance(asked, EstablishConnection)
        end.wait(seconds)
        (parameters,) = end.give(response(time_stamp=asked.time_stamp))
        assert isinstance(parameters, ConnectionParameters)
        assert parameters.recoverable_ack_timeout == timeout


@row("QS-10")
def test_parameters_are_repeated() -> None:
    end = new_acceptor(window=40)
    end.give(request())
    assert end.give(ConnectionParameters(700, 30_000, 5)) == [ConnectionParameters(700, 30_000, 40)]
    assert end.session.sending.received_window_size == 5


@row("QS-11")
def test_parameters_out_of_range() -> None:
    for given, express, recoverable in (((0, 0), 10.0, 0.5), ((0xFFFFFFFF, 0xFFFFFFFF), 60.0, 120.0)):
        parameters = ConnectionParameters(*given, 64)
        for is_recoverable, seconds in ((False, express), (True, recoverable)):
            end = new_acceptor()
            end.give(request())
            assert end.give(parameters) == [parameters]
            end.give(end.message(1, recoverable=is_recoverable))
            assert end.wait(seconds - 0.01) == []
            assert kinds(end.wait(0.02)) == [SessionAck]


@row("QS-12")
def test_refusals_after_the_response() -> None:
    end = new_initiator()
    end.give(response())
    end.give(ConnectionParameters(refused=True))
    assert end.closed is CloseReason.REFUSED
    for session in (open_initiator(), open_acceptor()):
        session.give(SessionAck(SessionHeader(), refused=True))
        assert session.closed is CloseReason.REFUSED


@row("QS-13")
def test_sizes_and_flags_of_what_is_sent() -> None:
    end = new_initiator()
    data = end.session.data_to_send()
    assert (len(data), data[8:12]) == (572, (572).to_bytes(4, "little"))
    assert int.from_bytes(data[56:58], "little") & 0x1FF == 0x110
    acceptor = open_acceptor(ConnectionParameters(window_size=1))
    acceptor.events += acceptor.session.receive_data(acceptor.message(1).pack(), 0.0)
    data = acceptor.session.data_to_send()
    assert (len(data), data[8:12]) == (36, (36).to_bytes(4, "little"))
    sender = open_initiator()
    (sent,) = sender.send(1)
    assert isinstance(sent, UserMessage)
    assert sent.queue_manager_address == GUID_NULL


@row("QS-14")
def test_initialization_timer() -> None:
    for end in (new_initiator(), new_acceptor()):
        end.wait(59.9)
        early = end.closed
        assert early is None
        end.wait(0.2)
        assert end.closed is CloseReason.INITIALIZATION_TIMEOUT
    acceptor = new_acceptor()
    acceptor.wait(50)
    acceptor.give(request())
    acceptor.wait(50)
    early = acceptor.closed
    assert early is None
    acceptor.wait(10.1)
    assert acceptor.closed is CloseReason.INITIALIZATION_TIMEOUT
    initiator = new_initiator()
    initiator.wait(50)
    initiator.give(response(), ConnectionParameters())
    initiator.wait(50)
    assert initiator.closed is None


# --- 3.1.5: packets and states ---


@row("QS-15")
def test_version_and_signature() -> None:
    states: tuple[tuple[str, Callable[[], Driven], list[EstablishConnection]], ...] = (
        ("WAITING_EC_MSG", new_acceptor, []),
        ("WAITING_CP_MSG", new_acceptor, [request()]),
        ("WAITING_ECR_MSG", new_initiator, []),
        ("WAITING_CPR_MSG", new_initiator, [response()]),
        ("OPEN", open_acceptor, []),
        ("OPEN", open_initiator, []),
    )
    for state, make, before in states:
        for position in (0, 4, 5, 6, 7):
            end = make()
            end.give(*before)
            assert end.session.state == state
            end.take()
            packet = bytearray(ack(0).pack())
            packet[position] ^= 1
            assert end.give(bytes(packet)) == []
            assert end.closed is CloseReason.MALFORMED_PACKET


@row("QS-16")
def test_packets_that_no_state_expects() -> None:
    packets: dict[str, Packet] = {
        "request": request(),
        "response": response(),
        "parameters": ConnectionParameters(),
        "ack": ack(0),
        "message": UserMessage(PEER.bytes_le, 1),
    }
    states: tuple[tuple[str, Callable[[], Driven], list[EstablishConnection], set[str]], ...] = (
        ("WAITING_EC_MSG", new_acceptor, [], {"request"}),
        ("WAITING_CP_MSG", new_acceptor, [request()], {"parameters"}),
        ("WAITING_ECR_MSG", new_initiator, [], {"response"}),
        ("WAITING_CPR_MSG", new_initiator, [response()], {"parameters"}),
        ("OPEN", open_acceptor, [], {"ack", "message"}),
        ("OPEN", open_initiator, [], {"ack", "message"}),
    )
    for state, make, before, expected in states:
        for name, packet in packets.items():
            end = make()
            end.give(*before)
            assert end.session.state == state
            end.give(packet)
            assert (end.closed is None) == (name in expected), (state, name)


# --- 3.1.7.1: sending ---


@row("QS-17")
def test_windows() -> None:
    for own, received, most in ((64, 64, 64), (64, 1, 1), (64, 0, 1), (5, 500, 5), (500, 65535, 500)):
        end = open_initiator(ConnectionParameters(window_size=received), window=own)
        assert len(end.send(600)) == most
        assert len(end.give(ack(1, window=received))) == 1
    end = open_initiator(ConnectionParameters(window_size=1))
    assert len(end.send(100)) == 1
    assert len(end.give(ack(1, window=7))) == 7
    assert len(end.give(ack(2, window=0))) == 1
    assert len(end.give(ack(3, window=2))) == 0
    assert len(end.give(ack(8, window=2))) == 1


@row("QS-18")
def test_window_after_a_reconnection() -> None:
    end = open_initiator()
    assert len(end.send(64)) == 64
    end.session.connection_lost(end.now)
    end.session.connection_made(end.now)  # type: ignore[attr-defined]
    end.take()
    assert numbers(end.give(response(), ConnectionParameters())[1:]) == list(range(1, 65))


@row("QS-19")
def test_count_acknowledges_express_messages() -> None:
    end = open_initiator()
    for number in range(6):
        end.send(1, recoverable=number % 2 == 1)
    end.give(ack(4))
    assert end.acknowledged == [1, 3]
    end.give(ack(6))
    assert end.acknowledged == [1, 3, 5]
    assert end.session.sending.unacked_message_count == 0


@row("QS-20")
def test_recoverable_acknowledgments() -> None:
    end = open_initiator()
    end.send(40, recoverable=True)
    end.give(ack(40, 5, 0b1101))
    assert end.acknowledged == [1, 2, 3, 4, 5, 7, 8]
    end.give(ack(40, 9, 0xFFFFFFFF))
    assert end.acknowledged == [1, 2, 3, 4, 5, 7, 8, 6, *range(9, 41)]


@row("QS-21")
def test_recoverable_acknowledgment_of_nothing() -> None:
    end = open_initiator()
    end.send(3, recoverable=True)
    end.give(ack(3))
    assert end.acknowledged == []
    assert end.closed is None


def messages_across(sender: Driven, receiver: Driven, first: int, count: int) -> None:
    """Send messages of both kinds, window by window."""
    for start in range(first, first + count, 50):
        sent = [packet for number in range(start, start + 50) for packet in sender.send(1, recoverable=number % 5 > 0)]
        assert len(sent) == 50
        sender.give(*receiver.give(*sent), *receiver.wait(10))
        sender.wait(10)
        assert sender.session.sending.unacked_message_count == 0
        assert (sender.closed, receiver.closed) == (None, None)


@row("QS-22")
def test_counts_wrap() -> None:
    for express, recoverable in ((65500, 32000), (65535, 65535), (65400, 65500), (0, 65535)):
        sender, receiver = open_initiator(), open_acceptor()
        sender.session.sending.message_sent_count = receiver.session.receiving.message_received_count = express
        sender.session.sending.recoverable_message_sent_count = (
            receiver.session.receiving.recoverable_message_received_count
        ) = recoverable
        receiver.session.receiving.last_acked_recoverable_msg_seq_number = recoverable
        messages_across(sender, receiver, 1, 200)
        assert sender.session.sending.message_sent_count % 65536 == (express + 200) % 65536
        assert sender.session.sending.recoverable_message_sent_count % 65536 == (recoverable + 160) % 65536
        assert sorted(sender.acknowledged) == receiver.delivered == list(range(1, 201))


@row("QS-23")
def test_acknowledgment_above_what_was_sent() -> None:
    for sent, count in ((0, 1), (3, 4), (3, 32770), (3, 65535)):
        end = open_initiator()
        end.send(sent)
        end.give(ack(count))
        assert end.closed is CloseReason.UNEXPECTED_PACKET


@row("QS-24")
def test_counts_that_differ() -> None:
    for sent, recoverable in ((2, 1), (0, 1), (1, 0), (1, 2), (65535, 1)):
        end = open_acceptor()
        end.give(end.message(1, recoverable=True), ack(0, sent=sent, recoverable=recoverable))
        assert end.closed is CloseReason.UNEXPECTED_PACKET
    end = open_acceptor()
    end.give(end.message(1, recoverable=True), ack(0, sent=1, recoverable=1))
    assert end.closed is None


@row("QS-25")
def test_counts_of_a_header_include_its_message() -> None:
    history = MessageIDHistory()
    for _ in range(2):  # the second time as a duplicate
        end = open_acceptor(history=history)
        end.give(end.message(1, recoverable=True, session_header=SessionHeader(0, 0, 0, 1, 1)))
        assert end.closed is None
        end.give(end.message(2, session_header=SessionHeader(0, 0, 0, 1, 1)))
        assert end.closed is CloseReason.UNEXPECTED_PACKET
    expired = open_acceptor()
    header = SessionHeader(0, 0, 0, 1, 0)
    expired.give(expired.message(1, sent_time=WALL_TIME - 9, time_to_reach_queue=1, session_header=header))
    assert expired.closed is None


# --- 3.1.5.8: receiving ---


@row("QS-26")
def test_duplicates() -> None:
    end = open_acceptor()
    for first in (1, 2):
        end.give(end.message(1, recoverable=True))
        assert headers(end.wait(0.5)) == [SessionHeader(first, first, 1)]
    assert (end.delivered, end.disregarded) == ([1], ["duplicate"])


@row("QS-27")
def test_duplicates_have_one_source() -> None:
    end = open_acceptor()
    end.give(end.message(1), UserMessage(OWN.bytes_le, 1), end.message(1))
    assert (end.delivered, end.disregarded) == ([1, 1], ["duplicate"])


@row("QS-28")
def test_33_recoverable_messages() -> None:
    end = open_acceptor(replace(LONG, window_size=500), window=500)
    for number in range(1, 33):
        assert end.give(end.message(number, recoverable=True)) == []
    (header,) = headers(end.give(end.message(33, recoverable=True)))
    assert header[1:3] == (1, 0xFFFFFFFF)
    assert header.ack_sequence_number in (32, 33)
    assert (end.session.receiving.unacked_received_msg_count, end.session.receiving.recoverable_msg_ack_flags) == (1, 1)
    assert end.wait(119.9) == []
    assert headers(end.wait(0.2)) == [SessionHeader(33, 33, 1, 0, 0, 500)]


@row("QS-29")
def test_acknowledgments_of_half_a_window() -> None:
    for own, received, count in ((64, 64, 32), (64, 10, 5), (64, 3, 1), (64, 1, 1), (64, 0, 1), (8, 64, 4), (1, 64, 1)):
        end = open_acceptor(replace(LONG, window_size=received), window=own)
        for round_ in range(3):
            for number in range(1, count):
                assert end.give(end.message(round_ * count + number)) == []
            assert headers(end.give(end.message((round_ + 1) * count)))[0].ack_sequence_number == (round_ + 1) * count


@row("QS-30")
def test_timers_of_acknowledgments() -> None:
    end = open_acceptor(ConnectionParameters(700, 24_000))
    end.give(end.message(1))
    assert end.wait(11.9) == []
    assert headers(end.wait(0.2)) == [SessionHeader(1)]
    assert end.wait(100) == []  # stopped
    end.give(end.message(2))
    end.wait(5)
    end.give(end.message(3, recoverable=True))
    end.wait(0.3)
    end.give(end.message(4, recoverable=True))  # not the first: the timer goes on
    assert end.wait(0.3) == []
    assert headers(end.wait(0.2)) == [SessionHeader(4, 1, 0b11)]
    assert end.wait(100) == []


@row("QS-31")
def test_first_number_of_an_acknowledgment() -> None:
    end = open_acceptor()
    for number in range(1, 8):
        end.give(end.message(number, recoverable=number % 2 == 0))
        if number % 3 == 0:
            end.wait(0.5)
    sent = headers(end.wait(10))
    assert sent == [SessionHeader(7)]  # the two before were sent meanwhile
    end = open_acceptor()
    end.give(end.message(1, recoverable=True), end.message(2), end.message(3, recoverable=True))
    assert headers(end.wait(0.5)) == [SessionHeader(3, 1, 0b11)]
    end.give(end.message(4), end.message(5, recoverable=True))
    assert headers(end.wait(0.5)) == [SessionHeader(5, 3, 0b1)]
    end.give(end.message(6))
    assert headers(end.wait(10)) == [SessionHeader(6)]


@row("QS-32")
def test_message_that_carries_an_acknowledgment() -> None:
    end = open_acceptor(ConnectionParameters(1000, 20_000))
    end.give(end.message(1, recoverable=True))
    end.wait(0.7)
    (early,) = end.send(1)
    end.wait(0.1)
    (late,) = end.send(1, recoverable=True)
    (after,) = end.send(1)
    assert isinstance(early, UserMessage)
    assert isinstance(late, UserMessage)
    assert isinstance(after, UserMessage)
    assert (early.session_header, after.session_header) == (None, None)
    assert late.session_header == SessionHeader(1, 1, 1, 2, 1)  # it counts itself
    assert end.wait(5) == []  # acknowledged


@row("QS-33")
def test_messages_that_are_never_acknowledged() -> None:
    for packets in (0, 3):
        end = open_initiator()
        end.send(1)
        for _ in range(packets):
            end.wait(15)
            end.give(ack(0))
        end.wait(19.9)
        assert end.closed is None
        end.wait(61)
        assert end.closed is CloseReason.ACK_WAIT_TIMEOUT


@row("QS-34")
def test_expired_message_is_not_sent() -> None:
    end = open_initiator()
    assert end.send(1, time_to_reach_queue=9, sent_time=WALL_TIME - 10) == []
    assert len(end.send(1, time_to_reach_queue=10, sent_time=WALL_TIME - 10)) == 1


@row("QS-35")
def test_expired_message_is_not_delivered() -> None:
    end = open_acceptor()
    for number, lifetime in ((1, 9), (2, 10)):
        end.give(
            end.message(number, recoverable=True, sent_time=WALL_TIME - 10, time_to_reach_queue=lifetime),
        )
    assert (end.delivered, end.disregarded) == ([2], ["expired"])
    assert headers(end.wait(0.5)) == [SessionHeader(2, 1, 0b11)]


@row("QS-36")
def test_transactional_messages() -> None:
    end = open_acceptor(ConnectionParameters(window_size=1))
    message = end.message(1, recoverable=True, tx_sequence_number=1)
    assert headers(end.give(message)) == [SessionHeader(1, 1, 1)]
    assert (end.closed, end.delivered) == (None, [1])
    (order_ack,) = end.wait(1)
    assert isinstance(order_ack, UserMessage)
    assert order_ack.message_class == 0xFF


@row("QS-37")
def test_identifiers() -> None:
    end = new_initiator()
    (asked,) = end.take()
    assert isinstance(asked, EstablishConnection)
    end.give(response(), ConnectionParameters())
    sent = end.send(3)
    assert numbers(sent) == [1, 2, 3]
    for packet in sent:
        assert isinstance(packet, UserMessage)
        assert packet.source_queue_manager == asked.client_guid


@row("QS-38")
def test_messages_are_sent_again_in_order() -> None:
    end = open_initiator()
    for number in range(10):
        end.send(1, recoverable=number % 2 == 1)
    end.give(ack(6, 1, 0b10))  # messages 1, 3, 5; and 2 and 4 by number and flag
    end.session.connection_lost(end.now)
    end.session.connection_made(end.now)  # type: ignore[attr-defined]
    end.take()
    assert numbers(end.give(response(), ConnectionParameters())[1:]) == [6, 7, 8, 9, 10]


@row("QS-39")
def test_leaving() -> None:
    end = open_acceptor(LONG)
    end.give(end.message(1), end.message(2, recoverable=True))
    end.session.close(end.now)
    assert headers(end.take()) == [SessionHeader(2, 1, 1)]
    nothing_owed = open_acceptor()
    nothing_owed.session.close(nothing_owed.now)
    assert nothing_owed.take() == []
    for left in (end, nothing_owed):
        assert left.session.state == "CLOSED"
        assert left.give(left.message(3)) == []
        assert 3 not in left.delivered


@row("QS-40")
def test_idle_sessions() -> None:
    for end in (open_acceptor(), open_initiator()):
        end.wait(299)
        assert end.closed is None
        end.wait(2)
        assert end.closed is CloseReason.IDLE
    busy = open_acceptor(ConnectionParameters(window_size=1))
    for number in range(1, 6):
        busy.wait(290)
        busy.give(busy.message(number))
    assert busy.closed is None
    busy.wait(601)
    assert busy.closed is CloseReason.IDLE
