"""What a session reports to its caller."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias
from uuid import UUID

from msmqwire import mqqb


class Disregarded(StrEnum):
    """Why a message that was received is not delivered. It is counted and acknowledged (S2, S6, S19)."""

    DUPLICATE = "duplicate"
    EXPIRED = "expired"
    NO_SUCH_QUEUE = "no_such_queue"
    OTHER_QUEUE_MANAGER = "other_queue_manager"
    NOT_RECEIVED_IN_TIME = "not_received_in_time"
    """TimeToBeReceived is over, or 0."""
    NOT_TRANSACTIONAL_QUEUE = "not_transactional_queue"
    """A transactional message, rejected with a FinalAck (S24, S40)."""
    NOT_TRANSACTIONAL_MESSAGE = "not_transactional_message"
    """A message that is not transactional, for a transactional queue (S24)."""
    OLD_SEQUENCE = "old_sequence"
    """A transactional message of an earlier sequence than the last accepted (S32)."""
    OUT_OF_ORDER = "out_of_order"
    """A transactional message before which others are missing: the sender sends all of them again (S32)."""
    NO_ROOM = "no_room"
    """The messages of the store that are not delivered exceed its quota."""
    ORDER_QUEUE = "order_queue"
    """A message to the order queue: an OrderAck or FinalAck of a message that this side did not send (S44)."""


class CloseReason(StrEnum):
    """Why a session closed."""

    LOCAL = "local"
    """This side called ``close``."""
    CONNECTION_LOST = "connection_lost"
    REFUSED = "refused"
    """The peer refused the session with CS (S15), or this side refused it (S12)."""
    MALFORMED_PACKET = "malformed_packet"
    UNEXPECTED_PACKET = "unexpected_packet"
    """A packet that the state of the session does not allow, or with wrong identifiers or counts."""
    NOT_FORWARDED = "not_forwarded"
    """A recoverable message for another queue manager, which this one cannot keep ([MS-MQQB] 3.1.5.8.2)."""
    PAUSED = "paused"
    """A session of the peer was closed by NOT_FORWARDED less than a minute ago."""
    INITIALIZATION_TIMEOUT = "initialization_timeout"
    ACK_WAIT_TIMEOUT = "ack_wait_timeout"
    IDLE = "idle"
    """The Session Cleanup Timer expired."""
    NOT_STORED = "not_stored"
    """The messages of the session could not be stored (S34)."""
    MEMORY = "memory"
    """The incomplete packets of all sessions take too much memory, and this session had the most of it."""


@dataclass(frozen=True)
class SessionOpened:
    """Session initialization is complete: messages can travel.

    Attributes
    ----------
    remote_queue_manager : uuid.UUID
        RemoteQMGuid.
    """

    remote_queue_manager: UUID


@dataclass(frozen=True)
class MessageReceived:
    """A message for the caller. It has to be stored before ``data_to_send`` is called: that acknowledges it.

    Attributes
    ----------
    message : mqqb.UserMessage
    packet : bytes
        The packet as it was received, with its SessionHeader if it has one.
    address, port : str, int
        Of the peer, as the session was given them.
    received_time : float
        Seconds since 1970, UTC.
    """

    message: mqqb.UserMessage
    packet: bytes
    address: str = field(default="", compare=False)
    port: int = field(default=0, compare=False)
    received_time: float = field(default=0.0, compare=False)

    @property
    def token(self) -> str:
        """The same when the message comes again.

        The source and MessageID, of a transactional message the source, the queue, TxSequenceID and TxSequenceNumber.
        """
        message, transaction = self.message, self.message.transaction
        if transaction is None:
            return f"{message.source_queue_manager}:{message.message_id}"
        place = f"{transaction.tx_sequence_id}:{transaction.tx_sequence_number}"
        return f"{message.source_queue_manager}:{message.destination_queue}:{place}"

    @property
    def turn(self) -> int:
        """Sorts messages that come together: higher priorities first, transactional messages as 0 (S49)."""
        return 0 if self.message.transaction is not None else -self.message.priority


@dataclass(frozen=True)
class MessageDisregarded:
    """A message that is acknowledged, but not delivered.

    Attributes
    ----------
    message : mqqb.UserMessage
    reason : Disregarded
    first_address : str
        Of a duplicate: where the message with its identifier came from that was delivered.
    rejects : int
        Of a transactional message that is not in order: how many of its sequence were not since the last one that was.
    """

    message: mqqb.UserMessage
    reason: Disregarded
    first_address: str = ""
    rejects: int = 0


@dataclass(frozen=True)
class MessageNotAnswered:
    """The sender asked for an acknowledgment that cannot be sent.

    Its administration queue is not one of the peer of this session, too many acknowledgments wait for the peer, or
    ``Settings.send_insecure_nacks`` is false.

    Attributes
    ----------
    message : mqqb.UserMessage
    message_class : int
        MessageClass of the acknowledgment.
    """

    message: mqqb.UserMessage
    message_class: int


@dataclass(frozen=True)
class MessagesAcknowledged:
    """The peer has these messages, recoverable ones in its store; they are forgotten here.

    Attributes
    ----------
    message_ids : tuple of int
        As ``send`` returned them.
    """

    message_ids: tuple[int, ...]


@dataclass(frozen=True)
class MessageExpired:
    """A message reached the end of its TimeToReachQueue before it was sent: [MS-MQQB] 3.1.7.1.2. It is forgotten."""

    message_id: int


@dataclass(frozen=True)
class MessageFinished:
    """A message of a sequence has its FinalAck, or its time is over (S50, S51).

    Attributes
    ----------
    message_id, message_class : int
        MessageClass of the FinalAck, from 0x8000 on a negative one; NACK_REACH_QUEUE_TIMEOUT if its time is over.
    packet : bytes
        The message.
    """

    message_id: int
    message_class: int
    packet: bytes


@dataclass(frozen=True)
class SessionClosed:
    """The session is closed: send what ``data_to_send`` still returns, then close the connection.

    Attributes
    ----------
    reason : CloseReason
    detail : str
        A sentence about what happened.
    """

    reason: CloseReason
    detail: str


@dataclass(frozen=True)
class ConnectionWanted:
    """The Session Retry Connect Timer expired: connect, then call ``connection_made`` or ``connection_lost``."""


Event: TypeAlias = (
    SessionOpened
    | MessageReceived
    | MessageDisregarded
    | MessageNotAnswered
    | MessagesAcknowledged
    | MessageExpired
    | MessageFinished
    | SessionClosed
    | ConnectionWanted
)
