"""Written by `make build` from the annotations in _blocks.pyx; do not edit."""

from collections.abc import Iterable
from typing import Final

from numpy.typing import NDArray
import numpy as np

from msmqwire.columns import Table
from msmqwire.columns._batch import Batch
from msmqwire.columns._payloads import Payloads

class Block:
    """The payloads of one window, or of several with few payloads, and where they come from.

    Attributes
    ----------
    payloads : Payloads
        Views into the memory of the block, which is kept as long as a view exists.
    capture : Batch
        The requested capture columns.
    transports : ndarray of uint8, or None
        What carried each payload, as codes of ``Transport``; None if it was UDP for all of them.
    """

    payloads: Final[Payloads]
    capture: Final[Batch]
    def __len__(self) -> int: ...
    transports: Final[NDArray[np.uint8] | None]

class Pool:
    """Memory for windows of ``block_size`` bytes and for the columns of their rows, reused when it is free.

    With the ``table`` ``FRAMES`` or ``RECORDS`` rows are frames as they were captured.
    """

    def __init__(self, block_size: int, columns: Iterable[str] | None, *, table: Table = ...) -> None: ...
