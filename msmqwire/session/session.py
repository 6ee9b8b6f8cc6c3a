"""One session of [MS-MQQB] 3.1, without I/O: everything that initiator and acceptor have in common.

Bytes and times go in; bytes, events and the next deadline come out. Times are seconds of one monotonic clock. States,
timers and counts have the names of the text; S1 to S53 are rulings where the text contradicts itself or is silent.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from enum import StrEnum
from typing import ClassVar
from uuid import UUID, uuid4

from msmqwire import mqqb
from msmqwire.errors import DecodeError
from msmqwire.formatname import DirectName
from msmqwire.mqqb.framing import SESSION_HEADER_SIZE
from msmqwire.session import acknowledgments
from msmqwire.session.events import (
    CloseReason,
    Disregarded,
    Event,
    MessageDisregarded,
    MessageExpired,
    MessageNotAnswered,
    MessageReceived,
    MessagesAcknowledged,
    SessionClosed,
    SessionOpened,
)
from msmqwire.session.framing import QUEUE_MANAGER_ADDRESS, PacketReader
from msmqwire.session.history import MOST_REMEMBERED, MessageIDHistory
from msmqwire.session.incoming import Incoming, Order, SequenceKey, SequenceState, after, order_of, sequence_key
from msmqwire.session.limit import MessageLimit
from msmqwire.session.numbers import latest, on_wire
from msmqwire.session.outgoing import FOREVER, OutgoingMessagePosition, OutgoingMessageTable
from msmqwire.session.settings import RECOVERABLE_ACK_TIMEOUTS, Settings
from msmqwire.wire.guids import NIL

_FLAGS = 32  # bits of RecoverableMsgAckFlags
_ORDER_ACK_TIMEOUT = 0.5  # OrderAckTimeout in seconds, 3.1.2.7
_MOST_ORDER_ACK_DELAY = 1.0  # S36
_MOST_ACKNOWLEDGMENTS = 1 << 18  # bytes that wait for the peer
_LATE = 0.75  # of the Session Ack Send Timer, after which a message carries the acknowledgment: 3.1.7.11


class SessionState(StrEnum):
    """SessionState: [MS-MQQB] 3.1.1.3.1."""

    OPEN = "OPEN"
    CLOSED = "CLOSED"
    WAITING_CP_MSG = "WAITING_CP_MSG"
    WAITING_CPR_MSG = "WAITING_CPR_MSG"
    WAITING_EC_MSG = "WAITING_EC_MSG"
    WAITING_ECR_MSG = "WAITING_ECR_MSG"
    WAITING_RECONNECT = "WAITING_RECONNECT"


class Timer(StrEnum):
    """The timers of a session: [MS-MQQB] 3.1.2.1 to 3.1.2.5."""

    SESSION_INITIALIZATION = "session_initialization"
    SESSION_CLEANUP = "session_cleanup"
    SESSION_RETRY_CONNECT = "session_retry_connect"
    SESSION_ACK_WAIT = "session_ack_wait"
    SESSION_ACK_SEND = "session_ack_send"


class Session(ABC):
    """What initiator and acceptor have in common; use ``Initiator`` or ``Acceptor``.

    Call ``data_to_send`` after every other method, but not before the messages of ``MessageReceived`` are stored: the
    bytes acknowledge them.

    Attributes
    ----------
    identifier : uuid.UUID
        QueueManager.Identifier of this side.
    remote_queue_manager : uuid.UUID
        RemoteQMGuid; nil until it is known.
    state : SessionState
    settings : Settings
    outgoing : OutgoingMessageTable
        Messages to send and messages that are not acknowledged.
    history : MessageIDHistory
    message_sent_count, recoverable_message_sent_count, message_received_count, recoverable_message_received_count : int
    unacked_message_count, unacked_received_msg_count, recoverable_msg_ack_flags : int
    last_acked_recoverable_msg_seq_number, received_window_size : int
        The counts of [MS-MQQB] 3.1.1.3.1, not reduced to the 16 bits that they have on the wire.
    """

    #: The states in which an EstablishConnection packet and a ConnectionParameters packet are expected.
    _waiting_ec: ClassVar[SessionState]
    _waiting_cp: ClassVar[SessionState]

    def __init__(
        self,
        identifier: UUID | None = None,
        *,
        settings: Settings | None = None,
        history: MessageIDHistory | None = None,
        accepts: Callable[[mqqb.UserMessage], bool] | None = None,
        transactional: Callable[[mqqb.UserMessage], bool | None] | None = None,
        incoming: Incoming | None = None,
        limit: MessageLimit | None = None,
        refuses: Callable[[mqqb.EstablishConnection], str | None] | None = None,
        address: str = "",
        port: int = 0,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self.identifier = identifier or uuid4()
        self.settings = settings or Settings()
        self.history = MessageIDHistory() if history is None else history
        self._window_size = min(self.settings.window_size, MOST_REMEMBERED)
        self.incoming = Incoming() if incoming is None else incoming
        self.outgoing = OutgoingMessageTable(self.identifier, self.settings.max_packet_size, self.incoming.message_ids)
        self.state = SessionState.CLOSED
        self.remote_queue_manager = NIL
        self._addresses = (NIL.bytes_le, self.identifier.bytes_le)
        self._accepts = accepts
        self._transactional = transactional
        self._limit = limit
        self._refuses = refuses
        self._address = address
        self._port = port
        self._wall_clock = wall_clock
        self._output: list[bytes] = []
        self._timers: dict[Timer, float] = {}
        self._events: list[Event] = []
        self._now = 0.0
        # What the messages since ``messages_stored`` change and cause
        self._received: list[MessageReceived] = []
        self._sequences: dict[SequenceKey, SequenceState] = {}
        self._order_acks_due: dict[SequenceKey, None] = {}
        self._answers: list[tuple[mqqb.UserMessage, mqqb.UserMessage]] = []
        self._order_acks: dict[SequenceKey, float] = {}
        self._order_acks_sent: dict[SequenceKey, float] = {}
        self._initialize(SessionState.CLOSED)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.state} {self.identifier}, {len(self.outgoing)} outgoing messages>"

    # --- What the caller does ---

    @property
    def is_open(self) -> bool:
        """Whether session initialization is complete."""
        return self.state is SessionState.OPEN

    @property
    def unacknowledged_bytes(self) -> int:
        """Bytes of messages that were sent on this session and are not acknowledged on it."""
        return self._unacked_bytes

    @property
    def incomplete_bytes(self) -> int:
        """Bytes of a packet of which the rest has not come."""
        return len(self._reader)

    def send(self, message: mqqb.UserMessage, now: float) -> int:
        """Send a message as soon as the session and its window allow, and return its MessageID.

        A message without MessageID, SourceQueueManager or SentTime gets them. All other fields are sent as they are.

        Raises
        ------
        EncodeError
            The message is transactional (S21), its packet is too large (S22), or it cannot be written.
        """
        message_id = self.outgoing.add(message, self._wall_clock())
        self._send_waiting(now)
        return message_id

    def receive_data(self, data: bytes | bytearray | memoryview, now: float) -> list[Event]:
        """Bytes of the connection, divided anywhere."""
        self._now = now
        if self.is_disconnected:
            return self._take_events()
        try:
            for packet in self._reader.feed(data):
                if self.is_disconnected or (self._limit is not None and self._limit.remaining <= 0):
                    break
                self._receive_packet(packet, now)
        except DecodeError as error:
            self._close(CloseReason.MALFORMED_PACKET, f"malformed packet: {error}", now)
        self._take_order_acks()
        self._send_waiting(now)
        return self._take_events()

    def data_to_send(self) -> bytes:
        """The bytes to write to the connection since the last call, also those of a session that has closed.

        Calls ``messages_stored``.
        """
        self.messages_stored()
        data = b"".join(self._output)
        self._output.clear()
        return data

    def next_deadline(self, *, closing: bool = True) -> float | None:
        """When ``handle_deadline`` has to be called, with the same ``closing``; None if no timer is running.

        ``-inf``, which is at once, where ``send`` has left events: of a message that has expired.
        """
        if self._events:
            return float("-inf")
        timers: list[float | None] = [*self._timers.values()] if closing else [self._timers.get(Timer.SESSION_ACK_SEND)]
        # The first of these was started first, and all last as long
        timers.append(next(iter(self._order_acks.values()), None))
        return min((each for each in timers if each is not None), default=None)

    def handle_deadline(self, now: float, *, closing: bool = True) -> list[Event]:
        """The timers that have expired, in the order of their times: [MS-MQQB] 3.1.6.

        Without ``closing``, as bytes have come that are not passed yet, only an acknowledgment that is due is sent.
        """
        self._now = now
        self._expire_order_acks(now)
        for timer in sorted(self._timers, key=self._timers.__getitem__):
            # An earlier timer may have stopped a later one
            if self._timers.get(timer, now + 1) <= now and (closing or timer is Timer.SESSION_ACK_SEND):
                del self._timers[timer]
                self._expire(timer, now)
        self._send_waiting(now)
        return self._take_events()

    def connection_lost(
        self,
        now: float,
        detail: str = "the connection was closed",
        reason: CloseReason = CloseReason.CONNECTION_LOST,
    ) -> list[Event]:
        """The connection has ended, or could not be made."""
        self._is_lost = True
        if not self.is_disconnected:
            self._close(reason, detail, now)
        self._output.clear()
        self._leave_acknowledgments()
        return self._take_events()

    def close(self, now: float, detail: str = "closed by this side") -> list[Event]:
        """Acknowledge what the peer is owed (S18), then close the session: [MS-MQQB] 3.1.5.9."""
        self._now = now
        if not self.is_disconnected:
            self._close(CloseReason.LOCAL, detail, now)
        return self._take_events()

    def messages_stored(self) -> None:
        """The messages of all ``MessageReceived`` so far are stored: their acknowledgments may be sent (S34)."""
        if self._sequences:
            self.incoming.store.commit(self._sequences)
        answers, due = self._answers, self._order_acks_due
        self._received, self._sequences, self._order_acks_due, self._answers = [], {}, {}, []
        for message, answer in answers:
            if not self._send_acknowledgment(answer):
                self._events.append(MessageNotAnswered(message, answer.message_class or 0))
        for key in due:
            self._start_order_ack(key)
        if self.is_disconnected:
            self._leave_acknowledgments()
        elif answers:
            self._send_waiting(self._now)

    def messages_not_stored(self) -> None:
        """The messages of ``MessageReceived`` since ``messages_stored`` are lost, and accepted when they come again.

        Call ``connection_lost`` and not ``data_to_send`` then.
        """
        for event in self._received:
            self.history.forget(event.packet)
        if self._limit is not None:
            self._limit.remaining += len(self._received)
        self._received, self._sequences, self._order_acks_due, self._answers = [], {}, {}, []

    # --- Beginning and end: 3.1.3.2, 3.1.5.9 ---

    def _initialize(self, state: SessionState) -> None:
        self.message_sent_count = self.recoverable_message_sent_count = 0
        self.message_received_count = self.recoverable_message_received_count = 0
        self.recoverable_msg_ack_flags = 0
        self.last_acked_recoverable_msg_seq_number = 0
        self.unacked_received_msg_count = 0
        self.unacked_message_count = 0  # S5
        self._unacked_bytes = self._unacked_received_bytes = 0
        self.received_window_size = self._window_size
        self.ack_wait_timeout = self.settings.ack_wait_timeout
        self.recoverable_ack_send_timeout = RECOVERABLE_ACK_TIMEOUTS.highest
        self.session_active = self.received_ack = self._is_lost = False
        self.state = state
        self._ack_send_started = self._opened_at = 0.0
        self._timers.clear()
        self._output.clear()
        self._reader = PacketReader(self.settings.max_packet_size)
        self.outgoing.start_session()

    def _start_initialization(self, now: float) -> None:
        self._initialize(self._waiting_ec)
        self._start(Timer.SESSION_INITIALIZATION, self.settings.initialization_timeout, now)  # S13
        self._start(Timer.SESSION_CLEANUP, self.settings.cleanup_timeout, now)

    def _open(self, now: float) -> None:
        self._timers.pop(Timer.SESSION_INITIALIZATION, None)
        self.state = SessionState.OPEN
        self._opened_at = now
        for position in self.incoming.take_unsent(self.remote_queue_manager):
            self.outgoing.add_position(position)
        self._events.append(SessionOpened(self.remote_queue_manager))

    @property
    def is_disconnected(self) -> bool:
        """Whether the session has no connection: its state is CLOSED or WAITING_RECONNECT."""
        return self.state in (SessionState.CLOSED, SessionState.WAITING_RECONNECT)

    def _close(self, reason: CloseReason, detail: str, now: float) -> None:
        if self.is_disconnected:
            return
        if self.is_open and self.unacked_received_msg_count and not self._is_lost:
            self._send_session_ack()  # what came before is stored
        self._timers.clear()
        self.state = SessionState.CLOSED
        self._reader.clear()
        self.outgoing.start_session()
        self._events.append(SessionClosed(reason, detail))

    def _take_events(self) -> list[Event]:
        events, self._events = self._events, []
        return events

    # --- Timers: 3.1.2, 3.1.6 ---

    def _start(self, timer: Timer, seconds: float, now: float) -> None:
        self._timers[timer] = now + seconds

    def _start_ack_send(self, milliseconds: float, now: float) -> None:
        self._ack_send_started = now
        self._start(Timer.SESSION_ACK_SEND, milliseconds / 1000, now)

    def _start_ack_wait(self, now: float) -> None:
        milliseconds = self.ack_wait_timeout * self.settings.ack_wait_multiple
        self._start(Timer.SESSION_ACK_WAIT, milliseconds / 1000, now)

    def _expire(self, timer: Timer, now: float) -> None:
        match timer:
            case Timer.SESSION_INITIALIZATION:  # 3.1.6.6
                seconds = f"{self.settings.initialization_timeout:g}"
                self._close(
                    CloseReason.INITIALIZATION_TIMEOUT, f"the session was not initialized in {seconds} seconds", now
                )
            case Timer.SESSION_CLEANUP:  # 3.1.6.2
                if self.session_active:
                    self.session_active = False
                    self._start(Timer.SESSION_CLEANUP, self.settings.cleanup_timeout, now)
                else:
                    seconds = f"{self.settings.cleanup_timeout:g}"
                    self._close(CloseReason.IDLE, f"there was no message for {seconds} seconds", now)
            case Timer.SESSION_ACK_WAIT:  # 3.1.6.3
                if not self.outgoing.awaiting:
                    self.received_ack = False
                elif self.received_ack:
                    self.received_ack = False
                    self._start_ack_wait(now)
                else:
                    self._close(
                        CloseReason.ACK_WAIT_TIMEOUT,
                        f"no packet came within {self.ack_wait_timeout * self.settings.ack_wait_multiple / 1000:g} "
                        "seconds while messages were not acknowledged",
                        now,
                    )
            case Timer.SESSION_ACK_SEND:  # 3.1.6.4; it stays stopped (S14)
                if self.unacked_received_msg_count:
                    self._send_session_ack()

    # --- Packets received: 3.1.5 ---

    def _receive_packet(self, data: bytes, now: float) -> None:
        self.received_ack = True
        try:
            packet = mqqb.decode(data, strict=True, transport="tcp")
        except DecodeError as error:
            self._close(CloseReason.MALFORMED_PACKET, f"malformed packet: {error}", now)
            return
        if isinstance(packet, mqqb.UserMessage) and self.is_open:
            self._receive_user_message(packet, data, now)
        elif isinstance(packet, mqqb.SessionAck) and self.is_open:
            if packet.refused:  # S15
                self._close(CloseReason.REFUSED, "the peer refused the session in a SessionAck packet", now)
            else:
                self._receive_session_header(packet, now)
        elif isinstance(packet, mqqb.EstablishConnection) and self.state is self._waiting_ec:
            self._receive_establish_connection(packet, now)
        elif isinstance(packet, mqqb.ConnectionParameters) and self.state is self._waiting_cp:
            if packet.refused:  # S15
                self._close(CloseReason.REFUSED, "the peer refused the session in a ConnectionParameters packet", now)
            else:
                self._receive_connection_parameters(packet, data, now)
        else:
            detail = f"{type(packet).__name__} packet in state {self.state}"
            self._close(CloseReason.UNEXPECTED_PACKET, detail, now)

    @abstractmethod
    def _receive_establish_connection(self, packet: mqqb.EstablishConnection, now: float) -> None: ...

    @abstractmethod
    def _receive_connection_parameters(self, packet: mqqb.ConnectionParameters, data: bytes, now: float) -> None: ...

    def _receive_session_header(self, header: mqqb.SessionHeader | mqqb.SessionAck, now: float) -> None:
        """[MS-MQQB] 3.1.5.5."""
        acked = latest(header.ack_sequence_number, self.message_sent_count)
        if acked is None:  # S19
            sent = on_wire(self.message_sent_count)
            detail = f"AckSequenceNumber is {header.ack_sequence_number}, but {sent} messages were sent"
            self._close(CloseReason.UNEXPECTED_PACKET, detail, now)
            return
        self._delete_acknowledged(header, acked)
        if header.window_size:  # S4
            self.received_window_size = header.window_size
        for name, theirs, ours in (
            ("UserMsgSequenceNumber", header.user_msg_sequence_number, self.message_received_count),
            ("RecoverableMsgSeqNumber", header.recoverable_msg_seq_number, self.recoverable_message_received_count),
        ):
            if theirs != on_wire(ours):  # 3.1.5.5.5
                detail = f"{name} is {theirs}, but {on_wire(ours)} such messages were received"
                self._close(CloseReason.UNEXPECTED_PACKET, detail, now)
                return
        if self.outgoing.awaiting:
            self._start_ack_wait(now)

    def _delete_acknowledged(self, header: mqqb.SessionHeader | mqqb.SessionAck, acked: int) -> None:
        """[MS-MQQB] 3.1.5.5.1 to 3.1.5.5.3."""
        first, flags = header.recoverable_msg_ack_seq_number, header.recoverable_msg_ack_flags
        # S10; numbers of messages that were not sent on this session acknowledge nothing
        stored = latest(first, self.recoverable_message_sent_count) if first or flags else None
        kept: list[OutgoingMessagePosition] = []
        deleted: list[int] = []
        for position in self.outgoing.awaiting:
            if position.recoverable:
                delete = stored is not None and _is_stored(position.recoverable_sequence_number, stored, flags)
            else:
                delete = position.sequence_number <= acked
            if not position.received_session_ack and (delete or position.sequence_number <= acked):
                position.received_session_ack = True
                self.unacked_message_count -= 1
                self._unacked_bytes -= len(position.packet)
            if delete:
                if not position.is_acknowledgment:
                    deleted.append(position.message_id)
                self.outgoing.remove(position)
            else:
                kept.append(position)
        self.outgoing.awaiting = kept
        if deleted:
            self._events.append(MessagesAcknowledged(tuple(deleted)))

    def _receive_user_message(self, message: mqqb.UserMessage, data: bytes, now: float) -> None:
        """[MS-MQQB] 3.1.5.8."""
        recoverable = message.delivery_mode == "recoverable"
        if message.transaction is not None and (problem := _malformed_transaction(message)):
            self._close(CloseReason.MALFORMED_PACKET, f"malformed packet: {problem}", now)
            return
        foreign = data[QUEUE_MANAGER_ADDRESS] not in self._addresses
        if foreign and recoverable:
            self.incoming.pause(self.remote_queue_manager, self._address, now)
            name = f"{message.source_queue_manager}\\{message.message_id}"
            detail = (
                f"message {name} to {message.destination_queue} is for queue manager {message.queue_manager_address}, "
                f"this is {self.identifier}, and nothing is forwarded; sessions of the sender are closed for a minute"
            )
            self._close(CloseReason.NOT_FORWARDED, detail, now)
            return
        # Both counts are raised once, also for a message that is not delivered (S2, S6)
        self.message_received_count += 1
        self.unacked_received_msg_count += 1
        self._unacked_received_bytes += len(data)
        self.session_active = True
        if Timer.SESSION_ACK_SEND not in self._timers:
            self._start_ack_send(self.ack_wait_timeout / 2, now)
        if recoverable:
            self._count_recoverable(len(data), now)
        self._deliver(message, data, foreign, now)
        if message.session is not None:
            self._receive_session_header(message.session, now)
        window = min(self._window_size, self.received_window_size)
        if self.is_open and (
            self.unacked_received_msg_count >= max(1, window // 2)  # S8
            or self._unacked_received_bytes >= self.settings.max_unacknowledged_bytes // 2
        ):
            self._send_session_ack()

    def _count_recoverable(self, size: int, now: float) -> None:
        """[MS-MQQB] 3.1.5.8.7; ``data_to_send`` is called when the message is on disk."""
        bit = self.recoverable_message_received_count - self.last_acked_recoverable_msg_seq_number
        if bit >= _FLAGS:
            self._send_session_ack()
            self.unacked_received_msg_count, self._unacked_received_bytes = 1, size  # S7
            bit = 0
        self.recoverable_message_received_count += 1
        if not self.recoverable_msg_ack_flags:
            self._start_ack_send(self.recoverable_ack_send_timeout, now)
        self.recoverable_msg_ack_flags |= 1 << bit

    def _deliver(self, message: mqqb.UserMessage, data: bytes, foreign: bool, now: float) -> None:
        """[MS-MQQB] 3.1.5.8.1, 3.1.5.8.2, 3.1.7.1.2."""
        if foreign:
            self._disregard(message, Disregarded.OTHER_QUEUE_MANAGER)
        elif acknowledgments.is_order_queue(message.destination_queue):
            self._disregard(message, Disregarded.ORDER_QUEUE)
        elif message.transaction is not None:
            self._deliver_transactional(message, message.transaction, data)
        elif reason := self._rejection(message):
            self._disregard(message, reason)
        elif self._has_expired(message):
            self._disregard(message, Disregarded.EXPIRED)  # S19
        # Known from now on, which a message that is not accepted must not be
        elif (first := self.history.first_address(data, now, self._address)) is not None:
            self._events.append(MessageDisregarded(message, Disregarded.DUPLICATE, first))
        else:
            self._put(message, data, f"{message.source_queue_manager}:{message.message_id}")

    def _rejection(self, message: mqqb.UserMessage) -> Disregarded | None:
        """Why a message does not belong into its queue: 3.1.5.8.2, S24."""
        if self._accepts is not None and not self._accepts(message):
            return Disregarded.NO_SUCH_QUEUE
        kind = None if self._transactional is None else self._transactional(message)
        if kind is True and message.transaction is None:
            return Disregarded.NOT_TRANSACTIONAL_MESSAGE
        if kind is False and message.transaction is not None:
            return Disregarded.NOT_TRANSACTIONAL_QUEUE
        return None

    def _has_expired(self, message: mqqb.UserMessage) -> bool:
        lifetime = message.time_to_reach_queue
        return lifetime != FOREVER and self._current_time() - message.sent_time_seconds > lifetime

    def _deliver_transactional(
        self, message: mqqb.UserMessage, transaction: mqqb.TransactionHeader, data: bytes
    ) -> None:
        """[MS-MQQB] 3.1.5.8.6."""
        key, store = sequence_key(message), self.incoming.store
        state = self._sequences.get(key) or store.get(key)
        order = order_of(state, transaction, is_durable=store.is_durable)
        if order is Order.ACCEPTED and self._has_expired(message):
            # S41: its number is not taken, and its sender says what became of it
            self._events.append(MessageDisregarded(message, Disregarded.EXPIRED))
            return
        is_direct = isinstance(message.destination_queue, DirectName | str)
        self._sequences[key] = changed = after(state, transaction, order, is_direct=is_direct)
        if order is Order.ACCEPTED:
            self._order_acks_due[key] = None
            if reason := self._rejection(message):
                message_class = acknowledgments.NACK_NOT_TRANSACTIONAL_Q
                if reason is Disregarded.NO_SUCH_QUEUE:
                    message_class = acknowledgments.NACK_BAD_DST_Q
                self._answer_finally(message, message_class)  # S40
                self._disregard(message, reason)
            else:
                source = message.source_queue_manager
                place = f"{transaction.tx_sequence_id}:{transaction.tx_sequence_number}"
                self._put(message, data, f"{source}:{message.destination_queue}:{place}")
            return
        # S35
        is_same = transaction.tx_sequence_id == changed.sequence_id
        if changed.number and (order is Order.DUPLICATE or (order is Order.GAP and is_same)):
            self._order_acks_due[key] = None
        reason = {
            Order.DUPLICATE: Disregarded.DUPLICATE,
            Order.OLD: Disregarded.OLD_SEQUENCE,
            Order.GAP: Disregarded.OUT_OF_ORDER,
        }[order]
        self._events.append(MessageDisregarded(message, reason, self._address, changed.rejects))

    def _put(self, message: mqqb.UserMessage, data: bytes, token: str) -> None:
        """Give a message to the caller, unless its TimeToBeReceived is over."""
        self._answer(message, message.positive_arrival_ack, acknowledgments.ACK_REACH_QUEUE)
        lifetime = message.time_to_be_received
        if lifetime != FOREVER and (lifetime == 0 or self._current_time() - message.sent_time_seconds > lifetime):
            self._disregard(message, Disregarded.NOT_RECEIVED_IN_TIME)
            self._answer_removal(message, acknowledgments.NACK_RECEIVE_TIMEOUT)
            return
        event = MessageReceived(message, data, self._address, self._port, self._wall_clock(), token)
        self._events.append(event)
        self._received.append(event)
        if self._limit is not None:
            self._limit.remaining -= 1
        self._answer_removal(message, acknowledgments.ACK_RECEIVE)

    def _disregard(self, message: mqqb.UserMessage, reason: Disregarded) -> None:
        """Do not deliver a message, and say so where its sender asks for it (3.1.5.8.2, 3.1.7.1.2).

        SendInsecureNacks is FALSE: NACK_BAD_DST_Q goes to no administration queue (3.1.7.15).
        """
        self._events.append(MessageDisregarded(message, reason))
        if reason in _NACKS:
            self._answer(message, message.negative_arrival_ack, _NACKS[reason])

    def _answer_removal(self, message: mqqb.UserMessage, message_class: int) -> None:
        """A message leaves its queue: 3.1.7.2; a row that is stored counts as received (S42)."""
        is_received = message_class == acknowledgments.ACK_RECEIVE
        asked = message.positive_receive_ack if is_received else message.negative_receive_ack
        self._answer(message, asked, message_class)
        if message.transaction is not None and (
            message.positive_source_journaling
            or message.negative_source_journaling
            or message.transaction.final_ack_required
        ):
            self._answer_finally(message, message_class)

    def _answer_finally(self, message: mqqb.UserMessage, message_class: int) -> None:
        self._answers.append((message, acknowledgments.final_ack(message, message_class, self._address)))

    def _answer(self, message: mqqb.UserMessage, asked: bool | None, message_class: int) -> None:
        """Answer to the administration queue on this session, if it is there: 3.1.7.15."""
        if not asked or message.admin_queue is None:
            return
        answer = None
        if acknowledgments.is_reached_by(message.admin_queue, self.remote_queue_manager, self._address):
            answer = acknowledgments.administration_ack(message, message_class)
        if answer is None:
            self._events.append(MessageNotAnswered(message, message_class))
        else:
            self._answers.append((message, answer))

    # --- OrderAck and other acknowledgments that are messages: 3.1.6.9, 3.1.7.15, 3.1.7.17 ---

    def _start_order_ack(self, key: SequenceKey) -> None:
        """Start the Order Ack Send Timer of a sequence (S36)."""
        now, owner = self._now, self.incoming.timers.get(key)
        if owner is not None and owner is not self._order_acks:
            owner.pop(key, None)
        if key in self._order_acks and now - self._order_acks_sent.get(key, self._opened_at) < _MOST_ORDER_ACK_DELAY:
            del self._order_acks[key]
        if key not in self._order_acks:
            self._order_acks[key] = now + _ORDER_ACK_TIMEOUT
        self.incoming.timers[key] = self._order_acks

    def _take_order_acks(self) -> None:
        """Send the OrderAcks of sessions that were lost (S36)."""
        if self.is_open:
            for key in self.incoming.take_order_acks(self.remote_queue_manager):
                self._start_order_ack(key)

    def _expire_order_acks(self, now: float) -> None:
        self._take_order_acks()
        while (due := next(iter(self._order_acks.items()), None)) is not None and due[1] <= now:
            self._send_order_ack(due[0])
        # Only the last second counts
        while (sent := next(iter(self._order_acks_sent.items()), None)) is not None and (
            now - sent[1] >= _MOST_ORDER_ACK_DELAY
        ):
            del self._order_acks_sent[sent[0]]

    def _send_order_ack(self, key: SequenceKey) -> None:
        """Send an OrderAck with the state as it was committed (S36, S37)."""
        del self._order_acks[key]
        self.incoming.timers.pop(key, None)
        self._order_acks_sent.pop(key, None)
        self._order_acks_sent[key] = self._now
        state = self.incoming.store.get(key)
        if state is not None and state.number:
            self._send_acknowledgment(acknowledgments.order_ack(key.source, state, self._address))

    def _send_acknowledgment(self, message: mqqb.UserMessage) -> bool:
        """Send a message of the session itself, also when this side has just closed it; False if too many wait."""
        if self.outgoing.acknowledgment_size >= _MOST_ACKNOWLEDGMENTS:
            return False
        position = self.outgoing.position_of(message, self._wall_clock())
        position.is_acknowledgment = True
        position.carries_header = message.acknowledged is None
        if self.is_open or self._is_lost:
            self.outgoing.add_position(position)
        else:
            self._output.append(position.packet)
        return True

    def _leave_acknowledgments(self) -> None:
        """The session is closed: send OrderAcks that are due if the connection is there, or leave them (S18, S36)."""
        for key in [*self._order_acks]:
            if self._is_lost:
                del self._order_acks[key]
                self.incoming.timers.pop(key, None)
                self.incoming.leave_order_ack(key)
            else:
                self._send_order_ack(key)
        unsent = self.outgoing.take_acknowledgments()
        self.incoming.leave_unsent(self.remote_queue_manager, [each for each in unsent if each.recoverable])

    def _current_time(self) -> int:
        """CURRENT_TIME: [MS-MQQB] 3.1.7.1.2. It has whole seconds, as SentTime, or a lifetime of 0 would be none."""
        return int(self._wall_clock())

    # --- Packets sent: 3.1.7.1, 3.1.7.11 ---

    def _send_waiting(self, now: float) -> None:
        """[MS-MQQB] 3.1.7.1 for each message that waits, by priority (S49), as far as the window allows (S4)."""
        table = self.outgoing
        while self.is_open and table.waiting and len(table.awaiting) < MOST_REMEMBERED:
            if self.unacked_message_count >= min(self._window_size, max(1, self.received_window_size)):
                return
            if self._unacked_bytes >= self.settings.max_unacknowledged_bytes:
                return
            position = table.waiting.pop()
            if not self._remove_if_expired(position):
                self._send_message(position, now)

    def _remove_if_expired(self, position: OutgoingMessagePosition) -> bool:
        """Count a message out that has expired, which was taken from those that wait: 3.1.7.1.2."""
        if self._current_time() <= position.expires:
            return False
        self.outgoing.remove(position)
        self._events.append(MessageExpired(position.message_id))
        return True

    def _send_message(self, position: OutgoingMessagePosition, now: float) -> None:
        """[MS-MQQB] 3.1.7.1.3."""
        self.message_sent_count += 1
        position.sequence_number = self.message_sent_count
        if position.recoverable:
            self.recoverable_message_sent_count += 1
            position.recoverable_sequence_number = self.recoverable_message_sent_count
        position.received_session_ack = False
        self.unacked_message_count += 1
        self._unacked_bytes += len(position.packet)
        self.outgoing.awaiting.append(position)
        self.session_active = True
        if Timer.SESSION_ACK_WAIT not in self._timers:
            self._start_ack_wait(now)
        if position.carries_header and self.unacked_received_msg_count and self._ack_is_late(now):
            self._output.append(position.with_session_header(self._session_ack()[-SESSION_HEADER_SIZE:]))
        else:
            self._output.append(position.packet)

    def _ack_is_late(self, now: float) -> bool:
        """Whether more than 75 percent of the Session Ack Send Timer have elapsed: 3.1.7.11."""
        expires = self._timers.get(Timer.SESSION_ACK_SEND)
        return expires is not None and now - self._ack_send_started > _LATE * (expires - self._ack_send_started)

    def _send_session_ack(self) -> None:
        """[MS-MQQB] 3.1.6.4."""
        self._output.append(self._session_ack())

    def _session_ack(self) -> bytes:
        """A SessionAck packet, which ends with a SessionHeader: filled once, when it is sent (S6).

        The timer is stopped (S14).
        """
        flags = self.recoverable_msg_ack_flags
        packet = mqqb.SessionAck(
            ack_sequence_number=on_wire(self.message_received_count),
            recoverable_msg_ack_seq_number=on_wire(self.last_acked_recoverable_msg_seq_number + 1)
            if flags
            else 0,  # S10
            recoverable_msg_ack_flags=flags,
            user_msg_sequence_number=on_wire(self.message_sent_count),
            recoverable_msg_seq_number=on_wire(self.recoverable_message_sent_count),
            window_size=self._window_size,
        )
        self.recoverable_msg_ack_flags = self.unacked_received_msg_count = self._unacked_received_bytes = 0
        self.last_acked_recoverable_msg_seq_number = self.recoverable_message_received_count
        self._timers.pop(Timer.SESSION_ACK_SEND, None)
        return mqqb.encode(packet)


_NACKS = {
    Disregarded.EXPIRED: acknowledgments.NACK_REACH_QUEUE_TIMEOUT,
    Disregarded.NOT_TRANSACTIONAL_QUEUE: acknowledgments.NACK_NOT_TRANSACTIONAL_Q,
    Disregarded.NOT_TRANSACTIONAL_MESSAGE: acknowledgments.NACK_NOT_TRANSACTIONAL_MSG,
}


def _malformed_transaction(message: mqqb.UserMessage) -> str:
    """What no TransactionHeader may be (S32, S33); empty if it is well-formed."""
    transaction = message.transaction
    if transaction is None or message.delivery_mode != "recoverable":
        return "a transactional message is not recoverable"
    if transaction.previous_tx_sequence_number >= transaction.tx_sequence_number:
        return "PreviousTxSequenceNumber is not below TxSequenceNumber"
    return ""


def _is_stored(number: int, first: int, flags: int) -> bool:
    """Whether a SessionHeader acknowledges the recoverable message ``number``: [MS-MQQB] 3.1.5.5.3."""
    return number <= first or (number - first < _FLAGS and bool(flags >> (number - first) & 1))
