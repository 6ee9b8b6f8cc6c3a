"""Blocks of payloads, and the memory that they are made in."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from msmqwire.capture.schema import CAPTURE
from msmqwire.columns import Batch, Payloads, Table

class Block:
    payloads: Payloads
    capture: Batch
    transports: NDArray[np.uint8] | None
    def __len__(self) -> int: ...

class Pool:
    def __init__(self, block_size: int, columns: Iterable[str] | None, *, table: Table = CAPTURE) -> None: ...
