"""Faults: the error of a payload and its place, which kernels return instead of raising."""

from libc.stddef cimport size_t
from libc.stdint cimport uint32_t, uint64_t

from msmqwire.wire._generated cimport *


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
    uint64_t value      # the number that was read; ``no_number()`` if none was


# Codes whose ``available`` is the number that was read, and whose ``needed`` is a number that was needed
cdef enum:
    OF_NUMBERS = (
        1 << BAD_TYPE | 1 << BAD_VERSION | 1 << BAD_COUNT | 1 << BAD_FLAG | 1 << BAD_COMMAND | 1 << BAD_USE_GUID
        | 1 << UNKNOWN_PROPERTY | 1 << BAD_VALUE | 1 << BAD_SIGNATURE | 1 << BAD_HEADER | 1 << TOO_LARGE
    )
    WITH_NEEDED = (
        1 << TRUNCATED | 1 << INCOMPLETE | 1 << BAD_COUNT | 1 << BAD_SIZE | 1 << BAD_SIGNATURE | 1 << BAD_HEADER
        | 1 << TOO_LARGE
    )


cdef inline uint64_t no_number() noexcept nogil:
    """What stands for a number that a fault does not have: no field of a packet has 64 bits that a fault shows."""
    return ~<uint64_t>0


cdef inline uint64_t needed_of(const Fault* fault) noexcept nogil:
    """The number that was needed: bytes of a field, a bound, or the one right number; ``no_number()`` if none was."""
    if WITH_NEEDED >> fault.code & 1 or (fault.code == <uint32_t>FaultCode.BAD_VERSION and fault.needed):
        return fault.needed
    return no_number()


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
    fault.value = available if OF_NUMBERS >> <uint32_t>code & 1 else no_number()
    return -1


cdef inline int set_fault_of(
    Fault* fault, FaultCode code, uint32_t field, size_t offset, uint64_t needed, uint64_t available, uint64_t value
) noexcept nogil:
    """Record a fault that follows from ``value``, the number in the field or the one that says how long it is."""
    set_fault(fault, code, field, offset, needed, available)
    fault.value = value
    return -1


cdef inline bint is_lost(Fault* fault, size_t end) noexcept nogil:
    """Turn a fault for lack of bytes into ``incomplete`` where the bytes are before ``end``: the capture lacks them."""
    if fault.code != <uint32_t>FaultCode.TRUNCATED or fault.offset + fault.needed > end:
        return False
    fault.code = <uint32_t>FaultCode.INCOMPLETE
    return True


cdef str field_name(tuple fields, uint32_t field, uint32_t item)
cdef object number_or_none(uint64_t number)
cdef object decode_error(const Fault* fault, tuple fields)
