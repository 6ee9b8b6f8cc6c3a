"""Written by `make build` from the annotations in _batch.pyx; do not edit."""

from collections.abc import Sequence
from typing import Any

from numpy.typing import ArrayLike, NDArray
import numpy as np

from msmqwire.columns._batch import Batch
from msmqwire.mqsd.values import TransportName

def decode_batch(
    payloads: Any,
    *,
    offsets: ArrayLike | None = None,
    strict: bool = False,
    transport: TransportName | NDArray[np.uint8] = "unknown",
    columns: Sequence[str] | None = None,
    out: Batch | None = None,
) -> Batch:
    """Decode MS-MQSD packets into the columns of the topology table: [MS-MQSD] 2.2.

    Every payload gives one row; one that cannot be decoded gives a row with a fault.

    Parameters
    ----------
    payloads
        As for ``Payloads.of``, less than 2 GiB. About 16,000 rows at a time into the same ``out`` is fastest.
    offsets : array of integers, optional
        The start of each payload in one bytes-like object, and the end of the last.
    strict : bool
        Fault for what a conforming receiver discards, instead of noting a violation.
    transport : {"unknown", "udp", "ipx"} or array of uint8, shape (n,)
        The transport of the packets (0 unknown, 1 UDP, 2 IPX in an array).
    columns : sequence of str, optional
        Build only these columns, e.g. ``mqsd.REQUEST_COLUMNS``.
    out : Batch, optional
        A batch to overwrite, with everything that its views show.

    Raises
    ------
    ValueError
        A column that does not exist, offsets outside the data, or an ``out`` with other columns.
    BufferError
        An Arrow consumer still holds ``out``.
    """
