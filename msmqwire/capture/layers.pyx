"""Link, network and transport headers, in general: what the inline way of layers.pxd does not take.

Each layer answers with where the next one begins, or with OTHER, or with the Reason why the frame is damaged. A frame
belongs to somebody else as soon as that can be seen; it is damaged only while it may be ours.
"""

from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint32_t, uint64_t

from msmqwire.capture.frames cimport (
    FRAGMENT, IP_CUT, IP_HEADER_LENGTH, IP_TOTAL_LENGTH, IP_VERSION, LINK_CUT, PAYLOAD_CUT, TCP_CUT, TCP_HEADER_LENGTH,
    UDP_CUT, UDP_LENGTH,
)

# Values of EtherType
cdef enum:
    TYPE_IPV4 = 0x0800
    TYPE_IPV6 = 0x86DD
    TYPE_VLAN = 0x8100          # IEEE 802.1Q
    TYPE_SERVICE_VLAN = 0x88A8  # IEEE 802.1ad
    TYPE_OLD_QINQ_1 = 0x9100
    TYPE_OLD_QINQ_2 = 0x9200

# Values of Next Header, beside those of Protocol
cdef enum:
    HOP_BY_HOP = 0
    ROUTING = 43
    FRAGMENT_HEADER = 44
    AUTHENTICATION = 51
    DESTINATION = 60
    MOBILITY = 135
    HOST_IDENTITY = 139
    SHIM6 = 140


# The part of a frame that a layer reads: [position, end) of what is captured, and how far the packet goes
# by its own account.
cdef struct Layer:
    const uint8_t* frame
    size_t position
    size_t captured
    size_t end
    uint32_t type


cdef int short_of(Packet* found, int reason, size_t needed, size_t available) noexcept nogil:
    found.needed = needed
    found.available = available
    return reason


cdef int read_ethernet(Layer* layer, Packet* found) noexcept nogil:
    """IEEE 802.3 with any number of VLAN tags; leaves the EtherType, or the length that stands in its place."""
    layer.position = 14
    if layer.captured < 14:
        return short_of(found, LINK_CUT, 14, layer.captured)
    layer.type = <uint32_t>network_u16(layer.frame + 12)
    while (
        layer.type == TYPE_VLAN or layer.type == TYPE_SERVICE_VLAN
        or layer.type == TYPE_OLD_QINQ_1 or layer.type == TYPE_OLD_QINQ_2
    ):
        if 4 > layer.captured - layer.position:
            return short_of(found, LINK_CUT, layer.position + 4, layer.captured)
        layer.type = <uint32_t>network_u16(layer.frame + layer.position + 2)
        layer.position += 4
    return FOUND


cdef int read_link(uint32_t link, Layer* layer, Packet* found) noexcept nogil:
    """Leave the position at the network header and its EtherType in ``type``."""
    if link == LINK_ETHERNET:
        return read_ethernet(layer, found)
    layer.position = 0
    if link == LINK_IPV4:
        layer.type = TYPE_IPV4
    elif link == LINK_IPV6:
        layer.type = TYPE_IPV6
    elif link == LINK_RAW or link == LINK_RAW_BSD or link == LINK_RAW_OPENBSD:
        if layer.captured < 1:
            return short_of(found, IP_CUT, 1, 0)
        layer.type = TYPE_IPV6 if layer.frame[0] >> 4 == 6 else TYPE_IPV4
    else:
        return OTHER
    return FOUND


cdef int read_ipv4(Layer* layer, Packet* found) noexcept nogil:
    """RFC 791; leaves the position behind the options and the protocol in ``type``."""
    cdef const uint8_t* ip = layer.frame + layer.position
    cdef size_t left = layer.captured - layer.position
    cdef size_t header, total
    if left < 20:
        return short_of(found, IP_CUT, 20, left)
    header = <size_t>(ip[0] & 15) * 4
    total = network_u16(ip + 2)
    layer.type = ip[9]
    if ip[0] >> 4 != 4:
        return short_of(found, IP_VERSION, 4, ip[0] >> 4)
    if header < 20:
        return short_of(found, IP_HEADER_LENGTH, 20, header)
    found.fragment = network_u16(ip + 6) & 0x3FFF != 0
    if (layer.type != UDP and layer.type != TCP) or network_u16(ip + 6) & 0x1FFF:
        return OTHER  # the ports are in the first fragment
    if total == 0:
        total = left  # a sender that leaves cutting to its network card does not know the length yet
    if total < header:
        return short_of(found, IP_TOTAL_LENGTH, header, total)
    if left < header:
        return short_of(found, IP_CUT, header, left)
    layer.end = layer.position + total
    layer.position += header
    return FOUND


cdef int read_ipv6(Layer* layer, Packet* found) noexcept nogil:
    """RFC 8200; leaves the position behind the extension headers and the last next header in ``type``."""
    cdef const uint8_t* ip = layer.frame + layer.position
    cdef const uint8_t* extension
    cdef size_t left = layer.captured - layer.position
    cdef size_t length
    if left < 40:
        return short_of(found, IP_CUT, 40, left)
    if ip[0] >> 4 != 6:
        return short_of(found, IP_VERSION, 6, ip[0] >> 4)
    layer.type = ip[6]
    length = network_u16(ip + 4)
    layer.end = layer.position + 40 + length
    if length == 0 and layer.type == HOP_BY_HOP:
        layer.end = layer.captured  # RFC 2675: the length is in a jumbo payload option
    layer.position += 40
    while (
        layer.type == HOP_BY_HOP or layer.type == ROUTING or layer.type == FRAGMENT_HEADER
        or layer.type == DESTINATION or layer.type == AUTHENTICATION or layer.type == MOBILITY
        or layer.type == HOST_IDENTITY or layer.type == SHIM6
    ):
        extension = layer.frame + layer.position
        left = layer.captured - layer.position
        if left < 8:
            return short_of(found, IP_CUT, 8, left)
        if layer.type == FRAGMENT_HEADER:
            length = 8
            if network_u16(extension + 2) & 0xFFF9:  # neither offset nor more fragments: a whole datagram, RFC 6946
                found.fragment = True
            if network_u16(extension + 2) & 0xFFF8:
                return OTHER
        elif layer.type == AUTHENTICATION:
            length = <size_t>extension[1] * 4 + 8
        else:
            length = <size_t>extension[1] * 8 + 8
        if length > left:
            return short_of(found, IP_CUT, length, left)
        layer.type = extension[0]
        layer.position += length
    if layer.end < layer.position:
        left = <size_t>(ip - layer.frame)
        return short_of(found, IP_TOTAL_LENGTH, layer.position - left, layer.end - left)
    return FOUND


cdef int read_udp(const Layer* layer, const uint64_t* ports, Packet* found) noexcept nogil:
    """RFC 768: the datagram, if it is to or from ``ports`` and all of it is there."""
    cdef const uint8_t* udp = layer.frame + layer.position
    cdef size_t left = layer.captured - layer.position
    cdef size_t room = layer.end - layer.position
    cdef size_t length
    if left >= 4 and room >= 4 and not wanted(ports, udp):
        return OTHER
    if room < UDP_HEADER:
        return short_of(found, UDP_CUT, UDP_HEADER, room)
    if left < UDP_HEADER:
        return short_of(found, UDP_CUT, UDP_HEADER, left)
    if found.fragment:
        return FRAGMENT
    length = network_u16(udp + 4)
    if length < UDP_HEADER or length > room:
        return short_of(found, UDP_LENGTH, length, room)
    if length > left:
        return short_of(found, PAYLOAD_CUT, length, left)
    found.header = udp
    found.payload = udp + UDP_HEADER
    found.size = length - UDP_HEADER
    return FOUND


cdef int read_tcp(const Layer* layer, const uint64_t* ports, Packet* found) noexcept nogil:
    """RFC 9293: the segment, if it is to or from ``ports`` and its header is there but for options."""
    cdef const uint8_t* tcp = layer.frame + layer.position
    cdef size_t left = layer.captured - layer.position
    cdef size_t room = layer.end - layer.position
    cdef size_t header
    if left >= 4 and room >= 4 and not wanted(ports, tcp):
        return OTHER
    if room < TCP_HEADER:
        return short_of(found, TCP_CUT, TCP_HEADER, room)
    if left < TCP_HEADER:
        return short_of(found, TCP_CUT, TCP_HEADER, left)
    if found.fragment:
        return FRAGMENT
    header = <size_t>(tcp[12] >> 4) * 4
    if header < TCP_HEADER or header > room:
        return short_of(found, TCP_HEADER_LENGTH, header, room)
    found.header = tcp
    found.payload = tcp + min(header, left)
    found.size = min(left, room) - min(header, left)
    found.missing = room - header - found.size
    return FOUND


cdef int find_packet(
    const uint8_t* frame, size_t size, uint32_t link, const Ports* ports, Packet* found
) noexcept nogil:
    """FOUND and the packet; OTHER; or the Reason why the frame is damaged, with ``needed`` and ``available``."""
    cdef Layer layer
    cdef int status
    layer.frame = frame
    layer.captured = size
    found.fragment = False
    found.missing = 0
    found.needed = 0
    found.available = 0
    status = read_link(link, &layer, found)
    if status != FOUND:
        return status
    found.ip = frame + layer.position
    if layer.type == TYPE_IPV4:
        status = read_ipv4(&layer, found)
    elif layer.type == TYPE_IPV6:
        status = read_ipv6(&layer, found)
    else:
        return OTHER
    if status != FOUND:
        return status
    found.protocol = layer.type
    if layer.type == UDP:
        return read_udp(&layer, ports.udp, found)
    if layer.type == TCP:
        return read_tcp(&layer, ports.tcp, found)
    return OTHER
