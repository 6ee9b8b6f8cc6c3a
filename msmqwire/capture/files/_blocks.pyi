"""Written by `make build` from the annotations in _blocks.pyx; do not edit."""

from collections.abc import Iterable
from typing import Final

from numpy.typing import NDArray
import numpy as np

from msmqwire.columns import Table
from msmqwire.columns._batch import Batch
from msmqwire.columns._payloads import Payloads

class Block:
    payloads: Final[Payloads]
    capture: Final[Batch]
    def __len__(self) -> int: ...
    transports: Final[NDArray[np.uint8] | None]

class Pool:
    def __init__(self, block_size: int, columns: Iterable[str] | None, *, table: Table = ...) -> None: ...
