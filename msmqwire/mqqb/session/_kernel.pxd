"""The reader and the writer of session packets: [MS-MQQB] 2.2, little-endian, byte offsets:

    BaseHeader 16 | InternalHeader 16 Reserved u16 | 18 Flags u16
    EstablishConnection     20 ClientGuid | 36 ServerGuid | 52 TimeStamp u32 | 56 OperatingSystem u16 | 60 Padding 512
    ConnectionParameters    20 RecoverableAckTimeout u32 | 24 AckTimeout u32 | 28 Reserved u16 | 30 WindowSize u16
    SessionAck              20 SessionHeader
    Ping                    0 Flags u16 | 2 Signature u16 0x5548 | 4 Cookie u32 | 8 QMGuid
"""

from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint32_t

from msmqwire.columns._batch cimport DECODED
from msmqwire.mqqb._kernel cimport (
    ACK_TIMEOUT_AT, BASE_HEADER_FLAGS_AT, CONNECTION_PARAMETERS, CONNECTION_PARAMETERS_RESERVED_AT, ESTABLISH,
    ESTABLISH_CONNECTION, ESTABLISH_CONNECTION_RESERVED_AT, FLAG_DEBUG, FLAG_TRACING, FOR_EVER, HAS_KIND,
    HAS_TRAILING_BYTES, HAS_WINDOW, INTERNAL, INTERNAL_HEADER_FLAGS_AT, IS_ESTABLISH, IS_PACKET, IS_PARAMETERS, IS_PING,
    IS_SESSION_ACK, KIND, LARGEST_ACK_TIMEOUT, LEAST_ACK_TIMEOUT, LEAST_RECOVERABLE_ACK_TIMEOUT, OPERATING_SYSTEM_AT,
    PARAMETERS, PING, PINGED, PING_SIGNATURE, PING_SIGNATURE_AT, REFUSED, RESERVED_BASE, RESERVED_INTERNAL,
    RESERVED_SYSTEM, RESIDENT_SYSTEM, SESSION, SESSION_ACK, SESSION_HEADER_WINDOW_SIZE_AT, SIGNATURE_AT,
    TIME_TO_REACH_QUEUE_AT, WINDOW, WINDOW_SIZE_AT, Field, Packet, SessionKind, clear_packet, first_extra_byte,
    lacks_end, read_base_header, set_trailing,
)
from msmqwire.mqqb.framing cimport (
    BASE_HEADER_SIZE, FLAG_INTERNAL, FLAG_SESSION, PACKET_SIGNATURE, SESSION_HEADER_SIZE
)
from msmqwire.mqqb.session._generated cimport *
from msmqwire.wire.cursor cimport load_u16, load_u32
from msmqwire.wire._fault cimport BAD_FLAG, BAD_SIGNATURE, BAD_SIZE, BAD_TYPE, TRUNCATED, Fault, set_fault
from msmqwire.wire._transport cimport Transport


# InternalHeader.Flags: PT in four bits, then CS
cdef enum InternalPacket:
    PACKET_SESSION_ACK = 1
    PACKET_ESTABLISH = 2
    PACKET_PARAMETERS = 3
    PACKET_TYPE_BITS = 0xF
    PACKET_REFUSED = 1 << 4

cdef enum:
    INTERNAL_HEADER_SIZE = 4
    INTERNAL_FIXED_SIZE = 20       # with the BaseHeader
    INTERNAL_FLAGS_AT = BASE_HEADER_SIZE + INTERNAL_HEADER_FLAGS_AT
    ESTABLISH_SIZE = 552
    PARAMETERS_SIZE = 12
    PING_SIZE = 24
    PING_REFUSED = 1 << 1          # Flags.RF
    LARGEST_SESSION = 576          # an EstablishConnection packet has 572


cdef inline void note_kind(Packet* packet, SessionKind kind, uint32_t refused) noexcept nogil:
    packet.codes[KIND] = kind
    packet.codes[REFUSED] = refused != 0
    packet.presence |= HAS_KIND


cdef inline bint is_ping(const uint8_t* data, size_t size, uint32_t transport) noexcept nogil:
    """Return True for a ping: by the transport, or by the signature of a packet where the transport is unknown."""
    if transport == Transport.UNKNOWN:
        return size < 8 or load_u32(data + SIGNATURE_AT) != PACKET_SIGNATURE
    return transport == Transport.UDP


cdef inline int read_ping(
    const uint8_t* data, size_t size, size_t lost, bint strict, Packet* packet, Fault* fault
) noexcept nogil:
    """A Ping packet: [MS-MQQB] 2.2.7."""
    if size < PING_SIZE and (not lost or size < 4 or load_u16(data + PING_SIGNATURE_AT) == PING_SIGNATURE):
        if size:
            note_kind(packet, PING, data[0] & PING_REFUSED)
        return set_fault(fault, TRUNCATED, Field.Ping, 0, PING_SIZE, size)
    if load_u16(data + PING_SIGNATURE_AT) != PING_SIGNATURE:
        return set_fault(
            fault, BAD_SIGNATURE, Field.Ping_Signature, PING_SIGNATURE_AT, PING_SIGNATURE,
            load_u16(data + PING_SIGNATURE_AT),
        )
    packet.extent = PING_SIZE
    packet.end = PING_SIZE
    if size > PING_SIZE:
        packet.violations |= TRAILING_BYTES
        packet.presence |= HAS_TRAILING_BYTES
        set_trailing(packet, PING_SIZE, size)
        if strict:
            return set_fault(fault, BAD_SIZE, Field.Ping, PING_SIZE, PING_SIZE, size)
    note_kind(packet, PING, data[0] & PING_REFUSED)
    packet.sections[PINGED] = data
    packet.presence |= DECODED | IS_PING
    return 0


cdef inline int read_establish(const uint8_t* data, size_t left, Packet* packet, Fault* fault) noexcept nogil:
    """EstablishConnectionHeader: [MS-MQQB] 2.2.3.1."""
    if left < ESTABLISH_SIZE:
        return set_fault(
            fault, TRUNCATED, Field.EstablishConnectionHeader, INTERNAL_FIXED_SIZE, ESTABLISH_SIZE, left
        )
    packet.sections[ESTABLISH] = data
    packet.presence |= IS_ESTABLISH
    packet.end = INTERNAL_FIXED_SIZE + ESTABLISH_SIZE
    if data[OPERATING_SYSTEM_AT] != RESIDENT_SYSTEM:
        packet.violations |= OPERATING_SYSTEM
    if load_u16(data + OPERATING_SYSTEM_AT) & RESERVED_SYSTEM:
        packet.violations |= RESERVED_FLAGS
    if load_u16(data + ESTABLISH_CONNECTION_RESERVED_AT):
        packet.violations |= RESERVED_NONZERO
    return 0


cdef inline int read_parameters(const uint8_t* data, size_t left, Packet* packet, Fault* fault) noexcept nogil:
    """ConnectionParametersHeader: [MS-MQQB] 2.2.2.1."""
    cdef uint32_t recoverable
    cdef uint32_t plain
    if left < PARAMETERS_SIZE:
        return set_fault(
            fault, TRUNCATED, Field.ConnectionParametersHeader, INTERNAL_FIXED_SIZE, PARAMETERS_SIZE, left
        )
    packet.sections[PARAMETERS] = data
    packet.sections[WINDOW] = data + WINDOW_SIZE_AT
    packet.presence |= IS_PARAMETERS | HAS_WINDOW
    packet.end = INTERNAL_FIXED_SIZE + PARAMETERS_SIZE
    recoverable = load_u32(data)
    plain = load_u32(data + ACK_TIMEOUT_AT)
    if not (
        <uint32_t>LEAST_RECOVERABLE_ACK_TIMEOUT <= recoverable <= <uint32_t>LARGEST_ACK_TIMEOUT
        and <uint32_t>LEAST_ACK_TIMEOUT <= plain <= <uint32_t>LARGEST_ACK_TIMEOUT
    ):
        packet.violations |= TIMEOUT_RANGE
    if load_u16(data + CONNECTION_PARAMETERS_RESERVED_AT):
        packet.violations |= RESERVED_NONZERO
    return 0


cdef inline int read_session_ack(
    const uint8_t* data, size_t left, uint32_t flags, Packet* packet, Fault* fault
) noexcept nogil:
    """SessionAck, whose SessionHeader PacketSize counts: [MS-MQQB] 2.2.6."""
    if not flags & FLAG_SESSION:
        return set_fault(fault, BAD_FLAG, Field.BaseHeader_Flags, BASE_HEADER_FLAGS_AT, 0, flags)
    if left < SESSION_HEADER_SIZE:
        return set_fault(fault, TRUNCATED, Field.SessionHeader, INTERNAL_FIXED_SIZE, SESSION_HEADER_SIZE, left)
    packet.sections[SESSION] = data
    packet.sections[WINDOW] = data + SESSION_HEADER_WINDOW_SIZE_AT
    packet.presence |= IS_SESSION_ACK | HAS_WINDOW
    packet.end = INTERNAL_FIXED_SIZE + SESSION_HEADER_SIZE
    if load_u16(data + SESSION_HEADER_WINDOW_SIZE_AT) == 0:
        packet.violations |= WINDOW_SIZE
    return 0


cdef inline int read_internal(
    const uint8_t* data, size_t size, size_t lost, bint strict, Packet* packet, Fault* fault
) noexcept nogil:
    """A packet with InternalHeader: [MS-MQQB] 2.2.1."""
    cdef size_t packet_size
    cdef size_t left
    cdef size_t extra
    cdef uint32_t base_flags
    cdef uint32_t flags
    cdef uint32_t packet_type
    cdef int status
    if read_base_header(data, size, lost, packet, fault) != 0:
        return -1
    packet_size = packet.size
    base_flags = load_u16(data + BASE_HEADER_FLAGS_AT)
    if not base_flags & FLAG_INTERNAL:
        return set_fault(fault, BAD_TYPE, Field.BaseHeader_Flags, BASE_HEADER_FLAGS_AT, 0, base_flags)
    left = min(size, packet_size) - BASE_HEADER_SIZE
    if left < INTERNAL_HEADER_SIZE:
        return set_fault(fault, TRUNCATED, Field.InternalHeader, BASE_HEADER_SIZE, INTERNAL_HEADER_SIZE, left)
    left -= INTERNAL_HEADER_SIZE
    packet.sections[INTERNAL] = data + BASE_HEADER_SIZE
    flags = load_u16(packet.sections[INTERNAL] + INTERNAL_HEADER_FLAGS_AT)
    packet_type = flags & PACKET_TYPE_BITS
    packet.presence |= IS_PACKET
    if packet_type == PACKET_ESTABLISH:
        note_kind(packet, ESTABLISH_CONNECTION, flags & PACKET_REFUSED)
        status = read_establish(data + INTERNAL_FIXED_SIZE, left, packet, fault)
    elif packet_type == PACKET_PARAMETERS:
        note_kind(packet, CONNECTION_PARAMETERS, flags & PACKET_REFUSED)
        status = read_parameters(data + INTERNAL_FIXED_SIZE, left, packet, fault)
    elif packet_type == PACKET_SESSION_ACK:
        note_kind(packet, SESSION_ACK, flags & PACKET_REFUSED)
        status = read_session_ack(data + INTERNAL_FIXED_SIZE, left, base_flags, packet, fault)
    else:
        return set_fault(fault, BAD_TYPE, Field.InternalHeader_Flags, INTERNAL_FLAGS_AT, 0, flags)
    if status != 0:
        return -1
    if packet.extent > size:
        return lacks_end(packet, size, fault)
    if packet_type == PACKET_SESSION_ACK and flags & PACKET_REFUSED:
        packet.violations |= CONNECTION_REFUSED
    if load_u16(packet.sections[INTERNAL]):
        packet.violations |= RESERVED_NONZERO
    if base_flags & (FLAG_DEBUG | FLAG_TRACING) or (packet_type != PACKET_SESSION_ACK and base_flags & FLAG_SESSION):
        packet.violations |= MESSAGE_FLAGS
    if base_flags & RESERVED_BASE or flags & RESERVED_INTERNAL:
        packet.violations |= RESERVED_FLAGS
    if load_u32(data + TIME_TO_REACH_QUEUE_AT) != <uint32_t>FOR_EVER:
        packet.violations |= TIME_TO_REACH_QUEUE
    if packet_size - packet.end > 3 or packet.extent != size:
        packet.violations |= TRAILING_BYTES
        packet.presence |= HAS_TRAILING_BYTES
        set_trailing(packet, packet_size, size)
        if strict:
            extra = first_extra_byte(packet, packet_size)
            return set_fault(fault, BAD_SIZE, Field.PacketSize, extra, extra, size)
    packet.presence |= DECODED
    return 0


cdef inline int read_captured_session(
    const uint8_t* data, size_t size, size_t lost, uint32_t transport, bint strict, Packet* packet, Fault* fault
) noexcept nogil:
    """Read a session packet of which a capture has all but the last ``lost`` bytes."""
    clear_packet(packet)
    if is_ping(data, size, transport):
        return read_ping(data, size, lost, strict, packet, fault)
    return read_internal(data, size, lost, strict, packet, fault)


cdef inline int read_session(
    const uint8_t* data, size_t size, uint32_t transport, bint strict, Packet* packet, Fault* fault
) noexcept nogil:
    """One packet of a session, or a ping. 0, or -1 with ``fault`` set."""
    return read_captured_session(data, size, 0, transport, strict, packet, fault)


cdef size_t write_session(const Packet* packet, uint8_t* target) noexcept nogil
