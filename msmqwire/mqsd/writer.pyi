"""MS-MQSD packets by the million, from columns to payloads."""

from collections.abc import Iterable

from msmqwire.columns.batch import Batch
from msmqwire.columns.payloads import Payloads
from msmqwire.mqsd.codec import TopologyPacket

def encode_batch(packets: Batch | Iterable[TopologyPacket], *, out: Payloads | None = None) -> Payloads:
    """Write packets behind each other: the inverse of ``decode_batch``.

    Parameters
    ----------
    packets : Batch, or iterable of packets
        A batch needs ``type``, ``violations`` and the columns of the packets it holds, as
        ``mqsd.REQUEST_COLUMNS`` names them.
    out : Payloads, optional
        What ``encode_batch`` returned before: its memory is written again, unless a slice, a view or a batch of it
        is still held.

    Raises
    ------
    EncodeError
        With row and field: a row that is null, has a fault, or is not what a conforming sender writes.
    """
