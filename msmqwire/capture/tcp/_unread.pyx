"""Streams of MSMQ that are not read: its packets on other ports, SRMP over HTTP, PGM, and its interfaces of RPC.

A stream is recognized by a segment that begins as such streams do. Both directions are one stream, which counts once
on the lower of its ports: as a rule clients have the higher one.
"""

from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint16_t, uint64_t
from libc.string cimport memcmp

from msmqwire.capture.frames._frame cimport MOST_UNREAD, Counts
from msmqwire.capture.frames.packet cimport Packet, network_u16
from msmqwire.capture.tcp._flows cimport (
    DSCOMM, DSCOMM2, MSMQ, NOTHING, PGM, QM2QM, QMCOMM, QMCOMM2, QMMGMT, REMOTE_READ, SRMP, Endpoints, Streams,
    UnreadKind, hash_of, is_lower, turned,
)
from msmqwire.capture.tcp._streams cimport read_endpoints
from msmqwire.mqqb.framing cimport NOT_A_PACKET, frame_packet
from msmqwire.wire._transport cimport Transport
from msmqwire.wire.cursor cimport load_u16

UNREAD_PROTOCOLS: dict[int, str] = {
    MSMQ: "MSMQ",
    SRMP: "SRMP over HTTP",
    PGM: "PGM",
    QMCOMM: "RPC interface qmcomm [MS-MQMP]",
    QMCOMM2: "RPC interface qmcomm2 [MS-MQMP]",
    QM2QM: "RPC interface qm2qm [MS-MQQP]",
    REMOTE_READ: "RPC interface RemoteRead [MS-MQRR]",
    QMMGMT: "RPC interface qmmgmt [MS-MQMR]",
    DSCOMM: "RPC interface dscomm [MS-MQDS]",
    DSCOMM2: "RPC interface dscomm2 [MS-MQDS]",
}

cdef enum:
    UUID_SIZE = 16
    INTERFACES = 7
    # Of a bind (C706 12.6.4.3)
    PDU_HEADER = 16
    CONTEXTS_AT = 28
    CONTEXT_SIZE = 24  # and SYNTAX_SIZE for each transfer syntax
    SYNTAX_SIZE = 20
    LITTLE_ENDIAN = 0x10


cdef struct Interface:
    UnreadKind kind
    const uint8_t* uuid


# The UUIDs as little-endian binds have them
cdef Interface[INTERFACES] KNOWN = [
    Interface(QMCOMM, b"\x30\xa0\xb3\xfd\x5f\x06\xd1\x11\xbb\x9b\x00\xa0\x24\xea\x55\x25"),
    Interface(QMCOMM2, b"\x80\x2b\xd1\x76\x67\x34\xd3\x11\x91\xff\x00\x90\x27\x2f\x9e\xa3"),
    Interface(QM2QM, b"\x80\xa9\x88\x10\xe5\xea\xd0\x11\x8d\x9b\x00\xa0\x24\x53\xc3\x37"),
    Interface(REMOTE_READ, b"\xdd\x34\x91\x1a\x39\x7b\xba\x45\xad\x88\x44\xd0\x1c\xa4\x7f\x28"),
    Interface(QMMGMT, b"\xe0\x8e\x20\x41\x70\xe9\xd1\x11\x9b\x9e\x00\xe0\x2c\x06\x4c\x39"),
    Interface(DSCOMM, b"\x80\x7a\xdf\x77\x98\xf2\xd0\x11\x83\x58\x00\xa0\x24\xc4\x80\xa8"),
    Interface(DSCOMM2, b"\x10\xca\x8c\x70\x69\x95\xd1\x11\xb2\xa5\x00\x60\x97\x7d\x81\x18"),
]

# Factors that need no secret: a stream that goes uncounted because another has its fingerprint costs its sender no less
cdef uint64_t[6] KEYS_OF_FINGERPRINTS = [
    0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB, 0xD6E8FEB86659FD93, 0xA0761D6478BD642F,
    0xE7037ED1A0B428DB,
]


cdef UnreadKind interface_of(const uint8_t* data, size_t size) noexcept nogil:
    """The interface of MSMQ among those that a bind names; NOTHING if it names others."""
    cdef size_t at = CONTEXTS_AT
    cdef size_t left, i, j
    if size < CONTEXTS_AT or not data[4] & LITTLE_ENDIAN:
        return NOTHING
    left = data[CONTEXTS_AT - 4]  # contexts
    while left and CONTEXT_SIZE <= size - at:
        for i in range(<size_t>INTERFACES):
            if memcmp(data + at + 4, KNOWN[i].uuid, UUID_SIZE) == 0:
                return KNOWN[i].kind
        j = CONTEXT_SIZE + <size_t>data[at + 2] * SYNTAX_SIZE
        if j > size - at:
            break
        at += j
        left -= 1
    return NOTHING


cdef inline uint8_t lower(uint8_t letter) noexcept nogil:
    return letter | 0x20 if 0x41 <= letter <= 0x5A else letter


cdef bint has_text(const uint8_t* data, size_t size, const uint8_t* text, size_t length) noexcept nogil:
    """Return True if a text of lower-case letters is somewhere in the data, in letters of any case."""
    cdef size_t i, j
    if size < length:
        return False
    for i in range(size - length + 1):
        j = 0
        while j < length and lower(data[i + j]) == text[j]:
            j += 1
        if j == length:
            return True
    return False


cdef bint is_srmp(const uint8_t* data, size_t size) noexcept nogil:
    """Return True if a request of HTTP has the target or the action of SRMP."""
    if memcmp(data, b"POST ", 5) != 0:
        return False
    return has_text(data, min(size, <size_t>16), b" /msmq/", 7) or has_text(data, size, b'"msmqmessage"', 13)


cdef UnreadKind kind_of(const uint8_t* data, size_t size) noexcept nogil:
    """Return what a segment begins with; 16 bytes or more of it were captured."""
    cdef size_t total = 0
    if load_u16(data) == 5 and (data[2] == 11 or data[2] == 14):  # version 5.0: bind, or alter context
        return interface_of(data, size)
    if is_srmp(data, size):
        return SRMP
    return MSMQ if frame_packet(data, size, &total) != NOT_A_PACKET else NOTHING


cdef void note_unread(Streams* streams, const Packet* found, Counts* counts) noexcept nogil:
    """Count the stream of a segment or packet that is not read, once, if it is one of MSMQ."""
    cdef UnreadKind kind = PGM
    cdef Endpoints ends
    cdef uint64_t fingerprint
    cdef uint16_t port
    cdef size_t i
    if not streams.kinds or streams.unread.count == <size_t>MOST_UNREAD:
        return
    if found.ends.transport == Transport.TCP:
        kind = kind_of(found.payload, found.size)
        if kind == NOTHING:
            return
    read_endpoints(found, &ends)
    if not is_lower(&ends):
        ends = turned(&ends)
    fingerprint = <uint64_t>hash_of(KEYS_OF_FINGERPRINTS, &ends) << 8 | <uint64_t>kind
    for i in range(streams.unread.count):
        if streams.unread.fingerprints[i] == fingerprint:
            return
    port = <uint16_t>min(network_u16(found.header), network_u16(found.header + 2))
    streams.unread.fingerprints[streams.unread.count] = fingerprint
    streams.unread.count += 1
    counts.unread[counts.unread_count].kind = <uint8_t>kind
    counts.unread[counts.unread_count].port = port
    counts.unread_count += 1
