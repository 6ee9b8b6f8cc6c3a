"""Packets inside of packets: the headers between the link layer and the IP packet of a payload.

The encapsulations around a packet are its path: MOST_ENCAPSULATIONS numbers of 5 bits, the outermost first, and zeros
before them.
"""

from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint32_t

from msmqwire.capture.frames.packet cimport Layer, Packet

cdef enum:
    MOST_ENCAPSULATIONS = 6  # around a packet
    PATH_BITS = 5

# The names are ENCAPSULATIONS in _encapsulations.pyx.
cdef enum Encapsulation:
    MPLS = 1
    PPPOE
    VN_TAG
    E_TAG
    CISCO_METADATA
    IPV4_IN_IP
    IPV6_IN_IP
    GRE
    ERSPAN
    VXLAN
    GENEVE

# Values of EtherType that announce an encapsulation
cdef enum:
    TYPE_ETHERNET = 0x6558
    TYPE_PPP = 0x880B
    TYPE_MPLS = 0x8847
    TYPE_MPLS_UPSTREAM = 0x8848
    TYPE_PPPOE = 0x8864

# Values of Protocol that announce an encapsulation that is read
cdef enum:
    IPV4_PROTOCOL = 4
    IPV6_PROTOCOL = 41
    GRE_PROTOCOL = 47
    MPLS_PROTOCOL = 137

# ESP is read where it is not encrypted, and in one piece
cdef enum:
    ESP_PROTOCOL = 50
    AUTHENTICATION_PROTOCOL = 51
    SECURITY_HEADER = 8  # bytes of ESP before its payload

cdef enum:
    VXLAN_FLAGS = 8  # the first four bytes of VXLAN, as a little-endian number


cdef inline bint is_encapsulation(uint32_t protocol) noexcept nogil:
    """Return True if a value of Protocol announces an encapsulation that is read."""
    return (
        protocol == IPV4_PROTOCOL or protocol == IPV6_PROTOCOL or protocol == GRE_PROTOCOL or protocol == MPLS_PROTOCOL
    )


cdef bint is_tunnel_port(size_t port) noexcept nogil
cdef bint is_vxlan(const uint8_t* data, size_t size) noexcept nogil
cdef int read_security_payload(Layer* layer, Packet* found) noexcept nogil
cdef int unsupported_protocol(uint32_t protocol, Packet* found) noexcept nogil
cdef int read_by_type(Layer* layer, Packet* found) noexcept nogil
cdef int read_by_protocol(Layer* layer, Packet* found) noexcept nogil
cdef int read_by_port(Layer* layer, Packet* found) noexcept nogil
cdef int read_radiotap(Layer* layer, Packet* found) noexcept nogil
cdef int read_wlan(Layer* layer, Packet* found, bint padded) noexcept nogil
