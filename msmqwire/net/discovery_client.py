"""Finds directory servers over UDP with asyncio: the sockets and timers of a ``DiscoveryClient``."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import struct
import sys
import uuid
from collections import Counter
from collections.abc import Callable, Sequence
from typing import ParamSpec, Self, TypedDict, Unpack

from msmqwire.discovery.client import (
    RESPONSE_TIMEOUT,
    Action,
    Deliver,
    Discard,
    Discovery,
    DiscoveryClient,
    NetworkAddress,
    Send,
    WaitUntil,
)
from msmqwire.net.interfaces import local_networks
from msmqwire.net.socket_errors import Backoff, error_name, is_unusable
from msmqwire.wire.guids import NIL
from msmqwire.wire.ports import DISCOVERY_PORT

_LARGEST_DATAGRAM = 65535
_AT_ONCE = 64  # datagrams read before other callbacks run, so that a flood stops no timer
_LOOPBACK = 1  # Linux gives the loopback interface of each network namespace this index
_IP_PKTINFO = 26 if sys.platform == "darwin" else 8  # of <netinet/in.h>; missing in the socket module
_PKTINFO = struct.Struct("=i4s4s")  # struct in_pktinfo: interface, local address, destination

_ATTEMPTS = {"send": "send a request", "receive": "receive", "open": "open a socket"}

_P = ParamSpec("_P")
_LOG = logging.getLogger(__name__)


class DiscoverKeywords(TypedDict, total=False):
    """The parameters of ``discover`` and ``Discoverer``."""

    enterprise_id: uuid.UUID
    site_id: uuid.UUID
    networks: Sequence[NetworkAddress] | None
    port: int
    timeout: float
    literal: bool
    watch: Callable[[Action], None] | None


class Discoverer:
    """Finds directory servers on the networks of this computer, one network after the other: [MS-MQSD] 3.1.

    Once a server has answered, later requests are answered from memory as 3.1.4.1 says, until ``forget`` is called,
    unless a network is a remote access connection. Use it from one event loop.

    Parameters
    ----------
    enterprise_id, site_id : uuid.UUID, optional
        Enterprise and site of this computer; nil if it belongs to none.
    networks : sequence of NetworkAddress, optional
        The networks to send requests to, in order; by default all local networks, listed anew for each run.
    port : int
        The UDP port that servers listen on.
    timeout : float
        Seconds to wait for answers on each network, and again after the first answer from another site.
    literal : bool
        As for ``msmqwire.discovery.DiscoveryClient``.
    watch : callable, optional
        Called with each action as it is taken: ``Send``, ``WaitUntil``, ``Discard``, ``Deliver``.

    Attributes
    ----------
    socket_errors : Counter
        The errors of sockets since the client was made, by operation and name, such as ``("send", "ENETUNREACH")``.
        None of them ends a run.
    """

    def __init__(
        self,
        *,
        enterprise_id: uuid.UUID = NIL,
        site_id: uuid.UUID = NIL,
        networks: Sequence[NetworkAddress] | None = None,
        port: int = DISCOVERY_PORT,
        timeout: float = RESPONSE_TIMEOUT,
        literal: bool = False,
        watch: Callable[[Action], None] | None = None,
    ) -> None:
        if not 0 < port < 65536:
            raise ValueError(f"port is {port}: not from 1 to 65535")
        if not timeout > 0:
            raise ValueError(f"timeout is {timeout}: not above 0")
        self._machine = DiscoveryClient(
            enterprise_id=enterprise_id, site_id=site_id, literal=literal, response_timeout=timeout
        )
        self.socket_errors: Counter[tuple[str, str]] = Counter()
        self._networks = networks
        self._port = port
        self._watch = watch
        self._run: _Run | None = None

    async def get_directory_server_list(self) -> Discovery:
        """Find directory servers. Concurrent calls share one run, which stops when all of them are cancelled.

        Raises
        ------
        ModuleNotFoundError
            ``networks`` is not given, and psutil, which lists the local ones, is not installed.
        """
        run = self._run
        if run is None or run.outcome.done():
            networks = local_networks() if self._networks is None else self._networks
            run = self._run = _Run(self, networks)
            run.start()
        run.waiting += 1
        try:
            return await asyncio.shield(run.outcome)
        finally:
            run.waiting -= 1
            if not run.waiting:
                run.stop()

    def forget(self) -> None:
        """Forget earlier answers: the next call sends requests again."""
        self._machine.valid_last_successful_network_address = False

    def close(self) -> None:
        """Stop the run and close its sockets; waiting calls are cancelled."""
        if self._run is not None:
            self._run.stop()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()


async def discover(**options: Unpack[DiscoverKeywords]) -> Discovery:
    """Find directory servers once; the parameters are those of ``Discoverer``.

    Takes at most twice ``timeout`` for each network. Cancelling closes the sockets.

    Examples
    --------
    >>> import asyncio
    >>> result = asyncio.run(discover(networks=[]))
    >>> result.found
    False
    """
    async with Discoverer(**options) as client:
        return await client.get_directory_server_list()


def discover_sync(**options: Unpack[DiscoverKeywords]) -> Discovery:
    """Call ``discover`` in a program without an event loop."""
    return asyncio.run(discover(**options))


class _Run:
    """One run of the state machine: its sockets, its timer, and the future that the callers await."""

    def __init__(self, discoverer: Discoverer, networks: Sequence[NetworkAddress]) -> None:
        self.loop = asyncio.get_running_loop()
        self.outcome: asyncio.Future[Discovery] = self.loop.create_future()
        self.waiting = 0
        self._discoverer = discoverer
        self._machine = discoverer._machine
        self._networks = networks
        self._endpoints: dict[NetworkAddress, _Endpoint] = {}
        self._backoffs: dict[NetworkAddress, Backoff] = {}
        self._reopening: dict[NetworkAddress, asyncio.TimerHandle] = {}
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        request = self._machine.get_directory_server_list
        self._do(request, self._networks, request_id=uuid.uuid4(), now=self.loop.time())

    def stop(self) -> None:
        """Cancel the run, unless it has ended."""
        if not self.outcome.done():
            self._machine.abandon()
            self._close()
            self.outcome.cancel()

    def _do(self, event: Callable[_P, list[Action]], *arguments: _P.args, **options: _P.kwargs) -> None:
        """Pass an event to the state machine and take the actions that it returns.

        This runs in callbacks of the loop, so an exception is passed to the callers through the future.
        """
        try:
            for action in event(*arguments, **options):
                if self._discoverer._watch is not None:
                    self._discoverer._watch(action)
                # The watcher may have stopped the run.
                if self.outcome.done():
                    return
                self._take(action)
        except Exception as error:
            self._machine.abandon()
            self._close()
            if not self.outcome.done():
                self.outcome.set_exception(error)

    def _take(self, action: Action) -> None:
        match action:
            case WaitUntil(time):
                if self._timer is not None:
                    self._timer.cancel()
                self._timer = self.loop.call_at(time, self._expire, time)
            case Send(network, data):
                self._send(network, data)
            case Discard(reason, detail, source):
                _LOG.debug("discarded a datagram from %s: %s: %s", source, reason, detail)
            case Deliver(result):
                self._close()
                self.outcome.set_result(result)

    def _expire(self, deadline: float) -> None:
        # A loop may call early, by as much as its clock resolves.
        self._do(self._machine.tick, max(deadline, self.loop.time()))

    def _send(self, network: NetworkAddress, data: bytes) -> None:
        """Broadcast a request; if the socket is unusable, once more through a new one.

        After any other error the network stays silent.
        """
        try:
            try:
                (self._endpoints.get(network) or self._open(network)).send(data, self._discoverer._port)
            except OSError as error:
                if not is_unusable(error):
                    raise
                self._count("send", network, error)
                self._open(network).send(data, self._discoverer._port)
        except OSError as error:
            self._count("send", network, error)
            self._machine.send_failed(network, error.strerror or str(error))

    def _receive(self, endpoint: _Endpoint) -> None:
        """Read the datagrams of a socket, or its error."""
        for _ in range(_AT_ONCE):
            try:
                data, interface, source = endpoint.receive()
            except BlockingIOError:
                return
            except OSError as error:
                self._count("receive", endpoint.network, error)
                if is_unusable(error):
                    self._reopen(endpoint.network)
                return
            network = self._attribute(endpoint, interface)
            self._do(self._machine.receive, data, network, source=source, now=self.loop.time())
            if self.outcome.done():
                return

    def _count(self, operation: str, network: NetworkAddress, error: OSError) -> None:
        self._discoverer.socket_errors[operation, error_name(error)] += 1
        level = logging.WARNING if operation == "open" or is_unusable(error) else logging.INFO
        _LOG.log(level, "cannot %s on %s: %s: %s", _ATTEMPTS[operation], network, error_name(error), error)

    def _reopen(self, network: NetworkAddress) -> None:
        """Open the socket on a network anew, after a delay that grows with each failure."""
        self._endpoints[network].silence()
        delay = self._backoffs.setdefault(network, Backoff()).delay(round(self.loop.time() * 1e9))
        self._wait_no_more(network)
        self._reopening[network] = self.loop.call_later(delay / 1e9, self._try_to_open, network)

    def _wait_no_more(self, network: NetworkAddress) -> None:
        if (waiting := self._reopening.pop(network, None)) is not None:
            waiting.cancel()

    def _try_to_open(self, network: NetworkAddress) -> None:
        try:
            self._open(network)
        except OSError as error:
            self._count("open", network, error)
            self._reopen(network)

    def _open(self, network: NetworkAddress) -> _Endpoint:
        """Open a socket on a network; it takes over the port of one that failed, which replies are sent to."""
        self._wait_no_more(network)
        failed = self._endpoints.get(network)
        if failed is not None:
            failed.close()
        endpoint = _Endpoint(network, self.loop, 0 if failed is None else failed.port)
        self._endpoints[network] = endpoint
        self.loop.add_reader(endpoint, self._receive, endpoint)
        return endpoint

    def _attribute(self, endpoint: _Endpoint, interface: int) -> NetworkAddress | None:
        """Return the network that a datagram arrived on, which need not be that of its destination address."""
        if interface in (endpoint.interface, _LOOPBACK) or not endpoint.interface:
            return endpoint.network
        return next((other.network for other in self._endpoints.values() if other.interface == interface), None)

    def _close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        for network in list(self._reopening):
            self._wait_no_more(network)
        while self._endpoints:
            self._endpoints.popitem()[1].close()


_NOT_ON_WINDOWS = "Python on Windows does not say on which network a datagram arrived: discovery needs that"


class _Endpoint:
    """A UDP socket at the computer's address on one network."""

    def __init__(self, network: NetworkAddress, loop: asyncio.AbstractEventLoop, port: int) -> None:
        if not hasattr(socket.socket, "recvmsg"):
            raise OSError(_NOT_ON_WINDOWS)
        self.network = network
        self.interface = socket.if_nametoindex(network.interface) if network.interface else 0
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            self._socket.setblocking(False)
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
            self._socket.setsockopt(socket.IPPROTO_IP, _IP_PKTINFO, 1)
            self._socket.bind((str(network.address.ip), port))
        except OSError:
            self._socket.close()
            raise
        self.port: int = self._socket.getsockname()[1]
        self._loop = loop
        self._descriptor = self._socket.fileno()

    def fileno(self) -> int:
        return self._descriptor

    def silence(self) -> None:
        """Take the socket out of the event loop, even if its descriptor is no longer open."""
        if self._descriptor >= 0:
            self._loop.remove_reader(self._descriptor)

    def send(self, data: bytes, port: int) -> None:
        if sys.platform == "win32":
            raise OSError(_NOT_ON_WINDOWS)
        # Sent through this interface and from this address, whatever the routing table says.
        place = _PKTINFO.pack(self.interface, self.network.address.packed, bytes(4))
        way = (socket.IPPROTO_IP, _IP_PKTINFO, place)
        self._socket.sendmsg([data], [way], 0, (str(self.network.broadcast), port))

    def receive(self) -> tuple[bytes, int, str]:
        """Return a datagram, the index of the interface that it arrived on, and its sender."""
        if sys.platform == "win32":
            raise OSError(_NOT_ON_WINDOWS)
        data, ancillary, _, (host, port) = self._socket.recvmsg(_LARGEST_DATAGRAM, socket.CMSG_SPACE(_PKTINFO.size))
        interface = 0
        for level, kind, content in ancillary:
            if (level, kind) == (socket.IPPROTO_IP, _IP_PKTINFO):
                interface, _, _ = _PKTINFO.unpack(content)
        return data, interface, f"{host}:{port}"

    def close(self) -> None:
        self.silence()
        self._descriptor = -1  # another socket may get it
        with contextlib.suppress(OSError):
            self._socket.close()
