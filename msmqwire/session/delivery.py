"""What becomes of the messages that come on a session: [MS-MQQB] 3.1.5.8.1, 3.1.5.8.2, 3.1.5.8.6, 3.1.7.2."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

from msmqwire import mqqb
from msmqwire.formatname import DirectName
from msmqwire.session import acknowledgments
from msmqwire.session.events import Disregarded, Event, MessageDisregarded, MessageNotAnswered, MessageReceived
from msmqwire.session.history import MessageIDHistory
from msmqwire.session.incoming import Incoming, Order, SequenceKey, SequenceState, after, order_of, sequence_key
from msmqwire.session.limit import MessageLimit
from msmqwire.session.outgoing import FOREVER
from msmqwire.wire.guids import NIL

_NACKS = {
    Disregarded.NO_SUCH_QUEUE: acknowledgments.NACK_BAD_DST_Q,
    Disregarded.EXPIRED: acknowledgments.NACK_REACH_QUEUE_TIMEOUT,
    Disregarded.NOT_TRANSACTIONAL_QUEUE: acknowledgments.NACK_NOT_TRANSACTIONAL_Q,
    Disregarded.NOT_TRANSACTIONAL_MESSAGE: acknowledgments.NACK_NOT_TRANSACTIONAL_MSG,
}


class Delivery:
    """Gives each message of a session to the caller or disregards it, in the order of its sequence.

    What it causes is not done before the messages are stored: ``stored`` and ``not_stored`` say whether they are.

    Parameters
    ----------
    events : list of Event
        Takes what is reported.
    sends_insecure_nacks : bool
        SendInsecureNacks.
    others :
        As of ``Session``.

    Attributes
    ----------
    remote_queue_manager : uuid.UUID
        RemoteQMGuid of the session.
    """

    def __init__(
        self,
        events: list[Event],
        *,
        history: MessageIDHistory,
        incoming: Incoming,
        accepts: Callable[[mqqb.UserMessage], bool] | None,
        transactional: Callable[[mqqb.UserMessage], bool | None] | None,
        limit: MessageLimit | None,
        sends_insecure_nacks: bool,
        address: str,
        port: int,
        wall_clock: Callable[[], float],
    ) -> None:
        self.remote_queue_manager: UUID = NIL
        self._events = events
        self._history = history
        self._incoming = incoming
        self._accepts = accepts
        self._transactional = transactional
        self._limit = limit
        self._sends_insecure_nacks = sends_insecure_nacks
        self._address = address
        self._port = port
        self._wall_clock = wall_clock
        self._forget()

    def _forget(self) -> None:
        self._received: list[MessageReceived] = []
        self._sequences: dict[SequenceKey, SequenceState] = {}
        self._order_acks: dict[SequenceKey, None] = {}
        self._answers: list[tuple[mqqb.UserMessage, mqqb.UserMessage]] = []

    def stored(self) -> tuple[list[tuple[mqqb.UserMessage, mqqb.UserMessage]], list[SequenceKey]]:
        """Commit the sequences; the messages with their answers, and the sequences of which an OrderAck is due."""
        if self._sequences:
            self._incoming.store.commit(self._sequences)
        answers, due = self._answers, [*self._order_acks]
        self._forget()
        return answers, due

    def not_stored(self) -> None:
        """The messages are lost, and accepted when they come again."""
        for event in self._received:
            self._history.forget(event.packet)
        if self._limit is not None:
            self._limit.remaining += len(self._received)
        self._forget()

    def deliver(self, message: mqqb.UserMessage, data: bytes, foreign: bool, now: float) -> None:
        """[MS-MQQB] 3.1.5.8.1, 3.1.5.8.2, 3.1.7.1.2; ``foreign``: for another queue manager."""
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
        elif (first := self._history.first_address(data, now, self._address)) is not None:
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
        return lifetime != FOREVER and self._age(message) > lifetime

    def _age(self, message: mqqb.UserMessage) -> int:
        """Seconds since SentTime, by CURRENT_TIME of 3.1.7.1.2, which has whole seconds as SentTime has."""
        return int(self._wall_clock()) - message.sent_time_seconds

    def _deliver_transactional(
        self, message: mqqb.UserMessage, transaction: mqqb.TransactionHeader, data: bytes
    ) -> None:
        """[MS-MQQB] 3.1.5.8.6."""
        key, store = sequence_key(message), self._incoming.store
        state = self._sequences.get(key) or store.get(key)
        order = order_of(state, transaction, is_durable=store.is_durable)
        if order is Order.ACCEPTED and self._has_expired(message):
            # S41: its number is not taken, and its sender says what became of it
            self._events.append(MessageDisregarded(message, Disregarded.EXPIRED))
            return
        is_direct = isinstance(message.destination_queue, DirectName | str)
        self._sequences[key] = changed = after(state, transaction, order, is_direct=is_direct)
        if order is Order.ACCEPTED:
            self._order_acks[key] = None
            if reason := self._rejection(message):
                self._answer_finally(message, _NACKS[reason])  # S40
                self._disregard(message, reason)
            else:
                source = message.source_queue_manager
                place = f"{transaction.tx_sequence_id}:{transaction.tx_sequence_number}"
                self._put(message, data, f"{source}:{message.destination_queue}:{place}")
            return
        # S35
        is_same = transaction.tx_sequence_id == changed.sequence_id
        if changed.number and (order is Order.DUPLICATE or (order is Order.GAP and is_same)):
            self._order_acks[key] = None
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
        if lifetime != FOREVER and (lifetime == 0 or self._age(message) > lifetime):
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
        """Do not deliver a message, and say so where its sender asks for it (3.1.5.8.2, 3.1.7.1.2)."""
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
        is_secure = message_class != acknowledgments.NACK_BAD_DST_Q or self._sends_insecure_nacks
        if is_secure and acknowledgments.is_reached_by(message.admin_queue, self.remote_queue_manager, self._address):
            answer = acknowledgments.administration_ack(message, message_class)
        if answer is None:
            self._events.append(MessageNotAnswered(message, message_class))
        else:
            self._answers.append((message, answer))
