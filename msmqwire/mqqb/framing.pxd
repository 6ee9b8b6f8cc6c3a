"""The end of a message packet in a stream of bytes: [MS-MQMQ] 2.2.19.1, [MS-MQQB] 3.1.5.1.2.

A packet begins with its BaseHeader:

    0 VersionNumber u8 0x10 | 1 Reserved u8 | 2 Flags u16 | 4 Signature "LIOR" | 8 PacketSize u32
    12 TimeToReachQueue u32

PacketSize does not count the SessionHeader after a packet, except in a SessionAck, which is internal.
"""

from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint32_t

from msmqwire.wire.cursor cimport load_u16, load_u32
from msmqwire.mqqb._generated cimport (
    BASE_HEADER_SIZE, FLAG_INTERNAL, FLAG_SESSION, LARGEST_PACKET, PACKET_SIGNATURE, SESSION_HEADER_SIZE,
    VERSION_NUMBER,
)


cdef enum Framing:
    FRAMED           # a complete packet
    INCOMPLETE       # perhaps the beginning of a packet
    NOT_A_PACKET


cdef inline bint has_session_header(const uint8_t* base_header) noexcept nogil:
    """Return True if a SessionHeader that PacketSize does not count follows the packet."""
    return load_u16(base_header + 2) & (FLAG_INTERNAL | FLAG_SESSION) == FLAG_SESSION


cdef inline Framing frame_packet(const uint8_t* data, size_t available, size_t* total) noexcept nogil:
    """Look for a packet at ``data``.

    ``total`` becomes the size of the packet, or of the BaseHeader if that is truncated; it is not set if no packet
    begins here. A truncated BaseHeader is judged by the available bytes.
    """
    cdef uint32_t size
    cdef size_t i
    if available < BASE_HEADER_SIZE:
        if available > 0 and data[0] != VERSION_NUMBER:
            return NOT_A_PACKET
        for i in range(4, min(available, <size_t>8)):
            if data[i] != <uint8_t>(<uint32_t>PACKET_SIGNATURE >> 8 * (i - 4)):
                return NOT_A_PACKET
        total[0] = BASE_HEADER_SIZE
        return INCOMPLETE
    size = load_u32(data + 8)
    if (
        data[0] != VERSION_NUMBER or load_u32(data + 4) != PACKET_SIGNATURE
        or size < BASE_HEADER_SIZE or size > LARGEST_PACKET
    ):
        return NOT_A_PACKET
    total[0] = size + (SESSION_HEADER_SIZE if has_session_header(data) else 0)
    return FRAMED if available >= total[0] else INCOMPLETE
