"""Addresses of host names: all of them, those that this computer lacks, slow name servers, texts that are no name."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from msmqwire import mqqb, net
from msmqwire.net.host_addresses import bind_all, open_socket
from msmqwire.session import Settings
from tests.cli.support import COMMAND, msmqwire
from tests.net.hosts import Hosts
from tests.net.session_wire import DEADLINE, free_port
from tests.system_programs import require_program

QUEUE = r"DIRECT=TCP:127.0.0.1\private$\orders"


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[str]]:
    """Addresses of the hosts of the test by name, in the order of the answers."""
    known: dict[str, list[str]] = {}
    look_up = socket.getaddrinfo

    def answer(host: Any, *arguments: Any, **options: Any) -> Any:
        found = known.get(host, [host])
        return [each for address in found for each in look_up(address, *arguments, **options)]

    monkeypatch.setattr(socket, "getaddrinfo", answer)
    return known


async def discard(_: object) -> None:
    """Store nothing."""


def message() -> mqqb.UserMessage:
    return mqqb.UserMessage(destination_queue=QUEUE, body=b"x", delivery_mode="recoverable")


@pytest.mark.skipif(sys.platform == "win32", reason="Windows would share the port")
def test_the_port_of_a_connection_that_was_just_closed_can_be_opened() -> None:
    """A server that is started again finds its port in TIME_WAIT."""
    listener = open_socket(("127.0.0.1", 0), socket.SOCK_STREAM)
    listener.listen()
    address = listener.getsockname()
    with socket.create_connection(address, timeout=DEADLINE) as client:
        listener.setblocking(True)
        listener.accept()[0].close()
        assert client.recv(1) == b""
    listener.close()
    open_socket(address, socket.SOCK_STREAM).close()


def test_every_address_of_a_name_listens_and_answers_pings(names: dict[str, list[str]]) -> None:
    names["both"] = ["127.0.0.1", "::1"]
    port, ping_port = free_port(), free_port()

    async def main() -> None:
        async with net.serve(discard, "both", port) as server:
            await server.answer_pings(ping_port)
            assert server.addresses == [("127.0.0.1", port), ("::1", port)]
            for host in names["both"]:
                async with net.connect(host, port, ping_port=ping_port) as client:
                    await client.send(message())

    asyncio.run(main())


def test_all_addresses_of_both_families() -> None:
    """The port of IPv6 leaves that of IPv4 free, also of pings."""
    port, ping_port = free_port(), free_port()

    async def main() -> None:
        async with net.serve(discard, ["0.0.0.0", "::"], port) as server:
            await server.answer_pings(ping_port)
            for host in ("127.0.0.1", "::1"):
                assert await net.ping(host, ping_port, identifier=server.identifier)
        async with net.serve(discard, "", port) as server:
            assert {("0.0.0.0", port), ("::", port)} == set(server.addresses)

    asyncio.run(main())


def test_an_address_that_the_computer_lacks_is_left_out() -> None:
    (only,) = bind_all([("192.0.2.1", 0), ("127.0.0.1", 0)], socket.SOCK_STREAM)
    with only:
        used = only.getsockname()[1]
        only.listen()
        with pytest.raises(OSError, match=rf"127\.0\.0\.1 port {used}") as raised:
            bind_all([("::1", 0), ("127.0.0.1", used)], socket.SOCK_STREAM)
    assert raised.value.errno == errno.EADDRINUSE
    with pytest.raises(OSError, match=r"192\.0\.2\.1 port 0"):
        bind_all([("192.0.2.1", 0)], socket.SOCK_STREAM)


def test_the_address_of_a_name_that_is_reached_is_used(names: dict[str, list[str]]) -> None:
    """Of the others one cannot be sent to, one has no listener."""
    names["some"] = ["255.255.255.255", "127.0.0.9", "127.0.0.1"]
    names["none"] = ["127.0.0.9", "255.255.255.255"]

    async def main() -> None:
        async with net.serve(discard, port=0) as server:
            await server.answer_pings(0)
            ping_port = server._pings[0].address[1]
            async with net.connect("some", server.port, ping_port=ping_port) as client:
                await client.send(message())
            client = net.connect("none", server.port)
            await client.send(message())
            while not client.failure:
                await asyncio.sleep(0.01)
            await client.close()
            assert "127.0.0.9: Connection refused, 255.255.255.255: " in client.failure

    asyncio.run(main())


def test_an_address_that_does_not_answer_gives_way(names: dict[str, list[str]]) -> None:
    names["slow"] = ["127.0.0.9", "127.0.0.1"]

    async def main() -> None:
        async with net.serve(discard, port=0) as server:
            with full_listener("127.0.0.9", server.port):
                settings = Settings(retry_timeout=0.3)
                async with net.connect("slow", server.port, settings=settings) as client:
                    await client.send(message())

    asyncio.run(main())


@contextlib.contextmanager
def full_listener(host: str, port: int) -> Iterator[None]:
    """A port that answers no further connection: its backlog is full."""
    with contextlib.ExitStack() as stack:
        listening = stack.enter_context(socket.create_server((host, port), backlog=0))
        for _ in range(4):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(listening.getsockname())
        yield


@pytest.mark.parametrize("host", ["a..b", "x" * 70 + ".example", "."])
def test_what_is_no_name_is_one_line(host: str) -> None:
    for option in ((), ("--ping",)):
        # The host of a direct name, but for the dot, which is this computer there
        target = ["DIRECT=OS:a\\q", "--host", host] if host == "." else [f"DIRECT=OS:{host}\\q"]
        done = msmqwire("send", *target, "--text", "x", "--timeout", "0.3", *option)
        assert done.returncode == 1
        assert done.stderr.decode().endswith(f"cannot connect to {host} port 1801: not the name of a host\n")
    done = msmqwire("receive", "--listen", host)
    assert (done.returncode, done.stderr.decode()) == (
        1,
        f"msmqwire: cannot listen on {host} port 1801: not the name of a host\n",
    )


def test_a_slow_name_server_delays_no_end(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, ends = threading.Event(), threading.Event()

    def wait(*_: Any, **__: Any) -> Any:
        asked.set()
        ends.wait()
        return []

    async def main() -> None:
        client = net.connect("slow.example")
        await client.send(message())
        while not asked.is_set():
            await asyncio.sleep(0.01)
        await client.close()

    monkeypatch.setattr(socket, "getaddrinfo", wait)
    asyncio.run(main())
    assert not ends.is_set()
    ends.set()


def test_the_look_up_for_a_ping_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """As that for a connection does: the client says so, and tries the next hop."""
    ends, asked = threading.Event(), []

    def wait(host: str, *_: Any, **__: Any) -> Any:
        asked.append(host)
        ends.wait()
        return []

    async def main() -> None:
        hops = [net.NextHop("slow.example"), net.NextHop("next.example")]
        client = net.connect(hops, ping_port=1, settings=Settings(retry_timeout=0.2))
        await client.send(message())
        async with asyncio.timeout(20):
            while "next.example" not in asked:
                await asyncio.sleep(0.01)
        assert client.failure.endswith(".example port 1801: no answer")
        await client.close()

    monkeypatch.setattr(socket, "getaddrinfo", wait)
    try:
        asyncio.run(main())
    finally:
        ends.set()


@pytest.mark.long
def test_addresses_of_a_link() -> None:
    """Their zone is part of them: for the listener, for pings, and in what is said."""
    require_program("ip")
    with Hosts() as hosts:
        hosts.network("net1")
        for number, host in enumerate(("one", "other"), 1):
            hosts.add(host)
            hosts.connect(host, "net1", f"10.71.1.{number}/24")
            command = hosts.command(host, "ip", "address", "add", f"fe80::{number}/64", "dev", "eth0", "nodad")
            subprocess.run(command, check=True)
        receive = [*COMMAND, "receive", "--listen", "fe80::1%eth0", "--ping", "--count", "1"]
        with hosts.running("one", receive, "listening on fe80::1%eth0 port 1801"):
            done = hosts.msmqwire(
                *("other", "send", r"DIRECT=OS:one\q", "--host", "fe80::1%eth0", "--text", "x", "--recoverable"),
                *("--ping", "--timeout", "20"),
            )
        assert done.returncode == 0, done.stderr
