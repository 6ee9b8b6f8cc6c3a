from enum import IntFlag
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

class Member(IntFlag):
    IS_INT = 1
    IS_TEXT = 2
    IS_GUID = 4
    IS_BYTES = 8
    IS_INTS = 16
    IS_GUIDS = 32
    IS_TEXTS = 64

class PropertyColumn(NamedTuple):
    values: Any
    rows: NDArray[np.uint32]
