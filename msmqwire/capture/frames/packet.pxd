"""A packet in a frame: its headers, and what was found on the way to it."""

from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint32_t

from msmqwire.capture.frames._fragments cimport Datagram, Fragment
from msmqwire.capture.frames._frame cimport Ends
from msmqwire.wire.cursor cimport load_u16, load_u32
from msmqwire.wire.simd cimport wire_bswap16

# Values of EtherType. Below 0x0600 it is a length (IEEE 802.3); Linux has numbers of its own for two kinds of those.
cdef enum:
    TYPE_LINUX_802_3 = 0x0001
    TYPE_LINUX_802_2 = 0x0004
    SMALLEST_TYPE = 0x0600
    TYPE_IPV4 = 0x0800
    TYPE_IPX = 0x8137
    TYPE_IPV6 = 0x86DD
    TYPE_VLAN = 0x8100          # IEEE 802.1Q
    TYPE_SERVICE_VLAN = 0x88A8  # IEEE 802.1ad
    TYPE_OLD_QINQ_1 = 0x9100
    TYPE_OLD_QINQ_2 = 0x9200

# Values of Protocol and Next Header
cdef enum:
    TCP_PROTOCOL = 6
    UDP_PROTOCOL = 17
    PGM_PROTOCOL = 113


# As little-endian numbers
cdef enum:
    SIGNATURE = 0x524F494C  # "LIOR"
    POST = 0x54534F50


# A UDP datagram, a TCP segment or an IPX packet in a frame.
cdef struct Packet:
    Ends ends
    const uint8_t* header   # of UDP, TCP or IPX
    const uint8_t* payload
    size_t size         # of the payload, as far as it was captured
    size_t missing      # bytes of it that were not captured; a datagram that lacks some is PAYLOAD_CUT
    uint32_t path       # the encapsulations around it, as _encapsulations.pxd describes
    uint32_t unsupported  # the encapsulation that is not read, or the link type
    const Datagram* datagram  # reassembled from fragments, that it is in; NULL if it is in the frame
    Fragment part           # of an IP datagram, where the frame holds one
    size_t needed       # if the frame is malformed, as the text of its reason uses it
    size_t available


# What a frame is, when it is not malformed for some Reason
cdef enum:
    FOUND = 0
    OTHER = -1
    PART = -2
    UNSUPPORTED_LINK = -3
    UNSUPPORTED_ENCAPSULATION = -4
    UNREAD = -6  # as OTHER, and it may be of a stream of MSMQ that is not read: what it carries is in the packet
    NEXT = -5  # between layers: the header that ``Layer.type`` announces comes next


# The part of a frame that a layer reads: [position, captured), and how far the packet extends by its own counts.
cdef struct Layer:
    const uint8_t* frame
    size_t position
    size_t captured
    size_t end
    uint32_t type      # EtherType of the header at the position; after an IP header its protocol

cdef enum:
    UDP_HEADER = 8
    TCP_HEADER = 20
    IPX_HEADER = 30
    PLAIN_SPACE = 65536 + 14 - 42  # the longest IP packet after its link header, and one byte


cdef inline bint may_be_unread(const uint8_t* data, size_t size) noexcept nogil:
    """Return True if a segment may be of a stream of MSMQ that is not read: a packet, RPC or HTTP.

    Their first bytes are 0x10, 5 and "P", of which the first and the last have the same low bits.
    """
    if size < 16 or not <uint32_t>0x10020 >> (data[0] & 31) & 1:
        return False
    return load_u32(data + 4) == SIGNATURE or load_u16(data) == 5 or load_u32(data) == POST


cdef inline size_t network_u16(const uint8_t* source) noexcept nogil:
    return wire_bswap16(load_u16(source))


cdef inline int short_of(Packet* found, int reason, size_t needed, size_t available) noexcept nogil:
    found.needed = needed
    found.available = available
    return reason
