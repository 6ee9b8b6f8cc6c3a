"""The grammar of format names and path names, [MS-MQMQ] 2.1: reads one name of a text into its parts."""

from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint16_t, uint32_t

from msmqwire.columns._convert cimport TextSpan
from msmqwire.wire._fault cimport Fault

# The text form of a member is its name without the prefix, in lower case. Kinds and suffixes have the numbers of
# QUEUE_FORMAT_TYPE and QUEUE_SUFFIX_TYPE.
cpdef enum NameKind:
    """The kind of a name."""
    KIND_NONE
    KIND_PUBLIC
    KIND_PRIVATE
    KIND_DIRECT
    KIND_MACHINE
    KIND_CONNECTOR
    KIND_DISTRIBUTION_LIST
    KIND_MULTICAST
    KIND_MULTIPLE_ELEMENT
    KIND_PATH_NAME

cpdef enum NameProtocol:
    """The protocol of a direct name."""
    PROTOCOL_NONE
    PROTOCOL_TCP
    PROTOCOL_OS
    PROTOCOL_IPX
    PROTOCOL_SPX
    PROTOCOL_HTTP
    PROTOCOL_HTTPS

cpdef enum NameQueueType:
    """The type of a queue, by its path."""
    QUEUE_NONE
    QUEUE_PUBLIC
    QUEUE_PRIVATE
    QUEUE_SYSTEM

cpdef enum NameSuffix:
    """What follows the semicolon of a name."""
    SUFFIX_NONE
    SUFFIX_JOURNAL
    SUFFIX_DEADLETTER
    SUFFIX_DEADXACT
    SUFFIX_XACTONLY

cpdef enum Field:
    """Rules as the specification names them, with ``_`` for a dot; the field of a fault."""
    FormatName
    Protocol
    ProtocolAddressSpecification
    Host
    QueueName
    Subqueue
    Suffix
    QueueGuid
    ComputerGuid
    PrivateQueueIdentifier
    DistributionListGuid
    DomainName
    Guid
    Address
    Address_Port
    Computer

cpdef enum Expected:
    """What the grammar needs at the offset of a fault; EXPECTED in schema.py has the texts."""
    KEYWORD
    PROTOCOL
    HEXADECIMAL_DIGIT
    HYPHEN
    BACKSLASH
    END
    JOURNAL_OR_END
    SUFFIX_OR_END
    XACTONLY_OR_END
    DOMAIN_OR_END
    COMPUTER_CHARACTER
    QUEUE_CHARACTER
    SUBQUEUE_CHARACTER
    DOMAIN_CHARACTER
    IP_ADDRESS
    OCTET
    MULTICAST_OCTET
    MULTICAST_PORT
    DOT
    COLON
    TWO_SLASHES
    HOST_CHARACTER
    MSMQ
    WRITABLE_QUEUE
    LIST_ELEMENT

cpdef enum Presence:
    """Bits of a row's presence above DECODED."""
    HAS_GUID = 2
    HAS_PRIVATE_ID = 4
    HAS_PROTOCOL = 8
    HAS_ADDRESS = 16
    HAS_PORT = 32
    HAS_QUEUE_TYPE = 64
    HAS_QUEUE = 128
    HAS_SUBQUEUE = 256
    HAS_SUFFIX = 512
    HAS_DOMAIN = 1024
    HAS_ELEMENTS = 2048

cdef enum Option:
    EXTENDED = 1      # suffixes that QUEUE_FORMAT can express and the grammar cannot
    HTTP_SLASHES = 2  # slashes after /MSMQ
    SPX = 4           # the protocol of order acknowledgments
    PATH_NAME = 8     # the text is a path name


# The parts of a name. Spans are ASCII, with offsets from the start of the text. Zero where a kind has no such part.
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
