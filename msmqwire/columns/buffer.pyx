"""Memory that a Batch owns: aligned, never resized, freed with its last holder."""

from cpython.buffer cimport PyBuffer_FillInfo
from cpython.mem cimport PyMem_RawFree, PyMem_RawMalloc
from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uintptr_t
from libc.string cimport memcpy, memset

__all__ = ["Buffer", "allocated_bytes"]

cdef enum:
    ALIGNMENT = 64  # what Arrow recommends for its buffers

# Buffers are created and freed with the GIL held, so a plain counter is exact.
cdef size_t live_bytes = 0


cdef class Buffer:
    # A Buffer never moves or changes its size, so a view can never dangle; a Batch that needs more room takes a new one
    def __dealloc__(self):
        global live_bytes
        if self.block != NULL:
            PyMem_RawFree(self.block)
            live_bytes -= self.size

    def __len__(self):
        return self.size

    def __getbuffer__(self, Py_buffer* view, int flags):
        PyBuffer_FillInfo(view, self, self.data, <Py_ssize_t>self.size, 0, flags)


cdef Buffer allocate(size_t size):
    global live_bytes
    cdef Buffer buffer = Buffer.__new__(Buffer)
    buffer.block = PyMem_RawMalloc(size + ALIGNMENT)
    if buffer.block == NULL:
        raise MemoryError(f"cannot allocate {size} bytes for a column")
    buffer.data = <uint8_t*>((<uintptr_t>buffer.block + ALIGNMENT - 1) & ~<uintptr_t>(ALIGNMENT - 1))
    buffer.size = size
    live_bytes += size
    return buffer


cdef Buffer allocate_zeroed(size_t size):
    cdef Buffer buffer = allocate(size)
    memset(buffer.data, 0, size)
    return buffer


cdef Buffer buffer_of_bytes(bytes source):
    cdef Buffer buffer = allocate(<size_t>len(source))
    memcpy(buffer.data, <const uint8_t*>source, <size_t>len(source))
    return buffer


def allocated_bytes():
    """Bytes that all live Buffers hold now."""
    return live_bytes
