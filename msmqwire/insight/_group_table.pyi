"""Written by `make build` from the annotations in _group_table.pyx; do not edit."""

from collections.abc import Sequence
from typing import Final

from numpy.typing import NDArray
import numpy as np

from msmqwire.columns import Payloads
from msmqwire.insight._column import Column

MOST_PLACES: int
OPERATIONS: tuple[str, ...]

class GroupTable:
    def __init__(self, keys: int, operations: Sequence[str]) -> None: ...
    def __len__(self) -> int: ...
    nbytes: Final[int]
    def add(
        self,
        keys: list[Column],
        values: list[Column],
        places: Column,
        mask: NDArray[np.bool_] | None = None,
        rows: Column | None = None,
        ends: Column | None = None,
    ) -> None: ...
    def take(self, chosen: NDArray[np.int64]) -> GroupTable: ...
    def key(self, k: int) -> NDArray[np.int64] | Payloads: ...
    def value(self, v: int) -> NDArray[np.int64]: ...
    rows: Final[NDArray[np.int64]]
    kept_places: Final[tuple[NDArray[np.int64], NDArray[np.int64]]]
