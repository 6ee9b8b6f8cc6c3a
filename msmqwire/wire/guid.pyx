"""GUIDs between packet order and ``uuid.UUID``."""

import sys
from uuid import UUID

from libc.stdint cimport uint8_t
from libc.string cimport memcpy

from msmqwire.errors import EncodeError

if sys.byteorder != "little":
    raise ImportError("msmqwire loads little-endian numbers directly and supports little-endian machines only")


cdef object guid_from_bytes(const uint8_t* source):
    return UUID(bytes_le=source[:GUID_SIZE])


cdef int guid_to_bytes(object guid, str field, uint8_t* target) except -1:
    """Write a ``uuid.UUID`` in packet order; anything else is refused under the name of its field."""
    cdef bytes packed
    if not isinstance(guid, UUID):
        raise EncodeError(field, f"must be a uuid.UUID, not {type(guid).__name__}")
    packed = guid.bytes_le
    memcpy(target, <const uint8_t*>packed, GUID_SIZE)
    return 0
