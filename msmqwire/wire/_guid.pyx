"""GUIDs from text, and between packet order and ``uuid.UUID``."""

import sys
from functools import lru_cache
from uuid import UUID

from libc.stddef cimport size_t
from libc.stdint cimport uint8_t
from libc.string cimport memcpy, memset

from msmqwire.errors import EncodeError
from msmqwire.wire.guids import guid_of

if sys.byteorder != "little":
    raise ImportError("msmqwire loads little-endian numbers directly and supports little-endian machines only")

# The offset in the text of the two digits of each byte, in packet order
cdef uint8_t[16] DIGITS_AT
DIGITS_AT[:] = [6, 4, 2, 0, 11, 9, 16, 14, 19, 21, 24, 26, 28, 30, 32, 34]

memset(HEX_VALUE, NO_DIGIT, sizeof(HEX_VALUE))


cdef int fill_values() except -1:
    for digit in b"0123456789abcdefABCDEF":
        HEX_VALUE[<uint8_t>digit] = int(chr(digit), 16)
    return 0


fill_values()


cdef size_t parse_guid(const uint8_t* text, size_t size, uint8_t* guid) noexcept nogil:
    """Read a GUID of 36 characters; returns the index of the first wrong or missing one, 36 for none."""
    cdef uint8_t found = 0
    cdef uint8_t high
    cdef uint8_t low
    cdef size_t i
    if size >= GUID_TEXT_SIZE:
        for i in range(<size_t>GUID_SIZE):
            high = HEX_VALUE[text[DIGITS_AT[i]]]
            low = HEX_VALUE[text[DIGITS_AT[i] + 1]]
            found |= high | low
            guid[i] = <uint8_t>(high << 4) | low
        if not found & NO_DIGIT and text[8] == text[13] == text[18] == text[23] == c"-":
            return GUID_TEXT_SIZE
    size = min(size, <size_t>GUID_TEXT_SIZE)
    for i in range(size):
        if i == 8 or i == 13 or i == 18 or i == 23:
            if text[i] != c"-":
                return i
        elif HEX_VALUE[text[i]] == NO_DIGIT:
            return i
    return size


# Packets of one capture or session name few machines and queues, and a UUID takes ten times as long as to find it
@lru_cache(maxsize=4096)
def remembered_guid(bytes source):
    return UUID(bytes_le=source)


@lru_cache(maxsize=4096)
def remembered_bytes(guid):
    return guid.bytes_le


cdef object guid_from_bytes(const uint8_t* source):
    return remembered_guid(source[:GUID_SIZE])


cdef int guid_to_bytes(object guid, str field, uint8_t* target) except -1:
    """Write a ``uuid.UUID`` or its text in packet order; anything else is refused under the name of its field."""
    cdef bytes packed
    found = guid_of(guid) if isinstance(guid, str) else guid
    if not isinstance(found, UUID):
        raise EncodeError(field, f"{guid!r} must be a uuid.UUID or text such as '557358d1-9150-9595-4997-b6e611ea26c6'")
    packed = remembered_bytes(found)
    memcpy(target, <const uint8_t*>packed, GUID_SIZE)
    return 0
