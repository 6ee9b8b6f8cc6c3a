"""Faults: the codes by which kernels say what is wrong with a payload."""

from enum import IntEnum

FAULT_NAMES: tuple[str, ...]
"""Text form of each code, by number; the empty string for no fault."""

class FaultCode(IntEnum):
    """Codes of DecodeError and of the ``fault`` column; the text form is the name in lower case."""

    NONE = 0
    TRUNCATED = 1
    BAD_TYPE = 2
    BAD_VERSION = 3
    BAD_COUNT = 4
    BAD_SIZE = 5
    BAD_FLAG = 6
    BAD_NAME = 7
    BAD_TERMINATOR = 8
    BAD_COMMAND = 9
    BAD_USE_GUID = 10
    UNKNOWN_PROPERTY = 11
    BAD_VALUE = 12
    BAD_TEXT = 13
    BAD_SIGNATURE = 14
    BAD_HEADER = 15
    TOO_LARGE = 16
