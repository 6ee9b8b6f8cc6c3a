"""The C index of the table of PROPIDs, filled from the table when it is imported."""

from libc.stdint cimport uint8_t, uint32_t
from libc.string cimport memset

from msmqwire.properties.table import KINDS, NUMBERED

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
            raise ImportError(f"{row.name} is {number}: PROPID_LIMIT must be higher")
        place += 1
        property_kinds[number] = KIND_BY_TYPE[row.vt]
        property_places[number] = place
    return 0


fill()


cdef uint8_t kind_of_type(object vt) except? 0:
    """Kind of a VARTYPE code; 0 for one that has no value codec."""
    return KIND_BY_TYPE.get(vt, 0)


def type_of(propid: int) -> int | None:
    """VARTYPE code of the value of a PROPID in a notification, None where the value cannot be sized.

    >>> type_of(105), type_of(24), type_of(100)
    (19, None, None)
    """
    if not 0 <= propid <= 0xFFFFFFFF:
        return None
    return KINDS[property_kind(propid)] or None
