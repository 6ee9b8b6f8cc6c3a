"""The presence bits of the capture columns, and the column of encapsulations."""

from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint32_t


cdef void put_path(Rows* rows, size_t row, uint32_t path) noexcept nogil:
    """Give a row the value of the column ``encapsulation`` that stands for a path in this block."""
    cdef size_t value = 0
    rows.presence[row] |= <uint8_t>ENCAPSULATED
    if rows.encapsulation == NULL:
        return
    while value < rows.path_count and rows.paths[value] != path:
        value += 1
    if value == rows.path_count:
        rows.paths[value] = path
        rows.path_count += 1
    rows.encapsulation[row] = <uint8_t>(value + 1)
