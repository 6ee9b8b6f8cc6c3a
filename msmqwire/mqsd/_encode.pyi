"""Written by `make build` from the annotations in _encode.pyx; do not edit."""

from collections.abc import Iterable

from msmqwire.columns._batch import Batch
from msmqwire.columns._payloads import Payloads
from msmqwire.mqsd._packet import TopologyPacket

def encode_batch(packets: Batch | Iterable[TopologyPacket], *, out: Payloads | None = None) -> Payloads:
    """Encode many packets: the inverse of ``decode_batch``.

    Parameters
    ----------
    packets : Batch, or iterable of packets
        A batch needs ``violations`` and the columns of its packets, such as ``mqsd.REQUEST_COLUMNS``.
    out : Payloads, optional
        A result of ``encode_batch`` to overwrite. Its memory is reused unless a slice, a view or a batch of it is
        still held.

    Raises
    ------
    EncodeError
        With row and field: a row that is null, has a fault, or is not what a conforming sender writes.
    """
