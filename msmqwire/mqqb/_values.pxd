"""Values of packets as Python objects: read from a packet, and built into one."""

from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint32_t

from msmqwire.columns._convert cimport TextSpan
from msmqwire.mqqb._kernel cimport (
    BODY, BODY_TYPE_AT, COMPOUND_BODY, PRIVACY_LEVEL_AT, PROPERTIES, SECURITY, Draft, Packet
)
from msmqwire.wire.cursor cimport load_u32
from msmqwire.wire._format_name cimport FormatName

cdef enum:
    SENDER_IS_SID = 1               # ST of SecurityHeader.Flags
    BODY_ENCRYPTED = 1 << 5         # EB

# The derived columns that are read together
cdef tuple OF_BODY
cdef tuple OF_EXTENSION


cdef inline uint32_t body_type_of(const Packet* packet) noexcept nogil:
    """BodyType of a packet with properties."""
    return load_u32(packet.sections[PROPERTIES] + BODY_TYPE_AT)


cdef inline bint is_encrypted(const Packet* packet) noexcept nogil:
    """Return True if the body of a packet with properties is encrypted: PrivacyLevel and EB."""
    cdef uint32_t privacy = load_u32(packet.sections[PROPERTIES] + PRIVACY_LEVEL_AT)
    return privacy != 0 or packet.sections[SECURITY][0] & BODY_ENCRYPTED != 0


cdef inline size_t body_part(const Packet* packet) noexcept nogil:
    """The part of a packet that is its body."""
    return BODY if packet.parts[BODY].length else COMPOUND_BODY


cdef object value_of(const Packet* packet, object owner, const uint8_t* data, str name, bint session)
cdef object format_name_of(object name, str field)
cdef object encodable_view(str name, object data)
cdef tuple queues_of(const Packet* packet, const uint8_t* data, size_t queue)
cdef bytes rewritten_message(const Packet* packet, const uint8_t* data)
cdef bytes packed_session(const Packet* packet)


cdef class Builder:
    """A packet under construction: numbers in a draft, texts and blobs one after the other."""
    cdef Draft draft
    cdef bytearray payload
    cdef list lists
    cdef bint session

    cdef int begin_like(self, Builder other) except -1
    cdef int put(self, str name, object value) except -1
    cdef int put_queues(self, object destination, object admin, object response) except -1
    cdef int put_list(self, size_t queue, object names) except -1
    cdef bytes packed(self)
    cdef TextSpan append(self, bytes data)
    cdef FormatName record_of(self, object name)
    cdef int put_queue(self, size_t queue, object name, str field) except -1
