"""MS-MQCN messages by the million."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from msmqwire.columns.batch import Batch
from msmqwire.mqcn.property_columns import PropertyColumn

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

    @property
    def messages(self) -> NDArray[np.int32]:
        """The rows of message ``i`` are ``messages[i]`` to ``messages[i + 1]``; every message has at least one."""
    def property(self, propid: int) -> PropertyColumn:
        """Every value of one PROPID in the batch, and the rows they belong to.

        Numbers are an array of the width they have on the wire, GUIDs (m, 16) uint8 in wire order, texts a
        ``TextColumn``, blobs a ``BytesColumn``, vectors a ``ListColumn`` of these. A row that has the PROPID twice is
        there twice; receivers take the first.

        Raises
        ------
        KeyError
            ``properties`` was not among the columns asked for.
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
    threads: int = 1,
) -> NotificationBatch:
    """Decode Change Notification Messages into the columns of the notifications table: [MS-MQCN] 2.2.4.

    Every change gives one row; so does a message that cannot be decoded, has no change, or is null. In numpy the
    members of ``properties`` behind ``id`` are made when ``batch["properties"]`` is asked for, in one pass.

    Parameters
    ----------
    payloads
        What ``Payloads.of`` takes, less than 2 GiB of it: bodies of MSMQ messages.
    offsets : array of integers, optional
        Where one bytes-like object is to be cut.
    strict : bool
        Fault what a conforming receiver disregards, instead of noting it as a violation.
    columns : sequence of str, optional
        Build these only.
    out : Batch, optional
        Write here again; what its views show is overwritten.
    threads : int
        Decode in so many chunks at once.

    Raises
    ------
    ValueError
        A column that does not exist, offsets that leave the data, or an ``out`` of other columns.
    BufferError
        An Arrow consumer still holds ``out``.
    """
