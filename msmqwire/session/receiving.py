"""What a session has received, and what of it this side has yet to acknowledge: [MS-MQQB] 3.1.1.3.1, 3.1.5.8."""

from __future__ import annotations

from msmqwire import mqqb
from msmqwire.session.numbers import on_wire

ACK_FLAGS = 32
"""Bits of RecoverableMsgAckFlags: [MS-MQQB] 2.2.6.1."""


class Receiving:
    """The counts of messages that one side receives.

    Attributes
    ----------
    message_received_count, recoverable_message_received_count, unacked_received_msg_count : int
    recoverable_msg_ack_flags, last_acked_recoverable_msg_seq_number : int
        The counts of [MS-MQQB] 3.1.1.3.1, not reduced to the 16 bits that they have on the wire.
    unacked_bytes : int
        Bytes of messages that were received and are not acknowledged.
    """

    def __init__(self) -> None:
        self.message_received_count = self.recoverable_message_received_count = 0
        self.recoverable_msg_ack_flags = self.last_acked_recoverable_msg_seq_number = 0
        self.unacked_received_msg_count = self.unacked_bytes = 0

    @property
    def _bit(self) -> int:
        return self.recoverable_message_received_count - self.last_acked_recoverable_msg_seq_number

    @property
    def flags_are_full(self) -> bool:
        """Whether the flags have no bit for one more recoverable message: an acknowledgment is sent before (S7)."""
        return self._bit >= ACK_FLAGS

    def count(self, size: int) -> None:
        """Count a message, also one that is not delivered (S2, S6)."""
        self.message_received_count += 1
        self.count_unacknowledged(size)

    def count_unacknowledged(self, size: int) -> None:
        """Count a message as not acknowledged."""
        self.unacked_received_msg_count += 1
        self.unacked_bytes += size

    def count_recoverable(self) -> None:
        """Count a message that is recoverable: [MS-MQQB] 3.1.5.8.7."""
        self.recoverable_msg_ack_flags |= 1 << self._bit
        self.recoverable_message_received_count += 1

    def difference(self, header: mqqb.SessionHeader | mqqb.SessionAck) -> str:
        """Say which messages that the peer has sent did not come: [MS-MQQB] 3.1.5.5.5; empty if all came."""
        for name, theirs, ours in (
            ("UserMsgSequenceNumber", header.user_msg_sequence_number, self.message_received_count),
            ("RecoverableMsgSeqNumber", header.recoverable_msg_seq_number, self.recoverable_message_received_count),
        ):
            if theirs != on_wire(ours):
                return f"{name} is {theirs}, but {on_wire(ours)} such messages were received"
        return ""

    def acknowledgment(self) -> tuple[int, int, int]:
        """Acknowledge what was received: AckSequenceNumber, RecoverableMsgAckSeqNumber and RecoverableMsgAckFlags."""
        flags = self.recoverable_msg_ack_flags
        first = on_wire(self.last_acked_recoverable_msg_seq_number + 1) if flags else 0  # S10
        self.recoverable_msg_ack_flags = self.unacked_received_msg_count = self.unacked_bytes = 0
        self.last_acked_recoverable_msg_seq_number = self.recoverable_message_received_count
        return on_wire(self.message_received_count), first, flags
