"""Passes the messages of a store to a handler, and removes them when it has returned."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Sequence
from itertools import compress

from msmqwire.session import Event, InboxMessage, MessageLimit, MessageNotAnswered, MessageReceived, Store
from msmqwire.session.acknowledgments import ACK_RECEIVE, NACK_RECEIVE_TIMEOUT
from msmqwire.session.delivery import has_expired, removal_answers

_LOG = logging.getLogger(__name__)
_RETRY = 5.0  # seconds after a handler or a transaction has failed
_LONGEST_PAUSE = 0.1  # between two pages


class Inbox:
    """Delivers messages in the order of the store, a page at a time.

    Parameters
    ----------
    store : Store
    handler : callable
        As that of ``SessionServer``.
    limit : MessageLimit, optional
        Counts the messages that are still taken: those that wait already are counted out of it.
    answered : callable
        Called when there are answers for sessions to send.
    notify : callable
        Called with a ``MessageNotAnswered`` and the address of its sender.
    """

    def __init__(
        self,
        store: Store,
        handler: Callable[[Sequence[MessageReceived]], Awaitable[None]],
        limit: MessageLimit | None,
        answered: Callable[[], object],
        notify: Callable[[Event, str], object],
    ) -> None:
        self._store = store
        self._handler = handler
        self._limit = limit
        self._undelivered = None if limit is None else limit.remaining
        if limit is not None:
            limit.remaining = max(0, limit.remaining - store.waiting)
        self._answered = answered
        self._notify = notify
        self._came, self._closing = asyncio.Event(), asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Deliver what waits, and what comes."""
        self._task = asyncio.create_task(self._run())

    def came(self) -> None:
        """There are new messages in the store."""
        self._came.set()

    async def close(self) -> None:
        """Deliver what waits, unless the handler fails, and end."""
        self._closing.set()
        self._came.set()
        if self._task is not None:
            await asyncio.wait([self._task])

    def abort(self) -> None:
        """End at once; messages whose handler has not returned stay in the store."""
        if self._task is not None:
            self._task.cancel()

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            self._came.clear()
            try:
                started = loop.time()
                while await self._deliver():
                    # Sessions go on meanwhile: the more messages come, the larger is the next page
                    await self._pause(min(8 * (loop.time() - started), _LONGEST_PAUSE))
                    started = loop.time()
            except Exception:
                _LOG.exception("messages could not be delivered, and stay in the store")
                await self._pause(_RETRY)
                if not self._closing.is_set():
                    continue
                return
            if self._closing.is_set():
                return
            await self._came.wait()

    async def _pause(self, seconds: float) -> None:
        """Wait, but not when this ends."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._closing.wait()
        await asyncio.sleep(0)

    async def _deliver(self) -> bool:
        """Deliver a page; False if there is none."""
        most = {} if self._undelivered is None else {"most": self._undelivered}
        page = self._store.inbox(**most)
        now = self._store.wall_clock()
        messages = [each.received.message for each in page]
        is_late = [has_expired(message, message.time_to_be_received, now) for message in messages]
        late = [*compress(page, is_late)]
        if late:
            # In a transaction of their own: what the handler gets is the beginning of the inbox until it is removed
            self._remove(late, NACK_RECEIVE_TIMEOUT)
            if self._limit is not None:
                self._limit.remaining += len(late)
            return True
        if page:
            await self._handler([each.received for each in page])
            self._remove(page, ACK_RECEIVE)
            if self._undelivered is not None:
                self._undelivered -= len(page)
        return bool(page)

    def _remove(self, messages: Sequence[InboxMessage], message_class: int) -> None:
        """Remove messages with the acknowledgments that they ask for (S42)."""
        answers, events = [], []
        for _, queue_manager, received in messages:
            made, is_answered = removal_answers(received.message, message_class, queue_manager, received.address)
            answers += [(queue_manager, answer) for answer in made]
            if not is_answered:
                events.append((MessageNotAnswered(received.message, message_class), received.address))
        self._store.remove(messages, answers)
        for event, address in events:
            self._notify(event, address)
        if answers:
            self._answered()
