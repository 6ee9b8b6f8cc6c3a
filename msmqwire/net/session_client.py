"""Sends messages to a queue manager over TCP with asyncio: the connections of an ``Initiator``."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from itertools import zip_longest
from types import TracebackType
from typing import NamedTuple, Self
from uuid import UUID

from msmqwire import mqqb
from msmqwire.errors import SessionError, counted
from msmqwire.net.connection import Connection, read_buffer
from msmqwire.net.host_addresses import address_of, addresses_of
from msmqwire.net.ping import ping
from msmqwire.net.session_link import Link, reason_of
from msmqwire.session import (
    CloseReason,
    ConnectionWanted,
    Event,
    Incoming,
    Initiator,
    MessageDisregarded,
    MessageExpired,
    MessageReceived,
    MessagesAcknowledged,
    OutgoingSequences,
    SessionClosed,
    SessionState,
    Settings,
    Store,
)
from msmqwire.wire.guids import NIL
from msmqwire.wire.ports import SESSION_PORT

_LOG = logging.getLogger(__name__)


class NextHop(NamedTuple):
    """A queue manager to connect to: [MS-MQQB] 3.1.1.3.1.3.

    Attributes
    ----------
    host : str
        A name or an address, IPv4 or IPv6.
    queue_manager : uuid.UUID
        Its identifier; nil for a direct format name, which accepts any.
    """

    host: str
    queue_manager: UUID = NIL


class SessionClient:
    r"""Sends messages to one queue manager; connects when there are some, and again after a broken connection.

    Use it as a context manager: leaving it waits until all messages are acknowledged, and raises what ``handler`` or
    ``watch`` raised. Or call ``close``.

    Parameters
    ----------
    host : str or sequence of NextHop
        The queue manager, or the next hops to it, the best one first: each new session begins with it, and tries the
        others in turn where it fails.
    port : int
        The TCP port of all of them.
    identifier : uuid.UUID, optional
        The identifier of this queue manager; by default a new one. MessageIDs begin at 1 with each client, so queue
        managers discard messages of a client with an identifier of an earlier one as duplicates, unless the messages
        have MessageIDs of their own (S11).
    settings : Settings, optional
    handler : callable, optional
        Receives the messages that the peer sends on the session, as that of ``serve`` does; without it they are
        disregarded, as are acknowledgments of transactional messages, which the client does not send (S44).
    store : Store, optional
        Keeps the messages of ``commit`` until they are acknowledged, also by a later process; and the identifier.
    queues : iterable of str
        Names of queues of the outbox of the store whose messages are sent: see ``resume``.
    ping_port : int, optional
        Send a Ping Request to this UDP port before the first connection of a session, and connect only if the answer
        accepts a session; a retry connects without one ([MS-MQQB] 3.1.5.2.2).
    timeout : float, optional
        Seconds without an acknowledgment after which a wait for one raises SessionError; by default it has no end.
        Messages stay, and the client goes on connecting until it is closed.
    watch : callable, optional
        Called with each event of the session.

    Attributes
    ----------
    failure : str
        Why the latest connection or session ended; empty if none has.

    Examples
    --------
    >>> import asyncio
    >>> from msmqwire import mqqb, net
    >>> async def main():
    ...     async def store(received):
    ...         print([bytes(each.message.body) for each in received])
    ...     async with net.serve(store, port=0) as server, net.connect("127.0.0.1", server.port) as client:
    ...         queue = r"DIRECT=TCP:127.0.0.1\private$\orders"
    ...         await client.send(mqqb.UserMessage(destination_queue=queue, body=b"one", delivery_mode="recoverable"))
    >>> asyncio.run(main())
    [b'one']
    """

    def __init__(
        self,
        host: str | Sequence[NextHop],
        port: int = SESSION_PORT,
        *,
        identifier: UUID | None = None,
        settings: Settings | None = None,
        handler: Callable[[Sequence[MessageReceived]], Awaitable[None]] | None = None,
        store: Store | None = None,
        queues: Iterable[str] = (),
        ping_port: int | None = None,
        timeout: float | None = None,
        watch: Callable[[Event], None] | None = None,
    ) -> None:
        if not 0 < port < 65536:
            raise ValueError(f"port is {port}: not from 1 to 65535")
        self._hops = [NextHop(host)] if isinstance(host, str) else list(host)
        if not self._hops:
            raise ValueError("host names no next hop")
        if not all(hop.host for hop in self._hops):
            # It would be an address of this computer
            raise ValueError("the name of a host is empty")
        if timeout is not None and not timeout > 0:
            raise ValueError(f"timeout is {timeout}: not above 0")
        self._hop = 0
        self._port = port
        self._ping_port = ping_port
        self._timeout = timeout
        self._acknowledged_at = float("-inf")  # by the clock of the loop
        self._handler = handler
        self._watch = watch
        self._store = store
        if store is not None and identifier not in (None, store.identifier):
            raise ValueError(f"identifier is {identifier}: the store is that of {store.identifier}")
        self._sequences = None if store is None else OutgoingSequences(store.outbox, queues)
        self._session = Initiator(
            identifier if store is None else store.identifier,
            settings=settings,
            history=None if store is None else store.history(),
            accepts=None if handler else lambda _: False,
            incoming=None if store is None else Incoming(store, store.message_ids),
            sequences=self._sequences,
            pinged=ping_port is not None,
        )
        self._pings = 0
        self._buffer = read_buffer()
        self._link: Link | None = None
        self._task: asyncio.Task[None] | None = None
        self._changed = asyncio.Event()
        self._is_closing = False
        self._refusal: str | None = None
        self._address = ""
        self._expired = 0
        self.failure = ""

    @property
    def identifier(self) -> UUID:
        """The identifier of this queue manager: SourceQueueManager of the messages."""
        return self._session.identifier

    @property
    def unacknowledged(self) -> int:
        """The number of messages that are not acknowledged."""
        return len(self._session.outgoing)

    @property
    def is_open(self) -> bool:
        """Whether there is a session: its initialization is complete."""
        return self._session.is_open

    @property
    def is_refused(self) -> bool:
        """Whether the queue manager refused the session: nothing more is sent."""
        return self._refusal is not None

    async def send(self, message: mqqb.UserMessage) -> int:
        """Send a message and return its MessageID; waits while too many are not acknowledged.

        Raises
        ------
        EncodeError
            The message is transactional, too large, or cannot be written.
        TypeError
            It is not a UserMessage.
        SessionError
            The queue manager refused the session, or acknowledged nothing within the timeout, or the client is closed.
        RuntimeError
            The handler calls it while too many are not acknowledged: no acknowledgment is read until it returns.
        """
        since = asyncio.get_running_loop().time()
        while self._is_full():
            await self._wait(since)
        self._check()
        self._start_with_first_hop()
        message_id = self._session.send(message, asyncio.get_running_loop().time())
        if self._link is not None:
            self._link.flush_soon()
        self._changed.set()
        return message_id

    def commit(
        self,
        messages: Iterable[Callable[..., mqqb.UserMessage]],
        keys: Iterable[str | None] = (),
        *,
        final: bool = False,
    ) -> list[int]:
        """Commit messages of one transaction to the store, and return their MessageIDs; they are sent in this order.

        Each message is a callable that makes it from the fields which identify it, such as
        ``functools.partial(mqqb.UserMessage, destination_queue=queue, body=b"one")``. A message with a key that the
        store knows is left out. ``final`` asks for FinalAcks: see ``acknowledged``.

        Raises
        ------
        StoreError
            Nothing is committed.
        EncodeError
            A message cannot be written; nothing is committed.
        """
        if self._store is None or self._sequences is None:
            raise RuntimeError("only a client with a store commits messages: net.connect(..., store=Store(DIR))")
        with self._store.outbox.transaction(final=final) as transaction:
            for message, key in zip_longest(messages, keys):
                transaction.add(message, key)
        self.resume(transaction.queues)
        return transaction.message_ids

    def resume(self, queues: Iterable[str]) -> None:
        """Send the messages of the store to queues, by the names that ``Outbox`` has."""
        assert self._sequences is not None
        now = asyncio.get_running_loop().time()
        self._start_with_first_hop()
        for queue in queues:
            self._sequences.add(queue, now)
        self._session.sequences_changed(now)
        if self._link is not None:
            self._link.flush_soon()
        self._changed.set()

    async def open(self) -> str:
        """Connect although there is no message, and return the address of this computer on the connection.

        Raises
        ------
        SessionError
            The queue manager refused the session, or did not open it within the timeout, or the client is closed.
        RuntimeError
            The handler calls it.
        """
        since = asyncio.get_running_loop().time()
        self._check()
        self._start_with_first_hop()
        self._session.open(since)
        self._changed.set()
        while not self.is_open:
            await self._wait(since)
        return self._address

    def _start_with_first_hop(self) -> None:
        if self._session.state is SessionState.CLOSED:
            self._hop = 0  # 3.1.5.2.1; after a failure the next one follows, 3.1.6.1
        if self._task is None:
            self._task = asyncio.create_task(self._run())

    async def acknowledged(self, *, final: bool = False) -> None:
        """Wait until all messages are acknowledged, recoverable ones from the store of the queue manager.

        Committed messages are acknowledged by OrderAcks, and with ``final`` by FinalAcks: received or rejected.

        Raises
        ------
        SessionError
            The queue manager refused the session, or acknowledged nothing within the timeout; or messages have expired
            since the last call, before they were sent.
        RuntimeError
            The handler calls it: no acknowledgment is read until it returns.
        """
        since = asyncio.get_running_loop().time()
        while self.unacknowledged or self._has_committed(final):
            self._check()
            await self._wait(since)
        # A message that expired in send has not been reported yet
        self._notify(self._session.handle_deadline(asyncio.get_running_loop().time()))
        expired, self._expired = self._expired, 0
        if expired:
            raise SessionError(f"{counted(expired, 'message')} expired before the queue manager took them")

    async def close(self) -> None:
        """Close the session and the connection; messages that are not acknowledged are lost here.

        Raises
        ------
        RuntimeError
            The handler calls it, for which it would wait.
        """
        self._refuse_handler("close() waits")
        self._is_closing = True
        self._changed.set()
        if self._link is not None:
            self._link.leave()
        if self._task is not None:
            if self._link is None:
                self._task.cancel()
            await asyncio.wait([self._task])

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                await self.acknowledged()
        finally:
            await self.close()
        if kind is None:
            self._raise_error()

    def _has_committed(self, final: bool) -> bool:
        if self._store is None or self._sequences is None:
            return False
        outbox = self._store.outbox
        for queue in self._sequences.queues:
            if (row := outbox.sequence(queue)) is not None and row.stopped:
                raise SessionError(f"{row.name}: {row.stopped}")
        return any(
            outbox.has_messages(queue) or (final and outbox.has_messages(queue, final=True))
            for queue in self._sequences.queues
        )

    def _is_full(self) -> bool:
        outgoing, settings = self._session.outgoing, self._session.settings
        return len(outgoing) >= 2 * settings.window_size or outgoing.size >= settings.max_unacknowledged_bytes

    def _check(self) -> None:
        if self._refusal is not None:
            raise SessionError(self._refusal)
        if self._is_closing:
            raise SessionError("the client is closed")
        self._raise_error()

    def _raise_error(self) -> None:
        """Raise what ended the connections: an exception of the handler, or of the watcher."""
        if self._task is not None and self._task.done() and not self._task.cancelled():
            self._task.result()

    def _refuse_handler(self, waits: str) -> None:
        """Raise an error instead of a wait of the handler for itself."""
        if self._task is not None and self._task is asyncio.current_task():
            raise RuntimeError(f"{waits} until the handler returns: call it in another task")

    async def _wait(self, since: float) -> None:
        """Wait until something has happened on the session; ``since`` is when the caller began to wait."""
        self._refuse_handler("no acknowledgment is read")
        self._check()
        self._changed.clear()
        deadline = None if self._timeout is None else max(since, self._acknowledged_at) + self._timeout
        try:
            async with asyncio.timeout_at(deadline):
                await self._changed.wait()
        except TimeoutError:
            reason = f": {self.failure}" if self.failure else ""
            raise SessionError(f"no acknowledgment within {self._timeout:g} s{reason}") from None
        self._check()

    # --- Connections ---

    async def _run(self) -> None:
        try:
            while not self._is_closing:
                await self._wait_for_retry()
                events = self._session.handle_deadline(asyncio.get_running_loop().time())
                self._notify(events)
                if any(isinstance(event, ConnectionWanted) for event in events):
                    await self._connect()
        finally:
            self._changed.set()

    async def _wait_for_retry(self) -> None:
        """Wait until the Session Retry Connect Timer expires, which a new message starts if the session is closed."""
        loop = asyncio.get_running_loop()
        while not self._is_closing and ((deadline := self._session.next_deadline()) is None or deadline > loop.time()):
            self._changed.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout_at(deadline):
                    await self._changed.wait()

    async def _connect(self) -> None:
        loop = asyncio.get_running_loop()
        hop = self._hops[self._hop]
        self._hop = (self._hop + 1) % len(self._hops)
        try:
            if self._ping_port is not None and self._session.pings:
                await self._ping(hop.host, self._ping_port)
            connection = await self._open_connection(hop.host)
        except (OSError, TimeoutError) as error:
            self.failure = f"cannot connect to {hop.host} port {self._port}: {reason_of(error)}"
            _LOG.warning("%s", self.failure)
            self._notify(self._session.connection_lost(loop.time(), self.failure))
            return
        self._address, _ = address_of(connection.transport.get_extra_info("sockname"))
        self._session.connection_made(loop.time(), hop.queue_manager)
        link = Link(self._session, connection, self._handle, self._notify, asyncio.Lock())
        self._link = link
        if self._is_closing:
            link.leave()
        try:
            await link.run()
        finally:
            self._link = None

    async def _open_connection(self, host: str) -> Connection:
        """Return a connection to the first address of a host that accepts one; each has the same time."""
        timeout = self._session.settings.retry_timeout
        new = partial(Connection, self._buffer)
        async with asyncio.timeout(timeout):
            found = await addresses_of(host, self._port, socket.SOCK_STREAM)
        failures: dict[str, str] = {}
        for address in found:
            try:
                async with asyncio.timeout(timeout):
                    _, connection = await asyncio.get_running_loop().create_connection(new, *address)
                    return connection
            except OSError as error:
                failures[address[0]] = reason_of(error)
        if len(set(failures.values())) == 1:
            raise OSError(failures.popitem()[1])
        raise OSError(", ".join(f"{address}: {reason}" for address, reason in failures.items()))

    async def _ping(self, host: str, port: int) -> None:
        self._pings += 1
        timeout = self._session.settings.retry_timeout
        if not await ping(host, port, identifier=self.identifier, cookie=self._pings, lookup_timeout=timeout):
            raise OSError(f"it does not accept a session: no answer to a ping at UDP port {port}, or a refusal")

    async def _handle(self, events: Sequence[Event]) -> None:
        received = [event for event in events if isinstance(event, MessageReceived)]
        if received and self._handler is not None:
            await self._handler(received)
        self._session.messages_stored()
        if self._store is not None:  # an OrderAck is no event
            self._acknowledged_at = asyncio.get_running_loop().time()
            self._changed.set()
        self._notify(events)

    def _notify(self, events: Sequence[Event]) -> None:
        for event in events:
            match event:
                case SessionClosed(reason, detail):
                    self.failure = detail
                    if reason is CloseReason.REFUSED:
                        self._refusal = detail
                    is_expected = reason in (CloseReason.LOCAL, CloseReason.IDLE)
                    _LOG.log(logging.DEBUG if is_expected else logging.WARNING, "the session was closed: %s", detail)
                case MessageExpired():
                    self._expired += 1
                case MessageDisregarded(message, disregarded):
                    _LOG.info("message %d to %s: %s", message.message_id, message.destination_queue, disregarded)
                case MessagesAcknowledged():
                    self._acknowledged_at = asyncio.get_running_loop().time()
            if self._watch is not None:
                self._watch(event)
        if events:
            self._changed.set()


#: Send messages to a queue manager.
connect = SessionClient
