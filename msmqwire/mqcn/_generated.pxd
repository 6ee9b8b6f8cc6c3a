"""Written by `make build` from schema.py; do not edit."""

from libc.stdint cimport int32_t, uint8_t, uint32_t

from msmqwire.columns._convert cimport TextSpan

cdef enum:
    MAX_UPDATES = 0xff
    MAX_PROPERTIES = 0xff
    MAX_NAME_UNITS = 0x100
    FIRST_VISIBLE = 0x21
    LAST_VISIBLE = 0x7e
    SMALLEST_PROPERTY = 0x5
    PROPID_D_SCOPE = 0x57b
    PROPID_D_OBJTYPE = 0x57c
    SENT_COUNT = 0x19
    RESERVED_AT = 0x10
    COUNT_AT = 0x28
    IDS_AT = 0x29
    SMALLEST_UPDATE = 0x2d
    HEADER_SIZE = 0x2

# Fields as the specification names them; the field of a fault
cdef enum Field:
    Version
    NumberOfUpdateNotifications
    Command
    UseGuid
    PathName
    GuidIdentifier
    GuidMasterId
    Reserved
    NumberOfProperties
    PropertyId
    PropertyValue
    Event
    ObjectGuid
    DomainController
    NotificationBody
    Data

# Bits of the column ``violations``
cdef enum Violation:
    NO_UPDATES = 1 << 0
    TRAILING_BYTES = 1 << 1
    PATH_NAME_SYNTAX = 1 << 2
    PROPERTY_COUNT = 1 << 3
    USE_GUID = 1 << 4
    PROPERTY_SET = 1 << 5
    DUPLICATE_PROPERTY = 1 << 6

# Faults of strict decoding
cdef enum:
    DISCARDABLE = TRAILING_BYTES | PATH_NAME_SYNTAX | PROPERTY_COUNT

# Bits of the presence of a row of notifications
cdef enum Presence:
    HAS_CHANGE = 1 << 1
    HAS_OBJECT = 1 << 2
    HAS_GUID = 1 << 3
    HAS_PATH = 1 << 4
    HAS_UPDATE = 1 << 5
    HAS_BODY = 1 << 6
    HAS_RESERVED = 1 << 7

# Sections of a record: where fixed fields are loaded from
cdef enum:
    OBJECT_GUID = 0
    MASTER_GUID = 1
    SECTION_COUNT = 2

# Places in ``codes`` of a record
cdef enum:
    VERSION
    INDEX
    OPERATION
    OBJECT
    CODE_COUNT

# Places in ``parts`` of a record
cdef enum:
    PATH_NAME
    DOMAIN_CONTROLLER
    RESERVED
    PART_COUNT

# Places in ``lists`` of a record
cdef enum:
    PROPERTIES
    LIST_COUNT

cdef enum Operation:
    CREATE
    CHANGE
    DELETE

cdef enum Object:
    NO_OBJECT
    QUEUE
    MACHINE

cdef enum PropertySet:
    CREATED = 0x7fff
    QUEUE_KEY = 0x8000
    QUEUE_CHANGES = 0x807f
    MACHINE_KEY = 0x30000
    MACHINE_CHANGES = 0x1ff0000

# Where the columns of notifications are, as ``find_columns`` says; NULL for one that is not requested
cdef struct RowColumns:
    uint8_t* presence
    uint32_t* violations
    uint8_t* version
    uint8_t* index
    uint8_t* operation
    uint8_t* object
    uint8_t* object_guid
    TextSpan* path_name
    uint8_t* master_guid
    TextSpan* domain_controller
    int32_t* properties
    TextSpan* reserved

# Bits of the presence of a property: the member that has the value
cdef enum Member:
    IS_INT = 1 << 0
    IS_TEXT = 1 << 1
    IS_GUID = 1 << 2
    IS_BYTES = 1 << 3
    IS_INTS = 1 << 4
    IS_GUIDS = 1 << 5
    IS_TEXTS = 1 << 6
