"""The order of the transactional messages that a queue manager receives: [MS-MQQB] 3.1.1.5, 3.1.5.8.6.

A sequence belongs to a source and a format name, not to a session (S30): all sessions of a queue manager share one
``Incoming``, and with it a ``SequenceStore``.
"""

from __future__ import annotations

import hashlib
import secrets
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum, auto
from functools import lru_cache
from typing import NamedTuple, Protocol
from uuid import UUID

from msmqwire import mqqb
from msmqwire.session.events import MessageReceived
from msmqwire.session.outgoing import MessageIDs, OutgoingMessagePosition

_MOST_SEQUENCES = 10_000
_MOST_UNSENT = 16 << 20  # bytes of acknowledgments of sessions that were lost
_POSITION_SIZE = 300  # bytes of one without its packet
_MOST_PAUSED = 1_000
_LONGEST_NAME = 256  # of a queue that is kept as it is
_PAUSE = 60.0
_ORDER_ACK_TIMEOUT = 0.5  # OrderAckTimeout in seconds, [MS-MQQB] 3.1.2.7
_MOST_ORDER_ACK_DELAY = 1.0  # S36


class SequenceKey(NamedTuple):
    """SourceQueueManager and the format name of the queue, in upper case (S30)."""

    source: UUID
    queue: str


class SequenceState(NamedTuple):
    """What is kept of the messages of a key (S30).

    Attributes
    ----------
    sequence_id, number : int
        IncomingTxSequenceID and IncomingTxSequenceNumber: of the last message that was accepted.
    is_direct : bool
        Whether the queue has a direct name, which decides where an OrderAck goes (S39).
    rejects : int
        TxMessageRejectCount: messages that were not accepted since the last that was.
    gap : tuple of int, optional
        TxSequenceID and PreviousTxSequenceNumber of the last message that came out of order.
    """

    sequence_id: int = 0
    number: int = 0
    is_direct: bool = True
    rejects: int = 0
    gap: tuple[int, int] | None = None


@dataclass
class Changes:
    """What the messages of one read change, which is stored as a whole (S34).

    Attributes
    ----------
    sequences : dict
        The new state of each key.
    received : list of MessageReceived
    answers : list of tuple
        Messages with the acknowledgments of them that are messages.
    acknowledgments : list of mqqb.UserMessage
        OrderAcks and FinalAcks of messages that this side has sent.
    """

    sequences: dict[SequenceKey, SequenceState] = field(default_factory=dict)
    received: list[MessageReceived] = field(default_factory=list)
    answers: list[tuple[mqqb.UserMessage, mqqb.UserMessage]] = field(default_factory=list)
    acknowledgments: list[mqqb.UserMessage] = field(default_factory=list)


class SequenceStore(Protocol):
    """Where the states of sequences are kept, and with ``is_durable`` all of ``Changes``."""

    @property
    def is_durable(self) -> bool:
        """Whether states survive the process; if not, the first number seen of a key is taken as in order (S24)."""

    def get(self, key: SequenceKey) -> SequenceState | None:
        """Return the state of a key as it was committed last; None if there is none."""

    def commit(self, changes: Changes, queue_manager: UUID) -> None:
        """Keep what came on a session with a queue manager, all or nothing."""

    def has_room(self, size: int) -> bool:
        """Return True if so many more bytes of messages can be kept."""

    def answers(self, queue_manager: UUID, after: int) -> list[tuple[int, bytes]]:
        """Rows and packets of the answers to a queue manager that are kept, the first ones after a row."""

    def answered(self, rows: Iterable[int]) -> None:
        """Remove answers that the peer has acknowledged."""


class MemorySequenceStore:
    """States in memory, at most 10,000: the least recently used is forgotten first (S24)."""

    is_durable = False

    def __init__(self, size: int = _MOST_SEQUENCES) -> None:
        self._size = size
        self._states: OrderedDict[SequenceKey, SequenceState] = OrderedDict()

    def get(self, key: SequenceKey) -> SequenceState | None:
        """Return the state of a key, if it is known."""
        return self._states.get(key)

    def commit(self, changes: Changes, queue_manager: UUID) -> None:
        """Keep new states."""
        for key, state in changes.sequences.items():
            self._states[key] = state
            self._states.move_to_end(key)
        while len(self._states) > self._size:
            self._states.popitem(last=False)

    def has_room(self, size: int) -> bool:
        """Return True: messages are not kept."""
        return True

    def answers(self, queue_manager: UUID, after: int) -> list[tuple[int, bytes]]:
        """Return none: answers are not kept."""
        return []

    def answered(self, rows: Iterable[int]) -> None:
        """Do nothing: answers are not kept."""


class Order(Enum):
    """The place of a message in its sequence (S32)."""

    ACCEPTED = auto()
    DUPLICATE = auto()
    OLD = auto()
    GAP = auto()


def sequence_key(message: mqqb.UserMessage) -> SequenceKey:
    """Return the key of a transactional message. Two spellings of a name are two sequences of the sender."""
    return SequenceKey(message.source_queue_manager, name_in_key(str(message.destination_queue)))


@lru_cache(maxsize=256)
def name_in_key(queue: str) -> str:
    """Return a format name as keys have it."""
    name = queue.upper()
    if len(name) > len(queue):
        # A character whose upper case is several stays as it is: ß and SS are two names
        name = "".join(each if len(each.upper()) > 1 else each.upper() for each in queue)
    if len(name) > _LONGEST_NAME:
        name = hashlib.sha256(name.encode("utf-16-le", "surrogatepass")).hexdigest()
    return name


def order_of(state: SequenceState | None, transaction: mqqb.TransactionHeader, *, is_durable: bool) -> Order:
    """Return where a message stands in its sequence (S32); in memory, the first of a key is in order (S24)."""
    if state is None:
        if not is_durable:
            return Order.ACCEPTED
        state = SequenceState()
    sequence_id, number = transaction.tx_sequence_id, transaction.tx_sequence_number
    previous = transaction.previous_tx_sequence_number
    if sequence_id < state.sequence_id:
        return Order.OLD
    if sequence_id == state.sequence_id:
        if number <= state.number:
            return Order.DUPLICATE
        return Order.ACCEPTED if previous <= state.number else Order.GAP
    return Order.ACCEPTED if previous == 0 else Order.GAP


def after(
    state: SequenceState | None, transaction: mqqb.TransactionHeader, order: Order, *, is_direct: bool
) -> SequenceState:
    """Return the state after a message; only one that is accepted changes the numbers (S32)."""
    if order is Order.ACCEPTED:
        return SequenceState(transaction.tx_sequence_id, transaction.tx_sequence_number, is_direct)
    state = state or SequenceState(is_direct=is_direct)
    gap = state.gap
    if order is Order.GAP:
        gap = transaction.tx_sequence_id, transaction.previous_tx_sequence_number
    return state._replace(rejects=state.rejects + 1, gap=gap)


@dataclass
class Incoming:
    """What all sessions of a queue manager share of the messages that they receive.

    Attributes
    ----------
    store : SequenceStore
    message_ids : MessageIDs
        Identifiers of the acknowledgments that the queue manager sends.
    timers : dict
        For each key whose OrderAck is due the timers of the session of its last message (S36).
    order_acks_sent : dict
        LastOrderAckSendTime of each key.
    answering : dict
        For each queue manager the session that sends its stored answers: the one that was opened last (S43).
    """

    store: SequenceStore = field(default_factory=MemorySequenceStore)
    message_ids: MessageIDs = field(default_factory=MessageIDs)
    timers: dict[SequenceKey, OrderAckTimers] = field(default_factory=dict)
    order_acks_sent: OrderedDict[SequenceKey, float] = field(default_factory=OrderedDict)
    answering: dict[UUID, object] = field(default_factory=dict)
    _due: OrderedDict[UUID, dict[SequenceKey, None]] = field(default_factory=OrderedDict)
    _due_count: int = 0
    _unsent: OrderedDict[UUID, list[OutgoingMessagePosition]] = field(default_factory=OrderedDict)
    _unsent_size: int = 0
    _paused: OrderedDict[tuple[UUID, str], float] = field(default_factory=OrderedDict)

    @classmethod
    def of_known_identifier(cls) -> Incoming:
        """For a queue manager whose identifier was used before, by a process that left no counter of its messages.

        The peer discards a message with an identifier that it remembers, so that the first one is random.
        """
        return cls(message_ids=MessageIDs(secrets.randbelow(0xFFFFFFFF)))

    def order_ack_sent(self, key: SequenceKey, now: float) -> None:
        """Note that an OrderAck is sent: that of a key long ago is forgotten, as if there had been none."""
        self.order_acks_sent[key] = now
        self.order_acks_sent.move_to_end(key)
        if len(self.order_acks_sent) > _MOST_SEQUENCES:
            self.order_acks_sent.popitem(last=False)

    def leave_order_ack(self, key: SequenceKey) -> None:
        """Keep an OrderAck that is due for another session with its source, since its own session is lost (S36)."""
        keys = self._due.setdefault(key.source, {})
        self._due_count += key not in keys
        keys[key] = None
        while self._due_count > _MOST_SEQUENCES:
            self._due_count -= len(self._due.popitem(last=False)[1])

    def take_order_acks(self, queue_manager: UUID) -> list[SequenceKey]:
        """Return the keys of OrderAcks that a session with this queue manager sends."""
        taken = [*self._due.pop(queue_manager, ())]
        self._due_count -= len(taken)
        return taken

    def leave_unsent(self, queue_manager: UUID, acknowledgments: list[OutgoingMessagePosition]) -> None:
        """Keep recoverable acknowledgments that the peer has not acknowledged, for its next session (S43)."""
        if acknowledgments:
            self._unsent.setdefault(queue_manager, []).extend(acknowledgments)
            self._unsent_size += _size_of(acknowledgments)
        while self._unsent_size > _MOST_UNSENT:
            self._unsent_size -= _size_of(self._unsent.popitem(last=False)[1])

    def take_unsent(self, queue_manager: UUID) -> list[OutgoingMessagePosition]:
        """Return the acknowledgments that the next session with this queue manager sends."""
        taken = self._unsent.pop(queue_manager, [])
        self._unsent_size -= _size_of(taken)
        return taken

    def pause(self, queue_manager: UUID, address: str, now: float) -> None:
        """Close the sessions of a peer at once for a minute, so that it does not connect again and again."""
        self._paused[queue_manager, address] = now + _PAUSE
        while len(self._paused) > _MOST_PAUSED:
            self._paused.popitem(last=False)

    def is_paused(self, queue_manager: UUID, address: str, now: float) -> bool:
        """Return True if the sessions of a peer are closed at once."""
        return now < self._paused.get((queue_manager, address), now)


def _size_of(acknowledgments: list[OutgoingMessagePosition]) -> int:
    return sum(len(each.packet) + _POSITION_SIZE for each in acknowledgments)


class OrderAckTimers:
    """The Order Ack Send Timers of the sequences whose last message came on a session: [MS-MQQB] 3.1.6.9, S36."""

    def __init__(self, incoming: Incoming) -> None:
        self._incoming = incoming
        # The first of these was started first, and all last as long
        self._expiries: dict[SequenceKey, float] = {}

    def start(self, key: SequenceKey, now: float, opened_at: float) -> bool:
        """Start the timer of an OrderAck when a message has come; return True if the OrderAck is due at once.

        A timer that runs is restarted for a second after the last OrderAck, and then left to run. It cannot go on
        running where the message before came on another session: to start it there each time might never end.
        """
        owner = self._incoming.timers.get(key)
        if owner is not None and now - self._incoming.order_acks_sent.get(key, opened_at) >= _MOST_ORDER_ACK_DELAY:
            if owner is self:
                return False
            owner.stop(key)
            return True
        if owner is not None:
            owner.stop(key)
        self._expiries[key] = now + _ORDER_ACK_TIMEOUT
        self._incoming.timers[key] = self
        return False

    def stop(self, key: SequenceKey) -> None:
        """Stop a timer that runs."""
        del self._expiries[key]
        del self._incoming.timers[key]

    def next_expiry(self) -> float | None:
        """Return when the first one expires; None if none runs."""
        return next(iter(self._expiries.values()), None)

    def take(self, now: float = float("inf")) -> Iterator[SequenceKey]:
        """Stop those that have expired, by default all; the sequences, in order."""
        while (first := next(iter(self._expiries.items()), None)) is not None and first[1] <= now:
            self.stop(first[0])
            yield first[0]
