"""The C declarations of simd.h."""

from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t


cdef extern from "msmqwire/wire/simd.h" nogil:
    uint32_t wire_lowest_bit(uint64_t mask)
    uint32_t wire_popcount(uint32_t bits)
    uint32_t wire_bswap32(uint32_t value)
    uint16_t wire_bswap16(uint16_t value)
    bint wire_unlikely(bint condition)
    void wire_prefetch(const void* address)
    uint32_t wire_find_units(const uint8_t* units, uint16_t a, uint16_t b)
    uint32_t wire_units_outside(const uint8_t* units, uint16_t first, uint16_t last)
    uint64_t wire_find_unit_and_nulls(const uint8_t* units, uint16_t unit, uint64_t* nulls)
    uint64_t wire_find_in_block(const uint8_t* array, uint32_t count, uint16_t unit, uint64_t* nulls)
    uint32_t wire_narrow_ascii(const uint8_t* units, uint8_t* out)
    uint64_t wire_folded_product(uint64_t a, uint64_t b)
    void wire_hexadecimal(const uint8_t* bytes, uint8_t* digits)
