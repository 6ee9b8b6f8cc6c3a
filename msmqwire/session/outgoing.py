"""The messages that a queue manager has to send: [MS-MQQB] 3.1.1.3.1, OutgoingMessageTable."""

from __future__ import annotations

import heapq
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from uuid import UUID

from msmqwire import mqqb
from msmqwire.errors import EncodeError
from msmqwire.mqqb.framing import FLAG_SESSION
from msmqwire.session.framing import MESSAGE_ID, SENT_TIME, SOURCE_QUEUE_MANAGER

FOREVER = 0xFFFFFFFF
"""The TimeToReachQueue of a message that never expires."""

LARGEST_ORDINAL = 0xFFFFFFFF
"""The largest MessageID."""

_NIL = bytes(16)
_FLAGS_AT = 2
_U32 = struct.Struct("<I")


@dataclass(slots=True, eq=False)
class OutgoingMessagePosition:
    """A message of the table: [MS-MQQB] 3.1.1.3.1.2. Whether it is recoverable is kept apart from its number (S9).

    ``turn`` orders the messages: a higher priority first (S49), then in the order of ``add``. An acknowledgment is a
    message of the session itself; a packet of [MS-MQQB] 2.2.4 or 2.2.5 carries no SessionHeader (S38). ``row`` is its
    place in the store that keeps it, 0 if none does. A message of a sequence ``is_in_outbox``, which sends it again.
    """

    turn: tuple[int, int]
    message_id: int
    packet: bytes
    recoverable: bool
    expires: float
    is_acknowledgment: bool = False
    carries_header: bool = True
    row: int = 0
    is_in_outbox: bool = False
    # Of a message that is sent
    sequence_number: int = field(init=False, repr=False)
    recoverable_sequence_number: int = field(init=False, repr=False)
    received_session_ack: bool = field(init=False, repr=False)

    def with_session_header(self, header: bytes) -> bytes:
        """Return the packet with a SessionHeader, which stands after its PacketSize: [MS-MQMQ] 2.2.20.4."""
        packet = bytearray(self.packet)
        packet[_FLAGS_AT] |= FLAG_SESSION
        return bytes(packet) + header


class MessageIDs:
    """The counter of the messages of a queue manager, of all its sessions (S11).

    Parameters
    ----------
    last : int
        The identifier before the first.
    """

    def __init__(self, last: int = 0) -> None:
        self._last = last

    def take(self) -> int:
        """Return the next identifier."""
        self._last = self._last % LARGEST_ORDINAL + 1
        return self._last

    def reserve(self) -> None:
        """Reserve identifiers on disk if few are left, where there is a disk."""

    def skip(self, message_id: int) -> None:
        """Give none up to an identifier that a message has: the receiver would discard another as a duplicate."""
        self._last = max(self._last, message_id)


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
    size, acknowledgment_size : int
        Bytes of all messages in the table, and of the acknowledgments among them.
    answered : list of int
        Rows of stored acknowledgments that the peer has acknowledged, and the session has not taken from here.
    """

    def __init__(self, identifier: UUID, max_packet_size: int, message_ids: MessageIDs | None = None) -> None:
        self.identifier = identifier
        self._source_queue_manager = identifier.bytes_le
        self.awaiting: list[OutgoingMessagePosition] = []
        self.waiting = WaitingMessages()
        self.size = self.acknowledgment_size = 0
        self.answered: list[int] = []
        self._max_packet_size = max_packet_size
        self._message_ids = MessageIDs() if message_ids is None else message_ids
        self._added = 0

    def __len__(self) -> int:
        return len(self.awaiting) + len(self.waiting)

    def add(self, message: mqqb.UserMessage, wall_time: float) -> int:
        """Add a message and return its MessageID; errors as in ``position_of``."""
        position = self.position_of(message, wall_time)
        self.add_position(position)
        return position.message_id

    def add_position(self, position: OutgoingMessagePosition) -> None:
        """Add a message in its turn."""
        self.waiting.push(position)
        self._count(position, 1)

    def add_in_flight(self, position: OutgoingMessagePosition) -> None:
        """Count a message that is sent at once."""
        self._count(position, 1)

    def adopt(self, position: OutgoingMessagePosition) -> None:
        """Add a message of the table of another session, last of its priority."""
        self._added += 1
        position.turn = position.turn[0], self._added
        self.add_position(position)

    def position_of(self, message: mqqb.UserMessage, wall_time: float) -> OutgoingMessagePosition:
        """Return the position of a message as it will be sent, last of its priority.

        A message without an identifier gets the next one, from 1 (S11), and the time of sending; SourceQueueManager is
        this queue manager unless the message has one. A message with both is forwarded as it is.

        Raises
        ------
        EncodeError
            The message is transactional (S24), or its packet is too large (S22), or it cannot be written.
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
        sent_time = message.sent_time_seconds
        if packet[SOURCE_QUEUE_MANAGER] == _NIL:
            packet[SOURCE_QUEUE_MANAGER] = self._source_queue_manager
        if not message_id:
            message_id = self._message_ids.take()
            packet[MESSAGE_ID] = _U32.pack(message_id)
        elif packet[SOURCE_QUEUE_MANAGER] == self._source_queue_manager:
            self._message_ids.skip(message_id)
        if not sent_time:
            sent_time = int(wall_time)
            packet[SENT_TIME] = _U32.pack(sent_time & FOREVER)
        lifetime = message.time_to_reach_queue
        expires = float("inf") if lifetime == FOREVER else sent_time + lifetime
        recoverable = message.delivery_mode == "recoverable"
        self._added += 1
        turn = (-message.priority, self._added)
        return OutgoingMessagePosition(turn, message_id, bytes(packet), recoverable, expires)

    def remove(self, position: OutgoingMessagePosition) -> None:
        """Count a message out that was taken from ``waiting`` or ``awaiting``."""
        self._count(position, -1)

    def _count(self, position: OutgoingMessagePosition, sign: int) -> None:
        size = sign * len(position.packet)
        self.size += size
        self.acknowledgment_size += size * position.is_acknowledgment

    def take_acknowledgments(self) -> list[OutgoingMessagePosition]:
        """Remove the acknowledgments, none of which is awaited; in order."""
        taken: list[OutgoingMessagePosition] = []

        def is_taken(position: OutgoingMessagePosition) -> bool:
            if position.is_acknowledgment:
                self.remove(position)
                taken.append(position)
            return position.is_acknowledgment

        self.waiting.discard_if(is_taken)
        return taken

    def start_session(self) -> None:
        """Let all messages wait again: [MS-MQQB] 3.1.3.2."""
        for position in self.awaiting:
            if position.is_in_outbox:
                self.remove(position)
            else:
                self.waiting.push(position)
        self.awaiting.clear()
