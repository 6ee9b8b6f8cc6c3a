"""Written by `make build` from the annotations in _encode.pyx; do not edit."""

from collections.abc import Iterable

from msmqwire.columns._batch import Batch
from msmqwire.columns._payloads import Payloads
from msmqwire.mqqb._packet import MessagePacket

DERIVED: frozenset[str]

def encode_batch(packets: Batch | Iterable[MessagePacket], *, out: Payloads | None = None) -> Payloads:
    """Encode many packets: the inverse of ``decode_batch`` and ``decode_session_batch``.

    Parameters
    ----------
    packets : Batch, or iterable of packets
        A batch of either table needs all its columns except those that follow from others: ``fault``, ``packet_size``,
        ``sender_id_type``, ``body_encrypted``, ``message_class_name``, ``message_size``, ``notification``,
        ``compound_body``, ``trailing``, flags as received, derived columns and those of acknowledgments.
    out : Payloads, optional
        A result of ``encode_batch`` to overwrite. Its memory is reused unless a slice, a view or a batch of it is
        still held.

    Raises
    ------
    EncodeError
        With row and field: a row that is null, has a fault, or is not what a conforming sender writes.
    ValueError
        The batch lacks columns, or is of another protocol.
    """
