"""The kernel of MS-MQSD: one reader and one writer for each packet, compiled into every module that needs them.

[MS-MQSD] 2.2.1-2.2.3, little-endian, byte offsets:

    TopologyPacketHeader    0 Version u8 | 1 Type u8 | 2 Reserved u16
    TopologyClientRequest   4 EnterpriseID | 20 RequestID | 36 SiteID
                            IPX only: 52 IPXNetworkCount n u32 | 56 IPXNetworkNumberArray n * u32
    TopologyServerReply     4 CorrelationID | 20 ConnectedNetworkCount n u32 | 24 ConnectedNetworkMask u32
                            28 DirectoryServiceServerSize S u32 | 32 ConnectedNetworkArray n * 16
                            S != 0: RespondingSiteID 16 | DirectoryServiceServerArray S
"""

from libc.stddef cimport size_t
from libc.stdint cimport int32_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

from msmqwire.columns._batch cimport DECODED
from msmqwire.columns._convert cimport TextSpan
from msmqwire.mqsd._generated cimport *
from msmqwire.wire.cursor cimport load_u32, store_u32
from msmqwire.wire._fault cimport BAD_COUNT, BAD_SIZE, BAD_VALUE, TRUNCATED, Fault, set_fault, set_fault_of
from msmqwire.wire.simd cimport wire_find_in_block, wire_lowest_bit, wire_popcount, wire_unlikely
from msmqwire.wire._transport cimport Transport


cdef enum:
    IPX_NETWORKS_AT = REQUEST_SIZE + 4  # after their count
    SMALLEST_IPX_REQUEST = IPX_NETWORKS_AT + 4
    FLAGS_SIZE = 4          # before a name
    CLOSING_SIZE = 2        # after it
    COMMA = 0x002C
    NO_FLAGS = 0x00300030   # the code units "0" "0", IP flag first
    FLAG_BITS = 0x00010001


# One packet; the first three members are as columns/_layout.pxd says
cdef struct Topology:
    uint32_t presence
    uint32_t violations
    const uint8_t* sections[SECTION_COUNT]
    uint8_t[CODE_COUNT] codes           # of the enumerations of columns
    uint32_t[LIST_COUNT] counts         # of items; of servers, those that were written up to this packet
    const uint8_t* items[LIST_COUNT]    # where the items of each list begin
    TextSpan[PART_COUNT] parts
    uint32_t servers_size               # DirectoryServiceServerSize
    size_t described                    # bytes that the packet's own lengths account for, before the trailing ones


# The fields of a packet of the other type
cdef uint8_t[64] BLANK


cdef inline void clear_topology(Topology* packet) noexcept nogil:
    """A packet without any field, which stands for a payload that is null or at fault."""
    cdef size_t i
    packet.presence = 0
    packet.violations = 0
    for i in range(<size_t>SECTION_COUNT):
        packet.sections[i] = BLANK
    packet.codes[TYPE] = NO_TYPE
    packet.counts[IPX_NETWORKS] = 0
    packet.counts[NETWORKS] = 0
    packet.servers_size = 0
    packet.parts[TRAILING].offset = 0
    packet.parts[TRAILING].length = 0


cdef inline uint32_t note_trailing(Topology* packet, size_t size) noexcept nogil:
    """Note the bytes after the last field. Return their presence bit, 0 without such bytes."""
    packet.parts[TRAILING].offset = 0
    packet.parts[TRAILING].length = 0
    if size == packet.described:
        return 0
    packet.parts[TRAILING].offset = <uint32_t>packet.described
    packet.parts[TRAILING].length = <uint32_t>(size - packet.described)
    return HAS_TRAILING


# Where the entries of a server array are written; all three are NULL when they are not requested
cdef struct ServerColumns:
    TextSpan* names
    uint8_t* ip
    uint8_t* ipx


# Cold paths: they find which field, in wire order, is at fault
cdef int header_fault(const uint8_t* data, size_t size, Fault* fault) noexcept nogil
cdef int request_truncated(size_t size, Fault* fault) noexcept nogil
cdef int reply_truncated(const uint8_t* data, size_t size, Fault* fault) noexcept nogil
cdef int keep_complete_fields(
    const uint8_t* data, size_t size, size_t lost, uint32_t transport, int status, Topology* packet, Fault* fault,
    uint8_t* fields,
) noexcept nogil
cdef int server_array_fault(const uint8_t* array, size_t size, size_t at, Fault* fault) noexcept nogil
cdef int violation_fault(
    uint32_t violations, const uint8_t* data, size_t size, size_t described, Fault* fault
) noexcept nogil


cdef inline int read_request(
    const uint8_t* data, size_t size, uint32_t transport, Topology* packet, Fault* fault
) noexcept nogil:
    """A TopologyClientRequest whose header has been read: [MS-MQSD] 2.2.2, 3.2.5.1."""
    cdef uint32_t count
    if wire_unlikely(size < REQUEST_SIZE):
        return request_truncated(size, fault)
    packet.sections[REQUEST_FIELDS] = data
    packet.sections[REPLY_FIELDS] = BLANK
    packet.sections[RESPONDING_SITE] = BLANK
    packet.presence = DECODED | HAS_REQUEST
    packet.codes[TYPE] = REQUEST
    packet.counts[IPX_NETWORKS] = 0
    packet.counts[NETWORKS] = 0
    packet.servers_size = 0
    packet.described = REQUEST_SIZE
    if wire_unlikely(size >= SMALLEST_IPX_REQUEST):
        if transport == Transport.UDP:
            packet.violations |= IPX_FIELDS_ON_IP
            packet.presence |= note_trailing(packet, size)
            return 0
        count = load_u32(data + REQUEST_SIZE)
        if count - 1 >= <uint32_t>MAX_NETWORKS:
            return set_fault(
                fault, BAD_COUNT, Field.IPXNetworkCount, REQUEST_SIZE, MAX_NETWORKS if count else 1, count
            )
        if 4 * count > size - IPX_NETWORKS_AT:
            return set_fault_of(
                fault, TRUNCATED, Field.IPXNetworkNumberArray, IPX_NETWORKS_AT, 4 * count, size - IPX_NETWORKS_AT,
                count,
            )
        packet.counts[IPX_NETWORKS] = count
        packet.items[IPX_NETWORKS] = data + IPX_NETWORKS_AT
        packet.presence |= HAS_IPX
        packet.described = IPX_NETWORKS_AT + 4 * count
    packet.presence |= note_trailing(packet, size)
    return 0


cdef inline bint is_plain_request(const uint8_t* data, size_t size) noexcept nogil:
    """Return True if this is a request in the IP form, nothing after it, whose Version and Reserved are 0."""
    return size == REQUEST_SIZE and load_u32(data) == REQUEST << 8


cdef inline int read_reply(
    const uint8_t* data, size_t size, uint32_t transport, Topology* packet, Fault* fault
) noexcept nogil:
    """A TopologyServerReply up to its server array, whose header has been read: [MS-MQSD] 2.2.3."""
    cdef uint32_t count
    cdef uint32_t mask
    cdef size_t described
    if wire_unlikely(size < REPLY_FIXED_SIZE):
        return reply_truncated(data, size, fault)
    count = load_u32(data + CONNECTED_NETWORK_COUNT_AT)
    mask = load_u32(data + CONNECTED_NETWORK_MASK_AT)
    packet.servers_size = load_u32(data + DIRECTORY_SERVICE_SERVER_SIZE_AT)
    described = <size_t>REPLY_FIXED_SIZE + 16 * <size_t>count + (16 if packet.servers_size else 0) + packet.servers_size
    # An empty array has size 0; the smallest other has 8 bytes, and code units have two
    if wire_unlikely(
        count - 1 >= <uint32_t>MAX_NETWORKS
        or (packet.servers_size & 1)
        or packet.servers_size - 1 < <uint32_t>(SMALLEST_SERVER_ARRAY - 1)
        or described > size
    ):
        return reply_truncated(data, size, fault)
    if wire_unlikely(mask != 0 or transport == Transport.IPX):
        if transport == Transport.UDP:
            packet.violations |= MASK_NONZERO_ON_IP
        elif wire_popcount(mask) != count:
            packet.violations |= MASK_COUNT_MISMATCH
    if wire_unlikely(described != size):
        packet.violations |= TRAILING_BYTES
    packet.sections[REQUEST_FIELDS] = BLANK
    packet.sections[REPLY_FIELDS] = data
    packet.codes[TYPE] = REPLY
    packet.counts[IPX_NETWORKS] = 0
    packet.counts[NETWORKS] = count
    packet.items[NETWORKS] = data + REPLY_FIXED_SIZE
    packet.described = described
    packet.presence = DECODED | HAS_REPLY | note_trailing(packet, size)
    if packet.servers_size:
        packet.sections[RESPONDING_SITE] = data + REPLY_FIXED_SIZE + 16 * <size_t>count
        packet.presence |= HAS_REMOTE
    else:
        packet.sections[RESPONDING_SITE] = BLANK
    packet.items[SERVERS] = data + REPLY_FIXED_SIZE + 16 * <size_t>count + 16
    return 0


cdef inline int read_servers(
    const uint8_t* array, size_t size, size_t at, const ServerColumns* columns, size_t* entry, Fault* fault
) noexcept nogil:
    """The entries of a DirectoryServiceServerArray at byte ``at`` of its payload: [MS-MQSD] 2.2.3.

    An entry is two flags and a name, closed by U+002C, the last by U+0000. Up to 64 code units are searched for these
    two at a time, sixteen by sixteen; the last sixteen end with the array and so may begin before it, where a
    reply always has at least 64 bytes. Entries are written from ``entry[0]`` on, which is moved only when all are good;
    an array that is not valid goes to ``server_array_fault``.
    """
    cdef ServerColumns out = columns[0]  # a local copy, so that no store to a column can be thought to change it
    cdef const uint8_t* data = array - at
    cdef size_t rest = size >> 1
    cdef uint32_t block = <uint32_t>at
    cdef size_t name = at + FLAGS_SIZE  # of the entry, in the payload
    cdef uint32_t end
    cdef int32_t length
    cdef size_t here = entry[0]
    cdef uint64_t closings
    cdef uint64_t nulls
    cdef uint32_t count
    cdef uint32_t flags
    cdef uint32_t all_flags = 0     # together, as a branch for each entry would cost more
    while True:
        count = <uint32_t>min(rest, <size_t>64)
        closings = wire_find_in_block(data + block, count, COMMA, &nulls)
        # The last code unit is U+0000, and no other is
        if wire_unlikely(nulls != (<uint64_t>1 << (count - 1) if rest <= 64 else 0)):
            return server_array_fault(array, size, at, fault)
        closings |= nulls
        while closings:
            end = block + 2 * wire_lowest_bit(closings)
            closings &= closings - 1
            length = <int32_t>(end - <uint32_t>name)
            if wire_unlikely(length < 2):
                return server_array_fault(array, size, at, fault)
            flags = load_u32(data + name - FLAGS_SIZE) ^ NO_FLAGS
            all_flags |= flags
            if out.names != NULL:
                out.names[here].offset = <uint32_t>name
                out.names[here].length = <uint32_t>length
                out.ip[here] = <uint8_t>flags
                out.ipx[here] = <uint8_t>(flags >> 16)
            here += 1
            name = <size_t>end + CLOSING_SIZE + FLAGS_SIZE
        if rest <= 64:
            break
        block += 128
        rest -= 64
    if wire_unlikely(all_flags & ~<uint32_t>FLAG_BITS):
        return server_array_fault(array, size, at, fault)
    entry[0] = here
    return 0


cdef inline int read_topology(
    const uint8_t* data, size_t size, uint32_t transport, bint strict, const ServerColumns* columns, size_t* entry,
    Topology* packet, Fault* fault,
) noexcept nogil:
    """One packet of either type, its servers written to ``columns`` from ``entry`` on. 0, or -1 with ``fault`` set."""
    cdef uint32_t header
    cdef uint32_t packet_type
    cdef size_t first_entry = entry[0]
    if wire_unlikely(size < HEADER_SIZE):
        return header_fault(data, size, fault)
    header = load_u32(data)
    packet_type = header >> 8 & 0xFF
    packet.violations = 0
    packet.sections[HEADER] = data
    if wire_unlikely(header & ~<uint32_t>0xFF00):
        packet.violations = (VERSION_NONZERO if header & 0xFF else 0) | (RESERVED_NONZERO if header >> 16 else 0)
    if packet_type == REQUEST:
        if read_request(data, size, transport, packet, fault) != 0:
            return -1
    elif packet_type == REPLY:
        if read_reply(data, size, transport, packet, fault) != 0:
            return -1
        if packet.servers_size and read_servers(
            packet.items[SERVERS], packet.servers_size, <size_t>(packet.items[SERVERS] - data), columns, entry, fault
        ) != 0:
            return -1
    else:
        return header_fault(data, size, fault)
    if wire_unlikely(strict and packet.violations & DISCARDABLE):
        entry[0] = first_entry
        return violation_fault(packet.violations, data, size, packet.described, fault)
    return 0


cdef inline bint read_plain_reply(
    const uint8_t* data, size_t size, uint32_t transport, const ServerColumns* columns, size_t* entry,
    Topology* packet, Fault* fault,
) noexcept nogil:
    """Read a reply from another site without any violation or mask; False, with nothing written, for all else."""
    if (
        size < REPLY_FIXED_SIZE or load_u32(data) != REPLY << 8 or load_u32(data + CONNECTED_NETWORK_MASK_AT) != 0
        or load_u32(data + DIRECTORY_SERVICE_SERVER_SIZE_AT) == 0 or transport == Transport.IPX
    ):
        return False
    packet.violations = 0
    return (
        read_reply(data, size, transport, packet, fault) == 0
        and packet.presence & HAS_REMOTE
        and packet.violations == 0
        and read_servers(
            packet.items[SERVERS], packet.servers_size, <size_t>(packet.items[SERVERS] - data), columns, entry, fault
        ) == 0
    )


cdef inline void copy_networks(uint8_t* target, const Topology* packet, size_t size) noexcept nogil:
    """The ConnectedNetworkArray of a packet of ``size`` bytes to a column, which has a place for every 16 of them.

    Up to four are copied as four where that stays in packet and column.
    """
    if packet.counts[NETWORKS] <= 4 and size >= REPLY_FIXED_SIZE + 64:
        memcpy(target, packet.items[NETWORKS], 64)
    else:
        memcpy(target, packet.items[NETWORKS], 16 * <size_t>packet.counts[NETWORKS])


cdef inline void write_header(uint8_t* target, PacketType type) noexcept nogil:
    target[0] = 0  # Version
    target[1] = <uint8_t>type
    target[2] = 0  # Reserved
    target[3] = 0


cdef inline size_t write_request(
    uint8_t* target, const uint8_t* enterprise_id, const uint8_t* request_id, const uint8_t* site_id,
    const uint8_t* ipx_networks, uint32_t network_count,
) noexcept nogil:
    """A TopologyClientRequest; without networks in the IP form. Returns its size."""
    write_header(target, REQUEST)
    memcpy(target + ENTERPRISE_ID_AT, enterprise_id, 16)
    memcpy(target + REQUEST_ID_AT, request_id, 16)
    memcpy(target + SITE_ID_AT, site_id, 16)
    if network_count == 0:
        return REQUEST_SIZE
    memcpy(target + REQUEST_SIZE, &network_count, 4)
    memcpy(target + IPX_NETWORKS_AT, ipx_networks, 4 * <size_t>network_count)
    return IPX_NETWORKS_AT + 4 * <size_t>network_count


cdef inline void write_reply(
    uint8_t* target, const uint8_t* correlation_id, uint32_t network_count, uint32_t mask, uint32_t servers_size
) noexcept nogil:
    """A TopologyServerReply up to its ConnectedNetworkArray."""
    write_header(target, REPLY)
    memcpy(target + CORRELATION_ID_AT, correlation_id, 16)
    store_u32(target + CONNECTED_NETWORK_COUNT_AT, network_count)
    store_u32(target + CONNECTED_NETWORK_MASK_AT, mask)
    store_u32(target + DIRECTORY_SERVICE_SERVER_SIZE_AT, servers_size)


cdef inline void write_flags(uint8_t* target, uint8_t ip, uint8_t ipx) noexcept nogil:
    """The two flags, 0 or 1, with which an entry of a server array begins."""
    store_u32(target, NO_FLAGS | ip | <uint32_t>ipx << 16)
