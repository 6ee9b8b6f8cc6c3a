"""Turn a fault that a kernel recorded into the exception that Python sees."""

from libc.stdint cimport uint32_t, uint64_t

from msmqwire.errors import DecodeError
from msmqwire.wire.codes import FAULT_NAMES


cdef str field_name(tuple fields, uint32_t field, uint32_t item):
    cdef str name = fields[field]
    return name if item == NO_ITEM else f"{name}[{item}]"


cdef str detail(const Fault* fault):
    """What was needed and what was there; `needed` counts bytes only where the fault is about bytes."""
    if fault.code == TRUNCATED:
        return f"needs {fault.needed} bytes, {fault.available} left"
    if fault.code == INCOMPLETE:
        return f"{fault.available} of {fault.needed} bytes were captured"
    if fault.code == BAD_COUNT or fault.code == TOO_LARGE:
        bound = "must be at least" if fault.available < fault.needed else "can be at most"
        return f"is {fault.available}, {bound} {fault.needed}"
    if fault.code == BAD_SIZE:
        return f"needs {fault.needed}, there is {fault.available}"
    if fault.code == BAD_TYPE:
        return f"is 0x{fault.available:02x}"
    if fault.code == BAD_TERMINATOR:
        return "no U+0000 at its end" if fault.available == fault.needed else "U+0000 before its end"
    if fault.code == BAD_NAME and fault.available == 0:
        return "the name ends here"
    if fault.code == BAD_NAME or (fault.code == BAD_FLAG and fault.item != NO_ITEM):
        return f"code unit 0x{fault.available:04x}"
    if fault.code == BAD_TEXT:
        return f"code unit 0x{fault.available:04x}" if fault.needed else "the text ends here"
    return f"is 0x{fault.available:x}"


cdef object number_or_none(uint64_t number):
    return None if number == no_number() else number


cdef object decode_error(const Fault* fault, tuple fields):
    """The DecodeError of a fault, with its field named from the protocol's own list."""
    return DecodeError(
        FAULT_NAMES[fault.code], field_name(fields, fault.field, fault.item), fault.offset, detail(fault),
        number_or_none(fault.value), number_or_none(needed_of(fault)),
    )
