from enum import IntEnum, IntFlag
from typing import Any

Field: type[IntEnum]
Operation: type[IntEnum]
Object: type[IntEnum]
SENT: tuple[str, ...]
PropertySet: Any
Presence: Any

class Violation(IntFlag):
    NO_UPDATES = 1
    TRAILING_BYTES = 2
    PATH_NAME_SYNTAX = 4
    PROPERTY_COUNT = 8
    USE_GUID = 16
    PROPERTY_SET = 32
    DUPLICATE_PROPERTY = 64

STRICT: Violation
