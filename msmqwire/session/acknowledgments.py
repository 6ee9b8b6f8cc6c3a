"""The messages by which a receiver acknowledges others: OrderAck and FinalAck, and answers to administration queues."""

from __future__ import annotations

import ipaddress
import struct
from typing import Literal
from uuid import UUID

from msmqwire import mqqb
from msmqwire.errors import EncodeError
from msmqwire.formatname import DirectName, FormatName, PrivateName
from msmqwire.session.incoming import SequenceState

ORDER_ACK = 0x00FF
ACK_REACH_QUEUE, ACK_RECEIVE = 0x0002, 0x4000
NACK_BAD_DST_Q, NACK_REACH_QUEUE_TIMEOUT, NACK_Q_EXCEED_QUOTA = 0x8000, 0x8002, 0x8003
NACK_NOT_TRANSACTIONAL_Q, NACK_NOT_TRANSACTIONAL_MSG = 0x8009, 0x800A
NACK_RECEIVE_TIMEOUT = 0xC002

_ORDER_QUEUE = 4
_ORDER_BODY = struct.Struct("<QII20x")
_FINAL_BODY = struct.Struct("<QII16sI")


def is_order_queue(queue: FormatName | str | None) -> bool:
    """Return True if a queue of this queue manager is the one of OrderAck and FinalAck packets (S44)."""
    if isinstance(queue, DirectName):
        return queue.queue_type == "private" and (queue.queue or "").lower() == "order_queue$"
    return isinstance(queue, PrivateName) and queue.private_id == _ORDER_QUEUE


def order_ack(source: UUID, state: SequenceState, address: str) -> mqqb.UserMessage:
    """Return an OrderAck packet: [MS-MQQB] 2.2.4, S37, S38; ``address`` is that of the peer."""
    body = _ORDER_BODY.pack(state.sequence_id, state.number, state.number - 1)
    return _order_message(ORDER_ACK, body, source, address if state.is_direct else "", "express")


def final_ack(message: mqqb.UserMessage, message_class: int, address: str) -> mqqb.UserMessage:
    """Return a FinalAck packet for a transactional message: [MS-MQQB] 2.2.5, S38."""
    transaction = message.transaction
    assert transaction is not None
    body = _FINAL_BODY.pack(
        transaction.tx_sequence_id,
        transaction.tx_sequence_number,
        transaction.previous_tx_sequence_number,
        message.source_queue_manager.bytes_le,
        message.message_id,
    )
    is_direct = isinstance(message.destination_queue, DirectName | str)
    return _order_message(
        message_class, body, message.source_queue_manager, address if is_direct else "", "recoverable"
    )


def _order_message(
    message_class: int, body: bytes, source: UUID, address: str, mode: Literal["express", "recoverable"]
) -> mqqb.UserMessage:
    """Return a message to the order queue at an address, or else of the queue manager ``source`` (S39)."""
    queue: FormatName = PrivateName(source, _ORDER_QUEUE)
    if address:
        queue = DirectName("tcp", _plain(address), "order_queue$", queue_type="private")
    return mqqb.UserMessage(
        destination_queue=queue,
        priority=0,
        delivery_mode=mode,
        label="QM Ordering Ack",
        message_class=message_class,
        body=body,
    )


def is_reached_by(queue: FormatName | str | None, queue_manager: UUID, address: str) -> bool:
    """Return True if a queue is one of the peer of a session (S24): what is sent on the session reaches it."""
    if isinstance(queue, PrivateName):
        return queue.guid == queue_manager
    if not isinstance(queue, DirectName) or queue.protocol != "tcp" or not address:
        return False
    try:
        return ipaddress.ip_address(queue.address) == ipaddress.ip_address(_plain(address))
    except ValueError:
        return False


def answer_on_session(
    message: mqqb.UserMessage, message_class: int, queue_manager: UUID, address: str
) -> mqqb.UserMessage | None:
    """Return the answer to the administration queue of a message, 3.1.7.15, if the peer of a session has it."""
    is_reached = is_reached_by(message.admin_queue, queue_manager, address)
    return administration_ack(message, message_class) if is_reached else None


def administration_ack(message: mqqb.UserMessage, message_class: int) -> mqqb.UserMessage | None:
    """Return the answer to the administration queue of a message: [MS-MQQB] 3.1.7.15; None if it cannot be written."""
    is_positive = message_class in (ACK_REACH_QUEUE, ACK_RECEIVE)
    is_encrypted = message.security is not None and message.security.body_encrypted
    with_body = not is_positive and not is_encrypted
    try:
        return mqqb.UserMessage(
            destination_queue=message.admin_queue,
            response_queue=message.destination_queue,
            priority=message.priority,
            delivery_mode=message.delivery_mode or "express",
            message_class=message_class,
            correlation_guid=message.source_queue_manager,
            correlation_ordinal=message.message_id,
            body=bytes(message.body or b"") if with_body else b"",
            body_type=message.body_type if with_body else 0,
        )
    except EncodeError:
        return None


def _plain(address: str) -> str:
    """Return an address without the zone, which is known to this computer only."""
    return address.partition("%")[0]
