"""The texts of message bodies, found without the GIL and written together."""

from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint32_t

from msmqwire.columns.payload_table cimport Span

cdef enum TextForm:
    NO_TEXT
    ASCII_TEXT
    UTF8_TEXT
    UTF16_TEXT
    SID
    ANY_BODY    # for readable.py


cdef enum:
    BODY_TYPE_NUMBERS = 0x2100  # all numbers of types are smaller


# The bytes that a text is made of
cdef struct Origin:
    Span bytes
    TextForm form
    uint32_t body_type
    bint extension      # ExtensionData, in place of a body


cdef uint8_t find_body(
    const uint8_t* body, size_t size, uint32_t body_type, bint encrypted, bint extension, Origin* origin
) noexcept nogil
cdef bytes read_any(Origin* origin, uint8_t* format)
cdef size_t largest_text(const Origin* origin) noexcept nogil
cdef size_t write_text(const Origin* origin, uint8_t* target, uint8_t* format) noexcept nogil
cdef tuple format_and_text(const uint8_t* body, size_t size, uint32_t body_type, bint encrypted, bint extension)
