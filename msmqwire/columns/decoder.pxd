"""Payloads into the columns of a batch, with any number of threads."""

from libc.stddef cimport size_t
from libc.stdint cimport uint32_t

from msmqwire.columns.batch cimport Batch
from msmqwire.columns.layout cimport Columns, Layout
from msmqwire.columns.payloads cimport Payloads
from msmqwire.wire.transport cimport Transports


cdef class Decoder:
    """Payloads [start, stop) of a batch, decoded by one thread into columns of their own.

    A protocol's subclass has ``decode``, which writes rows from ``columns.rows`` on, and may prepare and finish. A
    batch keeps its first decoder: columns with enough room need not be looked up again.
    """
    cdef Payloads payloads
    cdef Transports transports
    cdef bint strict
    cdef uint32_t options   # a protocol's own
    cdef size_t start
    cdef size_t stop
    cdef Columns columns
    cdef size_t most_payloads   # what the columns of a batch's first decoder have room for
    cdef size_t most_bytes
    cdef tuple lists            # of the lists among them: path of the items, which of ``columns.lists``

    cdef int prepare(self) except -1
    cdef void decode(self) noexcept nogil
    cdef int finish(self, Batch batch) except -1


cdef Batch decode_payloads(
    Layout layout, type decoder, Payloads payloads, Transports transports, bint strict, object columns, Batch out,
    int threads, type kind=*, uint32_t options=*
)
