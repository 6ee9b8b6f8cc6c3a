"""The C index of the table of PROPIDs: from a number to the kind of its value in one load."""

from libc.stdint cimport uint8_t, uint32_t

from msmqwire.properties._generated cimport *


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
