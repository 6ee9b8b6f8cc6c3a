"""The headers of encapsulations, each read up to the header that follows, whose EtherType it leaves in ``type``.

Nothing inside of an encapsulation extends beyond it: a packet that does is truncated. The encapsulations that are
recognized and not read are counted by name.
"""

from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint32_t

from msmqwire.capture.frames._frame cimport (
    CAPWAP, ENCAPSULATION_CUT, ESP, ESP_IN_UDP, FABRIC_PATH, GRE_ROUTING, GTP, IP_COMPRESSION, L2TP, LINK_CUT, LISP,
    MACSEC, OPENVPN, PPP_COMPRESSED, PPP_MULTILINK, PROVIDER_BACKBONE, SERVICE_HEADER, TEREDO, TOO_DEEP, TRILL, TZSP,
    Unsupported, WLAN_AGGREGATE, WLAN_ENCRYPTED, WLAN_FRAGMENT,
)
from msmqwire.capture.frames.packet cimport (
    FOUND, NEXT, OTHER, TCP_HEADER, TCP_PROTOCOL, TYPE_IPV4, TYPE_IPV6, TYPE_IPX, TYPE_SERVICE_VLAN, TYPE_VLAN,
    UDP_HEADER, UDP_PROTOCOL, UNSUPPORTED_ENCAPSULATION, Layer, Packet, network_u16, short_of,
)
from msmqwire.wire.cursor cimport load_u16, load_u32

ENCAPSULATIONS: dict[int, str] = {
    MPLS: "mpls",
    PPPOE: "pppoe",
    VN_TAG: "vn-tag",
    E_TAG: "e-tag",
    CISCO_METADATA: "cisco-metadata",
    IPV4_IN_IP: "ipv4",
    IPV6_IN_IP: "ipv6",
    GRE: "gre",
    ERSPAN: "erspan",
    VXLAN: "vxlan",
    GENEVE: "geneve",
}
MAX_ENCAPSULATIONS: int = MOST_ENCAPSULATIONS

# EtherTypes, in Ethernet or in GRE
cdef enum:
    TYPE_ERSPAN_3 = 0x22EB
    TYPE_ERSPAN = 0x88BE
    TYPE_CISCO_METADATA = 0x8909
    TYPE_VN_TAG = 0x8926
    TYPE_E_TAG = 0x893F

# Destination ports of UDP
cdef enum:
    VXLAN_PORT = 4789
    VXLAN_LINUX_PORT = 8472  # the default of Linux
    VXLAN_GPE_PORT = 4790
    GENEVE_PORT = 6081
    MPLS_PORT = 6635

# A number that announces an encapsulation that is not read
cdef struct Announced:
    uint32_t number
    Unsupported what

cdef Announced[5] UNREAD_TYPES = [  # of EtherType
    Announced(0x88E5, MACSEC),
    Announced(0x88E7, PROVIDER_BACKBONE),
    Announced(0x22F3, TRILL),
    Announced(0x894F, SERVICE_HEADER),
    Announced(0x8903, FABRIC_PATH),
]
cdef Announced[3] UNREAD_PROTOCOLS = [  # of IP
    Announced(ESP_PROTOCOL, ESP),
    Announced(108, IP_COMPRESSION),
    Announced(115, L2TP),
]
cdef Announced[8] UNREAD_PORTS = [  # of UDP
    Announced(4500, ESP_IN_UDP),
    Announced(1701, L2TP),
    Announced(2152, GTP),
    Announced(3544, TEREDO),
    Announced(4341, LISP),
    Announced(5247, CAPWAP),
    Announced(37008, TZSP),
    Announced(1194, OPENVPN),
]

# Values of Protocol in PPP
cdef enum:
    PPP_IPV4 = 0x0021
    PPP_IPX = 0x002B
    PPP_COMPRESSED_TCP = 0x002D
    PPP_UNCOMPRESSED_TCP = 0x002F
    PPP_MULTILINK_PROTOCOL = 0x003D
    PPP_ENCRYPTED_LINK = 0x0053
    PPP_ENCRYPTED = 0x0055
    PPP_IPV6 = 0x0057
    PPP_COMPRESSED_LINK = 0x00FB
    PPP_COMPRESSED_DATA = 0x00FD
    PPP_MPLS = 0x0281

# Bits of the first two bytes of GRE
cdef enum:
    GRE_CHECKSUM = 0x8000
    GRE_ROUTING_PRESENT = 0x4000
    GRE_KEY = 0x2000
    GRE_SEQUENCE = 0x1000
    GRE_ACKNOWLEDGMENT = 0x0080  # version 1, RFC 2637


def encapsulation_names(path):
    """The names of a path, the outermost first, separated by slashes."""
    names = []
    while path:
        names.append(ENCAPSULATIONS[path & ((1 << PATH_BITS) - 1)])
        path >>= PATH_BITS
    return "/".join(reversed(names))


cdef inline int unsupported(Packet* found, Unsupported what) noexcept nogil:
    found.unsupported = <uint32_t>what
    return UNSUPPORTED_ENCAPSULATION


cdef int unread(const Announced* known, size_t count, size_t number, Packet* found) noexcept nogil:
    """UNSUPPORTED_ENCAPSULATION for a number that announces an encapsulation that is not read; else OTHER."""
    cdef size_t i
    for i in range(count):
        if known[i].number == number:
            return unsupported(found, known[i].what)
    return OTHER


cdef inline int enter(
    Layer* layer, Packet* found, Encapsulation encapsulation, size_t header, uint32_t type
) noexcept nogil:
    """Enter an encapsulation, whose ``header`` bytes were captured: the next header is of ``type``."""
    if found.path >> (PATH_BITS * (MOST_ENCAPSULATIONS - 1)):
        return unsupported(found, TOO_DEEP)
    found.path = found.path << PATH_BITS | <uint32_t>encapsulation
    layer.position += header
    layer.type = type
    return NEXT


cdef inline bint has(const Layer* layer, Packet* found, size_t header) noexcept nogil:
    """Return True if ``header`` more bytes were captured; if not, ``found`` has the number that is missing."""
    if header > layer.captured - layer.position:
        short_of(found, ENCAPSULATION_CUT, header, layer.captured - layer.position)
        return False
    return True


# --- After the link layer ---


cdef inline bint is_network_type(size_t type) noexcept nogil:
    return (
        type == TYPE_IPV4 or type == TYPE_IPV6 or type == TYPE_IPX or type == TYPE_VLAN or type == TYPE_SERVICE_VLAN
    )


cdef int read_mpls(Layer* layer, Packet* found) noexcept nogil:
    """RFC 3032: labels. Nothing says what follows: IP by its version, or Ethernet, after a control word or without."""
    cdef const uint8_t* label
    cdef size_t left
    while True:
        if not has(layer, found, 4):
            return ENCAPSULATION_CUT
        label = layer.frame + layer.position
        layer.position += 4
        if label[2] & 1:
            break
    if not has(layer, found, 1):
        return ENCAPSULATION_CUT
    label += 4
    left = layer.captured - layer.position
    if label[0] >> 4 == 4:
        return enter(layer, found, MPLS, 0, TYPE_IPV4)
    if label[0] >> 4 == 6:
        return enter(layer, found, MPLS, 0, TYPE_IPV6)
    if label[0] >> 4 == 1:  # an associated channel, RFC 4385
        return OTHER
    if label[0] >> 4 == 0 and not (left >= 14 and is_network_type(network_u16(label + 12))):
        return enter(layer, found, MPLS, 4, TYPE_ETHERNET) if has(layer, found, 4) else ENCAPSULATION_CUT
    return enter(layer, found, MPLS, 0, TYPE_ETHERNET)


cdef int read_pppoe(Layer* layer, Packet* found) noexcept nogil:
    """RFC 2516 4."""
    cdef const uint8_t* header = layer.frame + layer.position
    if not has(layer, found, 6):
        return ENCAPSULATION_CUT
    if header[0] != 0x11 or header[1] != 0:
        return OTHER
    layer.captured = min(layer.captured, layer.position + 6 + network_u16(header + 4))
    return enter(layer, found, PPPOE, 6, TYPE_PPP)


cdef int read_ppp(Layer* layer, Packet* found) noexcept nogil:
    """RFC 1661 2: the protocol, of two bytes or one, after an address and a control field or without (RFC 1662)."""
    cdef const uint8_t* header = layer.frame + layer.position
    cdef size_t protocol
    if not has(layer, found, 1) or (header[0] == 0xFF and not has(layer, found, 2)):
        return ENCAPSULATION_CUT
    if header[0] == 0xFF and header[1] == 3:
        layer.position += 2
        header += 2
    if not has(layer, found, 1) or (not header[0] & 1 and not has(layer, found, 2)):
        return ENCAPSULATION_CUT
    protocol = header[0] if header[0] & 1 else network_u16(header)
    layer.position += 1 if header[0] & 1 else 2
    if protocol == PPP_IPV4:
        layer.type = TYPE_IPV4
    elif protocol == PPP_IPV6:
        layer.type = TYPE_IPV6
    elif protocol == PPP_IPX:
        layer.type = TYPE_IPX
    elif protocol == PPP_MPLS:
        layer.type = TYPE_MPLS
    elif protocol == PPP_MULTILINK_PROTOCOL:
        return unsupported(found, PPP_MULTILINK)
    elif (
        protocol == PPP_COMPRESSED_TCP or protocol == PPP_UNCOMPRESSED_TCP or protocol == PPP_ENCRYPTED
        or protocol == PPP_ENCRYPTED_LINK or protocol == PPP_COMPRESSED_DATA or protocol == PPP_COMPRESSED_LINK
    ):
        return unsupported(found, PPP_COMPRESSED)
    else:
        return OTHER
    return NEXT


cdef int read_tag(Layer* layer, Packet* found, Encapsulation tag, size_t size) noexcept nogil:
    """A tag of this size with the next EtherType as its last two bytes."""
    if not has(layer, found, size):
        return ENCAPSULATION_CUT
    return enter(layer, found, tag, size, <uint32_t>network_u16(layer.frame + layer.position + size - 2))


cdef int read_by_type(Layer* layer, Packet* found) noexcept nogil:
    """The encapsulation that an EtherType announces; OTHER if it announces none."""
    if layer.type == TYPE_MPLS or layer.type == TYPE_MPLS_UPSTREAM:
        return read_mpls(layer, found)
    if layer.type == TYPE_PPPOE:
        return read_pppoe(layer, found)
    if layer.type == TYPE_PPP:
        return read_ppp(layer, found)
    if layer.type == TYPE_VN_TAG:
        return read_tag(layer, found, VN_TAG, 6)
    if layer.type == TYPE_E_TAG:  # IEEE 802.1BR
        return read_tag(layer, found, E_TAG, 8)
    if layer.type == TYPE_CISCO_METADATA:
        return read_tag(layer, found, CISCO_METADATA, 8)
    return unread(UNREAD_TYPES, 5, layer.type, found)


# --- In IP ---


cdef int unsupported_protocol(uint32_t protocol, Packet* found) noexcept nogil:
    """UNSUPPORTED_ENCAPSULATION for a value of Protocol that announces one; else OTHER."""
    return unread(UNREAD_PROTOCOLS, 3, protocol, found)


cdef int read_erspan(Layer* layer, Packet* found, size_t header, size_t type, bint sequenced) noexcept nogil:
    """ERSPAN (draft-foschiano-erspan) after ``header`` bytes of GRE: of type I, which has no header, II or III."""
    cdef const uint8_t* erspan = layer.frame + layer.position + header
    cdef size_t size = 0
    cdef bint ip = False
    if type == TYPE_ERSPAN_3:
        size = 12
        if not has(layer, found, header + size):
            return ENCAPSULATION_CUT
        if erspan[11] & 1:  # a platform specific subheader
            size = 20
        ip = (erspan[10] & 0x7C) >> 2 == 2
    elif sequenced:
        size = 8
    if not has(layer, found, header + size + ip):
        return ENCAPSULATION_CUT
    if ip:
        return enter(layer, found, ERSPAN, header + size, TYPE_IPV6 if erspan[size] >> 4 == 6 else TYPE_IPV4)
    return enter(layer, found, ERSPAN, header + size, TYPE_ETHERNET)


cdef int read_gre(Layer* layer, Packet* found) noexcept nogil:
    """RFC 2784, RFC 2890; version 1: RFC 2637."""
    cdef const uint8_t* gre = layer.frame + layer.position
    cdef size_t header = 4
    cdef size_t flags, type
    if not has(layer, found, 4):
        return ENCAPSULATION_CUT
    flags = network_u16(gre)
    type = network_u16(gre + 2)
    if flags & 7 > 1:
        return OTHER
    if flags & GRE_ROUTING_PRESENT:
        return unsupported(found, GRE_ROUTING)
    header += 4 if flags & GRE_CHECKSUM else 0
    header += 4 if flags & GRE_KEY else 0
    header += 4 if flags & GRE_SEQUENCE else 0
    header += 4 if flags & 7 == 1 and flags & GRE_ACKNOWLEDGMENT else 0
    if not has(layer, found, header):
        return ENCAPSULATION_CUT
    if flags & 7 == 1 and not flags & GRE_SEQUENCE:  # only acknowledges
        return OTHER
    if type == TYPE_ERSPAN or type == TYPE_ERSPAN_3:
        return read_erspan(layer, found, header, type, flags & GRE_SEQUENCE != 0)
    if type < 0x0600:
        return OTHER
    return enter(layer, found, GRE, header, <uint32_t>type)


cdef int read_by_protocol(Layer* layer, Packet* found) noexcept nogil:
    """The encapsulation that the protocol of an IP packet announces; OTHER if it announces none."""
    layer.captured = min(layer.captured, layer.end)
    if layer.type == IPV4_PROTOCOL:
        return enter(layer, found, IPV4_IN_IP, 0, TYPE_IPV4)
    if layer.type == IPV6_PROTOCOL:
        return enter(layer, found, IPV6_IN_IP, 0, TYPE_IPV6)
    if layer.type == GRE_PROTOCOL:
        return read_gre(layer, found)
    if layer.type == MPLS_PROTOCOL:
        layer.type = TYPE_MPLS
        return NEXT
    return unsupported_protocol(layer.type, found)


# The sizes of the integrity check value after the trailer of ESP, the common ones first
cdef size_t[5] CHECK_SIZES = [12, 16, 24, 32, 0]


cdef bint is_inside(uint32_t protocol, const uint8_t* data, size_t size) noexcept nogil:
    """Return True if ``size`` bytes begin with the header of a protocol, whose lengths say that many."""
    if protocol == TCP_PROTOCOL:
        return size >= TCP_HEADER and TCP_HEADER <= <size_t>(data[12] >> 4) * 4 <= size and not data[12] & 14
    if protocol == UDP_PROTOCOL:
        return size >= UDP_HEADER and network_u16(data + 4) == size
    if protocol == IPV4_PROTOCOL:
        return size >= 20 and data[0] >> 4 == 4 and network_u16(data + 2) == size
    return protocol == IPV6_PROTOCOL and size >= 40 and data[0] >> 4 == 6 and network_u16(data + 4) + 40 == size


cdef int read_security_payload(Layer* layer, Packet* found) noexcept nogil:
    """ESP (RFC 4303): its payload, if that is not encrypted (RFC 2410).

    Nothing in the packet says so. It is recognized, as RFC 5879 does, by a trailer whose padding is 1, 2, 3 ... and
    whose next header is that of the payload.
    """
    cdef const uint8_t* esp = layer.frame + layer.position
    cdef const uint8_t* trailer
    cdef size_t size = layer.end - layer.position
    cdef size_t i, j, inner, most
    if layer.end > layer.captured:
        return unsupported(found, ESP)
    for i in range(5):
        if size < SECURITY_HEADER + 2 + CHECK_SIZES[i]:
            continue
        most = size - SECURITY_HEADER - 2 - CHECK_SIZES[i]
        trailer = esp + SECURITY_HEADER + most
        if trailer[0] > most or (most + 2) & 3:
            continue
        inner = most - trailer[0]
        j = 0
        while j < trailer[0] and esp[SECURITY_HEADER + inner + j] == j + 1:
            j += 1
        if j == trailer[0] and is_inside(trailer[1], esp + SECURITY_HEADER, inner):
            layer.type = trailer[1]
            layer.position += SECURITY_HEADER
            layer.end = layer.captured = layer.position + inner
            return FOUND
    return unsupported(found, ESP)


# --- In UDP ---


cdef int read_vxlan(Layer* layer, Packet* found, bint names_protocol) noexcept nogil:
    """RFC 7348; with the protocol of what follows, draft-ietf-nvo3-vxlan-gpe."""
    cdef const uint8_t* header = layer.frame + layer.position
    cdef uint32_t type = TYPE_ETHERNET
    if not has(layer, found, 8):
        return ENCAPSULATION_CUT
    if not header[0] & 8:
        return OTHER
    if names_protocol and header[0] & 4:
        if header[3] == 1:
            type = TYPE_IPV4
        elif header[3] == 2:
            type = TYPE_IPV6
        elif header[3] == 4:
            return unsupported(found, SERVICE_HEADER)
        elif header[3] == 5:
            type = TYPE_MPLS
        elif header[3] != 3:
            return OTHER
    return enter(layer, found, VXLAN, 8, type)


cdef int read_geneve(Layer* layer, Packet* found) noexcept nogil:
    """RFC 8926."""
    cdef const uint8_t* header = layer.frame + layer.position
    cdef size_t size
    if not has(layer, found, 8):
        return ENCAPSULATION_CUT
    size = 8 + <size_t>(header[0] & 0x3F) * 4
    if header[0] >> 6 != 0 or network_u16(header + 2) < 0x0600:
        return OTHER
    if not has(layer, found, size):
        return ENCAPSULATION_CUT
    return enter(layer, found, GENEVE, size, <uint32_t>network_u16(header + 2))


cdef bint is_vxlan(const uint8_t* data, size_t size) noexcept nogil:
    """Return True if a datagram, to whatever port, begins as VXLAN with an IP packet in Ethernet does."""
    if size < 23 or load_u32(data) != VXLAN_FLAGS or data[7]:
        return False
    if network_u16(data + 20) == TYPE_IPV4:
        return data[22] >> 4 == 4
    return network_u16(data + 20) == TYPE_IPV6 and data[22] >> 4 == 6


cdef bint is_tunnel_port(size_t port) noexcept nogil:
    """Return True if datagrams to this port are encapsulations that are read."""
    return (
        port == VXLAN_PORT or port == VXLAN_LINUX_PORT or port == VXLAN_GPE_PORT or port == GENEVE_PORT
        or port == MPLS_PORT
    )


cdef int read_by_port(Layer* layer, Packet* found) noexcept nogil:
    """The encapsulation that the destination port of a UDP datagram announces, all of whose ports were captured."""
    cdef const uint8_t* udp = layer.frame + layer.position
    cdef size_t port = network_u16(udp + 2)
    cdef int status
    layer.captured = min(layer.captured, layer.end)
    if not is_tunnel_port(port):
        status = unread(UNREAD_PORTS, 8, port, found)
        if status != OTHER or layer.captured - layer.position < UDP_HEADER or not is_vxlan(
            udp + UDP_HEADER, layer.captured - layer.position - UDP_HEADER
        ):
            return status
    if not has(layer, found, UDP_HEADER):
        return ENCAPSULATION_CUT
    layer.captured = min(layer.captured, layer.position + max(network_u16(udp + 4), <size_t>UDP_HEADER))
    layer.position += UDP_HEADER
    if port == GENEVE_PORT:
        return read_geneve(layer, found)
    if port == MPLS_PORT:
        layer.type = TYPE_MPLS
        return NEXT
    return read_vxlan(layer, found, port == VXLAN_GPE_PORT)


# --- IEEE 802.11 ---


# Bits of the second byte of a frame
cdef enum:
    WLAN_BOTH_WAYS = 3       # to and from a distribution system: there is a fourth address
    WLAN_MORE_FRAGMENTS = 4
    WLAN_PROTECTED = 0x40
    WLAN_ORDER = 0x80        # in a QoS frame: an HT control field


cdef int read_wlan(Layer* layer, Packet* found, bint padded) noexcept nogil:
    """A frame of IEEE 802.11 up to its logical link control; ``padded``: to a multiple of 4 bytes before it."""
    cdef const uint8_t* header = layer.frame + layer.position
    cdef size_t left = layer.captured - layer.position
    cdef size_t size = 24
    cdef size_t quality = 0
    if left < 2:
        return short_of(found, LINK_CUT, layer.position + 2, layer.captured)
    # Not version 0, not a data frame, or a data frame without data
    if header[0] & 3 or header[0] & 0x0C != 0x08 or header[0] & 0x40:
        return OTHER
    if header[1] & WLAN_BOTH_WAYS == WLAN_BOTH_WAYS:
        size += 6
    if header[0] & 0x80:
        quality = size
        size += 6 if header[1] & WLAN_ORDER else 2
    if left < size:
        return short_of(found, LINK_CUT, layer.position + size, layer.captured)
    if header[1] & WLAN_PROTECTED:
        return unsupported(found, WLAN_ENCRYPTED)
    if header[1] & WLAN_MORE_FRAGMENTS or header[22] & 15:
        return unsupported(found, WLAN_FRAGMENT)
    if quality and header[quality] & 0x80:
        return unsupported(found, WLAN_AGGREGATE)
    if padded:
        size = (size + 3) & ~<size_t>3
        if left < size:
            return short_of(found, LINK_CUT, layer.position + size, layer.captured)
    layer.position += size
    return NEXT


cdef int read_radiotap(Layer* layer, Packet* found) noexcept nogil:
    """Radiotap (radiotap.org), then a frame of IEEE 802.11; of its fields only the flags are read."""
    cdef const uint8_t* header = layer.frame + layer.position
    cdef size_t left = layer.captured - layer.position
    cdef size_t at = 8
    cdef size_t size
    cdef uint32_t present, word
    if left < 8:
        return short_of(found, LINK_CUT, layer.position + 8, layer.captured)
    size = load_u16(header + 2)
    if header[0] != 0 or size < 8:
        return OTHER
    if left < size:
        return short_of(found, LINK_CUT, layer.position + size, layer.captured)
    present = word = load_u32(header + 4)
    while word >> 31 and at + 4 <= size:  # more words of the fields that are present
        word = load_u32(header + at)
        at += 4
    if present & 1:  # the time, aligned to 8 bytes
        at = ((at + 7) & ~<size_t>7) + 8
    layer.position += size
    return read_wlan(layer, found, present & 2 and at < size and header[at] & 0x20)
