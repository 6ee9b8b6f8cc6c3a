"""A fast test before the pattern of ``deserialization.py``: which bytes may have one of its words."""

from libc.stddef cimport size_t
from libc.stdint cimport uint8_t

import numpy as np

from msmqwire.columns._payloads cimport Payloads
from msmqwire.columns.payload_table cimport Span, payload_at

if False:  # for type checkers: see stubs.py
    from typing import Any

    from numpy.typing import NDArray


cdef inline bint is_pair(uint8_t first, uint8_t second) noexcept nogil:
    """Whether two letters begin D/////AQ, wE, lr/, $type, 4type or !DOCTYPE, the rarest parts of the words."""
    return (
        ((first == c'D') & (second == c'/'))
        | ((first == c'w') & (second == c'E'))
        | ((first == c'l') & (second == c'r'))
        | (((first == c'$') | (first == c'4')) & (second == c't'))
        | ((first == c'!') & (second == c'D'))
    )


def suspects(values: Any) -> NDArray[np.bool_]:
    """Which values may be a serialised object, or have one: all that have a pair of ``is_pair`` and another byte.

    Parameters
    ----------
    values
        Bytes in any form that ``Payloads.of`` takes. A value may be in UTF-16.
    """
    cdef Payloads source = Payloads.of(values)
    cdef size_t count = source.table.count
    cdef Span span
    cdef uint8_t is_found
    cdef size_t i, at
    found = np.zeros(count, np.uint8)
    cdef uint8_t[::1] rows = found
    with nogil:
        for i in range(count):
            span = payload_at(&source.table, i)
            if span.size < 3:
                continue
            # A BinaryFormatter's header begins with 0. Without a branch, the compiler compares 16 bytes at a time
            is_found = span.data[0] == 0
            for at in range(span.size - 2):
                is_found |= is_pair(span.data[at], span.data[at + 1]) | (
                    (span.data[at + 1] == 0) & is_pair(span.data[at], span.data[at + 2])
                )
            rows[i] = is_found
    return found.view(np.bool_)
