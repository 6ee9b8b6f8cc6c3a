"""The writers: a packet as a reader would describe it, to the bytes that a conforming sender puts on the wire."""

from libc.stddef cimport size_t
from libc.stdint cimport uint8_t

from msmqwire.mqqb.packet cimport Packet
from msmqwire.wire.format_name cimport FormatName

cdef enum:
    LARGEST_HEADERS = 512   # of a message: all its headers and all that pads them
    LARGEST_SESSION = 576   # an EstablishConnection packet has 572


cdef size_t largest_message(const Packet* packet, FormatName** lists) noexcept nogil
cdef size_t write_message(
    const Packet* packet, const uint8_t* payload, FormatName** lists, uint8_t* target
) noexcept nogil
cdef size_t write_session(const Packet* packet, uint8_t* target) noexcept nogil
