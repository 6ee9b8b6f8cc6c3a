"""The discovery client on real sockets of this computer, its clock moved on by the test where it has to wait."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import socket
import threading
import time
import uuid
from collections.abc import Iterator
from ipaddress import IPv4Address, IPv4Interface
from typing import Any

import pytest

from msmqwire.discovery import Deliver, Discard, Discovery, NetworkAddress, Send, WaitUntil
from msmqwire.discovery.client import Action
from msmqwire.net import Discoverer, discover, discover_sync, local_networks
from msmqwire.net import discovery_client as room
from tests.net.clock import Loop, Watch, is_discard, is_send, is_wait, run
from tests.net.responders import DEADLINE, Asked, Script, other_site, own_site, reply, responding, silent
from tests.net.socket_errors import ERRORS_OF_RECV, ERRORS_OF_SEND, OF_THE_SOCKET

# --- Networks: loopback has as many addresses as a test wants ---


def network(number: int) -> NetworkAddress:
    """A network whose broadcast address is that of its one server."""
    return NetworkAddress(IPv4Interface(f"127.0.{number}.25/24"), IPv4Address(f"127.0.{number}.10"), "lo")


A, B = network(71), network(72)


@contextlib.contextmanager
def servers(*scripts: Script) -> Iterator[tuple[int, list[list[Asked]]]]:
    """A server on A, and one on B if there are two scripts; the port of all, and the requests of each."""
    with contextlib.ExitStack() as stack:
        port, requests = 0, []
        for place, script in zip((A, B), scripts, strict=False):
            bound = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            bound.bind((str(place.broadcast), port))
            port = bound.getsockname()[1]
            requests.append(stack.enter_context(responding(bound, script)))
        yield port, requests


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


# --- One run ---


def test_a_server_of_the_own_site_on_the_real_broadcast_address() -> None:
    bound = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    bound.bind(("", 0))
    port = bound.getsockname()[1]
    (loopback,) = [found for found in local_networks(loopback=True) if found.address.is_loopback]
    site, enterprise = uuid.UUID(int=5), uuid.UUID(int=6)
    with responding(bound, own_site) as requests:
        result = discover_sync(networks=[loopback], port=port, site_id=site, enterprise_id=enterprise)
    assert result.found
    assert result.connected_networks == (uuid.UUID(int=0xC1),)
    (asked,) = requests
    (answer,) = result.answers
    assert (answer.network, answer.source) == (loopback, f"127.0.0.1:{port}")
    assert answer.reply.correlation_id == asked.run
    assert asked.run.version == 4
    assert asked.client[0] == "127.0.0.1"


def test_other_site_answers_and_nobody_else() -> None:
    async def main(loop: Loop) -> None:
        # The first wait is for any answer, the second for one more.
        watch = Watch(loop, lambda action: is_wait(action) and "Send" in watch.kinds())
        result = await discover(networks=[A], port=port, watch=watch)
        assert (result.found, result.directory_servers, result.servers_updated) == (True, ("far", "farther"), True)
        assert watch.kinds() == ["WaitUntil", "Send", "WaitUntil", "Deliver"]

    with servers(other_site("far", "farther")) as (port, _):
        run(main)


def test_two_sites_answer() -> None:
    def both(asked: Asked) -> list[bytes]:
        return [reply(asked.run, "far", networks=[7]), reply(asked.run)]

    async def main(_: Loop) -> None:
        result = await discover(networks=[A], port=port)
        assert result.directory_servers == ("far",)
        assert result.connected_networks == (uuid.UUID(int=7),)
        assert len(result.answers) == 2

    with servers(both) as (port, _):
        run(main)


def test_nobody_answers() -> None:
    async def main(loop: Loop) -> None:
        watch = Watch(loop, is_send, is_send)
        result = await discover(networks=[A, B], port=port, watch=watch)
        assert not result.found
        assert watch.kinds() == ["WaitUntil", "Send", "WaitUntil", "Send", "Deliver"]

    with servers(silent, silent) as (port, requests):
        run(main)
    (first,), (second,) = requests
    assert first.run == second.run


def test_nobody_answers_by_the_real_clock() -> None:
    assert not discover_sync(networks=[A], port=9, timeout=0.05).found


def test_what_is_not_an_answer() -> None:
    def noise(asked: Asked) -> list[bytes]:
        spoofed = reply(uuid.UUID(int=asked.run.int ^ 1))
        return [b"", reply(asked.run)[:-1], spoofed, reply(asked.run) + b"\0", b"\xff" * 65507, reply(asked.run)]

    async def main(_: Loop) -> None:
        result = await discover(networks=[A], port=port)
        assert result.found
        assert result.discarded == {"malformed": 4, "other_request": 1}

    with servers(noise) as (port, _):
        run(main)


def test_an_answer_that_comes_late() -> None:
    """On the network that was asked before: it does not count, and B is waited for."""
    second_asked, late_seen = threading.Event(), threading.Event()

    def late(asked: Asked) -> list[bytes]:
        assert second_asked.wait(DEADLINE)
        return [reply(asked.run, "late")]

    def after_it(asked: Asked) -> list[bytes]:
        second_asked.set()
        assert late_seen.wait(DEADLINE)
        return [reply(asked.run)]

    async def main(loop: Loop) -> None:
        watching = Watch(loop, is_send)

        def watch(action: Action) -> None:
            watching(action)
            if is_discard(action):
                late_seen.set()

        result = await discover(networks=[A, B], port=port, watch=watch)
        assert result.discarded == {"other_network": 1}
        assert [answer.network for answer in result.answers] == [B]
        assert (result.directory_servers, result.servers_updated) == ((), False)

    with servers(late, after_it) as (port, _):
        run(main)


def test_two_networks_answer() -> None:
    async def main(loop: Loop) -> None:
        watch = Watch(loop, lambda action: is_wait(action) and len(watch.actions) > 1)
        result = await discover(networks=[A, B], port=port, watch=watch)
        assert result.directory_servers == ("far",)
        assert [(a.network, a.source) for a in result.answers] == [
            (A, f"{A.broadcast}:{port}"),
            (B, f"{B.broadcast}:{port}"),
        ]

    with servers(other_site("far"), own_site) as (port, _):
        run(main)


def test_a_network_that_cannot_be_asked_is_silent(caplog: pytest.LogCaptureFixture) -> None:
    gone = NetworkAddress(IPv4Interface("127.0.73.25/24"), IPv4Address("127.0.73.10"), "no-such-interface")
    foreign = NetworkAddress(IPv4Interface("192.0.2.250/32"), IPv4Address("192.0.2.255"))

    async def main(loop: Loop) -> None:
        result = await discover(networks=[gone, foreign, A], port=port, watch=Watch(loop, is_send, is_send))
        assert result.found
        assert [place for place, _ in result.unsent] == [gone, foreign]
        assert result.unsent[1][1] == os.strerror(errno.EADDRNOTAVAIL)

    with servers(own_site) as (port, _):
        run(main)
    assert not [record for record in caplog.records if record.levelname == "WARNING"]


def test_no_networks() -> None:
    assert not discover_sync(networks=[]).found


@pytest.mark.parametrize("options", [{"port": 0}, {"port": 65536}, {"timeout": 0}, {"timeout": float("nan")}])
def test_options_that_make_no_sense(options: Any) -> None:
    with pytest.raises(ValueError, match=r"port|timeout"):
        Discoverer(**options)


def test_the_port_of_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    ports: list[int] = []
    monkeypatch.setattr(room._Endpoint, "send", lambda endpoint, data, port: ports.append(port))

    async def main(_: Loop) -> None:
        await discover(networks=[A, B], timeout=0.01)

    run(main)
    assert ports == [1801, 1801]


# --- Sockets that fail ---


@pytest.mark.parametrize("name", ERRORS_OF_RECV)
def test_every_error_of_recv(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is counted and ends no run; only one that says that the socket is unusable opens it anew."""
    receive, open_ = room._Endpoint.receive, room._Run._open
    failed: list[object] = []
    opened = []

    def fail_once(endpoint: Any) -> Any:
        if not failed:
            failed.append(endpoint)
            raise OSError(getattr(errno, name), os.strerror(getattr(errno, name)))
        return receive(endpoint)

    def watched_open(run: Any, network: NetworkAddress) -> Any:
        opened.append(network)
        return open_(run, network)

    monkeypatch.setattr(room._Endpoint, "receive", fail_once)
    monkeypatch.setattr(room._Run, "_open", watched_open)

    def often(asked: Asked) -> Iterator[bytes]:
        for _ in range(20):  # what waits at a socket is lost when it is opened anew
            yield reply(asked.run)
            time.sleep(0.01)

    async def main(_: Loop) -> None:
        before = descriptors()
        async with Discoverer(networks=[A], port=port) as discoverer:
            assert (await discoverer.get_directory_server_list()).found
            assert discoverer.socket_errors == ({} if name == "EAGAIN" else {("receive", name): 1})
        assert descriptors() == before

    with servers(often) as (port, _):
        run(main)
    assert len(opened) == 1 + (name in OF_THE_SOCKET)


@pytest.mark.parametrize("name", ERRORS_OF_SEND)
def test_every_error_of_send(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    send, open_ = room._Endpoint.send, room._Run._open
    failed: list[object] = []
    opened = []

    def fail_once(endpoint: Any, data: bytes, port: int) -> None:
        if not failed:
            failed.append(endpoint)
            raise OSError(getattr(errno, name), os.strerror(getattr(errno, name)))
        send(endpoint, data, port)

    def watched_open(run: Any, network: NetworkAddress) -> Any:
        opened.append(network)
        return open_(run, network)

    monkeypatch.setattr(room._Endpoint, "send", fail_once)
    monkeypatch.setattr(room._Run, "_open", watched_open)
    unusable = name in OF_THE_SOCKET

    async def main(loop: Loop) -> None:
        async with Discoverer(networks=[A, B], port=port, watch=Watch(loop, is_send)) as discoverer:
            result = await discoverer.get_directory_server_list()
            assert result.found
            assert [network for network, _ in result.unsent] == ([] if unusable else [A])
            assert discoverer.socket_errors == {("send", name): 1}

    with servers(own_site, own_site) as (port, _):
        run(main)
    assert opened == ([A, A, B] if unusable else [A, B])


def test_socket_that_fails_when_it_is_read(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """It is opened anew on its port, and what the server sends from then on arrives."""
    failed: list[object] = []
    opened_anew = threading.Event()
    receive, open_ = room._Endpoint.receive, room._Run._open

    def fail_once(endpoint: Any) -> Any:
        if not failed:
            failed.append(endpoint)
            raise OSError(errno.ECONNABORTED, "Software caused connection abort")
        return receive(endpoint)

    def watched_open(run: Any, network: NetworkAddress) -> Any:
        endpoint = open_(run, network)
        if failed:
            opened_anew.set()
        return endpoint

    monkeypatch.setattr(room._Endpoint, "receive", fail_once)
    monkeypatch.setattr(room._Run, "_open", watched_open)

    def twice(asked: Asked) -> Iterator[bytes]:
        yield reply(asked.run)
        assert opened_anew.wait(DEADLINE)
        yield reply(asked.run)

    async def main(_: Loop) -> None:
        before = descriptors()
        result = await discover(networks=[A], port=port)
        assert result.found
        assert descriptors() == before

    with servers(twice) as (port, requests):
        run(main)
    assert len(requests[0]) == 1
    assert "cannot receive on" in caplog.text


def test_socket_that_cannot_be_opened_anew(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """Its network is silent from then on."""
    open_ = room._Run._open

    def fail(_: Any) -> Any:
        raise OSError(errno.ECONNABORTED, "Software caused connection abort")

    def only_once(run: Any, network: NetworkAddress) -> Any:
        if network in run._endpoints:
            run.loop.call_soon(run.loop.put_forward, 15.0)
            raise OSError(errno.EADDRNOTAVAIL, "Cannot assign requested address")
        return open_(run, network)

    monkeypatch.setattr(room._Endpoint, "receive", fail)
    monkeypatch.setattr(room._Run, "_open", only_once)

    async def main(_: Loop) -> None:
        assert not (await discover(networks=[A], port=port)).found

    with servers(own_site) as (port, _):
        run(main)
    assert "cannot open a socket on" in caplog.text


def test_socket_that_fails_when_it_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    send = room._Endpoint.send
    failed: list[object] = []

    def fail_once(endpoint: Any, data: bytes, port: int) -> None:
        if not failed:
            failed.append(endpoint)
            raise OSError(errno.EBADFD, "File descriptor in bad state")
        send(endpoint, data, port)

    monkeypatch.setattr(room._Endpoint, "send", fail_once)

    async def main(_: Loop) -> None:
        result = await discover(networks=[A], port=port)
        assert (result.found, result.unsent) == (True, ())

    with servers(own_site) as (port, _):
        run(main)
    assert failed


# --- Who asks, joins, gives up ---


def test_who_asks_while_others_wait_joins_them() -> None:
    everybody = threading.Event()

    def patient(asked: Asked) -> list[bytes]:
        assert everybody.wait(DEADLINE)
        return [reply(asked.run)]

    async def main(_: Loop) -> None:
        async with Discoverer(networks=[A], port=port) as discoverer:
            tasks = [asyncio.create_task(discoverer.get_directory_server_list()) for _ in range(3)]
            await asyncio.sleep(0)
            everybody.set()
            results = await asyncio.gather(*tasks)
        assert results[0] is results[1] is results[2]

    with servers(patient) as (port, requests):
        run(main)
    assert len(requests[0]) == 1


def test_what_was_found_is_remembered_until_forgotten() -> None:
    async def main(_: Loop) -> None:
        async with Discoverer(networks=[A], port=port) as discoverer:
            first = await discoverer.get_directory_server_list()
            again = await discoverer.get_directory_server_list()
            assert again.connected_networks == first.connected_networks
            assert (again.found, again.answers) == (True, ())
            assert len(requests[0]) == 1
            discoverer.forget()
            assert (await discoverer.get_directory_server_list()).answers
            assert len({asked.run for asked in requests[0]}) == 2

    with servers(own_site) as (port, requests):
        run(main)


def test_one_of_two_gives_up() -> None:
    one_left = threading.Event()

    def patient(asked: Asked) -> list[bytes]:
        assert one_left.wait(DEADLINE)
        return [reply(asked.run)]

    async def main(_: Loop) -> None:
        async with Discoverer(networks=[A], port=port) as discoverer:
            stays, goes = (asyncio.create_task(discoverer.get_directory_server_list()) for _ in range(2))
            await asyncio.sleep(0)
            goes.cancel()
            with pytest.raises(asyncio.CancelledError):
                await goes
            one_left.set()
            assert (await stays).found

    with servers(patient) as (port, _):
        run(main)


def test_a_watcher_that_fails_ends_the_run() -> None:
    """Its exception reaches the caller, and the next call sends a new request."""
    seen: list[Action] = []

    def watch(action: Action) -> None:
        seen.append(action)
        if len(seen) == 2:
            raise ArithmeticError("watching")

    async def main(_: Loop) -> None:
        async with Discoverer(networks=[A], port=port, watch=watch) as discoverer:
            with pytest.raises(ArithmeticError, match="watching"):
                await discoverer.get_directory_server_list()
            assert (await discoverer.get_directory_server_list()).found
        assert [type(action) for action in seen[2:4]] == [WaitUntil, Send]

    with servers(own_site) as (port, requests):
        run(main)
    assert len(requests[0]) == 1


def test_everybody_gives_up_and_asks_again() -> None:
    """Sockets are closed with the last who waits; a reply that was marked by then does not count."""
    heard: list[Action] = []

    async def main(_: Loop) -> None:
        discoverer = Discoverer(networks=[A], port=port, watch=watch)
        before = descriptors()
        task = asyncio.create_task(discoverer.get_directory_server_list())
        await second_wait.wait()
        assert descriptors() == before + 1
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert descriptors() == before
        heard.clear()
        task = asyncio.create_task(discoverer.get_directory_server_list())
        await asyncio.sleep(0)
        assert [type(action) for action in heard] == [WaitUntil, Send]
        discoverer.close()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert descriptors() == before

    def watch(action: Action) -> None:
        heard.append(action)
        if [type(each) for each in heard] == [WaitUntil, Send, WaitUntil]:
            second_wait.set()

    second_wait = asyncio.Event()
    with servers(other_site("far")) as (port, _):
        run(main)


def test_time_limit_of_the_caller() -> None:
    async def limited(loop: Loop) -> Discovery:
        async with asyncio.timeout(10):
            loop.call_soon(loop.put_forward, 11.0)
            return await discover(networks=[A], port=port)

    async def main(loop: Loop) -> None:
        before = descriptors()
        with pytest.raises(TimeoutError):
            await limited(loop)
        assert descriptors() == before

    with servers(silent) as (port, _):
        run(main)


@pytest.mark.parametrize("kind", [WaitUntil, Send, Discard, Deliver])
def test_watch_that_raises_is_heard_of(kind: type[Action]) -> None:
    """Wherever it is called from, who waits is told, and nothing stays open."""

    def watch(action: Action) -> None:
        if isinstance(action, kind):
            raise KeyError("a mistake")

    def noise_first(asked: Asked) -> list[bytes]:
        return [b"noise", reply(asked.run)]

    async def main(_: Loop) -> None:
        before = descriptors()
        with pytest.raises(KeyError, match="a mistake"):
            await discover(networks=[A], port=port, watch=watch)
        assert descriptors() == before

    with servers(noise_first) as (port, _):
        run(main)


@pytest.mark.parametrize("kind", [WaitUntil, Send, Discard, Deliver])
def test_watch_that_closes(kind: type[Action]) -> None:
    """Nothing is done any more, not even the action that it was told of."""

    def noise_first(asked: Asked) -> list[bytes]:
        return [b"noise", reply(asked.run)]

    async def main(_: Loop) -> None:
        def watch(action: Action) -> None:
            seen.append(action)
            if isinstance(action, kind):
                discoverer.close()

        before, seen = descriptors(), list[Action]()
        discoverer = Discoverer(networks=[A], port=port, watch=watch)
        with pytest.raises(asyncio.CancelledError):
            await discoverer.get_directory_server_list()
        assert isinstance(seen[-1], kind)
        assert descriptors() == before

    with servers(noise_first) as (port, _):
        run(main)


def test_watch_that_closes_and_raises() -> None:
    async def main(_: Loop) -> None:
        def watch(_: Action) -> None:
            discoverer.close()
            raise KeyError("a mistake")

        discoverer = Discoverer(networks=[A], port=port, watch=watch)
        # There is nothing to close yet.
        discoverer.close()
        with pytest.raises(asyncio.CancelledError):
            await discoverer.get_directory_server_list()

    with servers(silent) as (port, _):
        run(main)


def test_a_flood_does_not_stop_the_timer() -> None:
    """Datagrams are read in portions: what else is due has its turn between them."""
    turns: list[int] = []

    async def main(loop: Loop) -> None:
        discarded = 0

        def watch(action: Action) -> None:
            nonlocal discarded
            if isinstance(action, Discard):
                discarded += 1
                if discarded == 1:
                    loop.call_soon(lambda: turns.append(discarded))
                assert flooded.wait(DEADLINE)

        result = await discover(networks=[A], port=port, watch=watch)
        assert result.found

    flooded = threading.Event()

    def flood(asked: Asked) -> Iterator[bytes]:
        for _ in range(100):
            yield b"noise"
        flooded.set()
        yield reply(asked.run)

    with servers(flood) as (port, _):
        run(main)
    assert turns == [64]
