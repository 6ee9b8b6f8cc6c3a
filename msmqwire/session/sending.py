"""What a session has sent, and what of it is acknowledged: [MS-MQQB] 3.1.1.3.1, 3.1.5.5, 3.1.7.1."""

from __future__ import annotations

from msmqwire import mqqb
from msmqwire.session.history import MOST_REMEMBERED
from msmqwire.session.numbers import latest
from msmqwire.session.outgoing import OutgoingMessagePosition, OutgoingMessageTable
from msmqwire.session.receiving import ACK_FLAGS


class Sending:
    """The counts of messages that one side sends.

    Parameters
    ----------
    outgoing : OutgoingMessageTable
        The messages that wait, and those that await their acknowledgment.
    window_size, most_bytes : int
        The most messages, and bytes of messages, that are sent without an acknowledgment.

    Attributes
    ----------
    message_sent_count, recoverable_message_sent_count, unacked_message_count, received_window_size : int
        The counts of [MS-MQQB] 3.1.1.3.1, not reduced to the 16 bits that they have on the wire.
    unacked_bytes : int
        Bytes of messages that were sent on this session and are not acknowledged on it.
    """

    def __init__(self, outgoing: OutgoingMessageTable, window_size: int, most_bytes: int) -> None:
        self.outgoing = outgoing
        self.message_sent_count = self.recoverable_message_sent_count = 0
        self.unacked_message_count = 0  # S5
        self.unacked_bytes = 0
        self.received_window_size = self._window_size = window_size
        self._most_bytes = most_bytes
        outgoing.start_session()

    @property
    def has_room(self) -> bool:
        """Whether window and limits allow one more message (S4)."""
        return (
            len(self.outgoing.awaiting) < MOST_REMEMBERED
            and self.unacked_message_count < min(self._window_size, max(1, self.received_window_size))
            and self.unacked_bytes < self._most_bytes
        )

    def count(self, position: OutgoingMessagePosition) -> None:
        """Number a message that is sent now: [MS-MQQB] 3.1.7.1.3."""
        self.message_sent_count += 1
        position.sequence_number = self.message_sent_count
        if position.recoverable:
            self.recoverable_message_sent_count += 1
            position.recoverable_sequence_number = self.recoverable_message_sent_count
        position.received_session_ack = False
        self.unacked_message_count += 1
        self.unacked_bytes += len(position.packet)
        self.outgoing.awaiting.append(position)

    def acknowledged(self, header: mqqb.SessionHeader | mqqb.SessionAck) -> list[int] | None:
        """Remove what a header acknowledges, and return the MessageIDs: [MS-MQQB] 3.1.5.5.1 to 3.1.5.5.3.

        None if it acknowledges more messages than were sent (S19); nothing is removed then.
        """
        acked = latest(header.ack_sequence_number, self.message_sent_count)
        if acked is None:
            return None
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
                self.unacked_bytes -= len(position.packet)
            if delete:
                if not position.is_acknowledgment and not position.is_in_outbox:
                    deleted.append(position.message_id)
                elif position.row:
                    self.outgoing.answered.append(position.row)
                self.outgoing.remove(position)
            else:
                kept.append(position)
        self.outgoing.awaiting = kept
        if header.window_size:  # S4
            self.received_window_size = header.window_size
        return deleted


def _is_stored(number: int, first: int, flags: int) -> bool:
    """Return True if a SessionHeader acknowledges the recoverable message ``number``: [MS-MQQB] 3.1.5.5.3."""
    return number <= first or (number - first < ACK_FLAGS and bool(flags >> (number - first) & 1))
