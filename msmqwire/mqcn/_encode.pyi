"""Written by `make build` from the annotations in _encode.pyx; do not edit."""

from collections.abc import Iterable

from msmqwire.columns._batch import Batch
from msmqwire.columns._payloads import Payloads
from msmqwire.mqcn._packet import ChangeNotificationMessage

def encode_batch(
    messages: Batch | Iterable[ChangeNotificationMessage],
    *,
    out: Payloads | None = None,
    closing_space: bool = True,
    enforce: bool = True,
) -> Payloads:
    """Encode many messages: the inverse of ``decode_batch``, without the unused byte of [MS-MQCN] 3.3.5.3.

    Parameters
    ----------
    messages : Batch, or iterable of messages
        A batch needs all of its columns except ``version`` and ``index``.
    out : Payloads, optional
        A result of ``encode_batch`` to overwrite. Its memory is reused unless a slice, a view or a batch of it is
        still held.
    closing_space : bool
        Close ObjectGuid of a body with a space, as its grammar says.
    enforce : bool
        Refuse updates without the PROPIDs of their command ([MS-MQCN] 3.3.5.2).

    Raises
    ------
    EncodeError
        With row and field: the row is null, has a fault, or has violations.
    """
