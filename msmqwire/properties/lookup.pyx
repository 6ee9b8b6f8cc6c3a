"""The C index of the table of PROPIDs, filled from the table when it is imported.

``KINDS`` has the VARTYPE code of each ``Kind``, 0 for none. ``NUMBERED`` has the PROPIDs that can occur in a
notification: their numbers are unique and their values can be sized.
"""

from libc.stdint cimport uint8_t, uint32_t
from libc.string cimport memset

from msmqwire.properties import vartype
from msmqwire.properties.table import FIRST_UNIQUE, PROPERTIES

__all__ = ["KINDS", "NUMBERED", "type_of"]


cdef int code_of(str name) except -1:
    """VARTYPE code of a member of ``Kind``: KIND_UI4_VECTOR is VT_UI4|VT_VECTOR."""
    return sum([getattr(vartype, f"VT_{part}") for part in name.split("_")[1:]]) if name != "KIND_NONE" else 0


KINDS = tuple([code_of(name) for name in Kind.__members__])
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
            raise ImportError(f"{row.name} is {number}: PROPID_LIMIT must be higher")
        place += 1
        property_kinds[number] = KIND_BY_TYPE[row.vt]
        property_places[number] = place
    return 0


fill()


cdef uint8_t kind_of_type(object vt) except? 0:
    """Kind of a VARTYPE code; 0 for one that has no value codec."""
    return KIND_BY_TYPE.get(vt, 0)


def type_of(propid):
    """VARTYPE code of the value of a PROPID in a notification, None where the value cannot be sized.

    >>> type_of(105), type_of(24), type_of(100)
    (19, None, None)
    """
    if not 0 <= propid <= 0xFFFFFFFF:
        return None
    return KINDS[property_kind(propid)] or None
