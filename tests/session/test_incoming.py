"""What the sessions of a queue manager share of the messages that they receive: its bounds, and its times."""

from __future__ import annotations

from uuid import UUID

import pytest

from msmqwire.session import Changes, Incoming, SequenceKey, SequenceState
from msmqwire.session.incoming import MemorySequenceStore, OrderAckTimers, name_in_key
from msmqwire.session.outgoing import OutgoingMessagePosition

PEER, OTHER = UUID(int=1), UUID(int=2)
KEY = SequenceKey(PEER, "Q")


def position(size: int) -> OutgoingMessagePosition:
    return OutgoingMessagePosition((0, 0), 1, bytes(size), True, 0.0)


def test_a_peer_is_paused_for_a_minute() -> None:
    incoming = Incoming()
    incoming.pause(PEER, "192.0.2.1", 5.0)
    assert [incoming.is_paused(PEER, "192.0.2.1", now) for now in (5.0, 64.9, 65.0)] == [True, True, False]
    assert not incoming.is_paused(PEER, "192.0.2.2", 5.0)
    assert not incoming.is_paused(OTHER, "192.0.2.1", 5.0)


def test_as_many_peers_are_paused() -> None:
    """1,000: the one that was paused first is forgotten."""
    incoming = Incoming()
    for number in range(1001):
        incoming.pause(UUID(int=number), "", 0.0)
    assert [incoming.is_paused(UUID(int=number), "", 1.0) for number in (0, 1, 1000)] == [False, True, True]


def test_as_many_states_are_in_memory() -> None:
    """S24: 10,000; the least recently stored is forgotten."""
    store = MemorySequenceStore()
    for number in (*range(10_000), 0, 10_000):
        store.commit(Changes({SequenceKey(PEER, str(number)): SequenceState(1, number)}), PEER)
    kept = [number for number in range(10_001) if store.get(SequenceKey(PEER, str(number))) is not None]
    assert kept == [0, *range(2, 10_001)]
    assert store.has_room(1 << 60)
    assert store.answers(PEER, 0) == []


def test_as_many_times_of_order_acks() -> None:
    """The time of the one that was sent first is forgotten, above 10,000."""
    incoming = Incoming()
    for number in (*range(10_000), 0, 10_000):
        incoming.order_ack_sent(SequenceKey(PEER, str(number)), float(number))
    assert len(incoming.order_acks_sent) == 10_000
    assert SequenceKey(PEER, "1") not in incoming.order_acks_sent
    assert incoming.order_acks_sent[SequenceKey(PEER, "0")] == 0.0


def test_order_acks_of_lost_sessions() -> None:
    """S36: each once, by source; above 10,000 those of the first source are dropped, and are no longer counted."""
    incoming = Incoming()
    keys = [SequenceKey(PEER, str(number)) for number in range(5000)]
    others = [SequenceKey(OTHER, str(number)) for number in range(5000)]
    for key in (*keys, *keys, *others):
        incoming.leave_order_ack(key)
    assert incoming.take_order_acks(UUID(int=3)) == []
    assert incoming.take_order_acks(PEER) == keys
    assert incoming.take_order_acks(PEER) == []
    for key in (*keys, SequenceKey(OTHER, "one more")):
        incoming.leave_order_ack(key)
    assert incoming.take_order_acks(OTHER) == []
    assert incoming.take_order_acks(PEER) == keys


def test_acknowledgments_of_lost_sessions() -> None:
    """S43: in order, above 16 MiB without those of the first queue manager; each counts 300 bytes more than its own."""
    incoming = Incoming()
    half = (8 << 20) - 300
    first, second, third = position(half), position(half), position(0)
    incoming.leave_unsent(PEER, [first])
    incoming.leave_unsent(PEER, [])
    incoming.leave_unsent(OTHER, [second])
    assert incoming.take_unsent(PEER) == [first]
    assert incoming.take_unsent(PEER) == []
    incoming.leave_unsent(PEER, [first])
    incoming.leave_unsent(PEER, [third])
    assert incoming.take_unsent(OTHER) == []
    assert incoming.take_unsent(PEER) == [first, third]
    incoming.leave_unsent(PEER, [first, position(half)])
    assert len(incoming.take_unsent(PEER)) == 2


def test_the_order_ack_timer() -> None:
    """S36: half a second, restarted by each message until a second after the last OrderAck, then left to run."""
    incoming = Incoming()
    timers = OrderAckTimers(incoming)
    assert timers.next_expiry() is None
    assert [timers.start(KEY, now, 0.0) for now in (0.0, 0.4, 0.99, 1.0, 1.2)] == [False] * 5
    assert timers.next_expiry() == 1.49
    assert [*timers.take(1.48)] == []
    assert [*timers.take(1.49)] == [KEY]
    assert not incoming.timers


def test_the_order_ack_timer_of_another_session() -> None:
    """S36: it moves to the session of the last message; after a second the OrderAck is due there at once."""
    incoming = Incoming()
    one, two = OrderAckTimers(incoming), OrderAckTimers(incoming)
    incoming.order_ack_sent(KEY, 0.0)
    assert not one.start(KEY, 0.5, 0.0)
    assert not two.start(KEY, 0.9, 0.9)
    assert (one.next_expiry(), two.next_expiry()) == (None, 1.4)
    assert one.start(KEY, 1.0, 0.0)
    assert (one.next_expiry(), two.next_expiry(), incoming.timers) == (None, None, {})


@pytest.mark.parametrize(
    ("name", "key"),
    [("aßé", "AßÉ"), ("a" * 256, "A" * 256), ("Aǰb", "AǰB")],
)
def test_names_in_keys(name: str, key: str) -> None:
    """S30: upper-cased character by character where the upper case is one character."""
    assert name_in_key(name) == key


def test_long_names_in_keys() -> None:
    """Above 256 characters by their digest."""
    assert len(name_in_key("a" * 257)) == 64
    assert name_in_key("a" * 257) == name_in_key("A" * 257) != name_in_key("a" * 258)
