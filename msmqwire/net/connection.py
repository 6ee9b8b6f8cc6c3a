"""One TCP connection with asyncio, in bounded memory: few bytes wait to be read, and few to be sent."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

MOST_UNSENT = 1 << 14
"""Bytes that wait to be sent before ``drain`` waits for the peer to read."""

_READ_SIZE = 1 << 16
_MOST_UNREAD = 1 << 15

MOST_WAITING = _MOST_UNREAD + _READ_SIZE
"""Bytes that have come and wait to be read: no more are read from the socket."""


def read_buffer() -> bytearray:
    """Memory that the connections of one event loop read into, one after the other."""
    return bytearray(_READ_SIZE)


class Connection(asyncio.BufferedProtocol):
    """Bytes of a connection. asyncio's streams would keep three times as many that nothing has read.

    Parameters
    ----------
    buffer : bytearray
        As ``read_buffer`` makes it.
    made : callable, optional
        Called with the connection when it is made.
    came : callable, optional
        Called when bytes have come.

    Attributes
    ----------
    transport : asyncio.Transport
    """

    transport: asyncio.Transport

    def __init__(
        self,
        buffer: bytearray,
        made: Callable[[Connection], object] = lambda _: None,
        came: Callable[[], object] = lambda: None,
    ) -> None:
        self.came = came
        self._made = made
        self._buffer = buffer
        self._received = bytearray()
        self._is_paused = self._has_ended = False
        self._error: Exception | None = None
        self._readable, self._writable, self._lost = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self._writable.set()

    def __len__(self) -> int:
        """Return the number of bytes that have come and were not read."""
        return len(self._received)

    async def read(self) -> bytearray:
        """Return the bytes that have come, at least one; none at the end.

        Raises
        ------
        OSError
            The connection was lost.
        """
        while not self._received and not self._has_ended:
            self._readable.clear()
            await self._readable.wait()
        if not self._received and self._error is not None:
            raise self._error
        data, self._received = self._received, bytearray()
        if self._is_paused:
            self._is_paused = False
            self.transport.resume_reading()
        return data

    async def drain(self) -> None:
        """Wait until few bytes wait to be sent, or the connection has ended."""
        await self._writable.wait()

    async def close(self) -> None:
        """Send what waits, and close the connection."""
        self.transport.close()
        await self._lost.wait()

    def abort(self) -> None:
        """Close the connection at once, and release all bytes that wait."""
        self.transport.abort()
        self._received = bytearray()

    # --- Called by asyncio ---

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        transport.set_write_buffer_limits(MOST_UNSENT)
        self._made(self)

    def get_buffer(self, sizehint: int) -> bytearray:
        """Return the buffer to read bytes into."""
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Keep the bytes until they are read."""
        self._received += memoryview(self._buffer)[:nbytes]
        if len(self._received) >= _MOST_UNREAD and not self._is_paused:
            self._is_paused = True
            self.transport.pause_reading()
        self._readable.set()
        self.came()

    def eof_received(self) -> bool:
        """Note that the peer sends no more; bytes may still be sent to it."""
        self._has_ended = True
        self._readable.set()
        return True

    def pause_writing(self) -> None:
        """Have ``drain`` wait."""
        self._writable.clear()

    def resume_writing(self) -> None:
        """End the wait of ``drain``."""
        self._writable.set()

    def connection_lost(self, exc: Exception | None) -> None:
        """End all waits."""
        self._has_ended, self._error = True, exc
        for event in (self._readable, self._writable, self._lost):
            event.set()
