"""What readers see of the properties in a batch of change notifications."""

from msmqwire.columns._batch cimport Batch
from msmqwire.mqcn._generated cimport IS_BYTES, IS_GUID, IS_GUIDS, IS_INT, IS_INTS, IS_TEXT, IS_TEXTS


cdef int derive_members(Batch batch) except -1
cdef object gather_property(Batch batch, object propid)
