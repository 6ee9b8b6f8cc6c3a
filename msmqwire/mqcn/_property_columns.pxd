"""What readers see of the properties in a batch of change notifications."""

from msmqwire.columns._batch cimport Batch


# --- Written by `make build` from schema.py; do not edit ---
# Bits of the presence of a property: the member that has the value
cdef enum Member:
    IS_INT = 1 << 0
    IS_TEXT = 1 << 1
    IS_GUID = 1 << 2
    IS_BYTES = 1 << 3
    IS_INTS = 1 << 4
    IS_GUIDS = 1 << 5
    IS_TEXTS = 1 << 6
# --- End of the written part ---


cdef int derive_members(Batch batch) except -1
cdef object gather_property(Batch batch, object propid)
