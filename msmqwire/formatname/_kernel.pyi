"""Written by `make build` from the annotations in _kernel.pyx; do not edit."""

from enum import IntEnum

class NameKind(IntEnum):
    KIND_NONE = 0
    KIND_PUBLIC = 1
    KIND_PRIVATE = 2
    KIND_DIRECT = 3
    KIND_MACHINE = 4
    KIND_CONNECTOR = 5
    KIND_DISTRIBUTION_LIST = 6
    KIND_MULTICAST = 7
    KIND_MULTIPLE_ELEMENT = 8
    KIND_PATH_NAME = 9

class NameProtocol(IntEnum):
    PROTOCOL_NONE = 0
    PROTOCOL_TCP = 1
    PROTOCOL_OS = 2
    PROTOCOL_IPX = 3
    PROTOCOL_SPX = 4
    PROTOCOL_HTTP = 5
    PROTOCOL_HTTPS = 6

class NameQueueType(IntEnum):
    QUEUE_NONE = 0
    QUEUE_PUBLIC = 1
    QUEUE_PRIVATE = 2
    QUEUE_SYSTEM = 3

class NameSuffix(IntEnum):
    SUFFIX_NONE = 0
    SUFFIX_JOURNAL = 1
    SUFFIX_DEADLETTER = 2
    SUFFIX_DEADXACT = 3
    SUFFIX_XACTONLY = 4

class Field(IntEnum):
    FormatName = 0
    Protocol = 1
    ProtocolAddressSpecification = 2
    Host = 3
    QueueName = 4
    Subqueue = 5
    Suffix = 6
    QueueGuid = 7
    ComputerGuid = 8
    PrivateQueueIdentifier = 9
    DistributionListGuid = 10
    DomainName = 11
    Guid = 12
    Address = 13
    Address_Port = 14
    Computer = 15

class Expected(IntEnum):
    KEYWORD = 0
    PROTOCOL = 1
    HEXADECIMAL_DIGIT = 2
    HYPHEN = 3
    BACKSLASH = 4
    END = 5
    JOURNAL_OR_END = 6
    SUFFIX_OR_END = 7
    XACTONLY_OR_END = 8
    DOMAIN_OR_END = 9
    COMPUTER_CHARACTER = 10
    QUEUE_CHARACTER = 11
    SUBQUEUE_CHARACTER = 12
    DOMAIN_CHARACTER = 13
    IP_ADDRESS = 14
    OCTET = 15
    MULTICAST_OCTET = 16
    MULTICAST_PORT = 17
    DOT = 18
    COLON = 19
    TWO_SLASHES = 20
    HOST_CHARACTER = 21
    MSMQ = 22
    WRITABLE_QUEUE = 23
    LIST_ELEMENT = 24

class Presence(IntEnum):
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
