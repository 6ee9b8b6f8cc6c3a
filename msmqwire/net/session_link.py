"""One connection of a session: its socket and its timers drive the state machine."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, TypeVar

from msmqwire.errors import StoreError
from msmqwire.net.connection import MOST_UNSENT, Connection
from msmqwire.session import CloseReason, Event, Session

_CLOSE_TIMEOUT = 1.0  # seconds for the last bytes to reach the peer

_Result = TypeVar("_Result")


def reason_of(error: OSError) -> str:
    """Return why an operation on a socket failed; asyncio puts its own words in the place of the system's."""
    if isinstance(error, TimeoutError) and error.errno is None:
        return "no answer"
    if error.errno is not None and error.errno > 0:
        return os.strerror(error.errno)
    return error.strerror or str(error) or type(error).__name__


class Link:
    """Passes bytes and times to a session, its events to ``handle``, and its bytes to the socket.

    No bytes are written while ``handle`` runs: they acknowledge the messages that it stores. The links that share
    ``lock`` handle events one after the other.
    """

    def __init__(
        self,
        session: Session,
        connection: Connection,
        handle: Callable[[Sequence[Event]], Awaitable[None]],
        notify: Callable[[Sequence[Event]], None],
        lock: asyncio.Lock,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._session = session
        self._connection = connection
        self._handle = handle
        self._notify = notify
        self._lock = lock
        self._is_handling = False
        self._data: bytearray | None = None
        self._has_ended = False
        self._flush_is_due = False
        self._detail = "the peer closed the connection"
        self._waiting: asyncio.Task[Any] | None = None
        self._timer: asyncio.TimerHandle | None = None

    @property
    def held_bytes(self) -> int:
        """Bytes that a peer has this side keep: unhandled ones, of an incomplete packet, and of acknowledgments."""
        session = self._session
        unsent = session.outgoing.acknowledgment_size
        return len(self._connection) + len(self._data or b"") + session.incomplete_bytes + unsent

    async def run(self) -> None:
        """Read until the session or its connection ends.

        An exception of ``handle`` ends the connection without an acknowledgment of its messages.
        """
        try:
            self._flush()
            while await self._read():
                async with self._lock:
                    await self._receive()
                unsent = self._connection.transport.get_write_buffer_size()
                if unsent > MOST_UNSENT + self._session.unacknowledged_bytes:
                    # The peer does not read: take no more from it than it takes
                    await self._of_the_peer(self._connection.drain())
        except BaseException:
            self._connection.abort()
            raise
        finally:
            if self._timer is not None:
                self._timer.cancel()
            self._notify(self._session.connection_lost(self._loop.time(), self._detail))
        await self._close()

    async def _read(self) -> bool:
        """Wait for bytes; False when the session or its connection ends."""
        self._data = await self._of_the_peer(self._connection.read())
        return bool(self._data)

    async def _of_the_peer(self, wait: Coroutine[Any, Any, _Result]) -> _Result | None:
        """Return what a wait for the peer gives; None when the session or its connection ends, or has ended."""
        waiting: asyncio.Task[_Result] = self._loop.create_task(wait)
        self._waiting = waiting
        try:
            if not self._has_ended:
                await asyncio.wait([waiting])
        finally:
            waiting.cancel()
            self._waiting = None
        if not waiting.done() or waiting.cancelled():
            return None
        try:
            return waiting.result()
        except OSError as error:  # not one of the handler
            self._detail = f"the connection was lost: {reason_of(error)}"
            return None

    async def _receive(self) -> None:
        # Bytes are released here, not when the next come; none are left after ``abort``
        data, self._data = self._data or b"", None
        self._is_handling = True
        try:
            now = self._loop.time()
            events = self._session.receive_data(data, now)
            del data
            # Timers that waited for these bytes expire now: a steady flow cannot hold them off
            await self._handle([*events, *self._session.handle_deadline(now)])
        except StoreError as error:
            self._session.messages_not_stored()
            self.abort(CloseReason.NOT_STORED, str(error))
        except BaseException:
            self._session.messages_not_stored()
            raise
        finally:
            self._is_handling = False
        self._flush()

    def flush_soon(self) -> None:
        """Write what the session has to send, once for all that happens in this turn of the loop."""
        if not self._flush_is_due:
            self._flush_is_due = True
            self._loop.call_soon(self._flush)

    def wake(self) -> None:
        """Send what the session has to send now, and let its timers expire."""
        if not self._has_ended:
            self._expire(self._loop.time())

    def leave(self) -> None:
        """Close the session; ``run`` then ends. Not while ``lock`` is held by another."""
        self._notify(self._session.close(self._loop.time()))
        self._flush()

    def abort(self, reason: CloseReason = CloseReason.CONNECTION_LOST, detail: str = "ended by this side") -> None:
        """End the session and its connection at once, and release what they hold."""
        self._data = None
        self._notify(self._session.connection_lost(self._loop.time(), detail, reason))
        self._connection.abort()

    def _flush(self) -> None:
        self._flush_is_due = False
        if self._is_handling or self._has_ended:
            return
        if (data := self._session.data_to_send()) and not self._connection.transport.is_closing():
            self._connection.transport.write(data)
        if self._session.is_disconnected:
            self._end()
        self._schedule()

    def _end(self) -> None:
        """No more bytes are sent, and those that come are not read."""
        self._has_ended = True
        with contextlib.suppress(OSError):
            self._connection.transport.write_eof()
        if self._waiting is not None:
            self._waiting.cancel()

    def _schedule(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        deadline = None if self._session.is_disconnected else self._session.next_deadline(closing=self._data is None)
        self._timer = None if deadline is None else self._loop.call_at(deadline, self._expire, deadline)

    def _expire(self, deadline: float) -> None:
        """Let the timers expire; those that close the session not over bytes that wait for the handler of another."""
        if self._is_handling:
            return  # _flush schedules it again
        # A loop may call early, by as much as its clock resolves
        now = max(deadline, self._loop.time())
        self._notify(self._session.handle_deadline(now, closing=self._data is None))
        self._flush()

    async def _close(self) -> None:
        """Close the socket when the peer has the last bytes: to close it over unread bytes would take them away."""
        try:
            async with asyncio.timeout(_CLOSE_TIMEOUT):
                while await self._connection.read():
                    pass
                await self._connection.close()
        except OSError:  # also a TimeoutError
            pass
        finally:
            self._connection.abort()
