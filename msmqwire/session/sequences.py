"""The sequences of transactional messages that a session sends: [MS-MQQB] 3.1.5.6, 3.1.6.5, S27, S28, S46 to S50.

The messages are in an ``Outbox``; what is here says which of them is sent next, and when all are sent again.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple

from msmqwire.session.outbox import Outbox, OutgoingRow
from msmqwire.session.outgoing import OutgoingMessagePosition

RESEND_INTERVALS = (30.0,) * 3 + (300.0,) * 3 + (1800.0,) * 3 + (21_600.0,)
"""Seconds of the Transactional Ack Wait Timer, one after the other (S48): [MS-MQQB] note <24>."""

_SWEEP = 60.0  # between searches for messages whose time is over (S50)
_U32 = struct.Struct("<I")


class SequenceStatus(StrEnum):
    """Where the messages of a queue are."""

    CLOSED = "CLOSED"
    """All are acknowledged, and there is no session."""
    WAITING = "WAITING"
    """Some are not acknowledged, and there is no session."""
    IDLE = "IDLE"
    """All are acknowledged, and there is a session."""
    SENDING = "SENDING"
    """Some are not sent on the session."""
    SENT = "SENT"
    """All are sent on the session, and not all are acknowledged."""
    STOPPED = "STOPPED"
    """The receiver acknowledged what was not sent: nothing more is sent (S45, S52)."""


class SequenceEvent(StrEnum):
    """What happens to a sequence."""

    COMMITTED = "committed"
    """There are new messages."""
    SESSION_OPENED = "session_opened"
    SESSION_LOST = "session_lost"
    ALL_SENT = "all_sent"
    ACKNOWLEDGED = "acknowledged"
    """An OrderAck has raised LastAck, and not all messages are acknowledged."""
    ALL_ACKNOWLEDGED = "all_acknowledged"
    """No message is left: acknowledged, expired, or finished by a FinalAck."""
    REMOVED = "removed"
    """Messages have expired, or were finished, before others."""
    RESEND_EXPIRED = "resend_expired"
    REFUTED = "refuted"
    """An OrderAck has a number that was not sent."""


class SequenceTransition(NamedTuple):
    """In one of ``states``, on ``event``, call ``method`` of the sequence, if there is one, and enter ``target``.

    ``decision`` is the one of docs/conformance.md that demands it.
    """

    decision: str
    states: tuple[SequenceStatus, ...]
    event: SequenceEvent
    target: SequenceStatus | None
    method: str = ""


_CLOSED, _WAITING, _IDLE = SequenceStatus.CLOSED, SequenceStatus.WAITING, SequenceStatus.IDLE
_SENDING, _SENT, _STOPPED = SequenceStatus.SENDING, SequenceStatus.SENT, SequenceStatus.STOPPED

SEQUENCE_TRANSITIONS = (
    SequenceTransition("S27", (_CLOSED, _WAITING), SequenceEvent.COMMITTED, _WAITING),
    SequenceTransition("S27", (_IDLE, _SENDING, _SENT), SequenceEvent.COMMITTED, _SENDING),
    SequenceTransition("S48", (_CLOSED,), SequenceEvent.SESSION_OPENED, _IDLE),
    SequenceTransition("S48", (_WAITING,), SequenceEvent.SESSION_OPENED, _SENDING, "_send_all"),
    SequenceTransition("S48", (_IDLE,), SequenceEvent.SESSION_LOST, _CLOSED),
    SequenceTransition("S48", (_SENDING, _SENT), SequenceEvent.SESSION_LOST, _WAITING, "_stop_timer"),
    SequenceTransition("S47", (_SENDING,), SequenceEvent.ALL_SENT, _SENT),
    SequenceTransition("S48", (_SENDING, _SENT), SequenceEvent.ACKNOWLEDGED, None, "_restart_timer"),
    SequenceTransition("S45", (_WAITING,), SequenceEvent.ACKNOWLEDGED, None),
    SequenceTransition("S48", (_SENDING, _SENT), SequenceEvent.ALL_ACKNOWLEDGED, _IDLE, "_stop_timer"),
    SequenceTransition("S45", (_WAITING,), SequenceEvent.ALL_ACKNOWLEDGED, _CLOSED),
    SequenceTransition("S50", (_WAITING,), SequenceEvent.REMOVED, None),
    SequenceTransition("S50", (_SENDING, _SENT), SequenceEvent.REMOVED, _SENDING, "_send_after_removed"),
    SequenceTransition("S48", (_SENDING, _SENT), SequenceEvent.RESEND_EXPIRED, _SENDING, "_send_again"),
    SequenceTransition(
        "S45", (_CLOSED, _WAITING, _IDLE, _SENDING, _SENT), SequenceEvent.REFUTED, _STOPPED, "_stop_timer"
    ),
)
"""Every other event leaves a sequence as it is."""

SEQUENCE_TRANSITION_OF = {(state, each.event): each for each in SEQUENCE_TRANSITIONS for state in each.states}


class OutgoingSequence:
    """The messages of one queue on one session at a time.

    Attributes
    ----------
    queue : str
        As ``SequenceRow`` has it.
    state : SequenceStatus
    deadline : float or None
        When the resend timer expires, by the clock of the session.
    """

    def __init__(self, outbox: Outbox, queue: str) -> None:
        self.queue = queue
        self.state = SequenceStatus.CLOSED
        self.deadline: float | None = None
        self._outbox = outbox
        self._sequence_id = self._next_number = self._last_ack = 0
        self._index = self._before_removed = 0
        self._version = -1
        self._sent = 0  # the last that was sent on this session, since all were marked unsent
        self._page: deque[OutgoingRow] = deque()
        self._highest = (0, 0)
        self.refresh(0.0)

    def handle(self, event: SequenceEvent, now: float) -> None:
        """Something has happened at a time of the clock of the session."""
        transition = SEQUENCE_TRANSITION_OF.get((self.state, event))
        if transition is None:
            return
        if transition.method:
            getattr(self, transition.method)(now)
        self.state = transition.target or self.state

    def refresh(self, now: float) -> None:
        """Read the outbox, which has changed."""
        row = None if self._version == self._outbox.version else self._outbox.sequence(self.queue)
        self._version = self._outbox.version
        if row is None:
            return
        is_new = row.sequence_id != self._sequence_id
        if is_new:
            self._sequence_id, self._next_number, self._last_ack, self._sent = row.sequence_id, 1, 0, 0
            self._page.clear()
        is_committed, is_acknowledged = row.next_number > self._next_number, row.last_ack > self._last_ack
        removed = self._outbox.removed.pop(self.queue, None)
        self._next_number, self._last_ack = row.next_number, row.last_ack
        self._sent = max(self._sent, row.last_ack)
        if row.stopped:
            self.handle(SequenceEvent.REFUTED, now)
        elif not self._outbox.has_messages(self.queue):
            self._page.clear()
            self.handle(SequenceEvent.ALL_ACKNOWLEDGED, now)
        else:
            if is_acknowledged:
                self.handle(SequenceEvent.ACKNOWLEDGED, now)
            if removed is not None:
                self._page.clear()
                self._before_removed = max(row.last_ack, removed - 1)
                self.handle(SequenceEvent.REMOVED, now)
            if is_committed:
                self.handle(SequenceEvent.COMMITTED, now)

    def next_message(self, now: float) -> OutgoingMessagePosition | None:
        """Return the next message to send on the session, lowest number first; None if there is none."""
        if self.state is not SequenceStatus.SENDING:
            return None
        while self._page and self._page[0].number <= self._sent:
            self._page.popleft()
        if not self._page:
            self._page.extend(self._outbox.page(self.queue, self._sent))
        if not self._page:
            self.handle(SequenceEvent.ALL_SENT, now)
            return None
        row = self._page[0]
        if row.expires is not None and int(self._outbox.store.wall_clock()) > row.expires:
            return None  # its sequence goes on when it is removed
        self._page.popleft()
        self._sent = row.number
        self._highest = max(self._highest, (self._sequence_id, row.number))
        if self.deadline is None:
            self.deadline = now + RESEND_INTERVALS[self._index]
        packet = bytearray(row.packet)
        packet[row.previous_at : row.previous_at + _U32.size] = _U32.pack(row.previous)
        position = OutgoingMessagePosition((0, 0), row.message_id, bytes(packet), True, float("inf"))
        position.is_in_outbox = True
        return position

    @property
    def has_expired_message(self) -> bool:
        """Whether the next message has expired, so that others wait until it is removed."""
        wall = int(self._outbox.store.wall_clock())
        return bool(self._page) and self._page[0].expires is not None and wall > self._page[0].expires

    def was_sent(self, number: int) -> bool:
        """Return True if this process has sent a message."""
        return (self._sequence_id, number) <= self._highest

    # --- Methods of transitions ---

    def _send_all(self, now: float) -> None:
        self._index = 0
        self._send_unacknowledged(now)

    def _send_unacknowledged(self, now: float) -> None:
        self._sent = self._last_ack
        self._page.clear()

    def _send_after_removed(self, now: float) -> None:
        """Send what follows removed messages again: it names another number before it now (S28)."""
        self._sent = min(self._sent, self._before_removed)

    def _send_again(self, now: float) -> None:
        self._index = min(self._index + 1, len(RESEND_INTERVALS) - 1)
        self._send_unacknowledged(now)
        self.deadline = now + RESEND_INTERVALS[self._index]

    def _restart_timer(self, now: float) -> None:
        self._index = 0
        # Without messages that are sent there is nothing to wait for
        self.deadline = now + RESEND_INTERVALS[0] if self._sent > self._last_ack else None

    def _stop_timer(self, now: float) -> None:
        self._index = 0
        self.deadline = None


class OutgoingSequences:
    """The sequences that one initiator sends, and the search for messages whose time is over.

    Parameters
    ----------
    outbox : Outbox
    queues : iterable of str
        The names of queues whose messages wait; others are added by ``add``.
    """

    def __init__(self, outbox: Outbox, queues: Iterable[str] = ()) -> None:
        self.outbox = outbox
        self._sequences: dict[str, OutgoingSequence] = {}
        self._is_open = False
        self._sweep_at: float | None = None
        for queue in queues:
            self.add(queue, 0.0)

    @property
    def queues(self) -> list[str]:
        """The queues."""
        return [*self._sequences]

    @property
    def has_messages(self) -> bool:
        """Whether a message is to be sent or acknowledged."""
        waiting = (SequenceStatus.WAITING, SequenceStatus.SENDING, SequenceStatus.SENT)
        return any(each.state in waiting for each in self._sequences.values())

    def add(self, queue: str, now: float) -> None:
        """There are messages to a queue."""
        if queue not in self._sequences:
            self._sequences[queue] = made = OutgoingSequence(self.outbox, queue)
            if self._is_open:
                made.handle(SequenceEvent.SESSION_OPENED, now)

    def refresh(self, now: float) -> None:
        """Read the outbox, which has changed."""
        for each in self._sequences.values():
            each.refresh(now)

    def session_opened(self, now: float) -> None:
        """Send all that is not acknowledged on the new session."""
        self._is_open = True
        self._handle(SequenceEvent.SESSION_OPENED, now)

    def session_lost(self, now: float) -> None:
        """There is no session."""
        self._is_open = False
        self._handle(SequenceEvent.SESSION_LOST, now)

    def _handle(self, event: SequenceEvent, now: float) -> None:
        for each in self._sequences.values():
            each.handle(event, now)

    def next_message(self, now: float) -> OutgoingMessagePosition | None:
        """Return the next message of the first sequence that has one."""
        for each in self._sequences.values():
            position = each.next_message(now)
            if position is None and each.has_expired_message:
                self._expire(now)
                position = each.next_message(now)
            if position is not None:
                return position
        return None

    def _expire(self, now: float) -> None:
        """Remove a page of messages whose time is over; the next page follows at once."""
        has_found = self.outbox.expire(self._was_sent)
        self._sweep_at = now + (0 if has_found else _SWEEP)
        self.refresh(now)

    def _was_sent(self, queue: str, number: int) -> bool:
        """Return True if a sequence was sent; one of another session counts as sent."""
        return queue not in self._sequences or self._sequences[queue].was_sent(number)

    def next_deadline(self, now: float) -> float | None:
        """Return when ``handle_deadline`` has to be called."""
        if self._sweep_at is None:
            self._sweep_at = now
        deadlines = [each.deadline for each in self._sequences.values() if each.deadline is not None]
        return min([self._sweep_at, *deadlines])

    def handle_deadline(self, now: float) -> None:
        """Send again what was not acknowledged in time (S48), and search for what has expired, each minute (S50)."""
        for each in self._sequences.values():
            if each.deadline is not None and each.deadline <= now:
                each.handle(SequenceEvent.RESEND_EXPIRED, now)
        if self._sweep_at is not None and self._sweep_at <= now:
            self._expire(now)
