"""Format names of queues in columns, and their text: [MS-MQMQ] 2.1, 2.2.6."""

from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint16_t, uint32_t

# The numbers of QUEUE_FORMAT_TYPE, and one for a name whose host the packet does not say
cdef enum FormatNameForm:
    NO_QUEUE = 0
    PUBLIC_QUEUE = 1
    PRIVATE_QUEUE = 2
    DIRECT_NAME = 3
    DISTRIBUTION_LIST = 6
    UNRESOLVED_QUEUE = 255

cdef enum:
    LONGEST_FIXED_TEXT = 64  # the text of any form but DIRECT, and the keyword of that


# The layout is that of FORMAT_NAME_DTYPE in columns/views.py
cdef struct FormatName:
    uint8_t form
    uint8_t code        # what UserHeader.Flags says of it (DQ, AQ or RQ), or its FormatType
    uint16_t reserved
    uint32_t number     # of a private queue
    uint32_t offset     # a direct name: its bytes in the payload, without its U+0000
    uint32_t length
    uint8_t[16] guid    # of a public queue, of a private queue's host, of a distribution list


cdef inline size_t largest_format_name_text(const FormatName* name) noexcept nogil:
    """A bound on the bytes of its text."""
    return LONGEST_FIXED_TEXT + 3 * (<size_t>name.length // 2)


cdef size_t format_format_name(const FormatName* name, const uint8_t* payload, uint8_t* target) noexcept nogil
