"""Written by `make build` from the annotations in _column.pyx; do not edit."""

from typing import Any, Final

from numpy.typing import NDArray
import numpy as np

NULL_NUMBER: int

class Column:
    type: Final[Any]
    array: Final[NDArray[np.int64]]
    def __init__(self, array: Any) -> None: ...
    def __len__(self) -> int: ...
    @staticmethod
    def of_numbers(numbers: NDArray[np.int64], type: Any) -> Column: ...
    @staticmethod
    def either(mask: NDArray[np.bool_], one: Column, other: Column) -> Column: ...
    def repeated(self, count: int) -> Column: ...
