"""Packets that lost bytes at their ends, because a capture lacks them: [MS-MQMQ] 2.2.20, [MS-MQQB] 2.2.

The reader of complete packets reads the headers that are there; what it read before its fault is whole. A header that
lacks bytes is copied, so that its columns can be loaded: columns/_layout.pyx tells which of them are whole.
"""

from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint16_t, uint32_t
from libc.string cimport memcpy, memset

from msmqwire.mqqb.framing cimport (
    BASE_HEADER_SIZE, FLAG_INTERNAL, FLAG_SESSION, PACKET_SIGNATURE, SESSION_HEADER_SIZE, VERSION_NUMBER,
)
from msmqwire.mqqb._kernel cimport (
    ADDRESS_FIELD_COUNT, ADDRESS_HEADER, ADDRESS_HEADER_SIZE, ADMIN_QUEUE, BASE, BASE_HEADER_FLAGS_AT, COMPOUND,
    CONNECTION_PARAMETERS, ESTABLISH, ESTABLISH_CONNECTION, HAS_ADMIN, HAS_COMPOUND, HAS_MESSAGE_CLASS, HAS_PROPERTIES,
    HAS_SECURITY, HAS_SENDER_ID_TYPE, HAS_SESSION, HAS_TRANSACTION, HAS_WINDOW, INTERNAL_HEADER_FLAGS_AT, IS_ESTABLISH,
    IS_PACKET, IS_PARAMETERS, IS_PING, IS_SESSION_ACK, KIND, MESSAGE_CLASS, MESSAGE_CLASS_AT, PADDING,
    PARAMETERS, PING, PINGED, PING_SIGNATURE_AT, PROPERTIES, QUEUE_COUNT, REFUSED, SECURITY, SENDER, SESSION,
    SESSION_ACK, SESSION_HEADER_WINDOW_SIZE_AT, SIGNATURE_AT, TRANSACTION, USER, WINDOW, WINDOW_SIZE_AT, Field, Packet,
    clear_packet, padded, read_base_header,
)
from msmqwire.mqqb.message._kernel cimport is_message_class, named, read_headers
from msmqwire.mqqb.session._kernel cimport (
    ESTABLISH_SIZE, INTERNAL_FIXED_SIZE, INTERNAL_HEADER_SIZE, PACKET_ESTABLISH, PACKET_PARAMETERS, PACKET_REFUSED,
    PACKET_SESSION_ACK, PACKET_TYPE_BITS, PARAMETERS_SIZE, PING_SIGNATURE, PING_SIZE, is_ping,
)
from msmqwire.wire.cursor cimport load_u16, load_u32
from msmqwire.wire._fault cimport (
    BAD_FLAG, BAD_SIGNATURE, BAD_SIZE, BAD_TYPE, BAD_VERSION, INCOMPLETE, TRUNCATED, Fault, is_lost, set_fault,
    set_fault_of,
)


cdef const uint8_t* copy_header(CutHeader* header, const uint8_t* data, size_t size) noexcept nogil:
    memset(header.data, 0, sizeof(header.data))
    header.size = min(size, sizeof(header.data))
    memcpy(header.data, data, header.size)
    return header.data


cdef bint read_base(
    const uint8_t* data, size_t size, size_t lost, Packet* packet, Fault* fault, CutHeader* header
) noexcept nogil:
    """The BaseHeader, or what there is of it: whether the next header can be read, or ``fault`` is set."""
    if size >= BASE_HEADER_SIZE:
        return read_base_header(data, size + lost, packet, fault) == 0
    if size and data[0] != VERSION_NUMBER:
        set_fault(fault, BAD_VERSION, Field.VersionNumber, 0, VERSION_NUMBER, data[0])
    elif size >= 8 and load_u32(data + SIGNATURE_AT) != PACKET_SIGNATURE:
        set_fault(fault, BAD_SIGNATURE, Field.Signature, SIGNATURE_AT, PACKET_SIGNATURE, load_u32(data + SIGNATURE_AT))
    else:
        set_fault(fault, INCOMPLETE, Field.BaseHeader, 0, BASE_HEADER_SIZE, size)
        packet.sections[BASE] = copy_header(header, data, size)
    return False


cdef void lack_end(const Packet* packet, size_t size, Fault* fault) noexcept nogil:
    """All headers of PacketSize are there, and not all of the packet with the SessionHeader after it."""
    if packet.extent > packet.size:
        set_fault(
            fault, INCOMPLETE, Field.SessionHeader, packet.size, SESSION_HEADER_SIZE,
            size - packet.size if size > packet.size else 0,
        )
    else:
        set_fault_of(fault, INCOMPLETE, Field.PacketSize, 8, packet.extent, size, packet.size)


cdef void keep_cut_header(const uint8_t* data, Packet* packet, const Fault* fault, CutHeader* header) noexcept nogil:
    """The fields of the header that the fault names, if it is one with a section."""
    cdef size_t section
    cdef uint32_t presence = 0
    if fault.field == <uint32_t>Field.UserHeader:
        section = USER
    elif fault.field == <uint32_t>Field.TransactionHeader:
        section, presence = TRANSACTION, HAS_TRANSACTION
    elif fault.field == <uint32_t>Field.SecurityHeader:
        section, presence = SECURITY, HAS_SECURITY
    elif fault.field == <uint32_t>Field.MessagePropertiesHeader:
        section, presence = PROPERTIES, HAS_PROPERTIES
    elif fault.field == <uint32_t>Field.CompoundMessageHeader:
        section, presence = COMPOUND, HAS_COMPOUND
    elif fault.field == <uint32_t>Field.SessionHeader:
        section, presence = SESSION, HAS_SESSION
    else:
        return
    packet.sections[section] = copy_header(header, data + fault.offset, <size_t>fault.available)
    packet.presence |= presence


cdef void derive_whole(Packet* packet, const CutHeader* header) noexcept nogil:
    """Values that the reader derives from a header only after the fields that follow it."""
    cdef const uint8_t* section = packet.sections[SECURITY]
    cdef uint32_t message_class
    if packet.presence & HAS_SECURITY and (section != header.data or header.size >= 2):
        packet.codes[SENDER] = section[0] & 0xF
        packet.presence |= HAS_SENDER_ID_TYPE if section[0] & 0xF <= 2 else 0
    section = packet.sections[PROPERTIES]
    if packet.presence & HAS_PROPERTIES and (section != header.data or header.size >= 4):
        message_class = load_u16(section + MESSAGE_CLASS_AT)
        packet.numbers[MESSAGE_CLASS] = <uint16_t>message_class
        packet.presence |= HAS_MESSAGE_CLASS if is_message_class(message_class) else 0
    packet.presence |= named(&packet.queues[ADMIN_QUEUE], HAS_ADMIN)


cdef bint cut_in_padding(const Packet* packet, size_t limit, Fault* fault) noexcept nogil:
    """Whether the packet is cut in what pads a header: the next one, all of which is lost, begins after that."""
    if not packet.violations & PADDING or fault.offset != limit:
        return False
    fault.offset = padded(limit)
    return is_lost(fault, packet.size)


cdef bint cut_in_address_header(const Packet* packet, Fault* fault) noexcept nogil:
    """Whether the bytes are lost that the HeaderSize of an MQFAddressHeader announces."""
    cdef uint32_t place = fault.field - <uint32_t>Field.Destination
    if (
        place >= <uint32_t>(ADDRESS_FIELD_COUNT * QUEUE_COUNT)
        or place % <uint32_t>ADDRESS_FIELD_COUNT != ADDRESS_HEADER_SIZE
        or fault.code != <uint32_t>BAD_SIZE or fault.needed <= fault.available
        or fault.offset + fault.needed > packet.size
    ):
        return False
    fault.code = <uint32_t>INCOMPLETE
    fault.field -= ADDRESS_HEADER_SIZE - ADDRESS_HEADER
    return True


cdef bint read_incomplete_message(
    const uint8_t* data, size_t size, size_t lost, Packet* packet, Fault* fault, CutHeader* header
) noexcept nogil:
    """A UserMessage packet of which ``lost`` bytes are missing at its end: whether the fault is ``incomplete``."""
    cdef size_t at = BASE_HEADER_SIZE
    cdef size_t limit
    header.size = 0
    clear_packet(packet)
    if not read_base(data, size, lost, packet, fault, header):
        return fault.code == <uint32_t>INCOMPLETE
    limit = min(size, packet.size)
    if read_headers(data, limit, &at, NULL, packet, fault) == 0:
        lack_end(packet, size, fault)
    elif cut_in_padding(packet, limit, fault) or cut_in_address_header(packet, fault):
        pass
    elif not is_lost(fault, packet.size):
        return False
    memset(packet.list_counts, 0, sizeof(packet.list_counts))
    keep_cut_header(data, packet, fault, header)
    derive_whole(packet, header)
    return True


cdef bint read_incomplete_ping(
    const uint8_t* data, size_t size, Packet* packet, Fault* fault, CutHeader* header
) noexcept nogil:
    if size >= 4 and load_u16(data + PING_SIGNATURE_AT) != PING_SIGNATURE:
        set_fault(
            fault, BAD_SIGNATURE, Field.Ping_Signature, PING_SIGNATURE_AT, PING_SIGNATURE,
            load_u16(data + PING_SIGNATURE_AT),
        )
        return False
    set_fault(fault, INCOMPLETE, Field.Ping, 0, PING_SIZE, size)
    packet.sections[PINGED] = copy_header(header, data, size)
    if size:
        packet.codes[KIND] = PING
        packet.codes[REFUSED] = data[0] >> 1 & 1
        packet.presence = IS_PING
    return True


cdef bint read_incomplete_session(
    const uint8_t* data, size_t size, size_t lost, uint32_t transport, Packet* packet, Fault* fault, CutHeader* header
) noexcept nogil:
    """A packet of a session, or a ping, of which ``lost`` bytes are missing: whether the fault is ``incomplete``."""
    cdef size_t limit
    cdef size_t needed
    cdef uint32_t flags
    cdef uint32_t field
    header.size = 0
    clear_packet(packet)
    if is_ping(data, size, transport):
        return read_incomplete_ping(data, size, packet, fault, header)
    if not read_base(data, size, lost, packet, fault, header):
        packet.presence = IS_PACKET
        return fault.code == <uint32_t>INCOMPLETE
    packet.presence = IS_PACKET
    if not data[2] & FLAG_INTERNAL:
        set_fault(
            fault, BAD_TYPE, Field.BaseHeader_Flags, BASE_HEADER_FLAGS_AT, 0, load_u16(data + BASE_HEADER_FLAGS_AT)
        )
        return False
    limit = min(size, packet.size)
    if limit < INTERNAL_FIXED_SIZE:
        if packet.size < INTERNAL_FIXED_SIZE:
            set_fault(
                fault, TRUNCATED, Field.InternalHeader, BASE_HEADER_SIZE, INTERNAL_HEADER_SIZE,
                packet.size - BASE_HEADER_SIZE,
            )
            return False
        set_fault(
            fault, INCOMPLETE, Field.InternalHeader, BASE_HEADER_SIZE, INTERNAL_HEADER_SIZE, limit - BASE_HEADER_SIZE
        )
        packet.sections[BASE] = copy_header(header, data, limit)
        return True
    limit -= INTERNAL_FIXED_SIZE
    flags = load_u16(data + INTERNAL_HEADER_FLAGS_AT)
    needed = SESSION_HEADER_SIZE
    field = Field.SessionHeader
    if flags & PACKET_TYPE_BITS == PACKET_ESTABLISH:
        needed, field = ESTABLISH_SIZE, Field.EstablishConnectionHeader
    elif flags & PACKET_TYPE_BITS == PACKET_PARAMETERS:
        needed, field = PARAMETERS_SIZE, Field.ConnectionParametersHeader
    elif flags & PACKET_TYPE_BITS != PACKET_SESSION_ACK:
        set_fault(fault, BAD_TYPE, Field.InternalHeader_Flags, INTERNAL_HEADER_FLAGS_AT, 0, flags)
        return False
    elif not load_u16(data + BASE_HEADER_FLAGS_AT) & FLAG_SESSION:
        set_fault(
            fault, BAD_FLAG, Field.BaseHeader_Flags, BASE_HEADER_FLAGS_AT, 0, load_u16(data + BASE_HEADER_FLAGS_AT)
        )
        return False
    if INTERNAL_FIXED_SIZE + needed > packet.size:
        set_fault(fault, TRUNCATED, field, INTERNAL_FIXED_SIZE, needed, packet.size - INTERNAL_FIXED_SIZE)
        return False
    keep_session_header(data, flags, min(limit, needed), packet, header)
    if limit < needed:
        set_fault(fault, INCOMPLETE, field, INTERNAL_FIXED_SIZE, needed, limit)
    else:
        lack_end(packet, size, fault)
    return True


cdef void keep_session_header(
    const uint8_t* data, uint32_t flags, size_t captured, Packet* packet, CutHeader* header
) noexcept nogil:
    """The fields of the header after the InternalHeader, of which ``captured`` bytes are there."""
    cdef const uint8_t* copied = copy_header(header, data + INTERNAL_FIXED_SIZE, captured)
    packet.codes[REFUSED] = (flags & PACKET_REFUSED) != 0
    if flags & PACKET_TYPE_BITS == PACKET_ESTABLISH:
        packet.codes[KIND] = ESTABLISH_CONNECTION
        packet.sections[ESTABLISH] = copied
        packet.presence |= IS_ESTABLISH
    elif flags & PACKET_TYPE_BITS == PACKET_PARAMETERS:
        packet.codes[KIND] = CONNECTION_PARAMETERS
        packet.sections[PARAMETERS] = copied
        packet.sections[WINDOW] = copied + WINDOW_SIZE_AT
        packet.presence |= IS_PARAMETERS | HAS_WINDOW
    else:
        packet.codes[KIND] = SESSION_ACK
        packet.sections[SESSION] = copied
        packet.sections[WINDOW] = copied + SESSION_HEADER_WINDOW_SIZE_AT
        packet.presence |= IS_SESSION_ACK | HAS_WINDOW
