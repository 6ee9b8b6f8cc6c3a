"""A sender of one transactional sequence, as the text and the rulings S25 to S28, S45 and S51 describe it."""

from __future__ import annotations

import struct
from typing import Any
from uuid import UUID

from tests.reference.mqqb_session_packets import Packet, UserMessage

ORDER_ACK = 0xFF


class TransactionalSender:
    """Messages get numbers when they are added, and stay until an OrderAck has them: [MS-MQQB] 3.1.1.5, 3.1.5.6.

    Attributes
    ----------
    unacknowledged : dict
        The bodies of the messages by number.
    final : list of tuple
        Class and MessageID of each FinalAck.
    """

    def __init__(self, source: UUID, queue: str, ordinal: int = 1) -> None:
        self.source = source
        self.queue = queue
        self.sequence_id = (ordinal, 0x66000000)
        self.next_number = 1
        self.last_ack = 0
        self.unacknowledged: dict[int, bytes] = {}
        self.final: list[tuple[int, int]] = []

    def add(self, *bodies: bytes) -> None:
        for body in bodies:
            self.unacknowledged[self.next_number] = body
            self.next_number += 1

    def packets(self, first: int = 0, **fields: Any) -> list[UserMessage]:
        """What a session sends: all that is not acknowledged, each with the number of the one before it (S28)."""
        made, previous = [], self.last_ack
        for number, body in self.unacknowledged.items():
            if number >= first:
                made.append(
                    UserMessage(
                        self.source.bytes_le,
                        number,
                        body,
                        True,
                        queue=self.queue,
                        tx_sequence_number=number,
                        tx_previous=previous,
                        tx_sequence_id=self.sequence_id,
                        **fields,
                    )
                )
            previous = number
        return made

    def expire(self, number: int) -> None:
        """The next message bridges it (S28)."""
        del self.unacknowledged[number]

    def take(self, packets: list[Packet]) -> None:
        """OrderAcks and FinalAcks among packets that came."""
        for packet in packets:
            if not isinstance(packet, UserMessage) or packet.label != "QM Ordering Ack":
                continue
            ordinal, stamp, number, previous = struct.unpack_from("<IIII", packet.body)
            assert (ordinal, stamp) == self.sequence_id
            assert previous < number
            if packet.message_class == ORDER_ACK:
                assert number < self.next_number, "it acknowledges what was never sent"
                self.last_ack = max(self.last_ack, number)
                self.unacknowledged = {n: body for n, body in self.unacknowledged.items() if n > self.last_ack}
            else:
                self.final.append((packet.message_class, struct.unpack_from("<I", packet.body, 32)[0]))
                self.unacknowledged.pop(number, None)
