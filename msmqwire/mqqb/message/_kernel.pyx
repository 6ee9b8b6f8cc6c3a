"""UserMessage packets: rare parts of the reader (acknowledgments, SOAP, faults of strict decoding), and the writer.

The writer depends on the values of a packet only: reserved bits and all padding are zero, lengths and the flags that
say which headers are present are derived, and the packet is a multiple of four bytes long.
"""

from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint16_t, uint32_t
from libc.string cimport memcpy, memset

from msmqwire.columns._convert cimport TextSpan
from msmqwire.mqqb._kernel cimport (
    ACKNOWLEDGED, ACKNOWLEDGED_PREVIOUS_TX_SEQUENCE_NUMBER_AT, ACKNOWLEDGED_TX_SEQUENCE_NUMBER_AT, ACKNOWLEDGMENT,
    ADDRESS_HEADER_FIXED_SIZE, ADMIN_QUEUE, ADMIN_QUEUE_FLAGS, ALLOCATION_BODY_SIZE, ALLOCATION_BODY_SIZE_AT, BASE,
    BODY, BODY_TYPE_AT, COMPOUND, COMPOUND_BODY, COMPOUND_HEADER_ID, COMPOUND_HEADER_SIZE, CONNECTOR, CONNECTOR_QM,
    CRYPTO_PROVIDER, DEBUG_HEADER_SIZE, DEBUG_QUEUE, DELIVERY, DESTINATION_QUEUE, ENCRYPTION_ALGORITHM,
    ENCRYPTION_ALGORITHM_AT, ENCRYPTION_KEY, EXTENSION_DATA, EXTENSION_SIZE_AT, FINAL, FINAL_ACK, FIRST_HASH_ALGORITHM,
    FLAG_DEBUG, FLAG_TRACING, FOR_EVER, HASH_ALGORITHM, HASH_ALGORITHMS, HASH_ALGORITHM_AT, HAS_ACKNOWLEDGED, HAS_ADMIN,
    HAS_COMPOUND, HAS_CONNECTOR_QM, HAS_CONNECTOR_TYPE, HAS_DEBUG_QUEUE, HAS_DESTINATION, HAS_FINAL_ACK,
    HAS_MULTI_QUEUE, HAS_PROPERTIES, HAS_RESPONSE_CODE, HAS_SECURITY, HAS_SECURITY_ID, HAS_SESSION, HAS_SOAP,
    HAS_SRMP_ENVELOPE, HAS_TRANSACTION, HTTP_BODY, KIND, LABEL, LARGEST_LABEL, LARGEST_PRIVACY_LEVEL,
    MESSAGE_BODY_OFFSET_AT, MESSAGE_BODY_SIZE_AT, MESSAGE_CLASS_AT, MESSAGE_CLASS_VALUE, MESSAGE_SIZE_AT,
    MULTI_QUEUE_SIGNATURE, ORDER_ACK, PACKET_SIZE_AT, PART_COUNT, PRIVACY_LEVEL, PRIVACY_LEVELS, PRIVACY_LEVEL_AT,
    PROPERTIES, PROPERTIES_HEADER_SIZE, PROVIDER_INFO, QUEUE_COUNT, RESERVED_FLAGS, RESERVED_PROPERTIES, RESPONSE_QUEUE,
    SECURITY, SECURITY_HEADER_ENCRYPTION_KEY_SIZE_AT, SECURITY_HEADER_PROVIDER_INFO_SIZE_AT,
    SECURITY_HEADER_SECURITY_ID_SIZE_AT, SECURITY_HEADER_SENDER_CERT_SIZE_AT, SECURITY_HEADER_SIGNATURE_SIZE_AT,
    SECURITY_HEADER_SIZE, SECURITY_ID, SENDER_CERT, SESSION, SIGNATURE, SIGNATURE_HEADER_ID, SOAP_BODY, SOAP_BODY_ID,
    SOAP_HEADER, SOAP_HEADER_ID, SOAP_SECTION_SIZE, SOAP_TERMINATOR, SRMP_ENVELOPE, SRMP_ENVELOPE_HEADER_SIZE,
    SRMP_ENVELOPE_TERMINATOR, TIME_TO_REACH_QUEUE_AT, TRAILING_BYTES, TRANSACTION, TRANSACTION_HEADER_SIZE, USER,
    USER_ADMIN_SHIFT, USER_CONNECTOR_TYPE, USER_DELIVERY_SHIFT, USER_DESTINATION_SHIFT, USER_HEADER_FLAGS_AT,
    USER_HEADER_SIZE, USER_HTTP, USER_MULTI_QUEUE, USER_PROPERTIES, USER_RESPONSE_SHIFT, USER_SECURITY, USER_SOAP,
    USER_TRANSACTION, Field, Packet, first_extra_byte, padded, skip_padding,
)
from msmqwire.mqqb.framing cimport (
    BASE_HEADER_SIZE, FLAG_SESSION, PACKET_SIGNATURE, SESSION_HEADER_SIZE, VERSION_NUMBER
)
from msmqwire.mqqb.message._queues cimport (
    ADDRESS_IDS, QUEUE_DIRECT, QUEUE_ELSEWHERE, QUEUE_NONE, QUEUE_PUBLIC, QUEUE_SAME_AS_ADMIN, is_order_queue,
    units_to_null,
)
from msmqwire.wire.cursor cimport load_u16, load_u32, store_u16, store_u32
from msmqwire.wire._fault cimport BAD_FLAG, BAD_HEADER, BAD_SIZE, TRUNCATED, Fault, set_fault, set_fault_of
from msmqwire.wire._format_name cimport DIRECT_NAME, PRIVATE_QUEUE, FormatName
from msmqwire.wire.simd cimport wire_unlikely

from msmqwire.mqqb.message.classes import MESSAGE_CLASSES

cdef enum:
    MESSAGE_CLASS_COUNT = 20
    ACK_LABEL_UNITS = 15
    ORDER_ACK_CLASS = 0x00FF
    FIRST_FINAL_ACK_CLASS = 0x4000
    FINAL_ACK_CLASS_COUNT = 11
    ACK_FLAGS_CLEAR = 0x12DFE31F    # UserHeader.Flags without DM, DQ, MP and the reserved bits

cdef uint16_t[MESSAGE_CLASS_COUNT] MESSAGE_CLASS_NUMBERS
MESSAGE_CLASS_NUMBERS[:] = list(MESSAGE_CLASSES)

cdef uint16_t[FINAL_ACK_CLASS_COUNT] FINAL_ACK_CLASSES
FINAL_ACK_CLASSES[:] = [
    0x4000, 0x8000, 0x8003, 0x8004, 0x8006, 0x8007, 0x8009, 0x800B, 0xC000, 0xC001, 0xC002
]

cdef const char* ACK_LABEL = "QM Ordering Ack"


cdef bint is_message_class(uint32_t message_class) noexcept nogil:
    """Return True if a message class is one of MESSAGE_CLASSES."""
    cdef size_t i
    for i in range(<size_t>MESSAGE_CLASS_COUNT):
        if MESSAGE_CLASS_NUMBERS[i] == message_class:
            return True
    return False


cdef void judge_provider(const uint8_t* data, Packet* packet) noexcept nogil:
    """ProviderInfo against DE and the signature, and its layout: [MS-MQMQ] 2.2.20.6."""
    cdef TextSpan info = packet.parts[PROVIDER_INFO]
    cdef size_t units
    if info.length == 0 or packet.sections[SECURITY][0] & DEFAULT_PROVIDER or info.length < 6 or info.length & 1:
        packet.violations |= CRYPTO_PROVIDER
        return
    units = (info.length - 4) // 2
    if units_to_null(data, info.offset + info.length, info.offset + 4, units) != units - 1:
        packet.violations |= CRYPTO_PROVIDER


cdef void judge_properties(const uint8_t* header, uint32_t message_size, Packet* packet) noexcept nogil:
    """The values of a MessagePropertiesHeader, where one of them is not the plain one: [MS-MQMQ] 2.2.19.3."""
    cdef uint32_t privacy = load_u32(header + PRIVACY_LEVEL_AT)
    cdef uint32_t hashing = load_u32(header + HASH_ALGORITHM_AT) - <uint32_t>FIRST_HASH_ALGORITHM
    cdef bint has_admin = (load_u32(packet.sections[USER] + USER_HEADER_FLAGS_AT) >> USER_ADMIN_SHIFT & 7) != 0
    cdef bint encrypted = packet.sections[SECURITY][0] & BODY_ENCRYPTED
    if privacy > LARGEST_PRIVACY_LEVEL or not PRIVACY_LEVELS >> privacy & 1 or (encrypted and privacy == 0):
        packet.violations |= PRIVACY_LEVEL
    if header[0] & RESERVED_PROPERTIES:
        packet.violations |= RESERVED_FLAGS
    # The message of [MS-MQQB] 4.1 has flags and no AdminQueue
    if has_admin and not header[0] & ACKNOWLEDGMENTS:
        packet.violations |= ADMIN_QUEUE_FLAGS
    if load_u16(header + MESSAGE_CLASS_AT) & CLASS_BITS_UNUSED:
        packet.violations |= MESSAGE_CLASS_VALUE
    if load_u32(header + ALLOCATION_BODY_SIZE_AT) < message_size:
        packet.violations |= ALLOCATION_BODY_SIZE
    if hashing > 31 or not HASH_ALGORITHMS >> hashing & 1:
        packet.violations |= HASH_ALGORITHM
    if not is_cipher(load_u32(header + ENCRYPTION_ALGORITHM_AT), privacy):
        packet.violations |= ENCRYPTION_ALGORITHM


cdef bint is_conforming_ack(const uint8_t* data, const Packet* packet) noexcept nogil:
    """Return True if the other fields of an OrderAck or FinalAck packet are as [MS-MQQB] 2.2.4 and 2.2.5 say."""
    cdef const uint8_t* properties = packet.sections[PROPERTIES]
    cdef uint32_t message_class = load_u16(properties + MESSAGE_CLASS_AT)
    cdef uint32_t flags = load_u32(packet.sections[USER] + USER_HEADER_FLAGS_AT)
    cdef uint32_t number = load_u32(packet.sections[ACKNOWLEDGED] + ACKNOWLEDGED_TX_SEQUENCE_NUMBER_AT)
    cdef uint32_t previous = load_u32(packet.sections[ACKNOWLEDGED] + ACKNOWLEDGED_PREVIOUS_TX_SEQUENCE_NUMBER_AT)
    cdef size_t i
    if (
        flags & ACK_FLAGS_CLEAR or properties[0] & ACKNOWLEDGMENTS or load_u32(properties + BODY_TYPE_AT) != 0
        or number == 0 or previous + 1 == 0 or load_u32(data + TIME_TO_REACH_QUEUE_AT) != <uint32_t>FOR_EVER
    ):
        return False
    if packet.codes[KIND] == ORDER_ACK:
        return not flags >> USER_DELIVERY_SHIFT & 3 and previous == number - 1
    for i in range(<size_t>FINAL_ACK_CLASS_COUNT):
        if FINAL_ACK_CLASSES[i] == message_class:
            return True
    return False


cdef void recognise_ack(const uint8_t* data, Packet* packet) noexcept nogil:
    """Recognise OrderAck and FinalAck packets among packets of their size: [MS-MQQB] 2.2.4, 2.2.5."""
    cdef uint32_t message_class = load_u16(packet.sections[PROPERTIES] + MESSAGE_CLASS_AT)
    cdef uint32_t delivery = load_u32(packet.sections[USER] + USER_HEADER_FLAGS_AT) >> USER_DELIVERY_SHIFT & 3
    cdef const uint8_t* label = data + packet.parts[LABEL].offset
    cdef size_t i
    if message_class != ORDER_ACK_CLASS and not (message_class >= FIRST_FINAL_ACK_CLASS and delivery == 1):
        return
    if packet.parts[LABEL].length != 2 * ACK_LABEL_UNITS:
        return
    for i in range(<size_t>ACK_LABEL_UNITS):
        if load_u16(label + 2 * i) != <uint16_t>ACK_LABEL[i]:
            return
    if not is_order_queue(data, &packet.queues[DESTINATION_QUEUE]):
        return
    packet.sections[ACKNOWLEDGED] = data + packet.parts[BODY].offset
    packet.presence |= HAS_ACKNOWLEDGED
    if message_class == ORDER_ACK_CLASS:
        packet.codes[KIND] = ORDER_ACK
    else:
        packet.codes[KIND] = FINAL_ACK
        packet.sections[FINAL] = packet.sections[ACKNOWLEDGED]
        packet.presence |= HAS_FINAL_ACK
    if not is_conforming_ack(data, packet):
        packet.violations |= ACKNOWLEDGMENT


cdef int read_soap_section(
    const uint8_t* data, size_t size, size_t* at, uint32_t section_id, uint32_t section_field, uint32_t text_field,
    size_t part, Packet* packet, Fault* fault,
) noexcept nogil:
    cdef size_t left = size - at[0]
    cdef size_t units
    cdef size_t length
    if left < SOAP_SECTION_SIZE:
        return set_fault(fault, TRUNCATED, section_field, at[0], SOAP_SECTION_SIZE, left)
    if load_u16(data + at[0]) != section_id:
        return set_fault(fault, BAD_HEADER, section_field, at[0], section_id, load_u16(data + at[0]))
    units = load_u32(data + at[0] + 4)
    at[0] += SOAP_SECTION_SIZE
    if units > (left - SOAP_SECTION_SIZE) // 2:
        return set_fault_of(fault, TRUNCATED, text_field, at[0], 2 * units, left - SOAP_SECTION_SIZE, units)
    packet.parts[part].offset = <uint32_t>at[0]
    length = units_to_null(data, size, at[0], units)
    packet.parts[part].length = <uint32_t>(2 * length)
    if units and length + 1 != units:
        packet.violations |= SOAP_TERMINATOR
    at[0] += 2 * units
    return 0


cdef bint is_later_header(const uint8_t* data, size_t size, size_t at, uint32_t user_flags) noexcept nogil:
    """Return True if a SoapHeader or MultiQueueFormatHeader begins at ``at``, where 8 bytes are left, by its id."""
    if user_flags & USER_SOAP:
        return load_u16(data + at) == SOAP_HEADER_ID
    return (
        user_flags & USER_MULTI_QUEUE and load_u16(data + at + 4) == ADDRESS_IDS[0]
        and load_u32(data + at) >= <uint32_t>ADDRESS_HEADER_FIXED_SIZE
    )


cdef int read_envelope(const uint8_t* data, size_t size, size_t* at, Packet* packet, Fault* fault) noexcept nogil:
    """SRMPEnvelopeHeader: [MS-MQRR] 2.2.5.1.2.1. Its HeaderId has no value of its own."""
    cdef size_t left = size - at[0] - SRMP_ENVELOPE_HEADER_SIZE
    cdef size_t units = load_u32(data + at[0] + 4)
    cdef size_t length
    if units > left // 2:
        return set_fault_of(
            fault, TRUNCATED, Field.SRMPEnvelopeHeader_DataLength, at[0] + 4, 2 * units, left, units
        )
    at[0] += SRMP_ENVELOPE_HEADER_SIZE
    length = units_to_null(data, size, at[0], units)
    if length + 1 != units:
        packet.violations |= SRMP_ENVELOPE_TERMINATOR
    packet.parts[SRMP_ENVELOPE].offset = <uint32_t>at[0]
    packet.parts[SRMP_ENVELOPE].length = <uint32_t>(2 * length)
    packet.presence |= HAS_SRMP_ENVELOPE
    at[0] = skip_padding(at[0] + 2 * units, size, packet)
    return 0


cdef int read_compound(const uint8_t* data, size_t size, size_t* at, Packet* packet, Fault* fault) noexcept nogil:
    """CompoundMessageHeader: [MS-MQRR] 2.2.5.1.2.2."""
    cdef const uint8_t* header = data + at[0]
    cdef size_t left = size - at[0]
    cdef size_t http_size
    cdef size_t body_size
    cdef size_t body_offset
    if left < COMPOUND_HEADER_SIZE:
        return set_fault(fault, TRUNCATED, Field.CompoundMessageHeader, at[0], COMPOUND_HEADER_SIZE, left)
    left -= COMPOUND_HEADER_SIZE
    http_size = load_u32(header + 4)
    body_size = load_u32(header + MESSAGE_BODY_SIZE_AT)
    body_offset = load_u32(header + MESSAGE_BODY_OFFSET_AT)
    if http_size > left:
        return set_fault_of(
            fault, TRUNCATED, Field.CompoundMessageHeader_HttpBodySize, at[0] + 4, http_size, left, http_size
        )
    if body_size > http_size:
        return set_fault_of(
            fault, BAD_SIZE, Field.CompoundMessageHeader_MessageBodySize, at[0] + 8, body_size, http_size, body_size
        )
    if body_offset > http_size - body_size:
        return set_fault_of(
            fault, BAD_SIZE, Field.CompoundMessageHeader_MessageBodyOffset, at[0] + 12, body_offset,
            http_size - body_size, body_offset,
        )
    at[0] += COMPOUND_HEADER_SIZE
    packet.sections[COMPOUND] = header
    packet.parts[HTTP_BODY].offset = <uint32_t>at[0]
    packet.parts[HTTP_BODY].length = <uint32_t>http_size
    packet.parts[COMPOUND_BODY].offset = <uint32_t>(at[0] + body_offset)
    packet.parts[COMPOUND_BODY].length = <uint32_t>body_size
    packet.presence |= HAS_COMPOUND
    at[0] += http_size
    return 0


cdef int read_http(
    const uint8_t* data, size_t size, size_t* at, uint32_t user_flags, Packet* packet, Fault* fault
) noexcept nogil:
    """The headers that a message sent over HTTP can have.

    Decision: fewer than eight bytes hold neither header, a CompoundMessageHeader is recognised by its HeaderId, and
    the ids of the later headers that the flags announce come first.
    """
    if size - at[0] < SRMP_ENVELOPE_HEADER_SIZE or is_later_header(data, size, at[0], user_flags):
        return 0
    if load_u16(data + at[0]) != COMPOUND_HEADER_ID:
        if read_envelope(data, size, at, packet, fault) != 0:
            return -1
        if size - at[0] < SRMP_ENVELOPE_HEADER_SIZE or is_later_header(data, size, at[0], user_flags):
            return 0
    if load_u16(data + at[0]) == COMPOUND_HEADER_ID:
        return read_compound(data, size, at, packet, fault)
    return 0


cdef int read_soap(const uint8_t* data, size_t size, size_t* at, Packet* packet, Fault* fault) noexcept nogil:
    """SoapHeader: [MS-MQMQ] 2.2.20.7. Decision: it has no padding; the specification does not say."""
    if read_soap_section(
        data, size, at, SOAP_HEADER_ID, Field.SoapHeader, Field.SoapHeader_Header, SOAP_HEADER, packet, fault
    ) != 0:
        return -1
    if read_soap_section(
        data, size, at, SOAP_BODY_ID, Field.SoapBody, Field.SoapBody_Body, SOAP_BODY, packet, fault
    ) != 0:
        return -1
    packet.presence |= HAS_SOAP
    return 0


cdef int message_violation_fault(
    const uint8_t* data, size_t size, const Packet* packet, Fault* fault
) noexcept nogil:
    """The lowest violation for which a conforming receiver refuses the packet, as a fault."""
    cdef size_t flags_at = BASE_HEADER_SIZE + USER_HEADER_FLAGS_AT
    cdef size_t extra = first_extra_byte(packet, load_u32(data + PACKET_SIZE_AT))
    if packet.violations & TRAILING_BYTES:
        return set_fault(fault, BAD_SIZE, Field.PacketSize, extra, extra, size)
    return set_fault(fault, BAD_FLAG, Field.UserHeader_Flags, flags_at, 0, load_u32(data + flags_at))


cdef int read_captured_message(
    const uint8_t* data, size_t size, size_t lost, QueueLists* lists, Packet* packet, Fault* fault
) noexcept nogil:
    """Read a message packet of which a capture has all but the last ``lost`` bytes."""
    return read_message_of(data, size, lost, False, lists, packet, fault)


cdef void note_complete_fields(Packet* packet, const Fault* fault) noexcept nogil:
    """Note what the reader notes only after later fields, for a packet that ends before them."""
    packet.presence |= named(&packet.queues[ADMIN_QUEUE], HAS_ADMIN)
    if packet.presence & HAS_SECURITY and (fault.field != <uint32_t>Field.SecurityHeader or fault.available >= 2):
        note_sender(packet, load_u16(packet.sections[SECURITY]) & 0xF)
    if packet.presence & HAS_PROPERTIES and (
        fault.field != <uint32_t>Field.MessagePropertiesHeader or fault.available >= MESSAGE_CLASS_AT + 2
    ):
        note_message_class(packet, load_u16(packet.sections[PROPERTIES] + MESSAGE_CLASS_AT))
    if not packet.presence & HAS_MULTI_QUEUE:
        memset(packet.list_counts, 0, sizeof(packet.list_counts))


# --- Writer ---

# The bits of flags that are kept; those that say which headers are present are derived
cdef enum:
    BASE_KEPT = 7 | FLAG_DEBUG | FLAG_TRACING
    USER_KEPT = 0x1F | 3 << 5 | 1 << 8 | 1 << 9 | 1 << 25    # RC, DM, JN, JP, AH
    TRANSACTION_KEPT = 0x00FFFFFE
    SECURITY_KEPT = 0x0FFF
    PROPERTIES_KEPT = 0xF

cdef enum:
    RARE_HEADERS = HAS_SRMP_ENVELOPE | HAS_COMPOUND | HAS_SOAP | HAS_MULTI_QUEUE


cdef inline uint8_t* put(uint8_t* target, const uint8_t* source, size_t size) noexcept nogil:
    memcpy(target, source, size)
    return target + size


cdef inline uint8_t* pad(const uint8_t* start, uint8_t* target) noexcept nogil:
    """Zeros up to a multiple of four bytes from ``start``; the four bytes at ``target`` can be overwritten."""
    store_u32(target, 0)
    return <uint8_t*>start + padded(<size_t>(target - start))


cdef inline uint8_t* put_part(
    uint8_t* target, const Packet* packet, size_t part, const uint8_t* payload
) noexcept nogil:
    return put(target, payload + packet.parts[part].offset, packet.parts[part].length)


cdef inline uint8_t* put_text(uint8_t* target, const uint8_t* payload, TextSpan text) noexcept nogil:
    """A text and its U+0000."""
    target = put(target, payload + text.offset, text.length)
    store_u16(target, 0)
    return target + 2


cdef uint8_t* put_queue(
    const uint8_t* start, uint8_t* target, const FormatName* name, const uint8_t* payload
) noexcept nogil:
    cdef TextSpan text
    if name.code == QUEUE_NONE or name.code == QUEUE_SAME_AS_ADMIN:
        return target
    if name.code == QUEUE_PUBLIC:
        return put(target, name.guid, 16)
    if name.code == QUEUE_DIRECT:
        text.offset = name.offset
        text.length = name.length
        store_u16(target, name.length + 2)
        return pad(start, put_text(target + 2, payload, text))
    if name.code == QUEUE_ELSEWHERE:
        target = put(target, name.guid, 16)
    store_u32(target, name.number)
    return target + 4


cdef uint8_t* put_user_header(
    const uint8_t* start, uint8_t* target, const Packet* packet, const uint8_t* payload
) noexcept nogil:
    cdef uint8_t* header = target
    cdef uint32_t flags = load_u32(packet.sections[USER] + USER_HEADER_FLAGS_AT) & USER_KEPT
    flags |= <uint32_t>packet.codes[DELIVERY] << USER_DELIVERY_SHIFT
    flags |= USER_SECURITY if packet.presence & HAS_SECURITY else 0
    flags |= USER_TRANSACTION if packet.presence & HAS_TRANSACTION else 0
    flags |= USER_PROPERTIES if packet.presence & HAS_PROPERTIES else 0
    if wire_unlikely(packet.presence & RARE_HEADERS):
        flags |= USER_MULTI_QUEUE if packet.presence & HAS_MULTI_QUEUE else 0
        flags |= USER_SOAP if packet.presence & HAS_SOAP else 0
        flags |= USER_HTTP if packet.presence & (HAS_SRMP_ENVELOPE | HAS_COMPOUND) else 0
    put(target, packet.sections[USER], USER_HEADER_FLAGS_AT)
    target += USER_HEADER_SIZE
    if packet.presence & HAS_DESTINATION:
        flags |= <uint32_t>packet.queues[DESTINATION_QUEUE].code << USER_DESTINATION_SHIFT
        target = put_queue(start, target, &packet.queues[DESTINATION_QUEUE], payload)
    if packet.presence & HAS_ADMIN:
        flags |= <uint32_t>packet.queues[ADMIN_QUEUE].code << USER_ADMIN_SHIFT
        target = put_queue(start, target, &packet.queues[ADMIN_QUEUE], payload)
    if packet.presence & HAS_RESPONSE_CODE:
        flags |= <uint32_t>packet.queues[RESPONSE_QUEUE].code << USER_RESPONSE_SHIFT
        target = put_queue(start, target, &packet.queues[RESPONSE_QUEUE], payload)
    if packet.presence & HAS_CONNECTOR_TYPE:
        flags |= USER_CONNECTOR_TYPE
        target = put(target, packet.sections[CONNECTOR], 16)
    store_u32(header + USER_HEADER_FLAGS_AT, flags)
    return target


cdef uint8_t* put_transaction(uint8_t* target, const Packet* packet) noexcept nogil:
    cdef bint connected = packet.presence & HAS_CONNECTOR_QM
    put(target, packet.sections[TRANSACTION], TRANSACTION_HEADER_SIZE)
    store_u32(target, load_u32(target) & TRANSACTION_KEPT | (1 if connected else 0))
    target += TRANSACTION_HEADER_SIZE
    return put(target, packet.sections[CONNECTOR_QM], 16) if connected else target


cdef uint8_t* put_security(
    const uint8_t* start, uint8_t* target, const Packet* packet, const uint8_t* payload
) noexcept nogil:
    cdef uint8_t* header = target
    cdef uint32_t[5] sizes
    cdef size_t part
    target += SECURITY_HEADER_SIZE
    for part in range(<size_t>PROVIDER_INFO + 1):
        sizes[part] = 0
        if packet.presence & <uint32_t>HAS_SECURITY_ID << part:
            sizes[part] = packet.parts[part].length
            target = pad(start, put_part(target, packet, part, payload))
    store_u16(header, load_u16(packet.sections[SECURITY]) & SECURITY_KEPT)
    store_u16(header + SECURITY_HEADER_SECURITY_ID_SIZE_AT, sizes[SECURITY_ID])
    store_u16(header + SECURITY_HEADER_ENCRYPTION_KEY_SIZE_AT, sizes[ENCRYPTION_KEY])
    store_u16(header + SECURITY_HEADER_SIGNATURE_SIZE_AT, sizes[SIGNATURE])
    store_u32(header + SECURITY_HEADER_SENDER_CERT_SIZE_AT, sizes[SENDER_CERT])
    store_u32(header + SECURITY_HEADER_PROVIDER_INFO_SIZE_AT, sizes[PROVIDER_INFO])
    return target


cdef uint8_t* put_properties(
    const uint8_t* start, uint8_t* target, const Packet* packet, const uint8_t* payload
) noexcept nogil:
    cdef uint32_t units = packet.parts[LABEL].length // 2
    # A label that was read without its U+0000 may have no space for one
    cdef uint32_t length = min(units + 1, <uint32_t>LARGEST_LABEL) if units else 0
    put(target, packet.sections[PROPERTIES], PROPERTIES_HEADER_SIZE)
    target[0] = target[0] & PROPERTIES_KEPT
    target[1] = <uint8_t>length
    store_u32(target + MESSAGE_SIZE_AT, packet.parts[BODY].length)
    store_u32(target + EXTENSION_SIZE_AT, packet.parts[EXTENSION_DATA].length)
    target = put(target + PROPERTIES_HEADER_SIZE, payload + packet.parts[LABEL].offset, 2 * units)
    if length > units:
        store_u16(target, 0)
        target += 2
    if packet.parts[EXTENSION_DATA].length:
        target = put_part(target, packet, EXTENSION_DATA, payload)
    return pad(start, put_part(target, packet, BODY, payload))


cdef uint8_t* put_debug(uint8_t* target, const Packet* packet) noexcept nogil:
    store_u32(target, 1 if packet.presence & HAS_DEBUG_QUEUE else 0)
    target += DEBUG_HEADER_SIZE
    return put(target, packet.sections[DEBUG_QUEUE], 16) if packet.presence & HAS_DEBUG_QUEUE else target


cdef uint8_t* put_envelope(
    const uint8_t* start, uint8_t* target, const Packet* packet, const uint8_t* payload
) noexcept nogil:
    store_u32(target, 0)
    store_u32(target + 4, packet.parts[SRMP_ENVELOPE].length // 2 + 1)
    return pad(start, put_text(target + SRMP_ENVELOPE_HEADER_SIZE, payload, packet.parts[SRMP_ENVELOPE]))


cdef uint8_t* put_compound(uint8_t* target, const Packet* packet, const uint8_t* payload) noexcept nogil:
    put(target, packet.sections[COMPOUND], COMPOUND_HEADER_SIZE)
    store_u32(target, COMPOUND_HEADER_ID)
    store_u32(target + 4, packet.parts[HTTP_BODY].length)
    return put_part(target + COMPOUND_HEADER_SIZE, packet, HTTP_BODY, payload)


cdef uint8_t* put_soap(uint8_t* target, const Packet* packet, const uint8_t* payload) noexcept nogil:
    store_u32(target, SOAP_HEADER_ID)
    store_u32(target + 4, packet.parts[SOAP_HEADER].length // 2 + 1)
    target = put_text(target + 8, payload, packet.parts[SOAP_HEADER])
    store_u32(target, SOAP_BODY_ID)
    store_u32(target + 4, packet.parts[SOAP_BODY].length // 2 + 1)
    return put_text(target + 8, payload, packet.parts[SOAP_BODY])


cdef uint8_t* put_element(
    const uint8_t* start, uint8_t* target, const FormatName* name, const uint8_t* payload
) noexcept nogil:
    """An MQFFormatNameElement of the MQFAddressHeader at ``start``: [MS-MQMQ] 2.2.18.1.4."""
    cdef TextSpan text
    store_u16(target, name.form)
    target += 2
    if name.form == DIRECT_NAME:
        text.offset = name.offset
        text.length = name.length
        return put_text(target, payload, text)
    target = put(pad(start, target), name.guid, 16)
    if name.form == PRIVATE_QUEUE:
        store_u32(target, name.number)
        target += 4
    return target


cdef uint8_t* put_multi_queue(
    uint8_t* target, const Packet* packet, const uint8_t* payload, FormatName** lists
) noexcept nogil:
    cdef uint8_t* start
    cdef size_t queue
    cdef uint32_t k
    for queue in range(<size_t>QUEUE_COUNT):
        start = target
        store_u32(start + 4, ADDRESS_IDS[queue])
        store_u32(start + 8, packet.list_counts[queue])
        target += ADDRESS_HEADER_FIXED_SIZE
        for k in range(packet.list_counts[queue]):
            target = put_element(start, target, lists[queue] + k, payload)
        target = pad(start, target)
        store_u32(start, <size_t>(target - start))
    store_u32(target, SIGNATURE_HEADER_ID)
    store_u32(target + 4, packet.parts[MULTI_QUEUE_SIGNATURE].length)
    return put_part(target + 8, packet, MULTI_QUEUE_SIGNATURE, payload)


cdef size_t largest_message(const Packet* packet, FormatName** lists) noexcept nogil:
    """A bound on the bytes that ``write_message`` writes."""
    cdef size_t room = LARGEST_HEADERS
    cdef size_t i
    cdef uint32_t k
    for i in range(<size_t>PART_COUNT):
        room += packet.parts[i].length
    for i in range(<size_t>QUEUE_COUNT):
        room += packet.queues[i].length
        for k in range(packet.list_counts[i]):
            room += 24 + lists[i][k].length
    return room


cdef void put_base_header(
    uint8_t* target, uint32_t flags, size_t packet_size, uint32_t time_to_reach_queue
) noexcept nogil:
    target[0] = VERSION_NUMBER
    target[1] = 0
    store_u16(target + 2, flags)
    store_u32(target + 4, PACKET_SIGNATURE)
    store_u32(target + 8, packet_size)
    store_u32(target + 12, time_to_reach_queue)


cdef uint8_t* put_session_header(uint8_t* target, const Packet* packet) noexcept nogil:
    target = put(target, packet.sections[SESSION], SESSION_HEADER_SIZE - 2)
    store_u16(target, 0)
    return target + 2


cdef uint8_t* put_optional_headers(
    const uint8_t* start, uint8_t* target, uint32_t base, const Packet* packet, const uint8_t* payload,
    FormatName** lists,
) noexcept nogil:
    """The headers after the MessagePropertiesHeader, which few packets have."""
    if base & FLAG_DEBUG:
        target = put_debug(target, packet)
    if packet.presence & HAS_SRMP_ENVELOPE:
        target = put_envelope(start, target, packet, payload)
    if packet.presence & HAS_COMPOUND:
        target = put_compound(target, packet, payload)
    if packet.presence & HAS_SOAP:
        target = put_soap(target, packet, payload)
    if packet.presence & HAS_MULTI_QUEUE:
        target = put_multi_queue(target, packet, payload, lists)
    return target


cdef size_t write_message(
    const Packet* packet, const uint8_t* payload, FormatName** lists, uint8_t* target
) noexcept nogil:
    """Write a UserMessage packet and return its size.

    Parts and direct names are in ``payload``, the queues of a MultiQueueFormatHeader in ``lists``. A DebugHeader is
    written when DH is set, when there is a queue to name in it, or when TR is set, which requires one.
    """
    cdef const uint8_t* start = target
    cdef uint32_t base = load_u16(packet.sections[BASE] + 2) & BASE_KEPT
    if packet.presence & HAS_DEBUG_QUEUE or base & FLAG_TRACING:
        base |= FLAG_DEBUG
    if packet.presence & HAS_SESSION:
        base |= FLAG_SESSION
    target = put_user_header(start, target + BASE_HEADER_SIZE, packet, payload)
    if packet.presence & HAS_TRANSACTION:
        target = put_transaction(target, packet)
    if packet.presence & HAS_SECURITY:
        target = put_security(start, target, packet, payload)
    if packet.presence & HAS_PROPERTIES:
        target = put_properties(start, target, packet, payload)
    if wire_unlikely(base & FLAG_DEBUG or packet.presence & RARE_HEADERS):
        target = put_optional_headers(start, target, base, packet, payload, lists)
    target = pad(start, target)
    put_base_header(<uint8_t*>start, base, <size_t>(target - start), load_u32(packet.sections[BASE] + 12))
    if packet.presence & HAS_SESSION:
        target = put_session_header(target, packet)
    return <size_t>(target - start)
