"""One session of [MS-MQQB] 3.1, without I/O: everything that initiator and acceptor have in common.

Bytes and times go in; bytes, events and the next deadline come out. Times are seconds of one monotonic clock. States,
timers and counts have the names of the text. docs/conformance.md lists S1 to S53: what is decided where the text
contradicts itself or is silent.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from uuid import UUID, uuid4

from msmqwire import mqqb
from msmqwire.errors import DecodeError
from msmqwire.mqqb.framing import SESSION_HEADER_SIZE
from msmqwire.session import acknowledgments
from msmqwire.session.delivery import Delivery
from msmqwire.session.events import (
    CloseReason,
    Event,
    MessageExpired,
    MessageFinished,
    MessageNotAnswered,
    MessagesAcknowledged,
    SessionClosed,
    SessionOpened,
)
from msmqwire.session.framing import QUEUE_MANAGER_ADDRESS, PacketReader
from msmqwire.session.history import MOST_REMEMBERED, MessageIDHistory
from msmqwire.session.incoming import Incoming, OrderAckTimers, SequenceKey
from msmqwire.session.limit import MessageLimit
from msmqwire.session.numbers import on_wire
from msmqwire.session.outgoing import OutgoingMessagePosition, OutgoingMessageTable
from msmqwire.session.receiving import Receiving
from msmqwire.session.sending import Sending
from msmqwire.session.sequences import OutgoingSequences
from msmqwire.session.settings import RECOVERABLE_ACK_TIMEOUTS, Settings
from msmqwire.session.timers import Timer, Timers
from msmqwire.session.transitions import TRANSITION_OF, Packet, SessionState
from msmqwire.wire.guids import NIL

_MOST_ACKNOWLEDGMENTS = 1 << 18  # bytes that wait for the peer
_TIMERS = {True: tuple(Timer), False: (Timer.SESSION_ACK_SEND,)}  # by whether the session may close
_LATE = 0.75  # of the Session Ack Send Timer, after which a message carries the acknowledgment: 3.1.7.11


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
    sending : Sending
    receiving : Receiving
        The counts of [MS-MQQB] 3.1.1.3.1 in each direction.
    timers : Timers
    """

    def __init__(
        self,
        identifier: UUID | None = None,
        *,
        settings: Settings | None = None,
        history: MessageIDHistory | None = None,
        accepts: Callable[[mqqb.UserMessage], bool] | None = None,
        transactional: Callable[[mqqb.UserMessage], bool | None] | None = None,
        incoming: Incoming | None = None,
        sequences: OutgoingSequences | None = None,
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
        self._sequences = sequences
        self.outgoing = OutgoingMessageTable(self.identifier, self.settings.max_packet_size, self.incoming.message_ids)
        self.state = SessionState.CLOSED
        self.remote_queue_manager = NIL
        self._addresses = (NIL.bytes_le, self.identifier.bytes_le)
        self._limit = limit
        self._refuses = refuses
        self._address = address
        self._wall_clock = wall_clock
        self._output: list[bytes] = []
        self.timers = Timers()
        self._events: list[Event] = []
        self._now = 0.0
        self._order_acks = OrderAckTimers(self.incoming)
        self._last_answer = 0
        self._delivery = Delivery(
            self._events,
            history=self.history,
            incoming=self.incoming,
            accepts=accepts,
            transactional=transactional,
            limit=limit,
            sends_insecure_nacks=self.settings.send_insecure_nacks,
            address=address,
            port=port,
            wall_clock=wall_clock,
        )
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
        return self.sending.unacked_bytes

    @property
    def incomplete_bytes(self) -> int:
        """The bytes of a packet that is not complete."""
        return len(self._reader)

    def send(self, message: mqqb.UserMessage, now: float) -> int:
        """Send a message as soon as the session and its window allow, and return its MessageID.

        A message without MessageID, SourceQueueManager or SentTime gets them. All other fields are sent as they are.

        Raises
        ------
        EncodeError
            The message is transactional (S24), its packet is too large (S22), or it cannot be written.
        """
        message_id = self.outgoing.add(message, self._wall_clock())
        self._send_waiting(now)
        return message_id

    def receive_data(self, data: bytes | bytearray | memoryview, now: float) -> list[Event]:
        """Handle bytes of the connection, divided anywhere."""
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
        """Return the bytes to write to the connection since the last call, also those of a session that has closed.

        Calls ``messages_stored``.
        """
        self.messages_stored()
        data = b"".join(self._output)
        self._output.clear()
        return data

    def next_deadline(self, *, closing: bool = True) -> float | None:
        """Return when ``handle_deadline`` has to be called, with the same ``closing``; None if no timer is running.

        ``-inf``, which is at once, where ``send`` has left events: of a message that has expired.
        """
        if self._events or (self._sequences is not None and self._sequences.outbox.outcomes):
            return float("-inf")
        sequences = None if self._sequences is None else self._sequences.next_deadline(self._now)
        expiries = (self.timers.expiry(_TIMERS[closing]), self._order_acks.next_expiry(), sequences)
        return min((each for each in expiries if each is not None), default=None)

    def handle_deadline(self, now: float, *, closing: bool = True) -> list[Event]:
        """Handle the timers that have expired, in the order of their times: [MS-MQQB] 3.1.6.

        Without ``closing``, as bytes have come that are not passed yet, only an acknowledgment that is due is sent.
        """
        self._now = now
        self._take_order_acks()
        for key in self._order_acks.take(now):
            self._send_order_ack(key)
        for timer in self.timers.take_expired(now, _TIMERS[closing]):
            getattr(self, TRANSITION_OF[self.state, timer].method)(now)
        if self._sequences is not None:
            self._sequences.handle_deadline(now)
            self._take_outcomes(now)
        self._send_waiting(now)
        return self._take_events()

    def connection_lost(
        self,
        now: float,
        detail: str = "the connection was closed",
        reason: CloseReason = CloseReason.CONNECTION_LOST,
    ) -> list[Event]:
        """Take the end of the connection, or its failure."""
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
        """Note that the messages of all ``MessageReceived`` so far are stored: they may be acknowledged (S34).

        With a durable store of ``Incoming`` this stores them.

        Raises
        ------
        StoreError
            They cannot be stored. Call ``messages_not_stored`` and ``connection_lost`` then.
        """
        answers, due = self._delivery.stored()
        for message, answer in answers:
            if not self._send_acknowledgment(answer):
                self._events.append(MessageNotAnswered(message, answer.message_class or 0))
        for key in due:
            self._start_order_ack(key)
        self._take_outcomes(self._now)
        if self.is_disconnected:
            self._leave_acknowledgments()
        else:
            self._send_waiting(self._now)

    def messages_not_stored(self) -> None:
        """Forget the messages of ``MessageReceived`` since ``messages_stored``: they are accepted when they come again.

        Call ``connection_lost`` and not ``data_to_send`` then.
        """
        self._delivery.not_stored()

    # --- Beginning and end: 3.1.3.2, 3.1.5.9 ---

    def _initialize(self, state: SessionState) -> None:
        self.sending = Sending(self.outgoing, self._window_size, self.settings.max_unacknowledged_bytes)
        self.receiving = Receiving()
        self.ack_wait_timeout = self.settings.ack_wait_timeout
        self.recoverable_ack_send_timeout = RECOVERABLE_ACK_TIMEOUTS.highest
        self.session_active = self.received_ack = self._is_lost = False
        self.state = state
        self._opened_at = 0.0
        self.timers.stop_all()
        self._output.clear()
        self._reader = PacketReader(self.settings.max_packet_size)

    def _start_initialization(self, state: SessionState, now: float) -> None:
        self._initialize(state)
        self.timers.start(Timer.SESSION_INITIALIZATION, self.settings.initialization_timeout, now)  # S13
        self.timers.start(Timer.SESSION_CLEANUP, self.settings.cleanup_timeout, now)

    def _opened(self, now: float) -> None:
        self.timers.stop(Timer.SESSION_INITIALIZATION)
        self._opened_at = now
        for position in self.incoming.take_unsent(self.remote_queue_manager):
            self.outgoing.adopt(position)
        self.incoming.answering[self.remote_queue_manager] = self
        if self._sequences is not None:
            self._sequences.session_opened(now)
        self._events.append(SessionOpened(self.remote_queue_manager))

    @property
    def is_disconnected(self) -> bool:
        """Whether the session has no connection: its state is CLOSED or WAITING_RECONNECT."""
        return self.state in (SessionState.CLOSED, SessionState.WAITING_RECONNECT)

    def _close(self, reason: CloseReason, detail: str, now: float) -> None:
        if self.is_disconnected:
            return
        if self.is_open and not self._is_lost:
            self._send_owed_ack(now)  # what came before is stored
        self.timers.stop_all()
        self.state = SessionState.CLOSED
        self._reader.clear()
        self.outgoing.start_session()
        if self._sequences is not None:
            self._sequences.session_lost(now)
        self._events.append(SessionClosed(reason, detail))

    def _take_events(self) -> list[Event]:
        events = self._events.copy()
        self._events.clear()  # ``_delivery`` has the same list
        return events

    # --- Timers: 3.1.2, 3.1.6 ---

    def _start_ack_send(self, milliseconds: float, now: float) -> None:
        self.timers.start(Timer.SESSION_ACK_SEND, milliseconds / 1000, now)

    @property
    def _ack_wait_seconds(self) -> float:
        return self.ack_wait_timeout * self.settings.ack_wait_multiple / 1000

    def _close_uninitialized(self, now: float) -> None:
        """Close a session that was not initialized in time: [MS-MQQB] 3.1.6.6."""
        seconds = f"{self.settings.initialization_timeout:g}"
        self._close(CloseReason.INITIALIZATION_TIMEOUT, f"the session was not initialized in {seconds} seconds", now)

    def _close_if_idle(self, now: float) -> None:
        """Close a session without messages: [MS-MQQB] 3.1.6.2."""
        if self.session_active:
            self.session_active = False
            self.timers.start(Timer.SESSION_CLEANUP, self.settings.cleanup_timeout, now)
        else:
            seconds = f"{self.settings.cleanup_timeout:g}"
            self._close(CloseReason.IDLE, f"there was no message for {seconds} seconds", now)

    def _close_if_silent(self, now: float) -> None:
        """Close a session whose peer acknowledges nothing: [MS-MQQB] 3.1.6.3."""
        if self.received_ack or not self.outgoing.awaiting:
            self.received_ack = False
            if self.outgoing.awaiting:
                self.timers.start(Timer.SESSION_ACK_WAIT, self._ack_wait_seconds, now)
        else:
            detail = f"no packet came within {self._ack_wait_seconds:g} seconds while messages were not acknowledged"
            self._close(CloseReason.ACK_WAIT_TIMEOUT, detail, now)

    def _send_owed_ack(self, now: float) -> None:
        """Send the acknowledgment that is due, [MS-MQQB] 3.1.6.4; the timer stays stopped (S14)."""
        if self.receiving.unacked_received_msg_count:
            self._send_session_ack()

    # --- Packets received: 3.1.5 ---

    def _receive_packet(self, data: bytes, now: float) -> None:
        self.received_ack = True
        try:
            packet = mqqb.decode(data, strict=True, transport="tcp")
        except DecodeError as error:
            self._close(CloseReason.MALFORMED_PACKET, f"malformed packet: {error}", now)
            return
        before = self.state
        transition = TRANSITION_OF.get((before, type(packet)))
        if transition is None:
            self._close(CloseReason.UNEXPECTED_PACKET, f"{type(packet).__name__} packet in state {before}", now)
        elif transition.refusable and (refusal := _refusal(packet)):  # S15
            self._close(CloseReason.REFUSED, refusal, now)
        else:
            getattr(self, transition.method)(packet, data, now)
            if transition.target is not None and self.state is before:
                self.state = transition.target
                if self.is_open:
                    self._opened(now)

    @abstractmethod
    def _receive_establish_connection(self, packet: mqqb.EstablishConnection, data: bytes, now: float) -> None: ...

    @abstractmethod
    def _receive_connection_parameters(self, packet: mqqb.ConnectionParameters, data: bytes, now: float) -> None: ...

    def _receive_session_ack(self, packet: mqqb.SessionAck, data: bytes, now: float) -> None:
        self._receive_session_header(packet, now)

    def _receive_session_header(self, header: mqqb.SessionHeader | mqqb.SessionAck, now: float) -> None:
        """Take the acknowledgments of a SessionHeader: [MS-MQQB] 3.1.5.5."""
        deleted = self.sending.acknowledged(header)
        if deleted is None:
            sent = on_wire(self.sending.message_sent_count)
            detail = f"AckSequenceNumber is {header.ack_sequence_number}, but {sent} messages were sent"
            self._close(CloseReason.UNEXPECTED_PACKET, detail, now)
            return
        if deleted:
            self._events.append(MessagesAcknowledged(tuple(deleted)))
        if self.outgoing.answered:
            self.incoming.store.answered(self.outgoing.answered)
            self.outgoing.answered.clear()
        if detail := self.receiving.difference(header):
            self._close(CloseReason.UNEXPECTED_PACKET, detail, now)
        elif self.outgoing.awaiting:
            self.timers.start(Timer.SESSION_ACK_WAIT, self._ack_wait_seconds, now)

    def _receive_user_message(self, message: mqqb.UserMessage, data: bytes, now: float) -> None:
        """Take a message: [MS-MQQB] 3.1.5.8."""
        recoverable = message.delivery_mode == "recoverable"
        if message.transaction is not None and (problem := _malformed_transaction(message)):
            self._close(CloseReason.MALFORMED_PACKET, f"malformed packet: {_name(message)}: {problem}", now)
            return
        foreign = data[QUEUE_MANAGER_ADDRESS] not in self._addresses
        if foreign and recoverable:
            self.incoming.pause(self.remote_queue_manager, self._address, now)
            detail = (
                f"{_name(message)} is for queue manager {message.queue_manager_address}, "
                f"this is {self.identifier}, and nothing is forwarded; sessions of the sender are closed for a minute"
            )
            self._close(CloseReason.NOT_FORWARDED, detail, now)
            return
        self.receiving.count(len(data))
        self.session_active = True
        if Timer.SESSION_ACK_SEND not in self.timers:
            self._start_ack_send(self.ack_wait_timeout / 2, now)
        if recoverable:
            self._count_recoverable(len(data), now)
        self._delivery.remote_queue_manager = self.remote_queue_manager
        self._delivery.deliver(message, data, foreign, now)
        if message.session is not None:
            self._receive_session_header(message.session, now)
        window = min(self._window_size, self.sending.received_window_size)
        if self.is_open and (
            self.receiving.unacked_received_msg_count >= max(1, window // 2)  # S8
            or self.receiving.unacked_bytes >= self.settings.max_unacknowledged_bytes // 2
        ):
            self._send_session_ack()

    def _count_recoverable(self, size: int, now: float) -> None:
        """Count a recoverable message, [MS-MQQB] 3.1.5.8.7; ``data_to_send`` is called when the message is on disk."""
        if self.receiving.flags_are_full:
            self._send_session_ack()
            self.receiving.count_unacknowledged(size)  # S7
        if not self.receiving.recoverable_msg_ack_flags:
            self._start_ack_send(self.recoverable_ack_send_timeout, now)
        self.receiving.count_recoverable()

    # --- OrderAck and other acknowledgments that are messages: 3.1.6.9, 3.1.7.15, 3.1.7.17 ---

    def _take_order_acks(self) -> None:
        """Send the OrderAcks of sessions that were lost (S36), at once: this session may be lost as soon as those."""
        if self.is_open:
            for key in self.incoming.take_order_acks(self.remote_queue_manager):
                self._send_order_ack(key)

    def _start_order_ack(self, key: SequenceKey) -> None:
        if self._order_acks.start(key, self._now, self._opened_at):
            self._send_order_ack(key)

    def _send_order_ack(self, key: SequenceKey) -> None:
        """Send an OrderAck with the state as it was committed (S36, S37)."""
        self.incoming.order_ack_sent(key, self._now)
        state = self.incoming.store.get(key)
        if state is not None and state.number:
            self._send_acknowledgment(acknowledgments.order_ack(key.source, state, self._address))

    def _send_acknowledgment(self, message: mqqb.UserMessage) -> bool:
        """Send a message of the session itself, also when this side has just closed it; False if too many wait."""
        if self.outgoing.acknowledgment_size >= _MOST_ACKNOWLEDGMENTS:
            return False
        position = self._acknowledgment(message)
        if self.is_open or self._is_lost:
            self.outgoing.add_position(position)
            return True
        self._output.append(position.packet)
        if position.recoverable:
            # Nothing more is read on this session, and the peer discards a duplicate (S43)
            self.incoming.leave_unsent(self.remote_queue_manager, [position])
        return True

    def _acknowledgment(self, message: mqqb.UserMessage) -> OutgoingMessagePosition:
        position = self.outgoing.position_of(message, self._wall_clock())
        position.is_acknowledgment = True
        position.carries_header = message.acknowledged is None
        return position

    def _leave_acknowledgments(self) -> None:
        """Send the OrderAcks that are due on a closed session if the connection is there, or leave them (S18, S36)."""
        for key in self._order_acks.take():
            if self._is_lost:
                self.incoming.leave_order_ack(key)
            else:
                self._send_order_ack(key)
        unsent = [each for each in self.outgoing.take_acknowledgments() if each.recoverable and not each.row]
        self.incoming.leave_unsent(self.remote_queue_manager, unsent)
        if self.incoming.answering.get(self.remote_queue_manager) is self:
            del self.incoming.answering[self.remote_queue_manager]

    def _take_outcomes(self, now: float) -> None:
        """Report what became of messages of sequences, and see what is left of them."""
        if self._sequences is None:
            return
        self._sequences.refresh(now)
        outcomes = self._sequences.outbox.outcomes
        self._events += [MessageFinished(each.message_id, each.message_class, each.packet) for each in outcomes]
        outcomes.clear()

    def _take_answers(self) -> None:
        """Send the stored answers to the peer, which stay stored until the peer acknowledges them (S43)."""
        while (
            self.outgoing.acknowledgment_size < _MOST_ACKNOWLEDGMENTS
            and self.incoming.answering.get(self.remote_queue_manager) is self
            and (found := self.incoming.store.answers(self.remote_queue_manager, self._last_answer))
        ):
            for row, packet in found:
                answer = mqqb.decode(packet, strict=True, transport="tcp")
                assert isinstance(answer, mqqb.UserMessage)
                position = self._acknowledgment(answer)
                position.row = self._last_answer = row
                self.outgoing.add_position(position)

    def _current_time(self) -> int:
        """CURRENT_TIME: [MS-MQQB] 3.1.7.1.2. It has whole seconds, as SentTime, or a lifetime of 0 would be none."""
        return int(self._wall_clock())

    # --- Packets sent: 3.1.7.1, 3.1.7.11 ---

    def _send_waiting(self, now: float) -> None:
        """Send messages that wait, by priority (S49), as far as the window allows (S4): [MS-MQQB] 3.1.7.1."""
        if self.is_open:
            self._take_answers()
        while self.is_open and self.outgoing.waiting and self.sending.has_room:
            position = self.outgoing.waiting.pop()
            if not self._remove_if_expired(position):
                self._send_message(position, now)
        while (
            self._sequences is not None
            and self.is_open
            and self.sending.has_room
            and (sequenced := self._sequences.next_message(now)) is not None
        ):
            self.outgoing.add_in_flight(sequenced)
            self._send_message(sequenced, now)

    def _remove_if_expired(self, position: OutgoingMessagePosition) -> bool:
        """Count a message out that has expired, which was taken from those that wait: 3.1.7.1.2."""
        if self._current_time() <= position.expires:
            return False
        self.outgoing.remove(position)
        self._events.append(MessageExpired(position.message_id))
        return True

    def _send_message(self, position: OutgoingMessagePosition, now: float) -> None:
        """Send a message: [MS-MQQB] 3.1.7.1.3."""
        self.sending.count(position)
        self.session_active = True
        if Timer.SESSION_ACK_WAIT not in self.timers:
            self.timers.start(Timer.SESSION_ACK_WAIT, self._ack_wait_seconds, now)
        owed = self.receiving.unacked_received_msg_count
        # 3.1.7.11
        if position.carries_header and owed and self.timers.elapsed(Timer.SESSION_ACK_SEND, now) > _LATE:
            self._output.append(position.with_session_header(self._session_ack()[-SESSION_HEADER_SIZE:]))
        else:
            self._output.append(position.packet)

    def _send_session_ack(self) -> None:
        """Send a SessionAck packet: [MS-MQQB] 3.1.6.4."""
        self._output.append(self._session_ack())

    def _session_ack(self) -> bytes:
        """Return a SessionAck packet, which ends with a SessionHeader: filled once, when it is sent (S6).

        The timer is stopped (S14).
        """
        self.timers.stop(Timer.SESSION_ACK_SEND)
        received, first, flags = self.receiving.acknowledgment()
        packet = mqqb.SessionAck(
            ack_sequence_number=received,
            recoverable_msg_ack_seq_number=first,
            recoverable_msg_ack_flags=flags,
            user_msg_sequence_number=on_wire(self.sending.message_sent_count),
            recoverable_msg_seq_number=on_wire(self.sending.recoverable_message_sent_count),
            window_size=self._window_size,
        )
        return mqqb.encode(packet)


def _name(message: mqqb.UserMessage) -> str:
    return f"message {message.source_queue_manager}\\{message.message_id} to {message.destination_queue}"


def _malformed_transaction(message: mqqb.UserMessage) -> str:
    """Return what is wrong with a TransactionHeader (S32, S33); empty if it is well-formed."""
    transaction = message.transaction
    if transaction is None or message.delivery_mode != "recoverable":
        return "a transactional message is not recoverable"
    if transaction.previous_tx_sequence_number >= transaction.tx_sequence_number:
        return "PreviousTxSequenceNumber is not below TxSequenceNumber"
    return ""


def _refusal(packet: Packet) -> str:
    """Say in which packet the peer refused the session; empty if it did not."""
    if isinstance(packet, mqqb.UserMessage | mqqb.Ping) or not packet.refused:
        return ""
    if isinstance(packet, mqqb.EstablishConnection):
        return f"queue manager {packet.server_guid} refused the session"
    return f"the peer refused the session in a {type(packet).__name__} packet"
