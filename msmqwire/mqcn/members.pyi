"""What readers see of the properties in a batch."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

class PropertyColumn(NamedTuple):
    """One property of a whole batch: its values, and the row that each belongs to."""

    values: Any
    rows: NDArray[np.uint32]
