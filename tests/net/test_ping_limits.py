"""Pings with forged sources: no answer goes to other services, and servers do not answer each other for ever."""

from __future__ import annotations

import asyncio
import socket
from typing import Any
from uuid import UUID

import pytest

from msmqwire import net
from msmqwire.discovery.rates import Rate
from msmqwire.net.ping import PingServer
from msmqwire.session import PingClient

OWN = UUID(int=7)
REQUEST = PingClient(OWN).request()


async def answered(monkeypatch: pytest.MonkeyPatch, *sources: tuple[str, int]) -> list[tuple[str, int]]:
    """The sources of requests that are answered, of a server with the default rates."""
    sent: list[tuple[str, int]] = []

    class Recording(socket.socket):
        def sendto(self, data: Any, address: Any) -> int:  # type: ignore[override]
            sent.append(address)
            return len(data)

    with monkeypatch.context() as patched:
        patched.setattr(socket, "socket", Recording)
        server = PingServer(("127.0.0.1", 0), OWN, lambda _: False)
        await server.open()
    for source in sources:
        server.datagram_received(REQUEST, source)
    server.close()
    return sent


def test_ports_of_other_services(monkeypatch: pytest.MonkeyPatch) -> None:
    places = [("10.0.0.1", port) for port in (1, 7, 53, 1023, 1024, 3526, 3527, 3528, 65535)]
    assert [port for _, port in asyncio.run(answered(monkeypatch, *places))] == [1024, 3526, 3528, 65535]


def test_rate_of_an_address(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another address has its own; addresses of one network of IPv6 have one."""
    one, other = ("10.0.0.1", 5000), ("10.0.0.2", 5000)
    sent = asyncio.run(answered(monkeypatch, *[one] * 10_000, other))
    assert 100 <= sent.count(one) < 1000
    assert sent.count(other) == 1
    places = [(f"2001:db8::{number:x}", 5000) for number in range(10_000)]
    sent = asyncio.run(answered(monkeypatch, *places, ("2001:db8:0:1::1", 5000)))
    assert 100 <= len(sent) < 1000
    assert sent[-1] == ("2001:db8:0:1::1", 5000)


def test_rate_of_all_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    places = [(f"10.{number >> 8}.{number & 255}.1", 5000) for number in range(20_000)]
    assert 1000 <= len(asyncio.run(answered(monkeypatch, *places))) < 10_000


def test_servers_on_two_ports_do_not_answer_each_other_forever() -> None:
    """After one datagram with a forged source; a genuine ping is answered during that, and after it."""

    class Counting(PingServer):
        received = 0

        def datagram_received(self, data: bytes, source: tuple[str, int]) -> None:
            self.received += 1
            super().datagram_received(data, source)

    async def main() -> None:
        rate = Rate(0.001, 20)
        servers = [Counting((f"127.0.0.{number}", 0), OWN, lambda _: False, address_rate=rate) for number in (2, 3)]
        for server in servers:
            await server.open()
        first, second = servers
        first.datagram_received(REQUEST, second.address)
        for _ in range(3):
            assert await net.ping(*first.address, identifier=OWN)
        while second.received < 20:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.1)
        assert await net.ping(*first.address, identifier=OWN)
        assert (first.received - 4, second.received) == (21, 20)
        for server in servers:
            server.close()

    asyncio.run(main())
