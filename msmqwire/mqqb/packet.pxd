"""What a reader finds in a packet, and a writer puts into one: places of headers, of variable parts, of queues."""

from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint32_t
from libc.string cimport memset

from msmqwire.columns.convert cimport TextSpan
from msmqwire.mqqb.fields cimport (
    FIELD_BASE_HEADER, FIELD_PACKET_SIZE, FIELD_SIGNATURE, FIELD_VERSION_NUMBER,
)
from msmqwire.mqqb.framing cimport (
    BASE_HEADER_SIZE, LARGEST_PACKET, PACKET_SIGNATURE, VERSION_NUMBER, packet_extent
)
from msmqwire.wire.cursor cimport load_u32
from msmqwire.wire.fault cimport (
    BAD_SIGNATURE, BAD_SIZE, BAD_VERSION, TOO_LARGE, TRUNCATED, Fault, set_fault
)
from msmqwire.wire.format_name cimport FormatName
from msmqwire.wire.simd cimport wire_unlikely

# Sections: where fixed fields are loaded from; one that the packet lacks is 64 zeros, so that loads need not ask
cdef enum:
    BASE             # BaseHeader
    USER             # UserHeader
    CONNECTOR        # its ConnectorType
    TRANSACTION      # TransactionHeader
    CONNECTOR_QM     # its ConnectorQMGuid
    SECURITY         # SecurityHeader
    PROPERTIES       # MessagePropertiesHeader
    DEBUG_QUEUE      # DebugHeader.QueueIdentifier
    SESSION          # SessionHeader
    ACKNOWLEDGED     # body of an OrderAck or FinalAck packet
    FINAL            # the same of a FinalAck packet only
    ESTABLISH        # EstablishConnectionHeader
    PARAMETERS       # ConnectionParametersHeader
    WINDOW           # WindowSize, wherever it stands
    PINGED           # a ping from its first byte
    SECTION_COUNT

# Parts: what has a length of its own, in wire order
cdef enum:
    SECURITY_ID
    ENCRYPTION_KEY
    SIGNATURE
    SENDER_CERT
    PROVIDER_INFO
    LABEL
    EXTENSION_DATA
    BODY
    SOAP_HEADER
    SOAP_BODY
    MULTI_QUEUE_SIGNATURE
    PART_COUNT

# Conclusions from several fields, a byte each
cdef enum:
    KIND
    DELIVERY
    SENDER
    MESSAGE_CLASS
    NOTIFICATION
    REFUSED
    CONCLUSION_COUNT

cdef enum:
    DESTINATION_QUEUE
    ADMIN_QUEUE
    RESPONSE_QUEUE
    QUEUE_COUNT

cdef enum:
    USER_HEADER_SIZE = 48
    USER_FLAGS_AT = 44
    TRANSACTION_HEADER_SIZE = 20
    SECURITY_HEADER_SIZE = 16
    PROPERTIES_HEADER_SIZE = 56
    DEBUG_HEADER_SIZE = 4
    SOAP_SECTION_SIZE = 8
    ADDRESS_HEADER_FIXED_SIZE = 12
    ACK_BODY_SIZE = 36
    LARGEST_LABEL = 250         # code units with the U+0000
    LARGEST_SENDER_CERT = 0xFFFF
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
    USER_SECURITY = 1 << 19
    USER_TRANSACTION = 1 << 20
    USER_PROPERTIES = 1 << 21
    USER_CONNECTOR_TYPE = 1 << 22
    USER_MULTI_QUEUE = 1 << 23
    USER_SOAP = 1 << 28

cdef enum SoapSectionId:
    SOAP_HEADER_ID = 0x0320
    SOAP_BODY_ID = 0x0384

cdef enum:
    SIGNATURE_HEADER_ID = 0x015E
    NO_MESSAGE_CLASS = 0xFF


cdef struct Packet:
    uint32_t presence
    uint32_t violations
    uint8_t[CONCLUSION_COUNT] concluded
    size_t extent                    # bytes of the packet with a SessionHeader behind it
    size_t end                       # of its last header, without what pads it; of a SessionHeader behind it too
    size_t multi_queue_at            # where the MultiQueueFormatHeader begins
    const uint8_t* sections[SECTION_COUNT]
    TextSpan[PART_COUNT] parts
    FormatName[QUEUE_COUNT] queues
    uint32_t[QUEUE_COUNT] list_counts  # elements of the lists in a MultiQueueFormatHeader


# What a section is that a packet lacks
cdef uint8_t[BLANK_SIZE] BLANK


cdef inline void clear_packet(Packet* packet) noexcept nogil:
    cdef size_t i
    memset(packet, 0, sizeof(packet[0]))
    for i in range(<size_t>SECTION_COUNT):
        packet.sections[i] = BLANK


cdef inline size_t padded(size_t size) noexcept nogil:
    return (size + 3) & ~<size_t>3


cdef inline int read_base_header(const uint8_t* data, size_t size, Packet* packet, Fault* fault) noexcept nogil:
    """The BaseHeader of the packet that ``size`` bytes hold: [MS-MQMQ] 2.2.19.1."""
    cdef uint32_t packet_size
    if wire_unlikely(size < BASE_HEADER_SIZE):
        return set_fault(fault, TRUNCATED, FIELD_BASE_HEADER, 0, BASE_HEADER_SIZE, size)
    if wire_unlikely(data[0] != VERSION_NUMBER):
        return set_fault(fault, BAD_VERSION, FIELD_VERSION_NUMBER, 0, VERSION_NUMBER, data[0])
    if wire_unlikely(load_u32(data + 4) != PACKET_SIGNATURE):
        return set_fault(fault, BAD_SIGNATURE, FIELD_SIGNATURE, 4, PACKET_SIGNATURE, load_u32(data + 4))
    packet_size = load_u32(data + 8)
    if wire_unlikely(packet_size < BASE_HEADER_SIZE):
        return set_fault(fault, BAD_SIZE, FIELD_PACKET_SIZE, 8, BASE_HEADER_SIZE, packet_size)
    if wire_unlikely(packet_size > LARGEST_PACKET):
        return set_fault(fault, TOO_LARGE, FIELD_PACKET_SIZE, 8, LARGEST_PACKET, packet_size)
    packet.extent = packet_extent(data)
    if wire_unlikely(packet.extent > size):
        return set_fault(fault, TRUNCATED, FIELD_PACKET_SIZE, 8, packet.extent, size)
    packet.sections[BASE] = data
    return 0


cdef inline size_t first_extra_byte(const Packet* packet, size_t packet_size) noexcept nogil:
    """Where the bytes begin that no header accounts for, up to three that pad the last one allowed."""
    return packet.end if packet_size - packet.end > 3 else packet.extent
