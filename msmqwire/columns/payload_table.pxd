"""Many payloads in any of three layouts, and one inline accessor."""

from libc.stddef cimport size_t
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t

from msmqwire.wire.simd cimport wire_prefetch

cdef enum:
    LARGEST_PAYLOAD = 0x7FFFFFFF  # offsets in a payload have 32 bits


# Bit of ``lost``: the payload is the first of bytes of a stream in which no packet begins
cdef enum:
    UNFRAMED = 0x80000000


cdef enum Layout:
    OFFSETS32  # one buffer, int32 offsets
    OFFSETS64  # one buffer, int64 offsets
    SPANS      # an address and a size for each


cdef struct Span:
    const uint8_t* data  # NULL: a null payload
    size_t size


cdef struct PayloadTable:
    Layout layout
    const uint8_t* data
    const int32_t* offsets32
    const int64_t* offsets64
    const Span* spans
    const uint8_t* validity  # Arrow bitmap, NULL when no payload is null
    size_t validity_offset   # in bits
    const uint32_t* lost     # bytes that each payload had after those here, with UNFRAMED; NULL when all are complete
    size_t count


cdef inline Span payload_at(const PayloadTable* table, size_t i) noexcept nogil:
    """Payload ``i``; its data is NULL when it is null."""
    cdef Span span
    cdef size_t bit
    if table.layout == OFFSETS32:
        span.data = table.data + table.offsets32[i]
        span.size = <size_t>(table.offsets32[i + 1] - table.offsets32[i])
    elif table.layout == SPANS:
        span = table.spans[i]
    else:
        span.data = table.data + table.offsets64[i]
        span.size = <size_t>(table.offsets64[i + 1] - table.offsets64[i])
    if table.validity != NULL:
        bit = table.validity_offset + i
        if not (table.validity[bit >> 3] >> (bit & 7)) & 1:
            span.data = NULL
            span.size = 0
    return span


cdef inline void prefetch_lines(const uint8_t* start, size_t size) noexcept nogil:
    """Load bytes into the cache before they are needed, two cache lines at a time."""
    cdef size_t at
    for at in range(0, size, 128):
        wire_prefetch(start + at)
        wire_prefetch(start + at + 64)
