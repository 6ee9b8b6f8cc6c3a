"""The messages that a queue manager has to send: [MS-MQQB] 3.1.1.3.1, OutgoingMessageTable."""

from __future__ import annotations

import heapq
import struct
from collections.abc import Callable
from dataclasses import dataclass
from uuid import UUID

from msmqwire import mqqb
from msmqwire.errors import EncodeError
from msmqwire.mqqb.framing import FLAG_SESSION
from msmqwire.session.framing import MESSAGE_ID, SENT_TIME, SOURCE_QUEUE_MANAGER

FOREVER = 0xFFFFFFFF
"""The TimeToReachQueue of a message that never expires."""

_NIL = bytes(16)
_FLAGS_AT = 2
_LARGEST_ORDINAL = 0xFFFFFFFF
_U32 = struct.Struct("<I")


@dataclass(slots=True, eq=False)
class OutgoingMessagePosition:
    """A message of the table: [MS-MQQB] 3.1.1.3.1.2. Whether it is recoverable is kept apart from its number (S9).

    ``turn`` orders the messages: a higher priority first (S49), then in the order of ``add``.
    """

    turn: tuple[int, int]
    message_id: int
    packet: bytes
    recoverable: bool
    expires: float
    sequence_number: int = 0
    recoverable_sequence_number: int = 0
    received_session_ack: bool = False

    def with_session_header(self, header: bytes) -> bytes:
        """The packet with a SessionHeader, which stands after its PacketSize: [MS-MQMQ] 2.2.20.4."""
        packet = bytearray(self.packet)
        packet[_FLAGS_AT] |= FLAG_SESSION
        return bytes(packet) + header


class WaitingMessages:
    """Messages that are not sent on this session, in the order of their turns."""

    def __init__(self) -> None:
        self._heap: list[tuple[tuple[int, int], OutgoingMessagePosition]] = []

    def __len__(self) -> int:
        return len(self._heap)

    def push(self, position: OutgoingMessagePosition) -> None:
        """Add a message."""
        heapq.heappush(self._heap, (position.turn, position))

    def pop(self) -> OutgoingMessagePosition:
        """Take the message whose turn it is."""
        return heapq.heappop(self._heap)[1]

    def discard_if(self, condition: Callable[[OutgoingMessagePosition], bool]) -> None:
        """Remove the messages for which the condition, called for each in turn, is true."""
        # A sorted list is a heap
        self._heap = [each for each in sorted(self._heap) if not condition(each[1])]


class OutgoingMessageTable:
    """Messages to send: those sent on this session and not acknowledged, and those that wait, by priority.

    Attributes
    ----------
    identifier : uuid.UUID
        The queue manager that the messages come from.
    awaiting : list of OutgoingMessagePosition
        Sent on this session, not acknowledged: AwaitingAck is TRUE.
    waiting : WaitingMessages
    size : int
        Bytes of all messages in the table.
    """

    def __init__(self, identifier: UUID, max_packet_size: int) -> None:
        self.identifier = identifier
        self._source_queue_manager = identifier.bytes_le
        self.awaiting: list[OutgoingMessagePosition] = []
        self.waiting = WaitingMessages()
        self.size = 0
        self._max_packet_size = max_packet_size
        self._message_id_ordinal = 0
        self._added = 0

    def __len__(self) -> int:
        return len(self.awaiting) + len(self.waiting)

    def add(self, message: mqqb.UserMessage, wall_time: float) -> int:
        """Add a message and return its MessageID.

        A message without an identifier gets the next one, from 1 (S11), and the time of sending; SourceQueueManager is
        this queue manager unless the message has one. A message with both is forwarded as it is.

        Raises
        ------
        EncodeError
            The message is transactional (S21), or its packet is too large (S22), or it cannot be written.
        TypeError
            It is not a UserMessage.
        """
        if not isinstance(message, mqqb.UserMessage):
            kind = type(message).__name__
            raise TypeError(f"a message is a mqqb.UserMessage(destination_queue=..., body=...), not {kind}")
        if message.transaction is not None:
            raise EncodeError("TransactionHeader", "transactional messages are not supported")
        packet = bytearray(mqqb.encode(message))
        if packet[_FLAGS_AT] & FLAG_SESSION:
            raise EncodeError("SessionHeader", "the session writes it; pass a message without one")
        if len(packet) > self._max_packet_size:
            raise EncodeError(
                "PacketSize", f"the packet has {len(packet):,} bytes, more than {self._max_packet_size:,}"
            )
        message_id = message.message_id
        sent_time = message.sent_time
        if packet[SOURCE_QUEUE_MANAGER] == _NIL:
            packet[SOURCE_QUEUE_MANAGER] = self._source_queue_manager
        if not message_id:
            self._message_id_ordinal = self._message_id_ordinal % _LARGEST_ORDINAL + 1
            message_id = self._message_id_ordinal
            packet[MESSAGE_ID] = _U32.pack(message_id)
        elif packet[SOURCE_QUEUE_MANAGER] == self._source_queue_manager:
            # The receiver would discard another message with this identifier as a duplicate
            self._message_id_ordinal = max(self._message_id_ordinal, message_id)
        if not sent_time:
            sent_time = int(wall_time)
            packet[SENT_TIME] = _U32.pack(sent_time & FOREVER)
        lifetime = message.time_to_reach_queue
        expires = float("inf") if lifetime == FOREVER else sent_time + lifetime
        recoverable = message.delivery_mode == "recoverable"
        self._added += 1
        turn = (-message.priority, self._added)
        self.waiting.push(OutgoingMessagePosition(turn, message_id, bytes(packet), recoverable, expires))
        self.size += len(packet)
        return message_id

    def remove(self, position: OutgoingMessagePosition) -> None:
        """Count a message out that was taken from ``waiting`` or ``awaiting``."""
        self.size -= len(position.packet)

    def start_session(self) -> None:
        """All messages wait again: [MS-MQQB] 3.1.3.2."""
        for position in self.awaiting:
            self.waiting.push(position)
        self.awaiting.clear()
