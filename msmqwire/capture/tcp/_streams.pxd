"""From TCP segments to the MSMQ packets of their streams."""

from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint32_t, uint64_t

from msmqwire.capture.frames._frame cimport Counts, Ends, Frame
from msmqwire.capture.frames.packet cimport Packet
from msmqwire.capture.frames._rows cimport Rows
from msmqwire.capture.tcp._flows cimport Endpoints, Streams
from msmqwire.wire._address cimport IPV6
from msmqwire.wire.cursor cimport load_u32, load_u64

# Control bits of a segment
cdef enum:
    FIN = 1
    SYN = 2
    RST = 4
    ACK = 16

cdef inline bint says_nothing(const Packet* found) noexcept nogil:
    """Return True if a segment only acknowledges."""
    return found.size + found.missing == 0 and not found.header[13] & (FIN | SYN | RST)


cdef inline void read_endpoints(const Packet* found, Endpoints* endpoints) noexcept nogil:
    cdef const Ends* ends = &found.ends
    endpoints.ports = <uint64_t>ends.family << 32 | load_u32(found.header)
    if ends.family == IPV6:
        endpoints.src[0], endpoints.src[1] = load_u64(ends.src), load_u64(ends.src + 8)
        endpoints.dst[0], endpoints.dst[1] = load_u64(ends.dst), load_u64(ends.dst + 8)
    else:
        endpoints.src[0], endpoints.src[1] = load_u32(ends.src), 0
        endpoints.dst[0], endpoints.dst[1] = load_u32(ends.dst), 0


cdef bint take_segment(
    Streams* streams, const Frame* frame, const Packet* found, Rows* rows, Counts* counts
) noexcept nogil
cdef bint deliver_waiting(Streams* streams, Rows* rows, Counts* counts) noexcept nogil
cdef bint finish_streams(Streams* streams, Rows* rows, Counts* counts) noexcept nogil


cdef class StreamTable:
    cdef Streams streams
    cdef readonly list files


cdef class PacketMemory:
    cdef void** blocks
    cdef size_t count


cdef PacketMemory take_memory(Rows* rows)
