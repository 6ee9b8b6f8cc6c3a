"""From the bytes of a stream, in order, to its MSMQ packets, and from these to rows."""

from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint32_t, uint64_t

from msmqwire.capture.frames._frame cimport Counts, Ends, Origin, Reason, describe, name_ends, set_ports
from msmqwire.capture.frames._rows cimport MOST_FILES, MOST_PACKETS, MOST_PATHS, Rows
from msmqwire.capture.tcp._flows cimport Flow, Streams, family_of
from msmqwire.mqqb.framing cimport BASE_HEADER_SIZE, FLAG_INTERNAL
from msmqwire.wire.cursor cimport load_u16
from msmqwire.wire._transport cimport Transport


# Bits of the kinds of packets, and of the rows of connections
cdef enum:
    MESSAGE_PACKETS = 1
    SESSION_PACKETS = 2
    CONNECTION_ROWS = 4


cdef inline bint has_room(const Rows* rows, size_t size) noexcept nogil:
    """Return True if the rows can take all packets and runs that end in ``size`` more bytes of a stream.

    Each BaseHeader may end a run and begin a packet; the rows may be of the files of a run, a packet and these bytes.
    Packets that were assembled may have more bytes than a window: as many as all streams hold end in one, if their last
    bytes follow each other. A segment may end a connection as well.
    """
    return (
        MOST_PACKETS - rows.packets > 2 * (size // BASE_HEADER_SIZE + 2) and MOST_FILES - rows.file_count >= 4
        and MOST_PATHS - rows.path_count >= 2 and rows.nbytes <= rows.most_bytes
    )


cdef inline Ends ends_of_flow(const Flow* flow) noexcept nogil:
    cdef Ends ends
    ends.family = family_of(&flow.endpoints)
    ends.src = <const uint8_t*>flow.endpoints.src
    ends.dst = <const uint8_t*>flow.endpoints.dst
    set_ports(&ends, Transport.TCP, <const uint8_t*>&flow.endpoints.ports)
    return ends


cdef inline void describe_at(
    Counts* counts, const Flow* flow, const Origin* origin, Reason reason, uint64_t needed, uint64_t available
) noexcept nogil:
    """Describe a problem of a stream, with its ends, at the record of some bytes."""
    cdef Ends ends = ends_of_flow(flow)
    name_ends(describe(counts, origin.file, origin.offset, origin.frame, reason, needed, available), &ends)


cdef inline uint32_t packet_kind(const uint8_t* base_header) noexcept nogil:
    """The bit of a packet's kind."""
    return SESSION_PACKETS if load_u16(base_header + 2) & FLAG_INTERNAL else MESSAGE_PACKETS


cdef void drop_unfinished_packet(Streams* streams, Flow* flow, Rows* rows, const Counts* counts) noexcept nogil
cdef bint deliver(
    Streams* streams, Flow* flow, const uint8_t* data, size_t size, const Origin* origin, Rows* rows, Counts* counts
) noexcept nogil
