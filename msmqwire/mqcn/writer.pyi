"""MS-MQCN messages by the million, the other way: from columns to payloads."""

from collections.abc import Iterable

from msmqwire.columns.batch import Batch
from msmqwire.columns.payloads import Payloads
from msmqwire.mqcn.codec import ChangeNotificationMessage

def encode_batch(
    messages: Batch | Iterable[ChangeNotificationMessage],
    *,
    out: Payloads | None = None,
    closing_space: bool = True,
    enforce: bool = True,
) -> Payloads:
    """Write messages behind each other: the inverse of ``decode_batch``, without the unused byte of 3.3.5.3.

    Parameters
    ----------
    messages : Batch, or iterable of messages
        A batch needs all of its columns but ``version`` and ``index``.
    out : Payloads, optional
        What ``encode_batch`` returned before: its memory is written again, unless a slice, a view or a batch of it
        is still held.
    closing_space : bool
        Close ObjectGuid of a body as its grammar says, with a space.
    enforce : bool
        Refuse updates that do not have the PROPIDs of their command ([MS-MQCN] 3.3.5.2).

    Raises
    ------
    EncodeError
        With row and field: a row that is null, has a fault, or is not what a conforming sender writes.
    """
