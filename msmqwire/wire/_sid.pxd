"""Security identifiers: [MS-DTYP] 2.4.2.2."""

from libc.stddef cimport size_t
from libc.stdint cimport uint8_t

cdef enum:
    SMALLEST_SID = 8
    MOST_SUB_AUTHORITIES = 15
    AUTHORITY_TEXT = 18             # S-1-0x and twelve digits
    SUB_AUTHORITY_TEXT = 11         # a hyphen and ten digits


cdef inline bint is_sid(const uint8_t* data, size_t size) noexcept nogil:
    """Return True if these bytes are one SID."""
    return (
        size >= SMALLEST_SID and data[0] == 1 and data[1] <= MOST_SUB_AUTHORITIES
        and size == <size_t>SMALLEST_SID + 4 * <size_t>data[1]
    )


cdef inline size_t largest_sid_text(size_t size) noexcept nogil:
    """A bound on the text of a SID of ``size`` bytes."""
    return <size_t>AUTHORITY_TEXT + SUB_AUTHORITY_TEXT * ((size - <size_t>SMALLEST_SID) // 4)


cdef size_t format_sid(const uint8_t* sid, size_t size, uint8_t* target) noexcept nogil
