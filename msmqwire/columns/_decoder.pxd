"""Payloads into the columns of a batch."""

from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint32_t

from msmqwire.columns._batch cimport Batch
from msmqwire.columns._layout cimport Columns, Layout
from msmqwire.columns._payloads cimport Payloads
from msmqwire.wire._transport cimport Transports


cdef class Decoder:
    """The kernel of a protocol and the columns that it writes.

    A subclass has ``decode``, and may prepare and finish. A batch keeps its decoder, so that columns with enough room
    are not looked up again.
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
    cdef int finish(self, Batch batch) except -1


cdef Batch decode_payloads(
    Layout layout, type decoder, Payloads payloads, Transports transports, bint strict, object columns, Batch out,
    type kind=*, uint32_t options=*
)
cdef int check_run(Layout layout, type run, type general, list payloads) except -1
