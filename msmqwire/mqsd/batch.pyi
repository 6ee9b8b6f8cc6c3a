"""MS-MQSD packets by the million."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from msmqwire.columns.batch import Batch
from msmqwire.mqsd.codec import Transport

def decode_batch(
    payloads: Any,
    *,
    offsets: ArrayLike | None = None,
    strict: bool = False,
    transport: Transport | NDArray[np.uint8] = "unknown",
    columns: Sequence[str] | None = None,
    out: Batch | None = None,
    threads: int = 1,
) -> Batch:
    """Decode MS-MQSD packets into the columns of the topology table: [MS-MQSD] 2.2.

    Every payload gives one row; one that cannot be decoded gives a row with a fault.

    Parameters
    ----------
    payloads
        What ``Payloads.of`` takes, less than 2 GiB of it. About 16,000 rows at a time into the same ``out`` is fastest.
    offsets : array of integers, optional
        Where one bytes-like object is to be cut.
    strict : bool
        Fault what a conforming receiver discards, instead of noting it as a violation.
    transport : {"unknown", "udp", "ipx"} or array of uint8, shape (n,)
        What carried the packets (0 unknown, 1 UDP, 2 IPX in an array).
    columns : sequence of str, optional
        Build these only, e.g. ``mqsd.REQUEST_COLUMNS``.
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
