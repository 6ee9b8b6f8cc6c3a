"""Declarations of all modules of MS-MQQB: fields, violations, presence, and the record of a packet."""

from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint16_t, uint32_t
from libc.string cimport memcpy, memset

from msmqwire.columns._convert cimport TextSpan
from msmqwire.mqqb._generated cimport *
from msmqwire.mqqb.framing cimport (
    BASE_HEADER_SIZE, LARGEST_PACKET, PACKET_SIGNATURE, SESSION_HEADER_SIZE, VERSION_NUMBER, has_session_header
)
from msmqwire.wire.cursor cimport load_u32
from msmqwire.wire._fault cimport (
    BAD_SIGNATURE, BAD_SIZE, BAD_VERSION, INCOMPLETE, TOO_LARGE, TRUNCATED, Fault, set_fault, set_fault_of
)
from msmqwire.wire._format_name cimport FormatName
from msmqwire.wire.simd cimport wire_unlikely


# The fields of each MQFAddressHeader stand together in this order
cdef enum AddressField:
    ADDRESS_HEADER
    ADDRESS_HEADER_SIZE
    ADDRESS_HEADER_ID
    ADDRESS_FORMAT_NAME_LIST
    ADDRESS_FIELD_COUNT

cdef enum:
    USER_HEADER_SIZE = 48
    TRANSACTION_HEADER_SIZE = 20
    SECURITY_HEADER_SIZE = 16
    PROPERTIES_HEADER_SIZE = 56
    DEBUG_HEADER_SIZE = 4
    SRMP_ENVELOPE_HEADER_SIZE = 8
    COMPOUND_HEADER_SIZE = 16
    SOAP_SECTION_SIZE = 8
    ADDRESS_HEADER_FIXED_SIZE = 12
    ACK_BODY_SIZE = 36
    BLANK_SIZE = 64

# BaseHeader.Flags above IN and SH, which framing.pxd has
cdef enum:
    FLAG_DEBUG = 1 << 5
    FLAG_TRACING = 1 << 8

cdef enum UserFlag:
    USER_HOPS = 0x1F
    USER_DELIVERY_SHIFT = 5
    USER_DESTINATION_SHIFT = 10
    USER_ADMIN_SHIFT = 13
    USER_RESPONSE_SHIFT = 16
    USER_REPLY_QUEUES = 7 << 13 | 7 << 16
    USER_SECURITY = 1 << 19
    USER_TRANSACTION = 1 << 20
    USER_PROPERTIES = 1 << 21
    USER_CONNECTOR_TYPE = 1 << 22
    USER_MULTI_QUEUE = 1 << 23
    USER_SOAP = 1 << 28
    USER_HTTP = 1 << 25

cdef enum:
    COMPOUND_HEADER_ID = 0x01F4

cdef enum SoapSectionId:
    SOAP_HEADER_ID = 0x0320
    SOAP_BODY_ID = 0x0384

cdef enum:
    SIGNATURE_HEADER_ID = 0x015E


# A packet that was read, or one to be written; its first members are as columns/_layout.pxd says
cdef struct Packet:
    uint32_t presence
    uint32_t violations
    const uint8_t* sections[SECTION_COUNT]
    uint8_t[CODE_COUNT] codes        # of the enumerations of columns
    uint16_t[NUMBER_COUNT] numbers
    size_t size                      # PacketSize
    size_t extent                    # bytes of the packet and of the SessionHeader after it
    size_t end                       # of its last header, without padding
    size_t multi_queue_at            # where the MultiQueueFormatHeader begins
    TextSpan[PART_COUNT] parts
    FormatName[QUEUE_COUNT] queues
    uint32_t[QUEUE_COUNT] list_counts  # elements of the lists in a MultiQueueFormatHeader


# A packet to be written: sections of its own
cdef struct Draft:
    Packet packet
    uint8_t[SECTION_COUNT][BLANK_SIZE] sections


# The section that a packet lacks
cdef uint8_t[BLANK_SIZE] BLANK


cdef inline void blank_sections(Packet* packet) noexcept nogil:
    """Clear a packet whose memory is zeros."""
    cdef size_t i
    for i in range(<size_t>SECTION_COUNT):
        packet.sections[i] = BLANK


cdef inline void clear_packet(Packet* packet) noexcept nogil:
    """Clear a packet field by field: GCC clears a large structure with a string instruction, which is slow."""
    cdef size_t i
    blank_sections(packet)
    packet.presence = 0
    packet.violations = 0
    memset(packet.codes, 0xFF, sizeof(packet.codes))
    packet.codes[REFUSED] = False
    memset(packet.numbers, 0xFF, sizeof(packet.numbers))
    packet.size = 0
    packet.extent = 0
    packet.end = 0
    packet.multi_queue_at = 0
    memset(packet.parts, 0, LABEL * sizeof(TextSpan))
    memset(&packet.parts[LABEL], 0, (PART_COUNT - LABEL) * sizeof(TextSpan))
    for i in range(<size_t>QUEUE_COUNT):
        memset(&packet.queues[i], 0, sizeof(FormatName))
    memset(packet.list_counts, 0, sizeof(packet.list_counts))


cdef inline void own_sections(Draft* draft) noexcept nogil:
    """Let the packet of a draft have the sections of the draft."""
    cdef size_t i
    for i in range(<size_t>SECTION_COUNT):
        draft.packet.sections[i] = draft.sections[i]


cdef inline void clear_draft(Draft* draft) noexcept nogil:
    memset(draft, 0, sizeof(draft[0]))
    own_sections(draft)


cdef inline void copy_draft(Draft* draft, const Draft* other) noexcept nogil:
    memcpy(draft, other, sizeof(draft[0]))
    own_sections(draft)


cdef inline size_t padded(size_t size) noexcept nogil:
    return (size + 3) & ~<size_t>3


cdef inline size_t skip_padding(size_t at, size_t size, Packet* packet) noexcept nogil:
    """Where the next header begins, at most at ``size``, where padding is missing."""
    at = padded(at)
    if wire_unlikely(at > size):
        packet.violations |= PADDING
        return size
    return at


cdef inline bint is_other_header(const uint8_t* data, size_t size) noexcept nogil:
    """Return True if the bytes of a truncated BaseHeader show that it is not one."""
    return size > 0 and data[0] != VERSION_NUMBER or size >= 8 and load_u32(data + SIGNATURE_AT) != PACKET_SIGNATURE


cdef inline int lacks_end(const Packet* packet, size_t size, Fault* fault) noexcept nogil:
    """The fault of a packet whose first ``size`` bytes hold all headers that PacketSize counts, and not all of it."""
    if packet.extent > packet.size:
        return set_fault(
            fault, INCOMPLETE, Field.SessionHeader, packet.size, SESSION_HEADER_SIZE,
            size - packet.size if size > packet.size else 0,
        )
    return set_fault_of(fault, INCOMPLETE, Field.PacketSize, PACKET_SIZE_AT, packet.extent, size, packet.size)


cdef inline int read_base_header(
    const uint8_t* data, size_t size, size_t lost, Packet* packet, Fault* fault
) noexcept nogil:
    """The BaseHeader of a packet with ``size`` captured bytes and ``lost`` others after them: [MS-MQMQ] 2.2.19.1."""
    cdef uint32_t packet_size
    if wire_unlikely(size < BASE_HEADER_SIZE and not (lost and is_other_header(data, size))):
        return set_fault(fault, TRUNCATED, Field.BaseHeader, 0, BASE_HEADER_SIZE, size)
    if wire_unlikely(data[0] != VERSION_NUMBER):
        return set_fault(fault, BAD_VERSION, Field.VersionNumber, 0, VERSION_NUMBER, data[0])
    if wire_unlikely(load_u32(data + SIGNATURE_AT) != PACKET_SIGNATURE):
        return set_fault(
            fault, BAD_SIGNATURE, Field.Signature, SIGNATURE_AT, PACKET_SIGNATURE, load_u32(data + SIGNATURE_AT)
        )
    size += lost
    packet_size = load_u32(data + PACKET_SIZE_AT)
    if wire_unlikely(packet_size < BASE_HEADER_SIZE):
        return set_fault_of(
            fault, BAD_SIZE, Field.PacketSize, PACKET_SIZE_AT, BASE_HEADER_SIZE, packet_size, packet_size
        )
    if wire_unlikely(packet_size > LARGEST_PACKET):
        return set_fault(fault, TOO_LARGE, Field.PacketSize, PACKET_SIZE_AT, LARGEST_PACKET, packet_size)
    packet.size = packet_size
    packet.extent = packet_size + (SESSION_HEADER_SIZE if has_session_header(data) else 0)
    if wire_unlikely(packet.extent > size):
        if packet_size <= size:
            return set_fault(
                fault, TRUNCATED, Field.SessionHeader, packet_size, SESSION_HEADER_SIZE, size - packet_size
            )
        return set_fault_of(fault, TRUNCATED, Field.PacketSize, PACKET_SIZE_AT, packet.extent, size, packet_size)
    packet.sections[BASE] = data
    return 0


cdef inline size_t first_extra_byte(const Packet* packet, size_t packet_size) noexcept nogil:
    """Where the trailing bytes begin; up to three bytes may pad the last header."""
    return packet.end if packet_size - packet.end > 3 else packet.extent


cdef inline void set_trailing(Packet* packet, size_t packet_size, size_t size) noexcept nogil:
    """The trailing bytes up to the end of the packet; up to the end of the payload when it has more bytes than that."""
    cdef size_t extra = first_extra_byte(packet, packet_size)
    packet.parts[TRAILING].offset = <uint32_t>extra
    packet.parts[TRAILING].length = <uint32_t>((packet_size if packet.extent == size else size) - extra)
