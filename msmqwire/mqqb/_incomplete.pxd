"""Packets that lost bytes at their ends: the fields that are whole, and the first that is not."""

from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint32_t

from msmqwire.mqqb._kernel cimport BLANK_SIZE, Packet
from msmqwire.wire._fault cimport Fault


# A copy of the header that lacks bytes, then zeros
cdef struct CutHeader:
    uint8_t[BLANK_SIZE] data
    size_t size


cdef bint read_incomplete_message(
    const uint8_t* data, size_t size, size_t lost, Packet* packet, Fault* fault, CutHeader* header
) noexcept nogil
cdef bint read_incomplete_session(
    const uint8_t* data, size_t size, size_t lost, uint32_t transport, Packet* packet, Fault* fault, CutHeader* header
) noexcept nogil
