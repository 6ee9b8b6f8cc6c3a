"""What readers of messages seldom need: acknowledgments, SOAP, and which violation strict decoding faults."""

from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint16_t, uint32_t

from msmqwire.mqqb.fields cimport (
    FIELD_PACKET_SIZE, FIELD_SOAP_BODY, FIELD_SOAP_BODY_BODY, FIELD_SOAP_HEADER, FIELD_SOAP_HEADER_HEADER,
    FIELD_USER_HEADER_FLAGS, FINAL_ACK, HAS_ACKNOWLEDGED, HAS_FINAL_ACK, HAS_SOAP, ORDER_ACK, TRAILING_BYTES,
)
from msmqwire.mqqb.framing cimport BASE_HEADER_SIZE
from msmqwire.mqqb.packet cimport (
    ACKNOWLEDGED, BODY, DESTINATION_QUEUE, FINAL, KIND, LABEL, NO_MESSAGE_CLASS, PROPERTIES, SOAP_BODY,
    SOAP_BODY_ID, SOAP_HEADER, SOAP_HEADER_ID, SOAP_SECTION_SIZE, USER, USER_DELIVERY_SHIFT, USER_FLAGS_AT, Packet,
    first_extra_byte,
)
from msmqwire.mqqb.queues cimport is_order_queue, units_to_null
from msmqwire.wire.cursor cimport load_u16, load_u32
from msmqwire.wire.fault cimport BAD_FLAG, BAD_HEADER, BAD_SIZE, TRUNCATED, Fault, set_fault

from msmqwire.mqqb.schema import MESSAGE_CLASSES

cdef enum:
    MESSAGE_CLASS_COUNT = 20
    ACK_LABEL_UNITS = 15
    ORDER_ACK_CLASS = 0x00FF
    FIRST_FINAL_ACK_CLASS = 0x4000

cdef uint16_t[MESSAGE_CLASS_COUNT] MESSAGE_CLASS_NUMBERS
MESSAGE_CLASS_NUMBERS[:] = list(MESSAGE_CLASSES)

cdef const char* ACK_LABEL = "QM Ordering Ack"


cdef uint8_t message_class_place(uint32_t message_class) noexcept nogil:
    """The place of a message class among the names in schema.py, or NO_MESSAGE_CLASS."""
    cdef uint8_t place
    for place in range(MESSAGE_CLASS_COUNT):
        if MESSAGE_CLASS_NUMBERS[place] == message_class:
            return place
    return NO_MESSAGE_CLASS


cdef void recognise_ack(const uint8_t* data, Packet* packet) noexcept nogil:
    """Tell the packets that acknowledge transactional messages from others of their size: [MS-MQQB] 2.2.4, 2.2.5."""
    cdef uint32_t message_class = load_u16(packet.sections[PROPERTIES] + 2)
    cdef uint32_t delivery = load_u32(packet.sections[USER] + USER_FLAGS_AT) >> USER_DELIVERY_SHIFT & 3
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
        packet.concluded[KIND] = ORDER_ACK
    else:
        packet.concluded[KIND] = FINAL_ACK
        packet.sections[FINAL] = packet.sections[ACKNOWLEDGED]
        packet.presence |= HAS_FINAL_ACK


cdef int read_soap_section(
    const uint8_t* data, size_t size, size_t* at, uint32_t section_id, uint32_t section_field, uint32_t text_field,
    size_t part, Packet* packet, Fault* fault,
) noexcept nogil:
    cdef size_t left = size - at[0]
    cdef size_t units
    if left < SOAP_SECTION_SIZE:
        return set_fault(fault, TRUNCATED, section_field, at[0], SOAP_SECTION_SIZE, left)
    if load_u16(data + at[0]) != section_id:
        return set_fault(fault, BAD_HEADER, section_field, at[0], section_id, load_u16(data + at[0]))
    units = load_u32(data + at[0] + 4)
    at[0] += SOAP_SECTION_SIZE
    if 2 * units > left - SOAP_SECTION_SIZE:
        return set_fault(fault, TRUNCATED, text_field, at[0], 2 * units, left - SOAP_SECTION_SIZE)
    packet.parts[part].offset = <uint32_t>at[0]
    packet.parts[part].length = <uint32_t>(2 * units_to_null(data, size, at[0], units))
    at[0] += 2 * units
    return 0


cdef int read_soap(const uint8_t* data, size_t size, size_t* at, Packet* packet, Fault* fault) noexcept nogil:
    """SoapHeader: [MS-MQMQ] 2.2.20.7. Decision: nothing is aligned in it; nothing is said of it."""
    if read_soap_section(
        data, size, at, SOAP_HEADER_ID, FIELD_SOAP_HEADER, FIELD_SOAP_HEADER_HEADER, SOAP_HEADER, packet, fault
    ) != 0:
        return -1
    if read_soap_section(
        data, size, at, SOAP_BODY_ID, FIELD_SOAP_BODY, FIELD_SOAP_BODY_BODY, SOAP_BODY, packet, fault
    ) != 0:
        return -1
    packet.presence |= HAS_SOAP
    return 0


cdef int message_violation_fault(
    const uint8_t* data, size_t size, const Packet* packet, Fault* fault
) noexcept nogil:
    """The lowest violation for which a conforming receiver refuses the packet, as a fault."""
    cdef size_t flags_at = BASE_HEADER_SIZE + USER_FLAGS_AT
    cdef size_t extra = first_extra_byte(packet, load_u32(data + 8))
    if packet.violations & TRAILING_BYTES:
        return set_fault(fault, BAD_SIZE, FIELD_PACKET_SIZE, extra, extra, size)
    return set_fault(fault, BAD_FLAG, FIELD_USER_HEADER_FLAGS, flags_at, 0, load_u32(data + flags_at))
