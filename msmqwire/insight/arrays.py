"""Arrow arrays as arrays of numpy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute

if TYPE_CHECKING:
    from numpy.typing import NDArray

# pyarrow's stubs do not know functions of arrays and Python values
pc: Any = pyarrow.compute


def numbers(values: Any, null: int = 0) -> NDArray[np.int64]:
    """An array of integers, booleans or times as numpy, with another number for null."""
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    values = values.cast(pa.int64(), safe=False)
    if not len(values):
        return np.zeros(0, np.int64)
    validity, data = values.buffers()
    found = np.frombuffer(data, np.int64, len(values), 8 * values.offset)
    if not values.null_count:
        return found
    first, skipped = divmod(values.offset, 8)
    bits = np.frombuffer(validity, np.uint8, offset=first)
    is_valid = np.unpackbits(bits, count=skipped + len(values), bitorder="little")[skipped:]
    return np.where(is_valid.view(np.bool_), found, null)


def truths(mask: Any) -> NDArray[np.bool_]:
    """An array of booleans as numpy, null as false."""
    return numbers(mask).astype(np.bool_)
