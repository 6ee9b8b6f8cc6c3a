"""Link, network and transport headers, in general: all frames that the inline functions of _layers.pxd do not take.

Each layer moves the position to the next header, or returns OTHER, or the Reason why the frame is malformed. A frame is
OTHER as soon as this is certain; it is malformed only while it may have a payload.
"""

from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint32_t, uint64_t

from msmqwire.capture.frames._encapsulations cimport (
    AUTHENTICATION_PROTOCOL, ESP_PROTOCOL, TYPE_ETHERNET, TYPE_MPLS, TYPE_PPP, TYPE_PPPOE, is_encapsulation,
    is_tunnel_port, is_vxlan, read_by_port, read_by_protocol, read_by_type, read_radiotap, read_security_payload,
    read_wlan, unsupported_protocol,
)
from msmqwire.capture.frames._fragments cimport Datagram, Fragment, ends_of_datagram
from msmqwire.capture.frames._frame cimport (
    IPX_CUT, IPX_LENGTH, IP_CUT, IP_HEADER_LENGTH, IP_TOTAL_LENGTH, IP_VERSION, LINK_CUT, PAYLOAD_CUT, TCP_CUT,
    TCP_HEADER_LENGTH, UDP_CUT, UDP_LENGTH,
)
from msmqwire.wire._address cimport IPV4, IPV6, IPX

# Values of the address family before a frame of a loopback interface, on the systems that write one
cdef enum:
    FAMILY_IPV4 = 2
    FAMILY_IPV6_LINUX = 10
    FAMILY_IPX = 23
    FAMILY_IPV6_NETBSD = 24
    FAMILY_IPV6_FREEBSD = 28
    FAMILY_IPV6_DARWIN = 30

# Bytes of link headers
cdef enum:
    ETHERNET_HEADER = 14
    CISCO_HEADER = 4  # of HDLC
    PKTAP_HEADER = 108

cdef enum:
    NFLOG_PAYLOAD = 9  # the attribute of NFLOG that is the packet
    PKTAP_PACKET = 1   # a packet follows the header of PKTAP

# Logical link control (IEEE 802.2): the access points of Novell, and those before an EtherType (SNAP)
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
    DESTINATION = 60
    MOBILITY = 135
    HOST_IDENTITY = 139
    SHIM6 = 140


# A frame of Cisco's HDLC is one of PPP in HDLC with another address: unicast and multicast
cdef enum:
    CISCO_UNICAST = 0x0F
    CISCO_MULTICAST = 0x8F


cdef inline bint is_tag(uint32_t type) noexcept nogil:
    return (
        type == TYPE_VLAN or type == TYPE_SERVICE_VLAN or type == TYPE_OLD_QINQ_1 or type == TYPE_OLD_QINQ_2
    )


cdef int read_tags(Layer* layer, Packet* found) noexcept nogil:
    """Skip VLAN tags, any number of them; leaves the EtherType, or the length in its place."""
    while is_tag(layer.type):
        if 4 > layer.captured - layer.position:
            return short_of(found, LINK_CUT, layer.position + 4, layer.captured)
        layer.type = <uint32_t>network_u16(layer.frame + layer.position + 2)
        layer.position += 4
    return NEXT


cdef int read_logical_link(Layer* layer, Packet* found) noexcept nogil:
    """IEEE 802.2 after a length; leaves the EtherType of the next header.

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
        return NEXT if layer.type >= SMALLEST_TYPE else OTHER
    else:
        return OTHER
    return NEXT


cdef int read_typed(Layer* layer, Packet* found, size_t header, size_t type_at) noexcept nogil:
    """A link header of fixed length with an EtherType in it, then what may stand between it and the network header."""
    cdef int status
    if layer.captured - layer.position < header:
        return short_of(found, LINK_CUT, layer.position + header, layer.captured)
    layer.type = <uint32_t>network_u16(layer.frame + layer.position + type_at)
    layer.position += header
    status = read_tags(layer, found)
    if status == NEXT and layer.type < SMALLEST_TYPE:
        # In Ethernet it is a length; Linux has numbers of its own there, Cisco's HDLC has none
        if header == ETHERNET_HEADER or (
            header != CISCO_HEADER and (layer.type == TYPE_LINUX_802_3 or layer.type == TYPE_LINUX_802_2)
        ):
            return read_logical_link(layer, found)
        return OTHER
    return status


cdef int read_loopback(Layer* layer, Packet* found) noexcept nogil:
    """An address family, in the byte order of the capturing machine: small numbers in either."""
    cdef const uint8_t* family = layer.frame + layer.position
    cdef uint32_t number
    if layer.captured - layer.position < 4:
        return short_of(found, LINK_CUT, layer.position + 4, layer.captured)
    layer.position += 4
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
    return NEXT


cdef int read_packet_information(Layer* layer, Packet* found) noexcept nogil:
    """Per-Packet Information (CACE 2009): a header of fields, then a frame of the link type it names."""
    cdef const uint8_t* header = layer.frame
    cdef size_t size
    cdef uint32_t link
    if layer.captured < 8:
        return short_of(found, LINK_CUT, 8, layer.captured)
    size = load_u16(header + 2)
    link = load_u32(header + 4)
    if header[0] != 0 or size < 8 or link == LINK_PPI:
        return OTHER
    if layer.captured < size:
        return short_of(found, LINK_CUT, size, layer.captured)
    layer.position = size
    return read_link(link, layer, found)


cdef int read_netfilter_log(Layer* layer, Packet* found) noexcept nogil:
    """Linux's NFLOG: family and version, then attributes in the byte order of the machine, one of which is the packet.

    An attribute has its length and its type, a number below 256 that is not 0.
    """
    cdef const uint8_t* header = layer.frame + layer.position
    cdef size_t size
    cdef bint big
    if layer.captured - layer.position < 4:
        return short_of(found, LINK_CUT, layer.position + 4, layer.captured)
    if header[1] != 0 or (header[0] != FAMILY_IPV4 and header[0] != FAMILY_IPV6_LINUX):
        return OTHER
    layer.type = TYPE_IPV4 if header[0] == FAMILY_IPV4 else TYPE_IPV6
    layer.position += 4
    while layer.position != layer.captured:
        if layer.captured - layer.position < 4:
            return short_of(found, LINK_CUT, layer.position + 4, layer.captured)
        header = layer.frame + layer.position
        big = header[3] != 0
        size = network_u16(header) if big else load_u16(header)
        if size < 4:
            return OTHER
        if header[3 if big else 2] == NFLOG_PAYLOAD:
            layer.captured = min(layer.captured, layer.position + size)
            layer.position += 4
            return NEXT
        size = (size + 3) & ~<size_t>3
        if layer.captured - layer.position < size:
            return short_of(found, LINK_CUT, layer.position + size, layer.captured)
        layer.position += size
    return OTHER


cdef bint is_packet_tap(const Layer* layer) noexcept nogil:
    """Return True if a frame of a link type that anyone may use begins as PKTAP does."""
    cdef const uint8_t* header = layer.frame + layer.position
    cdef size_t left = layer.captured - layer.position
    return left >= 12 and PKTAP_HEADER <= load_u32(header) <= left and load_u32(header + 4) == PKTAP_PACKET


cdef int read_packet_tap(Layer* layer, Packet* found) noexcept nogil:
    """PKTAP of Apple: its length, what follows and the link type of that, as little-endian numbers; then a frame."""
    cdef const uint8_t* header = layer.frame + layer.position
    cdef size_t left = layer.captured - layer.position
    cdef size_t size
    cdef uint32_t link
    if left < 12:
        return short_of(found, LINK_CUT, layer.position + 12, layer.captured)
    size = load_u32(header)
    link = load_u32(header + 8)
    if size < 12 or load_u32(header + 4) != PKTAP_PACKET:
        return OTHER
    if link == LINK_PKTAP or link == LINK_USER2 or link == LINK_PPI:
        return OTHER
    if left < size:
        return short_of(found, LINK_CUT, layer.position + size, layer.captured)
    layer.position += size
    return read_link(link, layer, found)


cdef int read_hdlc(Layer* layer, Packet* found) noexcept nogil:
    """PPP in HDLC (RFC 1662), or Cisco's HDLC."""
    cdef const uint8_t* header = layer.frame + layer.position
    if layer.captured - layer.position < CISCO_HEADER:
        return short_of(found, LINK_CUT, layer.position + CISCO_HEADER, layer.captured)
    if header[0] == CISCO_UNICAST or header[0] == CISCO_MULTICAST:
        return read_typed(layer, found, CISCO_HEADER, 2)
    layer.type = TYPE_PPP
    return NEXT


cdef int read_wireless(uint32_t link, Layer* layer, Packet* found) noexcept nogil:
    """IEEE 802.11, with radiotap or without, and its logical link control."""
    cdef int status = read_radiotap(layer, found) if link == LINK_RADIOTAP else read_wlan(layer, found, False)
    return read_logical_link(layer, found) if status == NEXT else status


cdef int read_link(uint32_t link, Layer* layer, Packet* found) noexcept nogil:
    """Leave the position at the header after the link layer, and its EtherType in ``type``."""
    if link == LINK_ETHERNET:
        return read_typed(layer, found, ETHERNET_HEADER, 12)
    if link == LINK_LINUX_SLL:
        return read_typed(layer, found, 16, 14)
    if link == LINK_LINUX_SLL2:
        return read_typed(layer, found, 20, 0)
    if link == LINK_NULL or link == LINK_LOOP:
        return read_loopback(layer, found)
    if link == LINK_WLAN or link == LINK_RADIOTAP:
        return read_wireless(link, layer, found)
    if link == LINK_PPI:
        return read_packet_information(layer, found)
    if link == LINK_NFLOG:
        return read_netfilter_log(layer, found)
    if link == LINK_PKTAP or (link == LINK_USER2 and is_packet_tap(layer)):
        return read_packet_tap(layer, found)
    if link == LINK_PPP_HDLC or link == LINK_CISCO_HDLC:
        return read_hdlc(layer, found)
    if link == LINK_IPV4:
        layer.type = TYPE_IPV4
    elif link == LINK_IPV6:
        layer.type = TYPE_IPV6
    elif link == LINK_PPP:
        layer.type = TYPE_PPP
    elif link == LINK_PPP_ETHER:
        layer.type = TYPE_PPPOE
    elif link == LINK_MPLS:
        layer.type = TYPE_MPLS
    elif link == LINK_PPP_WITH_DIRECTION:
        if layer.captured - layer.position < 1:
            return short_of(found, LINK_CUT, layer.position + 1, layer.captured)
        layer.position += 1
        layer.type = TYPE_PPP
    elif link == LINK_RAW or link == LINK_RAW_BSD or link == LINK_RAW_OPENBSD:
        if layer.captured == layer.position:
            return short_of(found, IP_CUT, 1, 0)
        layer.type = TYPE_IPV6 if layer.frame[layer.position] >> 4 == 6 else TYPE_IPV4
    else:
        found.unsupported = link
        return UNSUPPORTED_LINK
    return NEXT


cdef int read_part(const Layer* layer, size_t offset, bint more, Packet* found) noexcept nogil:
    """Read a fragment of an IP datagram, which must be complete; addresses, protocol and identification are known."""
    cdef Fragment* part = &found.part
    cdef size_t left = layer.captured - layer.position
    cdef size_t space = layer.end - layer.position
    if space > left:
        return short_of(found, PAYLOAD_CUT, space, left)
    part.ends = found.ends
    part.data = layer.frame + layer.position
    part.size = space
    part.offset = offset
    part.more = more
    return PART


cdef inline bint is_carrier(uint32_t protocol) noexcept nogil:
    """Return True if payloads may be in datagrams of this protocol."""
    return (
        protocol == UDP_PROTOCOL or protocol == TCP_PROTOCOL or protocol == AUTHENTICATION_PROTOCOL
        or is_encapsulation(protocol)
    )


cdef int read_ipv4(Layer* layer, Packet* found) noexcept nogil:
    """RFC 791; leaves the position after the options and the protocol in ``type``."""
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
    if not is_carrier(layer.type) and (
        flags & 0x3FFF or (layer.type != PGM_PROTOCOL and layer.type != ESP_PROTOCOL)
    ):
        return unsupported_protocol(layer.type, found)
    if total == 0:
        total = left  # a sender that leaves cutting to its network card does not know the length yet
    if total < header:
        return short_of(found, IP_TOTAL_LENGTH, header, total)
    if left < header:
        return short_of(found, IP_CUT, header, left)
    set_addresses(&found.ends, IPV4, ip + 12)
    layer.end = layer.position + total
    layer.position += header
    if flags & 0x3FFF:
        found.part.protocol = layer.type
        found.part.identification = <uint32_t>network_u16(ip + 4)
        return read_part(layer, (flags & 0x1FFF) * 8, flags & 0x2000 != 0, found)
    return FOUND


cdef inline bint is_extension(uint32_t type) noexcept nogil:
    return (
        type == HOP_BY_HOP or type == ROUTING or type == FRAGMENT_HEADER or type == DESTINATION
        or type == AUTHENTICATION_PROTOCOL or type == MOBILITY or type == HOST_IDENTITY or type == SHIM6
    )


cdef int read_extensions(Layer* layer, Packet* found) noexcept nogil:
    """Extension headers of IPv6 (RFC 8200 4); leaves the position after them and the last next header in ``type``."""
    cdef const uint8_t* extension
    cdef size_t left, length, flags
    while is_extension(layer.type):
        extension = layer.frame + layer.position
        left = layer.captured - layer.position
        if left < 8:
            return short_of(found, IP_CUT, 8, left)
        if layer.type == FRAGMENT_HEADER:
            length = 8
        elif layer.type == AUTHENTICATION_PROTOCOL:
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
        if flags & 0xFFF9:  # neither offset nor more fragments: a complete datagram, RFC 6946
            found.part.protocol = layer.type
            found.part.identification = load_u32(extension + 4)
            return read_part(layer, flags & 0xFFF8, flags & 1 != 0, found)
    return FOUND


cdef int read_ipv6(Layer* layer, Packet* found) noexcept nogil:
    """RFC 8200; leaves the position after the extension headers and the last next header in ``type``."""
    cdef const uint8_t* ip = layer.frame + layer.position
    cdef size_t left = layer.captured - layer.position
    cdef size_t start = layer.position
    cdef size_t length
    cdef int status
    if left < 40:
        return short_of(found, IP_CUT, 40, left)
    if ip[0] >> 4 != 6:
        return short_of(found, IP_VERSION, 6, ip[0] >> 4)
    set_addresses(&found.ends, IPV6, ip + 8)
    layer.type = ip[6]
    length = network_u16(ip + 4)
    layer.end = layer.position + 40 + length
    if length == 0:  # as in read_ipv4; or it is in a jumbo payload option (RFC 2675)
        layer.end = layer.captured
    layer.position += 40
    status = read_extensions(layer, found)
    if status == IP_TOTAL_LENGTH:
        return short_of(found, IP_TOTAL_LENGTH, layer.position - start, layer.end - start)
    return status


cdef int take_datagram(
    Packet* found, const uint8_t* header, size_t size, size_t length, size_t captured
) noexcept nogil:
    """Read a datagram of ``length`` bytes with a header of ``size`` bytes; its end may not be captured."""
    found.header = header
    found.payload = header + size
    found.size = min(length, captured) - size
    if length > captured:
        found.missing = length - captured
        return short_of(found, PAYLOAD_CUT, length, captured)
    return FOUND


cdef int read_udp(Layer* layer, const uint64_t* ports, Packet* found) noexcept nogil:
    """RFC 768: the datagram, if it is to or from ``ports`` and all of it is there."""
    cdef const uint8_t* udp = layer.frame + layer.position
    cdef size_t left = layer.captured - layer.position
    cdef size_t space = layer.end - layer.position
    cdef size_t length
    if left >= 4 and space >= 4 and not wanted(ports, udp):
        return read_by_port(layer, found)
    if space < UDP_HEADER:
        return short_of(found, UDP_CUT, UDP_HEADER, space)
    if left < UDP_HEADER:
        return short_of(found, UDP_CUT, UDP_HEADER, left)
    length = network_u16(udp + 4)
    if length < UDP_HEADER or length > space:
        return short_of(found, UDP_LENGTH, length, space)
    set_ports(&found.ends, Transport.UDP, udp)
    return take_datagram(found, udp, UDP_HEADER, length, left)


cdef int read_other_tcp(const Layer* layer, Packet* found) noexcept nogil:
    """A segment of other ports: UNREAD if it may be of a stream of MSMQ."""
    cdef const uint8_t* tcp = layer.frame + layer.position
    cdef size_t space = min(layer.captured, layer.end) - layer.position
    cdef size_t header
    if space < TCP_HEADER:
        return OTHER
    header = <size_t>(tcp[12] >> 4) * 4
    if header < TCP_HEADER or header > space:
        return OTHER
    set_ports(&found.ends, Transport.TCP, tcp)
    found.header = tcp
    found.payload = tcp + header
    found.size = space - header
    return UNREAD if may_be_unread(found.payload, found.size) else OTHER


cdef int read_pgm(const Layer* layer, Packet* found) noexcept nogil:
    """RFC 3208: the ports, with which its header begins."""
    if min(layer.captured, layer.end) - layer.position < 4:
        return OTHER
    found.header = layer.frame + layer.position
    return UNREAD


cdef int read_tcp(const Layer* layer, const uint64_t* ports, Packet* found) noexcept nogil:
    """RFC 9293: the segment, if it is to or from ``ports`` and its header is there but for options."""
    cdef const uint8_t* tcp = layer.frame + layer.position
    cdef size_t left = layer.captured - layer.position
    cdef size_t space = layer.end - layer.position
    cdef size_t header
    if left >= 4 and space >= 4 and not wanted(ports, tcp):
        return read_other_tcp(layer, found)
    if space < TCP_HEADER:
        return short_of(found, TCP_CUT, TCP_HEADER, space)
    if left < TCP_HEADER:
        return short_of(found, TCP_CUT, TCP_HEADER, left)
    header = <size_t>(tcp[12] >> 4) * 4
    if header < TCP_HEADER or header > space:
        return short_of(found, TCP_HEADER_LENGTH, header, space)
    set_ports(&found.ends, Transport.TCP, tcp)
    found.header = tcp
    found.payload = tcp + min(header, left)
    found.size = min(left, space) - min(header, left)
    found.missing = space - header - found.size
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
    found.ends.family = IPX
    found.ends.transport = Transport.IPX
    found.ends.src, found.ends.src_port = ipx + 18, ipx + 28
    found.ends.dst, found.ends.dst_port = ipx + 6, ipx + 16
    return take_datagram(found, ipx, IPX_HEADER, length, left)


cdef int read_security(Layer* layer, Packet* found) noexcept nogil:
    """Authentication headers (RFC 4302) and ESP; leaves the position after them and the protocol in ``type``."""
    cdef const uint8_t* header
    cdef size_t left, length
    while layer.type == AUTHENTICATION_PROTOCOL:
        header = layer.frame + layer.position
        left = layer.captured - layer.position
        if left < 8:
            return short_of(found, IP_CUT, 8, left)
        length = <size_t>header[1] * 4 + 8
        if length > left:
            return short_of(found, IP_CUT, length, left)
        if length > layer.end - layer.position:
            return short_of(found, IP_TOTAL_LENGTH, length, layer.end - layer.position)
        layer.type = header[0]
        layer.position += length
    return read_security_payload(layer, found) if layer.type == ESP_PROTOCOL else FOUND


cdef int read_transport(Layer* layer, const Ports* ports, Packet* found) noexcept nogil:
    """What an IP packet carries; NEXT if that is an encapsulation."""
    cdef int status = FOUND
    if layer.type == AUTHENTICATION_PROTOCOL or layer.type == ESP_PROTOCOL:
        status = read_security(layer, found)
        if status != FOUND:
            return status
    if layer.type == UDP_PROTOCOL:
        return read_udp(layer, ports.udp, found)
    if layer.type == TCP_PROTOCOL:
        return read_tcp(layer, ports.tcp, found)
    if layer.type == PGM_PROTOCOL:
        return read_pgm(layer, found)
    return read_by_protocol(layer, found)


cdef bint may_hold_tunnel(const Fragment* part) noexcept nogil:
    """Return True if the first part of a UDP datagram is of an encapsulation that is read."""
    return is_tunnel_port(network_u16(part.data + 2)) or (
        part.size >= UDP_HEADER and is_vxlan(part.data + UDP_HEADER, part.size - UDP_HEADER)
    )


cdef bint is_foreign(const Fragment* part, const Ports* ports, Packet* found) noexcept nogil:
    """Return True if a first part shows that no payload is in the datagram."""
    if part.offset:
        return False
    if part.protocol == UDP_PROTOCOL:
        return part.size >= 4 and not wanted(ports.udp, part.data) and not may_hold_tunnel(part)
    if part.protocol == TCP_PROTOCOL:
        return part.size >= 4 and not wanted(ports.tcp, part.data)
    return (
        not is_carrier(part.protocol) and not is_extension(part.protocol)
        and unsupported_protocol(part.protocol, found) == OTHER
    )


cdef int read_network(Layer* layer, const Ports* ports, Packet* found) noexcept nogil:
    """An IP packet: what it carries, or the part of a datagram."""
    cdef int status = read_ipv4(layer, found) if layer.type == TYPE_IPV4 else read_ipv6(layer, found)
    if status == PART:
        found.part.foreign = is_foreign(&found.part, ports, found)
        found.part.path = found.path
    return read_transport(layer, ports, found) if status == FOUND else status


cdef int read_headers(Layer* layer, const Ports* ports, Packet* found) noexcept nogil:
    """The headers from the position on, whose EtherType is in ``type``, through encapsulations of any kind."""
    cdef int status = NEXT
    while status == NEXT:
        if layer.type == TYPE_IPV4 or layer.type == TYPE_IPV6:
            status = read_network(layer, ports, found)
        elif layer.type == TYPE_IPX:
            status = read_ipx(layer, ports.ipx, found)
        elif layer.type == TYPE_ETHERNET:
            status = read_typed(layer, found, ETHERNET_HEADER, 12)
        elif is_tag(layer.type) or layer.type < SMALLEST_TYPE:  # after a tag that is an encapsulation
            status = read_tags(layer, found)
            if status == NEXT and layer.type < SMALLEST_TYPE:
                status = read_logical_link(layer, found)
        else:
            status = read_by_type(layer, found)
    return status


cdef int find_packet(
    const uint8_t* frame, size_t size, uint32_t link, const Ports* ports, Packet* found
) noexcept nogil:
    """FOUND and the packet; PART and the part of a datagram; OTHER; what is not supported; or the Reason of an error.

    ``needed`` and ``available`` are in the words of the reason.
    """
    cdef Layer layer
    cdef int status
    layer.frame = frame
    layer.position = 0
    layer.captured = size
    found.missing = 0
    found.path = 0
    found.datagram = NULL
    found.needed = 0
    found.available = 0
    status = read_link(link, &layer, found)
    return read_headers(&layer, ports, found) if status == NEXT else status


cdef int find_in_datagram(const Datagram* datagram, const Ports* ports, Packet* found) noexcept nogil:
    """What is in a datagram that is complete, as ``find_packet`` returns it."""
    cdef Layer layer
    cdef int status = FOUND
    layer.frame = datagram.data
    layer.position = 0
    layer.captured = layer.end = datagram.total
    layer.type = datagram.protocol
    found.ends = ends_of_datagram(datagram)
    found.missing = 0
    found.path = datagram.path
    found.datagram = datagram
    found.needed = 0
    found.available = 0
    if datagram.family == IPV6:
        status = read_extensions(&layer, found)
        if status == PART:
            return OTHER  # a fragment of a fragment
    if status == FOUND:
        status = read_transport(&layer, ports, found)
    return read_headers(&layer, ports, found) if status == NEXT else status
