"""What readers see of the properties in a batch of change notifications."""

from msmqwire.columns.batch cimport Batch


cdef int derive_members(Batch batch) except -1
cdef object gather_property(Batch batch, object propid)
