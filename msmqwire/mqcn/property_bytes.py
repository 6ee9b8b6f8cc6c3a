"""Values of PROPIDs read from their bytes alone, for byte maps."""

from __future__ import annotations

from msmqwire import propvariant
from msmqwire.errors import DecodeError
from msmqwire.mqcn.values import PropertyValue
from msmqwire.properties._lookup import type_of


def read_property(propid: int, data: bytes) -> PropertyValue | None:
    """The value of a PROPID from its bytes; None if these are not valid."""
    try:
        return PropertyValue(propid, propvariant.decode(type_of(propid) or 0, data))
    except DecodeError:
        return None


def property_size(propid: int, data: memoryview) -> int:
    """The bytes of the value of a PROPID, which begins ``data``; ValueError if they are not known."""
    return propvariant.size(type_of(propid) or 0, data)
