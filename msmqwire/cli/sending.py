"""Sends messages to one destination, and waits until they are acknowledged, or until their answers come."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import logging
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from msmqwire.cli import signals
from msmqwire.cli.console import CommandError, FewLines
from msmqwire.errors import MsmqWireError, SessionError, counted

if TYPE_CHECKING:
    from msmqwire.cli.message_copies import MessageCopies
    from msmqwire.cli.next_hops import Destination
    from msmqwire.mqqb import UserMessage
    from msmqwire.session import Event, MessageReceived, Store

_MOST_NAMES = 20  # of messages that were lost
#: What may have become of a message that the queue manager has: [MS-MQQB] 3.1.7.15, 5.1.
_NO_ANSWER = (
    "the queue manager has not said what became of it. It may have rejected it, for an unknown queue, a sender without "
    "access or a signature: by default it sends no answer then (SendInsecureNacks)"
)
_LARGEST_ORDINAL = 0xFFFFFFFF
#: The positive acknowledgments that end each wait, at last the one that is asked for.
_AWAITED = {"": (), "reach": ("ack_receive", "ack_reach_queue"), "receive": ("ack_receive",)}


@contextlib.asynccontextmanager
async def sending(
    options: argparse.Namespace, destination: Destination, show: Callable[[int], None] | None = None, **others: Any
) -> AsyncIterator[Sending]:
    """Open a session for the block; ``show`` gets the number of acknowledged messages, ``others`` go to ``Sending``.

    Raises
    ------
    CommandError
        An error of the block or of the session, or the acknowledgment of a message is late; with the number of messages
        that were acknowledged, and of the others.
    """
    # The error of the command has the last of these failures
    logging.getLogger("msmqwire.net").addHandler(logging.NullHandler())
    session = Sending(options, destination, show, **others)
    try:
        async with session.deadline:
            yield session
    except TimeoutError:
        if session.failure is not None:
            raise session.failure from None
        raise CommandError(session.describe(session.describe_lateness())) from None
    except MsmqWireError as error:
        raise CommandError(session.describe(str(error))) from None
    finally:
        await session.close()


@dataclass(slots=True)
class _Sent:
    """A message that is not acknowledged, or not answered."""

    name: str
    time: float
    message: UserMessage | None  # if a copy of it may be written
    is_acknowledged: bool = False
    is_answered: bool = False


class Sending:
    """A session, and its messages without acknowledgment; ``deadline`` ends the wait for the oldest of them.

    Parameters
    ----------
    wait : str
        Whether each message waits for an administration acknowledgment: ``""``, ``"reach"`` or ``"receive"``.
    write : callable, optional
        Stores the messages that the peer sends on the session, before they are acknowledged; without it they are
        disregarded.
    journal, dead_letters : MessageCopies, optional
        Take a copy of each message that is acknowledged, and of each that is not, or that is rejected.
    connection :
        Arguments of ``net.connect``.
    """

    def __init__(
        self,
        options: argparse.Namespace,
        destination: Destination,
        show: Callable[[int], None] | None,
        *,
        wait: str = "",
        write: Callable[[Sequence[MessageReceived]], Awaitable[None]] | None = None,
        journal: MessageCopies | None = None,
        dead_letters: MessageCopies | None = None,
        **connection: Any,
    ) -> None:
        from msmqwire.net import connect

        handler = None if write is None else self._receive
        self.client = connect(destination.hops, options.port, watch=self._watch, handler=handler, **connection)
        self.deadline = asyncio.timeout(None)
        self.acknowledged = 0
        self.answers: Counter[str] = Counter()
        self.queue_manager: Any = None
        self._show = show
        self._timeout = options.timeout
        self._awaited = _AWAITED[wait]
        self._write = write
        self._journal = journal
        self._dead_letters = dead_letters
        # Captured messages of several sources may have the same identifier
        self._sent: dict[int, list[_Sent]] = {}
        self._ordinal = 0
        self._store: Store | None = connection.get("store")
        self._expired: list[str] = []
        self._lines = FewLines("further messages that are rejected are counted")
        self._changed = asyncio.Event()
        self.failure: BaseException | None = None

    # --- Sending ---

    def identity(self) -> dict[str, Any]:
        """Return the fields of a new message that identify it."""
        self._ordinal = self._ordinal % _LARGEST_ORDINAL + 1
        return {
            "source_queue_manager": self.client.identifier,
            "message_id": self._ordinal if self._store is None else self._store.message_ids.take(),
            "sent_time": int(time.time()),
        }

    async def open(self) -> str:
        """Connect, and return the address of this computer on the connection."""
        self.deadline.reschedule(asyncio.get_running_loop().time() + self._timeout)
        address = await self.client.open()
        self._reschedule()
        return address

    async def send(self, message: UserMessage, name: str = "") -> None:
        """Send a message, with its name in messages; ``finish`` waits for the acknowledgment."""
        message_id = await self.client.send(message)
        has_copies = self._journal is not None or self._dead_letters is not None
        now = asyncio.get_running_loop().time()
        sent = _Sent(name or f"message {message_id:,}", now, message if has_copies else None)
        self._sent.setdefault(message_id, []).append(sent)
        self._reschedule()

    async def finish(self) -> None:
        """Wait until all messages are acknowledged, and answered where an answer is awaited.

        Raises
        ------
        MsmqWireError
            The session was refused, or has ended before the answers; or messages have expired.
        """
        await self.client.acknowledged()
        while self._sent:
            if not self.client.is_open:
                raise SessionError(f"the session ended before the answers: {self.client.failure}")
            self._changed.clear()
            await self._changed.wait()

    async def close(self) -> None:
        """Close the session; the messages that are not acknowledged are dead letters."""
        await self.client.close()
        left = [each for found in self._sent.values() for each in found if not each.is_acknowledged]
        self._copy(self._dead_letters, left, "unacknowledged")

    # --- What comes back ---

    def _watch(self, event: Event) -> None:
        from msmqwire.session import MessageExpired, MessagesAcknowledged, SessionOpened

        self._changed.set()
        if isinstance(event, SessionOpened):
            self.queue_manager = event.remote_queue_manager
        elif isinstance(event, MessageExpired):
            # No acknowledgment is awaited: the client raises an error at its end
            sent = self._forget(event.message_id)
            self._expired.append(sent.name)
            with self._failing():
                self._copy(self._dead_letters, [sent], "nack_reach_queue_timeout")
            self._reschedule()
        elif isinstance(event, MessagesAcknowledged):
            self.acknowledged += len(event.message_ids)
            with self._failing():
                self._copy(self._journal, [self._acknowledge(message_id) for message_id in event.message_ids])
            if self._show is not None:
                self._show(self.acknowledged)
            self._reschedule()

    def _acknowledge(self, message_id: int) -> _Sent:
        sent = self._sent[message_id][0]
        sent.is_acknowledged = True
        if sent.is_answered or not self._awaited:
            self._forget(message_id)
        return sent

    def _forget(self, message_id: int) -> _Sent:
        found = self._sent[message_id]
        sent = found.pop(0)
        if not found:
            del self._sent[message_id]
        return sent

    def _copy(self, copies: MessageCopies | None, sent: Sequence[_Sent], reason: str = "") -> None:
        if copies is not None:
            copies.write([each.message for each in sent if each.message is not None], reason)

    async def _receive(self, received: Sequence[MessageReceived]) -> None:
        """Store what the peer sent before it is acknowledged, and find the messages that it answers."""
        assert self._write is not None
        with self._failing():
            await self._write(received)
            for each in received:
                self._take_answer(each.message)
            self._changed.set()

    @contextlib.contextmanager
    def _failing(self) -> Iterator[None]:
        """Make an error of the block the error of the command, also where asyncio would only log it."""
        try:
            yield
        except (OSError, MsmqWireError, signals.Stopped) as error:
            self.failure = error
            with contextlib.suppress(RuntimeError):  # the wait has ended
                self.deadline.reschedule(asyncio.get_running_loop().time())
            raise

    def _take_answer(self, message: UserMessage) -> None:
        from msmqwire.mqqb.message.classes import MEANINGS

        name = message.message_class_name or ""
        if not name.startswith(("ack_", "nack_")) or message.correlation_guid != self.client.identifier:
            return
        self.answers[name] += 1
        message_id = message.correlation_ordinal
        sent = next(iter(self._sent.get(message_id, ())), None)
        is_negative = name.startswith("nack_")
        if is_negative:
            self._lines.say(f"{sent.name if sent else f'message {message_id:,}'}: {name}: {MEANINGS[name]}")
        if sent is None or sent.is_answered:
            return
        if is_negative:
            self._copy(self._dead_letters, [sent], name)
        sent.is_answered = is_negative or name in self._awaited
        if sent.is_answered and sent.is_acknowledged:
            self._forget(message_id)
            self._reschedule()

    # --- The wait, and its end ---

    def _reschedule(self) -> None:
        if self.failure is not None:
            return
        oldest = next(iter(self._sent.values()), None)
        with contextlib.suppress(RuntimeError):  # the wait has ended
            self.deadline.reschedule(None if oldest is None else oldest[0].time + self._timeout)

    @property
    def rejected(self) -> int:
        """The number of negative acknowledgments."""
        return sum(number for name, number in self.answers.items() if name.startswith("nack_"))

    def describe_lateness(self) -> str:
        """Return what did not come in time, and what keeps it, as far as is known."""
        oldest = next(iter(self._sent.values()), None)
        is_received = oldest is not None and oldest[0].is_acknowledged
        missing = f"no {self._awaited[-1]}" if is_received else "no acknowledgment"
        has_reached = self._awaited[-1:] == ("ack_receive",) and self.answers["ack_reach_queue"]
        if is_received and self.client.is_open and not has_reached:
            return f"{missing} within {self._timeout:g} s: {_NO_ANSWER}"
        if not self.client.is_open:
            state = self.client.failure or "the queue manager does not answer"
        else:
            state = "the session is open" + (f"; before: {self.client.failure}" if self.client.failure else "")
        return f"{missing} within {self._timeout:g} s: {state}"

    def describe(self, error: str) -> str:
        """Return the error, and how many messages it leaves."""
        left = [each for found in self._sent.values() for each in found]
        lost = [*self._expired, *(each.name for each in left if not each.is_acknowledged)]
        if not self.acknowledged and len(lost) <= 1:
            return error
        parts = [f"{error}; {self.describe_outcome()}", f"{_numbered(lost)} without an acknowledgment"]
        if unanswered := [each.name for each in left if each.is_acknowledged]:
            parts.append(f"{_numbered(unanswered)} without an answer")
        return ", ".join(parts)

    def describe_outcome(self) -> str:
        """Return what is known of the messages."""
        by = f"queue manager {self.queue_manager}" if self.queue_manager else "the queue manager"
        parts = [f"{counted(self.acknowledged, 'message')} received by {by}"]
        for name, text in (("ack_reach_queue", "reached the queue"), ("ack_receive", "received from it")):
            if self.answers[name] or self._awaited[-1:] == (name,):
                parts.append(f"{self.answers[name]:,} {text}")
        if self.rejected or self._awaited:
            parts.append(f"{self.rejected:,} rejected")
        return ", ".join(parts)


def _numbered(names: Sequence[str]) -> str:
    """Return how many messages, and which."""
    shown = [*names[:_MOST_NAMES], *([f"{len(names) - _MOST_NAMES:,} more"] if len(names) > _MOST_NAMES else [])]
    return f"{len(names):,}" + (f" ({', '.join(shown)})" if names else "")
