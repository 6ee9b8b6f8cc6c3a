from enum import IntFlag
from typing import Any

Field: Any
Presence: Any

class Violation(IntFlag):
    VERSION_NONZERO = 1
    RESERVED_NONZERO = 2
    IPX_FIELDS_ON_IP = 4
    MASK_NONZERO_ON_IP = 8
    MASK_COUNT_MISMATCH = 16
    TRAILING_BYTES = 32
