from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

class PropertyColumn(NamedTuple):
    values: Any
    rows: NDArray[np.uint32]
