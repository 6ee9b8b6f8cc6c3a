"""Memory that a Batch owns and that numpy and Arrow look into."""

from libc.stddef cimport size_t
from libc.stdint cimport uint8_t


cdef class Buffer:
    cdef uint8_t* data
    cdef readonly size_t size
    cdef void* block
    cdef size_t capacity     # of the block


cdef Buffer allocate(size_t size)
cdef Buffer allocate_zeroed(size_t size)
cdef Buffer buffer_of_bytes(bytes source)
cdef Buffer never_freed(Buffer buffer)
