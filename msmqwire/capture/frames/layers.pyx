"""Link, network and transport headers, in general: what the inline way of layers.pxd does not take.

Each layer answers with where the next one begins, or with OTHER, or with the Reason why the frame is damaged. A frame
belongs to somebody else as soon as that can be seen; it is damaged only while it may be ours.
"""

from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint32_t, uint64_t

from msmqwire.capture.frames.fragments cimport Part
from msmqwire.capture.frames.frame cimport (
    IPX_CUT, IPX_LENGTH, IP_CUT, IP_HEADER_LENGTH, IP_TOTAL_LENGTH, IP_VERSION, LINK_CUT, PAYLOAD_CUT, TCP_CUT,
    TCP_HEADER_LENGTH, UDP_CUT, UDP_LENGTH,
)

# Values of EtherType. Below 0x0600 it is a length (IEEE 802.3); Linux tells two kinds of those by numbers of its own.
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

# Values of the address family in front of a frame of a loopback interface, on the systems that write one
cdef enum:
    FAMILY_IPV4 = 2
    FAMILY_IPX = 23
    FAMILY_IPV6_NETBSD = 24
    FAMILY_IPV6_FREEBSD = 28
    FAMILY_IPV6_DARWIN = 30

# Logical link control (IEEE 802.2): the access points of Novell, and those of an EtherType behind (SNAP)
cdef enum:
    LLC_NOVELL = 0xE0E0
    LLC_SNAP = 0xAAAA

cdef enum:
    SEQUENCED = 5  # Packet Type of IPX: the packet is one of SPX

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
# by its own counts.
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


cdef int read_tags(Layer* layer, Packet* found) noexcept nogil:
    """Skip VLAN tags, any number of them; leaves the EtherType, or the length that stands in its place."""
    while (
        layer.type == TYPE_VLAN or layer.type == TYPE_SERVICE_VLAN
        or layer.type == TYPE_OLD_QINQ_1 or layer.type == TYPE_OLD_QINQ_2
    ):
        if 4 > layer.captured - layer.position:
            return short_of(found, LINK_CUT, layer.position + 4, layer.captured)
        layer.type = <uint32_t>network_u16(layer.frame + layer.position + 2)
        layer.position += 4
    return FOUND


cdef int read_logical_link(Layer* layer, Packet* found) noexcept nogil:
    """IEEE 802.2 behind a length; leaves the EtherType that says what follows.

    Novell's raw frames have no such header: they begin with the checksum of IPX, which is not used and all ones.
    """
    cdef const uint8_t* header = layer.frame + layer.position
    cdef size_t left = layer.captured - layer.position
    if left < 3:
        return short_of(found, LINK_CUT, layer.position + 3, layer.captured)
    if network_u16(header) == 0xFFFF:
        layer.type = TYPE_IPX
    elif network_u16(header) == LLC_NOVELL:
        layer.type = TYPE_IPX
        layer.position += 3
    elif network_u16(header) == LLC_SNAP:
        if left < 8:
            return short_of(found, LINK_CUT, layer.position + 8, layer.captured)
        layer.type = <uint32_t>network_u16(header + 6)
        layer.position += 8
    else:
        return OTHER
    return FOUND


cdef int read_typed(Layer* layer, Packet* found, size_t header, size_t type_at) noexcept nogil:
    """A link header of fixed length with an EtherType in it, then what may stand between it and the network header."""
    cdef int status
    if layer.captured < header:
        return short_of(found, LINK_CUT, header, layer.captured)
    layer.type = <uint32_t>network_u16(layer.frame + type_at)
    layer.position = header
    status = read_tags(layer, found)
    if status == FOUND and layer.type < SMALLEST_TYPE:
        if header == 14 or layer.type == TYPE_LINUX_802_3 or layer.type == TYPE_LINUX_802_2:
            return read_logical_link(layer, found)
    return status


cdef int read_loopback(Layer* layer, Packet* found) noexcept nogil:
    """An address family, in the byte order of whoever captured: small numbers in either."""
    cdef const uint8_t* family = layer.frame
    cdef uint32_t number
    if layer.captured < 4:
        return short_of(found, LINK_CUT, 4, layer.captured)
    layer.position = 4
    number = <uint32_t>(family[0] | family[3])
    if family[1] or family[2] or (family[0] and family[3]):
        return OTHER
    if number == FAMILY_IPV4:
        layer.type = TYPE_IPV4
    elif number == FAMILY_IPV6_NETBSD or number == FAMILY_IPV6_FREEBSD or number == FAMILY_IPV6_DARWIN:
        layer.type = TYPE_IPV6
    elif number == FAMILY_IPX:
        layer.type = TYPE_IPX
    else:
        return OTHER
    return FOUND


cdef int read_link(uint32_t link, Layer* layer, Packet* found) noexcept nogil:
    """Leave the position at the network header and its EtherType in ``type``."""
    layer.position = 0
    if link == LINK_ETHERNET:
        return read_typed(layer, found, 14, 12)
    if link == LINK_LINUX_SLL:
        return read_typed(layer, found, 16, 14)
    if link == LINK_LINUX_SLL2:
        return read_typed(layer, found, 20, 0)
    if link == LINK_NULL or link == LINK_LOOP:
        return read_loopback(layer, found)
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


cdef int read_part(const Layer* layer, size_t address_size, size_t offset, bint more, Packet* found) noexcept nogil:
    """A part of an IP datagram, all of which must be there; the protocol and the identification are known."""
    cdef Part* part = &found.part
    cdef size_t left = layer.captured - layer.position
    cdef size_t room = layer.end - layer.position
    if room > left:
        return short_of(found, PAYLOAD_CUT, room, left)
    part.src = found.ip + (8 if address_size == 16 else 12)
    part.dst = part.src + address_size
    part.address_size = address_size
    part.data = layer.frame + layer.position
    part.size = room
    part.offset = offset
    part.more = more
    return PART


cdef int read_ipv4(Layer* layer, Packet* found) noexcept nogil:
    """RFC 791; leaves the position behind the options and the protocol in ``type``."""
    cdef const uint8_t* ip = layer.frame + layer.position
    cdef size_t left = layer.captured - layer.position
    cdef size_t header, total, flags
    if left < 20:
        return short_of(found, IP_CUT, 20, left)
    header = <size_t>(ip[0] & 15) * 4
    total = network_u16(ip + 2)
    flags = network_u16(ip + 6)
    layer.type = ip[9]
    if ip[0] >> 4 != 4:
        return short_of(found, IP_VERSION, 4, ip[0] >> 4)
    if header < 20:
        return short_of(found, IP_HEADER_LENGTH, 20, header)
    if layer.type != UDP_PROTOCOL and layer.type != TCP_PROTOCOL:
        return OTHER
    if total == 0:
        total = left  # a sender that leaves cutting to its network card does not know the length yet
    if total < header:
        return short_of(found, IP_TOTAL_LENGTH, header, total)
    if left < header:
        return short_of(found, IP_CUT, header, left)
    layer.end = layer.position + total
    layer.position += header
    if flags & 0x3FFF:
        found.part.protocol = layer.type
        found.part.identification = <uint32_t>network_u16(ip + 4)
        return read_part(layer, 4, (flags & 0x1FFF) * 8, flags & 0x2000 != 0, found)
    return FOUND


cdef inline bint is_extension(uint32_t type) noexcept nogil:
    return (
        type == HOP_BY_HOP or type == ROUTING or type == FRAGMENT_HEADER or type == DESTINATION
        or type == AUTHENTICATION or type == MOBILITY or type == HOST_IDENTITY or type == SHIM6
    )


cdef int read_extensions(Layer* layer, Packet* found) noexcept nogil:
    """Extension headers of IPv6 (RFC 8200 4); leaves the position behind them and the last next header in ``type``."""
    cdef const uint8_t* extension
    cdef size_t left, length, flags
    while is_extension(layer.type):
        extension = layer.frame + layer.position
        left = layer.captured - layer.position
        if left < 8:
            return short_of(found, IP_CUT, 8, left)
        if layer.type == FRAGMENT_HEADER:
            length = 8
        elif layer.type == AUTHENTICATION:
            length = <size_t>extension[1] * 4 + 8
        else:
            length = <size_t>extension[1] * 8 + 8
        if length > left:
            return short_of(found, IP_CUT, length, left)
        flags = network_u16(extension + 2) if layer.type == FRAGMENT_HEADER else 0
        layer.type = extension[0]
        layer.position += length
        if layer.end < layer.position:
            return short_of(found, IP_TOTAL_LENGTH, layer.position, layer.end)
        if flags & 0xFFF9:  # neither offset nor more fragments: a whole datagram, RFC 6946
            if layer.type != UDP_PROTOCOL and layer.type != TCP_PROTOCOL and not is_extension(layer.type):
                return OTHER
            found.part.protocol = layer.type
            found.part.identification = load_u32(extension + 4)
            return read_part(layer, 16, flags & 0xFFF8, flags & 1 != 0, found)
    return FOUND


cdef int read_ipv6(Layer* layer, Packet* found) noexcept nogil:
    """RFC 8200; leaves the position behind the extension headers and the last next header in ``type``."""
    cdef const uint8_t* ip = layer.frame + layer.position
    cdef size_t left = layer.captured - layer.position
    cdef size_t start = layer.position
    cdef size_t length
    cdef int status
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
    status = read_extensions(layer, found)
    if status == IP_TOTAL_LENGTH:
        return short_of(found, IP_TOTAL_LENGTH, layer.position - start, layer.end - start)
    return status


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
    header = <size_t>(tcp[12] >> 4) * 4
    if header < TCP_HEADER or header > room:
        return short_of(found, TCP_HEADER_LENGTH, header, room)
    found.header = tcp
    found.payload = tcp + min(header, left)
    found.size = min(left, room) - min(header, left)
    found.missing = room - header - found.size
    return FOUND


cdef int read_ipx(const Layer* layer, const uint64_t* ports, Packet* found) noexcept nogil:
    """Novell's IPX: the packet, if it is to or from the sockets ``ports`` and all of it is there."""
    cdef const uint8_t* ipx = layer.frame + layer.position
    cdef size_t left = layer.captured - layer.position
    cdef size_t length
    if left >= IPX_HEADER and (ipx[5] == SEQUENCED or not (has_port(ports, ipx + 16) or has_port(ports, ipx + 28))):
        return OTHER
    if left < IPX_HEADER:
        return short_of(found, IPX_CUT, IPX_HEADER, left)
    length = network_u16(ipx + 2)
    if length < IPX_HEADER:
        return short_of(found, IPX_LENGTH, IPX_HEADER, length)
    if length > left:
        return short_of(found, PAYLOAD_CUT, length, left)
    found.protocol = IPX_PACKET
    found.header = ipx
    found.payload = ipx + IPX_HEADER
    found.size = length - IPX_HEADER
    return FOUND


cdef int read_transport(const Layer* layer, const Ports* ports, Packet* found) noexcept nogil:
    found.protocol = layer.type
    if layer.type == UDP_PROTOCOL:
        return read_udp(layer, ports.udp, found)
    if layer.type == TCP_PROTOCOL:
        return read_tcp(layer, ports.tcp, found)
    return OTHER


cdef bint is_foreign(const Part* part, const Ports* ports) noexcept nogil:
    """Whether a first part shows that the datagram is not ours."""
    if part.offset or part.size < 4:
        return False
    if part.protocol == UDP_PROTOCOL:
        return not wanted(ports.udp, part.data)
    return part.protocol == TCP_PROTOCOL and not wanted(ports.tcp, part.data)


cdef int find_packet(
    const uint8_t* frame, size_t size, uint32_t link, const Ports* ports, Packet* found
) noexcept nogil:
    """FOUND and the packet; PART and the part of a datagram; OTHER; or the Reason why the frame is damaged.

    ``needed`` and ``available`` are in the words of the reason.
    """
    cdef Layer layer
    cdef int status
    layer.frame = frame
    layer.captured = size
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
    elif layer.type == TYPE_IPX:
        return read_ipx(&layer, ports.ipx, found)
    else:
        return OTHER
    if status == PART:
        found.part.foreign = is_foreign(&found.part, ports)
        return PART
    if status != FOUND:
        return status
    return read_transport(&layer, ports, found)


cdef int find_in_datagram(const uint8_t* whole, size_t size, const Ports* ports, Packet* found) noexcept nogil:
    """What is in a datagram that was put together, as ``find_packet`` says it, which has found its last part."""
    cdef Layer layer
    cdef int status
    layer.frame = whole
    layer.position = 0
    layer.captured = size
    layer.end = size
    layer.type = found.part.protocol
    if found.part.address_size == 16:
        status = read_extensions(&layer, found)
        if status != FOUND:
            return OTHER if status == PART else status  # a fragment of a fragment is nobody's
    return read_transport(&layer, ports, found)
