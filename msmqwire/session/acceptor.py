"""The side of a session that is connected to: [MS-MQQB] 3.1.5.10."""

from __future__ import annotations

from msmqwire import mqqb
from msmqwire.session.events import CloseReason
from msmqwire.session.session import Session
from msmqwire.session.settings import ACK_TIMEOUTS, RECOVERABLE_ACK_TIMEOUTS
from msmqwire.session.timers import Timer
from msmqwire.session.transitions import SessionState
from msmqwire.wire.guids import NIL

_RESERVED = 0x0010  # RE of OperatingSystem: 2.2.3.1
_ECHOED = 0x0300  # SE and OS
_TIMEOUTS = slice(20, 28)  # of a ConnectionParameters packet: 2.2.2.1


class Acceptor(Session):
    """One session that a peer initiates. Each connection needs its own; they share ``history``.

    Parameters
    ----------
    identifier : uuid.UUID, optional
        QueueManager.Identifier; by default a new one.
    settings : Settings, optional
    history : MessageIDHistory, optional
        The messages that the queue manager received on all sessions.
    accepts : callable, optional
        Whether a message is for a queue of this queue manager; others are disregarded. By default all are accepted.
    transactional : callable, optional
        Whether the queue of a message is transactional, if ``accepts`` takes it; None for a queue that takes both kinds
        of messages (S24), as all do by default.
    incoming : Incoming, optional
        The order of transactional messages on all sessions of the queue manager.
    limit : MessageLimit, optional
        After how many messages no more are taken.
    refuses : callable, optional
        Why a request is refused with CS, for example because there are too many sessions ([MS-MQQB] 2.2.1); None
        accepts it.
    address, port : str, int
        Those of the peer: acknowledgments are sent to queues at the address, and a duplicate from another one is
        reported with it.
    wall_clock : callable
        Seconds since 1970, UTC: decides which messages have expired.

    Examples
    --------
    >>> from msmqwire import mqqb
    >>> from msmqwire.session import Acceptor, Initiator, MessageReceived
    >>> initiator, acceptor = Initiator(), Acceptor()
    >>> acceptor.connection_made(now=0.0)
    >>> initiator.connection_made(now=0.0)
    >>> message = mqqb.UserMessage(destination_queue="DIRECT=OS:host\\\\private$\\\\orders", body=b"one")
    >>> initiator.send(message, now=0.0)
    1
    >>> for _ in range(3):
    ...     events = acceptor.receive_data(initiator.data_to_send(), now=0.1)
    ...     answers = initiator.receive_data(acceptor.data_to_send(), now=0.1)
    >>> [bytes(event.message.body) for event in events if isinstance(event, MessageReceived)]
    [b'one']
    >>> acceptor.close(now=0.2)
    [SessionClosed(reason=<CloseReason.LOCAL: 'local'>, detail='closed by this side')]
    >>> initiator.receive_data(acceptor.data_to_send(), now=0.2)
    [MessagesAcknowledged(message_ids=(1,))]
    """

    def connection_made(self, now: float) -> None:
        """Start the session of a peer that has connected: [MS-MQQB] 3.1.5.10."""
        self._start_initialization(SessionState.WAITING_EC_MSG, now)

    def _receive_establish_connection(self, packet: mqqb.EstablishConnection, data: bytes, now: float) -> None:
        """Answer an EstablishConnection request: [MS-MQQB] 3.1.5.3.1."""
        self.remote_queue_manager = packet.client_guid
        if self.incoming.is_paused(packet.client_guid, self._address, now):
            detail = "the last session of the peer was closed over a message for another queue manager"
            self._close(CloseReason.PAUSED, detail, now)
            return
        refusal = None
        if packet.server_guid not in (NIL, self.identifier):  # S12
            refusal = f"the peer asked for queue manager {packet.server_guid}; this is {self.identifier}"
        elif self._refuses is not None:
            refusal = self._refuses(packet)
        response = mqqb.EstablishConnection(
            client_guid=packet.client_guid,
            server_guid=self.identifier,
            time_stamp=packet.time_stamp,
            operating_system=_RESERVED | packet.operating_system & _ECHOED,  # S16
            refused=refusal is not None,
        )
        self._output.append(mqqb.encode(response))
        if refusal is not None:
            self._close(CloseReason.REFUSED, refusal, now)
        else:
            self.timers.start(Timer.SESSION_INITIALIZATION, self.settings.initialization_timeout, now)  # S13

    def _receive_connection_parameters(self, packet: mqqb.ConnectionParameters, data: bytes, now: float) -> None:
        """Answer a ConnectionParameters request: [MS-MQQB] 3.1.5.4.1."""
        self.sending.received_window_size = packet.window_size
        # Echoed as received, but in range for the own timers (S19)
        self.ack_wait_timeout = ACK_TIMEOUTS.clamp(packet.ack_timeout)
        self.recoverable_ack_send_timeout = RECOVERABLE_ACK_TIMEOUTS.clamp(packet.recoverable_ack_timeout)
        response = mqqb.ConnectionParameters(
            recoverable_ack_timeout=self.recoverable_ack_send_timeout,
            ack_timeout=self.ack_wait_timeout,
            window_size=self._window_size,
        )
        encoded = bytearray(mqqb.encode(response))
        encoded[_TIMEOUTS] = data[_TIMEOUTS]
        self._output.append(bytes(encoded))
