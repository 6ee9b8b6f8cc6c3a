"""Many payloads in any of three layouts, and one inline accessor."""

from libc.stddef cimport size_t
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

from msmqwire.wire._fault cimport Fault
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


# The columns that a row of an incomplete payload has: a bit for each column of the table
cdef struct Whole:
    uint64_t row
    uint64_t[2] columns


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


cdef class Payloads:
    cdef PayloadTable table
    cdef object owner  # whatever keeps the memory of the table alive
    cdef readonly Py_ssize_t nbytes


cdef inline bint fit_batch(Payloads payloads) noexcept:
    """Whether a batch can hold the payloads, of which none is too large then."""
    return payloads.nbytes <= LARGEST_PAYLOAD and payloads.table.count < <size_t>0x7FFFFFFF


cdef Payloads without_large(Payloads payloads, list large)
cdef bytes bytes_of(object data)
cdef tuple immutable_view(object data)
cdef object hold_payload(object data, tuple fields, const uint8_t** start, size_t* size)
cdef void set_too_large(Fault* fault, size_t size) noexcept
cdef const uint8_t* address(object view)
cdef Payloads payloads_of_spans(const Span* spans, size_t count, Py_ssize_t nbytes, object owner)
cdef Payloads with_lost(Payloads payloads, const uint32_t* lost, object owner)
cdef int attach_offsets32(
    Payloads payloads, const uint8_t* data, const int32_t* offsets, size_t count, object owner
) except -1
