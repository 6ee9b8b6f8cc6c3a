"""The numbers that the rooms of MS-MQCN share: fields of faults, bits of violations and presence, limits of texts."""

# In the order of FIELDS in schema.py
cdef enum Field:
    FIELD_VERSION
    FIELD_NUMBER_OF_UPDATES
    FIELD_COMMAND
    FIELD_USE_GUID
    FIELD_PATH_NAME
    FIELD_GUID_IDENTIFIER
    FIELD_GUID_MASTER_ID
    FIELD_RESERVED
    FIELD_NUMBER_OF_PROPERTIES
    FIELD_PROPERTY_ID
    FIELD_PROPERTY_VALUE
    FIELD_EVENT
    FIELD_OBJECT_GUID
    FIELD_DOMAIN_CONTROLLER
    FIELD_NOTIFICATION_BODY
    FIELD_DATA

# As Violation in schema.py
cdef enum:
    NO_UPDATES = 1
    TRAILING_BYTES = 2
    PATH_NAME_SYNTAX = 4
    PROPERTY_COUNT = 8
    USE_GUID = 16
    PROPERTY_SET = 32
    DUPLICATE_PROPERTY = 64
    DISCARDABLE = 2 | 4 | 8
    NEVER_WRITTEN = 1 | 2 | 4

# The bits of a presence byte above DECODED, as schema.py has them
cdef enum:
    HAS_CHANGE = 2
    HAS_UPDATE = 4
    HAS_OBJECT = 8
    HAS_GUID = 16
    HAS_PATH = 32
    HAS_BODY = 64

cdef enum:
    HEADER_SIZE = 2             # bytes of Version and NumberOfUpdateNotifications
    BACKSLASH = 0x5C
    SEMICOLON = 0x3B
    FIRST_VISIBLE = 0x21
    LAST_VISIBLE = 0x7E
    MAX_COMPUTER = 256          # code units
    MAX_QUEUE_NAME = 124
