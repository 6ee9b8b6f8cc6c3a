"""Numbers as text, without leading zeros."""

from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint32_t


cdef inline size_t put_decimal(uint32_t number, uint8_t* target) noexcept nogil:
    """Write a number and return its digits, at most 10."""
    cdef uint32_t rest = number // 10
    cdef size_t count = 1
    cdef size_t at
    while rest:
        rest //= 10
        count += 1
    for at in range(count):
        target[count - 1 - at] = <uint8_t>(c"0" + number % 10)
        number //= 10
    return count


cdef inline size_t put_octets(const uint8_t* octets, size_t count, uint8_t* target) noexcept nogil:
    """Write octets with two lower-case digits each, and return how many digits these are."""
    cdef const char* digits = "0123456789abcdef"
    cdef size_t i
    for i in range(count):
        target[2 * i] = <uint8_t>digits[octets[i] >> 4]
        target[2 * i + 1] = <uint8_t>digits[octets[i] & 15]
    return 2 * count


cdef inline size_t put_hexadecimal(uint32_t number, const char* digits, uint8_t* target) noexcept nogil:
    """Write a number with 16 given digits and return how many it has, at most 8."""
    cdef size_t written = 0
    cdef int shift = 28
    while shift > 0 and not number >> shift:
        shift -= 4
    while shift >= 0:
        target[written] = <uint8_t>digits[number >> shift & 15]
        written += 1
        shift -= 4
    return written
