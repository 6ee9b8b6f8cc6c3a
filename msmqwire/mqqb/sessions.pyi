from enum import IntFlag

class SessionViolation(IntFlag):
    TRAILING_BYTES = 1
    TIMEOUT_RANGE = 2
    OPERATING_SYSTEM = 4
    TIME_TO_REACH_QUEUE = 8
    RESERVED_FLAGS = 16
