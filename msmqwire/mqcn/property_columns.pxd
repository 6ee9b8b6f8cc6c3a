"""What readers see of the properties in a batch of change notifications."""

from msmqwire.columns.batch cimport Batch


cpdef enum Member:
    """Bits of a property's presence byte: the member of ``properties`` that holds the value."""
    IS_INT = 1
    IS_TEXT = 2
    IS_GUID = 4
    IS_BYTES = 8
    IS_INTS = 16
    IS_GUIDS = 32
    IS_TEXTS = 64


cdef int derive_members(Batch batch) except -1
cdef object gather_property(Batch batch, object propid)
