"""A bounds-checked reader of little-endian bytes.

Every multi-byte number on this wire is little-endian ([MS-MQMQ] 2.2.18) and may stand at any address, so numbers
are loaded with memcpy, which compiles to one unaligned load. The position moves only when a read succeeds.
"""

from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy


cdef struct Cursor:
    const uint8_t* data
    size_t size
    size_t position


cdef inline Cursor cursor_over(const uint8_t* data, size_t size) noexcept nogil:
    cdef Cursor cursor
    cursor.data = data
    cursor.size = size
    cursor.position = 0
    return cursor


cdef inline size_t remaining(const Cursor* cursor) noexcept nogil:
    return cursor.size - cursor.position


cdef inline const uint8_t* take(Cursor* cursor, size_t count) noexcept nogil:
    """The next ``count`` bytes, or NULL when fewer are left."""
    cdef const uint8_t* here
    if count > cursor.size - cursor.position:
        return NULL
    here = cursor.data + cursor.position
    cursor.position += count
    return here


cdef inline uint16_t load_u16(const uint8_t* source) noexcept nogil:
    cdef uint16_t value
    memcpy(&value, source, sizeof(value))
    return value


cdef inline uint32_t load_u32(const uint8_t* source) noexcept nogil:
    cdef uint32_t value
    memcpy(&value, source, sizeof(value))
    return value


cdef inline uint64_t load_u64(const uint8_t* source) noexcept nogil:
    cdef uint64_t value
    memcpy(&value, source, sizeof(value))
    return value


cdef inline void store_u16(uint8_t* target, uint32_t value) noexcept nogil:
    cdef uint16_t narrow = <uint16_t>value
    memcpy(target, &narrow, 2)


cdef inline void store_u32(uint8_t* target, size_t value) noexcept nogil:
    cdef uint32_t narrow = <uint32_t>value
    memcpy(target, &narrow, 4)
