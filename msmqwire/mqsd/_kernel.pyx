"""The cold paths of the MS-MQSD kernel: which field, in wire order, is at fault."""

from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from msmqwire.columns._layout cimport CUT_SIZE
from msmqwire.wire.cursor cimport load_u16, load_u32
from msmqwire.wire._fault cimport (
    BAD_COUNT, BAD_FLAG, BAD_NAME, BAD_SIZE, BAD_TERMINATOR, BAD_TYPE, BAD_VALUE, TRUNCATED, Fault, is_lost, set_fault,
    set_fault_of,
)

memset(BLANK, 0, sizeof(BLANK))


cdef int truncated(Fault* fault, Field field, size_t at, uint64_t needed, size_t size) noexcept nogil:
    """Set the fault of the field at ``at``, which is truncated by the end of the payload at ``size``."""
    return set_fault(fault, TRUNCATED, field, at, needed, size - at)


cdef int header_fault(const uint8_t* data, size_t size, Fault* fault) noexcept nogil:
    if size == 0:
        return set_fault(fault, TRUNCATED, Field.Version, 0, 1, 0)
    if size == 1:
        return set_fault(fault, TRUNCATED, Field.Type, 1, 1, 0)
    if data[1] != REQUEST and data[1] != REPLY:
        return set_fault(fault, BAD_TYPE, Field.Type, 1, 0, data[1])
    return truncated(fault, Field.Reserved, 2, 2, size)


cdef int request_truncated(size_t size, Fault* fault) noexcept nogil:
    if size < 20:
        return truncated(fault, Field.EnterpriseID, ENTERPRISE_ID_AT, 16, size)
    if size < 36:
        return truncated(fault, Field.RequestID, REQUEST_ID_AT, 16, size)
    return truncated(fault, Field.SiteID, SITE_ID_AT, 16, size)


cdef int reply_truncated(const uint8_t* data, size_t size, Fault* fault) noexcept nogil:
    """Walk the fixed fields of a reply in wire order to the one at fault; there is one."""
    cdef uint32_t count
    cdef uint32_t servers_size
    cdef size_t at
    if size < 20:
        return truncated(fault, Field.CorrelationID, CORRELATION_ID_AT, 16, size)
    if size < 24:
        return truncated(fault, Field.ConnectedNetworkCount, CONNECTED_NETWORK_COUNT_AT, 4, size)
    count = load_u32(data + CONNECTED_NETWORK_COUNT_AT)
    if count == 0 or count > MAX_NETWORKS:
        return set_fault(
            fault, BAD_COUNT, Field.ConnectedNetworkCount, CONNECTED_NETWORK_COUNT_AT, MAX_NETWORKS if count else 1,
            count,
        )
    if size < 28:
        return truncated(fault, Field.ConnectedNetworkMask, CONNECTED_NETWORK_MASK_AT, 4, size)
    if size < 32:
        return truncated(fault, Field.DirectoryServiceServerSize, DIRECTORY_SERVICE_SERVER_SIZE_AT, 4, size)
    servers_size = load_u32(data + DIRECTORY_SERVICE_SERVER_SIZE_AT)
    if servers_size & 1 or 0 < servers_size < SMALLEST_SERVER_ARRAY:
        # Complete code units, at least as many as one entry has
        return set_fault_of(
            fault, BAD_SIZE, Field.DirectoryServiceServerSize, DIRECTORY_SERVICE_SERVER_SIZE_AT,
            max(<uint64_t>servers_size + (servers_size & 1), <uint64_t>SMALLEST_SERVER_ARRAY), servers_size,
            servers_size,
        )
    at = REPLY_FIXED_SIZE
    if 16 * <size_t>count > size - at:
        return set_fault_of(
            fault, TRUNCATED, Field.ConnectedNetworkArray, at, 16 * <uint64_t>count, size - at, count
        )
    at += 16 * <size_t>count
    if 16 > size - at:
        return truncated(fault, Field.RespondingSiteID, at, 16, size)
    at += 16
    return set_fault_of(
        fault, TRUNCATED, Field.DirectoryServiceServerArray, at, servers_size, size - at, servers_size
    )


cdef int keep_complete_fields(
    const uint8_t* data, size_t size, size_t lost, uint32_t transport, int status, Topology* packet, Fault* fault,
    uint8_t* fields,
) noexcept nogil:
    """The ``status`` of a packet that lost bytes at its end; if these are of a field, the packet has the earlier ones.

    ``fields`` gets a copy of the fixed fields, as far as they are there, and zeros.
    """
    cdef Fault found
    cdef size_t networks
    if status == 0:
        if data[1] == REPLY or ipx_form_truncated(data, size, size + lost, transport, &found) == 0:
            return 0
        fault[0] = found
    clear_topology(packet)
    if not is_lost(fault, size + lost):
        return -1
    memset(fields, 0, CUT_SIZE)
    memcpy(fields, data, min(size, <size_t>CUT_SIZE))
    packet.sections[HEADER] = fields
    if size < 2:
        return -1
    packet.codes[TYPE] = data[1]
    if data[1] == REQUEST:
        packet.presence = HAS_REQUEST
        packet.sections[REQUEST_FIELDS] = fields
        return -1
    packet.presence = HAS_REPLY
    packet.sections[REPLY_FIELDS] = fields
    networks = load_u32(fields + CONNECTED_NETWORK_COUNT_AT)
    if fault.field > <uint32_t>Field.ConnectedNetworkArray:
        packet.counts[NETWORKS] = <uint32_t>networks
        packet.items[NETWORKS] = data + REPLY_FIXED_SIZE
    if fault.field > <uint32_t>Field.RespondingSiteID:
        packet.sections[RESPONDING_SITE] = data + REPLY_FIXED_SIZE + 16 * networks
        packet.presence |= HAS_REMOTE
    return -1


cdef int ipx_form_truncated(
    const uint8_t* data, size_t size, size_t total, uint32_t transport, Fault* fault
) noexcept nogil:
    """Return the truncated field of the IPX form; 0 without one, and in a datagram over IP."""
    cdef uint32_t count
    if transport == Transport.UDP or total < SMALLEST_IPX_REQUEST:
        return 0
    if size < IPX_NETWORKS_AT:
        return truncated(fault, Field.IPXNetworkCount, REQUEST_SIZE, 4, size)
    count = load_u32(data + REQUEST_SIZE)
    if count == 0 or count > MAX_NETWORKS or 4 * <size_t>count <= size - IPX_NETWORKS_AT:
        return 0
    return set_fault_of(
        fault, TRUNCATED, Field.IPXNetworkNumberArray, IPX_NETWORKS_AT, 4 * <uint64_t>count, size - IPX_NETWORKS_AT,
        count,
    )


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
    cdef uint32_t mask
    if violations & (MASK_NONZERO_ON_IP | MASK_COUNT_MISMATCH):
        mask = load_u32(data + CONNECTED_NETWORK_MASK_AT)
        return set_fault(fault, BAD_VALUE, Field.ConnectedNetworkMask, CONNECTED_NETWORK_MASK_AT, 0, mask)
    return set_fault(fault, BAD_SIZE, Field.DirectoryServiceServerSize, described, described, size)
