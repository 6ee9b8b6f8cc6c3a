"""What carried a payload: the codes of the capture column ``transport`` and of every ``transport=`` argument."""

from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint32_t


cpdef enum Transport:
    """What carried a payload. Names are written in lower case: ``transport="udp"``."""
    UNKNOWN
    UDP
    TCP
    IPX


cdef class Transports:
    """The transport of each payload of a batch."""
    cdef object owner            # of the codes
    cdef const uint8_t* codes    # NULL: ``code`` holds for every payload
    cdef uint32_t code


cdef inline uint32_t transport_at(Transports transports, size_t i) noexcept nogil:
    return transports.code if transports.codes == NULL else transports.codes[i]


cdef dict accepted_transports(tuple names)
cdef uint32_t transport_code(str transport, dict accepted) except? 0xFFFFFFFF
cdef Transports parse_transports(object transport, dict accepted, size_t count)
