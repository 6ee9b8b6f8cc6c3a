"""Sends messages to one destination, and waits until they are acknowledged."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Any

from msmqwire.cli.console import CommandError
from msmqwire.errors import MsmqWireError, counted

if TYPE_CHECKING:
    from msmqwire.cli.next_hops import Destination
    from msmqwire.mqqb import UserMessage
    from msmqwire.session import Event


@contextlib.asynccontextmanager
async def sending(
    options: argparse.Namespace, destination: Destination, show: Callable[[int], None] | None = None, **connection: Any
) -> AsyncIterator[Sending]:
    """A session for the block; ``show`` is called with the number of acknowledged messages.

    Raises
    ------
    CommandError
        An error of the block or of the session, or the acknowledgment of a message is late; with the number of messages
        that were acknowledged, and of the others.
    """
    # The error of the command has the last of these failures
    logging.getLogger("msmqwire.net").addHandler(logging.NullHandler())
    session = Sending(options, destination, show, connection)
    try:
        async with session.deadline:
            yield session
    except TimeoutError:
        late = f"no acknowledgment within {options.timeout:g} s: {session.state}"
        raise CommandError(session.describe(late)) from None
    except MsmqWireError as error:
        raise CommandError(session.describe(str(error))) from None
    finally:
        await session.client.close()


class Sending:
    """A session, and its messages without acknowledgment; ``deadline`` ends the wait for the oldest of them."""

    def __init__(
        self,
        options: argparse.Namespace,
        destination: Destination,
        show: Callable[[int], None] | None,
        connection: dict[str, Any],
    ) -> None:
        from msmqwire.net import connect

        self.client = connect(destination.hops, options.port, watch=self._watch, **connection)
        self.deadline = asyncio.timeout(None)
        self.acknowledged = 0
        self.queue_manager: Any = None
        self._show = show
        self._timeout = options.timeout
        self._sent: dict[int, float] = {}
        self._expired = 0

    async def send(self, message: UserMessage) -> None:
        """Send a message; ``client.acknowledged`` waits for the acknowledgment."""
        message_id = await self.client.send(message)
        self._sent[message_id] = asyncio.get_running_loop().time()
        self._reschedule()

    def _watch(self, event: Event) -> None:
        from msmqwire.session import MessageExpired, MessagesAcknowledged, SessionOpened

        if isinstance(event, SessionOpened):
            self.queue_manager = event.remote_queue_manager
        elif isinstance(event, MessageExpired):
            # No acknowledgment is awaited: the client raises an error at its end
            del self._sent[event.message_id]
            self._expired += 1
            self._reschedule()
        elif isinstance(event, MessagesAcknowledged):
            for message_id in event.message_ids:
                self._sent.pop(message_id, None)
            self.acknowledged += len(event.message_ids)
            if self._show is not None:
                self._show(self.acknowledged)
            self._reschedule()

    def _reschedule(self) -> None:
        oldest = next(iter(self._sent.values()), None)
        with contextlib.suppress(RuntimeError):  # the wait has ended
            self.deadline.reschedule(None if oldest is None else oldest + self._timeout)

    @property
    def state(self) -> str:
        """What keeps the acknowledgments, as far as is known."""
        if not self.client.is_open:
            return self.client.failure or "the queue manager does not answer"
        return "the session is open" + (f"; before: {self.client.failure}" if self.client.failure else "")

    def describe(self, error: str) -> str:
        """The error, and how many messages it leaves."""
        lost = len(self._sent) + self._expired
        if not self.acknowledged and lost <= 1:
            return error
        return f"{error}; {counted(self.acknowledged, 'message')} acknowledged, {lost:,} not"
