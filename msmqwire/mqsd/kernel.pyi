from enum import IntEnum, IntFlag

class Field(IntEnum): ...

class Violation(IntFlag):
    VERSION_NONZERO = 1
    RESERVED_NONZERO = 2
    IPX_FIELDS_ON_IP = 4
    MASK_NONZERO_ON_IP = 8
    MASK_COUNT_MISMATCH = 16
    TRAILING_BYTES = 32

class Presence(IntFlag):
    HAS_REQUEST = 2
    HAS_REPLY = 4
    HAS_IPX = 8
    HAS_REMOTE = 16
