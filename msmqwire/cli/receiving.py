"""Stores the messages that ``receive`` receives, and says which sessions and messages were not accepted."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Sequence
from operator import attrgetter
from typing import TYPE_CHECKING

from msmqwire.cli import signals
from msmqwire.cli.console import CommandError, FewLines, say
from msmqwire.cli.message_files import MessageOutput
from msmqwire.cli.notified_queues import NotifiedQueues
from msmqwire.errors import MsmqWireError, counted

if TYPE_CHECKING:
    from msmqwire.session import Event, MessageDisregarded, MessageReceived

_MANY_REJECTS = 10  # S52


class Receiver:
    """What happens on all sessions.

    Parameters
    ----------
    count : int or None
        The messages after which the command ends.
    output : MessageOutput or NotifiedQueues
        Takes the messages.
    store : str or None
        The folder of the store of the command.

    Attributes
    ----------
    ended : asyncio.Future
        Done when the command is to end; it has the error that ends it.
    """

    def __init__(self, count: int | None, output: MessageOutput | NotifiedQueues, store: str | None) -> None:
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._received = 0
        self._count = count
        self._output = output
        self._store = store
        if isinstance(output, NotifiedQueues):
            output.failed = self._fail
        self._disregarded: Counter[str] = Counter()
        self._sessions = FewLines("further sessions that are closed are not reported")
        self._messages = FewLines()
        self._ended_for_memory = self._unanswered = 0

    async def store(self, received: Sequence[MessageReceived]) -> None:
        """Write messages; an error ends the command, and they are not acknowledged."""
        try:
            # A store has them in this order, across calls
            await self._output.write(received if self._store is not None else sorted(received, key=attrgetter("turn")))
        except (OSError, MsmqWireError, signals.Stopped) as error:
            self._fail(error)
            raise CommandError("the messages are not stored") from error
        self._received += len(received)
        if self._received == self._count and not self.ended.done():
            self.ended.set_result(None)

    def _fail(self, error: BaseException) -> None:
        """End the command with an error."""
        if not self.ended.done():
            self.ended.set_exception(error)

    def watch(self, event: Event, address: str) -> None:
        """Report sessions and messages that were not accepted."""
        from msmqwire.session import CloseReason, MessageDisregarded, MessageNotAnswered, SessionClosed

        expected = (CloseReason.LOCAL, CloseReason.CONNECTION_LOST, CloseReason.IDLE, CloseReason.PAUSED)
        match event:
            case SessionClosed(reason=CloseReason.MEMORY):
                self._ended_for_memory += 1
                number = self._ended_for_memory
                # No other reports take the place of these, and their number grows with its logarithm
                if number < 10 or not number % 10 ** (len(str(number)) - 1):
                    say(f"{address}: the session is closed: {event.detail}")
            case SessionClosed() if event.reason not in expected:
                self._sessions.say(f"{address}: the session is closed: {event.detail}")
            case MessageDisregarded():
                self._disregarded[event.reason] += 1
                if found := self._why(event, address):
                    text, *key = found
                    self._messages.say(f"{address}: {text}", tuple(key))
            case MessageNotAnswered():
                self._unanswered += 1

    async def finish(self, quiet: bool) -> None:
        """Apply notifications that wait; say how many messages were written and how many not, by reason."""
        if isinstance(self._output, NotifiedQueues):
            await self._output.finish()
        if quiet:
            return
        parts = [f"{counted(self._received, 'message')} received"]
        parts += [f"{number:,} {reason.replace('_', ' ')}" for reason, number in self._disregarded.items()]
        unanswered = f"; {counted(self._unanswered, 'acknowledgment')} not sent" if self._unanswered else ""
        ended = f"; {counted(self._ended_for_memory, 'session')} ended for memory" if self._ended_for_memory else ""
        say(", ".join(parts) + unanswered + ended)

    def _why(self, event: MessageDisregarded, address: str) -> tuple[object, ...] | None:
        """Return why a message is not written, and of what there is one such line; None where the count is enough."""
        from msmqwire.session import Disregarded

        message, reason = event.message, event.reason
        source, queue = message.source_queue_manager, str(message.destination_queue)
        unwritten = f"messages to {queue} are acknowledged and not written"
        match reason:
            case Disregarded.DUPLICATE if event.first_address != address:
                # Its sender may have another route, or somebody sends under its identifiers
                return (
                    f"message {source}\\{message.message_id} is a duplicate and not written: {event.first_address} "
                    "sent one with this identifier before; further ones are only counted",
                    reason,
                )
            case Disregarded.NOT_TRANSACTIONAL_QUEUE | Disregarded.NO_SUCH_QUEUE if message.transaction is not None:
                # S24
                return (
                    f"transactional messages of {source} to {queue} are rejected: name the queue with --transactional "
                    "to receive them",
                    source,
                )
            case Disregarded.OLD_SEQUENCE | Disregarded.OUT_OF_ORDER if event.rejects >= _MANY_REJECTS:
                hour = int(self._store is not None and time.monotonic() // 3600)
                return self._why_not_in_order(event), source, queue, hour
            case Disregarded.NO_SUCH_QUEUE:
                return f"{unwritten}: it is not a chosen queue", reason, queue
            case Disregarded.NOT_TRANSACTIONAL_MESSAGE:
                return f"{unwritten}: it takes transactional messages only", reason, queue
            case Disregarded.OTHER_QUEUE_MANAGER:
                owner = message.queue_manager_address
                return f"{unwritten}: it is of queue manager {owner}, and nothing is forwarded", reason, queue
        return None

    def _why_not_in_order(self, event: MessageDisregarded) -> str:
        """Return the line about a sequence that does not go on (S52)."""
        source, queue = event.message.source_queue_manager, event.message.destination_queue
        remedy = "they are when this command is started again"
        if self._store is not None and event.reason == "old_sequence":
            remedy = "their sequence is older than one that was received: was the sender restored from a copy?"
        elif self._store is not None and event.message.transaction is not None:
            known = event.message.transaction.previous_tx_sequence_number
            remedy = (
                f"the sender has an acknowledgment for numbers up to {known}: msmqwire store skip {self._store} "
                f"{source} '{queue}' goes on after them"
            )
        return (
            f"the last {event.rejects} transactional messages of {source} to {queue} were not in order, and are not "
            f"written; {remedy}"
        )
