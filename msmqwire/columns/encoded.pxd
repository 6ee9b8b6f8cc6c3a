"""Payloads that an encoder wrote, in memory that it can write again."""

from libc.stddef cimport size_t

from msmqwire.columns.buffer cimport Buffer
from msmqwire.columns.payloads cimport Payloads


cdef class Encoded(Payloads):
    cdef Buffer data
    cdef Buffer offsets

    cdef int finish(self, size_t count) except -1


cdef Encoded room_for(size_t count, size_t size, Encoded out)
