"""From a captured frame to its UDP datagram, TCP segment or IPX packet.

The common cases are inline, all others are in _layers.pyx.

A set of ports, here and below, is 65536 bits in words: the bit of a port is that of its two bytes in network order read
as a little-endian number, so that nothing need be swapped to look one up.
"""

from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t

from msmqwire.capture.frames._encapsulations cimport VXLAN_FLAGS
from msmqwire.capture.frames._fragments cimport Datagram
from msmqwire.capture.frames._frame cimport set_addresses, set_ports
from msmqwire.capture.frames.packet cimport (
    FOUND, IPX_HEADER, NEXT, OTHER, PART, PLAIN_SPACE, SMALLEST_TYPE, TCP_HEADER, TCP_PROTOCOL,
    TYPE_IPV4, TYPE_IPV6, TYPE_IPX, TYPE_LINUX_802_2, TYPE_LINUX_802_3, TYPE_OLD_QINQ_1, TYPE_OLD_QINQ_2,
    TYPE_SERVICE_VLAN, TYPE_VLAN, UDP_HEADER, UDP_PROTOCOL, UNREAD, UNSUPPORTED_ENCAPSULATION, UNSUPPORTED_LINK,
    Layer, PGM_PROTOCOL, Packet, may_be_unread, network_u16, short_of,
)
from msmqwire.wire._address cimport IPV4
from msmqwire.wire.cursor cimport load_u16, load_u32
from msmqwire.wire.simd cimport wire_bswap16, wire_unlikely
from msmqwire.wire._transport cimport Transport

# Link types as capture files number them (the LINKTYPE_ registry of tcpdump.org)
cdef enum Link:
    LINK_NULL = 0
    LINK_ETHERNET = 1
    LINK_PPP = 9
    LINK_RAW_BSD = 12
    LINK_RAW_OPENBSD = 14
    LINK_PPP_HDLC = 50
    LINK_PPP_ETHER = 51
    LINK_RAW = 101
    LINK_CISCO_HDLC = 104
    LINK_WLAN = 105
    LINK_LOOP = 108
    LINK_LINUX_SLL = 113
    LINK_RADIOTAP = 127
    LINK_USER2 = 149  # which systems of Apple used for PKTAP
    LINK_PPI = 192
    LINK_PPP_WITH_DIRECTION = 204
    LINK_MPLS = 219
    LINK_IPV4 = 228
    LINK_IPV6 = 229
    LINK_NFLOG = 239
    LINK_PKTAP = 258
    LINK_LINUX_SLL2 = 276


# The selected ports of each transport.
cdef struct Ports:
    const uint64_t* udp
    const uint64_t* tcp
    const uint64_t* ipx  # sockets, as IPX calls them


cdef inline bint has_port(const uint64_t* ports, const uint8_t* port) noexcept nogil:
    cdef uint32_t bit = load_u16(port)
    return ports[bit >> 6] >> (bit & 63) & 1


cdef inline bint wanted(const uint64_t* ports, const uint8_t* header) noexcept nogil:
    """Return True if the source or the destination port, with which ``header`` begins, is in the set ``ports``."""
    return has_port(ports, header + 2) or has_port(ports, header)


cdef inline size_t plain_datagram(const uint8_t* frame, size_t size, size_t space) noexcept nogil:
    """The length of a complete UDP datagram, at 34, in IPv4 without options (RFC 791) in Ethernet without tags.

    0 if the frame is anything else, or does not have 42 bytes and less than ``space`` more; ``space`` is PLAIN_SPACE,
    or 0 if frames are not of Ethernet.
    """
    cdef size_t length
    if wire_unlikely(size - 42 >= space):
        return 0
    # type 0x0800, version 4, 5 words of header; no fragment offset, no more fragments, protocol 17
    if wire_unlikely(load_u32(frame + 12) & 0x00FFFFFFU != 0x00450008U):
        return 0
    if wire_unlikely(load_u32(frame + 20) & 0xFF00FF3FU != 0x11000000U):
        return 0
    # Mostly both lengths go to the end of the frame, and two comparisons are enough
    if load_u16(frame + 16) == wire_bswap16(<uint16_t>(size - 14)):
        if load_u16(frame + 38) == wire_bswap16(<uint16_t>(size - 34)):
            return size - 34
    length = network_u16(frame + 38)
    if length >= UDP_HEADER and length <= size - 34 and length + 20 <= network_u16(frame + 16):
        return length
    return 0


cdef inline size_t plain_segment(const uint8_t* frame, size_t size, size_t* length) noexcept nogil:
    """The length of the header of a complete TCP segment, at 34, in IPv4 without options in Ethernet without tags.

    0 if the frame is anything else. ``length`` is that of its payload.
    """
    cdef size_t total, header
    if size < 54:
        return 0
    # type 0x0800, version 4, 5 words of header; no fragment offset, no more fragments, protocol 6
    if load_u32(frame + 12) & 0x00FFFFFFU != 0x00450008U or load_u32(frame + 20) & 0xFF00FF3FU != 0x06000000U:
        return 0
    total = network_u16(frame + 16)
    header = <size_t>(frame[46] >> 4) * 4
    if total > size - 14 or header < TCP_HEADER or header + 20 > total:
        return 0
    length[0] = total - 20 - header
    return header


cdef inline void parse_plain_segment(
    const uint8_t* frame, size_t header, size_t length, Packet* found
) noexcept nogil:
    """What is in a frame, with the lengths that ``plain_segment`` gave."""
    set_addresses(&found.ends, IPV4, frame + 26)
    set_ports(&found.ends, Transport.TCP, frame + 34)
    found.header = frame + 34
    found.payload = frame + 34 + header
    found.size = length
    found.missing = 0
    found.path = 0
    found.datagram = NULL


cdef inline bint may_be_tunnel(const uint8_t* port, size_t length) noexcept nogil:
    """Return True if a UDP datagram may be an encapsulation: by its destination port, or as VXLAN. One in six may.

    ``port`` is where the port is, in a datagram of ``length`` bytes.
    """
    # A bit for the low six bits of the first byte of each port in _encapsulations.pyx
    return <uint64_t>0x202972150 >> (port[0] & 63) & 1 or (length >= 16 and load_u32(port + 6) == VXLAN_FLAGS)


cdef int find_packet(
    const uint8_t* frame, size_t size, uint32_t link, const Ports* ports, Packet* found
) noexcept nogil
cdef int find_in_datagram(const Datagram* datagram, const Ports* ports, Packet* found) noexcept nogil
