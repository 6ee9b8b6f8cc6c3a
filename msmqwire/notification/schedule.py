"""When a queue manager processes change notifications: after a delay, and not one by one when too many come.

That is what Windows XP and later do so that notifications cannot be used to keep a queue manager, and the directory
that it reads, busy ([MS-MQCN] note <3>). Time is an argument: seconds of any clock that does not go back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from msmqwire.formatname import PrivateName
from msmqwire.notification.audit import VERSION_2, Overflowed, Record
from msmqwire.notification.envelope import NOTIFY_QUEUE, Envelope
from msmqwire.notification.processor import NotificationProcessor, Profile

__all__ = ["INTERVAL", "SHORT_DELAY", "WINDOW", "Dequeue", "NotificationServer", "QueueOpening"]

#: Seconds between two runs, at least.
INTERVAL = 900
#: Seconds that messages wait after a long silence.
SHORT_DELAY = 60
#: So many messages while others wait, and all are dropped for a refresh.
WINDOW = 100


#: Takes a message from an open queue, and waits for one until the time given (None: for ever); None if none came.
Dequeue = Callable[[float | None], tuple[bytes, Envelope] | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueOpening:
    """How the notification queue is to be opened: the arguments of Open Queue ([MS-MQCN] 3.2.3)."""

    format_name: PrivateName
    required_access: Literal["receive"] = "receive"
    shared_mode: Literal["deny_none"] = "deny_none"


class NotificationServer:
    r"""A processor behind the delay of its profile.

    It holds at most ``WINDOW`` messages, however many come. Whoever owns the clock calls :meth:`tick` when
    ``deadline`` has come.

    Parameters
    ----------
    processor : NotificationProcessor
        Its profile says whether there is a delay.
    count_first : bool
        Count the message that starts the timer among the ``WINDOW``. The words of the note do not.

    Attributes
    ----------
    deadline : float or None
        When what has been received will be processed; None if nothing waits.

    Examples
    --------
    >>> from uuid import UUID
    >>> from msmqwire.directory import MemoryDirectory, QueueManager
    >>> here = QueueManager(identifier=UUID(int=1), computer_name="HERE")
    >>> server = NotificationServer(NotificationProcessor(here, directory=lambda server: MemoryDirectory([])))
    >>> server.receive(b"\3\1", now=1000.0), server.deadline
    ([], 1060.0)
    >>> [record.rule.value for record in server.tick(1060.0)], server.deadline
    (['version'], None)
    """

    def __init__(self, processor: NotificationProcessor, *, count_first: bool = False) -> None:
        self.processor = processor
        self.deadline: float | None = None
        self._count_first = count_first
        self._last: float | None = None
        self._count = 0
        self._pending: list[tuple[bytes, Envelope]] = []

    @property
    def overflowed(self) -> bool:
        """Whether what waits has been dropped, and queues will be refreshed instead."""
        return self._count >= WINDOW

    def receive(
        self,
        body: bytes | bytearray | memoryview,
        envelope: Envelope = Envelope(),  # noqa: B008
        *,
        now: float,
    ) -> list[Record]:
        """A message came from the notification queue; what was due before it, or at once, is processed."""
        if self.processor.profile is Profile.NT_2000:
            return self.processor.process(body, envelope)
        records = self.tick(now)
        if self.deadline is None:
            self.deadline = now + self._delay(now)
            self._count = int(self._count_first)
        else:
            self._count += 1
        if self.overflowed:
            self._pending.clear()
        else:
            self._pending.append((bytes(body), envelope))
        return records

    def tick(self, now: float) -> list[Record]:
        """It is ``now``: process what has waited long enough."""
        if self.deadline is None or now < self.deadline:
            return []
        pending, overflowed, count = self._pending, self.overflowed, self._count
        self._pending, self._count, self.deadline, self._last = [], 0, None, now
        if not overflowed:
            return [record for body, envelope in pending for record in self.processor.process(body, envelope)]
        dropped = count if self._count_first else count + 1
        note = Overflowed(message=None, index=None, section=VERSION_2, dropped=dropped)
        return [note, *self.processor.refresh()]

    def run(self, open_queue: Callable[[QueueOpening], Dequeue], clock: Callable[[], float]) -> Iterator[Record]:
        """Open the notification queue, then take messages from it for ever ([MS-MQCN] 3.2.3).

        Close the iterator to end it; what the two callables raise ends it too.
        """
        identifier = self.processor.queue_manager.identifier
        dequeue = open_queue(QueueOpening(format_name=PrivateName(identifier, NOTIFY_QUEUE)))
        while True:
            message = dequeue(self.deadline)
            if message is None:
                yield from self.tick(clock())
            else:
                yield from self.receive(*message, now=clock())

    def _delay(self, now: float) -> float:
        if self._last is None:
            return SHORT_DELAY
        elapsed = max(now - self._last, 0)
        return SHORT_DELAY if elapsed > INTERVAL - SHORT_DELAY else INTERVAL - elapsed
