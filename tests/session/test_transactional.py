"""Transactional messages at their receiver: order, OrderAck, FinalAck, and what never blocks a sender (S24 to S44)."""

from __future__ import annotations

import struct
from itertools import pairwise, product
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from msmqwire import mqqb
from msmqwire.session import (
    LARGEST_PACKET,
    CloseReason,
    Incoming,
    MessageDisregarded,
    MessageNotAnswered,
    MessageReceived,
    SequenceKey,
    SessionClosed,
    Settings,
    Store,
)
from msmqwire.session.incoming import name_in_key
from msmqwire.session.outgoing import OutgoingMessageTable
from tests.reference.mqqb_session_packets import (
    ConnectionParameters,
    Packet,
    SessionAck,
    SessionHeader,
    UserMessage,
)
from tests.session.driven import OWN, PEER, Driven, ack, headers, new_acceptor, open_acceptor, request

ADDRESS = "192.0.2.7"
ORDER_QUEUE = f"TCP:{ADDRESS}\\PRIVATE$\\order_queue$"
NOT_TRANSACTIONAL_Q, BAD_DST_Q, ACK_RECEIVE, RECEIVE_TIMEOUT = 0x8009, 0x8000, 0x4000, 0xC002


def opened(**options: Any) -> Driven:
    return open_acceptor(address=ADDRESS, **options)


def tx(number: int, previous: int | None = None, sequence: int = 1, **fields: Any) -> UserMessage:
    """A message of the peer; its MessageID is its place in all sequences."""
    message_id = fields.pop("message_id", 100 * sequence + number)
    return UserMessage(
        fields.pop("source", PEER).bytes_le,
        message_id,
        b"x",
        True,
        tx_sequence_number=number,
        tx_previous=previous,
        tx_sequence_id=(sequence, 1),
        **fields,
    )


def messages(packets: list[Packet]) -> list[UserMessage]:
    return [packet for packet in packets if isinstance(packet, UserMessage)]


def order_acks(packets: list[Packet]) -> list[tuple[int, int, int]]:
    """The Ordinal of TxSequenceID, TxSequenceNumber and TxPreviousSequenceNumber of each OrderAck."""
    found = []
    for each in messages(packets):
        if each.message_class == 0xFF:
            ordinal, time_stamp, number, previous = struct.unpack("<IIII20x", each.body)
            assert time_stamp == 1
            found.append((ordinal, number, previous))
    return found


def final_acks(packets: list[Packet]) -> list[tuple[int, int]]:
    """The class and the MessageID of each FinalAck."""
    return [
        (each.message_class, struct.unpack_from("<I", each.body, 32)[0])
        for each in messages(packets)
        if each.label == "QM Ordering Ack" and each.message_class != 0xFF
    ]


# --- S32: a model of the words of the ruling, without objects ---


def accepted_by(state: tuple[int, int] | None, sequence: int, number: int, previous: int) -> bool:
    if state is None:
        return True  # S24, in memory
    id0, n0 = state
    return (sequence == id0 and number > n0 and previous <= n0) or (sequence > id0 and previous == 0)


@pytest.mark.parametrize("first", [None, (2, 2)])
def test_every_order(first: tuple[int, int] | None) -> None:
    """S32, S35: accepted, duplicate, old, gap, for each small ID, N and PREV."""
    for sequence, number, previous in product((1, 2, 3), (1, 2, 3, 4), (0, 1, 2, 3)):
        if previous >= number:
            continue
        end = opened()
        if first is not None:
            end.give(tx(first[1], first[1] - 1, first[0]))
            assert order_acks(end.wait(2)) == [(*first, first[1] - 1)]
        message = tx(number, previous, sequence, message_id=9)
        end.give(message)
        is_accepted = accepted_by(first, sequence, number, previous)
        assert (9 in end.delivered) == is_accepted, (first, sequence, number, previous)
        state = (sequence, number) if is_accepted else first
        assert state is not None
        has_order_ack = is_accepted or sequence == state[0]
        assert order_acks(end.wait(2)) == ([(*state, state[1] - 1)] if has_order_ack else [])
        assert end.closed is None


def test_only_an_accepted_message_changes_the_state() -> None:
    """S32: a gap and a duplicate leave the numbers as they are."""
    end = opened()
    end.give(tx(1), tx(3, 2), tx(1), tx(2), tx(3))
    assert end.delivered == [101, 102, 103]
    assert end.disregarded == ["out_of_order", "duplicate"]
    assert order_acks(end.wait(2)) == [(1, 3, 2)]


def test_a_bridge_over_an_expired_message() -> None:
    """S28: PREV below the number before."""
    end = opened()
    end.give(tx(1), tx(5, 1), tx(9, 5))
    assert end.delivered == [101, 105, 109]


def test_a_later_sequence_begins_with_its_first_number() -> None:
    """S24: the first number seen of a source and queue, not of a TxSequenceID, or those before it would be lost."""
    end = opened()
    end.give(tx(1), tx(2, 1, 2), tx(1, 0, 2), tx(2, 1, 2))
    assert end.delivered == [101, 201, 202]
    assert end.disregarded == ["out_of_order"]


def test_a_forged_later_sequence_refuses_the_genuine_one() -> None:
    """Senders are not authenticated; a new receiver takes the genuine one again."""
    end = opened()
    end.give(tx(1), tx(1, 0, 9), tx(2))
    assert end.disregarded == ["old_sequence"]
    again = opened()
    again.give(tx(2))
    assert again.delivered == [102]


@pytest.mark.parametrize("message", [tx(1, 1), tx(2, 2), tx(2, 7)])
def test_malformed_numbers(message: UserMessage) -> None:
    """S32: the message before is acknowledged, in both ways, and the session closes."""
    end = opened()
    answers = end.give(tx(1), message, tx(2))
    assert end.closed is CloseReason.MALFORMED_PACKET
    (closed,) = (event for event in end.events if isinstance(event, SessionClosed))
    name = rf"malformed packet: message {PEER}\{message.message_id} to DIRECT=TCP:127.0.0.1\private$\orders: "
    assert closed.detail.startswith(name)
    assert end.delivered == [101]
    assert answers[0] == SessionAck(SessionHeader(1, 1, 1))
    assert order_acks(answers) == [(1, 1, 0)]


def test_an_express_message_with_a_transaction_header() -> None:
    """S33."""
    end = opened()
    packet = bytearray(tx(1).pack())
    packet[16 + 44] &= ~0x20  # DM
    end.give(bytes(packet))
    assert (end.closed, end.delivered) == (CloseReason.MALFORMED_PACKET, [])


def test_counts_and_flags() -> None:
    """S33: accepted, duplicate, old and gap alike; the MessageIDHistory is not asked."""
    end = opened(parameters=ConnectionParameters(window_size=10))
    end.give(tx(1, sequence=2, message_id=7), tx(1, sequence=2, message_id=7))
    packets = end.give(tx(1, message_id=7), tx(4, 3, 2, message_id=7), tx(2, sequence=2, message_id=7))
    assert headers(packets) == [SessionHeader(5, 1, 0b11111)]
    assert end.delivered == [7, 7]
    assert end.disregarded == ["duplicate", "old_sequence", "out_of_order"]


def test_a_sequence_of_the_queue_and_the_source() -> None:
    """S30: two spellings that differ in case are one name, other names and sources are not."""
    end = opened()
    end.give(
        tx(1, message_id=1),
        tx(2, message_id=2, queue="tcp:127.0.0.1\\PRIVATE$\\ORDERS"),
        tx(2, message_id=3, queue="OS:host\\private$\\orders"),
        tx(1, message_id=4, source=UUID(int=99)),
        tx(1, message_id=5, queue="OS:host\\private$\\ORDERS"),
    )
    assert end.delivered == [1, 2, 3, 4]
    assert end.disregarded == ["duplicate"]


def test_a_name_with_letters_whose_upper_case_is_two() -> None:
    end = opened()
    end.give(tx(1, message_id=1, queue="OS:h\\private$\\ß"), tx(1, message_id=2, queue="OS:h\\private$\\ss"))
    assert end.delivered == [1, 2]
    end.give(tx(2, message_id=3, queue="OS:H\\private$\\ß"), tx(1, message_id=4, queue="OS:h\\private$\\é"))
    end.give(tx(2, message_id=5, queue="OS:h\\private$\\É"))
    assert end.delivered == [1, 2, 3, 4, 5]
    assert name_in_key("aßé") == "AßÉ"


# --- Packets ---


def test_bytes_of_an_order_ack() -> None:
    """S37, S38, S39, compared with a packet that is written by hand from [MS-MQQB] 2.2.4."""
    end = opened()
    end.give(tx(1))
    end.now += 0.5
    end.session.handle_deadline(end.now)
    data = end.session.data_to_send()
    size = struct.unpack_from("<I", data, 8)[0]
    packet, rest = data[:size], data[size:]
    if packet[2] & 8:  # the SessionAck of the same moment
        packet, rest = rest, packet
    name = (f"TCP:{ADDRESS}\\PRIVATE$\\order_queue$\0").encode("utf-16-le")
    queue = struct.pack("<H", len(name)) + name
    queue += bytes(-len(queue) % 4)
    body = struct.pack("<IIII", 1, 1, 1, 0) + bytes(20)
    label = "QM Ordering Ack\0".encode("utf-16-le")
    user = OWN.bytes_le + bytes(16) + b"\xff" * 4 + packet[52:56] + struct.pack("<II", 1, 7 << 10 | 1 << 21)
    properties = struct.pack("<BBH16sIIIII", 0, 16, 0xFF, bytes(16), 0, 0, 0, 36, 36)
    content = user + queue + properties
    at = 16 + len(content)
    assert packet[16:at] == content
    # PrivacyLevel and algorithms
    assert packet[at + 16 : at + 16 + len(label) + 36] == label + body
    assert packet[:16] == struct.pack("<BBHIII", 0x10, packet[1], 0, 0x524F494C, len(packet), 0xFFFFFFFF)


def test_a_final_ack() -> None:
    """S38: recoverable, priority 0, without a SessionHeader."""
    end = opened(transactional=lambda _: False)
    (final, *_) = messages(end.give(tx(1, message_id=77)))
    assert (final.queue, final.label, final.recoverable, final.priority) == (ORDER_QUEUE, "QM Ordering Ack", True, 0)
    assert final.message_class == NOT_TRANSACTIONAL_Q
    assert final.body == struct.pack("<IIII16sI", 1, 1, 1, 0, PEER.bytes_le, 77)
    assert final.session_header is None
    assert final.source_queue_manager == OWN.bytes_le


def test_acknowledgments_to_a_queue_manager() -> None:
    """S39: without a direct name."""
    end = opened()
    end.give(tx(1, queue="77", queue_manager_address=OWN.bytes_le, source=UUID(int=9)))
    (order_ack,) = messages(end.wait(1))
    assert (order_ack.queue, order_ack.queue_manager_address) == ("4", UUID(int=9).bytes_le)


def test_an_order_ack_never_carries_a_session_header() -> None:
    """S38: also when the acknowledgment of the session is late."""
    end = opened(parameters=ConnectionParameters(recoverable_ack_timeout=660))
    end.give(tx(1))
    end.now = 0.5
    end.session.handle_deadline(0.5)
    (order_ack,) = messages(end.take())
    assert order_ack.session_header is None
    assert headers(end.wait(0.2)) == [SessionHeader(1, 1, 1, 1)]


def test_identifiers_of_acknowledgments_on_several_sessions() -> None:
    """S38: one counter of the queue manager, or the peer would discard them as duplicates."""
    incoming = Incoming()
    first, second = opened(incoming=incoming), opened(incoming=incoming)
    first.give(tx(1))
    second.give(tx(1, queue="OS:h\\other"))
    found = [each.message_id for end in (first, second) for each in messages(end.wait(1))]
    assert found == [1, 2]


# --- S36: when ---


def times(end: Driven, at: list[float], until: float) -> list[float]:
    """When OrderAcks are sent, if messages of one sequence come at these times."""
    found: list[float] = []
    number = 0
    for time in [*at, until]:
        while (due := end.session.next_deadline()) is not None and due <= time:
            end.now = due
            end.session.handle_deadline(due)
            found += [due] * len(order_acks(end.take()))
        end.now = time
        if time != until:
            number += 1
            end.give(tx(number))
    return found


@pytest.mark.parametrize(
    ("at", "sent"),
    [
        ([0.0], [0.5]),
        ([0.0, 0.25], [0.75]),
        ([0.0, 0.25, 0.5, 0.75], [1.25]),
        ([2.0, 2.25], [2.5]),  # the session is older than a second
        ([0.0, 2.0, 2.25], [0.5, 2.5]),
        ([0.0, 0.75, 1.0, 1.25], [0.5, 1.75]),
    ],
)
def test_when_an_order_ack_is_sent(at: list[float], sent: list[float]) -> None:
    """500 ms after the last message, and at most 1.5 s after the first that it acknowledges."""
    assert times(opened(), at, 10.0) == sent


def test_a_steady_flow_is_acknowledged() -> None:
    sent = times(opened(), [each / 10 for each in range(100)], 20)
    assert all(after - before <= 1.5 for before, after in pairwise(sent))
    assert len(sent) >= 6


def test_the_session_of_the_last_message_sends_the_order_ack() -> None:
    incoming = Incoming()
    first, second = opened(incoming=incoming), opened(incoming=incoming)
    first.give(tx(1))
    second.give(tx(2))
    assert order_acks(first.wait(3)) == []
    assert order_acks(second.wait(3)) == [(1, 2, 1)]


def test_an_order_ack_of_a_lost_session() -> None:
    """It goes out on another one with the source, at once: that may be lost before a timer expires, again and again."""
    incoming = Incoming()
    first, second = opened(incoming=incoming), opened(incoming=incoming)
    first.give(tx(1))
    first.session.connection_lost(0.1)
    assert order_acks(second.give(UserMessage(PEER.bytes_le, 5))) == [(1, 1, 0)]
    assert incoming.timers == {}


def test_leaving_sends_the_order_acks_that_are_due() -> None:
    """S18, S36."""
    end = opened()
    end.give(tx(1), tx(1, queue="OS:h\\other"))
    end.session.close(0.1)
    packets = end.take()
    assert order_acks(packets) == [(1, 1, 0), (1, 1, 0)]
    assert [each for each in packets if isinstance(each, SessionAck)] == [SessionAck(SessionHeader(2, 1, 0b11))]


# --- S34: nothing is acknowledged that is not stored ---


def test_messages_that_are_not_stored() -> None:
    """State, history, limit and answers are as before."""
    incoming = Incoming()
    end = opened(incoming=incoming)
    end.events += end.session.receive_data(tx(1).pack() + tx(2).pack(), 0.0)
    end.session.messages_not_stored()
    end.session.connection_lost(0.0)
    assert end.take() == []
    again = opened(incoming=incoming)
    assert order_acks(again.wait(2)) == []
    again.give(tx(1), tx(2))
    assert again.delivered == [101, 102]


def test_an_order_ack_has_the_state_as_it_was_committed() -> None:
    end = opened()
    end.now = 5.0
    end.give(tx(1))
    end.now = 5.5
    end.events += end.session.receive_data(tx(2).pack(), 5.5)
    end.session.handle_deadline(5.5)  # before the message is stored
    packets = end.take()
    assert order_acks(packets) == [(1, 1, 0)]
    assert order_acks(end.wait(2)) == [(1, 2, 1)], "of the second message when it is stored"


def test_states_in_memory_are_limited() -> None:
    """S24: the least recently used is forgotten, and its next message is in order."""
    end = opened(parameters=ConnectionParameters(window_size=1))
    end.give(*(tx(1, source=UUID(int=1000 + each)) for each in range(10_001)))
    end.give(tx(5, 4, source=UUID(int=1000)), tx(5, 4, source=UUID(int=11_000)))
    assert end.disregarded == ["out_of_order"]
    assert len(end.delivered) == 10_002


def test_a_durable_store(tmp_path: Path) -> None:
    """S32: without a state only the first of a sequence is in order; S35: no OrderAck with N = 0."""
    store = Store(tmp_path, OWN)
    end = opened(incoming=Incoming(store, store.message_ids))
    end.give(tx(2, 1))
    assert (end.delivered, end.disregarded) == ([], ["out_of_order"])
    assert order_acks(end.wait(2)) == []
    ((key, state),) = store.sequences()
    assert (state.sequence_id, state.number, state.rejects, state.gap) == (0, 0, 1, (1 << 32 | 1, 1))
    end.give(tx(1), tx(2))
    ((key, state),) = store.sequences()
    assert (state.number, state.rejects) == (2, 0)
    assert key == SequenceKey(PEER, "DIRECT=TCP:127.0.0.1\\PRIVATE$\\ORDERS")
    store.close()


# --- S24, S40: queues ---


def test_a_queue_that_is_not_transactional() -> None:
    """The session goes on; each message is rejected once and takes its number."""
    end = opened(transactional=lambda _: False)
    packets = end.give(tx(1), tx(2)) + end.wait(1)
    assert final_acks(packets) == [(NOT_TRANSACTIONAL_Q, 101), (NOT_TRANSACTIONAL_Q, 102)]
    assert order_acks(packets) == [(1, 2, 1)]
    assert (end.closed, end.delivered) == (None, [])
    assert end.disregarded == ["not_transactional_queue"] * 2
    first_order_ack = next(at for at, each in enumerate(packets) if getattr(each, "message_class", 0) == 0xFF)
    assert first_order_ack > 1, "a FinalAck goes before the OrderAck that covers it"
    end.give(UserMessage(PEER.bytes_le, 1))
    assert end.delivered == [1]
    assert headers([each for each in packets if isinstance(each, SessionAck)]) == [SessionHeader(2, 1, 0b11, 2, 2)]


def test_an_unknown_queue() -> None:
    end = opened(accepts=lambda message: "orders" not in str(message.destination_queue))
    packets = end.give(tx(1)) + end.wait(1)
    assert final_acks(packets) == [(BAD_DST_Q, 101)]
    assert order_acks(packets) == [(1, 1, 0)]


def test_a_rejected_message_that_comes_again() -> None:
    """It is a duplicate: no second FinalAck."""
    end = opened(transactional=lambda _: False)
    assert len(final_acks(end.give(tx(1), tx(1)))) == 1
    assert end.disregarded == ["not_transactional_queue", "duplicate"]


def test_a_gap_is_not_rejected() -> None:
    """S40: after S32, in order."""
    end = opened(transactional=lambda _: False)
    assert final_acks(end.give(tx(1), tx(3, 2))) == [(NOT_TRANSACTIONAL_Q, 101)]


def test_a_plain_message_for_a_transactional_queue() -> None:
    """S24: disregarded, with a NACK to the administration queue of this session."""
    end = opened(transactional=lambda _: True, parameters=ConnectionParameters(window_size=1))
    sent = UserMessage(
        PEER.bytes_le, 5, b"body", True, acknowledgments=4, priority=6, admin_queue=f"TCP:{ADDRESS}\\private$\\admin"
    )
    (nack,) = messages(end.give(sent))
    assert (nack.message_class, nack.priority, nack.recoverable) == (0x800A, 6, True)
    assert (nack.queue, nack.body) == (f"TCP:{ADDRESS}\\private$\\admin", b"body")
    assert end.disregarded == ["not_transactional_message"]
    assert end.closed is None


@pytest.mark.parametrize("is_sent", [True, False])
def test_an_unknown_queue_is_answered_where_insecure_nacks_are_sent(is_sent: bool) -> None:
    """3.1.7.15: SendInsecureNacks, which is FALSE by default; what is not answered is counted."""
    settings = Settings(send_insecure_nacks=is_sent)
    end = opened(accepts=lambda _: False, settings=settings, parameters=ConnectionParameters(window_size=1))
    sent = UserMessage(PEER.bytes_le, 5, b"body", True, acknowledgments=5, admin_queue=f"TCP:{ADDRESS}\\private$\\a")
    nacks = messages(end.give(sent))
    assert [(nack.message_class, nack.body) for nack in nacks] == [(BAD_DST_Q, b"body")] * is_sent
    unanswered = [event.message_class for event in end.events if isinstance(event, MessageNotAnswered)]
    assert unanswered == [BAD_DST_Q] * (not is_sent)
    assert end.disregarded == ["no_such_queue"]


# --- Times ---


def test_an_expired_message_takes_no_number() -> None:
    """S41: no FinalAck; its next message bridges, and a duplicate has its OrderAck also when it has expired."""
    end = opened()
    end.give(tx(1))
    assert order_acks(end.wait(2)) == [(1, 1, 0)]
    late = {"sent_time": 1_700_000_000 - 10, "time_to_reach_queue": 5}
    assert messages(end.give(tx(2, **late)) + end.wait(2)) == []
    assert end.disregarded == ["expired"]
    end.give(tx(1, **late))
    assert order_acks(end.wait(2)) == [(1, 1, 0)]
    end.give(tx(3, 1))
    assert end.delivered == [101, 103]


@pytest.mark.parametrize(("journaling", "flags"), [(0x100, 0xC), (0x200, 0xC), (0, 0xE)])
@pytest.mark.parametrize("lifetime", [0, 5, 0xFFFFFFFF])
def test_final_acks_that_are_asked_for(journaling: int, flags: int, lifetime: int) -> None:
    """S42: JN, JP or FA, positive and negative alike; TimeToBeReceived counts from SentTime, and 0 is over."""
    end = opened()
    packets = end.give(
        tx(1, journaling=journaling, tx_flags=flags, sent_time=1_700_000_000 - 6, time_to_be_received=lifetime)
    )
    is_over = lifetime < 6
    assert final_acks(packets) == [(RECEIVE_TIMEOUT if is_over else ACK_RECEIVE, 101)]
    assert end.delivered == ([] if is_over else [101])
    assert order_acks(end.wait(2)) == [(1, 1, 0)]


def test_acknowledgments_of_a_lost_session_go_on_the_next() -> None:
    """S43: FinalAcks that the peer has not acknowledged, in their order."""
    incoming = Incoming()
    end = opened(incoming=incoming, transactional=lambda _: False)
    end.give(tx(1), tx(2))
    end.give(ack(1, 1, 1, 2, 2))
    end.session.connection_lost(1.0)
    again = new_acceptor(incoming=incoming, address=ADDRESS)
    assert final_acks(again.give(request(), ConnectionParameters())) == [(NOT_TRANSACTIONAL_Q, 102)]
    again.give(ack(1, 1, 1))
    again.session.connection_lost(2.0)
    last = new_acceptor(incoming=incoming, address=ADDRESS)
    assert final_acks(last.give(request(), ConnectionParameters())) == []


def test_acknowledgments_of_two_lost_sessions_go_on_the_next() -> None:
    """Each was the first message of its session."""
    incoming = Incoming()
    ends = [opened(incoming=incoming, transactional=lambda _: False) for _ in range(2)]
    for number, end in enumerate(ends, 1):
        end.give(tx(number))
        end.session.connection_lost(1.0)
    again = new_acceptor(incoming=incoming, address=ADDRESS, transactional=lambda _: False)
    rejections = final_acks(again.give(request(), ConnectionParameters(window_size=1)))
    rejections += final_acks(again.give(tx(3)))
    for number in range(1, 3):
        rejections += final_acks(again.give(ack(number, number, 1, 1, 1)))
    assert rejections == [(NOT_TRANSACTIONAL_Q, number) for number in (101, 102, 103)]


def test_a_rejection_on_a_session_that_closes_goes_on_the_next_as_well() -> None:
    """S43: nothing of the closed session says whether the peer has it; a duplicate is discarded."""
    incoming = Incoming()
    end = opened(incoming=incoming, transactional=lambda _: False)
    malformed = tx(2, 5)
    assert final_acks(end.give(tx(1), malformed)) == [(NOT_TRANSACTIONAL_Q, 101)]
    assert end.closed == CloseReason.MALFORMED_PACKET
    again = new_acceptor(incoming=incoming, address=ADDRESS)
    assert final_acks(again.give(request(), ConnectionParameters())) == [(NOT_TRANSACTIONAL_Q, 101)]


def test_what_is_kept_of_lost_sessions_is_limited() -> None:
    """Acknowledgments with the bodies of what was rejected, and OrderAcks that are due; the oldest go first."""
    incoming = Incoming()
    table = OutgoingMessageTable(OWN, LARGEST_PACKET)
    queue = r"DIRECT=OS:a\q"
    sources = [UUID(int=number) for number in range(1, 20_002)]
    for source in sources[:40]:
        rejection = mqqb.UserMessage(destination_queue=queue, delivery_mode="recoverable", body=bytes(1 << 20))
        incoming.leave_unsent(source, [table.position_of(rejection, 0.0)])
    kept = [source for source in sources[:40] if incoming.take_unsent(source)]
    assert kept == sources[25:40]
    for source in sources:
        incoming.leave_order_ack(SequenceKey(source, queue))
        incoming.order_ack_sent(SequenceKey(source, queue), 0.0)
    assert len(incoming.order_acks_sent) == 10_000
    assert [source for source in sources if incoming.take_order_acks(source)] == sources[-10_000:]


def test_a_sequence_that_alternates_between_two_sessions() -> None:
    """S36: its OrderAck comes within a second and a half, whichever has the last message."""
    incoming = Incoming()
    ends = [opened(incoming=incoming) for _ in range(2)]
    sent: list[tuple[float, int]] = []
    for number in range(1, 51):
        for end in ends:
            sent += [(end.now, acked[1]) for acked in order_acks(end.wait(0.1))]
        end = ends[number % 2]
        sent += [(end.now, acked[1]) for acked in order_acks(end.give(tx(number)))]
    times = [0.0, *(time for time, _ in sent)]
    waits = [later - earlier for earlier, later in pairwise(times)]
    assert max(waits) <= 1.5
    assert min(waits) >= 1, "one session sends it"
    assert sent[-1][1] > 35


def test_a_peer_that_acknowledges_nothing() -> None:
    """What waits for it is limited, and the rest is counted."""
    end = opened(transactional=lambda _: False, parameters=ConnectionParameters(window_size=1))
    for number in range(1, 3001):
        end.give(tx(number))
    assert end.closed is None
    assert end.session.outgoing.acknowledgment_size < 300_000
    assert len(end.disregarded) == 3000


# --- S44 ---


@pytest.mark.parametrize("message_class", [0xFF, 0x4000, 0x8009, 0xC002, 0])
@pytest.mark.parametrize("queue", [ORDER_QUEUE, "OS:server\\private$\\ORDER_QUEUE$", "4"])
def test_messages_to_the_order_queue(queue: str, message_class: int) -> None:
    """Counted and acknowledged, and no row: the receiver has sent nothing that they could acknowledge."""
    end = opened(parameters=ConnectionParameters(window_size=1))
    body = struct.pack("<IIII", 1, 1, 1, 0) + bytes(20)
    sent = UserMessage(
        PEER.bytes_le, 1, body, message_class > 0xFF, queue, label="QM Ordering Ack", priority=0,
        message_class=message_class, queue_manager_address=OWN.bytes_le if queue == "4" else bytes(16),
    )  # fmt: skip
    assert len(headers(end.give(sent))) == 1
    assert (end.delivered, end.disregarded, end.closed) == ([], ["order_queue"], None)


def test_a_recoverable_order_ack() -> None:
    """What Windows sends is not known: both are taken."""
    end = opened()
    body = struct.pack("<IIII", 1, 1, 1, 0) + bytes(20)
    end.give(UserMessage(PEER.bytes_le, 1, body, True, ORDER_QUEUE, label="QM Ordering Ack", message_class=0xFF))
    assert (end.disregarded, end.closed) == (["order_queue"], None)


# --- For another queue manager ---


def foreign(number: int = 9) -> UserMessage:
    return UserMessage(PEER.bytes_le, number, b"x", True, "3", UUID(int=77).bytes_le)


def test_a_message_for_another_queue_manager() -> None:
    """What came before is acknowledged, by OrderAcks too; the line names the message and its queue."""
    end = opened()
    packets = end.give(UserMessage(PEER.bytes_le, 1, b"x", True), tx(1), foreign())
    assert packets[0] == SessionAck(SessionHeader(2, 1, 0b11))
    assert order_acks(packets) == [(1, 1, 0)]
    assert end.closed is CloseReason.NOT_FORWARDED
    (detail,) = [event.detail for event in end.events if isinstance(event, SessionClosed)]
    assert f"message {PEER}\\9 to PRIVATE={UUID(int=77)}\\3 " in detail


def test_sessions_of_its_sender_are_closed_for_a_minute() -> None:
    incoming = Incoming()
    opened(incoming=incoming).give(foreign())
    for seconds, address, closed in (
        (1, ADDRESS, CloseReason.PAUSED),
        (59, ADDRESS, CloseReason.PAUSED),
        (59, "192.0.2.8", None),  # a claim of the identifier from another address blocks no other sender
        (60, ADDRESS, None),
    ):
        end = new_acceptor(incoming=incoming, address=address)
        end.now = seconds
        assert bool(end.give(request())) == (closed is None)
        assert end.closed is closed


def test_other_messages_never_close_a_session() -> None:
    """Every kind of rejected message, then one that is accepted."""
    end = opened(
        accepts=lambda message: "unknown" not in str(message.destination_queue).lower(),
        transactional=lambda message: {"in": False, "ed": True}.get(str(message.destination_queue)[-2:]),
    )
    queues = [f"OS:h\\private$\\{name}" for name in ("unknown", "plain", "ordered", "any")]
    for number, (queue, is_transactional) in enumerate(product(queues, (True, False)), 1):
        end.give(
            tx(1, queue=queue, message_id=number)
            if is_transactional
            else UserMessage(PEER.bytes_le, number, b"x", True, queue)
        )
    assert end.closed is None
    assert [event.message.message_id for event in end.events if isinstance(event, MessageReceived)] == [4, 5, 7, 8]
    assert len([event for event in end.events if isinstance(event, MessageDisregarded)]) == 4


def test_decoded_by_the_package() -> None:
    """Our own strict decoder takes what is sent."""
    end = opened(transactional=lambda _: False)
    end.session.receive_data(tx(1).pack(), 0.0)
    packet = mqqb.decode(end.session.data_to_send(), strict=True, transport="tcp")
    assert isinstance(packet, mqqb.UserMessage)
    assert (packet.kind, packet.violations) == ("final_ack", ())
