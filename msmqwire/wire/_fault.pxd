"""Faults: the error of a payload and its place, which kernels return instead of raising."""

from libc.stddef cimport size_t
from libc.stdint cimport uint32_t, uint64_t


# --- Written by `make build` from codes.py; do not edit ---
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
# --- End of the written part ---


# `item` of a fault whose field is not an element of an array
cdef enum:
    NO_ITEM = 0xFFFFFFFF


# The layout is that of FAULT_DTYPE in columns/_batch.pyx
cdef struct Fault:
    uint32_t row
    uint32_t code
    uint32_t field
    uint32_t item
    uint64_t offset
    uint64_t needed
    uint64_t available


cdef inline int set_fault(
    Fault* fault, FaultCode code, uint32_t field, size_t offset, uint64_t needed, uint64_t available
) noexcept nogil:
    """Record a fault; always -1, so that a reader can `return set_fault(...)`."""
    fault.code = <uint32_t>code
    fault.field = field
    fault.item = NO_ITEM
    fault.offset = offset
    fault.needed = needed
    fault.available = available
    return -1


cdef inline bint is_lost(Fault* fault, size_t end) noexcept nogil:
    """Turn a fault for lack of bytes into ``incomplete`` where the bytes are before ``end``: the capture lacks them."""
    if fault.code != <uint32_t>FaultCode.TRUNCATED or fault.offset + fault.needed > end:
        return False
    fault.code = <uint32_t>FaultCode.INCOMPLETE
    return True


cdef str field_name(tuple fields, uint32_t field, uint32_t item)
cdef object decode_error(const Fault* fault, tuple fields)
