"""The cold paths of the MS-MQSD kernel: which field, in wire order, is at fault."""

from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memset

from msmqwire.wire.cursor cimport load_u16, load_u32
from msmqwire.wire.fault cimport (
    BAD_COUNT, BAD_FLAG, BAD_NAME, BAD_SIZE, BAD_TERMINATOR, BAD_TYPE, BAD_VALUE, TRUNCATED, Fault, set_fault
)

from msmqwire.wire.flags import make_flags

__all__ = ["Field", "Presence", "Violation"]

make_flags(globals(), "Presence", "Violation")

memset(BLANK, 0, sizeof(BLANK))


cdef int header_fault(const uint8_t* data, size_t size, Fault* fault) noexcept nogil:
    if size == 0:
        return set_fault(fault, TRUNCATED, Field.Version, 0, 1, 0)
    if size == 1:
        return set_fault(fault, TRUNCATED, Field.Type, 1, 1, 0)
    if data[1] != REQUEST and data[1] != REPLY:
        return set_fault(fault, BAD_TYPE, Field.Type, 1, 0, data[1])
    return set_fault(fault, TRUNCATED, Field.Reserved, 2, 2, size - 2)


cdef int request_truncated(size_t size, Fault* fault) noexcept nogil:
    if size < 20:
        return set_fault(fault, TRUNCATED, Field.EnterpriseID, 4, 16, size - 4)
    if size < 36:
        return set_fault(fault, TRUNCATED, Field.RequestID, 20, 16, size - 20)
    return set_fault(fault, TRUNCATED, Field.SiteID, 36, 16, size - 36)


cdef int reply_truncated(const uint8_t* data, size_t size, Fault* fault) noexcept nogil:
    """Walk the fixed fields of a reply in wire order to the one at fault; there is one."""
    cdef uint32_t count
    cdef uint32_t servers_size
    cdef size_t at
    if size < 20:
        return set_fault(fault, TRUNCATED, Field.CorrelationID, 4, 16, size - 4)
    if size < 24:
        return set_fault(fault, TRUNCATED, Field.ConnectedNetworkCount, 20, 4, size - 20)
    count = load_u32(data + 20)
    if count == 0 or count > MAX_NETWORKS:
        return set_fault(fault, BAD_COUNT, Field.ConnectedNetworkCount, 20, MAX_NETWORKS if count else 1, count)
    if size < 28:
        return set_fault(fault, TRUNCATED, Field.ConnectedNetworkMask, 24, 4, size - 24)
    if size < 32:
        return set_fault(fault, TRUNCATED, Field.DirectoryServiceServerSize, 28, 4, size - 28)
    servers_size = load_u32(data + 28)
    if servers_size & 1 or 0 < servers_size < SMALLEST_SERVER_ARRAY:
        # Whole code units, and at least those of one entry
        return set_fault(
            fault, BAD_SIZE, Field.DirectoryServiceServerSize, 28,
            max(<uint64_t>servers_size + (servers_size & 1), <uint64_t>SMALLEST_SERVER_ARRAY), servers_size,
        )
    at = REPLY_FIXED_SIZE
    if 16 * <size_t>count > size - at:
        return set_fault(fault, TRUNCATED, Field.ConnectedNetworkArray, at, 16 * <uint64_t>count, size - at)
    at += 16 * <size_t>count
    if 16 > size - at:
        return set_fault(fault, TRUNCATED, Field.RespondingSiteID, at, 16, size - at)
    at += 16
    return set_fault(fault, TRUNCATED, Field.DirectoryServiceServerArray, at, servers_size, size - at)


cdef int server_array_fault(const uint8_t* array, size_t size, size_t at, Fault* fault) noexcept nogil:
    """Read code unit by code unit, as the ABNF of [MS-MQSD] 2.2.3 says, to the one that breaks it."""
    cdef size_t units = size // 2
    cdef size_t i
    cdef size_t place = 0  # in the entry: 0 IP flag, 1 IPX flag, 2 first of the name, 3 the rest
    cdef uint32_t entry = 0
    cdef uint16_t unit
    for i in range(units):
        unit = load_u16(array + 2 * i)
        if place < 2:
            if unit != 0x30 and unit != 0x31:
                set_fault(fault, BAD_FLAG, Field.DirectoryServiceServerArray, at + 2 * i, 0, unit)
                fault.item = entry
                return -1
            place += 1
        elif place == 2:
            if unit == 0 or unit == COMMA:
                set_fault(fault, BAD_NAME, Field.DirectoryServiceServerArray, at + 2 * i, 0, unit)
                fault.item = entry
                return -1
            place = 3
        elif unit == COMMA:
            place = 0
            entry += 1
        elif unit == 0:
            return set_fault(fault, BAD_TERMINATOR, Field.DirectoryServiceServerArray, at + 2 * i, size, 2 * i)
    return set_fault(fault, BAD_TERMINATOR, Field.DirectoryServiceServerArray, at + size, size, size)


cdef int violation_fault(
    uint32_t violations, const uint8_t* data, size_t size, size_t described, Fault* fault
) noexcept nogil:
    """The lowest violation for which a conforming receiver discards the packet, as a fault."""
    if violations & (MASK_NONZERO_ON_IP | MASK_COUNT_MISMATCH):
        return set_fault(fault, BAD_VALUE, Field.ConnectedNetworkMask, 24, 0, load_u32(data + 24))
    return set_fault(fault, BAD_SIZE, Field.DirectoryServiceServerSize, described, described, size)
