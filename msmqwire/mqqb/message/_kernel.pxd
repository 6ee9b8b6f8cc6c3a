"""The reader of UserMessage packets: [MS-MQMQ] 2.2.20, little-endian, one header after the other:

    BaseHeader 16 | UserHeader 48 + queues + ConnectorType 16 if CQ | TransactionHeader 20 + ConnectorQMGuid 16 if CG
    SecurityHeader 16 + SecurityData | MessagePropertiesHeader 56 + Label, ExtensionData, MessageBody, padded to 4
    DebugHeader 4 + QueueIdentifier 16 if QT
    SRMPEnvelopeHeader 8 + Data, padded to 4 | CompoundMessageHeader 16 + Data ([MS-MQRR] 2.2.5.1.2), both optional
    SoapHeader | MultiQueueFormatHeader
    and after PacketSize bytes a SessionHeader 16

A flag in BaseHeader or UserHeader says which of the others are present; AH allows those of messages sent over HTTP.
"""

from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint16_t, uint32_t

from msmqwire.columns._batch cimport DECODED
from msmqwire.mqqb._kernel cimport (
    ACKNOWLEDGMENTS, ACK_BODY_SIZE, ADMIN_CODES, ADMIN_QUEUE, ADMIN_QUEUE_FLAGS, ALLOCATION_BODY_SIZE_AT, AU_OR_AS,
    BASE_HEADER_FLAGS_AT, BODY, BODY_ENCRYPTED, CLASS_BITS_UNUSED, CONNECTOR, CONNECTOR_QM, DEBUG_HEADER_SIZE,
    DEBUG_QUEUE, DELIVERY, DELIVERY_MODE, DESTINATION_CODES, DESTINATION_QUEUE, DISCARDABLE, ENCRYPTED,
    ENCRYPTION_ALGORITHM_AT, ENCRYPTION_KEY, EXPRESS_TRANSACTION, EXTENSION_DATA, EXTENSION_SIZE_AT, FIRST_AES,
    FLAG_DEBUG, FLAG_TRACING, HASH_ALGORITHM_AT, HAS_ADMIN, HAS_COMPOUND, HAS_CONNECTOR_QM, HAS_CONNECTOR_TYPE,
    HAS_DEBUG_QUEUE, HAS_DELIVERY_MODE, HAS_DESTINATION, HAS_MESSAGE_CLASS, HAS_NOTIFICATION, HAS_PROPERTIES,
    HAS_RESPONSE, HAS_RESPONSE_CODE, HAS_SECURITY, HAS_SECURITY_ID, HAS_SENDER_ID_TYPE, HAS_SESSION, HAS_SRMP_ENVELOPE,
    HAS_TRAILING, HAS_TRANSACTION, HOP_COUNT, KIND, LABEL, LABEL_TERMINATOR, LARGEST_LABEL, LARGEST_SENDER_CERT,
    LAST_AES, MESSAGE_CLASS, MESSAGE_CLASS_AT, MESSAGE_SIZE_AT, MISSING_DEBUG_HEADER, MISSING_PROPERTIES, MOST_HOPS,
    NOTIFICATION, NO_SECURITY_DATA, PLAIN, PREVIOUS_TX_SEQUENCE_NUMBER, PREVIOUS_TX_SEQUENCE_NUMBER_AT,
    PRIVACY_LEVEL_AT, PROPERTIES, PROPERTIES_HEADER_SIZE, PROVIDER_INFO, QUEUE_MANAGER_ADDRESS,
    QUEUE_MANAGER_ADDRESS_AT, RC2, RC4, RESERVED_BASE, RESERVED_DEBUG, RESERVED_FLAGS, RESERVED_SECURITY,
    RESERVED_TRANSACTION, RESERVED_USER, RESPONSE_QUEUE, SECURITY, SECURITY_FLAGS,
    SECURITY_HEADER_ENCRYPTION_KEY_SIZE_AT, SECURITY_HEADER_PROVIDER_INFO_SIZE_AT, SECURITY_HEADER_SECURITY_ID_SIZE_AT,
    SECURITY_HEADER_SENDER_CERT_SIZE_AT, SECURITY_HEADER_SIGNATURE_SIZE_AT, SECURITY_HEADER_SIZE, SECURITY_ID, SENDER,
    SENDER_CERT, SENDER_ID, SENT_OVER_HTTP, SESSION, SHA_1, SIGNATURE, TRAILING_BYTES, TRANSACTION,
    TRANSACTION_HEADER_SIZE, TRANSACTION_PRIORITY, TX_SEQUENCE_NUMBER, TX_SEQUENCE_NUMBER_AT, USER, USER_ADMIN_SHIFT,
    USER_CONNECTOR_TYPE, USER_DELIVERY_SHIFT, USER_DESTINATION_SHIFT, USER_HEADER_FLAGS_AT, USER_HEADER_SIZE, USER_HOPS,
    USER_HTTP, USER_MESSAGE, USER_MULTI_QUEUE, USER_PROPERTIES, USER_REPLY_QUEUES, USER_RESPONSE_SHIFT, USER_SECURITY,
    USER_SOAP, USER_TRANSACTION, WINDOW_SIZE, Field, Packet, Violation, clear_packet, lacks_end, read_base_header,
    set_trailing, skip_padding,
)
from msmqwire.mqqb.framing cimport BASE_HEADER_SIZE, FLAG_INTERNAL, FLAG_SESSION
from msmqwire.mqqb.message._queues cimport (
    QUEUE_DIRECT, QueueLists, is_notify_queue, read_multi_queue, read_queue, units_to_null
)
from msmqwire.wire.cursor cimport load_u16, load_u32, load_u64
from msmqwire.wire._fault cimport BAD_FLAG, BAD_SIZE, BAD_TYPE, TOO_LARGE, TRUNCATED, Fault, set_fault, set_fault_of
from msmqwire.wire._format_name cimport NO_QUEUE, UNRESOLVED_QUEUE, FormatName
from msmqwire.wire.simd cimport wire_unlikely

cdef enum:
    DEFAULT_PROVIDER = 1 << 6       # DE of SecurityHeader.Flags
    FLAGS_OF_NO_ACK = 0x013F        # the bits of BaseHeader.Flags that are not reserved


cdef enum:
    LARGEST_HEADERS = 512   # of a message: all its headers and their padding


cdef bint is_message_class(uint32_t message_class) noexcept nogil
cdef void judge_provider(const uint8_t* data, Packet* packet) noexcept nogil
cdef void judge_properties(const uint8_t* header, uint32_t message_size, Packet* packet) noexcept nogil
cdef void recognise_ack(const uint8_t* data, Packet* packet) noexcept nogil
cdef int read_http(
    const uint8_t* data, size_t size, size_t* at, uint32_t user_flags, Packet* packet, Fault* fault
) noexcept nogil
cdef int read_soap(const uint8_t* data, size_t size, size_t* at, Packet* packet, Fault* fault) noexcept nogil
cdef int message_violation_fault(const uint8_t* data, size_t size, const Packet* packet, Fault* fault) noexcept nogil


cdef inline void set_part(Packet* packet, size_t part, size_t offset, size_t length) noexcept nogil:
    packet.parts[part].offset = <uint32_t>offset
    packet.parts[part].length = <uint32_t>length


cdef inline uint32_t named(const FormatName* name, uint32_t bit) noexcept nogil:
    return bit if name.form != NO_QUEUE and name.form != UNRESOLVED_QUEUE else 0


cdef inline int read_reply_queues(
    const uint8_t* data, size_t size, size_t* at, uint32_t flags, Packet* packet, Fault* fault
) noexcept nogil:
    """Read AdminQueue and ResponseQueue, at least one of which is there."""
    if read_queue(
        data, size, at, flags >> USER_ADMIN_SHIFT & 7, ADMIN_QUEUE, Field.AdminQueue, packet, fault
    ) != 0:
        return -1
    if read_queue(
        data, size, at, flags >> USER_RESPONSE_SHIFT & 7, RESPONSE_QUEUE, Field.ResponseQueue, packet, fault
    ) != 0:
        return -1
    packet.presence |= (
        named(&packet.queues[ADMIN_QUEUE], HAS_ADMIN) | named(&packet.queues[RESPONSE_QUEUE], HAS_RESPONSE)
        | (HAS_RESPONSE_CODE if flags >> USER_RESPONSE_SHIFT & 7 else 0)
    )
    if packet.queues[RESPONSE_QUEUE].form == UNRESOLVED_QUEUE:
        packet.violations |= Violation.UNRESOLVED_QUEUE
    return 0


cdef inline int read_user_header(
    const uint8_t* data, size_t size, size_t* at, Packet* packet, Fault* fault
) noexcept nogil:
    """UserHeader with its queues and its ConnectorType: [MS-MQMQ] 2.2.19.2."""
    cdef uint32_t flags
    cdef uint32_t delivery
    cdef const uint8_t* address
    if wire_unlikely(size - at[0] < USER_HEADER_SIZE):
        return set_fault(fault, TRUNCATED, Field.UserHeader, at[0], USER_HEADER_SIZE, size - at[0])
    packet.sections[USER] = data + at[0]
    flags = load_u32(data + at[0] + USER_HEADER_FLAGS_AT)
    delivery = flags >> USER_DELIVERY_SHIFT & 3
    packet.codes[DELIVERY] = <uint8_t>delivery
    if wire_unlikely(delivery > 1):
        packet.violations |= DELIVERY_MODE
    else:
        packet.presence |= HAS_DELIVERY_MODE
    if wire_unlikely(
        not DESTINATION_CODES >> (flags >> USER_DESTINATION_SHIFT & 7) & 1
        or not ADMIN_CODES >> (flags >> USER_ADMIN_SHIFT & 7) & 1
    ):
        return set_fault(fault, BAD_FLAG, Field.UserHeader_Flags, at[0] + USER_HEADER_FLAGS_AT, 0, flags)
    at[0] += USER_HEADER_SIZE
    if read_queue(
        data, size, at, flags >> USER_DESTINATION_SHIFT & 7, DESTINATION_QUEUE, Field.DestinationQueue, packet, fault
    ) != 0:
        return -1
    packet.presence |= named(&packet.queues[DESTINATION_QUEUE], HAS_DESTINATION)
    if flags & USER_REPLY_QUEUES and read_reply_queues(data, size, at, flags, packet, fault) != 0:
        return -1
    if flags & USER_CONNECTOR_TYPE:
        if wire_unlikely(size - at[0] < 16):
            return set_fault(fault, TRUNCATED, Field.ConnectorType, at[0], 16, size - at[0])
        packet.sections[CONNECTOR] = data + at[0]
        packet.presence |= HAS_CONNECTOR_TYPE
        at[0] += 16
    address = packet.sections[USER] + QUEUE_MANAGER_ADDRESS_AT
    if wire_unlikely(
        flags >> USER_DESTINATION_SHIFT & 7
        and (load_u64(address) | load_u64(address + 8) != 0)
        == (flags >> USER_DESTINATION_SHIFT & 7 == QUEUE_DIRECT)
    ):
        packet.violations |= QUEUE_MANAGER_ADDRESS
    if wire_unlikely((flags & USER_HOPS) > MOST_HOPS):
        packet.violations |= HOP_COUNT
    if wire_unlikely(not flags & USER_PROPERTIES):
        packet.violations |= MISSING_PROPERTIES | (ADMIN_QUEUE_FLAGS if flags >> USER_ADMIN_SHIFT & 7 else 0)
    return 0


cdef inline int read_transaction(
    const uint8_t* data, size_t size, size_t* at, Packet* packet, Fault* fault
) noexcept nogil:
    """TransactionHeader: [MS-MQMQ] 2.2.20.5."""
    cdef uint32_t previous
    if wire_unlikely(size - at[0] < TRANSACTION_HEADER_SIZE):
        return set_fault(fault, TRUNCATED, Field.TransactionHeader, at[0], TRANSACTION_HEADER_SIZE, size - at[0])
    packet.sections[TRANSACTION] = data + at[0]
    packet.presence |= HAS_TRANSACTION
    at[0] += TRANSACTION_HEADER_SIZE
    if packet.sections[TRANSACTION][0] & 1:
        if wire_unlikely(size - at[0] < 16):
            return set_fault(fault, TRUNCATED, Field.ConnectorQMGuid, at[0], 16, size - at[0])
        packet.sections[CONNECTOR_QM] = data + at[0]
        packet.presence |= HAS_CONNECTOR_QM
        at[0] += 16
    if load_u32(packet.sections[TRANSACTION] + TX_SEQUENCE_NUMBER_AT) == 0:
        packet.violations |= TX_SEQUENCE_NUMBER
    previous = load_u32(packet.sections[TRANSACTION] + PREVIOUS_TX_SEQUENCE_NUMBER_AT)
    if previous and previous >= load_u32(packet.sections[TRANSACTION] + TX_SEQUENCE_NUMBER_AT):
        packet.violations |= PREVIOUS_TX_SEQUENCE_NUMBER
    if load_u32(packet.sections[TRANSACTION]) & <uint32_t>RESERVED_TRANSACTION:
        packet.violations |= RESERVED_FLAGS
    if data[2] & 7:
        packet.violations |= TRANSACTION_PRIORITY
    if not load_u32(packet.sections[USER] + USER_HEADER_FLAGS_AT) >> USER_DELIVERY_SHIFT & 3:
        packet.violations |= EXPRESS_TRANSACTION
    return 0


cdef inline bint is_sender_id(uint32_t sender, const uint8_t* data, uint32_t size) noexcept nogil:
    """Return True if SecurityID is what ST says: nothing, a SID ([MS-DTYP] 2.4.2.2) or a GUID."""
    if sender == 1:
        return size >= 8 and data[0] == 1 and data[1] <= 15 and size == <uint32_t>8 + 4 * <uint32_t>data[1]
    return size == 16 if sender == 2 else sender == 0 and size == 0


cdef inline void note_sender(Packet* packet, uint32_t sender) noexcept nogil:
    """ST of the SecurityHeader, and whether it has a name."""
    packet.codes[SENDER] = <uint8_t>sender
    if sender <= 2:
        packet.presence |= HAS_SENDER_ID_TYPE


cdef inline int read_security(
    const uint8_t* data, size_t size, size_t* at, Packet* packet, Fault* fault
) noexcept nogil:
    """SecurityHeader with the data that its sizes announce: [MS-MQMQ] 2.2.20.6."""
    cdef const uint8_t* header = data + at[0]
    cdef uint32_t[5] sizes
    cdef uint32_t flags
    cdef uint32_t sender
    cdef size_t i
    if wire_unlikely(size - at[0] < SECURITY_HEADER_SIZE):
        return set_fault(fault, TRUNCATED, Field.SecurityHeader, at[0], SECURITY_HEADER_SIZE, size - at[0])
    packet.sections[SECURITY] = header
    packet.presence |= HAS_SECURITY
    sizes[SECURITY_ID] = load_u16(header + SECURITY_HEADER_SECURITY_ID_SIZE_AT)
    sizes[ENCRYPTION_KEY] = load_u16(header + SECURITY_HEADER_ENCRYPTION_KEY_SIZE_AT)
    sizes[SIGNATURE] = load_u16(header + SECURITY_HEADER_SIGNATURE_SIZE_AT)
    sizes[SENDER_CERT] = load_u32(header + SECURITY_HEADER_SENDER_CERT_SIZE_AT)
    sizes[PROVIDER_INFO] = load_u32(header + SECURITY_HEADER_PROVIDER_INFO_SIZE_AT)
    if wire_unlikely(sizes[SENDER_CERT] > LARGEST_SENDER_CERT):
        return set_fault(
            fault, TOO_LARGE, Field.SecurityHeader_SenderCertSize, at[0] + 8, LARGEST_SENDER_CERT,
            sizes[SENDER_CERT],
        )
    at[0] += SECURITY_HEADER_SIZE
    for i in range(<size_t>PROVIDER_INFO + 1):
        if sizes[i]:
            if wire_unlikely(sizes[i] > size - at[0]):
                return set_fault_of(
                    fault, TRUNCATED, <uint32_t>(Field.SecurityID + i), at[0], sizes[i], size - at[0], sizes[i]
                )
            set_part(packet, i, at[0], sizes[i])
            packet.presence |= <uint32_t>HAS_SECURITY_ID << i
            at[0] = skip_padding(at[0] + sizes[i], size, packet)
    flags = load_u16(header)
    sender = flags & 0xF
    note_sender(packet, sender)
    if wire_unlikely(not is_sender_id(sender, data + packet.parts[SECURITY_ID].offset, sizes[SECURITY_ID])):
        packet.violations |= SENDER_ID
    if wire_unlikely(sizes[PROVIDER_INFO] or (sizes[SIGNATURE] and not flags & DEFAULT_PROVIDER)):
        judge_provider(data, packet)
    if wire_unlikely(flags & (AU_OR_AS | RESERVED_SECURITY)):
        packet.violations |= SECURITY_FLAGS if flags & AU_OR_AS else 0
        packet.violations |= RESERVED_FLAGS if flags & RESERVED_SECURITY else 0
    if wire_unlikely(not (
        sizes[SECURITY_ID] or sizes[ENCRYPTION_KEY] or sizes[SIGNATURE] or sizes[SENDER_CERT] or sizes[PROVIDER_INFO]
    )):
        packet.violations |= NO_SECURITY_DATA
    return 0


cdef inline int read_label(
    const uint8_t* data, size_t size, size_t* at, uint32_t units, Packet* packet, Fault* fault
) noexcept nogil:
    cdef size_t length
    if wire_unlikely(units > LARGEST_LABEL):
        return set_fault_of(
            fault, BAD_SIZE, Field.LabelLength, at[0] - PROPERTIES_HEADER_SIZE + 1, LARGEST_LABEL, units, units
        )
    if wire_unlikely(units > (size - at[0]) // 2):
        return set_fault_of(fault, TRUNCATED, Field.Label, at[0], 2 * units, size - at[0], units)
    length = units_to_null(data, size, at[0], units)
    set_part(packet, LABEL, at[0], 2 * length)
    at[0] += 2 * units
    if wire_unlikely(units and length + 1 != units):
        packet.violations |= LABEL_TERMINATOR
    return 0


cdef inline bint is_cipher(uint32_t algorithm, uint32_t privacy) noexcept nogil:
    """Return True if a PrivacyLevel allows an EncryptionAlgorithm; a level without a meaning allows all of them."""
    if algorithm - <uint32_t>FIRST_AES <= <uint32_t>(LAST_AES - FIRST_AES):
        return privacy != 1 and privacy != 3
    return (algorithm == RC4 or algorithm == RC2) and privacy != 5


cdef inline void note_message_class(Packet* packet, uint32_t message_class) noexcept nogil:
    """MessageClass of the MessagePropertiesHeader, and whether it has a name."""
    packet.numbers[MESSAGE_CLASS] = <uint16_t>message_class
    if message_class == 0 or is_message_class(message_class):
        packet.presence |= HAS_MESSAGE_CLASS


cdef inline int read_properties(
    const uint8_t* data, size_t size, size_t* at, Packet* packet, Fault* fault
) noexcept nogil:
    """MessagePropertiesHeader with the label, the extension and the body: [MS-MQMQ] 2.2.19.3."""
    cdef const uint8_t* header = data + at[0]
    cdef uint32_t extension_size
    cdef uint32_t message_size
    cdef uint32_t message_class
    cdef uint32_t privacy
    cdef uint32_t unusual
    if wire_unlikely(size - at[0] < PROPERTIES_HEADER_SIZE):
        return set_fault(
            fault, TRUNCATED, Field.MessagePropertiesHeader, at[0], PROPERTIES_HEADER_SIZE, size - at[0]
        )
    packet.sections[PROPERTIES] = header
    packet.presence |= HAS_PROPERTIES
    at[0] += PROPERTIES_HEADER_SIZE
    if read_label(data, size, at, header[1], packet, fault) != 0:
        return -1
    extension_size = load_u32(header + EXTENSION_SIZE_AT)
    if wire_unlikely(extension_size > size - at[0]):
        return set_fault_of(
            fault, TRUNCATED, Field.ExtensionData, at[0], extension_size, size - at[0], extension_size
        )
    set_part(packet, EXTENSION_DATA, at[0], extension_size)
    at[0] += extension_size
    message_size = load_u32(header + MESSAGE_SIZE_AT)
    if wire_unlikely(message_size > size - at[0]):
        return set_fault_of(fault, TRUNCATED, Field.MessageBody, at[0], message_size, size - at[0], message_size)
    set_part(packet, BODY, at[0], message_size)
    at[0] = skip_padding(at[0] + message_size, size, packet)
    message_class = load_u16(header + MESSAGE_CLASS_AT)
    note_message_class(packet, message_class)
    privacy = load_u32(header + PRIVACY_LEVEL_AT)
    unusual = (
        privacy | header[0] | message_class & CLASS_BITS_UNUSED | packet.sections[SECURITY][0] & BODY_ENCRYPTED
        | load_u32(packet.sections[USER] + USER_HEADER_FLAGS_AT) & (7 << USER_ADMIN_SHIFT)
        | load_u32(header + HASH_ALGORITHM_AT) ^ SHA_1
    )
    if wire_unlikely(
        unusual or load_u32(header + ALLOCATION_BODY_SIZE_AT) < message_size
        or not is_cipher(load_u32(header + ENCRYPTION_ALGORITHM_AT), 0)
    ):
        judge_properties(header, message_size, packet)
    if message_class == 0 and is_notify_queue(data, &packet.queues[DESTINATION_QUEUE]):
        packet.presence |= HAS_NOTIFICATION
        packet.codes[NOTIFICATION] = PLAIN if privacy == 0 else ENCRYPTED
    return 0


cdef inline int read_debug(
    const uint8_t* data, size_t size, size_t* at, Packet* packet, Fault* fault
) noexcept nogil:
    """DebugHeader: [MS-MQMQ] 2.2.20.8."""
    cdef uint32_t queue_type
    if size - at[0] < DEBUG_HEADER_SIZE:
        return set_fault(fault, TRUNCATED, Field.DebugHeader, at[0], DEBUG_HEADER_SIZE, size - at[0])
    queue_type = data[at[0]] & 3
    if queue_type > 1:
        return set_fault(fault, BAD_FLAG, Field.DebugHeader_Flags, at[0], 0, load_u16(data + at[0]))
    if load_u16(data + at[0]) & RESERVED_DEBUG:
        packet.violations |= RESERVED_FLAGS
    at[0] += DEBUG_HEADER_SIZE
    if queue_type:
        if size - at[0] < 16:
            return set_fault(fault, TRUNCATED, Field.DebugHeader_QueueIdentifier, at[0], 16, size - at[0])
        packet.sections[DEBUG_QUEUE] = data + at[0]
        packet.presence |= HAS_DEBUG_QUEUE
        at[0] += 16
    return 0


cdef inline int read_optional_headers(
    const uint8_t* data, size_t size, size_t* at, uint32_t user_flags, QueueLists* lists, Packet* packet,
    Fault* fault,
) noexcept nogil:
    """The headers after the MessagePropertiesHeader, and reserved flags, which few packets have."""
    if load_u16(data + BASE_HEADER_FLAGS_AT) & (FLAG_DEBUG | FLAG_TRACING) == FLAG_TRACING:
        packet.violations |= MISSING_DEBUG_HEADER
    if load_u16(data + BASE_HEADER_FLAGS_AT) & RESERVED_BASE or user_flags & <uint32_t>RESERVED_USER:
        packet.violations |= RESERVED_FLAGS
    if data[2] & FLAG_DEBUG and read_debug(data, size, at, packet, fault) != 0:
        return -1
    if user_flags & USER_HTTP:
        if read_http(data, size, at, user_flags, packet, fault) != 0:
            return -1
        packet.violations |= 0 if packet.presence & (HAS_SRMP_ENVELOPE | HAS_COMPOUND) else SENT_OVER_HTTP
    if user_flags & USER_SOAP and read_soap(data, size, at, packet, fault) != 0:
        return -1
    if user_flags & USER_MULTI_QUEUE and read_multi_queue(data, size, at, lists, packet, fault) != 0:
        return -1
    return 0


cdef inline int read_headers(
    const uint8_t* data, size_t packet_size, size_t* at, QueueLists* lists, Packet* packet, Fault* fault
) noexcept nogil:
    """All headers after the BaseHeader, from ``at`` on, which moves to the end of the last."""
    cdef uint32_t base = load_u16(data + BASE_HEADER_FLAGS_AT)
    cdef uint32_t flags
    if wire_unlikely(base & FLAG_INTERNAL):
        return set_fault(fault, BAD_TYPE, Field.BaseHeader_Flags, BASE_HEADER_FLAGS_AT, 0, base)
    if read_user_header(data, packet_size, at, packet, fault) != 0:
        return -1
    flags = load_u32(packet.sections[USER] + USER_HEADER_FLAGS_AT)
    if flags & USER_TRANSACTION and read_transaction(data, packet_size, at, packet, fault) != 0:
        return -1
    if flags & USER_SECURITY and read_security(data, packet_size, at, packet, fault) != 0:
        return -1
    if flags & USER_PROPERTIES and read_properties(data, packet_size, at, packet, fault) != 0:
        return -1
    if wire_unlikely(
        base & (FLAG_DEBUG | FLAG_TRACING | RESERVED_BASE)
        or flags & (USER_HTTP | USER_SOAP | USER_MULTI_QUEUE | <uint32_t>RESERVED_USER)
    ):
        if read_optional_headers(data, packet_size, at, flags, lists, packet, fault) != 0:
            return -1
    return 0


cdef inline int read_message_of(
    const uint8_t* data, size_t size, size_t lost, bint strict, QueueLists* lists, Packet* packet, Fault* fault
) noexcept nogil:
    """Read a packet whose last ``lost`` bytes were not captured; the constant 0 leaves out the code for these."""
    cdef size_t at = BASE_HEADER_SIZE
    cdef size_t packet_size
    cdef uint32_t base
    clear_packet(packet)
    if read_base_header(data, size, lost, packet, fault) != 0:
        return -1
    packet_size = packet.size
    base = load_u16(data + BASE_HEADER_FLAGS_AT)
    if read_headers(data, min(size, packet_size) if lost else packet_size, &at, lists, packet, fault) != 0:
        return -1
    if lost and packet.extent > size:
        return lacks_end(packet, size, fault)
    packet.end = at
    if base & FLAG_SESSION:
        packet.sections[SESSION] = data + packet_size
        packet.presence |= HAS_SESSION
        packet.violations |= 0 if load_u16(data + packet_size + 12) else WINDOW_SIZE
    if wire_unlikely(packet_size - at > 3 or packet.extent != size):
        packet.violations |= TRAILING_BYTES
        packet.presence |= HAS_TRAILING
        set_trailing(packet, packet_size, size)
    if wire_unlikely(strict and packet.violations & DISCARDABLE):
        return message_violation_fault(data, size, packet, fault)
    packet.presence |= DECODED
    packet.codes[KIND] = USER_MESSAGE
    if wire_unlikely(packet.parts[BODY].length == ACK_BODY_SIZE and not base & FLAGS_OF_NO_ACK):
        recognise_ack(data, packet)
    return 0


cdef inline int read_message(
    const uint8_t* data, size_t size, bint strict, QueueLists* lists, Packet* packet, Fault* fault
) noexcept nogil:
    """One UserMessage packet. 0, or -1 with ``fault`` set.

    ``lists``, unless NULL, are arrays for the queues of a MultiQueueFormatHeader.
    """
    return read_message_of(data, size, 0, strict, lists, packet, fault)


cdef int read_captured_message(
    const uint8_t* data, size_t size, size_t lost, QueueLists* lists, Packet* packet, Fault* fault
) noexcept nogil
cdef void note_complete_fields(Packet* packet, const Fault* fault) noexcept nogil
cdef size_t largest_message(const Packet* packet, FormatName** lists) noexcept nogil
cdef size_t write_message(
    const Packet* packet, const uint8_t* payload, FormatName** lists, uint8_t* target
) noexcept nogil
cdef void put_base_header(
    uint8_t* target, uint32_t flags, size_t packet_size, uint32_t time_to_reach_queue
) noexcept nogil
cdef uint8_t* put_session_header(uint8_t* target, const Packet* packet) noexcept nogil
