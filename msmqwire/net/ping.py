"""Pings over UDP with asyncio: [MS-MQQB] 2.1.2."""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
import time
from collections import Counter
from collections.abc import Callable
from ipaddress import ip_network
from uuid import UUID

from msmqwire.discovery.rates import Rate, TokenBuckets
from msmqwire.net.host_addresses import Address, addresses_of, network_of, open_socket
from msmqwire.net.socket_errors import Backoff, error_name, is_unusable
from msmqwire.session import PING_RESPONSE_TIMEOUT, PingClient, answer_ping
from msmqwire.wire.ports import PING_PORT

_LEAST_PORT = 1024
_ADDRESS_RATE, _TOTAL_RATE = Rate(10, burst=100), Rate(1000, burst=1000)
_MOST_ADDRESSES = 4096  # whose rate is counted; another takes the place of one that was not answered for longest

_LOG = logging.getLogger(__name__)


async def ping(host: str, port: int, *, identifier: UUID, cookie: int = 1, lookup_timeout: float | None = None) -> bool:
    """Return True if a queue manager answers, within a second, that it would accept a session: [MS-MQQB] 3.1.7.6.

    Raises
    ------
    OSError
        The host cannot be resolved, or not in ``lookup_timeout`` seconds, or none of its addresses can be reached.
    """
    # A name may have addresses of which only one can be reached, and is answered
    failures: list[OSError] = []
    async with asyncio.timeout(lookup_timeout):
        found = await addresses_of(host, port, socket.SOCK_DGRAM)
    for address in found:
        try:
            if await _ping_address(address, identifier, cookie):
                return True
        except OSError as error:
            failures.append(error)
    if len(failures) == len(found):
        raise failures[-1]
    return False


async def _ping_address(address: Address, identifier: UUID, cookie: int) -> bool:
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


class PingServer(asyncio.DatagramProtocol):
    """Answers pings at one UDP address: [MS-MQQB] 3.1.7.7. An answer is as long as its request.

    An answer looks like a request, so two servers would answer each other forever after one datagram with a forged
    source. No answer goes to the port of pings, to the port that the server itself listens on, or to one below 1024,
    where other services answer; the rates bound a loop of servers on any other ports.

    No error of its socket ends it. Each is counted by name; an unusable socket is opened anew, with the delays of
    ``Backoff``.

    Parameters
    ----------
    address : (str, int)
        An address, of IPv6 with its zone, and a port.
    identifier : uuid.UUID
        The identifier of this queue manager.
    refuses : callable
        Whether a session from this address would be refused.
    address_rate, total_rate : Rate
        How often an address is answered, of IPv6 a network of 64 bits, and how often all addresses are. Queue managers
        ping once before a connection.

    Attributes
    ----------
    address : (str, int)
        With the port that the system chose, if it was 0.
    errors : Counter of str
        The errors of the socket by name.
    """

    def __init__(
        self,
        address: Address,
        identifier: UUID,
        refuses: Callable[[str], bool],
        *,
        address_rate: Rate = _ADDRESS_RATE,
        total_rate: Rate = _TOTAL_RATE,
    ) -> None:
        self.address = address
        self._of_address = TokenBuckets(address_rate, prefix=32, capacity=_MOST_ADDRESSES)
        self._of_all = TokenBuckets(total_rate)
        self.errors: Counter[str] = Counter()
        self._identifier = identifier
        self._refuses = refuses
        self._backoff = Backoff()
        self._is_paused = False
        self._transport: asyncio.DatagramTransport | None = None
        self._opening: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Open the socket.

        Raises
        ------
        OSError
            The address cannot be bound.
        """
        opened = open_socket(self.address, socket.SOCK_DGRAM)
        try:
            loop = asyncio.get_running_loop()
            self._transport, _ = await loop.create_datagram_endpoint(lambda: self, sock=opened)
        except BaseException:
            opened.close()
            raise
        self.address = self.address[0], opened.getsockname()[1]

    def close(self) -> None:
        """Close the socket."""
        if self._opening is not None:
            self._opening.cancel()
        if self._transport is not None:
            self._transport.close()

    def datagram_received(self, data: bytes, source: tuple[str, int]) -> None:
        """Answer to the source; other datagrams than requests are ignored."""
        if self._transport is None or source[1] in (PING_PORT, self.address[1]) or source[1] < _LEAST_PORT:
            return
        if answer := answer_ping(data, self._identifier, refuse=self._refuses(source[0])):
            network, now = int(ip_network(network_of(source[0])).network_address), time.monotonic_ns()
            if not (self._of_address.take(network, now) and self._of_all.take(0, now)):
                return
            if self._is_paused:
                self._count(BlockingIOError(errno.EAGAIN, "earlier answers wait to be sent"))
            else:
                self._transport.sendto(answer, source)

    def pause_writing(self) -> None:
        """Send no more: answers that wait would take more memory with each request of a flood."""
        self._is_paused = True

    def resume_writing(self) -> None:
        """Send again: the network has taken the answers that waited."""
        self._is_paused = False

    def error_received(self, exc: Exception) -> None:
        """Count an error of the socket; open it anew if it is unusable."""
        if isinstance(exc, OSError):
            self._count(exc)
            if is_unusable(exc) and self._transport is not None:
                self._transport.abort()
                self._transport = None
                self._is_paused = False
                self._opening = asyncio.create_task(self._open_anew())

    async def _open_anew(self) -> None:
        while self._transport is None:
            await asyncio.sleep(self._backoff.delay(time.monotonic_ns()) / 1e9)
            try:
                await self.open()
            except OSError as error:
                self._count(error)

    def _count(self, error: OSError) -> None:
        name = error_name(error)
        self.errors[name] += 1
        if self.errors[name] == 1:
            _LOG.warning("answering pings at %s port %d: %s: %s", *self.address, name, error.strerror or error)
