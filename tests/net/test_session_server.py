"""A server of sessions under pressure: peers that do not read, too many connections, errors of the system."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import socket
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any

import pytest

from msmqwire import net
from msmqwire.net.connection import MOST_UNSENT
from msmqwire.session import CloseReason, Event, MessageReceived, SessionClosed, Settings
from tests.net.session_wire import DEADLINE, Wire
from tests.net.test_sessions import GUID, Store, message, peer_of
from tests.reference.mqqb_session_packets import (
    ConnectionParameters,
    EstablishConnection,
    SessionAck,
    SessionHeader,
    UserMessage,
)
from tests.session.peers import incoming


async def until(condition: Any) -> None:
    """Wait until it holds."""
    async with asyncio.timeout(DEADLINE):
        while not condition():
            await asyncio.sleep(0.01)


async def session_that_is_not_read(server: net.SessionServer) -> tuple[socket.socket, Any]:
    """A peer whose acknowledgments wait, and its session: the server takes no more of it."""
    peer = socket.socket()
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
    peer.connect(("127.0.0.1", server.port))
    wire = Wire(peer)
    await asyncio.to_thread(wire.open_session, ConnectionParameters(window_size=1))
    (session,) = server._sessions.values()
    transport = session.link._connection.transport
    transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    peer.setblocking(False)
    number, rest = 0, b""
    async with asyncio.timeout(DEADLINE):
        while transport.get_write_buffer_size() <= MOST_UNSENT:
            while len(rest) < 1 << 14:
                number += 1
                rest += UserMessage(GUID.bytes_le, number).pack()
            with contextlib.suppress(BlockingIOError):
                rest = rest[peer.send(rest) :]
            await asyncio.sleep(0)
    # It now waits for the peer to read
    await asyncio.sleep(0.1)
    return peer, session


def test_a_peer_that_does_not_read_does_not_keep_the_server_from_closing() -> None:
    async def main() -> None:
        server = net.serve(Store(), port=0)
        await server.start()
        peer, _ = await session_that_is_not_read(server)
        with peer:
            async with asyncio.timeout(DEADLINE):
                await server.close()
            assert server.sessions == 0

    asyncio.run(main())


def test_the_session_of_a_peer_that_does_not_read_ends_with_its_timer() -> None:
    """Else it would have its place for as long as the peer likes."""

    async def main() -> None:
        async with net.serve(Store(), port=0) as server:
            peer, session = await session_that_is_not_read(server)
            with peer:
                loop = asyncio.get_running_loop()
                for timer in session.acceptor.timers:
                    session.acceptor.timers.start(timer, 0, loop.time())
                session.acceptor.session_active = False
                session.link._schedule()
                await until(lambda: not server.sessions)

    asyncio.run(main())


def test_an_error_of_the_system_in_a_handler_is_the_handlers(caplog: pytest.LogCaptureFixture) -> None:
    """It is logged as such, and not taken for one of the connection."""

    async def main() -> None:
        async with (
            net.serve(Store(failures=1), port=0) as server,
            net.connect("127.0.0.1", server.port) as client,
        ):
            await client.send(message(recoverable=True))

    with caplog.at_level(logging.ERROR, "msmqwire.net"):
        asyncio.run(main())
    (record,) = caplog.records
    assert "could not be stored" in record.message
    assert record.exc_info is not None
    assert str(record.exc_info[1]) == "the disk is full"


def test_a_loop_that_ends_while_messages_are_stored_reports_no_error(caplog: pytest.LogCaptureFixture) -> None:
    """As at a second Ctrl-C, which does not wait for the handler."""

    async def main() -> None:
        storing = asyncio.Event()

        async def store(_: Sequence[MessageReceived]) -> None:
            storing.set()
            await asyncio.Event().wait()

        server = net.serve(store, port=0)
        await server.start()
        with socket.create_connection(("127.0.0.1", server.port)) as peer:
            wire = Wire(peer)
            await asyncio.to_thread(wire.open_session, ConnectionParameters(window_size=1))
            peer.sendall(UserMessage(GUID.bytes_le, 1).pack())
            async with asyncio.timeout(DEADLINE):
                await storing.wait()

    asyncio.run(main())
    assert caplog.records == []


def test_an_error_of_the_system_in_the_handler_of_a_client_is_raised() -> None:
    async def fail(_: Sequence[MessageReceived]) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    async def main() -> None:
        async with net.serve(Store(), port=0) as server:
            client = net.connect("127.0.0.1", server.port, handler=fail)
            await client.send(message(recoverable=True))
            await client.acknowledged()
            (session,) = server._sessions.values()
            session.acceptor.send(message(), asyncio.get_running_loop().time())
            session.link.flush_soon()
            assert client._task is not None
            await until(client._task.done)
            with pytest.raises(OSError, match="No space left on device"):
                await client.send(message())
            await client.close()

    asyncio.run(main())


async def call_in_handler_of_client(act: Callable[[net.SessionClient], Awaitable[object]]) -> None:
    """Leave the context of a client whose handler, called after all messages of the client are acknowledged, acts."""
    called = asyncio.Event()

    async def handle(_: Sequence[MessageReceived]) -> None:
        called.set()
        await act(client)

    async with (
        asyncio.timeout(DEADLINE),
        net.serve(Store(), port=0) as server,
        net.connect("127.0.0.1", server.port, handler=handle) as client,
    ):
        await client.send(message(recoverable=True))
        await client.acknowledged()
        (session,) = server._sessions.values()
        session.acceptor.send(message(), asyncio.get_running_loop().time())
        session.link.flush_soon()
        await called.wait()


def test_leaving_a_client_raises_the_error_of_its_handler() -> None:
    async def fail(_: net.SessionClient) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(OSError, match="No space left on device"):
        asyncio.run(call_in_handler_of_client(fail))


async def send_and_wait(client: net.SessionClient) -> None:
    await client.send(message(recoverable=True))
    await client.acknowledged()


@pytest.mark.parametrize("act", [net.SessionClient.close, send_and_wait])
def test_the_handler_of_a_client_cannot_wait_for_itself(act: Callable[[net.SessionClient], Awaitable[object]]) -> None:
    with pytest.raises(RuntimeError, match="until the handler returns: call it in another task"):
        asyncio.run(call_in_handler_of_client(act))


def test_the_handler_of_a_server_cannot_wait_for_itself() -> None:
    errors: list[str] = []

    async def main() -> None:
        async def store(_: Sequence[MessageReceived]) -> None:
            try:
                await server.close()
            except RuntimeError as error:
                errors.append(str(error))

        async with (
            asyncio.timeout(DEADLINE),
            net.serve(store, port=0) as server,
            net.connect("127.0.0.1", server.port) as client,
        ):
            await client.send(message(recoverable=True))

    asyncio.run(main())
    assert errors == ["close() waits until the handler returns: call it in another task"]


def test_a_server_that_listens_is_not_started_again() -> None:
    async def main() -> None:
        async with net.serve(Store(), port=0) as server:
            port = server.port
            with pytest.raises(RuntimeError, match="listens already"):
                await server.start()
            assert server.port == port
        async with server:  # after close it is
            assert server.addresses

    asyncio.run(main())


def test_connections_that_are_refused_make_no_room() -> None:
    """Each of them would else be replaced by a session beyond the limit."""

    async def main() -> None:
        async with net.serve(Store(), port=0, max_sessions=2) as server:
            peers = [await peer_of(server) for _ in range(2)]
            for peer in peers:
                await peer.initiate()
            beyond = [await peer_of(server) for _ in range(10)]
            await until(lambda: 3 <= server.sessions <= 4)
            assert sum(session.acceptor.is_open for session in server._sessions.values()) == 2
            assert all(session.is_refused for session in server._sessions.values() if not session.acceptor.is_open)
            for peer in (*peers, *beyond):
                peer.writer.close()

    asyncio.run(main())


def test_the_oldest_refused_connection_gives_way() -> None:
    """64 of them wait for their answer, which comes when they ask for a session."""

    async def main() -> None:
        async with net.serve(Store(), port=0, max_sessions_per_address=1) as server:
            first = await peer_of(server)
            await first.initiate()
            beyond = [await peer_of(server) for _ in range(70)]
            await until(lambda: sum(session.is_aborted for session in server._sessions.values()) == 0)
            assert server.sessions == 1 + 64
            assert await beyond[0].packet() is None
            beyond[-1].writer.write(EstablishConnection(GUID.bytes_le, bytes(16), 7).pack())
            response = await beyond[-1].packet()
            assert isinstance(response, EstablishConnection)
            assert response.refused
            for peer in (first, *beyond):
                peer.writer.close()

    asyncio.run(main())


def test_no_timer_expires_over_bytes_that_have_come() -> None:
    """A handler took longer than a peer has for the initialization of its session, whose packets waited for it."""

    packets = EstablishConnection(GUID.bytes_le, bytes(16), 7).pack() + ConnectionParameters().pack()

    async def main() -> None:
        async def store(received: Sequence[MessageReceived]) -> None:
            second.writer.write(packets)
            await asyncio.sleep(1.0)

        settings = Settings(initialization_timeout=0.5)
        async with net.serve(store, port=0, settings=settings) as server:
            first, second = await peer_of(server), await peer_of(server)
            await first.initiate()
            first.writer.write(incoming(1))
            assert isinstance(await second.packet(), EstablishConnection)
            assert isinstance(await second.packet(), ConnectionParameters)
            for peer in (first, second):
                peer.writer.close()

    asyncio.run(main())


def test_an_acknowledgment_is_sent_while_later_bytes_wait() -> None:
    """The handler stores messages of another session, and a timer that would close this one has passed."""

    async def main() -> None:
        begins, ends = asyncio.Event(), asyncio.Event()
        stored: list[MessageReceived] = []

        async def store(received: Sequence[MessageReceived]) -> None:
            stored.extend(received)
            if len(stored) == 2:
                begins.set()
                await ends.wait()

        async with net.serve(store, port=0, settings=Settings(cleanup_timeout=0.3)) as server:
            first, second = await peer_of(server), await peer_of(server)
            await first.initiate()
            await second.initiate()
            first.writer.write(incoming(1, recoverable=True))
            await until(lambda: stored)
            second.writer.write(incoming(2))
            await begins.wait()
            first.writer.write(incoming(3, recoverable=True))
            try:
                async with asyncio.timeout(5):
                    assert await first.packet() == SessionAck(SessionHeader(1, 1, 1))
            finally:
                ends.set()
            for peer in (first, second):
                peer.writer.close()

    asyncio.run(main())


def test_incomplete_packets_of_all_sessions_are_limited() -> None:
    """The session with the most bytes of one ends; the bytes of those that are complete, or gone, do not count."""
    store, half = Store(), 2 << 20

    async def main() -> None:
        async with net.serve(store, port=0, max_incomplete_bytes=3 * half) as server:
            peers = [await peer_of(server) for _ in range(3)]
            packets = [UserMessage(GUID.bytes_le, number, bytes(2 * half - 1000)).pack() for number in range(3)]
            for peer in peers:
                await peer.initiate()
            sizes = [half // 2, half + half // 2, half // 2]
            for peer, packet, size in zip(peers, packets, sizes, strict=True):
                peer.writer.write(packet[:size])
            await until(lambda: server._held_bytes == sum(sizes))
            peers[0].writer.write(packets[0][sizes[0] : sizes[0] + half])
            assert await peers[1].packet() is None
            peers[0].writer.write(packets[0][sizes[0] + half :])
            await until(lambda: len(store.bodies) == 1)
            peers[2].writer.write(packets[2][sizes[2] :])
            await until(lambda: len(store.bodies) == 2)
            assert (server.sessions, server._held_bytes) == (2, 0)
            peers[0].writer.write(packets[1][:half])
            await until(lambda: server._held_bytes == half)
            peers[0].writer.close()
            await until(lambda: server.sessions == 1)
            assert server._held_bytes == 0

    asyncio.run(main())


def test_errors_in_accepting_end_nothing(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """One that waits makes room; the error is logged once."""
    store = Store()

    async def main() -> None:
        async with net.serve(store, port=0) as server:
            silent = await peer_of(server)
            await until(lambda: server.sessions == 1)
            loop = asyncio.get_running_loop()
            accept, errors = loop.sock_accept, [OSError(errno.EMFILE, "Too many open files")] * 2

            async def failing(listening: socket.socket) -> Any:
                connection = await accept(listening)
                if errors:
                    connection[0].close()
                    raise errors.pop()
                return connection

            monkeypatch.setattr(loop, "sock_accept", failing)
            await peer_of(server)  # by the call that waited already
            async with net.connect("127.0.0.1", server.port) as client:
                await client.send(message(b"a", recoverable=True))
            assert not errors
            assert await silent.packet() is None

    asyncio.run(main())
    assert store.bodies == [b"a"]
    (record,) = [each for each in caplog.records if each.name == "msmqwire.net.session_server"]
    assert record.message == "a connection cannot be accepted: EMFILE: Too many open files"


def test_a_connection_that_is_reset_at_once_has_an_address() -> None:
    """In what is said of it, and in the limits."""
    closed: list[tuple[str, str]] = []

    def note(event: Event, address: str) -> None:
        assert isinstance(event, SessionClosed)
        closed.append((event.reason, address))

    async def main() -> None:
        async with net.serve(Store(), port=0, watch=note) as server:
            wire = Wire(socket.create_connection(("127.0.0.1", server.port)))
            wire.write(b"GET / HTTP/1.1")
            wire.reset()
            await until(lambda: closed)

    asyncio.run(main())
    ((reason, address),) = closed
    assert address == "127.0.0.1"
    assert reason in (CloseReason.MALFORMED_PACKET, CloseReason.CONNECTION_LOST)


def test_closing_that_is_cancelled_ends_the_sessions(caplog: pytest.LogCaptureFixture) -> None:
    """As the second Ctrl-C does; the port and the sessions are not kept, and asyncio logs nothing."""

    async def main() -> None:
        server = net.serve(Store(), port=0)
        await server.start()
        port = server.port
        peer = await peer_of(server)
        await peer.initiate()
        closing = asyncio.create_task(server.close())
        async with server._lock:  # a handler stores messages
            await asyncio.wait([closing, *server._accepting], return_when=asyncio.FIRST_COMPLETED)
            closing.cancel()
            await asyncio.wait([closing])
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection(("127.0.0.1", port))
        await until(lambda: not server.sessions)
        assert await peer.packet() is None
        peer.writer.close()

    async def run_until_cancelled() -> None:
        server = net.serve(Store(), port=0)
        await server.start()
        await (await peer_of(server)).initiate()

    asyncio.run(main())
    asyncio.run(run_until_cancelled())
    assert not caplog.records


def test_connection_that_comes_when_the_server_closes(caplog: pytest.LogCaptureFixture) -> None:
    """It is ended, and asyncio logs nothing."""

    async def main() -> None:
        async with net.serve(Store(), port=0) as server:
            await asyncio.sleep(0.01)
            closing = asyncio.create_task(server.close())
            with socket.create_connection(("127.0.0.1", server.port)) as peer:
                await closing
                peer.settimeout(DEADLINE)
                with contextlib.suppress(ConnectionResetError):
                    assert peer.recv(1) == b""

    asyncio.run(main())
    assert not caplog.records


def test_a_handler_that_is_not_a_coroutine_function() -> None:
    """It would run for each message again and again, and acknowledge none."""
    with pytest.raises(TypeError, match="async def"):
        net.serve(lambda received: None, port=0)  # type: ignore[arg-type, return-value]

    class Handler:
        async def __call__(self, received: object) -> None:
            del received

    net.serve(Handler(), port=0)
    net.serve(partial(Handler.__call__, Handler()), port=0)
