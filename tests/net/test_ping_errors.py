"""No error of a socket ends the answers to pings: each is counted, and only an unusable socket is opened anew."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
from typing import Any
from uuid import UUID

import pytest

from msmqwire.discovery.rates import Rate
from msmqwire.net.ping import PingServer, ping
from msmqwire.session import PingClient
from tests.net.socket_errors import ERRORS_OF_RECV, ERRORS_OF_SEND, OF_THE_SOCKET

OWN = UUID(int=7)
#: asyncio tries again by itself.
REPEATED = ("EAGAIN", "EALREADY", "EINTR")

UNLIMITED = Rate(1e9, 1_000_000)


def failing(operation: str, name: str, opened: list[Any]) -> type[socket.socket]:
    """Sockets of which the first one that is bound fails once, with this error."""

    class Failing(socket.socket):
        failed = False

        def bind(self, address: Any) -> None:
            opened.append(self)
            super().bind(address)

        def fail(self, of: str) -> None:
            if of == operation and self is opened[0] and not self.failed:
                self.failed = True
                raise OSError(getattr(errno, name), os.strerror(getattr(errno, name)))

        def sendto(self, *arguments: Any) -> int:
            self.fail("send")
            return super().sendto(*arguments)

        def recvfrom(self, *arguments: Any) -> Any:
            self.fail("receive")
            return super().recvfrom(*arguments)

    return Failing


@pytest.mark.parametrize(
    ("operation", "name"),
    [*(("send", name) for name in ERRORS_OF_SEND), *(("receive", name) for name in ERRORS_OF_RECV)],
)
def test_every_error_of_the_socket(operation: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[Any] = []

    async def main() -> None:
        with monkeypatch.context() as patched:
            patched.setattr(socket, "socket", failing(operation, name, opened))
            server = PingServer(("127.0.0.1", 0), OWN, lambda _: False)
            await server.open()
            address = server.address
            # The first request is lost with its answer, unless asyncio repeats the call
            lost = asyncio.create_task(ping(*address, identifier=OWN))
            while not getattr(opened[0], "failed", False):
                await asyncio.sleep(0.001)
            lost.cancel()
            for _ in range(50):
                if await ping(*address, identifier=OWN):
                    break
            else:
                pytest.fail("no answer")
            assert server.address == address
            assert server.errors == ({} if name in REPEATED else {name: 1})
            assert len(opened) == 1 + (name in OF_THE_SOCKET)
            server.close()

    asyncio.run(main())


def test_an_address_that_cannot_be_reached_does_not_hide_the_next_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """As the IPv6 address of a name on a computer without IPv6."""
    unreachable = "255.255.255.255"  # connect(2) refuses it: the socket may not broadcast
    addresses = [unreachable, "127.0.0.1"]

    def getaddrinfo(_: str, port: int, *__: Any, **___: Any) -> list[Any]:
        return [(socket.AF_INET, socket.SOCK_DGRAM, 17, "", (address, port)) for address in addresses]

    async def main() -> None:
        server = PingServer(("127.0.0.1", 0), OWN, lambda _: False)
        await server.open()
        monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
        assert await ping("peer.example", server.address[1], identifier=OWN)
        server.close()
        assert not await ping("peer.example", server.address[1], identifier=OWN)
        addresses.pop()
        with pytest.raises(PermissionError):
            await ping("peer.example", server.address[1], identifier=OWN)

    asyncio.run(main())


def test_a_socket_that_cannot_be_opened_anew_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        server = PingServer(("127.0.0.1", 0), OWN, lambda _: False)
        await server.open()
        refused = [OSError(errno.EADDRINUSE, "Address already in use"), OSError(errno.EACCES, "Permission denied")]
        create = asyncio.get_running_loop().create_datagram_endpoint

        async def refuse(*arguments: Any, **options: Any) -> Any:
            if "sock" in options and refused:
                raise refused.pop(0)
            return await create(*arguments, **options)

        monkeypatch.setattr(asyncio.get_running_loop(), "create_datagram_endpoint", refuse)
        server.error_received(OSError(errno.ENOTSOCK, "Socket operation on non-socket"))
        while refused:
            await asyncio.sleep(0.01)
        while not await ping(*server.address, identifier=OWN):
            pass
        assert server.errors == {"ENOTSOCK": 1, "EADDRINUSE": 1, "EACCES": 1}
        server.close()

    asyncio.run(main())


def test_a_closed_server_opens_nothing() -> None:
    async def main() -> None:
        server = PingServer(("127.0.0.1", 0), OWN, lambda _: False)
        await server.open()
        server.error_received(OSError(errno.ENOTSOCK, "Socket operation on non-socket"))
        server.close()
        await asyncio.sleep(0.01)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
            other.bind(server.address)

    asyncio.run(main())


def test_answers_do_not_wait_for_a_slow_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """But for 64 KiB: a flood of requests does not take more memory. Those that are not sent are counted."""

    class Slow(socket.socket):
        def sendto(self, *arguments: Any) -> int:
            raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")

    async def main() -> None:
        with monkeypatch.context() as patched:
            patched.setattr(socket, "socket", Slow)
            server = PingServer(("127.0.0.1", 0), OWN, lambda _: False, address_rate=UNLIMITED, total_rate=UNLIMITED)
            await server.open()
        request = PingClient(OWN).request()
        for number in range(10_000):
            server.datagram_received(request, ("127.0.0.1", 4000 + number))
        transport: Any = server._transport
        waiting = transport.get_write_buffer_size()
        assert 0 < waiting < 1 << 17
        assert server.errors["EAGAIN"] >= 10_000 - waiting // len(request)
        server.resume_writing()
        server.datagram_received(request, ("127.0.0.1", 4000))
        assert transport.get_write_buffer_size() > waiting
        server.close()
        transport.abort()

    asyncio.run(main())
