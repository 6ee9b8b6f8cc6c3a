"""From TCP segments to the MSMQ packets of their streams."""

from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint32_t, uint64_t

from msmqwire.capture.flows cimport FlowTable
from msmqwire.capture.fragments cimport Fragments
from msmqwire.capture.frames cimport Account, Frame, Rows
from msmqwire.capture.layers cimport Packet

# Control bits of a segment
cdef enum:
    FIN = 1
    SYN = 2
    RST = 4

# Kinds of packets, as bits of those that give rows; in the order of PACKET_KINDS in schema.py
cdef enum:
    MESSAGE_PACKETS = 1
    SESSION_PACKETS = 2


# The account of all streams, in the order of the fields of StreamStats in stats.py.
cdef struct StreamCounts:
    uint64_t streams
    uint64_t packets
    uint64_t unselected
    uint64_t bytes
    uint64_t framed
    uint64_t skipped
    uint64_t duplicate
    uint64_t held
    uint64_t missing
    uint64_t gaps
    uint64_t conflicts
    uint64_t no_packet
    uint64_t unfinished
    uint64_t evictions


cdef struct Streams:
    FlowTable table
    uint32_t kinds        # of packets that give rows
    size_t most_ahead     # bytes of a flow that may wait for those in front of them
    size_t most_memory    # bytes of all flows
    size_t most_flows
    uint32_t waiting      # the flow whose bytes in order the rows had no room for, or NO_FLOW
    bint no_memory        # was left, once
    Fragments fragments   # IP datagrams that are not whole yet
    StreamCounts counts


cdef inline bint says_nothing(const Packet* found) noexcept nogil:
    """Whether a segment only acknowledges."""
    return found.size + found.missing == 0 and not found.header[13] & (FIN | SYN | RST)


cdef bint take_segment(
    Streams* streams, const Frame* frame, const Packet* found, Rows* rows, Account* account
) noexcept nogil
cdef bint deliver_waiting(Streams* streams, Rows* rows, Account* account) noexcept nogil
cdef bint finish_streams(Streams* streams, Rows* rows, Account* account) noexcept nogil


cdef class StreamTable:
    cdef Streams streams
    cdef readonly list files


cdef class PacketMemory:
    cdef void** blocks
    cdef size_t count


cdef PacketMemory take_memory(Rows* rows)
