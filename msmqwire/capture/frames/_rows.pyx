"""The presence bits of the capture columns, and the columns whose values stand for numbers of a block."""

from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint32_t


cdef uint8_t value_of(uint32_t* known, size_t* count, uint32_t number) noexcept nogil:
    """The value, from 0, that stands for a number in a column of this block; a new number is added to those known."""
    cdef size_t place = 0
    while place < count[0] and known[place] != number:
        place += 1
    if place == count[0]:
        known[place] = number
        count[0] += 1
    return <uint8_t>place


cdef uint8_t value_of_file(Rows* rows, uint32_t file) noexcept nogil:
    """The value of the column ``file`` for a file before the one being read, whose value is 0."""
    return value_of(rows.files, &rows.file_count, file) + 1


cdef void put_path(Rows* rows, size_t row, uint32_t path) noexcept nogil:
    """Put the path of a row into the column ``encapsulation``."""
    rows.presence[row] |= <uint8_t>ENCAPSULATED
    if rows.encapsulation != NULL:
        rows.encapsulation[row] = value_of(rows.paths, &rows.path_count, path)
