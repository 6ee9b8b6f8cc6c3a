"""Payloads as an object of Python, the input of every decoder of many."""

from libc.stddef cimport size_t
from libc.stdint cimport int32_t, uint8_t, uint32_t

from msmqwire.columns.payload_table cimport LARGEST_PAYLOAD, PayloadTable, Span
from msmqwire.wire._fault cimport Fault


cdef class Payloads:
    cdef PayloadTable table
    cdef object owner  # whatever keeps the memory of the table alive
    cdef readonly Py_ssize_t nbytes


cdef inline bint fit_batch(Payloads payloads) noexcept:
    """Return True if a batch can hold the payloads: none is too large then."""
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
