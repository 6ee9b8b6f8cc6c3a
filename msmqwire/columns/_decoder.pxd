"""Payloads into the columns of a batch."""

from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint32_t

from msmqwire.columns._batch cimport Batch
from msmqwire.columns._layout cimport CUT_SIZE, LARGEST_BLOCK, Columns, Layout, put_fault, put_rows
from msmqwire.columns._payloads cimport Payloads
from msmqwire.columns.payload_table cimport PayloadTable, Span, payload_at, prefetch_lines
from msmqwire.wire._fault cimport Fault
from msmqwire.wire.simd cimport wire_unlikely
from msmqwire.wire._transport cimport Transports

cdef enum:
    AHEAD = 12          # payloads between the one that is read and the one that is fetched


cdef class Decoder:
    """The kernel of a protocol and the columns that it writes.

    A subclass has ``decode``, and may have the other methods. A batch keeps its decoder, so that columns with enough
    room are not looked up again.
    """
    cdef Payloads payloads
    cdef Transports transports
    cdef bint strict
    cdef uint32_t options   # a protocol's own
    cdef size_t count       # of payloads
    cdef Columns columns
    cdef size_t most_payloads   # what the columns have room for
    cdef size_t most_bytes
    cdef tuple lists            # of the lists among them: path of the items, which of ``columns.lists``

    cdef int prepare(self, Batch batch) except -1
    cdef void decode(self) noexcept nogil
    cdef void clear(self, void* record) noexcept nogil
    cdef int keep(
        self, size_t row, const Span* payload, int status, void* record, Fault* fault, uint8_t* header
    ) noexcept nogil
    cdef int finish(self, Batch batch) except -1


# Reads a payload into a record of the layout. 0, or -1 with ``fault`` set
ctypedef int (*Reader)(
    Decoder decoder, size_t row, const Span* payload, void* record, Fault* fault
) noexcept nogil


cdef inline size_t decode_block(
    Decoder decoder, size_t row, void* records, Reader read, size_t fetched
) noexcept nogil:
    """Read payloads from ``row`` on into ``records``, at most ``LARGEST_BLOCK``, then write their columns.

    ``read`` and ``fetched``, the bytes of a payload that are fetched ahead, are constants wherever this is called.
    Returns the row after them.
    """
    cdef PayloadTable source = decoder.payloads.table
    cdef uint8_t[LARGEST_BLOCK][CUT_SIZE] headers
    cdef uint8_t* record = <uint8_t*>records
    cdef size_t stop = min(decoder.count, row + <size_t>LARGEST_BLOCK)
    cdef size_t start = row
    cdef Fault fault
    cdef Span span
    cdef int status
    while row < stop:
        if fetched and row + AHEAD < decoder.count:
            span = payload_at(&source, row + AHEAD)
            prefetch_lines(span.data, min(span.size, fetched))
        span = payload_at(&source, row)
        if wire_unlikely(span.data == NULL):
            decoder.clear(record)
        else:
            status = read(decoder, row, &span, record, &fault)
            if wire_unlikely(source.lost != NULL and source.lost[row]):
                status = decoder.keep(row, &span, status, record, &fault, headers[row - start])
            elif wire_unlikely(status != 0):
                decoder.clear(record)
            if wire_unlikely(status != 0):
                put_fault(&decoder.columns, &fault, row)
        record += decoder.columns.stride
        row += 1
    put_rows(&decoder.columns, records, row - start)
    return row


cdef Batch decode_payloads(
    Layout layout, type decoder, Payloads payloads, Transports transports, bint strict, object columns, Batch out,
    type kind=*, uint32_t options=*
)
cdef int check_run(Layout layout, type run, type general, list payloads) except -1
