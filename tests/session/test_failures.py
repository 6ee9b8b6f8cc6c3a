"""Full disks, numbers at their ends, wrong clocks, silent receivers and a million messages: S34, S29, S41, S48, S47."""

from __future__ import annotations

import contextlib
import random
import sqlite3
import struct
import tracemalloc
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from msmqwire.errors import StoreError
from msmqwire.session import MessageFinished, Store
from msmqwire.session.acknowledgments import ACK_RECEIVE
from msmqwire.session.delivery import removal_answers
from msmqwire.session.sequences import RESEND_INTERVALS
from msmqwire.session.store import adopt
from tests.session.driven import OWN, WALL_TIME, ack
from tests.session.transactional_ends import Ends, Sender, commit, make, order_ack

RECEIVED = ACK_RECEIVE, OWN, "127.0.0.1"
YEAR = 365 * 24 * 3600.0


def new_ends(folder: Path) -> Ends:
    return Ends(folder, random.Random(0))


def bodies(count: int) -> list[bytes]:
    return [b"%d" % number for number in range(1, count + 1)]


# --- F15 ---


class Disk:
    """Makes one COMMIT of the process fail, as the last write to a disk without space does."""

    def __init__(self) -> None:
        self.fails_at: int | None = None
        self.count = 0

    def commit(self) -> None:
        self.count += 1
        if self.count == self.fails_at:
            raise sqlite3.OperationalError("database or disk is full")


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    made = Disk()

    class Connection(sqlite3.Connection):
        def execute(self, sql: str, *arguments: Any) -> sqlite3.Cursor:
            if sql.startswith("COMMIT"):
                made.commit()
            return super().execute(sql, *arguments)

    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *a, **k: connect(*a, **k, factory=Connection))
    return made


def add(ends: Ends, number: int) -> None:
    with ends.sender.store.outbox.transaction(final=True) as transaction:
        transaction.add(make(number), f"{number}")
    ends.sender.sequences.add(transaction.queues[0], ends.now)
    ends.sender.session.sequences_changed(ends.now)


def repeated(action: Callable[[], object]) -> int:
    """Do something again if the disk is full, as the command that is repeated; how often it was."""
    for failures in range(3):
        with contextlib.suppress(StoreError):
            action()
            return failures
    raise AssertionError("there is space again")


def test_a_full_disk_at_each_commit(disk: Disk, tmp_path: Path) -> None:
    """F15: at each commit of both sides, of the input, of reads, of answers and of deliveries; then space again."""
    for fails_at in range(1, 100):
        disk.fails_at, disk.count = None, 0
        ends = new_ends(tmp_path / str(fails_at))
        disk.fails_at, disk.count = fails_at, 0
        failures = 0
        for number in (1, 2, 3):
            failures += repeated(partial(add, ends, number))
        delivered: list[bytes] = []
        for _ in range(40):
            ends.connect_again()
            try:
                ends.move(everything=True)
                ends.wait(0.6)
            except StoreError:
                # As Link does on both sides
                failures += 1
                for session in (ends.sender.session, ends.receiver.session):
                    assert session is not None
                    session.messages_not_stored()
                ends.cut()
            if not (page := ends.receiver.store.inbox()):
                continue
            answers = [answer for each in page for answer in removal_answers(each.received.message, *RECEIVED)[0]]
            try:
                ends.receiver.store.remove(page, [(OWN, answer) for answer in answers])
            except StoreError:
                failures += 1
            else:
                delivered += [bytes(each.received.message.body or b"") for each in page]
        assert delivered == bodies(3), fails_at
        assert ends.sender.store.outbox.counts() == (0, 0), fails_at
        finished = [each for each in ends.sender.end.events if isinstance(each, MessageFinished)]
        assert len({each.message_id for each in finished}) == len(finished) == 3, fails_at
        count = disk.count
        ends.close()
        if count < fails_at:
            break
        assert failures == 1, fails_at
    assert fails_at > 5, "there are commits"


# --- F16 ---


@pytest.mark.parametrize("resends", [False, True])
def test_counts_of_a_session_at_their_end(tmp_path: Path, resends: bool) -> None:
    """F16, S9: 0 follows 65535 in both counts, also where all is sent again."""
    ends = new_ends(tmp_path)
    ends.commit(1)
    ends.settle()
    receiver, sending = ends.receiver.session, ends.sender.session.sending
    assert receiver is not None
    for counts, names in (
        (sending, ("message_sent_count", "recoverable_message_sent_count")),
        (receiver.receiving, ("message_received_count", "recoverable_message_received_count")),
    ):
        for name in names:
            setattr(counts, name, getattr(counts, name) + 65_500)
    receiver.receiving.last_acked_recoverable_msg_seq_number += 65_500
    sessions = ends.sender.session, receiver
    ends.commit(90)
    if resends:
        # The receiver sends SessionAcks, and no OrderAck in time: all is sent again on the same session
        for _ in range(6):
            ends.move(everything=True)
        ends.now += RESEND_INTERVALS[0]
        ends.sender.session.handle_deadline(ends.now)
    for _ in range(30):
        ends.move(everything=True)
        ends.wait(0.6)
    assert (ends.sender.session, ends.receiver.session) == sessions
    assert ends.sender.session.is_open
    assert sending.message_sent_count > 65_536
    assert (sending.message_sent_count > 65_650) == resends
    assert ends.sender.store.outbox.counts() == (0, 0)
    assert ends.receiver.bodies == bodies(91)
    ends.close()


# --- F18 ---


@pytest.mark.parametrize("years", [-1, 1])
@pytest.mark.parametrize("side", ["sender", "receiver"])
def test_a_clock_that_is_wrong(tmp_path: Path, side: str, years: int) -> None:
    """F18: by a year, between the commit and the sending: each message is delivered or a dead letter, never both."""
    ends = new_ends(tmp_path)
    fields = {"time_to_reach_queue": 1000, "negative_source_journaling": True}
    ends.commit(2, final=True, **fields)
    wrong = ends.sender if side == "sender" else ends.receiver
    wrong.wall += years * YEAR
    for _ in range(6):
        ends.connect_again()
        ends.move(everything=True)
        ends.wait(0.6)
    # The clock of the sender decides which messages are lost; the receiver takes no number of those that it refuses
    expires = side == "sender" and years > 0
    waits = side == "receiver" and years > 0
    assert ends.receiver.bodies == ([] if expires or waits else bodies(2))
    wrong.wall -= years * YEAR
    ends.commit(1, **fields)
    for _ in range(6):
        ends.connect_again()
        ends.move(everything=True)
        ends.wait(RESEND_INTERVALS[0] / 4)
    ends.cut()
    for _ in range(6):
        ends.connect_again()
        ends.move(everything=True)
        ends.wait(0.6)
    assert len([*ends.sender.store.outbox.finished(dead_letters=True)]) == (2 if expires else 0)
    assert ends.receiver.bodies == ([b"3"] if expires else bodies(3))
    assert ends.sender.store.outbox.counts()[0] == 0
    ends.close()


def test_identifiers_rise_although_the_clock_goes_back(tmp_path: Path) -> None:
    """F18, S26, S52: of the next sequence, and of a restored store."""
    sender = Sender(tmp_path)
    sender.commit(1)
    (first,) = sender.connect()
    sender.wall -= YEAR
    sender.store.close()
    assert adopt(tmp_path, restored=True) == 1
    again = Sender(tmp_path, wall=WALL_TIME - YEAR)
    (second,) = again.connect()
    assert (second.tx_sequence_id[1], second.tx_sequence_id[0]) > (first.tx_sequence_id[1], first.tx_sequence_id[0])
    assert (second.body, second.tx_sequence_number, second.tx_previous) == (b"1", 1, 0)
    again.store.close()


# --- F19 ---


def test_a_receiver_without_session_acks(tmp_path: Path) -> None:
    """F19, S46, S47: its OrderAcks remove messages, and the window stays full; the next session sends the others."""
    sender = Sender(tmp_path)
    sender.commit(*range(1, 101))
    found = sender.connect()
    assert len(found) == 64
    assert sender.give(order_ack(found[-1], 60)) == []
    assert sender.store.outbox.counts() == (40, 0)
    assert sender.wait(29) == []
    found = sender.connect()
    assert [each.tx_sequence_number for each in found] == [*range(61, 101)]
    assert [each.tx_previous for each in found] == [*range(60, 100)]
    sender.give(order_ack(found[-1], 100))
    assert sender.store.outbox.counts() == (0, 0)


def test_a_receiver_without_order_acks(tmp_path: Path) -> None:
    """F19, S48: all is sent again after each interval, inside the window, up to six hours."""
    sender = Sender(tmp_path)
    sender.commit(1, 2, 3)
    found = sender.connect(window=2)
    count = 0
    for interval in (*RESEND_INTERVALS, RESEND_INTERVALS[-1]):
        sent = []
        while found:
            assert len(found) <= 2
            sent += [each.tx_sequence_number for each in found]
            count += len(found)
            first = count - len(found) + 1
            found = sender.give(ack(count, first, (1 << len(found)) - 1, window=2))
        assert sent == [1, 2, 3]
        sender.session.session_active = True  # other messages, or the session would be closed as idle
        until = sender.end.now + interval
        sender.session.timers.stop_all()
        assert sender.wait(interval - 1) == []
        found = sender.wait(until - sender.end.now)
        assert found, interval
    assert sender.session.is_open
    assert sender.store.outbox.counts() == (3, 0)


# --- F21 ---


@pytest.fixture
def million(tmp_path: Path) -> Iterator[Sender]:
    with Store(tmp_path, OWN, wall_clock=lambda: WALL_TIME) as store:
        commit(store, 1)
        database = store.database
        database.execute("PRAGMA synchronous = OFF")
        database.execute(
            "WITH RECURSIVE more(n) AS (SELECT 2 UNION ALL SELECT n + 1 FROM more WHERE n < 1000000) "
            "INSERT INTO outgoing SELECT queue, n, message_id + n, NULL, sent_time, expires, deadline, flags, "
            "previous_at, packet FROM outgoing, more"
        )
        database.execute("UPDATE sequence SET next_number = 1000001")
    sender = Sender(tmp_path)
    yield sender
    sender.store.close()


@pytest.mark.long
def test_a_million_messages_behind_one(million: Sender) -> None:
    """F21: nothing is acknowledged: all is sent again inside the window, and in a few MB of memory."""
    tracemalloc.start()
    try:
        for _ in range(3):
            found = million.connect()
            assert len(found) == 64
            assert len(million.session.outgoing) == 64
        million.give(order_ack(found[0], 64), ack(64, 1, 0xFFFFFFFF))
        assert million.store.outbox.counts() == (999_936, 0)
        assert len(million.connect()) == 64
        assert tracemalloc.get_traced_memory()[1] < 4 << 20
    finally:
        tracemalloc.stop()


def test_the_memory_of_a_restored_store(tmp_path: Path) -> None:
    """F21, S52: messages are renumbered a page at a time."""
    with Store(tmp_path, OWN, wall_clock=lambda: WALL_TIME) as store:
        commit(store, *range(1, 2001))
        store.database.execute("UPDATE outgoing SET packet = CAST(packet || zeroblob(4000) AS BLOB)")
        store.database.execute("DELETE FROM outgoing WHERE number % 5 = 0")
    tracemalloc.start()
    try:
        assert adopt(tmp_path, restored=True) == 1600
        assert tracemalloc.get_traced_memory()[1] < 4 << 20
    finally:
        tracemalloc.stop()
    with Store(tmp_path, OWN, wall_clock=lambda: WALL_TIME) as store:
        (row,) = store.outbox.queues()
        found = [each for after in range(0, 1600, 200) for each in store.outbox.page(row.queue, after)[:200]]
        assert [each.number for each in found] == [*range(1, 1601)]
        wanted = [b"%d" % number for number in range(1, 2001) if number % 5]
        for each, body in zip(found, wanted, strict=True):
            place = struct.unpack_from("<QI", each.packet, each.previous_at - 12)
            assert place == (row.sequence_id, each.number)
            assert body in each.packet


def test_a_page_of_large_messages(tmp_path: Path) -> None:
    """F21: a page has few large messages, and the others come in the next ones."""
    sender = Sender(tmp_path)
    sender.commit(*range(1, 11), extension_data=bytes(1 << 20))
    (row,) = sender.store.outbox.queues()
    page = sender.store.outbox.page(row.queue, 0)
    assert [each.number for each in page] == [1, 2, 3, 4]
    assert [each.tx_sequence_number for each in sender.connect()] == [*range(1, 11)]
    sender.store.close()
