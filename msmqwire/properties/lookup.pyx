"""The C index of the table of PROPIDs, filled from the table when it is imported."""

from libc.stdint cimport uint8_t, uint32_t
from libc.string cimport memset

from msmqwire.properties.table import FIRST_UNIQUE, PROPERTIES
from msmqwire.properties.vartype import (
    VT_BLOB, VT_BOOL, VT_CLSID, VT_I1, VT_I2, VT_I4, VT_I8, VT_LPWSTR, VT_UI1, VT_UI2, VT_UI4, VT_UI8,
    VT_VECTOR,
)

__all__ = ["KINDS", "NUMBERED", "type_of"]

KINDS = (
    0, VT_I2, VT_I4, VT_BOOL, VT_I1, VT_UI1, VT_UI2, VT_UI4, VT_I8, VT_UI8, VT_CLSID, VT_BLOB,
    VT_UI1 | VT_VECTOR, VT_UI4 | VT_VECTOR, VT_CLSID | VT_VECTOR, VT_LPWSTR, VT_LPWSTR | VT_VECTOR,
)
NUMBERED = tuple(row for row in PROPERTIES if row.number >= FIRST_UNIQUE and row.vt in KINDS)

cdef dict KIND_BY_TYPE = {vt: kind for kind, vt in enumerate(KINDS) if kind}

memset(property_kinds, 0, sizeof(property_kinds))
memset(property_places, 0, sizeof(property_places))


cdef int fill() except -1:
    cdef uint8_t place = 0
    cdef uint32_t number
    assert len(KINDS) == KIND_COUNT and len(NUMBERED) <= 255
    for row in NUMBERED:
        number = row.number
        if number >= PROPID_LIMIT:
            raise ImportError(f"{row.name} is {number}: raise PROPID_LIMIT above it")
        place += 1
        property_kinds[number] = KIND_BY_TYPE[row.vt]
        property_places[number] = place
    return 0


fill()


cdef uint8_t kind_of_type(object vt) except? 0:
    """Kind of a VARTYPE code; 0 for one that has no value codec."""
    return KIND_BY_TYPE.get(vt, 0)


def type_of(propid):
    """VARTYPE code of the value of a PROPID as it stands in a notification, None where it cannot be sized."""
    if not 0 <= propid <= 0xFFFFFFFF:
        return None
    return KINDS[property_kind(propid)] or None
