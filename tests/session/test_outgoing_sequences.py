"""A sender of sequences with its store: it ends at every point, and the receiver has each message once and in order."""

from __future__ import annotations

import itertools
import random
import shutil
from itertools import product
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from msmqwire import mqqb
from msmqwire.errors import StoreError
from msmqwire.session import MessageFinished, OutgoingSequences, Store
from msmqwire.session.outbox import renumber
from msmqwire.session.sequences import (
    RESEND_INTERVALS,
    SEQUENCE_TRANSITION_OF,
    SEQUENCE_TRANSITIONS,
    SequenceEvent,
    SequenceStatus,
)
from msmqwire.session.store import adopt
from tests.effort import long_cases
from tests.reference.mqqb_session_packets import Packet, UserMessage
from tests.session.driven import OWN, WALL_TIME, ack
from tests.session.kills import Killed, points
from tests.session.transactional_ends import Ends, Sender, commit, final_ack, make, order_ack

__all__ = ["points"]  # a fixture

ACK_RECEIVE, REACH_QUEUE_TIMEOUT, BAD_DST_Q = 0x4000, 0x8002, 0x8000


def numbers(packets: list[UserMessage]) -> list[int | None]:
    return [each.tx_sequence_number for each in packets]


# --- S25 to S29: numbers ---


def test_numbers_are_given_at_the_commit(tmp_path: Path) -> None:
    """S26, S27, S53: in order, in one sequence of a queue, and the same on each session."""
    sender = Sender(tmp_path)
    sender.commit(1, 2, 3)
    first = sender.connect()
    assert numbers(first) == [1, 2, 3]
    assert [each.tx_previous for each in first] == [0, 1, 2]
    assert [each.tx_flags & 0xC for each in first] == [4, 0, 8]
    assert {each.tx_sequence_id for each in first} == {(1, WALL_TIME)}
    assert {(each.priority, each.recoverable, each.sent_time) for each in first} == {(0, True, WALL_TIME)}
    assert sender.connect() == first
    sender.store.close()
    again = Sender(tmp_path, wall=WALL_TIME - 1e6)  # F18: a clock that went back
    assert again.connect() == first
    again.commit(4)
    assert numbers(again.end.take()) == [4]  # type: ignore[arg-type]


def test_a_sequence_is_closed_by_its_last_order_ack(tmp_path: Path) -> None:
    """S29: lazily; the next commit opens another, with a greater identifier and from 1."""
    sender = Sender(tmp_path)
    sender.commit(1)
    (first,) = sender.connect()
    assert sender.give(order_ack(first)) == []
    assert not sender.store.outbox.queues()
    sender.commit(2)
    (second,) = sender.wait(0)
    assert (second.tx_sequence_id, second.tx_sequence_number, second.tx_previous) == ((2, WALL_TIME), 1, 0)
    # F9, S45: a late OrderAck of the sequence before
    sender.give(order_ack(first, 7))
    assert sender.store.outbox.counts() == (1, 0)


def test_two_names_are_two_sequences(tmp_path: Path) -> None:
    """F13, S25."""
    sender = Sender(tmp_path)
    sender.commit(1)
    sender.commit(2, name="DIRECT=OS:host\\private$\\orders")
    found = sender.connect()
    assert {(each.queue, each.tx_sequence_id[0], each.tx_sequence_number) for each in found} == {
        ("TCP:127.0.0.1\\PRIVATE$\\orders", 1, 1),
        ("OS:host\\PRIVATE$\\orders", 2, 1),
    }


def test_the_last_number(tmp_path: Path) -> None:
    """F16: no commit until all are acknowledged; the last ordinal begins a new time stamp."""
    sender = Sender(tmp_path)
    sender.commit(1)
    sender.store.database.execute("UPDATE sequence SET next_number = 0xFFFFFFFF")
    sender.commit(2)
    found = sender.connect()
    assert numbers(found) == [1, 0xFFFFFFFF]
    assert found[1].tx_previous == 1
    with pytest.raises(StoreError, match="all numbers"):
        sender.commit(3)
    sender.give(order_ack(found[1]))
    sender.store.database.execute("UPDATE meta SET ordinal = 0xFFFFFFFF")
    sender.commit(3)
    (third,) = sender.wait(0)
    assert third.tx_sequence_id == (1, WALL_TIME + 1)


def test_transactions_have_identifiers_of_their_own(tmp_path: Path) -> None:
    """S53: from 1 to 20 bits, of all processes; a transaction without messages takes none."""
    found = []
    for process in range(2):
        with Store(tmp_path, OWN, wall_clock=lambda: WALL_TIME) as store:
            commit(store, 1, 2)
            commit(store)
            commit(store, 3)
            if not process:
                store.database.execute("UPDATE meta SET transaction_id = (1 << 20) - 2")
            (row,) = store.outbox.queues()
            packets = [mqqb.decode(each.packet) for each in store.outbox.page(row.queue, 0)]
            found = [each.transaction.transaction_id for each in packets]  # type: ignore[union-attr]
    assert found == [1, 1, 2, (1 << 20) - 1, (1 << 20) - 1, 1]


def test_a_restored_store_whose_clock_went_back(tmp_path: Path) -> None:
    """S52: the time stamp rises by one, so that no identifier is given twice."""
    with Store(tmp_path, OWN, wall_clock=lambda: WALL_TIME) as store:
        commit(store, 1)
        for count in (1, 2):
            with store.transaction() as database:
                assert renumber(database, WALL_TIME - 1000) == 1
            (row,) = store.outbox.queues()
            assert row.sequence_id == (WALL_TIME + count) << 32 | 1


def test_a_transaction_is_all_or_nothing(tmp_path: Path) -> None:
    sender = Sender(tmp_path)

    def fail() -> None:
        with sender.store.outbox.transaction() as transaction:
            transaction.add(make(1))
            raise RuntimeError("it fails")

    with pytest.raises(RuntimeError):
        fail()
    assert sender.store.outbox.counts() == (0, 0)
    assert sender.connect() == []


def test_messages_in_flight_are_counted_on_one_session(tmp_path: Path) -> None:
    """What is sent again from the outbox is counted again, and what waits in memory is counted all the time."""
    sender = Sender(tmp_path)
    sender.commit(1, 2, 3)
    sizes = []
    for _ in range(3):
        sent = sender.connect()
        sizes.append(sender.session.outgoing.size)
        assert numbers(sent) == [1, 2, 3]
        assert sender.session.sending.recoverable_message_sent_count == 3
    assert len(set(sizes)) == 1
    sender.end.events += sender.session.connection_lost(sender.end.now)
    assert sender.session.outgoing.size == 0
    sender.end.send(1)
    waiting = sender.session.outgoing.size
    assert waiting > 0
    sender.connect()
    assert sender.session.outgoing.size == sizes[0] + waiting


def test_keys_of_a_large_transaction(tmp_path: Path) -> None:
    """A key is known before the row of its message is inserted, and afterwards; those of other queues are not."""
    other = "DIRECT=TCP:127.0.0.1\\private$\\others"
    with Store(tmp_path, OWN) as store:
        with store.outbox.transaction() as transaction:
            for number in range(300):
                assert transaction.add(make(number), str(number))
            for number in (0, 255, 256, 299):
                assert not transaction.add(make(number), str(number))
            assert transaction.add(make(0, other), "0")
            assert not transaction.add(make(0, other), "0")
        ids = transaction.message_ids
        assert [(each.message_id, each.message_class) for each in transaction.skipped] == [
            (ids[number], 0) for number in (0, 255, 256, 299, 300)
        ]
        assert store.outbox.counts() == (301, 0)
        pages = [store.outbox.page(row.queue, 0) + store.outbox.page(row.queue, 256) for row in store.outbox.queues()]
        assert sorted(len(page) for page in pages) == [1, 300]
        last = [mqqb.decode(row.packet).transaction.last_message for page in pages for row in page]  # type: ignore[union-attr]
        assert last.count(True) == 1


def test_keys(tmp_path: Path) -> None:
    """4.1: a message whose key is known is left out, before and after it is finished."""
    with Store(tmp_path, OWN, wall_clock=lambda: WALL_TIME) as store:
        for key, added in (("a", True), ("a", False), ("b", True)):
            with store.outbox.transaction() as transaction:
                assert transaction.add(make(1), key) is added
        with store.outbox.transaction() as transaction:
            assert transaction.add(make(1, "DIRECT=OS:other\\q"), "a") is True
            assert transaction.add(make(1, "DIRECT=OS:other\\q"), "a") is False
    sender = Sender(tmp_path)
    _, second = (each for each in sender.connect() if "orders" in each.queue)
    sender.give(order_ack(second))
    with sender.store.outbox.transaction() as transaction:
        assert transaction.add(make(1), "a") is False
        assert [each.is_negative for each in transaction.skipped] == [False]


# --- S45 to S48: OrderAcks and resending ---


def test_an_order_ack_removes_messages(tmp_path: Path) -> None:
    """S46: it alone decides; F8: with the SessionAck before it, after it, or without one."""
    for has_session_ack in (None, "before", "after"):
        sender = Sender(tmp_path / str(has_session_ack))
        sender.commit(1, 2, 3)
        found = sender.connect()
        acks: dict[str | None, list[Packet]] = {
            "before": [ack(3, 1, 0b111), order_ack(found[1])],
            "after": [order_ack(found[1]), ack(3, 1, 0b111, 1)],
            None: [order_ack(found[1])],
        }
        sender.give(*acks[has_session_ack])
        assert sender.store.outbox.counts() == (1, 0)
        assert sender.session.sending.unacked_message_count == (3 if has_session_ack is None else 0)
        assert numbers(sender.connect()) == [3]


def test_order_acks_that_are_not_for_it(tmp_path: Path) -> None:
    """S45: of another source, of an unknown sequence, an old one."""
    sender = Sender(tmp_path)
    sender.commit(1, 2, 3)
    found = sender.connect()
    sender.give(order_ack(found[1], source=UUID(int=9)))
    assert sender.store.outbox.counts() == (3, 0)
    sender.give(order_ack(found[1]))
    sender.give(order_ack(found[0]))
    assert sender.store.outbox.counts() == (1, 0)


def test_an_order_ack_for_what_was_not_sent(tmp_path: Path) -> None:
    """S45, S52: the sequence stops; a restored store renumbers what is left."""
    sender = Sender(tmp_path / "a")
    sender.commit(1, 2)
    sender.connect()
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    sender.commit(3)
    (third,) = sender.wait(0)
    with pytest.raises(StoreError, match="copy"):
        Sender(tmp_path / "b")  # F17
    adopt(tmp_path / "b", restored=False)
    forced = Sender(tmp_path / "b")
    forced.connect()
    forced.give(order_ack(third))
    assert forced.connect() == []
    forced.give(order_ack(third, 2))
    assert forced.store.outbox.counts() == (2, 0), "this may be another message with its number"
    with pytest.raises(StoreError, match="restored"):
        forced.commit(4)
    forced.store.close()
    assert adopt(tmp_path / "b", restored=True) == 2
    restored = Sender(tmp_path / "b")
    restored.commit(4)
    found = restored.connect()
    assert [(each.tx_sequence_number, each.tx_previous, each.body) for each in found] == [
        (1, 0, b"1"),
        (2, 1, b"2"),
        (3, 2, b"4"),
    ]
    assert {each.tx_sequence_id for each in found} == {(1, found[0].tx_sequence_id[1])}
    assert found[0].tx_sequence_id[1] > WALL_TIME
    restored.commit(5, name="DIRECT=OS:host\\private$\\orders")
    (fifth,) = restored.wait(0)
    assert fifth.tx_sequence_id == (2, found[0].tx_sequence_id[1]), "no identifier is given twice"


def test_the_window(tmp_path: Path) -> None:
    """F19, S47: one message at a time, resends as well."""
    sender = Sender(tmp_path)
    sender.commit(*range(1, 6))
    found = sender.connect(window=1)
    for number in range(1, 6):
        assert numbers(found) == [number]
        found = sender.give(ack(number, number, 1, window=1))
    assert found == []
    sender.give(order_ack(UserMessage(b"", 1, tx_sequence_id=(1, WALL_TIME)), 5))
    assert sender.store.outbox.counts() == (0, 0)


def test_resending(tmp_path: Path) -> None:
    """F19, S48: all that is not acknowledged, lowest number first, after each interval; an OrderAck begins anew."""
    with Store(tmp_path, OWN, wall_clock=lambda: WALL_TIME) as store:
        commit(store, 1, 2)
        sequences = OutgoingSequences(store.outbox, [row.queue for row in store.outbox.queues()])

        def sent(now: float) -> list[int]:
            found = []
            sequences.handle_deadline(now)
            while (position := sequences.next_message(now)) is not None:
                found.append(position.message_id)
            return found

        assert sent(0.0) == []
        sequences.session_opened(0.0)
        now, ids = 0.0, sent(0.0)
        assert len(ids) == 2
        for interval in (*RESEND_INTERVALS, RESEND_INTERVALS[-1]):
            assert sent(now + interval - 0.1) == [], interval
            now += interval
            assert sent(now) == ids, interval
        store.database.execute("DELETE FROM outgoing WHERE number = 1")
        store.database.execute("UPDATE sequence SET last_ack = 1")
        store.outbox.version += 1
        sequences.refresh(now)
        assert sent(now + RESEND_INTERVALS[0] - 0.1) == []
        assert sent(now + RESEND_INTERVALS[0]) == ids[1:]


def test_a_new_session_begins_with_the_first_interval(tmp_path: Path) -> None:
    sender = Sender(tmp_path)
    sender.commit(1)
    sender.connect()
    sender.give(ack(1, 1, 1))
    assert numbers(sender.wait(31)) == [1]
    assert numbers(sender.connect()) == [1]
    sender.give(ack(1, 1, 1))
    assert numbers(sender.wait(29)) == []
    assert numbers(sender.wait(2)) == [1]


def test_many_messages(tmp_path: Path) -> None:
    """F21: what is in memory does not grow with what waits."""
    sender = Sender(tmp_path)
    sender.commit(*range(1, 3001))
    found = sender.connect()
    (sequence,) = sender.sequences._sequences.values()
    for _ in range(3):
        assert len(found) == 64
        assert len(sequence._page) <= 256
        assert len(sender.session.outgoing) == 64
        found = sender.connect()


# --- S50, S51: the end of a message ---


@pytest.mark.parametrize("expired", [1, 2, 3])
def test_messages_that_expire_before_they_are_sent(tmp_path: Path, expired: int) -> None:
    """F12: first, middle, last: dead-lettered, and bridged (S28)."""
    sender = Sender(tmp_path)
    ids = []
    for number in (1, 2, 3):
        lifetime = 5 if number == expired else 1000
        ids += sender.commit(number, time_to_reach_queue=lifetime, negative_source_journaling=True)
    sender.wall += 6
    found = sender.connect()
    left = [number for number in (1, 2, 3) if number != expired]
    assert numbers(found) == left
    assert [each.tx_previous for each in found] == [0, left[0]]
    sender.wait(0)
    assert sender.finished == [(ids[expired - 1], REACH_QUEUE_TIMEOUT)]
    assert [each.message_class for each, _ in sender.store.outbox.finished(dead_letters=True)] == [REACH_QUEUE_TIMEOUT]
    assert sender.store.outbox.purge(dead_letters=True) == 1


@pytest.mark.parametrize("body", [b"", bytes(1 << 20)])
def test_expired_messages_are_removed_a_page_at_a_time(tmp_path: Path, body: bytes) -> None:
    """S50: a page has at most 256 messages, and about 4 MiB."""
    sender = Sender(tmp_path)
    count, page = (600, 256) if not body else (10, 4)
    ids = sender.commit(*range(count), time_to_reach_queue=5, negative_source_journaling=True, body=body)
    (kept,) = sender.commit(count, time_to_reach_queue=1000)
    sender.wall += 6
    sizes = []
    while sender.store.outbox.counts()[0] > 1:
        due = sender.session.next_deadline()
        assert due is not None
        found = sender.session.handle_deadline(max(due, sender.end.now))
        sender.end.events += found
        sizes.append(sum(isinstance(each, MessageFinished) for each in found))
    assert sizes == [page, page, count - 2 * page]
    assert sorted(sender.finished) == [(each, REACH_QUEUE_TIMEOUT) for each in ids]
    assert [each.message_id for each in sender.connect()] == [kept]


@pytest.mark.parametrize("becomes_known", [True, False])
def test_a_message_that_expires_in_flight(tmp_path: Path, becomes_known: bool) -> None:
    """F12, S50: it may have been accepted: in doubt until its FinalAck, or twice its time."""
    sender = Sender(tmp_path)
    (message_id,) = sender.commit(1, time_to_reach_queue=100, negative_source_journaling=True)
    sender.commit(2)
    first, _ = sender.connect()
    sender.give(ack(2, 1, 0b11))
    sender.wall += 101
    again = sender.wait(31)
    assert sender.store.outbox.counts() == (1, 1)
    assert numbers(again)[-1:] == [2], "what is behind it is sent again at once"
    assert again[-1].tx_previous == 0
    if becomes_known:
        sender.give(final_ack(first, ACK_RECEIVE))
        sender.wait(0)
        assert sender.finished == [(message_id, ACK_RECEIVE)]
    else:
        sender.wall += 101
        sender.give(ack(3, 3, 1))
        sender.end.now += 61
        sender.sequences.handle_deadline(sender.end.now)
        sender.wait(0)
        assert sender.finished == [(message_id, REACH_QUEUE_TIMEOUT)]
    assert sender.store.outbox.counts()[1] == 0
    dead = [*sender.store.outbox.finished(dead_letters=True)]
    assert len(dead) == (not becomes_known)


def test_a_message_of_an_earlier_process_counts_as_sent(tmp_path: Path) -> None:
    sender = Sender(tmp_path)
    sender.commit(1, time_to_reach_queue=100, negative_source_journaling=True)
    sender.store.close()
    later = Sender(tmp_path, wall=WALL_TIME + 101)
    assert later.connect() == []
    assert later.store.outbox.counts() == (0, 1)


@pytest.mark.parametrize("order", ["before", "after", "twice"])
@pytest.mark.parametrize("message_class", [ACK_RECEIVE, BAD_DST_Q])
def test_final_acks(tmp_path: Path, order: str, message_class: int) -> None:
    """F14, S51: before the OrderAck that covers it, after it, twice: one effect."""
    sender = Sender(tmp_path)
    ids = sender.commit(1, 2, final=True, negative_source_journaling=True, positive_source_journaling=True)
    first, second = sender.connect()
    final, ordered = final_ack(first, message_class), order_ack(second)
    given = {"before": [final, ordered], "after": [ordered, final], "twice": [final, ordered, final]}[order]
    for each in given:
        sender.give(each)
    sender.wait(0)
    assert sender.finished == [(ids[0], message_class)]
    kinds = [len([*sender.store.outbox.finished(dead_letters=dead)]) for dead in (False, True)]
    assert kinds == ([1, 0] if message_class == ACK_RECEIVE else [0, 1])
    assert sender.store.outbox.counts() == (0, 1)
    sender.give(final_ack(second, ACK_RECEIVE, 3))
    assert sender.store.outbox.counts() == (0, 0)


def test_final_acks_that_are_not_for_it(tmp_path: Path) -> None:
    sender = Sender(tmp_path)
    sender.commit(1, final=True)
    (first,) = sender.connect()
    other = UserMessage(**{**vars(first), "tx_sequence_id": (7, 7)})
    for each in (other, UserMessage(**{**vars(first), "message_id": 77})):
        sender.give(final_ack(each, BAD_DST_Q))
    assert sender.store.outbox.counts() == (1, 0)


def test_a_rejected_message_in_the_middle_is_bridged(tmp_path: Path) -> None:
    """Section 8, point 3: a receiver that rejects without taking the number."""
    sender = Sender(tmp_path)
    sender.commit(1, 2, 3)
    found = sender.connect()
    sender.give(order_ack(found[0]))
    again = sender.give(final_ack(found[1], BAD_DST_Q))
    assert [(each.tx_sequence_number, each.tx_previous) for each in again] == [(3, 1)]


# --- The table ---


def test_every_event_in_every_state() -> None:
    """No state and event has two transitions; without messages or a session nothing is sent."""
    assert len(SEQUENCE_TRANSITION_OF) == sum(len(each.states) for each in SEQUENCE_TRANSITIONS)
    sessions = {SequenceStatus.IDLE, SequenceStatus.SENDING, SequenceStatus.SENT}
    for state, event in product(SequenceStatus, SequenceEvent):
        transition = SEQUENCE_TRANSITION_OF.get((state, event))
        if state is SequenceStatus.STOPPED:
            assert transition is None
        elif transition is not None and transition.target is not None:
            target = transition.target
            if event is SequenceEvent.SESSION_LOST:
                assert target not in sessions
            elif event is not SequenceEvent.SESSION_OPENED and target is not SequenceStatus.STOPPED:
                assert (target in sessions) == (state in sessions), (state, event)
    assert {each.event for each in SEQUENCE_TRANSITIONS} == {*SequenceEvent}


# --- Each point ---


def test_a_sender_that_ends_at_each_point(points: Any, tmp_path: Path) -> None:
    """F1 to F3: before and after each commit: of the input, of an OrderAck, of a FinalAck."""
    names = set()
    for ends_at in itertools.count(1):
        folder = tmp_path / str(ends_at)
        folder.mkdir()
        points(folder, ends_at)
        received: list[UserMessage] = []
        try:
            sender = Sender(folder / "s")
            for number in (1, 2, 3):
                with sender.store.outbox.transaction(final=True) as transaction:
                    transaction.add(make(number), f"{number}")
            sender.sequences.add(transaction.queues[0], 0.0)
            received += sender.connect()
            sender.give(order_ack(received[0]))
            sender.give(final_ack(received[0], ACK_RECEIVE))
            sender.give(order_ack(received[1]))
        except Killed as killed:
            names.add(str(killed))
        else:
            assert ends_at > 20, "there are points"
            assert names >= {"before COMMIT", "after COMMIT"}
            break
        folder.rename(f"{folder}.ended")
        Path(f"{folder}.copy").rename(folder)
        points(folder, None)
        if (folder / "s" / "store.db").exists():
            adopt(folder / "s", restored=False)
        sender = Sender(folder / "s")
        for number in (1, 2, 3):  # the command is repeated
            with sender.store.outbox.transaction(final=True) as transaction:
                transaction.add(make(number), f"{number}")
        for row in sender.store.outbox.queues():
            sender.sequences.add(row.queue, 0.0)
        again = sender.connect()
        # Each message once, under its number in the sequence of the first process or of this one
        places = {(each.tx_sequence_id, each.tx_sequence_number): each.body for each in [*received, *again]}
        assert sorted(places.values()) == [b"1", b"2", b"3"], ends_at
        if again:
            sender.give(order_ack(again[-1]))
        for each in places:
            message = next(one for one in [*received, *again] if (one.tx_sequence_id, one.tx_sequence_number) == each)
            sender.give(final_ack(message, ACK_RECEIVE))
        assert sender.store.outbox.counts() == (0, 0), ends_at
        sender.store.close()


# --- Both ends ---


@pytest.mark.parametrize("seed", [*range(12), *long_cases(range(12, 300))])
def test_both_ends_in_random_schedules(tmp_path: Path, seed: int) -> None:
    """F1 to F4, F7, F8, F10: kills at any moment, cuts, lost bytes, time; then all is there, once and in order."""
    chance = random.Random(seed)
    ends = Ends(tmp_path, chance, windows=(1, 3, 64))
    for _ in range(60):
        event = chance.randrange(12)
        if event < 2 and ends.committed < 40:
            ends.commit(chance.randrange(1, 5))
        elif event == 2:
            ends.cut()
        elif event == 3:
            ends.kill_sender()
        elif event == 4:
            ends.kill_receiver()
        elif event == 5:
            ends.wait(chance.choice((0.6, 2.0, 31.0)))
        elif not ends.connect_again():
            ends.move(everything=bool(chance.randrange(2)))
        bodies = ends.receiver.bodies
        assert bodies == [b"%d" % number for number in range(1, len(bodies) + 1)], seed
    ends.settle()
    assert ends.receiver.bodies == [b"%d" % number for number in range(1, ends.committed + 1)]
    ends.close()
