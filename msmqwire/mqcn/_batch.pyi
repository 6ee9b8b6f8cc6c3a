"""Written by `make build` from the annotations in _batch.pyx; do not edit."""

from collections.abc import Sequence
from typing import Any, Final

from numpy.typing import ArrayLike, NDArray
import numpy as np

from msmqwire.columns._batch import Batch
from msmqwire.mqcn.values import PropertyColumn

class NotificationBatch(Batch):
    """The changes of many messages in three levels: messages, changes (the rows) and properties.

    Examples
    --------
    >>> from msmqwire import mqcn
    >>> batch = mqcn.decode_batch([bytes.fromhex(
    ...     "0101010133221100554477668899aabbccddeeff11ea26c6b6e6499795959150557358d1"
    ...     "0000000000000000000000000000000000000000000000000273000000690000004433221166558877"
    ...     "99aabbccddeeff0000040000"
    ... )])
    >>> batch.messages.tolist(), len(batch)
    ([0, 1], 1)
    >>> values, rows = batch.property(105)  # PROPID_Q_QUOTA
    >>> values.tolist(), rows.tolist()
    ([1024], [0])
    """

    messages: Final[NDArray[np.int32]]
    """The rows of message ``i`` are ``messages[i]`` to ``messages[i + 1]``; every message has at least one."""
    def property(self, propid: int) -> PropertyColumn:
        """Every value of one PROPID in the batch, and the row of each value.

        Numbers are an array of the width they have in messages, GUIDs (m, 16) uint8 in wire order, texts a
        ``TextColumn``, blobs a ``BytesColumn``, vectors a ``ListColumn`` of these. A row that has the PROPID twice
        occurs twice; receivers use the first value.

        Raises
        ------
        KeyError
            ``properties`` is not among the requested columns.
        ValueError
            The PROPID is unknown.
        """

def decode_batch(
    payloads: Any,
    *,
    offsets: ArrayLike | None = None,
    strict: bool = False,
    columns: Sequence[str] | None = None,
    out: Batch | None = None,
) -> NotificationBatch:
    """Decode Change Notification Messages into the columns of the notifications table: [MS-MQCN] 2.2.4.

    Every change gives one row; so does a message that cannot be decoded, has no change, or is null. The first use of
    ``batch["properties"]`` makes the members of properties after ``id``, in one pass.

    Parameters
    ----------
    payloads
        As for ``Payloads.of``, less than 2 GiB: bodies of MSMQ messages.
    offsets : array of integers, optional
        The start of each payload in one bytes-like object, and the end of the last.
    strict : bool
        Fault for what a conforming receiver disregards, instead of noting a violation.
    columns : sequence of str, optional
        Build only these columns.
    out : Batch, optional
        A batch to overwrite, with everything that its views show.

    Raises
    ------
    ValueError
        A column that does not exist, offsets outside the data, or an ``out`` with other columns.
    BufferError
        An Arrow consumer still holds ``out``.
    """
