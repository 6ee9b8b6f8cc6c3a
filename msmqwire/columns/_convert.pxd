"""From the bytes that kernels write to the bytes that Arrow defines."""

from libc.stddef cimport size_t
from libc.stdint cimport int32_t, uint8_t, uint32_t

from msmqwire.columns._buffer cimport Buffer
from msmqwire.columns.payload_table cimport PayloadTable
from msmqwire.wire._fault cimport Fault


# A text or bytes value: bytes [offset, offset + length) of the payload of its row
cdef struct TextSpan:
    uint32_t offset
    uint32_t length


cdef class Validity:
    """The Arrow bitmaps of the columns of rows, by their bits of presence; each is made once."""
    cdef Buffer presence
    cdef size_t width
    cdef size_t count
    cdef uint32_t every     # bits that all rows have
    cdef uint32_t some      # bits that any row has
    cdef dict bitmaps

    cdef tuple of(self, uint32_t bit)


cdef Validity validity_of(Buffer presence, size_t width, size_t count)
cdef tuple presence_bitmap(const uint8_t* presence, size_t width, uint32_t bit, size_t count)
cdef Buffer zeros(size_t size)
cdef Buffer bits_of_bools(const uint8_t* values, size_t count)
cdef Buffer swapped_guids(const uint8_t* values, size_t count)
cdef tuple guid_texts(const uint8_t* values, size_t count, const uint8_t* validity)
cdef tuple texts_of_spans(const TextSpan* spans, size_t count, const PayloadTable* payloads, const uint32_t* rows)
cdef tuple bytes_of_spans(const TextSpan* spans, size_t count, const PayloadTable* payloads, const uint32_t* rows)
cdef tuple ascii_of_spans(const TextSpan* spans, size_t count, const PayloadTable* payloads, const uint32_t* rows)
cdef tuple texts_of_names(const uint8_t* values, size_t count, tuple names)
cdef Buffer rows_of_items(const int32_t* offsets, size_t count, const uint32_t* rows)
cdef tuple fault_fields(const Fault* faults, size_t fault_count, size_t count, tuple fields)
cdef Buffer widened(const uint8_t* values, size_t count, size_t width)
cdef Buffer ends_of_guids(size_t count)
cdef tuple texts_of(list texts)
cdef tuple texts_at(const uint32_t* places, size_t count, const int32_t* ends, const uint8_t* text)
