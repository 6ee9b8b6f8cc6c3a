"""Receives messages over TCP with asyncio: the connections of ``Acceptor``."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import logging
import socket
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from types import TracebackType
from typing import Self
from uuid import UUID, uuid4

from msmqwire import mqqb
from msmqwire.net.connection import MOST_WAITING, Connection, read_buffer
from msmqwire.net.host_addresses import address_of, addresses_of, bind_all, network_of
from msmqwire.net.inbox import Inbox
from msmqwire.net.ping import PingServer
from msmqwire.net.session_link import Link, reason_of
from msmqwire.net.socket_errors import error_name
from msmqwire.session import (
    LARGEST_PACKET,
    Acceptor,
    CloseReason,
    Event,
    Incoming,
    MessageDisregarded,
    MessageIDHistory,
    MessageLimit,
    MessageReceived,
    SessionClosed,
    Settings,
    Store,
)
from msmqwire.wire.ports import SESSION_PORT

_LOG = logging.getLogger(__name__)
_BACKLOG = 1024
_ACCEPT_PAUSE = 0.1  # seconds after a connection could not be accepted
_LEAST_HELD = LARGEST_PACKET + 2 * MOST_WAITING  # of one session
_MOST_REFUSED = 64  # connections that wait for their refusal; one more ends the oldest of them


class SessionServer:
    """Accepts sessions and passes their messages to a handler; listens on entering its context.

    Parameters
    ----------
    handler : callable
        A coroutine function that stores messages. They are acknowledged when it returns; if it raises an exception,
        the session is closed and its peer sends them again. It is never called twice at once.
    host : str or sequence of str
        The addresses to listen on, by address or by name; ``""`` is every address of this computer.
    port : int
        The TCP port; 0 for a free one.
    identifier : uuid.UUID, optional
        The identifier of this queue manager; by default a new one.
    settings : Settings, optional
    history : MessageIDHistory, optional
        The messages received earlier, by which duplicates are recognised.
    accepts : callable, optional
        Whether a message is for a queue of this queue manager; others are acknowledged and disregarded.
    transactional : callable, optional
        Whether the queue of a message is transactional; None, as for all by default, takes both kinds of messages.
        Transactional messages are passed on in order, at least once.
    limit : MessageLimit, optional
        After how many messages no more are taken.
    store : Store, optional
        Keeps messages until the handler has returned, and what has to outlive the process: the identifier, the order
        and the history of messages, and acknowledgments. Messages are acknowledged when they are in the store. The
        handler gets them one page after the other, in the order of the store, and if it raises an exception, the same
        page again after some seconds; a process that ended before it returned is the only other reason for messages to
        come twice. Their tokens tell.
    max_sessions, max_sessions_per_address : int
        Further connections take the place of the longest waiting one that has not initialized its session; if there is
        none, they are refused. An IPv6 address counts with its network of 64 bits.
    max_incomplete_bytes : int
        Bytes of all sessions that came and are not handled: of incomplete packets, and those that wait. Beyond it the
        session with the most of them is ended.
    watch : callable, optional
        Called with each event, and the address of the peer.

    Attributes
    ----------
    sessions : int
        The number of connections.
    ended_for_memory : int
        The number of sessions that ``max_incomplete_bytes`` ended.

    Examples
    --------
    >>> import asyncio
    >>> from msmqwire import net
    >>> async def store(received):
    ...     with open("messages.txt", "a") as file:
    ...         file.writelines(f"{each.message.label}\\n" for each in received)
    >>> async def main():
    ...     async with net.serve(store, "127.0.0.1", port=0) as server:
    ...         await asyncio.sleep(0.1)  # in place of asyncio.Event().wait(), which serves until a signal
    ...         print(server.sessions)
    >>> asyncio.run(main())
    0
    """

    def __init__(
        self,
        handler: Callable[[Sequence[MessageReceived]], Awaitable[None]],
        host: str | Sequence[str] = "127.0.0.1",
        port: int = SESSION_PORT,
        *,
        identifier: UUID | None = None,
        settings: Settings | None = None,
        history: MessageIDHistory | None = None,
        accepts: Callable[[mqqb.UserMessage], bool] | None = None,
        transactional: Callable[[mqqb.UserMessage], bool | None] | None = None,
        limit: MessageLimit | None = None,
        store: Store | None = None,
        max_sessions: int = 4096,
        max_sessions_per_address: int = 1024,
        max_incomplete_bytes: int = 512 << 20,
        watch: Callable[[Event, str], None] | None = None,
    ) -> None:
        if not 0 <= port < 65536:
            raise ValueError(f"port is {port}: not from 0 to 65535")
        if not _is_coroutine_function(handler):
            raise TypeError("handler is not a coroutine function: write it with async def")
        hosts = [host] if isinstance(host, str) else list(host)
        if not hosts:
            raise ValueError("host names no address")
        if min(max_sessions, max_sessions_per_address) < 1:
            raise ValueError("max_sessions and max_sessions_per_address are at least 1")
        if max_incomplete_bytes < _LEAST_HELD:
            raise ValueError(f"max_incomplete_bytes is {max_incomplete_bytes}: not at least {_LEAST_HELD}")
        if store is not None:
            if identifier not in (None, store.identifier):
                raise ValueError(f"identifier is {identifier}: the store is that of {store.identifier}")
            if history is not None:
                raise ValueError("history is in the store: leave it out")
            identifier, history = store.identifier, store.history()
            incoming = Incoming(store, store.message_ids)
        else:
            incoming = Incoming() if identifier is None else Incoming.of_known_identifier()
        self.identifier = identifier or uuid4()
        self._inbox = None if store is None else Inbox(store, handler, limit, self._wake, self._notify_removal)
        self._handler = handler
        self._hosts = hosts
        self._port = port
        self._new_acceptor = partial(
            Acceptor,
            self.identifier,
            settings=settings,
            history=MessageIDHistory() if history is None else history,
            accepts=accepts,
            transactional=transactional,
            incoming=incoming,
            limit=limit,
        )
        self._max_sessions = max_sessions
        self._max_sessions_per_address = max_sessions_per_address
        self._max_incomplete_bytes = max_incomplete_bytes
        self._held_bytes = 0
        self._buffer = read_buffer()
        self._watch = watch
        self._lock = asyncio.Lock()
        self.ended_for_memory = 0
        self._sessions: dict[asyncio.Task[None], _AcceptedSession] = {}
        self._listening: list[socket.socket] = []
        self._accepting: list[asyncio.Task[None]] = []
        self._errors: set[str] = set()
        self._pings: list[PingServer] = []

    @property
    def sessions(self) -> int:
        """The number of connections."""
        return len(self._sessions)

    @property
    def addresses(self) -> list[tuple[str, int]]:
        """The addresses that it listens on, those of IPv6 with their zone, each with its TCP port."""
        return [address_of(each.getsockname()) for each in self._listening]

    @property
    def port(self) -> int:
        """The TCP port of the first address."""
        return next((port for _, port in self.addresses), self._port)

    async def start(self) -> None:
        """Listen.

        Raises
        ------
        OSError
            An address cannot be bound.
        RuntimeError
            It listens already.
        """
        if self._listening:
            raise RuntimeError("the server listens already: entering its context calls start()")
        opened: list[socket.socket] = []
        try:
            for host in self._hosts:
                found = await addresses_of(host, self._port, socket.SOCK_STREAM)
                # Two hosts may have one address, as localhost and 127.0.0.1
                bound = {address_of(each.getsockname())[0] for each in opened}
                opened += bind_all([each for each in found if each[0] not in bound], socket.SOCK_STREAM)
            for each in opened:
                _listen(each)
        except BaseException:
            for each in opened:
                each.close()
            raise
        self._listening = opened
        if self._inbox is not None:
            self._inbox.start()
        self._accepting = [asyncio.create_task(self._accept_all(each)) for each in opened]

    async def answer_pings(self, port: int) -> None:
        """Answer pings at this UDP port of the same addresses.

        Raises
        ------
        OSError
            The port cannot be bound.
        """
        for host, _ in self.addresses:
            server = PingServer((host, port), self.identifier, self._is_full)
            await server.open()
            self._pings.append(server)

    async def close(self) -> None:
        """Acknowledge what each peer is owed (S18), and close all sessions; end them at once if it is cancelled.

        Raises
        ------
        RuntimeError
            The handler calls it, for which it would wait.
        """
        if asyncio.current_task() in self._sessions:
            raise RuntimeError("close() waits until the handler returns: call it in another task")
        try:
            await self._stop_listening()
            async with self._lock:
                if self._inbox is not None:
                    await self._inbox.close()
                for session in self._sessions.values():
                    session.leave()
            if self._sessions:
                await asyncio.wait([*self._sessions])
        except asyncio.CancelledError:
            if self._inbox is not None:
                self._inbox.abort()
            for session in self._sessions.values():
                session.abort(CloseReason.LOCAL, "closed by this side")
            raise

    async def _stop_listening(self) -> None:
        for server in self._pings:
            server.close()
        listening, self._listening = self._listening, []
        for each in listening:
            # asyncio would accept a connection that has just come for a task that is cancelled, and log its failure
            with contextlib.suppress(NotImplementedError):  # of Windows, where it waits in another way
                asyncio.get_running_loop().remove_reader(each)
        for task in self._accepting:
            task.cancel()
        try:
            if self._accepting:
                await asyncio.wait(self._accepting)
        finally:
            for each in listening:
                each.close()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    # --- Sessions ---

    async def _accept_all(self, listening: socket.socket) -> None:
        """Accept connections one by one: asyncio's own server fails again and again once no descriptor is left."""
        loop = asyncio.get_running_loop()
        while True:
            try:
                connection, peer = await loop.sock_accept(listening)
            except OSError as error:
                self._cannot_accept(error)
                await asyncio.sleep(_ACCEPT_PAUSE)
                continue
            try:
                # Afterwards a connection that was reset would not know its peer
                await loop.connect_accepted_socket(partial(self._connection, address_of(peer)), connection)
            except OSError as error:
                self._cannot_accept(error)
                connection.close()

    def _connection(self, peer: tuple[str, int]) -> Connection:
        return Connection(self._buffer, partial(self._accept, *peer))

    def _cannot_accept(self, error: OSError) -> None:
        """Make room, and log an error the first time; no error ends the server."""
        _abort_one_that_waits([*self._sessions.values()])
        name = error_name(error)
        if name not in self._errors:
            self._errors.add(name)
            _LOG.warning("a connection cannot be accepted: %s: %s", name, reason_of(error))

    def _accept(self, address: str, port: int, connection: Connection) -> None:
        refused = not self._has_room(address)
        if refused:
            self._keep_few_refused()
        session = _AcceptedSession(self, connection, address, port, refused=refused)
        task = asyncio.create_task(self._run(session, address))
        self._sessions[task] = session
        task.add_done_callback(self._sessions.pop)

    async def _run(self, session: _AcceptedSession, address: str) -> None:
        try:
            await session.link.run()
        except asyncio.CancelledError:
            pass  # the loop ends, and asyncio of Python 3.11 reports a task that was cancelled as an error
        except Exception:
            _LOG.exception("the messages of %s could not be stored, and are not acknowledged", address)
        finally:
            self._count_held(session)

    def _count_held(self, session: _AcceptedSession) -> None:
        """Count the bytes that a session holds, and end the one with the most if all hold too many."""
        held = session.link.held_bytes
        self._held_bytes += held - session.held_bytes
        session.held_bytes = held
        if self._held_bytes > self._max_incomplete_bytes:
            largest = max(self._sessions.values(), key=lambda each: each.held_bytes)
            self.ended_for_memory += 1
            size, most = largest.held_bytes, self._max_incomplete_bytes >> 20
            largest.abort(
                CloseReason.MEMORY,
                f"it had {size:,} bytes of an incomplete packet, and all sessions more than {most} MiB; "
                f"ended for that so far: {self.ended_for_memory:,}",
            )
            self._count_held(largest)

    def _wake(self) -> None:
        """Let the sessions send the answers to messages that were removed from the store."""
        for session in self._sessions.values():
            session.link.wake()

    def _notify_removal(self, event: Event, address: str) -> None:
        if self._watch is not None:
            self._watch(event, address)

    def _rivals(self, address: str) -> list[_AcceptedSession] | None:
        """Return the sessions one of which must end for another of an address; None if there is room."""
        network = network_of(address)
        taken = [session for session in self._sessions.values() if not session.is_refused and not session.is_aborted]
        same = [session for session in taken if session.network == network]
        if len(same) >= self._max_sessions_per_address:
            return same
        return taken if len(taken) >= self._max_sessions else None

    def _has_room(self, address: str) -> bool:
        """Return True if there is room for another session of an address; one that is not initialized makes it."""
        rivals = self._rivals(address)
        return rivals is None or _abort_one_that_waits(rivals)

    def _keep_few_refused(self) -> None:
        """End the oldest refused session, if there are many that wait for their answer."""
        waiting = [each for each in self._sessions.values() if each.is_refused and not each.is_aborted]
        if len(waiting) >= min(_MOST_REFUSED, self._max_sessions):
            _abort_one_that_waits(waiting)

    def _is_full(self, address: str) -> bool:
        """Return True if a session would be refused."""
        rivals = self._rivals(address)
        return rivals is not None and all(session.acceptor.is_open for session in rivals)


def _is_coroutine_function(handler: object) -> bool:
    """Return True if calling it gives a coroutine, also a partial function or an object with ``__call__``."""
    function = handler
    while isinstance(function, partial):
        function = function.func
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004


def _listen(bound: socket.socket) -> None:
    try:
        bound.listen(_BACKLOG)
    except OSError as error:  # it has the port that another socket listens on
        error.filename = "{} port {}".format(*address_of(bound.getsockname()))
        raise


def _abort_one_that_waits(sessions: Sequence[_AcceptedSession]) -> bool:
    for session in sessions:
        if not session.acceptor.is_open and not session.is_aborted:
            session.abort(CloseReason.CONNECTION_LOST, "another connection needs its place")
            return True
    return False


class _AcceptedSession:
    """A session of a peer."""

    def __init__(
        self,
        server: SessionServer,
        connection: Connection,
        address: str,
        port: int,
        *,
        refused: bool,
    ) -> None:
        self._server = server
        self._address = address
        self.network = network_of(address)
        self.is_aborted = False
        self.is_refused = refused
        self.held_bytes = 0
        self.acceptor = server._new_acceptor(
            refuses=lambda _: "there are too many sessions" if refused else None, address=address, port=port
        )
        self.acceptor.connection_made(asyncio.get_running_loop().time())
        self.link = Link(self.acceptor, connection, self._handle, self._notify, server._lock)
        connection.came = partial(server._count_held, self)

    def leave(self) -> None:
        self.link.leave()

    def abort(self, reason: CloseReason, detail: str) -> None:
        self.is_aborted = True
        self.link.abort(reason, detail)

    async def _handle(self, events: Sequence[Event]) -> None:
        self._server._count_held(self)
        received = [event for event in events if isinstance(event, MessageReceived)]
        inbox = self._server._inbox
        if received and inbox is None:
            await self._server._handler(received)
        self.acceptor.messages_stored()
        if received and inbox is not None:
            inbox.came()
        self._notify(events)

    def _notify(self, events: Sequence[Event]) -> None:
        for event in events:
            match event:
                case SessionClosed(reason, detail):
                    _LOG.debug("the session of %s was closed, %s: %s", self._address, reason, detail)
                case MessageDisregarded(reason=reason):
                    _LOG.debug("%s: a message of %s is not delivered", reason, self._address)
            if self._server._watch is not None:
                self._server._watch(event, self._address)


#: Receive messages.
serve = SessionServer
