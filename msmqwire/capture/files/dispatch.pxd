"""Dispatch a frame: to a row, to its IP datagram, or to its TCP stream."""

from libc.stddef cimport size_t
from libc.stdint cimport uint16_t, uint64_t
from libc.stdlib cimport free

from msmqwire.capture.frames.fragments cimport IMPOSSIBLE, Fragments, add_part
from msmqwire.capture.frames.frame cimport FRAGMENT, FRAGMENT_DIFFERS, Counts, Frame, Reason, damaged, describe
from msmqwire.capture.frames.layers cimport (
    FOUND, IPX_PACKET, LINK_ETHERNET, OTHER, PART, TCP_PROTOCOL, UDP_HEADER, UDP_PROTOCOL, Packet, Ports,
    find_in_datagram, find_packet, plain_datagram, plain_segment, wanted,
)
from msmqwire.capture.frames.rows cimport (
    MOST_ASSEMBLED, Ends, Rows, ends_of_ip, ends_of_ipx, is_wanted, keep_memory, note_transport, put_row,
)
from msmqwire.capture.tcp.flows cimport Streams
from msmqwire.capture.tcp.streams cimport says_nothing, take_segment
from msmqwire.wire.address cimport IPV4, IPV6
from msmqwire.wire.simd cimport wire_unlikely
from msmqwire.wire.transport cimport Transport


cdef inline bint take_plain(
    const Frame* frame, size_t room, const uint64_t* ports, bint columns, Rows* rows, Counts* counts
) noexcept nogil:
    """Take a frame that is a plain datagram; false if it is not, then ``take_general`` takes it."""
    cdef size_t length = plain_datagram(frame.data, frame.size, room)
    cdef Ends ends
    if wire_unlikely(length == 0):
        return False
    if wanted(ports, frame.data + 34):
        ends = ends_of_ip(frame.data + 14, frame.data + 34, Transport.UDP)
        ends.family = IPV4  # as plain_datagram has seen
        if is_wanted(rows, &ends, frame.timed, frame.time):
            put_row(rows, columns, frame, &ends, frame.data + 42, length - UDP_HEADER)
            return True
    counts.other += 1
    return True


cdef inline bint take_part(
    const Frame* frame, Packet* found, const Ports* ports, bint columns, Rows* rows, Counts* counts, Streams* streams
) noexcept nogil:
    """Add a fragment to its datagram, and take the datagram when it is complete; false if the rows are full."""
    cdef Fragments* fragments = &streams.fragments
    cdef bint agrees
    cdef int status
    cdef Ends ends
    if rows.assembled == MOST_ASSEMBLED:
        return False
    if fragments.whole == NULL:
        if add_part(fragments, &found.part, frame, counts, &agrees) == IMPOSSIBLE:
            damaged(counts, frame.offset, FRAGMENT, found.part.offset + found.part.size, 0)
            return True
        if not agrees:
            counts.fragment_conflicts += 1
            describe(counts, counts.file, frame.offset, FRAGMENT_DIFFERS, 0, 0)
        if fragments.whole == NULL:
            counts.fragments += 1
            return True
    status = find_in_datagram(fragments.whole, fragments.size, ports, found)
    if status == FOUND and found.protocol == TCP_PROTOCOL:
        if not take_segment(streams, frame, found, rows, counts):
            return False
    elif status == FOUND:
        ends = ends_of_ip(found.ip, found.header, Transport.UDP)
        if is_wanted(rows, &ends, frame.timed, frame.time):
            put_row(rows, columns, frame, &ends, found.payload, found.size)
            if rows.first_frame != NULL:
                rows.first_frame[rows.count - 1] = fragments.first_frame
        else:
            counts.other += 1
    elif status == OTHER:
        counts.other += 1
    else:
        damaged(counts, frame.offset, <Reason>status, found.needed, found.available)
    if status == FOUND:
        keep_memory(rows, fragments.whole)
        rows.assembled += 1
    else:
        free(fragments.whole)
    fragments.whole = NULL
    return True


cdef inline void take_whole(const Frame* frame, const Ports* ports, Rows* rows, Counts* counts) noexcept nogil:
    """Add the frame itself as a row, if reassembly elsewhere needs it."""
    cdef Packet found
    cdef Ends ends
    cdef int status = find_packet(frame.data, frame.size, frame.link, ports, &found)
    if status == PART:
        ends.family = IPV6 if found.part.address_size == 16 else IPV4
        ends.src = found.part.src
        ends.dst = found.part.dst
        ends.src_port = ends.dst_port = ends.src  # a fragment has no ports, and the table no column of them
        ends.transport = Transport.UDP
    elif status == FOUND and found.protocol == IPX_PACKET:
        ends = ends_of_ipx(found.ip)
    elif status == FOUND and not (found.protocol == TCP_PROTOCOL and says_nothing(&found)):
        ends = ends_of_ip(found.ip, found.header, Transport.UDP)
    elif status == FOUND:
        counts.segments += 1
        return
    elif status == OTHER:
        counts.other += 1
        return
    else:
        damaged(counts, frame.offset, <Reason>status, found.needed, found.available)
        return
    rows.link[rows.count] = <uint16_t>frame.link
    rows.offset[rows.count] = frame.offset
    put_row(rows, True, frame, &ends, frame.data, frame.size)


cdef inline bint take_general(
    const Frame* frame, const Ports* ports, bint columns, Rows* rows, Counts* counts, Streams* streams
) noexcept nogil:
    """Take any frame: add its rows, or count it; false if the rows are full."""
    cdef Packet found
    cdef int status
    cdef Ends ends
    if columns and wire_unlikely(rows.whole):
        take_whole(frame, ports, rows, counts)
        return True
    if frame.link == LINK_ETHERNET and plain_segment(frame.data, frame.size, &found):
        if wanted(ports.tcp, found.header):
            return take_segment(streams, frame, &found, rows, counts)
        counts.other += 1
        return True
    status = find_packet(frame.data, frame.size, frame.link, ports, &found)
    if status == FOUND and found.protocol == TCP_PROTOCOL:
        return take_segment(streams, frame, &found, rows, counts)
    if status == PART:
        return take_part(frame, &found, ports, columns, rows, counts, streams)
    if status == FOUND:
        if found.protocol == UDP_PROTOCOL:
            ends = ends_of_ip(found.ip, found.header, Transport.UDP)
        else:
            ends = ends_of_ipx(found.ip)
        if not is_wanted(rows, &ends, frame.timed, frame.time):
            counts.other += 1
            return True
        if found.protocol != UDP_PROTOCOL:
            note_transport(rows, Transport.IPX)
        put_row(rows, columns, frame, &ends, found.payload, found.size)
    elif status == OTHER:
        counts.other += 1
    else:
        damaged(counts, frame.offset, <Reason>status, found.needed, found.available)
    return True
