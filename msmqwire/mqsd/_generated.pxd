"""Written by `make build` from schema.py; do not edit."""

from libc.stdint cimport int32_t, uint8_t, uint32_t

from msmqwire.columns._convert cimport TextSpan

cdef enum:
    MAX_NETWORKS = 0x20
    SMALLEST_SERVER_ARRAY = 0x8
    HEADER_SIZE = 0x4
    REQUEST_SIZE = 0x34
    REPLY_FIXED_SIZE = 0x20

# Fields as the specification names them; the field of a fault
cdef enum Field:
    Version
    Type
    Reserved
    EnterpriseID
    RequestID
    SiteID
    IPXNetworkCount
    IPXNetworkNumberArray
    CorrelationID
    ConnectedNetworkCount
    ConnectedNetworkMask
    DirectoryServiceServerSize
    ConnectedNetworkArray
    RespondingSiteID
    DirectoryServiceServerArray

# Bits of the column ``violations``
cdef enum Violation:
    VERSION_NONZERO = 1 << 0
    RESERVED_NONZERO = 1 << 1
    IPX_FIELDS_ON_IP = 1 << 2
    MASK_NONZERO_ON_IP = 1 << 3
    MASK_COUNT_MISMATCH = 1 << 4
    TRAILING_BYTES = 1 << 5

# Faults of strict decoding
cdef enum:
    DISCARDABLE = MASK_NONZERO_ON_IP | MASK_COUNT_MISMATCH | TRAILING_BYTES

# Bits of the presence of a row of topology
cdef enum Presence:
    HAS_REQUEST = 1 << 1
    HAS_IPX = 1 << 2
    HAS_REPLY = 1 << 3
    HAS_REMOTE = 1 << 4
    HAS_TRAILING = 1 << 5

# Sections of a record: where fixed fields are loaded from
cdef enum:
    HEADER = 0
    REQUEST_FIELDS = 1
    REPLY_FIELDS = 2
    RESPONDING_SITE = 3
    SECTION_COUNT = 4

# Where fields begin in their headers
cdef enum:
    RESERVED_AT = 2
    ENTERPRISE_ID_AT = 4
    REQUEST_ID_AT = 20
    SITE_ID_AT = 36
    CORRELATION_ID_AT = 4
    CONNECTED_NETWORK_COUNT_AT = 20
    CONNECTED_NETWORK_MASK_AT = 24
    DIRECTORY_SERVICE_SERVER_SIZE_AT = 28

# Places in ``codes`` of a record
cdef enum:
    TYPE
    CODE_COUNT

# Places in ``lists`` of a record
cdef enum:
    IPX_NETWORKS
    NETWORKS
    SERVERS
    LIST_COUNT

# Places in ``parts`` of a record
cdef enum:
    TRAILING
    PART_COUNT

cdef enum PacketType:
    REQUEST = 0x1
    REPLY = 0x2
    NO_TYPE = 0xff

# Where the columns of topology are, as ``find_columns`` says; NULL for one that is not requested
cdef struct RowColumns:
    uint8_t* presence
    uint32_t* violations
    uint8_t* type
    uint8_t* version
    uint8_t* enterprise_id
    uint8_t* request_id
    uint8_t* site_id
    int32_t* ipx_networks
    uint8_t* correlation_id
    uint32_t* connected_network_mask
    int32_t* connected_networks
    uint8_t* responding_site_id
    int32_t* servers
    TextSpan* trailing
