"""Blocks of payloads, and the memory that they are made in."""

from libc.stddef cimport size_t

from msmqwire.capture.frames._rows cimport Rows
from msmqwire.columns._batch cimport Batch
from msmqwire.columns._buffer cimport Buffer
from msmqwire.columns._payloads cimport Payloads

cdef enum:
    FULL_BLOCK = 8192  # rows of a block that is not filled from further windows


cdef class Block:
    cdef readonly Payloads payloads
    cdef readonly Batch capture
    cdef Buffer others  # uint32: the rows of another transport than UDP, as frames.pxd has them


cdef class Pool:
    cdef size_t block_size
    cdef tuple columns
    cdef object table    # that they are of
    cdef size_t most_rows
    cdef list windows
    cdef list gathered
    cdef list spans
    cdef list batches
    cdef size_t turn
    # What rows need besides only until their block is made
    cdef Buffer others
    cdef Buffer lost
    cdef Buffer memory
    cdef Buffer files
    cdef Buffer paths
    cdef Buffer carry
    cdef Payloads nothing

    cdef Buffer free_buffer(self, list kept, size_t size)
    cdef Buffer window(self)
    cdef Buffer gathering(self)
    cdef Buffer row_spans(self)
    cdef Batch batch(self)
    cdef int keep(self, list kept, object slot) except -1


cdef Rows rows_of(Pool pool, Buffer spans, Batch columns) except *
