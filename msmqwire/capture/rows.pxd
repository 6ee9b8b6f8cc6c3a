"""One frame into the rows of a block."""

from libc.stddef cimport size_t
from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from libc.stdlib cimport free

from msmqwire.capture.fragments cimport IMPOSSIBLE, Fragments, add_part
from msmqwire.capture.frames cimport (
    FRAGMENT, FRAGMENT_DIFFERS, MOST_ASSEMBLED, TIMED, Account, Frame, Reason, Rows, damaged, describe, keep_memory,
)
from msmqwire.capture.layers cimport (
    FOUND, IPX_PACKET, LINK_ETHERNET, OTHER, PART, TCP, UDP, UDP_HEADER, Packet, Ports, find_in_datagram, find_packet,
    network_u16, plain_datagram, plain_segment, wanted,
)
from msmqwire.capture.selection cimport selects
from msmqwire.capture.streams cimport Streams, says_nothing, take_segment
from msmqwire.columns.batch cimport DECODED
from msmqwire.wire.address cimport ADDRESS_FAMILY_AT, ADDRESS_SIZE, IPV4, IPV6, IPX
from msmqwire.wire.simd cimport wire_unlikely


# Values of the column transport, as TRANSPORTS in schema.py has them
cdef enum:
    OVER_UDP = 0
    OVER_TCP = 1
    OVER_IPX = 2


# Where a packet goes from and to: its network header and those places in it or behind it that the rows show
cdef struct Ends:
    uint16_t family
    uint8_t transport
    const uint8_t* src
    const uint8_t* dst
    const uint8_t* src_port
    const uint8_t* dst_port


cdef inline Ends ends_of_ip(const uint8_t* ip, const uint8_t* header, uint8_t transport) noexcept nogil:
    """The ends of a UDP datagram or TCP segment behind an IP header of either version."""
    cdef Ends ends
    cdef bint ipv6 = ip[0] >> 4 == 6
    ends.family = IPV6 if ipv6 else IPV4
    ends.transport = transport
    ends.src = ip + (8 if ipv6 else 12)
    ends.dst = ip + (24 if ipv6 else 16)
    ends.src_port = header
    ends.dst_port = header + 2
    return ends


cdef inline Ends ends_of_ipx(const uint8_t* ipx) noexcept nogil:
    """The ends of an IPX packet: network and node, then the socket."""
    cdef Ends ends
    ends.family = IPX
    ends.transport = OVER_IPX
    ends.src = ipx + 18
    ends.dst = ipx + 6
    ends.src_port = ipx + 28
    ends.dst_port = ipx + 16
    return ends


cdef inline void put_address(uint8_t* column, size_t row, const uint8_t* address, uint16_t family) noexcept nogil:
    cdef uint8_t* target = column + ADDRESS_SIZE * row
    if family == IPV6:
        memcpy(target, address, 16)
    elif family == IPV4:
        memcpy(target, address, 4)
        memset(target + 4, 0, 12)
    else:
        memcpy(target, address, 10)
        memset(target + 10, 0, 6)
    memcpy(target + ADDRESS_FAMILY_AT, &family, 2)


cdef inline void put_columns(const Rows* rows, const Frame* frame, const Ends* ends) noexcept nogil:
    cdef size_t row = rows.count
    rows.presence[row] = <uint8_t>(DECODED | TIMED if frame.timed else DECODED)
    if rows.file != NULL:
        rows.file[row] = 0
    if rows.frame != NULL:
        rows.frame[row] = frame.number
    if rows.first_frame != NULL:
        rows.first_frame[row] = frame.number
    if rows.time != NULL:
        rows.time[row] = frame.time
    if rows.src != NULL:
        put_address(rows.src, row, ends.src, ends.family)
    if rows.src_port != NULL:
        rows.src_port[row] = <uint16_t>network_u16(ends.src_port)
    if rows.dst != NULL:
        put_address(rows.dst, row, ends.dst, ends.family)
    if rows.dst_port != NULL:
        rows.dst_port[row] = <uint16_t>network_u16(ends.dst_port)
    if rows.transport != NULL:
        rows.transport[row] = ends.transport
    if rows.stream_offset != NULL:
        rows.stream_offset[row] = 0


cdef inline void note_transport(Rows* rows, uint32_t transport) noexcept nogil:
    """The next row is not of UDP."""
    rows.others[rows.other_count] = <uint32_t>(rows.next - rows.spans) << 2 | transport
    rows.other_count += 1


cdef inline void put_row(
    Rows* rows, bint columns, const Frame* frame, const Ends* ends, const uint8_t* payload, size_t size
) noexcept nogil:
    rows.next.data = payload
    rows.next.size = size
    rows.next += 1
    rows.nbytes += size
    if columns:
        put_columns(rows, frame, ends)
        rows.count += 1


cdef inline bint is_wanted(const Rows* rows, const Frame* frame, const Ends* ends) noexcept nogil:
    if wire_unlikely(rows.selection != NULL):
        return selects(rows.selection, frame.timed, frame.time, ends.family, ends.src, ends.dst)
    return True


cdef inline bint take_plain(
    const Frame* frame, size_t room, const uint64_t* ports, bint columns, Rows* rows, Account* account
) noexcept nogil:
    """Take a frame that is a plain datagram; false when it is not and must go the general way."""
    cdef size_t length = plain_datagram(frame.data, frame.size, room)
    cdef Ends ends
    if wire_unlikely(length == 0):
        return False
    if wanted(ports, frame.data + 34):
        ends = ends_of_ip(frame.data + 14, frame.data + 34, OVER_UDP)
        ends.family = IPV4  # as plain_datagram has seen
        if is_wanted(rows, frame, &ends):
            put_row(rows, columns, frame, &ends, frame.data + 42, length - UDP_HEADER)
            return True
    account.other += 1
    return True


cdef inline bint take_part(
    const Frame* frame, Packet* found, const Ports* ports, bint columns, Rows* rows, Account* account, Streams* streams
) noexcept nogil:
    """Put a fragment to its datagram and take what is in a whole one; false when there is no room."""
    cdef Fragments* fragments = &streams.fragments
    cdef bint agrees
    cdef int status
    cdef Ends ends
    if rows.assembled == MOST_ASSEMBLED:
        return False
    if fragments.whole == NULL:
        if add_part(fragments, &found.part, frame, account, &agrees) == IMPOSSIBLE:
            damaged(account, frame.offset, FRAGMENT, found.part.offset + found.part.size, 0)
            return True
        if not agrees:
            account.fragment_conflicts += 1
            describe(account, account.file, frame.offset, FRAGMENT_DIFFERS, 0, 0)
        if fragments.whole == NULL:
            account.fragments += 1
            return True
    status = find_in_datagram(fragments.whole, fragments.size, ports, found)
    if status == FOUND and found.protocol == TCP:
        if not take_segment(streams, frame, found, rows, account):
            return False
    elif status == FOUND:
        ends = ends_of_ip(found.ip, found.header, OVER_UDP)
        if is_wanted(rows, frame, &ends):
            put_row(rows, columns, frame, &ends, found.payload, found.size)
            if rows.first_frame != NULL:
                rows.first_frame[rows.count - 1] = fragments.first_frame
        else:
            account.other += 1
    elif status == OTHER:
        account.other += 1
    else:
        damaged(account, frame.offset, <Reason>status, found.needed, found.available)
    if status == FOUND:
        keep_memory(rows, fragments.whole)
        rows.assembled += 1
    else:
        free(fragments.whole)
    fragments.whole = NULL
    return True


cdef inline void take_whole(const Frame* frame, const Ports* ports, Rows* rows, Account* account) noexcept nogil:
    """A row of the frame itself, where somebody who puts streams and datagrams together needs it."""
    cdef Packet found
    cdef Ends ends
    cdef int status = find_packet(frame.data, frame.size, frame.link, ports, &found)
    if status == PART:
        ends.family = IPV6 if found.part.address_size == 16 else IPV4
        ends.src = found.part.src
        ends.dst = found.part.dst
    elif status == FOUND and found.protocol == IPX_PACKET:
        ends = ends_of_ipx(found.ip)
    elif status == FOUND and not (found.protocol == TCP and says_nothing(&found)):
        ends = ends_of_ip(found.ip, found.header, OVER_UDP)
    elif status == FOUND:
        account.segments += 1
        return
    elif status == OTHER:
        account.other += 1
        return
    else:
        damaged(account, frame.offset, <Reason>status, found.needed, found.available)
        return
    rows.link[rows.count] = <uint16_t>frame.link
    rows.offset[rows.count] = frame.offset
    put_row(rows, True, frame, &ends, frame.data, frame.size)


cdef inline bint take_general(
    const Frame* frame, const Ports* ports, bint columns, Rows* rows, Account* account, Streams* streams
) noexcept nogil:
    """A row, those that a segment completes, or one more of the others or the damaged; false when there is no room."""
    cdef Packet found
    cdef int status
    cdef Ends ends
    if columns and wire_unlikely(rows.whole):
        take_whole(frame, ports, rows, account)
        return True
    if frame.link == LINK_ETHERNET and plain_segment(frame.data, frame.size, &found):
        if wanted(ports.tcp, found.header):
            return take_segment(streams, frame, &found, rows, account)
        account.other += 1
        return True
    status = find_packet(frame.data, frame.size, frame.link, ports, &found)
    if status == FOUND and found.protocol == TCP:
        return take_segment(streams, frame, &found, rows, account)
    if status == PART:
        return take_part(frame, &found, ports, columns, rows, account, streams)
    if status == FOUND:
        if found.protocol == UDP:
            ends = ends_of_ip(found.ip, found.header, OVER_UDP)
        else:
            ends = ends_of_ipx(found.ip)
        if not is_wanted(rows, frame, &ends):
            account.other += 1
            return True
        if found.protocol != UDP:
            note_transport(rows, OVER_IPX)
        put_row(rows, columns, frame, &ends, found.payload, found.size)
    elif status == OTHER:
        account.other += 1
    else:
        damaged(account, frame.offset, <Reason>status, found.needed, found.available)
    return True
