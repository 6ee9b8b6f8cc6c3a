"""Dispatch a frame: to a row, to its IP datagram, or to its TCP stream."""

from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint16_t, uint64_t

from msmqwire.capture.frames._fragments cimport (
    IMPOSSIBLE, Datagram, Fragments, add_part, frame_of, free_datagram,
)
from msmqwire.capture.frames._frame cimport (
    FRAGMENT, FRAGMENT_DIFFERS, LINK_TYPES, PAYLOAD_CUT, Counts, Ends, Frame, Reason, describe, malformed, name_ends,
    set_addresses, set_ports,
)
from msmqwire.capture.frames._layers cimport (
    FOUND, LINK_ETHERNET, OTHER, PART, UDP_HEADER, UNREAD, UNSUPPORTED_ENCAPSULATION,
    UNSUPPORTED_LINK, Packet, Ports, find_in_datagram, find_packet, may_be_tunnel, may_be_unread, plain_datagram,
    plain_segment, parse_plain_segment, wanted,
)
from msmqwire.capture.frames._rows cimport (
    MOST_ASSEMBLED, MOST_PATHS, Rows, is_wanted, keep_memory, note_lost, note_transport, put_row,
)
from msmqwire.capture.tcp._flows cimport Streams
from msmqwire.capture.tcp._streams cimport says_nothing, take_segment
from msmqwire.capture.tcp._unread cimport note_unread
from msmqwire.wire._address cimport IPV4, NO_ADDRESS
from msmqwire.wire.simd cimport wire_unlikely
from msmqwire.wire._transport cimport Transport


cdef inline void count_without_row(Counts* counts, const Frame* frame, int status, const Packet* found) noexcept nogil:
    """Count a frame in which nothing was found, by what ``find_packet`` returned."""
    cdef size_t link
    if status == OTHER or status == UNREAD:
        counts.sums.other += 1
    elif status == UNSUPPORTED_LINK:
        link = min(<size_t>found.unsupported, <size_t>LINK_TYPES - 1)
        counts.sums.unsupported += 1
        counts.unsupported_links[link] += 1
    elif status == UNSUPPORTED_ENCAPSULATION:
        counts.sums.unsupported += 1
        counts.unsupported_encapsulations[found.unsupported] += 1
    else:
        malformed(counts, frame.offset, frame.number, <Reason>status, found.needed, found.available)


cdef inline bint is_payload(int status, const Packet* found) noexcept nogil:
    """Return True if a payload was found, all of it or the first bytes of a datagram."""
    return status == FOUND or (status == PAYLOAD_CUT and found.missing)


cdef inline bint parse_plain_udp(
    const Frame* frame, size_t space, const uint64_t* ports, bint columns, Rows* rows, Counts* counts
) noexcept nogil:
    """Take a frame that is a plain datagram; false if it is not, then ``parse_any_frame`` takes it."""
    cdef size_t length = plain_datagram(frame.data, frame.size, space)
    cdef Ends ends
    if wire_unlikely(length == 0):
        return False
    if wanted(ports, frame.data + 34):
        set_addresses(&ends, IPV4, frame.data + 26)
        set_ports(&ends, Transport.UDP, frame.data + 34)
        if is_wanted(rows, &ends, frame.timed, frame.time):
            put_row(rows, columns, frame, &ends, frame.data + 42, length - UDP_HEADER, 0)
            return True
    elif wire_unlikely(may_be_tunnel(frame.data + 36, length)):
        return False
    counts.sums.other += 1
    return True


cdef inline bint put_datagram(
    const Frame* frame, const Packet* found, bint columns, Rows* rows, Counts* counts
) noexcept nogil:
    """Add the row of a UDP datagram or an IPX packet, if it is selected; whether it is."""
    cdef const Ends* ends = &found.ends
    if not is_wanted(rows, ends, frame.timed, frame.time):
        counts.sums.other += 1
        return False
    if wire_unlikely(found.missing != 0):
        name_ends(malformed(counts, frame.offset, frame.number, PAYLOAD_CUT, found.needed, found.available), ends)
        note_lost(rows, found.missing)
        rows.cut += 1
    if ends.transport == Transport.IPX:
        note_transport(rows, Transport.IPX)
    put_row(rows, columns, frame, ends, found.payload, found.size, found.path)
    return True


cdef inline bint add_fragment(
    Fragments* fragments, const Frame* frame, uint64_t number, const Packet* found, Counts* counts
) noexcept nogil:
    """Add a fragment, whose first byte is in the frame ``number``; whether its datagram is complete."""
    cdef bint agrees
    if add_part(fragments, &found.part, frame, number, counts, &agrees) == IMPOSSIBLE:
        malformed(counts, frame.offset, frame.number, FRAGMENT, found.part.offset + found.part.size, 0)
        return False
    if not agrees:
        counts.sums.fragment_conflicts += 1
        name_ends(
            describe(counts, counts.file, frame.offset, frame.number, FRAGMENT_DIFFERS, 0, 0), &found.part.ends
        )
    if fragments.complete == NULL:
        counts.sums.fragments += 1
        return False
    return True


cdef inline int complete_datagram(
    Fragments* fragments, const Frame* frame, const Ports* ports, Packet* found, Counts* counts
) noexcept nogil:
    """What is in the complete datagram; PART if that is a fragment, and the datagram of the fragment is incomplete."""
    cdef Datagram* datagram
    cdef uint64_t first
    cdef bint complete
    cdef int status = find_in_datagram(fragments.complete, ports, found)
    while status == PART:
        datagram = fragments.complete
        fragments.complete = NULL
        first = frame_of(datagram, place_of(datagram, found.part.data))
        complete = add_fragment(fragments, frame, first, found, counts)
        free_datagram(datagram)
        if not complete:
            return PART
        status = find_in_datagram(fragments.complete, ports, found)
    return status


cdef inline size_t place_of(const Datagram* datagram, const uint8_t* data) noexcept nogil:
    """The place of a byte in its datagram; of an end, the place before it."""
    return min(<size_t>(data - datagram.data), datagram.total - 1)


cdef inline bint take_part(
    const Frame* frame, Packet* found, const Ports* ports, bint columns, Rows* rows, Counts* counts, Streams* streams
) noexcept nogil:
    """Add a fragment to its datagram, and take the datagram when it is complete; false if the rows are full."""
    cdef Fragments* fragments = &streams.fragments
    cdef Datagram* datagram
    cdef int status
    if rows.assembled == MOST_ASSEMBLED or rows.path_count == MOST_PATHS:
        return False
    if fragments.complete == NULL and not add_fragment(fragments, frame, frame.number, found, counts):
        return True
    status = complete_datagram(fragments, frame, ports, found, counts)
    if status == PART:
        return True
    datagram = fragments.complete
    if not is_payload(status, found):
        if status == UNREAD:
            note_unread(streams, found, counts)
        count_without_row(counts, frame, status, found)
    elif found.ends.transport == Transport.TCP:
        if not take_segment(streams, frame, found, rows, counts):
            return False
    elif put_datagram(frame, found, columns, rows, counts):
        if rows.first_frame != NULL:
            rows.first_frame[rows.count - 1] = frame_of(datagram, place_of(datagram, found.payload))
    else:
        status = OTHER
    if is_payload(status, found):
        keep_memory(rows, datagram.data)
        datagram.data = NULL
        rows.assembled += 1
    free_datagram(datagram)
    fragments.complete = NULL
    return True


cdef inline void take_frame(const Frame* frame, const Ports* ports, Rows* rows, Counts* counts) noexcept nogil:
    """Add the frame itself as a row, if reassembly elsewhere needs it, or every frame is one."""
    cdef Packet found
    cdef int status = find_packet(frame.data, frame.size, frame.link, ports, &found)
    cdef bint has_ends = status == PART or is_payload(status, &found)
    if not has_ends and rows.every_frame:
        found.ends.family = NO_ADDRESS
        found.ends.transport = Transport.UNKNOWN
    if status == FOUND and not rows.every_frame and found.ends.transport == Transport.TCP and says_nothing(&found):
        counts.sums.segments += 1
    elif has_ends or rows.every_frame:
        rows.link[rows.count] = <uint16_t>frame.link
        rows.offset[rows.count] = frame.offset
        if rows.length != NULL:
            rows.length[rows.count] = frame.original
        put_row(rows, True, frame, &found.ends, frame.data, frame.size, 0)
    else:
        count_without_row(counts, frame, status, &found)


cdef inline bint parse_any_frame(
    const Frame* frame, const Ports* ports, bint columns, Rows* rows, Counts* counts, Streams* streams
) noexcept nogil:
    """Take any frame: add its rows, or count it; false if the rows are full."""
    cdef Packet found
    cdef size_t header
    cdef size_t length = 0
    cdef int status
    if columns and wire_unlikely(rows.frames_only):
        take_frame(frame, ports, rows, counts)
        return True
    header = plain_segment(frame.data, frame.size, &length) if frame.link == LINK_ETHERNET else 0
    if header:
        if wanted(ports.tcp, frame.data + 34):
            parse_plain_segment(frame.data, header, length, &found)
            return take_segment(streams, frame, &found, rows, counts)
        if wire_unlikely(may_be_unread(frame.data + 34 + header, length)):
            parse_plain_segment(frame.data, header, length, &found)
            note_unread(streams, &found, counts)
        counts.sums.other += 1
        return True
    status = find_packet(frame.data, frame.size, frame.link, ports, &found)
    if status == FOUND and found.ends.transport == Transport.TCP:
        return take_segment(streams, frame, &found, rows, counts)
    if status == PART:
        return take_part(frame, &found, ports, columns, rows, counts, streams)
    if is_payload(status, &found):
        if wire_unlikely(found.path != 0 and rows.path_count == MOST_PATHS):
            return False
        put_datagram(frame, &found, columns, rows, counts)
    else:
        if status == UNREAD:
            note_unread(streams, &found, counts)
        count_without_row(counts, frame, status, &found)
    return True
