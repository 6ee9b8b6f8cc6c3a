"""UTF-16LE code units as they stand on the wire, lone surrogates included, and their UTF-8."""

from libc.stddef cimport size_t
from libc.stdint cimport uint8_t


cdef size_t utf16_to_utf8(const uint8_t* units, size_t count, uint8_t* target) noexcept nogil
