"""The writer of session packets: what it writes depends on the values of a packet only."""

from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint32_t
from libc.string cimport memcpy, memset

from msmqwire.mqqb.framing cimport FLAG_INTERNAL, FLAG_SESSION, SESSION_HEADER_SIZE
from msmqwire.mqqb._kernel cimport (
    CONNECTION_PARAMETERS, ESTABLISH, ESTABLISH_CONNECTION, KIND, PARAMETERS, PING, PINGED, REFUSED, WINDOW, Packet,
)
from msmqwire.mqqb.message._kernel cimport put_base_header, put_session_header
from msmqwire.wire.cursor cimport load_u16, store_u16

cdef enum:
    SESSION_PRIORITY = 3    # PR of BaseHeader.Flags, which has no meaning in a session
    PING_KEPT = 1           # bits of Ping.Flags


cdef size_t write_session(const Packet* packet, uint8_t* target) noexcept nogil:
    """Write a packet of a session, or a ping, and return its size."""
    cdef uint8_t* end = target + INTERNAL_FIXED_SIZE
    cdef uint32_t internal
    cdef uint32_t base = SESSION_PRIORITY | FLAG_INTERNAL
    if packet.codes[KIND] == PING:
        memcpy(target, packet.sections[PINGED], PING_SIZE)
        store_u16(target, load_u16(target) & PING_KEPT | (PING_REFUSED if packet.codes[REFUSED] else 0))
        store_u16(target + PING_SIGNATURE_AT, PING_SIGNATURE)
        return PING_SIZE
    if packet.codes[KIND] == ESTABLISH_CONNECTION:
        internal = PACKET_ESTABLISH
        memcpy(end, packet.sections[ESTABLISH], 38)
        memset(end + ESTABLISH_CONNECTION_RESERVED_AT, 0, 2)
        memset(end + 40, 0x5A, ESTABLISH_SIZE - 40)
        end += ESTABLISH_SIZE
    elif packet.codes[KIND] == CONNECTION_PARAMETERS:
        internal = PACKET_PARAMETERS
        memcpy(end, packet.sections[PARAMETERS], 8)
        store_u16(end + CONNECTION_PARAMETERS_RESERVED_AT, 0)
        memcpy(end + WINDOW_SIZE_AT, packet.sections[WINDOW], 2)
        end += 12
    else:
        internal = PACKET_SESSION_ACK
        base |= FLAG_SESSION
        put_session_header(end, packet)
        memcpy(end + SESSION_HEADER_WINDOW_SIZE_AT, packet.sections[WINDOW], 2)
        end += SESSION_HEADER_SIZE
    if packet.codes[REFUSED]:
        internal |= PACKET_REFUSED
    put_base_header(target, base, <size_t>(end - target), FOR_EVER)
    store_u16(target + BASE_HEADER_SIZE, 0)
    store_u16(target + INTERNAL_FLAGS_AT, internal)
    return <size_t>(end - target)
