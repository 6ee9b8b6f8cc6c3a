"""Written by `make build` from rules.py; do not edit."""

# Bits of the column ``violations`` of sessions
cdef enum SessionViolation:
    TRAILING_BYTES = 1 << 0
    TIMEOUT_RANGE = 1 << 1
    OPERATING_SYSTEM = 1 << 2
    TIME_TO_REACH_QUEUE = 1 << 3
    RESERVED_FLAGS = 1 << 4
    RESERVED_NONZERO = 1 << 5
    CONNECTION_REFUSED = 1 << 6
    MESSAGE_FLAGS = 1 << 7
    WINDOW_SIZE = 1 << 8
