"""The transactional messages that a queue manager sends, in its store: S25 to S29, S45, S50, S51 and S53.

A sequence belongs to a queue, by the spelling of its format name. Its messages have numbers from the moment at which
they are committed, whatever session carries them.
"""

from __future__ import annotations

import contextlib
import logging
import secrets
import sqlite3
import struct
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any, NamedTuple, Protocol
from uuid import UUID

from msmqwire import mqqb
from msmqwire.errors import StoreError
from msmqwire.session.acknowledgments import NACK_REACH_QUEUE_TIMEOUT, ORDER_ACK
from msmqwire.session.framing import MESSAGE_ID
from msmqwire.session.incoming import name_in_key
from msmqwire.session.outgoing import FOREVER, MessageIDs

_LOG = logging.getLogger(__name__)
_TEXT = ("utf-8", "surrogatepass")
_SEQUENCE = "queue, name, sequence_id, next_number, last_ack, queue_manager, stopped"
_LARGEST_NUMBER = 0xFFFFFFFF
_LARGEST_ORDINAL = 0xFFFFFFFF
_TRANSACTION_IDS = 1 << 20
_MOST_KEYS = 1_000_000
_PAGE, _MOST_BYTES = 256, 4 << 20  # of messages that are read at once
_NEGATIVE = 0x8000  # of classes
_JOURNAL, _DEAD_LETTER, _FINAL = 1, 2, 4  # what the sender wants of a message that is acknowledged
_MARK = secrets.token_bytes(8)  # TxSequenceID of a packet without its place in the sequence: no field before has it
_PLACE = struct.Struct("<QI")  # TxSequenceID and TxSequenceNumber, which stand before PreviousTxSequenceNumber
_U32 = struct.Struct("<I")
_FLAGS_BEFORE, _LAST_MESSAGE = 16, 1 << 3  # the Flags of a TransactionHeader, before PreviousTxSequenceNumber; LM

OUTBOX_SCHEMA = """
CREATE TABLE sequence(
    queue BLOB PRIMARY KEY, name TEXT NOT NULL, sequence_id BLOB NOT NULL UNIQUE, next_number INTEGER NOT NULL,
    last_ack INTEGER NOT NULL, queue_manager BLOB NOT NULL, stopped TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE outgoing(
    queue BLOB NOT NULL REFERENCES sequence(queue), number INTEGER NOT NULL, message_id INTEGER NOT NULL UNIQUE,
    key TEXT, sent_time INTEGER NOT NULL, expires INTEGER, deadline INTEGER, flags INTEGER NOT NULL,
    previous_at INTEGER NOT NULL, packet BLOB NOT NULL, PRIMARY KEY(queue, number)
);
CREATE INDEX outgoing_key ON outgoing(queue, key) WHERE key IS NOT NULL;
CREATE INDEX outgoing_expires ON outgoing(expires) WHERE expires IS NOT NULL;
CREATE TABLE awaiting(
    message_id INTEGER PRIMARY KEY, queue BLOB NOT NULL, sequence_id BLOB NOT NULL, key TEXT, deadline INTEGER,
    flags INTEGER NOT NULL, packet BLOB NOT NULL
);
CREATE INDEX awaiting_key ON awaiting(queue, key) WHERE key IS NOT NULL;
CREATE TABLE finished(
    id INTEGER PRIMARY KEY AUTOINCREMENT, is_dead_letter INTEGER NOT NULL, class INTEGER NOT NULL, time REAL NOT NULL,
    packet BLOB NOT NULL
);
CREATE TABLE done_key(
    id INTEGER PRIMARY KEY AUTOINCREMENT, queue BLOB NOT NULL, key TEXT NOT NULL, class INTEGER NOT NULL,
    UNIQUE(queue, key)
);
"""


class OutboxStore(Protocol):
    """What an outbox needs of the store that it is in: see ``Store``."""

    identifier: UUID
    database: sqlite3.Connection
    wall_clock: Callable[[], float]

    @property
    def message_ids(self) -> MessageIDs:
        """The counter of messages."""

    def errors(self) -> AbstractContextManager[None]:
        """Raise an error of SQLite as a StoreError."""

    def transaction(self) -> AbstractContextManager[sqlite3.Connection]:
        """All or nothing."""


class SequenceRow(NamedTuple):
    """The sequence of a queue.

    Attributes
    ----------
    queue, name : str
        The format name as keys have it, and as it was given first.
    sequence_id, next_number, last_ack : int
        TxSequenceID, the number of the next message, and LastAck.SeqNo.
    queue_manager : uuid.UUID
        QueueManagerAddress of the messages.
    stopped : str
        Why nothing more is sent; empty if it is not stopped.
    """

    queue: str
    name: str
    sequence_id: int
    next_number: int
    last_ack: int
    queue_manager: UUID
    stopped: str


class OutgoingRow(NamedTuple):
    """A message that is not acknowledged, with the number of the one before it (S28).

    Attributes
    ----------
    number, previous, message_id, previous_at : int
        ``previous_at`` is the place of PreviousTxSequenceNumber in the packet.
    expires : int or None
        When its TimeToReachQueue is over.
    packet : bytes
    """

    number: int
    previous: int
    message_id: int
    previous_at: int
    expires: int | None
    packet: bytes


class Outcome(NamedTuple):
    """What became of a message at last: a FinalAck has come, or its time is over.

    Attributes
    ----------
    message_id : int
    message_class : int
        Of the FinalAck, or of what this side says of a message whose time is over.
    packet : bytes
    """

    message_id: int
    message_class: int
    packet: bytes

    @property
    def is_negative(self) -> bool:
        """Whether the message did not reach an application."""
        return self.message_class >= _NEGATIVE


class OutgoingTransaction:
    """The messages of one transaction: all are committed, or none.

    Attributes
    ----------
    message_ids : list of int
        Of the messages that were added.
    skipped : list
        For each message whose key was known its MessageID, or its ``Outcome`` without a packet if it is finished.
    """

    def __init__(self, outbox: Outbox, database: sqlite3.Connection, now: int, *, final: bool) -> None:
        self._outbox = outbox
        self._database = database
        self._now = now
        self._final = final
        self._sequences: dict[str, SequenceRow] = {}
        self._rows: list[tuple[Any, ...]] = []  # not inserted yet
        self._keys: dict[tuple[str, str], Outcome] = {}  # those are not in the database before their rows
        self._lifetime: dict[str, int] = {}
        last = "SELECT transaction_id FROM meta"
        self._transaction_id = database.execute(last).fetchone()[0] % (_TRANSACTION_IDS - 1) + 1
        self._header = mqqb.TransactionHeader(
            tx_sequence_id=int.from_bytes(_MARK, "little"),
            tx_sequence_number=_LARGEST_NUMBER,
            first_message=True,
            final_ack_required=final,
            transaction_id=self._transaction_id,
        )
        self.message_ids: list[int] = []
        self.skipped: list[Outcome] = []

    def add(self, make: Callable[..., mqqb.UserMessage], key: str | None = None) -> bool:
        """Add a message; False if one with the key is in the store, or was.

        Parameters
        ----------
        make : callable
            Makes the message; it gets the fields that identify it.

        Raises
        ------
        EncodeError
            It cannot be written, or is too large.
        StoreError
            The sequence of its queue is stopped, or has no more numbers.
        """
        message = make(**self._fields())
        packet = bytearray(mqqb.encode(message))
        name = str(message.destination_queue)
        queue = name_in_key(name)
        if key is not None and (known := self._keys.get((queue, key)) or self._outbox.find_key(queue, key)):
            self.skipped.append(known)
            return False
        # Of all messages of a transaction (S53)
        self._lifetime = {"time_to_reach_queue": message.time_to_reach_queue}
        sequence = self._sequences.get(queue) or self._outbox.open_sequence(queue, name, message.queue_manager_address)
        if len(self._rows) >= _PAGE:
            self._insert()
        message_id = self._outbox.store.message_ids.take()
        packet[MESSAGE_ID] = _U32.pack(message_id)
        place_at = packet.index(_MARK)
        previous_at = place_at + _PLACE.size
        _PLACE.pack_into(packet, place_at, sequence.sequence_id, sequence.next_number)
        expires, deadline = self._times_of(message)
        flags = (
            _JOURNAL * message.positive_source_journaling
            | _DEAD_LETTER * message.negative_source_journaling
            | _FINAL * self._final
        )
        place = queue.encode(*_TEXT), sequence.next_number, message_id
        self._rows.append((*place, key, self._now, expires, deadline, flags, previous_at, packet))
        if key is not None:
            self._keys[queue, key] = Outcome(message_id, 0, b"")
        self._sequences[queue] = sequence._replace(next_number=sequence.next_number + 1)
        if not self.message_ids:
            self._header = replace(self._header, first_message=False)
        self.message_ids.append(message_id)
        return True

    def _insert(self) -> None:
        self._database.executemany("INSERT INTO outgoing VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", self._rows)
        self._rows.clear()

    @property
    def queues(self) -> list[str]:
        """The names of the queues of the messages."""
        return [*self._sequences]

    def finish(self) -> None:
        """Mark the last message (LM), and write the numbers that were given."""
        if not self._rows:
            return
        *_, previous_at, packet = self._rows[-1]
        packet[previous_at - _FLAGS_BEFORE] |= _LAST_MESSAGE
        self._insert()
        self._database.execute("UPDATE meta SET transaction_id = ?", (self._transaction_id,))
        self._database.executemany(
            "UPDATE sequence SET next_number = ? WHERE queue = ?",
            [(each.next_number, queue.encode(*_TEXT)) for queue, each in self._sequences.items()],
        )

    def _fields(self) -> dict[str, Any]:
        """Return the fields that identify the next message, except its MessageID and its place in the sequence."""
        return {
            "source_queue_manager": self._outbox.store.identifier,
            "message_id": 1,
            "sent_time": self._now,
            "delivery_mode": "recoverable",
            "priority": 0,
            "transaction": self._header,
            **self._lifetime,
        }

    def _times_of(self, message: mqqb.UserMessage) -> tuple[int | None, int | None]:
        """Return when the TimeToReachQueue of a message is over, and both of its lifetimes (S51)."""
        reach = self._lifetime["time_to_reach_queue"]
        receive = message.time_to_be_received
        expires = None if reach == FOREVER else self._now + reach
        deadline = None if expires is None or receive == FOREVER else max(expires, self._now + receive)
        return expires, deadline


class Outbox:
    """The messages that are not acknowledged, those that await a FinalAck, and those that are finished.

    Attributes
    ----------
    store : OutboxStore
    outcomes : list of Outcome
        What was finished since the caller cleared it last.
    version : int
        Raised by each change.
    removed : dict
        For each queue the lowest number of a message that was removed without an OrderAck, until its sequence takes it.
    """

    def __init__(self, store: OutboxStore) -> None:
        self.store = store
        self.outcomes: list[Outcome] = []
        self.version = 0
        self.removed: dict[str, int] = {}
        with store.errors():
            self._earlier: int = store.database.execute("SELECT message_id FROM meta").fetchone()[0]

    @contextlib.contextmanager
    def transaction(self, *, final: bool = False) -> Iterator[OutgoingTransaction]:
        """Commit the messages that are added in the block, unless it raises an exception (S27).

        ``final`` asks the receiver for a FinalAck of each.
        """
        with self.store.transaction() as database:
            made = OutgoingTransaction(self, database, int(self.store.wall_clock()), final=final)
            yield made
            made.finish()
            self.store.message_ids.reserve()
        self.version += 1

    # --- Sequences ---

    def queues(self) -> list[SequenceRow]:
        """Return the sequences whose messages are not all acknowledged and finished."""
        with self.store.errors():
            return [
                _sequence_of(*found)
                for found in self.store.database.execute(
                    f"SELECT {_SEQUENCE} FROM sequence WHERE queue IN (SELECT queue FROM outgoing) "
                    "OR queue IN (SELECT queue FROM awaiting)"
                ).fetchall()
            ]

    def sequence(self, queue: str) -> SequenceRow | None:
        """Return the sequence of a queue; None if there has been none."""
        with self.store.errors():
            found = self.store.database.execute(
                f"SELECT {_SEQUENCE} FROM sequence WHERE queue = ?", (queue.encode(*_TEXT),)
            ).fetchone()
        return None if found is None else _sequence_of(*found)

    def open_sequence(self, queue: str, name: str, queue_manager: UUID) -> SequenceRow:
        """Return the sequence for the next message: a new one if all of the last are acknowledged (S26, S29)."""
        known = self.sequence(queue)
        if known is not None and known.stopped:
            raise StoreError(f"{name}: {known.stopped}")
        if known is not None and self.has_messages(queue):
            if known.next_number > _LARGEST_NUMBER:
                raise StoreError(f"{name}: all numbers of the sequence are used until its messages are acknowledged")
            return known
        database = self.store.database
        time_stamp, ordinal = database.execute("SELECT time_stamp, ordinal FROM meta").fetchone()
        if ordinal >= _LARGEST_ORDINAL:
            time_stamp, ordinal = max(int(self.store.wall_clock()), time_stamp + 1), 0
        ordinal += 1
        database.execute("UPDATE meta SET time_stamp = ?, ordinal = ?", (time_stamp, ordinal))
        made = SequenceRow(queue, name, time_stamp << 32 | ordinal, 1, 0, queue_manager, "")
        database.execute(
            "INSERT INTO sequence VALUES (?, ?, ?, 1, 0, ?, '') ON CONFLICT DO UPDATE SET name = excluded.name, "
            "sequence_id = excluded.sequence_id, next_number = 1, last_ack = 0, queue_manager = excluded.queue_manager",
            (queue.encode(*_TEXT), name, id_column(made.sequence_id), queue_manager.bytes),
        )
        return made

    def page(self, queue: str, after: int) -> list[OutgoingRow]:
        """Return a page of the messages of a queue that are not acknowledged, after a number."""
        page: list[OutgoingRow] = []
        place = queue.encode(*_TEXT), after
        with self.store.errors():
            (previous,) = self.store.database.execute(
                "SELECT ifnull(max(number), (SELECT last_ack FROM sequence WHERE queue = ?1)) FROM outgoing "
                "WHERE queue = ?1 AND number <= ?2",
                place,
            ).fetchone()
            rows = self._page_of(
                "SELECT number, message_id, previous_at, expires, packet FROM outgoing "
                "WHERE queue = ? AND number > ? ORDER BY number LIMIT ?",
                (*place, _PAGE),
            )
        for number, *row in rows:
            page.append(OutgoingRow(number, previous, *row))
            previous = number
        return page

    def _page_of(self, select: str, parameters: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        """Return the first rows, whose packets are their last columns and have few bytes together."""
        page, size = [], 0
        rows = self.store.database.execute(select, parameters)
        for row in rows:
            page.append(row)
            size += len(row[-1])
            if size >= _MOST_BYTES:
                break
        rows.close()
        return page

    def has_messages(self, queue: str, *, final: bool = False) -> bool:
        """Return True if messages to a queue are not acknowledged, or with ``final`` await their FinalAck."""
        exists = f"SELECT EXISTS (SELECT 1 FROM {'awaiting' if final else 'outgoing'} WHERE queue = ?)"
        with self.store.errors():
            return bool(self.store.database.execute(exists, (queue.encode(*_TEXT),)).fetchone()[0])

    def counts(self) -> tuple[int, int]:
        """Return how many messages are not acknowledged, and how many await their FinalAck."""
        with self.store.errors():
            found: tuple[int, int] = self.store.database.execute(
                "SELECT (SELECT count(*) FROM outgoing), (SELECT count(*) FROM awaiting)"
            ).fetchone()
        return found

    def find_key(self, queue: str, key: str) -> Outcome | None:
        """Return what is known of the message with a key: class 0 until it is finished."""
        parameters = queue.encode(*_TEXT), key
        for table in ("outgoing", "awaiting"):
            select = f"SELECT message_id FROM {table} WHERE queue = ? AND key = ?"
            if (found := self.store.database.execute(select, parameters).fetchone()) is not None:
                return Outcome(found[0], 0, b"")
        done = "SELECT class FROM done_key WHERE queue = ? AND key = ?"
        found = self.store.database.execute(done, parameters).fetchone()
        return None if found is None else Outcome(0, found[0], b"")

    # --- What comes back ---

    def take(self, message: mqqb.UserMessage, queue_manager: UUID) -> list[Outcome]:
        """Handle an OrderAck or FinalAck of a session with a queue manager, in the transaction of its read."""
        body = message.acknowledged
        if body is None:
            _LOG.warning("a message to the order queue is no acknowledgment, and is disregarded")
        elif message.message_class == ORDER_ACK:
            self._take_order_ack(
                body.acknowledged_tx_sequence_id,
                body.acknowledged_tx_sequence_number,
                {queue_manager, message.source_queue_manager},
                message.source_queue_manager,
            )
        elif body.acknowledged_source_queue_manager == self.store.identifier and body.acknowledged_message_id:
            return self._take_final_ack(
                message.message_class or 0, body.acknowledged_tx_sequence_id, body.acknowledged_message_id
            )
        return []

    def _take_order_ack(self, sequence_id: int, number: int, sources: set[UUID], source: UUID) -> None:
        """Remove the messages that an OrderAck acknowledges: [MS-MQQB] 3.1.5.6, S45."""
        database = self.store.database
        found = database.execute(
            f"SELECT {_SEQUENCE} FROM sequence WHERE sequence_id = ?", (id_column(sequence_id),)
        ).fetchone()
        if found is None:
            _LOG.info("an OrderAck of %s is for no sequence that is open", source)
            return
        sequence = _sequence_of(*found)
        if len(sources) > 1 and source != sequence.queue_manager:
            _LOG.warning("an OrderAck for %s of %s is disregarded: it is not its receiver", sequence.name, source)
            return
        if sequence.stopped:
            return  # it may acknowledge a message of the same number that another copy of the store has sent
        queue = sequence.queue.encode(*_TEXT)
        if number >= sequence.next_number:
            stopped = (
                f"the receiver acknowledged number {number}, and the last one sent is {sequence.next_number - 1}: "
                "this store is an older copy; msmqwire store restored renumbers its messages"
            )
            database.execute("UPDATE sequence SET stopped = ? WHERE queue = ?", (stopped, queue))
        elif number > sequence.last_ack:
            upto = queue, number
            database.execute(
                "INSERT INTO awaiting SELECT message_id, queue, ?, key, deadline, flags, packet FROM outgoing "
                "WHERE queue = ? AND number <= ? AND flags > 0",
                (id_column(sequence_id), *upto),
            )
            database.execute(
                "INSERT OR REPLACE INTO done_key(queue, key, class) SELECT queue, key, 0 FROM outgoing "
                "WHERE queue = ? AND number <= ? AND flags = 0 AND key IS NOT NULL",
                upto,
            )
            database.execute("DELETE FROM done_key WHERE id <= (SELECT max(id) FROM done_key) - ?", (_MOST_KEYS,))
            database.execute("DELETE FROM outgoing WHERE queue = ? AND number <= ?", upto)
            database.execute("UPDATE sequence SET last_ack = ? WHERE queue = ?", (number, queue))

    def _take_final_ack(self, message_class: int, sequence_id: int, message_id: int) -> list[Outcome]:
        """Finish the message of a FinalAck: [MS-MQQB] 3.1.5.7, S51."""
        database = self.store.database
        found = database.execute(
            "SELECT queue, key, flags, packet FROM awaiting WHERE message_id = :message AND sequence_id = :sequence "
            "UNION ALL SELECT outgoing.queue, key, flags, packet FROM outgoing JOIN sequence USING (queue) "
            "WHERE message_id = :message AND sequence_id = :sequence",
            {"message": message_id, "sequence": id_column(sequence_id)},
        ).fetchone()
        return [] if found is None else [self._finish(message_id, message_class, *found)]

    def _finish(
        self, message_id: int, message_class: int, queue: bytes, key: str | None, flags: int, packet: bytes
    ) -> Outcome:
        """Remove a message: to the journal or the dead letters, as it asks."""
        database = self.store.database
        for (number,) in database.execute(
            "DELETE FROM outgoing WHERE message_id = ? RETURNING number", (message_id,)
        ).fetchall():
            self._note_removed(queue, number)
        database.execute("DELETE FROM awaiting WHERE message_id = ?", (message_id,))
        outcome = Outcome(message_id, message_class, packet)
        if flags & (_DEAD_LETTER if outcome.is_negative else _JOURNAL):
            database.execute(
                "INSERT INTO finished(is_dead_letter, class, time, packet) VALUES (?, ?, ?, ?)",
                (outcome.is_negative, message_class, self.store.wall_clock(), packet),
            )
        if key is not None:
            kept = message_class if outcome.is_negative else 0
            database.execute("INSERT OR REPLACE INTO done_key(queue, key, class) VALUES (?, ?, ?)", (queue, key, kept))
        return outcome

    def _note_removed(self, queue: bytes, number: int) -> None:
        name = queue.decode(*_TEXT)
        self.removed[name] = min(self.removed.get(name, number), number)

    def expire(self, sent: Callable[[str, int], bool]) -> bool:
        """Remove a page of messages whose time is over (S50, S51); False if there are none.

        ``sent`` says whether this process has sent the message of a queue with a number: it may have been accepted.
        """
        limits = int(self.store.wall_clock()), _PAGE
        outcomes: list[Outcome] = []
        with self.store.errors():
            unacknowledged = self._page_of(
                "SELECT queue, number, message_id, key, sent_time, expires, flags, packet FROM outgoing "
                "WHERE expires < ? LIMIT ?",
                limits,
            )
            unfinished = self._page_of(
                "SELECT message_id, queue, key, flags, packet FROM awaiting WHERE deadline < ? LIMIT ?", limits
            )
        if not unacknowledged and not unfinished:
            return False
        with self.store.transaction() as database:
            for queue, number, message_id, key, sent_time, expires, flags, packet in unacknowledged:
                name = queue.decode(*_TEXT)
                # What an earlier process may have sent counts as sent (S50)
                if flags and (message_id <= self._earlier or sent(name, number)):
                    database.execute(
                        "INSERT INTO awaiting SELECT message_id, queue, (SELECT sequence_id FROM sequence "
                        "WHERE queue = ?), key, ?, flags, packet FROM outgoing WHERE message_id = ?",
                        (queue, 2 * expires - sent_time, message_id),
                    )
                    database.execute("DELETE FROM outgoing WHERE message_id = ?", (message_id,))
                    self._note_removed(queue, number)
                else:
                    outcomes.append(self._finish(message_id, NACK_REACH_QUEUE_TIMEOUT, queue, key, flags, packet))
            for message_id, queue, key, flags, packet in unfinished:
                outcomes.append(self._finish(message_id, NACK_REACH_QUEUE_TIMEOUT, queue, key, flags, packet))
        self.outcomes += outcomes
        self.version += 1
        return True

    # --- For people ---

    def finished(self, *, dead_letters: bool) -> Iterator[tuple[Outcome, float]]:
        """Yield the messages of the journal or the dead letters with the time at which they were finished."""
        with self.store.errors():
            for message_class, when, packet in self.store.database.execute(
                "SELECT class, time, packet FROM finished WHERE is_dead_letter = ? ORDER BY id", (dead_letters,)
            ):
                yield Outcome(0, message_class, packet), when

    def purge(self, *, dead_letters: bool) -> int:
        """Delete the messages of the journal or the dead letters; how many there were."""
        with self.store.transaction() as database:
            return database.execute("DELETE FROM finished WHERE is_dead_letter = ?", (dead_letters,)).rowcount


def renumber(database: sqlite3.Connection, now: int) -> int:
    """Put the messages of a restored store into new sequences (S52), in a transaction; how many there are."""
    (known,) = database.execute("SELECT time_stamp FROM meta").fetchone()
    time_stamp, count = max(now, known + 1), 0
    queues = database.execute("SELECT queue FROM sequence WHERE queue IN (SELECT queue FROM outgoing)").fetchall()
    database.execute("UPDATE meta SET time_stamp = ?, ordinal = ?", (time_stamp, len(queues)))
    for ordinal, (queue,) in enumerate(queues, 1):
        sequence_id = time_stamp << 32 | ordinal
        number = last = 0
        select = (
            "SELECT number, previous_at, packet FROM outgoing WHERE queue = ? AND number > ? ORDER BY number LIMIT 1"
        )
        # No number rises, so that none is there twice, and the next one is that of a message that was not changed
        while (found := database.execute(select, (queue, last)).fetchone()) is not None:
            last, previous_at, packet = found
            number += 1
            place = _PLACE.pack(sequence_id, number)
            packet = packet[: previous_at - len(place)] + place + packet[previous_at:]
            change = "UPDATE outgoing SET number = ?, packet = ? WHERE queue = ? AND number = ?"
            database.execute(change, (number, packet, queue, last))
        count += number
        database.execute(
            "UPDATE sequence SET sequence_id = ?, next_number = ?, last_ack = 0 WHERE queue = ?",
            (id_column(sequence_id), number + 1, queue),
        )
    database.execute("UPDATE sequence SET stopped = ''")
    return count


def id_column(sequence_id: int) -> bytes:
    """Return a TxSequenceID, which is above the integers of SQLite from 2038 on."""
    return sequence_id.to_bytes(8, "big")


def _sequence_of(
    queue: bytes, name: str, sequence_id: bytes, next_number: int, last_ack: int, queue_manager: bytes, stopped: str
) -> SequenceRow:
    return SequenceRow(
        queue.decode(*_TEXT),
        name,
        int.from_bytes(sequence_id, "big"),
        next_number,
        last_ack,
        UUID(bytes=queue_manager),
        stopped,
    )
