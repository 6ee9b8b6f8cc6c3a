from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from msmqwire.columns import Payloads
from msmqwire.insight._column import Column

MOST_PLACES: int
OPERATIONS: tuple[str, ...]

class GroupTable:
    def __init__(self, keys: int, operations: Sequence[str]) -> None: ...
    def __len__(self) -> int: ...
    @property
    def nbytes(self) -> int: ...
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
    @property
    def rows(self) -> NDArray[np.int64]: ...
    @property
    def kept_places(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]: ...
