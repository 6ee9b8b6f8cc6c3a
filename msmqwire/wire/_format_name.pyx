"""Text of format names: ``PUBLIC=``, ``PRIVATE=``, ``DIRECT=`` and ``DL=``, GUIDs in canonical lower case."""

from libc.stddef cimport size_t
from libc.stdint cimport uint8_t
from libc.string cimport memcpy, strlen

from msmqwire.wire._guid cimport GUID_TEXT_SIZE, format_guid
from msmqwire.wire._utf16 cimport utf16_to_utf8
from msmqwire.wire.digits cimport put_hexadecimal


cdef size_t put_guid(const char* keyword, const uint8_t* guid, uint8_t* target) noexcept nogil:
    cdef size_t size = strlen(keyword)
    memcpy(target, keyword, size)
    format_guid(guid, target + size)
    return size + GUID_TEXT_SIZE


cdef size_t format_format_name(const FormatName* name, const uint8_t* payload, uint8_t* target) noexcept nogil:
    """Write the text and return its length, at most ``largest_format_name_text``."""
    cdef size_t written
    if name.form == PUBLIC_QUEUE:
        return put_guid("PUBLIC=", name.guid, target)
    if name.form == DISTRIBUTION_LIST:
        return put_guid("DL=", name.guid, target)
    if name.form == PRIVATE_QUEUE:
        written = put_guid("PRIVATE=", name.guid, target)
        target[written] = c"\\"
        return written + 1 + put_hexadecimal(name.number, "0123456789ABCDEF", target + written + 1)
    memcpy(target, <const char*>"DIRECT=", 7)
    return 7 + utf16_to_utf8(payload + name.offset, name.length // 2, target + 7)
