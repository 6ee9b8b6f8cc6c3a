"""Arrow arrays of values of Python and numpy.

``pyarrow.array``, ``scalar`` and ``repeat`` import pandas where it is installed, to recognise its values, which takes
each worker of Spark a quarter of a second.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


def integers(values: NDArray[np.integer], is_valid: NDArray[np.bool_] | None = None) -> Any:
    """Integers of the width that they have; null where they are not valid."""
    import pyarrow as pa

    # pyarrow's stubs do not know the buffers of numpy's arrays, here and below
    type_: Any = pa.from_numpy_dtype(values.dtype)
    data: Any = np.ascontiguousarray(values)
    bits = None if is_valid is None else _bits(is_valid)
    return pa.Array.from_buffers(type_, len(data), [bits, pa.py_buffer(data)])


def booleans(values: NDArray[np.bool_]) -> Any:
    """Booleans, none of them null."""
    import pyarrow as pa

    return pa.Array.from_buffers(pa.bool_(), len(values), [None, _bits(values)])


def _bits(values: NDArray[np.bool_]) -> Any:
    import pyarrow as pa

    bits: Any = np.packbits(values, bitorder="little")
    return pa.py_buffer(bits)


def strings(values: Sequence[str]) -> Any:
    """Text, none of it null."""
    import pyarrow as pa

    return _of_bytes([value.encode() for value in values], pa.string())


def binary(values: Sequence[bytes]) -> Any:
    """Bytes, none of them null."""
    import pyarrow as pa

    return _of_bytes(values, pa.binary())


def _of_bytes(values: Sequence[bytes], type_: Any) -> Any:
    import pyarrow as pa

    ends: Any = np.cumsum([0, *map(len, values)], dtype=np.int32)
    return pa.Array.from_buffers(type_, len(values), [None, pa.py_buffer(ends), pa.py_buffer(b"".join(values))])
