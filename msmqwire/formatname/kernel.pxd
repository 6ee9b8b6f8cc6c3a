"""Format names and path names as [MS-MQMQ] 2.1 writes them: one name of a text, taken apart without Python."""

from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint16_t, uint32_t

from msmqwire.columns.convert cimport TextSpan
from msmqwire.wire.fault cimport Fault

# The numbers of the names in schema.py; those of kinds and suffixes begin as QUEUE_FORMAT_TYPE and QUEUE_SUFFIX_TYPE do
cdef enum Kind:
    KIND_PUBLIC = 1
    KIND_PRIVATE = 2
    KIND_DIRECT = 3
    KIND_MACHINE = 4
    KIND_CONNECTOR = 5
    KIND_DISTRIBUTION_LIST = 6
    KIND_MULTICAST = 7
    KIND_MULTIPLE_ELEMENT = 8
    KIND_PATH_NAME = 9

cdef enum Protocol:
    PROTOCOL_TCP = 1
    PROTOCOL_OS = 2
    PROTOCOL_IPX = 3
    PROTOCOL_SPX = 4
    PROTOCOL_HTTP = 5
    PROTOCOL_HTTPS = 6

cdef enum QueueType:
    QUEUE_PUBLIC = 1
    QUEUE_PRIVATE = 2
    QUEUE_SYSTEM = 3

cdef enum Suffix:
    SUFFIX_NONE = 0
    SUFFIX_JOURNAL = 1
    SUFFIX_DEADLETTER = 2
    SUFFIX_DEADXACT = 3
    SUFFIX_XACTONLY = 4

cdef enum Option:
    EXTENDED = 1      # suffixes that QUEUE_FORMAT can express and the grammar cannot
    HTTP_SLASHES = 2  # slashes behind /MSMQ
    SPX = 4           # the protocol of order acknowledgments
    PATH_NAME = 8     # the text is a path name


# What stands in a name; the spans are ASCII and count from the start of the text. Zero where a kind has no such part.
cdef struct Name:
    uint8_t kind
    uint8_t protocol
    uint8_t queue_type
    uint8_t suffix
    TextSpan address   # also the computer of a path name and the address of a multicast name
    TextSpan queue
    TextSpan subqueue
    TextSpan domain
    uint32_t private_id
    uint16_t port
    uint8_t[16] guid   # in packet order


cdef int read_element(
    const uint8_t* text, size_t size, size_t* at, uint32_t options, Name* name, Fault* fault
) noexcept nogil
