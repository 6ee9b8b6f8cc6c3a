"""Sessions over real sockets: client and server of this package, and a peer that is a socket."""

from __future__ import annotations

import asyncio
import socket
import uuid
from collections.abc import Awaitable, Callable, Sequence

import pytest

from msmqwire import mqqb, net
from msmqwire.errors import SessionError
from msmqwire.net.host_addresses import network_of
from msmqwire.session import CloseReason, Event, MessageLimit, MessageReceived, SessionClosed, Settings
from tests.net import clock
from tests.net.session_wire import free_port
from tests.reference.mqqb_session_packets import (
    ConnectionParameters,
    EstablishConnection,
    Ping,
    SessionAck,
    SessionHeader,
    UserMessage,
    first_packet,
    read,
    read_ping,
)
from tests.session.peers import incoming

QUEUE = r"DIRECT=TCP:127.0.0.1\private$\orders"
GUID = uuid.UUID(int=5)
Handler = Callable[[Sequence[MessageReceived]], Awaitable[None]]


def message(body: bytes = b"x", *, recoverable: bool = False) -> mqqb.UserMessage:
    return mqqb.UserMessage(
        destination_queue=QUEUE, body=body, delivery_mode="recoverable" if recoverable else "express"
    )


class Store:
    """Keeps bodies; fails for the first ``failures`` calls."""

    def __init__(self, failures: int = 0) -> None:
        self.bodies: list[bytes] = []
        self._failures = failures

    async def __call__(self, received: Sequence[MessageReceived]) -> None:
        await asyncio.sleep(0)
        if self._failures:
            self._failures -= 1
            raise OSError("the disk is full")
        self.bodies += [bytes(each.message.body) for each in received]


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
@pytest.mark.parametrize("recoverable", [False, True])
def test_messages_arrive_in_order(host: str, recoverable: bool) -> None:
    store = Store()

    async def main() -> None:
        async with net.serve(store, host, port=0) as server, net.connect(host, server.port) as client:
            for number in range(192):
                await client.send(message(b"%d" % number, recoverable=recoverable))

    asyncio.run(main())
    assert store.bodies == [b"%d" % number for number in range(192)]


def test_large_messages_in_both_directions() -> None:
    """Neither side stops reading while it writes."""
    bodies = [bytes([number]) * (1 << 20) for number in range(20)]
    here, there = Store(), Store()

    async def main() -> None:
        async with net.serve(there, port=0) as server, net.connect("127.0.0.1", server.port, handler=here) as client:
            await client.send(message(b"first", recoverable=True))
            await client.acknowledged()
            (session,) = server._sessions.values()
            for body in bodies:
                session.acceptor.send(message(body, recoverable=True), asyncio.get_running_loop().time())
            session.link.flush_soon()
            for body in bodies:
                await client.send(message(body, recoverable=True))
            await client.acknowledged()
            while session.acceptor.outgoing.awaiting:
                await asyncio.sleep(0.01)

    asyncio.run(main())
    assert here.bodies == bodies
    assert there.bodies == [b"first", *bodies]


def test_a_handler_that_fails_gets_the_messages_again() -> None:
    store = Store(failures=2)

    async def main() -> None:
        async with net.serve(store, port=0) as server, net.connect("127.0.0.1", server.port) as client:
            await client.send(message(b"a", recoverable=True))
            await client.send(message(b"b"))

    asyncio.run(main())
    assert store.bodies == [b"a", b"b"]


def test_messages_that_could_not_be_stored_do_not_count_towards_the_limit() -> None:
    store = Store(failures=1)
    limit = MessageLimit(2)

    async def main() -> None:
        async with (
            net.serve(store, port=0, limit=limit) as server,
            net.connect("127.0.0.1", server.port) as client,
            asyncio.timeout(30),
        ):
            for body in (b"a", b"b"):
                await client.send(message(body, recoverable=True))
            while len(store.bodies) < 2:
                await asyncio.sleep(0.01)
            await server.close()

    asyncio.run(main())
    assert store.bodies == [b"a", b"b"]
    assert limit.remaining == 0


def test_refused_for_its_server_guid() -> None:
    async def main() -> None:
        hop = net.NextHop("127.0.0.1", uuid.UUID(int=9))
        async with net.serve(Store(), port=0, identifier=GUID) as server, net.connect([hop], server.port) as client:
            await client.send(message())

    with pytest.raises(SessionError, match=f"queue manager {GUID} refused"):
        asyncio.run(main())


def test_next_hops_are_tried_in_turn() -> None:
    store = Store()

    async def main() -> None:
        async with net.serve(store, "127.0.0.1", port=0, identifier=GUID) as server:
            hops = [net.NextHop("127.0.0.9"), net.NextHop("127.0.0.1", GUID)]
            async with net.connect(hops, server.port) as client:
                await client.send(message(b"a", recoverable=True))
                await client.acknowledged()
                assert "127.0.0.9" in client.failure

    asyncio.run(main())
    assert store.bodies == [b"a"]


@pytest.mark.long
def test_a_session_after_an_idle_one_begins_with_the_first_next_hop() -> None:
    """3.1.5.2.1: the next one is for sessions that failed."""
    first, second = Store(), Store()

    async def main() -> None:
        async with (
            net.serve(first, "127.0.0.1", port=0) as server,
            net.serve(second, "127.0.0.2", port=server.port),
            net.connect(
                [net.NextHop("127.0.0.1"), net.NextHop("127.0.0.2")],
                server.port,
                settings=Settings(cleanup_timeout=1),
            ) as client,
        ):
            for body in (b"a", b"b"):
                async with asyncio.timeout(60):
                    while client.is_open:
                        await asyncio.sleep(0.05)
                await client.send(message(body, recoverable=True))
                await client.acknowledged()

    asyncio.run(main())
    assert (first.bodies, second.bodies) == ([b"a", b"b"], [])


def test_ping_before_the_first_connection() -> None:
    """3.1.5.2.2: without an answer the Session Retry Connect Timer runs, and its connection is made without a ping."""
    store = Store()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        silent.bind(("127.0.0.1", 0))
        ping_port = silent.getsockname()[1]

        async def main() -> None:
            async with net.serve(store, port=0, identifier=GUID) as server:
                async with net.connect("127.0.0.1", server.port, ping_port=ping_port) as client:
                    await client.send(message(b"a", recoverable=True))
                    await client.acknowledged()
                    assert "does not accept a session" in client.failure
                silent.setblocking(False)
                assert len(silent.recv(100)) == 24
                with pytest.raises(BlockingIOError):
                    silent.recv(100)

        asyncio.run(main())
    assert store.bodies == [b"a"]


def test_a_session_without_a_message() -> None:
    """``open`` gives the address of this computer; the handler gets messages, not acknowledgments of transactions."""
    here = Store()

    async def main() -> None:
        async with (
            net.serve(Store(), port=0) as server,
            net.connect("127.0.0.1", server.port, handler=here) as client,
        ):
            assert await client.open() == "127.0.0.1"
            assert await client.open() == "127.0.0.1"
            (session,) = server._sessions.values()
            for queue in (r"DIRECT=OS:a\private$\Order_Queue$", rf"PRIVATE={client.identifier}\4", QUEUE):
                sent = mqqb.UserMessage(
                    destination_queue=queue,
                    queue_manager_address=client.identifier if queue.startswith("PRIVATE") else uuid.UUID(int=0),
                    body=queue.encode(),
                )
                session.acceptor.send(sent, asyncio.get_running_loop().time())
            session.link.flush_soon()
            while not here.bodies:
                await asyncio.sleep(0.01)

    asyncio.run(main())
    assert here.bodies == [QUEUE.encode()]


def test_a_session_that_is_refused_without_a_message() -> None:
    async def main() -> None:
        async with net.serve(Store(), port=0, identifier=GUID) as server:
            hop = net.NextHop("127.0.0.1", uuid.UUID(int=6))
            client = net.connect([hop], server.port)
            with pytest.raises(SessionError, match="refused the session"):
                await client.open()
            await client.close()

    asyncio.run(main())


def test_ping_that_is_answered() -> None:
    store = Store()
    ping_port = free_port()

    async def main() -> None:
        async with net.serve(store, port=0, identifier=GUID) as server:
            await server.answer_pings(ping_port)
            assert await net.ping("127.0.0.1", ping_port, identifier=GUID)
            assert await net.ping("localhost", ping_port, identifier=GUID), "also where ::1 comes first"
            async with net.connect("127.0.0.1", server.port, ping_port=ping_port) as client:
                await client.send(message(b"a", recoverable=True))
            assert client.failure == "closed by this side"

    asyncio.run(main())
    assert store.bodies == [b"a"]


def test_a_wait_for_an_acknowledgment_ends(caplog: pytest.LogCaptureFixture) -> None:
    """Each connection that fails has a line in the log, and the error has the reason of the last."""
    port = free_port()

    async def main() -> None:
        async with net.connect("127.0.0.1", port, timeout=0.5) as client:
            await client.send(message(b"a"))

    refused = f"cannot connect to 127.0.0.1 port {port}: Connection refused"
    with pytest.raises(SessionError, match=f"^no acknowledgment within 0.5 s: {refused}$"):
        asyncio.run(main())
    assert len(caplog.messages) > 1
    assert set(caplog.messages) == {refused}
    with pytest.raises(ValueError, match="timeout is 0: not above 0"):
        net.connect("127.0.0.1", port, timeout=0)


def test_an_acknowledgment_begins_the_timeout_anew() -> None:
    """A peer with a window of one takes six seconds for each of three messages."""
    store = Store()

    async def main(loop: clock.Loop) -> None:
        async def store_slowly(received: Sequence[MessageReceived]) -> None:
            await store(received)
            loop.put_forward(6.0)

        async with (
            net.serve(store_slowly, port=0, settings=Settings(window_size=1)) as server,
            net.connect("127.0.0.1", server.port, timeout=10.0) as client,
        ):
            for body in (b"a", b"b", b"c"):
                await client.send(message(body))

    clock.run(main)
    assert store.bodies == [b"a", b"b", b"c"]


class Peer:
    """A peer that is a socket and the packets of the reference."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self._data = b""

    async def packet(self) -> object:
        while True:
            packet, self._data = first_packet(self._data)
            if packet:
                return read(packet)
            data = await asyncio.wait_for(self.reader.read(65536), 10)
            if not data:
                return None
            self._data += data

    async def initiate(self) -> None:
        self.writer.write(EstablishConnection(GUID.bytes_le, bytes(16)).pack())
        assert isinstance(await self.packet(), EstablishConnection)
        self.writer.write(ConnectionParameters().pack())
        assert isinstance(await self.packet(), ConnectionParameters)


async def peer_of(server: net.SessionServer) -> Peer:
    return Peer(*await asyncio.open_connection("127.0.0.1", server.port))


def test_leaving_acknowledges_what_is_owed() -> None:
    """S18, also while the peer sends more."""

    async def main() -> None:
        store = Store()
        server = net.serve(store, port=0)
        await server.start()
        peer = await peer_of(server)
        await peer.initiate()
        peer.writer.write(incoming(1, recoverable=True))
        while not store.bodies:
            await asyncio.sleep(0.01)
        closing = asyncio.create_task(server.close())
        peer.writer.write(incoming(2, recoverable=True))
        assert await peer.packet() == SessionAck(SessionHeader(1, 1, 1))
        assert await peer.packet() is None
        peer.writer.close()
        await closing
        assert server.sessions == 0

    asyncio.run(main())


def test_a_message_is_acknowledged_after_it_is_stored() -> None:
    async def main() -> None:
        stored = asyncio.Event()

        async def store(received: Sequence[MessageReceived]) -> None:
            await stored.wait()

        async with net.serve(store, port=0, settings=Settings(window_size=1)) as server:
            peer = await peer_of(server)
            await peer.initiate()
            peer.writer.write(incoming(1, recoverable=True))
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(peer.reader.read(1), 0.8)
            stored.set()
            assert await peer.packet() == SessionAck(SessionHeader(1, 1, 1, window_size=1))
            peer.writer.close()

    asyncio.run(main())


def test_garbage_closes_one_session_only() -> None:
    events: list[Event] = []
    store = Store()

    async def main() -> None:
        async with net.serve(store, port=0, watch=lambda event, _: events.append(event)) as server:
            peer = await peer_of(server)
            peer.writer.write(b"GET / HTTP/1.1\r\n\r\n")
            assert await peer.packet() is None
            peer.writer.close()
            async with net.connect("127.0.0.1", server.port) as client:
                await client.send(message(b"a", recoverable=True))

    asyncio.run(main())
    assert store.bodies == [b"a"]
    assert isinstance(events[0], SessionClosed)
    assert events[0].reason is CloseReason.MALFORMED_PACKET


def test_silent_connections_give_way() -> None:
    store = Store()

    async def main() -> None:
        async with net.serve(store, port=0, max_sessions_per_address=3) as server:
            silent = [await peer_of(server) for _ in range(5)]
            async with net.connect("127.0.0.1", server.port) as client:
                await client.send(message(b"a", recoverable=True))
                await client.acknowledged()
                assert server.sessions <= 3
            for peer in silent:
                peer.writer.close()

    asyncio.run(main())
    assert store.bodies == [b"a"]


def test_too_many_sessions_of_an_address_are_refused() -> None:
    async def main() -> None:
        async with net.serve(Store(), port=0, max_sessions_per_address=2) as server:
            peers = [await peer_of(server) for _ in range(2)]
            for peer in peers:
                await peer.initiate()
            assert server._is_full("127.0.0.1")
            client = net.connect("127.0.0.1", server.port)
            await client.send(message())
            with pytest.raises(SessionError, match="refused the session"):
                await client.acknowledged()
            await client.close()
            for peer in peers:
                peer.writer.close()

    asyncio.run(main())


def test_networks_count_as_addresses() -> None:
    assert network_of("10.0.0.1") == "10.0.0.1"
    assert network_of("fe80::1%eth0") == network_of("fe80::2")
    assert network_of("2001:db8::1") != network_of("2001:db8:0:1::1")
    assert network_of("::ffff:10.0.0.1") == "10.0.0.1"


def test_ping_responders_do_not_answer_each_other() -> None:
    """An answer has the form of a request: one datagram with a forged source would keep two servers busy forever."""
    request = Ping(0, 1, GUID.bytes_le).pack()

    async def main() -> bytes:
        loop = asyncio.get_running_loop()
        async with net.serve(Store(), port=0, identifier=GUID) as server:
            await server.answer_pings(0)
            target = server._pings[0].address
            with (
                socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other_server,
                socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client,
            ):
                other_server.bind(("127.0.0.2", target[1]))
                for sender in (other_server, client):
                    sender.setblocking(False)
                    sender.sendto(request, target)
                answer = await asyncio.wait_for(loop.sock_recv(client, 100), 30)
                # Datagrams are answered in turn, so that of the other server has had its turn
                with pytest.raises(BlockingIOError):
                    other_server.recv(100)
                return answer

    assert len(asyncio.run(main())) == len(request)


@pytest.mark.parametrize(
    "data", [b"x" * 24, Ping(0, 1, GUID.bytes_le, signature=1).pack(), Ping(1, 7, GUID.bytes_le).pack()]
)
def test_ping_responder(data: bytes) -> None:
    async def main() -> bytes:
        server = net.serve(Store(), port=0, identifier=GUID)
        await server.start()
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
            client.bind(("127.0.0.1", 0))
            client.setblocking(False)
            await server.answer_pings(0)
            target = server._pings[0].address
            client.sendto(data, target)
            try:
                return await asyncio.wait_for(asyncio.get_running_loop().sock_recv(client, 100), 0.5)
            except TimeoutError:
                return b""
            finally:
                await server.close()

    answer = asyncio.run(main())
    request = read_ping(data)
    assert answer == (b"" if request is None else request.answer(GUID.bytes_le).pack())


def test_expired_messages_are_reported_once() -> None:
    store = Store()
    expired = mqqb.UserMessage(destination_queue=QUEUE, sent_time=1, time_to_reach_queue=1)

    async def main() -> None:
        async with net.serve(store, port=0) as server, net.connect("127.0.0.1", server.port) as client:
            await client.send(expired)
            with pytest.raises(SessionError, match="1 message expired"):
                await client.acknowledged()
            await client.send(message(b"a", recoverable=True))  # an express one is acknowledged after ten seconds
            await client.acknowledged()
            await client.send(expired)  # now the session is open
            with pytest.raises(SessionError, match="1 message expired"):
                await client.acknowledged()

    asyncio.run(main())
    assert store.bodies == [b"a"]


def test_messages_to_a_host_that_refuses_connections_expire() -> None:
    async def main() -> None:
        async with asyncio.timeout(30), net.connect("127.0.0.1", free_port()) as client:
            await client.send(mqqb.UserMessage(destination_queue=QUEUE, time_to_reach_queue=0))
            with pytest.raises(SessionError, match="1 message expired"):
                await client.acknowledged()

    asyncio.run(main())


def test_closed_client() -> None:
    async def main() -> None:
        client = net.connect("127.0.0.1", 1)
        await client.send(message())
        await client.close()
        assert client.unacknowledged == 1
        with pytest.raises(SessionError, match="closed"):
            await client.send(message())

    asyncio.run(main())


def test_a_client_waits_while_two_windows_are_not_acknowledged() -> None:
    async def main() -> None:
        client = net.connect("127.0.0.1", free_port(), settings=Settings(window_size=2))
        for _ in range(4):
            await client.send(message())
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await client.send(message())
        assert client.unacknowledged == 4
        await client.close()

    asyncio.run(main())


def test_messages_for_a_client_without_a_handler_are_disregarded() -> None:
    store = Store()

    async def main() -> None:
        async with net.serve(store, port=0) as server, net.connect("127.0.0.1", server.port) as client:
            await client.send(message(recoverable=True))
            await client.acknowledged()
            (session,) = server._sessions.values()
            session.acceptor.send(message(recoverable=True), asyncio.get_running_loop().time())
            session.link.flush_soon()
            while session.acceptor.outgoing.awaiting or session.acceptor.outgoing.waiting:
                await asyncio.sleep(0.01)

    asyncio.run(main())


def test_parameters_are_checked() -> None:
    with pytest.raises(ValueError, match="port is 0"):
        net.connect("127.0.0.1", 0)
    with pytest.raises(ValueError, match="no next hop"):
        net.connect([])
    for host in ("", [net.NextHop("127.0.0.1"), net.NextHop("")]):  # of an address of this computer, like 0.0.0.0
        with pytest.raises(ValueError, match="name of a host is empty"):
            net.connect(host)
    with pytest.raises(ValueError, match="host names no address"):
        net.serve(Store(), [])
    with pytest.raises(ValueError, match="port is 65536"):
        net.serve(Store(), port=65536)
    with pytest.raises(ValueError, match="at least 1"):
        net.serve(Store(), max_sessions=0)
    with pytest.raises(ValueError, match="max_incomplete_bytes is 1"):
        net.serve(Store(), max_incomplete_bytes=1)


def test_reference_message_is_read() -> None:
    """The peer of these tests writes what the package reads."""
    assert mqqb.decode(UserMessage(GUID.bytes_le, 1, b"x").pack(), strict=True).kind == "user_message"
