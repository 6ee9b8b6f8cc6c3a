"""The final queue manager of transactional sequences, as the rulings S30 to S43 describe it: slow, and in memory.

It knows nothing of sessions but their beginnings and ends: messages and times go in, and what is delivered, rejected
and acknowledged comes out.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import NamedTuple

from tests.reference.mqqb_session_packets import INFINITE, UserMessage

ORDER_ACK_TIMEOUT = 0.5  # 3.1.2.7
RESTARTED_FOR = 1.0  # S36
ACK_RECEIVE, BAD_DST_Q, EXCEED_QUOTA, NOT_TRANSACTIONAL_Q, RECEIVE_TIMEOUT = 0x4000, 0x8000, 0x8003, 0x8009, 0xC002
FA, JN, JP = 2, 0x100, 0x200


class Key(NamedTuple):
    """What has a state: S30."""

    source: bytes
    queue: str


@dataclass
class State:
    """S30: the last message that was accepted, and what was not accepted since."""

    id: int = 0
    n: int = 0
    rejects: int = 0
    gap: tuple[int, int] | None = None


class OrderAck(NamedTuple):
    """S37."""

    source: bytes
    id: int
    n: int


class TransactionalReceiver:
    """One queue manager over all its sessions and processes.

    Attributes
    ----------
    states : dict
    delivered : list of UserMessage
    final : list of tuple
        Class and MessageID of each FinalAck, in the order of their creation.
    """

    def __init__(self, wall_time: int, transactional: Collection[str], plain: Collection[str], quota: int) -> None:
        self.wall_time = wall_time
        self.transactional = {each.upper() for each in transactional}
        self.plain = {each.upper() for each in plain}
        self.quota = quota
        self.states: dict[Key, State] = {}
        self.inbox: list[UserMessage] = []
        self.delivered: list[UserMessage] = []
        self.final: list[tuple[int, int]] = []
        self.timers: dict[Key, float] = {}
        self.last_sent: dict[Key, float] = {}
        self.opened_at = 0.0

    # --- Messages ---

    def receive(self, message: UserMessage, now: float) -> None:
        """A message that is well-formed, committed at once."""
        assert message.tx_sequence_number is not None
        assert message.tx_previous is not None
        key = Key(message.source_queue_manager, message.queue.upper())
        state = self.states.get(key, State())
        ordinal, time_stamp = message.tx_sequence_id
        id_, n, previous = time_stamp * 2**32 + ordinal, message.tx_sequence_number, message.tx_previous
        if (id_ == state.id and n > state.n and previous <= state.n) or (id_ > state.id and previous == 0):  # S32
            if message.sent_time + message.time_to_reach_queue < self.wall_time and not is_infinite(message):
                return  # S41
            self.states[key] = State(id_, n)
            self.schedule(key, now)
            self.decide(message, key.queue)
            return
        self.states[key] = state
        state.rejects += 1
        if id_ == state.id and n <= state.n:
            self.schedule(key, now)  # a duplicate: S35
        elif id_ >= state.id:
            state.gap = id_, previous
            if state.n and id_ == state.id:
                self.schedule(key, now)

    def decide(self, message: UserMessage, queue: str) -> None:
        """S40, after the number was taken."""
        if queue not in self.transactional | self.plain:
            self.final.append((BAD_DST_Q, message.message_id))
        elif queue in self.plain:
            self.final.append((NOT_TRANSACTIONAL_Q, message.message_id))
        elif sum(len(each.pack()) for each in self.inbox) + len(message.pack()) > self.quota:
            self.final.append((EXCEED_QUOTA, message.message_id))
        elif message.time_to_be_received == 0:
            self.remove(message, RECEIVE_TIMEOUT)
        else:
            self.inbox.append(message)

    def deliver(self) -> None:
        """The application takes what is in the inbox."""
        for message in self.inbox:
            self.delivered.append(message)
            self.remove(message, ACK_RECEIVE)
        self.inbox = []

    def remove(self, message: UserMessage, message_class: int) -> None:
        """S42."""
        if message.journaling & (JN | JP) or message.tx_flags & FA:
            self.final.append((message_class, message.message_id))

    # --- OrderAcks ---

    def schedule(self, key: Key, now: float) -> None:
        """S36: a timer that runs is restarted for a second after the last OrderAck, and then left to run."""
        if key not in self.timers or now - self.last_sent.get(key, self.opened_at) < RESTARTED_FOR:
            self.timers[key] = now + ORDER_ACK_TIMEOUT

    def advance(self, now: float) -> list[tuple[float, OrderAck]]:
        """What is sent until a time: when, and what."""
        sent = []
        for key, at in sorted(self.timers.items(), key=lambda each: each[1]):
            if at <= now:
                del self.timers[key]
                self.last_sent[key] = at
                sent.append((at, OrderAck(key.source, self.states[key].id, self.states[key].n)))
        return sent

    def open(self, next_hop: bytes, now: float) -> list[OrderAck]:
        """A session after another one that was lost: it sends at once what that owed to the next hop, and no more."""
        self.opened_at = now
        due = [key for key in self.timers if key.source == next_hop]
        self.timers.clear()
        self.last_sent |= dict.fromkeys(due, now)
        return [OrderAck(key.source, self.states[key].id, self.states[key].n) for key in due]

    def end(self) -> None:
        """The process ends: what is on disk stays."""
        self.timers.clear()
        self.last_sent.clear()


def is_infinite(message: UserMessage) -> bool:
    return message.time_to_reach_queue == INFINITE
