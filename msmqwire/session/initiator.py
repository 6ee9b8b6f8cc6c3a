"""The side of a session that connects: [MS-MQQB] 3.1.5.2."""

from __future__ import annotations

import time
from collections.abc import Callable
from uuid import UUID

from msmqwire import mqqb
from msmqwire.session.events import CloseReason, ConnectionWanted, Event
from msmqwire.session.history import MessageIDHistory
from msmqwire.session.incoming import Incoming
from msmqwire.session.sequences import OutgoingSequences
from msmqwire.session.session import Session
from msmqwire.session.settings import ACK_TIMEOUTS, RECOVERABLE_ACK_TIMEOUTS, Settings
from msmqwire.session.timers import Timer
from msmqwire.session.transitions import SessionState
from msmqwire.wire.guids import NIL

_SERVER = 0x0210  # RE and OS of OperatingSystem: 2.2.3.1
_NO_PING = 0x0100  # SE (S16)
_FIRST_RETRY = 0.01  # of the longest Session Retry Connect Timer


class Initiator(Session):
    """The sessions with one queue manager, one after the other: messages outlive a broken connection.

    ``ConnectionWanted`` asks the caller to connect whenever messages wait. The caller answers with ``connection_made``
    or ``connection_lost``. Messages are sent by priority, those of one priority in their order; what is not
    acknowledged when a connection ends is sent again on the next.

    Parameters
    ----------
    identifier : uuid.UUID, optional
        QueueManager.Identifier, the ClientGuid and the SourceQueueManager of messages; by default a new one, since
        MessageIDs begin at 1: with an identifier of an earlier run, messages are discarded as duplicates (S11).
    remote_queue_manager : uuid.UUID, optional
        The queue manager to connect to; nil (the default) for a direct format name, which accepts any (S1).
    settings : Settings, optional
    history, accepts :
        As for ``Acceptor``: messages travel in both directions.
    incoming : Incoming, optional
        With a durable store.
    sequences : OutgoingSequences, optional
        Transactional messages that the store keeps.
    pinged : bool
        Whether a Ping Request is sent before a connection for which ``pings`` is true: SE is then 0.
    wall_clock : callable
        Seconds since 1970, UTC: SentTime of messages, and which of them have expired.
    """

    def __init__(
        self,
        identifier: UUID | None = None,
        *,
        remote_queue_manager: UUID = NIL,
        settings: Settings | None = None,
        history: MessageIDHistory | None = None,
        accepts: Callable[[mqqb.UserMessage], bool] | None = None,
        incoming: Incoming | None = None,
        sequences: OutgoingSequences | None = None,
        pinged: bool = False,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        super().__init__(
            identifier,
            settings=settings,
            history=history,
            accepts=accepts,
            incoming=incoming,
            sequences=sequences,
            wall_clock=wall_clock,
        )
        self.remote_queue_manager = remote_queue_manager
        self._server_guid = remote_queue_manager
        self._pinged = pinged
        self._is_retry = False
        self._is_wanted = False
        self._retry_seconds = 0.0

    @property
    def pings(self) -> bool:
        """True if a Ping Request is sent before the next connection: not before a retry ([MS-MQQB] 3.1.5.2.2)."""
        return self._pinged and not self._is_retry

    def send(self, message: mqqb.UserMessage, now: float) -> int:
        """Send a message; see ``Session.send``. A closed session asks for a connection at the next deadline."""
        message_id = super().send(message, now)
        if self.state is SessionState.CLOSED:
            self._is_retry = False
            self._wait_for_reconnect(now)
        return message_id

    def sequences_changed(self, now: float) -> None:
        """There are new messages in the outbox of the sequences: connect at the next deadline, or send them now."""
        self._take_outcomes(now)
        if self.state is SessionState.CLOSED and self._has_work:
            self._is_retry = False
            self._wait_for_reconnect(now)
        self._send_waiting(now)

    @property
    def _has_work(self) -> bool:
        """Whether a connection is wanted."""
        return bool(
            len(self.outgoing) or self._is_wanted or (self._sequences is not None and self._sequences.has_messages)
        )

    def open(self, now: float) -> None:
        """Ask for a connection at the next deadline although no message waits, unless the session is open."""
        if self.is_open:
            return
        self._is_wanted = True
        if self.state is SessionState.CLOSED:
            self._is_retry = False
            self._wait_for_reconnect(now)

    def connection_made(self, now: float, remote_queue_manager: UUID | None = None) -> None:
        """Send the request on a new connection: [MS-MQQB] 3.1.5.2.3.

        ``remote_queue_manager`` is that of the next hop which was connected to, where there are several.
        """
        if not self.is_disconnected:
            raise RuntimeError("the session has a connection")
        if remote_queue_manager is not None:
            self._server_guid = remote_queue_manager
        self.remote_queue_manager = self._server_guid
        self._start_initialization(SessionState.WAITING_ECR_MSG, now)
        request = mqqb.EstablishConnection(
            client_guid=self.identifier,
            server_guid=self._server_guid,
            time_stamp=_milliseconds(now),
            operating_system=_SERVER if self.pings else _SERVER | _NO_PING,
        )
        self._output.append(mqqb.encode(request))

    def connection_lost(
        self,
        now: float,
        detail: str = "the connection was closed",
        reason: CloseReason = CloseReason.CONNECTION_LOST,
    ) -> list[Event]:
        """Take the end of the connection, or its failure: try again if messages wait (S17)."""
        if self.state is SessionState.WAITING_RECONNECT:
            self._is_retry = True
            self._wait_for_reconnect(now)
        return super().connection_lost(now, detail, reason)

    def receive_data(self, data: bytes | bytearray | memoryview, now: float) -> list[Event]:
        """Handle bytes of the connection, divided anywhere."""
        before = len(self.outgoing)
        events = super().receive_data(data, now)
        if len(self.outgoing) < before:
            self._retry_seconds = 0.0
        return events

    def _close(self, reason: CloseReason, detail: str, now: float) -> None:
        """Close the session, [MS-MQQB] 3.1.5.9; a refusal ends the attempts (S17)."""
        if self.is_disconnected:
            return
        super()._close(reason, detail, now)
        if self._has_work and reason not in (CloseReason.LOCAL, CloseReason.REFUSED):
            self._is_retry = True
            self._wait_for_reconnect(now)

    def _wait_for_reconnect(self, now: float) -> None:
        if Timer.SESSION_RETRY_CONNECT not in self.timers:
            self.timers.start(Timer.SESSION_RETRY_CONNECT, self._retry_seconds, now)
            longest = self.settings.retry_timeout
            self._retry_seconds = min(max(2 * self._retry_seconds, _FIRST_RETRY * longest), longest)
        self.state = SessionState.WAITING_RECONNECT

    def _retry_connect(self, now: float) -> None:
        """Ask for a connection again: [MS-MQQB] 3.1.6.1."""
        # There may be no connection until all messages have expired
        self.outgoing.waiting.discard_if(self._remove_if_expired)
        if self._has_work:
            self._events.append(ConnectionWanted())
        else:
            self.state = SessionState.CLOSED

    def _receive_establish_connection(self, packet: mqqb.EstablishConnection, data: bytes, now: float) -> None:
        """Take the answer to EstablishConnection: [MS-MQQB] 3.1.5.3.2."""
        # For a direct name any identifier is accepted (S1)
        if packet.client_guid != self.identifier or self._server_guid not in (NIL, packet.server_guid):
            detail = f"the response names client {packet.client_guid} and server {packet.server_guid}"
            self._close(CloseReason.UNEXPECTED_PACKET, detail, now)
            return
        self.remote_queue_manager = packet.server_guid
        round_trip = (_milliseconds(now) - packet.time_stamp) % (1 << 32)
        self.recoverable_ack_send_timeout = RECOVERABLE_ACK_TIMEOUTS.clamp(8 * round_trip)
        # On a slow network the session would close each time before its acknowledgment, and never make progress
        least = ACK_TIMEOUTS.clamp(2 * self.recoverable_ack_send_timeout)
        self.ack_wait_timeout = max(self.ack_wait_timeout, least)
        parameters = mqqb.ConnectionParameters(
            recoverable_ack_timeout=self.recoverable_ack_send_timeout,
            ack_timeout=self.ack_wait_timeout,
            window_size=self._window_size,
        )
        self._output.append(mqqb.encode(parameters))

    def _receive_connection_parameters(self, packet: mqqb.ConnectionParameters, data: bytes, now: float) -> None:
        """Take the answer to ConnectionParameters: [MS-MQQB] 3.1.5.4.2."""
        self.sending.received_window_size = packet.window_size
        self._is_wanted = False


def _milliseconds(now: float) -> int:
    return int(now * 1000) % (1 << 32)
