"""The kernel of PROPVARIANT values as change notifications have them: [MS-MQCN] 2.2.3.1-15, little-endian.

    VT_I2 VT_UI2 VT_BOOL 2 | VT_I1 VT_UI1 1 | VT_I4 VT_UI4 4 | VT_I8 VT_UI8 8 | VT_CLSID 16
    VT_BLOB, VT_UI1|VT_VECTOR, VT_UI4|VT_VECTOR, VT_CLSID|VT_VECTOR   0 count u32 | 4 count * (1, 1, 4, 16)
    VT_LPWSTR                                                         code units other than 0 | 0x0000
    VT_LPWSTR|VT_VECTOR                                               0 count u32 | 4 count * VT_LPWSTR

A value carries neither its type nor its size: its PROPID gives the type.
"""

from libc.stddef cimport size_t
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint32_t, uint64_t

from msmqwire.properties._lookup cimport (
    KIND_BOOL, KIND_COUNT, KIND_I1, KIND_I2, KIND_I4, KIND_LPWSTR, KIND_LPWSTR_VECTOR, KIND_UI1, KIND_UI2, KIND_UI4,
)
from msmqwire.wire.cursor cimport load_u16, load_u32, load_u64
from msmqwire.wire._fault cimport Fault
from msmqwire.wire.simd cimport wire_find_units, wire_lowest_bit, wire_unlikely

cdef enum:
    UNSIZED = 0x80000000  # the base of kinds without a size or a count: larger than any payload
    COUNT_SIZE = 4


# The size of a value is base + ((count & mask) << shift), where its first four bytes are the count.
# One formula for every kind that is not text costs less than a branch for each kind.
cdef struct ValueLayout:
    uint32_t base
    uint32_t mask  # 0, or all bits for a kind that begins with a count
    uint8_t shift


cdef ValueLayout[KIND_COUNT] value_layouts  # by Kind


# Cold: the rule that a value breaks when `value_size` is 0
cdef int value_fault(
    uint8_t kind, const uint8_t* data, size_t size, size_t at, uint32_t field, Fault* fault
) noexcept nogil

cdef size_t texts_size(const uint8_t* data, size_t size, size_t at) noexcept nogil


cdef inline size_t text_size(const uint8_t* data, size_t size, size_t at) noexcept nogil:
    """Bytes of the code units at ``at`` with the 0x0000 that ends them; 0 when none does.

    Sixteen units are searched at a time. The last search ends with the data and may begin before ``at``. Where fewer
    than 32 bytes precede the end, units are read one by one.
    """
    cdef const uint8_t* text = data + at
    cdef size_t left = (size - at) & ~<size_t>1
    cdef size_t here = 0
    cdef uint32_t found
    cdef uint64_t first
    if left >= 128:
        # Most texts end within these: one search instead of a loop whose end the processor cannot predict
        first = (
            wire_find_units(text, 0, 0) | <uint64_t>wire_find_units(text + 32, 0, 0) << 16
            | <uint64_t>wire_find_units(text + 64, 0, 0) << 32 | <uint64_t>wire_find_units(text + 96, 0, 0) << 48
        )
        if first:
            return 2 * wire_lowest_bit(first) + 2
        here = 128
    while left - here >= 32:
        found = wire_find_units(text + here, 0, 0)
        if found:
            return here + 2 * wire_lowest_bit(found) + 2
        here += 32
    if here == left:
        return 0
    if wire_unlikely(at + left < 32):
        while here < left:
            if load_u16(text + here) == 0:
                return here + 2
            here += 2
        return 0
    found = wire_find_units(text + left - 32, 0, 0) >> (16 - ((left - here) >> 1))
    return here + 2 * wire_lowest_bit(found) + 2 if found else 0


cdef inline uint32_t count_before(const uint8_t* data, size_t size, size_t at) noexcept nogil:
    """The count at ``at``; any four bytes when fewer are left there, since the base exceeds these."""
    return load_u32(data + (at if at < size - COUNT_SIZE else size - COUNT_SIZE))


cdef inline size_t value_size(uint8_t kind, const uint8_t* data, size_t size, size_t at) noexcept nogil:
    """Bytes of the value at ``at`` of data of at least 4 bytes; 0 when it is malformed (see ``value_fault``)."""
    cdef const ValueLayout* layout = &value_layouts[kind]
    cdef size_t needed
    if kind == KIND_LPWSTR:
        return text_size(data, size, at)
    if kind == KIND_LPWSTR_VECTOR:
        return texts_size(data, size, at)
    needed = layout.base + (<size_t>(count_before(data, size, at) & layout.mask) << layout.shift)
    return needed if needed <= size - at else 0


cdef inline int64_t load_number(uint8_t kind, const uint8_t* value) noexcept nogil:
    """The integer of a value, signed or not as its kind is; VT_UI8 modulo 2^64."""
    if kind == KIND_UI4:
        return <int64_t>load_u32(value)
    if kind == KIND_UI1:
        return <int64_t>value[0]
    if kind == KIND_I4:
        return <int64_t><int32_t>load_u32(value)
    if kind == KIND_I2:
        return <int64_t><int16_t>load_u16(value)
    if kind == KIND_UI2:
        return <int64_t>load_u16(value)
    if kind == KIND_BOOL:
        return load_u16(value) != 0
    if kind == KIND_I1:
        return <int64_t><int8_t>value[0]
    return <int64_t>load_u64(value)


cdef object dtype_of(uint8_t kind)
cdef object decode_value(uint8_t kind, const uint8_t* value, size_t size, object owner, const uint8_t* start)
cdef bytes encode_value(uint8_t kind, object value, str field)
