"""One frame into the rows of a block."""

from libc.stddef cimport size_t
from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from msmqwire.capture.frames cimport TIMED, Account, Reason, Rows, damaged
from msmqwire.capture.layers cimport (
    FOUND, OTHER, UDP, UDP_HEADER, Packet, Ports, find_packet, network_u16, plain_datagram, wanted,
)
from msmqwire.columns.batch cimport DECODED
from msmqwire.wire.address cimport ADDRESS_FAMILY_AT, ADDRESS_SIZE, IPV4, IPV6
from msmqwire.wire.simd cimport wire_unlikely


# What a file format knows about a frame.
cdef struct Frame:
    const uint8_t* data
    size_t size        # as far as it was captured
    uint32_t link
    bint timed
    int64_t time
    uint64_t number    # in its file, from 1
    uint64_t offset    # of its record in the file


cdef inline void put_address(uint8_t* column, size_t row, const uint8_t* address, bint ipv6) noexcept nogil:
    cdef uint8_t* target = column + ADDRESS_SIZE * row
    cdef uint16_t family = IPV6 if ipv6 else IPV4
    if ipv6:
        memcpy(target, address, 16)
    else:
        memcpy(target, address, 4)
        memset(target + 4, 0, 12)
    memcpy(target + ADDRESS_FAMILY_AT, &family, 2)


cdef inline void put_columns(
    const Rows* rows, const Frame* frame, const uint8_t* ip, const uint8_t* udp
) noexcept nogil:
    cdef size_t row = rows.count
    cdef bint ipv6 = ip[0] >> 4 == 6
    rows.presence[row] = <uint8_t>(DECODED | TIMED if frame.timed else DECODED)
    if rows.file != NULL:
        rows.file[row] = 0
    if rows.frame != NULL:
        rows.frame[row] = frame.number
    if rows.time != NULL:
        rows.time[row] = frame.time
    if rows.src != NULL:
        put_address(rows.src, row, ip + (8 if ipv6 else 12), ipv6)
    if rows.src_port != NULL:
        rows.src_port[row] = <uint16_t>network_u16(udp)
    if rows.dst != NULL:
        put_address(rows.dst, row, ip + (24 if ipv6 else 16), ipv6)
    if rows.dst_port != NULL:
        rows.dst_port[row] = <uint16_t>network_u16(udp + 2)
    if rows.transport != NULL:
        rows.transport[row] = 0
    if rows.stream_offset != NULL:
        rows.stream_offset[row] = 0


cdef inline void put_row(
    Rows* rows, bint columns, const Frame* frame, const uint8_t* ip, const uint8_t* udp, size_t size
) noexcept nogil:
    rows.next.data = udp + UDP_HEADER
    rows.next.size = size
    rows.next += 1
    rows.nbytes += size
    if columns:
        put_columns(rows, frame, ip, udp)
        rows.count += 1


cdef inline bint take_plain(
    const Frame* frame, size_t room, const uint64_t* ports, bint columns, Rows* rows, Account* account
) noexcept nogil:
    """Take a frame that is a plain datagram; false when it is not and must go the general way."""
    cdef size_t length = plain_datagram(frame.data, frame.size, room)
    if wire_unlikely(length == 0):
        return False
    if wanted(ports, frame.data + 34):
        put_row(rows, columns, frame, frame.data + 14, frame.data + 34, length - UDP_HEADER)
    else:
        account.other += 1
    return True


cdef inline void take_general(
    const Frame* frame, const Ports* ports, bint columns, Rows* rows, Account* account
) noexcept nogil:
    """One row, or one more among the others or the damaged."""
    cdef Packet found
    cdef int status = find_packet(frame.data, frame.size, frame.link, ports, &found)
    account.fragments += found.fragment
    if status == FOUND and found.protocol == UDP:
        put_row(rows, columns, frame, found.ip, found.header, found.size)
    elif status == FOUND or status == OTHER:
        account.other += 1
    else:
        damaged(account, frame.offset, <Reason>status, found.needed, found.available)
