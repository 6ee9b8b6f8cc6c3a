from enum import IntEnum, IntFlag

Field: type[IntEnum]
Operation: type[IntEnum]
Object: type[IntEnum]
SENT: tuple[str, ...]

class PropertySet(IntEnum):
    CREATED = 0x7FFF
    QUEUE_KEY = 0x8000
    QUEUE_CHANGES = 0x807F
    MACHINE_KEY = 0x30000
    MACHINE_CHANGES = 0x1FF0000

class Violation(IntFlag):
    NO_UPDATES = 1
    TRAILING_BYTES = 2
    PATH_NAME_SYNTAX = 4
    PROPERTY_COUNT = 8
    USE_GUID = 16
    PROPERTY_SET = 32
    DUPLICATE_PROPERTY = 64

class Presence(IntFlag):
    HAS_CHANGE = 2
    HAS_UPDATE = 4
    HAS_OBJECT = 8
    HAS_GUID = 16
    HAS_PATH = 32
    HAS_BODY = 64
