"""Pings over UDP with asyncio: [MS-MQQB] 2.1.2."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from uuid import UUID

from msmqwire.session import PING_RESPONSE_TIMEOUT, PingClient, answer_ping


async def ping(host: str, port: int, *, identifier: UUID, cookie: int = 1) -> bool:
    """Whether a queue manager answers, within a second, that it would accept a session: [MS-MQQB] 3.1.7.6.

    Raises
    ------
    OSError
        The host cannot be resolved or reached.
    """
    loop = asyncio.get_running_loop()
    # A name may have addresses of which only one is answered
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_DGRAM)
    for address in dict.fromkeys(each[4][:2] for each in found):
        if await _ping_address((str(address[0]), port), identifier, cookie):
            return True
    return False


async def _ping_address(address: tuple[str, int], identifier: UUID, cookie: int) -> bool:
    client = PingClient(identifier)
    client.cookie = cookie - 1
    loop = asyncio.get_running_loop()
    waiter = _Waiter(client, loop.create_future())
    transport, _ = await loop.create_datagram_endpoint(lambda: waiter, remote_addr=address)
    try:
        transport.sendto(client.request())
        async with asyncio.timeout(PING_RESPONSE_TIMEOUT):
            return await waiter.answer
    except TimeoutError:
        return False
    finally:
        transport.close()


class _Waiter(asyncio.DatagramProtocol):
    """Waits for the answer to one request."""

    def __init__(self, client: PingClient, answer: asyncio.Future[bool]) -> None:
        self._client = client
        self.answer = answer

    def datagram_received(self, data: bytes, source: object) -> None:
        """Take the answer; other datagrams are ignored."""
        accepted = self._client.receive(data)
        if accepted is not None and not self.answer.done():
            self.answer.set_result(accepted)

    def error_received(self, exc: Exception) -> None:
        """Nobody listens there."""
        if not self.answer.done():
            self.answer.set_result(False)


class PingResponder(asyncio.DatagramProtocol):
    """Answers pings on one UDP socket: [MS-MQQB] 3.1.7.7. An answer is as long as its request.

    Parameters
    ----------
    identifier : uuid.UUID
        The identifier of this queue manager.
    refuses : callable
        Whether a session from this address would be refused.
    """

    def __init__(self, identifier: UUID, refuses: Callable[[str], bool]) -> None:
        self._identifier = identifier
        self._refuses = refuses
        self._transport: asyncio.DatagramTransport | None = None

    def connection_made(self, transport: asyncio.DatagramTransport) -> None:  # type: ignore[override]
        """Keep the socket."""
        self._transport = transport

    def datagram_received(self, data: bytes, source: tuple[str, int]) -> None:
        """Answer to the source; other datagrams than requests are ignored."""
        answer = answer_ping(data, self._identifier, refuse=self._refuses(source[0]))
        if answer and self._transport is not None:
            self._transport.sendto(answer, source)
