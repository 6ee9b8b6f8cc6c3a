"""Message packets by the million, from columns to payloads."""

from collections.abc import Iterable

from msmqwire.columns.batch import Batch
from msmqwire.columns.payloads import Payloads
from msmqwire.mqqb.packet import MessagePacket

def encode_batch(packets: Batch | Iterable[MessagePacket], *, out: Payloads | None = None) -> Payloads:
    """Write packets behind each other: the inverse of ``decode_batch`` and ``decode_session_batch``.

    Parameters
    ----------
    packets : Batch, or iterable of packets
        A batch of either table needs all its columns but those that follow from others: ``fault``, ``packet_size``,
        ``sender_id_type``, ``body_encrypted``, ``message_class_name``, ``message_size``, ``notification`` and those of
        acknowledgments.
    out : Payloads, optional
        What ``encode_batch`` returned before: its memory is written again, unless a slice, a view or a batch of it
        is still held.

    Raises
    ------
    EncodeError
        With row and field: a row that is null, has a fault, or is not what a conforming sender writes.
    ValueError
        The batch lacks columns, or is of another protocol.
    """
