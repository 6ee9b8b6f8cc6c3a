"""Two pages without access around some with it: payloads are put at either end of these, aligned and not.

A program that imports this dies when a kernel reads outside its payload.
"""

from __future__ import annotations

import ctypes
import faulthandler
import mmap
from typing import Any

import numpy as np
import pyarrow as pa

PAGE, INSIDE = mmap.PAGESIZE, 64 * mmap.PAGESIZE

faulthandler.enable()
_area = mmap.mmap(-1, INSIDE + 2 * PAGE)
_first = ctypes.addressof(ctypes.c_char.from_buffer(_area))
_libc = ctypes.CDLL(None, use_errno=True)
_libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
for _guard in (_first, _first + PAGE + INSIDE):
    assert _libc.mprotect(_guard, PAGE, 0) == 0


def place(data: bytes, at_the_end: bool) -> pa.Buffer:
    """The bytes after the first guard, or before the second."""
    at = _first + PAGE + (INSIDE - len(data) if at_the_end else 0)
    ctypes.memmove(at, data, len(data))
    return pa.foreign_buffer(at, len(data))


def place_array(data: bytes, at_the_end: bool) -> pa.Array[Any]:
    """An array of one payload, which a batch does not copy, at the same place."""
    offsets = pa.py_buffer(np.array([0, len(data)], np.int32).data)
    return pa.Array.from_buffers(pa.binary(), 1, [None, offsets, place(data, at_the_end)])


def touch() -> None:
    """Read the first byte that must not be read."""
    ctypes.string_at(_first + PAGE + INSIDE, 1)
