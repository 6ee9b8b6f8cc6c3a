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

# By the number of the Arrow type; a cast of Arrow takes as long for one value as this for some thousands
_WIDTHS: dict[int, Any] = {
    type_.id: width
    for type_, width in (
        (pa.int8(), np.int8),
        (pa.uint8(), np.uint8),
        (pa.int16(), np.int16),
        (pa.uint16(), np.uint16),
        (pa.int32(), np.int32),
        (pa.uint32(), np.uint32),
        (pa.int64(), np.int64),
        (pa.uint64(), np.uint64),
        (pa.timestamp("ns"), np.int64),
    )
}
_BOOLEANS = pa.bool_().id


def numbers(values: Any, null: int = 0) -> NDArray[np.int64]:
    """An array of integers, booleans or times as numpy, with another number for null."""
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    count, kind = len(values), values.type.id
    if not count or pa.types.is_null(values.type):
        return np.full(count, null, np.int64)
    validity, data = values.buffers()
    found: NDArray[np.int64]
    if kind == _BOOLEANS:
        found = _bits(data, values).astype(np.int64)
    else:
        width = _WIDTHS[kind]
        found = np.frombuffer(data, width, count, np.dtype(width).itemsize * values.offset).astype(np.int64, copy=False)
    return np.where(_bits(validity, values).view(np.bool_), found, null) if values.null_count else found


def truths(mask: Any) -> NDArray[np.bool_]:
    """An array of booleans as numpy, null as false."""
    if isinstance(mask, pa.ChunkedArray):
        mask = mask.combine_chunks()
    validity, data = mask.buffers()
    found = _bits(data, mask)
    return (found & _bits(validity, mask) if mask.null_count else found).view(np.bool_)


def _bits(bitmap: Any, values: Any) -> NDArray[np.uint8]:
    """A bitmap of an array, a byte for each row."""
    first, skipped = divmod(values.offset, 8)
    size = skipped + len(values)
    bits = np.frombuffer(bitmap, np.uint8, (size + 7) // 8, first) if size else np.zeros(0, np.uint8)
    return np.unpackbits(bits, count=size, bitorder="little")[skipped:]
