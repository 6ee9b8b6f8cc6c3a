"""What becomes of the messages that come on a session: [MS-MQQB] 3.1.5.8.1, 3.1.5.8.2, 3.1.5.8.6, 3.1.7.2."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

from msmqwire import mqqb
from msmqwire.formatname import DirectName
from msmqwire.session import acknowledgments
from msmqwire.session.events import Disregarded, Event, MessageDisregarded, MessageNotAnswered, MessageReceived
from msmqwire.session.history import MessageIDHistory
from msmqwire.session.incoming import Changes, Incoming, Order, SequenceKey, after, order_of, sequence_key
from msmqwire.session.limit import MessageLimit
from msmqwire.session.outgoing import FOREVER
from msmqwire.wire.guids import NIL

_NACKS = {
    Disregarded.NO_SUCH_QUEUE: acknowledgments.NACK_BAD_DST_Q,
    Disregarded.EXPIRED: acknowledgments.NACK_REACH_QUEUE_TIMEOUT,
    Disregarded.NOT_TRANSACTIONAL_QUEUE: acknowledgments.NACK_NOT_TRANSACTIONAL_Q,
    Disregarded.NOT_TRANSACTIONAL_MESSAGE: acknowledgments.NACK_NOT_TRANSACTIONAL_MSG,
    Disregarded.NO_ROOM: acknowledgments.NACK_Q_EXCEED_QUOTA,
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
        self._changes = Changes()
        self._received_size = 0
        self._order_acks: dict[SequenceKey, None] = {}

    def stored(self) -> tuple[list[tuple[mqqb.UserMessage, mqqb.UserMessage]], list[SequenceKey]]:
        """Commit what came; messages with the answers that no store keeps, and the sequences whose OrderAck is due.

        Raises
        ------
        StoreError
            It cannot be committed, and nothing may be acknowledged.
        """
        changes, due = self._changes, [*self._order_acks]
        if changes.sequences or changes.received or changes.answers or changes.acknowledgments:
            self._incoming.store.commit(changes, self.remote_queue_manager)
        self._forget()
        return [] if self._incoming.store.is_durable else changes.answers, due

    def not_stored(self) -> None:
        """Forget messages that are lost: they are accepted when they come again."""
        for event in self._changes.received:
            self._history.forget(event.packet)
        if self._limit is not None:
            self._limit.remaining += len(self._changes.received)
        self._forget()

    def deliver(self, message: mqqb.UserMessage, data: bytes, foreign: bool, now: float) -> None:
        """Deliver a message: [MS-MQQB] 3.1.5.8.1, 3.1.5.8.2, 3.1.7.1.2; ``foreign``: for another queue manager."""
        if foreign:
            self._disregard(message, Disregarded.OTHER_QUEUE_MANAGER)
        elif acknowledgments.is_order_queue(message.destination_queue):
            if self._incoming.store.is_durable:
                self._changes.acknowledgments.append(message)
            else:
                self._disregard(message, Disregarded.ORDER_QUEUE)
        elif message.transaction is not None:
            self._deliver_transactional(message, message.transaction, data)
        elif reason := self._rejection(message):
            self._disregard(message, reason)
        elif has_expired(message, message.time_to_reach_queue, self._wall_clock()):
            self._disregard(message, Disregarded.EXPIRED)  # S19
        # Known from now on, which a message that is not accepted must not be
        elif (first := self._history.first_address(data, now, self._address)) is not None:
            self._events.append(MessageDisregarded(message, Disregarded.DUPLICATE, first))
        elif self._has_no_room(data):
            self._history.forget(data)
            self._disregard(message, Disregarded.NO_ROOM)
        else:
            self._put(message, data)

    def _rejection(self, message: mqqb.UserMessage) -> Disregarded | None:
        """Return why a message does not belong into its queue: 3.1.5.8.2, S24."""
        if self._accepts is not None and not self._accepts(message):
            return Disregarded.NO_SUCH_QUEUE
        kind = None if self._transactional is None else self._transactional(message)
        if kind is True and message.transaction is None:
            return Disregarded.NOT_TRANSACTIONAL_MESSAGE
        if kind is False and message.transaction is not None:
            return Disregarded.NOT_TRANSACTIONAL_QUEUE
        return None

    def _has_no_room(self, data: bytes) -> bool:
        return not self._incoming.store.has_room(self._received_size + len(data))

    def _deliver_transactional(
        self, message: mqqb.UserMessage, transaction: mqqb.TransactionHeader, data: bytes
    ) -> None:
        """Deliver a transactional message: [MS-MQQB] 3.1.5.8.6."""
        key, store = sequence_key(message), self._incoming.store
        state = self._changes.sequences.get(key) or store.get(key)
        order = order_of(state, transaction, is_durable=store.is_durable)
        if order is Order.ACCEPTED and has_expired(message, message.time_to_reach_queue, self._wall_clock()):
            # S41: its number is not taken, and its sender says what became of it
            self._events.append(MessageDisregarded(message, Disregarded.EXPIRED))
            return
        is_direct = isinstance(message.destination_queue, DirectName | str)
        self._changes.sequences[key] = changed = after(state, transaction, order, is_direct=is_direct)
        if order is Order.ACCEPTED:
            self._order_acks[key] = None
            reason = self._rejection(message) or (Disregarded.NO_ROOM if self._has_no_room(data) else None)
            if reason is None:
                self._put(message, data)
            else:
                final = acknowledgments.final_ack(message, _NACKS[reason], self._address)
                self._changes.answers.append((message, final))  # S40
                self._disregard(message, reason)
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

    def _put(self, message: mqqb.UserMessage, data: bytes) -> None:
        """Give a message to the caller, unless its TimeToBeReceived is over."""
        self._answer(message, message.positive_arrival_ack, acknowledgments.ACK_REACH_QUEUE)
        now = self._wall_clock()
        if message.time_to_be_received == 0 or has_expired(message, message.time_to_be_received, now):
            self._disregard(message, Disregarded.NOT_RECEIVED_IN_TIME)
            self._answer_removal(message, acknowledgments.NACK_RECEIVE_TIMEOUT)
            return
        event = MessageReceived(message, data, self._address, self._port, now)
        self._events.append(event)
        self._changes.received.append(event)
        self._received_size += len(data)
        if self._limit is not None:
            self._limit.remaining -= 1
        if not self._incoming.store.is_durable:  # a row that is written counts as received (S42)
            self._answer_removal(message, acknowledgments.ACK_RECEIVE)

    def _disregard(self, message: mqqb.UserMessage, reason: Disregarded) -> None:
        """Do not deliver a message, and say so where its sender asks for it (3.1.5.8.2, 3.1.7.1.2)."""
        self._events.append(MessageDisregarded(message, reason))
        if reason in _NACKS:
            self._answer(message, message.negative_arrival_ack, _NACKS[reason])

    def _answer_removal(self, message: mqqb.UserMessage, message_class: int) -> None:
        answers, is_answered = removal_answers(message, message_class, self.remote_queue_manager, self._address)
        self._changes.answers += [(message, answer) for answer in answers]
        if not is_answered:
            self._events.append(MessageNotAnswered(message, message_class))

    def _answer(self, message: mqqb.UserMessage, asked: bool | None, message_class: int) -> None:
        """Answer to the administration queue on this session, if it is there: 3.1.7.15."""
        if not asked or message.admin_queue is None:
            return
        answer = None
        if message_class != acknowledgments.NACK_BAD_DST_Q or self._sends_insecure_nacks:
            answer = acknowledgments.answer_on_session(message, message_class, self.remote_queue_manager, self._address)
        if answer is None:
            self._events.append(MessageNotAnswered(message, message_class))
        else:
            self._changes.answers.append((message, answer))


def has_expired(message: mqqb.UserMessage, lifetime: int, now: float) -> bool:
    """Return True if a lifetime is over, which counts from SentTime: CURRENT_TIME of 3.1.7.1.2 has seconds as well."""
    return lifetime != FOREVER and int(now) - message.sent_time_seconds > lifetime


def removal_answers(
    message: mqqb.UserMessage, message_class: int, queue_manager: UUID, address: str
) -> tuple[list[mqqb.UserMessage], bool]:
    """Return the answers to a message that leaves its queue, 3.1.7.2 and S42, and whether these are all of them.

    ``queue_manager`` and ``address`` are those of the session on which it came.
    """
    answers: list[mqqb.UserMessage] = []
    is_received = message_class == acknowledgments.ACK_RECEIVE
    asked = message.positive_receive_ack if is_received else message.negative_receive_ack
    is_answered = True
    if asked and message.admin_queue is not None:
        answer = acknowledgments.answer_on_session(message, message_class, queue_manager, address)
        is_answered = answer is not None
        answers += [answer] if answer is not None else []
    if message.transaction is not None and (
        message.positive_source_journaling
        or message.negative_source_journaling
        or message.transaction.final_ack_required
    ):
        answers.append(acknowledgments.final_ack(message, message_class, address))
    return answers, is_answered
