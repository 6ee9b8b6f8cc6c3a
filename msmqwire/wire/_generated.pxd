"""Written by `make build` from codes.py; do not edit."""

# Codes of DecodeError and of the column ``fault``
cdef enum FaultCode:
    NONE
    TRUNCATED
    BAD_TYPE
    BAD_VERSION
    BAD_COUNT
    BAD_SIZE
    BAD_FLAG
    BAD_NAME
    BAD_TERMINATOR
    BAD_COMMAND
    BAD_USE_GUID
    UNKNOWN_PROPERTY
    BAD_VALUE
    BAD_TEXT
    BAD_SIGNATURE
    BAD_HEADER
    TOO_LARGE
    INCOMPLETE
