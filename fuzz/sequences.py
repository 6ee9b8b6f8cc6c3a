"""The sequences of transactional messages beside the references: a receiver and a sender, each with a store."""

from __future__ import annotations

import atexit
import itertools
import shutil
import struct
import tempfile
from functools import cache, partial
from pathlib import Path
from typing import Any
from uuid import UUID

from fuzz.sessions import OWN, PEER, WALL_TIME, Input
from msmqwire import mqqb
from msmqwire.errors import StoreError
from msmqwire.session import Acceptor, Incoming, OutgoingSequences, Settings, Store
from msmqwire.session.acknowledgments import ACK_RECEIVE
from msmqwire.session.delivery import removal_answers
from msmqwire.session.incoming import SequenceKey
from msmqwire.session.sequences import SequenceStatus
from tests.reference.mqqb_session_packets import INFINITE, ConnectionParameters, UserMessage, first_packet, read
from tests.reference.transactional_receiver import FA, JN, JP, TransactionalReceiver
from tests.reference.transactional_sender import TransactionalSender
from tests.session.driven import request
from tests.session.transactional_ends import NAME, final_ack, order_ack

QUEUES = [f"TCP:127.0.0.1\\private$\\{name}" for name in ("orders", "ORDERS", "plain", "missing")]
SOURCES = PEER, UUID(int=9)
QUOTA = 2000
LIFETIMES = (INFINITE, INFINITE, 100, 0)
CLASSES = (0x4000, 0x8000, 0xC002, 0xC00B)
JOURNAL, DEAD_LETTER, FINAL = 1, 2, 4


@cache
def opened() -> Store:
    """The store of the process, which every input finds empty."""
    folder = Path(tempfile.mkdtemp())
    store = Store(folder, OWN, wall_clock=lambda: WALL_TIME, quota=QUOTA)
    store.database.execute("PRAGMA synchronous = OFF")
    atexit.register(shutil.rmtree, folder)
    atexit.register(store.close)
    return store


def new_store() -> Store:
    """Empty the store of the process, and return it."""
    store = opened()
    for table in ("outgoing", "sequence", "awaiting", "finished", "done_key", "incoming", "inbox", "answer"):
        store.database.execute(f"DELETE FROM {table}")
    store.database.execute("UPDATE meta SET ordinal = 0, time_stamp = ?", (WALL_TIME,))
    store._load(None)
    return store


# --- What is received ---


class Receiving:
    """Our acceptor and the reference, which get the same messages at the same times."""

    def __init__(self) -> None:
        self.store = new_store()
        self.now = 0.0
        self.reference = TransactionalReceiver(WALL_TIME, QUEUES[:2], QUEUES[2:3], QUOTA)
        self.incoming = Incoming(self.store, self.store.message_ids)
        self.expected: list[tuple[int, int]] = []
        self.sent: list[tuple[int, int]] = []
        self.open()

    def open(self) -> None:
        """A session, after another one that was lost."""
        self.session = Acceptor(
            OWN,
            incoming=self.incoming,
            settings=Settings(window_size=1000),
            accepts=lambda message: not str(message.destination_queue).lower().endswith("missing"),
            transactional=lambda message: not str(message.destination_queue).lower().endswith("plain"),
            wall_clock=lambda: WALL_TIME,
        )
        self.session.connection_made(self.now)
        self.opened_at = self.now
        self.give(request().pack() + ConnectionParameters(window_size=1000).pack())
        self.expected += [(each.id, each.n) for each in self.reference.open(PEER.bytes_le, self.now)]

    def give(self, data: bytes) -> None:
        """Read bytes of the peer."""
        self.session.receive_data(data, self.now)
        self.take()

    def take(self) -> None:
        """Collect the OrderAcks that were sent."""
        data = self.session.data_to_send()
        while data:
            packet, data = first_packet(data)
            answer = read(packet)
            if isinstance(answer, UserMessage) and answer.message_class == 0xFF:
                ordinal, time_stamp, number, previous = struct.unpack_from("<IIII", answer.body)
                assert previous == number - 1
                self.sent.append((time_stamp * 2**32 + ordinal, number))

    def wait(self, seconds: float) -> None:
        """Let time pass, timer by timer."""
        until = self.now + seconds
        while (due := self.session.next_deadline()) is not None and due <= until:
            self.session.handle_deadline(max(self.now, due))
            self.take()
        self.now = until
        self.expected += [(each.id, each.n) for _, each in self.reference.advance(until)]

    def deliver(self) -> None:
        """Take what is in the inbox."""
        page = self.store.inbox()
        answers = [
            (PEER, answer)
            for each in page
            for answer in removal_answers(each.received.message, ACK_RECEIVE, PEER, "")[0]
        ]
        self.store.remove(page, answers)
        self.reference.deliver()

    def end(self) -> None:
        """The process ends, and another one begins."""
        self.store._load(None)
        self.incoming = Incoming(self.store, self.store.message_ids)
        self.reference.end()
        self.now = 0.0
        self.open()

    def check(self) -> None:
        """Compare what both have sent, and their states."""
        assert sorted(self.sent) == sorted(self.expected)
        states = {
            SequenceKey(UUID(bytes_le=key.source), f"DIRECT={key.queue}"): (each.id, each.n, each.rejects, each.gap)
            for key, each in self.reference.states.items()
        }
        found = self.store.sequences()
        assert {key: (each.sequence_id, each.number, each.rejects, each.gap) for key, each in found} == states
        waiting = [each.received.message.message_id for each in self.store.inbox()]
        assert waiting == [each.message_id for each in self.reference.inbox]
        assert self.store.unanswered == len(self.reference.final)


def message(source: Input, message_id: int) -> UserMessage:
    """A message whose place is near those of others."""
    choices, sequence, number, flags = (source.byte() for _ in range(4))
    number = 1 + number % 8
    previous = max(0, number - 1 - (choices >> 5 & 1) * (choices >> 6))
    return UserMessage(
        SOURCES[choices & 1].bytes_le,
        message_id,
        bytes((flags >> 4) * 20),
        True,
        queue=QUEUES[choices >> 1 & 3],
        sent_time=WALL_TIME - 200 * (flags & 1),
        time_to_reach_queue=LIFETIMES[flags >> 1 & 3] or 1000,
        time_to_be_received=0 if sequence >> 6 == 3 else INFINITE,
        tx_sequence_number=number,
        tx_previous=previous,
        tx_sequence_id=(sequence & 1, 1 + (sequence >> 1 & 1)),
        tx_flags=0xC | FA * (flags >> 3 & 1),
        journaling=(0, 0, JN, JP)[choices >> 3 & 3],
    )


def received_sequences(source: Input) -> None:
    """Compare our receiver with the reference."""
    both = Receiving()
    message_ids = itertools.count(1)
    while source:
        operation = source.byte()
        if operation & 3 < 2:
            batch = [message(source, next(message_ids)) for _ in range(1 + (operation >> 2) % 3)]
            both.give(b"".join(each.pack() for each in batch))
            for each in batch:
                both.reference.receive(each, both.now)
        elif operation & 3 == 2:
            both.wait((0.25, 0.375, 0.5, 1.25)[operation >> 2 & 3])
        elif operation & 12 < 8:
            both.deliver()
        elif operation & 12 == 8:
            both.session.connection_lost(both.now)
            both.open()
        else:
            both.end()
        if both.now - both.opened_at > 15:  # nothing is acknowledged, for which a session closes
            both.session.connection_lost(both.now)
            both.open()
        assert both.session.is_open
    both.check()


# --- What is sent ---


class Sent:
    """A message that was committed."""

    def __init__(self, message_id: int, number: int, flags: int, sequence: int) -> None:
        self.message_id, self.number, self.flags, self.sequence = message_id, number, flags, sequence


class Committed:
    """Our outbox with its sequence, and the reference."""

    def __init__(self) -> None:
        self.store = new_store()
        self.outbox = self.store.outbox
        self.sequences = OutgoingSequences(self.outbox)
        self.reference = TransactionalSender(OWN, NAME, 0)
        self.messages: list[Sent] = []
        self.unacknowledged: dict[int, Sent] = {}
        self.awaiting: dict[int, Sent] = {}
        self.outcomes: list[tuple[int, int]] = []
        self.now = 0.0
        self.last = 0
        self.is_open = self.is_stopped = False

    def commit(self, count: int, flags: int) -> None:
        """Commit a transaction of so many messages."""
        fields: dict[str, Any] = {
            "positive_source_journaling": bool(flags & JOURNAL),
            "negative_source_journaling": bool(flags & DEAD_LETTER),
        }
        try:
            with self.outbox.transaction(final=bool(flags & FINAL)) as transaction:
                for number in range(count):
                    body = b"%d" % (len(self.messages) + number)
                    transaction.add(partial(mqqb.UserMessage, destination_queue=NAME, body=body, **fields))
        except StoreError:
            assert self.is_stopped
            return
        assert not self.is_stopped
        if not self.unacknowledged:  # S29
            self.reference = TransactionalSender(OWN, NAME, self.reference.sequence_id[0] + 1)
            self.last = 0
        for message_id in transaction.message_ids:
            made = Sent(message_id, self.reference.next_number, flags, self.reference.sequence_id[0])
            self.reference.add(b"%d" % len(self.messages))
            self.messages.append(made)
            self.unacknowledged[made.number] = made
        for queue in transaction.queues:
            self.sequences.add(queue, self.now)
        self.sequences.refresh(self.now)

    def take(self, packet: UserMessage) -> None:
        """Read an OrderAck or FinalAck in a transaction of its own."""
        found = mqqb.decode(packet.pack(), strict=True, transport="tcp")
        assert isinstance(found, mqqb.UserMessage)
        with self.store.transaction():
            self.outbox.outcomes += self.outbox.take(found, PEER)
        self.outbox.version += 1
        self.sequences.refresh(self.now)

    def order_ack(self, sequence: int, number: int) -> None:
        """Take an OrderAck of a number of a sequence, which may be closed or not sent."""
        of = UserMessage(b"", 1, tx_sequence_id=(sequence, WALL_TIME), tx_sequence_number=number)
        self.take(order_ack(of))
        if sequence != self.reference.sequence_id[0] or not sequence:
            return  # closed, or none: S45
        if number >= self.reference.next_number:
            self.is_stopped = True
        elif number > self.reference.last_ack and not self.is_stopped:
            self.reference.last_ack = number
            for each in [each for each in self.unacknowledged.values() if each.number <= number]:
                del self.unacknowledged[each.number]
                self.reference.expire(each.number)
                if each.flags:
                    self.awaiting[each.message_id] = each

    def final_ack(self, of: Sent, message_class: int) -> None:
        """Take a FinalAck of a message, which may be finished."""
        packet = UserMessage(
            b"", of.message_id, tx_sequence_id=(of.sequence, WALL_TIME), tx_sequence_number=of.number, tx_previous=0
        )
        self.take(final_ack(packet, message_class))
        if self.awaiting.pop(of.message_id, None) is None:
            if of.sequence != self.reference.sequence_id[0] or self.unacknowledged.get(of.number) is not of:
                return
            del self.unacknowledged[of.number]
            self.reference.expire(of.number)
            self.last = min(self.last, of.number - 1)  # what follows names another number before it
        self.outcomes.append((of.message_id, message_class))

    def send(self, most: int) -> None:
        """Messages in order, each with the number before it (S28); at the end all were sent."""
        for _ in range(most):
            position = self.sequences.next_message(self.now)
            wanted = [each for each in self.reference.packets() if (each.tx_sequence_number or 0) > self.last]
            if position is None:
                assert not wanted or not self.is_open or self.is_stopped
                return
            assert self.is_open
            assert not self.is_stopped
            packet = read(position.packet)
            assert isinstance(packet, UserMessage)
            place = packet.tx_sequence_id[0], packet.tx_sequence_number, packet.tx_previous, packet.body
            assert place == (
                wanted[0].tx_sequence_id[0],
                wanted[0].tx_sequence_number,
                wanted[0].tx_previous,
                wanted[0].body,
            )
            self.last = packet.tx_sequence_number or 0

    def check(self) -> None:
        """Compare what is left of the messages, and what became of the others."""
        assert self.outbox.counts() == (len(self.unacknowledged), len(self.awaiting))
        assert [(each.message_id, each.message_class) for each in self.outbox.outcomes] == self.outcomes
        for each in self.sequences._sequences.values():
            waits = each.state in (SequenceStatus.WAITING, SequenceStatus.SENDING, SequenceStatus.SENT)
            assert waits == (bool(self.unacknowledged) and not self.is_stopped)


def sent_sequences(source: Input) -> None:
    """Compare our sender with the reference."""
    both = Committed()
    while source:
        operation = source.byte()
        more = operation >> 3
        match operation & 7:
            case 0 | 1:
                both.commit(1 + more % 4, more >> 2)
            case 2:
                both.order_ack(max(0, both.reference.sequence_id[0] - (more & 1)), 1 + source.byte() % 15)
            case 3 if both.messages:
                both.final_ack(both.messages[source.byte() % len(both.messages)], CLASSES[more & 3])
            case 4:
                both.is_open = True
                both.last = both.reference.last_ack
                both.sequences.session_lost(both.now)
                both.sequences.session_opened(both.now)
            case 5:
                both.is_open = False
                both.sequences.session_lost(both.now)
            case 6 if both.messages:
                both.send(1 + more)
        both.check()


def sequences(data: bytes) -> None:
    """A byte that chooses the receiver or the sender; then operations: a code and what it takes."""
    source = Input(data)
    if source.byte() & 1:
        sent_sequences(source)
    else:
        received_sequences(source)
