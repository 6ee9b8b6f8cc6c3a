"""The C index of the table of PROPIDs: from a number to the kind of its value in one load."""

from libc.stdint cimport uint8_t, uint32_t

# --- Written by `make build` from table.py; do not edit ---
# The types of values: fixed sizes, values that begin with a count, texts
cdef enum Kind:
    KIND_NONE
    KIND_I2
    KIND_I4
    KIND_BOOL
    KIND_I1
    KIND_UI1
    KIND_UI2
    KIND_UI4
    KIND_I8
    KIND_UI8
    KIND_CLSID
    KIND_BLOB
    KIND_UI1_VECTOR
    KIND_UI4_VECTOR
    KIND_CLSID_VECTOR
    KIND_LPWSTR
    KIND_LPWSTR_VECTOR
    KIND_COUNT
# --- End of the written part ---


cdef enum:
    PROPID_LIMIT = 5632  # above every PROPID

cdef uint8_t[PROPID_LIMIT] property_kinds
cdef uint8_t[PROPID_LIMIT] property_places


cdef inline uint8_t property_kind(uint32_t propid) noexcept nogil:
    """Kind of the value of a PROPID; KIND_NONE for one that is unknown, or below 101 and so not unique."""
    return property_kinds[propid] if propid < PROPID_LIMIT else <uint8_t>KIND_NONE


cdef inline uint8_t property_place(uint32_t propid) noexcept nogil:
    """Place of a PROPID in NUMBERED, counted from 1; 0 where ``property_kind`` is KIND_NONE."""
    return property_places[propid] if propid < PROPID_LIMIT else <uint8_t>0


cdef uint8_t kind_of_type(object vt) except? 0
