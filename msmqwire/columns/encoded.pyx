"""Payloads that an encoder wrote, in memory that it can write again."""

from cpython.ref cimport PyObject
from libc.stddef cimport size_t
from libc.stdint cimport int32_t

from msmqwire.columns.buffer cimport allocate
from msmqwire.columns.payloads cimport Payloads, attach_offsets32

__all__ = ["Encoded"]


cdef class Encoded(Payloads):
    cdef int finish(self, size_t count) except -1:
        """Show the ``count`` payloads that were just written."""
        return attach_offsets32(
            self, self.data.data, <const int32_t*>self.offsets.data, count, (self.data, self.offsets)
        )


cdef Encoded room_for(size_t count, size_t size, Encoded out):
    """``out`` with at least this much room, or a new object."""
    if size >= 0x80000000:
        raise ValueError(f"up to {size} bytes: encode less than 2 GiB at once")
    if out is None:
        out = Encoded.__new__(Encoded)
    # Slices, views and batches of these payloads hold their owner, and keep what they look at
    held = out.owner is not None and (<PyObject*>out.owner).ob_refcnt > 1
    if held or out.data is None or out.data.size < size:
        out.data = allocate(size)
    if held or out.offsets is None or out.offsets.size < 4 * (count + 1):
        out.offsets = allocate(4 * (count + 1))
    return out
