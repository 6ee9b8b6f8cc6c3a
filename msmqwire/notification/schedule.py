"""Delays change notifications as Windows XP and later do, and replaces too many of them by a refresh.

The delay limits the load that notifications can put on a queue manager and on the directory that it reads ([MS-MQCN]
note <3>). Time is an argument: seconds of a monotonic clock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from msmqwire.directory.offline import DIRECTORY_ONLINE_SECONDS
from msmqwire.formatname import PrivateName
from msmqwire.notification.audit import VERSION_2, Overflowed, Record
from msmqwire.notification.envelope import NOTIFY_QUEUE, Envelope
from msmqwire.notification.processor import NotificationProcessor, Profile

__all__ = ["INTERVAL", "RETRY", "SHORT_DELAY", "WINDOW", "Dequeue", "NotificationServer", "QueueOpening"]

#: Least number of seconds between two runs.
INTERVAL = 900
#: Seconds that messages wait if the last run was long ago.
SHORT_DELAY = 60
#: Seconds until a refresh is tried again that the directory failed.
RETRY = DIRECTORY_ONLINE_SECONDS
#: If this many messages arrive while others wait, all are dropped and the queues are refreshed.
WINDOW = 100


#: Waits for a message of an open queue until the given time (None: forever) and returns it; None if none came.
Dequeue = Callable[[float | None], tuple[bytes, Envelope] | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueOpening:
    """The arguments of Open Queue for the notify queue ([MS-MQCN] 3.2.3)."""

    format_name: PrivateName
    required_access: Literal["receive"] = "receive"
    shared_mode: Literal["deny_none"] = "deny_none"


class NotificationServer:
    r"""Passes messages to a processor after the delay of its profile.

    It stores at most ``WINDOW`` messages. The caller must call :meth:`tick` at ``deadline``.

    Parameters
    ----------
    processor : NotificationProcessor
        Its profile determines whether there is a delay.

    Attributes
    ----------
    deadline : float or None
        When the waiting messages will be processed; None if there are none.

    Examples
    --------
    >>> from uuid import UUID
    >>> from msmqwire.directory import MemoryDirectory, QueueManager
    >>> here = QueueManager(identifier=UUID(int=1), computer_name="HERE")
    >>> server = NotificationServer(NotificationProcessor(here, directory=MemoryDirectory([])))
    >>> server.receive(b"\3\1", now=1000.0), server.deadline
    ([], 1060.0)
    >>> [record.rule.value for record in server.tick(1060.0)], server.deadline
    (['version'], None)
    """

    def __init__(self, processor: NotificationProcessor) -> None:
        self.processor = processor
        self.deadline: float | None = None
        self._last: float | None = None
        self._count = 0  # messages since the timer was started
        self._dropped = 0  # messages that no record of a refresh has counted
        self._pending: list[tuple[bytes, Envelope | None]] = []
        self._records: list[Record] = []

    @property
    def overflowed(self) -> bool:
        """True if the waiting messages have been dropped, to refresh the queues at ``deadline``."""
        # The message that starts the timer is one more: the window is for those that arrive while it waits
        return self._count > WINDOW

    def receive(
        self,
        body: bytes | bytearray | memoryview,
        envelope: Envelope | None = None,
        *,
        now: float,
    ) -> list[Record]:
        """A message arrived in the notify queue; process the messages that are due."""
        if self.processor.profile is Profile.NT_2000:
            return self.processor.process(body, envelope)
        try:
            return self.tick(now)
        finally:
            self._add(bytes(body), envelope, now)

    def _add(self, body: bytes, envelope: Envelope | None, now: float) -> None:
        if self.deadline is None:
            self.deadline = now + self._delay(now)
        self._count += 1
        if self.overflowed:
            self._dropped += len(self._pending) + 1
            self._pending.clear()
        else:
            self._pending.append((body, envelope))

    def tick(self, now: float) -> list[Record]:
        """The time is ``now``: process the messages that are due.

        If the verifier or the directory raises another exception than DirectoryError, the messages after the one that
        failed keep waiting, and the records of those before it are returned by the next call. A refresh stays due until
        the directory itself has answered for every queue: after an exception it is due at once, after
        DirectoryNotConnected or an answer from local data in ``RETRY`` seconds. Messages that arrive in the meantime
        are dropped as before.
        """
        if self.deadline is None or now < self.deadline:
            return []
        if self.overflowed:
            self._records += self._refresh(now)
        else:
            while self._pending:
                self._records += self.processor.process(*self._pending.pop(0))
            self._end(now)
        records, self._records = self._records, []
        return records

    def _refresh(self, now: float) -> list[Record]:
        """Read all queues in place of the messages that were dropped."""
        unreached = self.processor.unreached
        refreshed = self.processor.refresh()
        dropped, self._dropped = self._dropped, 0
        note = Overflowed(message=None, index=None, section=VERSION_2, dropped=dropped)
        # An invalid object is an answer: a later one would not be better
        if self.processor.unreached > unreached:
            self.deadline = now + RETRY
        else:
            self._end(now)
        return [note, *refreshed] if dropped else refreshed

    def _end(self, now: float) -> None:
        """All that waited is done."""
        self._pending, self._count, self.deadline, self._last = [], 0, None, now

    def run(self, open_queue: Callable[[QueueOpening], Dequeue], clock: Callable[[], float]) -> Iterator[Record]:
        """Open the notify queue and process its messages until the iterator is closed ([MS-MQCN] 3.2.3).

        Exceptions of the two callables end it as well.
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
        return SHORT_DELAY if self._last is None else max(SHORT_DELAY, INTERVAL - max(now - self._last, 0))
