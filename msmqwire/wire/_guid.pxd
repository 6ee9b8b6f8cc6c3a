"""GUIDs in packet order ([MS-DTYP] 2.3.4.2): copies, RFC 9562 byte order and text, 16 bytes at a time."""

from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint16_t, uint32_t
from libc.string cimport memcpy

from msmqwire.wire.simd cimport wire_bswap16, wire_bswap32, wire_hexadecimal

cdef enum:
    GUID_SIZE = 16
    GUID_TEXT_SIZE = 36
    NO_DIGIT = 0x80


# The value of a hexadecimal digit in either case; NO_DIGIT for all other bytes
cdef uint8_t[256] HEX_VALUE


cdef inline void swap_guid(const uint8_t* source, uint8_t* target) noexcept nogil:
    """Packet order to RFC 9562 order, or back: Data1, Data2 and Data3 change their byte order, Data4 does not."""
    cdef uint32_t data1
    cdef uint16_t data2
    cdef uint16_t data3
    memcpy(&data1, source, 4)
    memcpy(&data2, source + 4, 2)
    memcpy(&data3, source + 6, 2)
    data1 = wire_bswap32(data1)
    data2 = wire_bswap16(data2)
    data3 = wire_bswap16(data3)
    memcpy(target, &data1, 4)
    memcpy(target + 4, &data2, 2)
    memcpy(target + 6, &data3, 2)
    memcpy(target + 8, source + 8, 8)


cdef inline void format_guid(const uint8_t* source, uint8_t* target) noexcept nogil:
    """The 36 characters of the canonical lower-case text."""
    cdef uint8_t[16] ordered
    cdef uint8_t[32] digits
    swap_guid(source, ordered)
    wire_hexadecimal(ordered, digits)
    memcpy(target, digits, 8)
    target[8] = c"-"
    memcpy(target + 9, digits + 8, 4)
    target[13] = c"-"
    memcpy(target + 14, digits + 12, 4)
    target[18] = c"-"
    memcpy(target + 19, digits + 16, 4)
    target[23] = c"-"
    memcpy(target + 24, digits + 20, 12)


cdef size_t parse_guid(const uint8_t* text, size_t size, uint8_t* guid) noexcept nogil
cdef object guid_from_bytes(const uint8_t* source)
cdef int guid_to_bytes(object guid, str field, uint8_t* target) except -1
