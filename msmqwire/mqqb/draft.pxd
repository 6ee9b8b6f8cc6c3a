"""A packet to be written: sections of its own, filled value by value through the table of ``layout.pyx``."""

from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from msmqwire.mqqb.layout cimport (
    BITS_1, BITS_4, CONCLUDED, COPY_2, COPY_4, COPY_8, SECONDS, Source
)
from msmqwire.mqqb.packet cimport (
    BLANK_SIZE, DELIVERY, SECTION_COUNT, USER, USER_DELIVERY_SHIFT, USER_FLAGS_AT, Packet
)
from msmqwire.wire.cursor cimport load_u32

cdef struct Draft:
    Packet packet
    uint8_t[SECTION_COUNT][BLANK_SIZE] sections


cdef inline void clear_draft(Draft* draft) noexcept nogil:
    cdef size_t i
    memset(draft, 0, sizeof(draft[0]))
    for i in range(<size_t>SECTION_COUNT):
        draft.packet.sections[i] = draft.sections[i]


cdef inline uint64_t largest_number(const Source* source) noexcept nogil:
    """The largest number that the field of a column can hold."""
    if source.form == COPY_8:
        return <uint64_t>0xFFFFFFFFFFFFFFFF
    if source.form == COPY_4 or source.form == SECONDS:
        return 0xFFFFFFFF
    if source.form == COPY_2:
        return 0xFFFF
    if source.form == BITS_1 or source.form == BITS_4:
        return source.mask
    return 0xFF


cdef inline void set_bits(uint8_t* at, uint32_t bits) noexcept nogil:
    bits |= load_u32(at)
    memcpy(at, &bits, 4)


cdef inline void store_number(Draft* draft, const Source* source, uint64_t number) noexcept nogil:
    """Put a number, at most ``largest_number``, where the column's values come from."""
    cdef uint8_t* at = draft.sections[source.place % SECTION_COUNT] + source.offset
    if source.form == CONCLUDED:
        draft.packet.concluded[source.place] = <uint8_t>number
        if source.place == DELIVERY:
            set_bits(draft.sections[USER] + USER_FLAGS_AT, <uint32_t>number << USER_DELIVERY_SHIFT)
    elif source.form == COPY_2:
        memcpy(at, &number, 2)
    elif source.form == COPY_8:
        memcpy(at, &number, 8)
    elif source.form == COPY_4 or source.form == SECONDS:
        memcpy(at, &number, 4)
    else:
        set_bits(at, <uint32_t>number << source.shift)
