"""The classic capture format (draft-ietf-opsawg-pcap): a file header, then records of 16 bytes and a frame.

    file header:  magic u32, version u16 u16, 8 bytes that readers ignore, snapshot length u32, link type u32
    record:       seconds u32, micro- or nanoseconds u32, captured length u32, original length u32, frame

The magic tells the byte order of all numbers and the unit of the fractions.
"""

from libc.stddef cimport size_t
from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t

from msmqwire.capture.frames cimport FRAME_TOO_LARGE, LARGEST_FRAME, LOST, MORE, damaged
from msmqwire.capture.rows cimport Frame, take_general, take_plain
from msmqwire.wire.cursor cimport load_u16, load_u32
from msmqwire.wire.simd cimport wire_bswap16, wire_bswap32, wire_prefetch, wire_unlikely

cdef enum:
    MICROSECOND_MAGIC = 0xA1B2C3D4
    NANOSECOND_MAGIC = 0xA1B23C4D
    VERSION_MAJOR = 2
    RECORD_HEADER = 16
    SECOND = 1000000000  # nanoseconds
    AHEAD = 1024  # bytes: far enough for memory to answer while the records between are read
    CACHE_LINE = 64


cdef inline uint32_t number(const uint8_t* source, bint swapped) noexcept nogil:
    return wire_bswap32(load_u32(source)) if swapped else load_u32(source)


cdef bint read_pcap_header(const uint8_t* data, PcapFile* file) noexcept nogil:
    """Read the PCAP_HEADER bytes of a file header; false when they are none."""
    cdef uint32_t magic = load_u32(data)
    cdef uint16_t major = load_u16(data + 4)
    file.swapped = magic != MICROSECOND_MAGIC and magic != NANOSECOND_MAGIC
    if file.swapped:
        magic = wire_bswap32(magic)
        major = wire_bswap16(major)
    file.nanoseconds = magic == NANOSECOND_MAGIC
    file.link = number(data + 20, file.swapped) & 0xFFFF  # the upper bits tell of frame check sequences
    return (magic == MICROSECOND_MAGIC or magic == NANOSECOND_MAGIC) and major == VERSION_MAJOR


cdef uint64_t record_length(const Window* window, const PcapFile* file) noexcept nogil:
    """The length of the record at the position, or of its header when that is cut."""
    if window.size - window.position < RECORD_HEADER:
        return RECORD_HEADER
    return RECORD_HEADER + <uint64_t>number(window.data + window.position + 8, file.swapped)


cdef inline Stop walk(
    Window* window, const PcapFile* file, const uint64_t* ports, Rows* rows, Account* account,
    bint swapped, bint columns,
) noexcept nogil:
    """``walk_pcap``, compiled for each byte order, with and without columns."""
    cdef Rows target = rows[0]  # a local copy, so that no store to a column can be thought to change it
    cdef const uint8_t* record = window.data + window.position
    cdef const uint8_t* end = window.data + window.size
    cdef int64_t unit = 1 if file.nanoseconds else 1000
    cdef size_t captured
    cdef Frame frame
    cdef Stop stop = MORE
    frame.link = file.link
    frame.timed = True
    frame.number = account.frames
    while RECORD_HEADER <= end - record:
        captured = number(record + 8, swapped)
        wire_prefetch(record + AHEAD)
        wire_prefetch(record + AHEAD + CACHE_LINE)
        if wire_unlikely(captured > <size_t>(end - record) - RECORD_HEADER and captured <= LARGEST_FRAME):
            break
        frame.number += 1
        frame.data = record + RECORD_HEADER
        frame.size = captured
        if columns:
            frame.time = <int64_t>number(record, swapped) * SECOND + <int64_t>number(record + 4, swapped) * unit
        if wire_unlikely(not take_plain(&frame, ports, columns, &target, account)):
            frame.offset = window.offset + <size_t>(record - window.data)
            if captured > LARGEST_FRAME:
                damaged(account, frame.offset, FRAME_TOO_LARGE, captured, LARGEST_FRAME)
                stop = LOST
                break
            take_general(&frame, ports, columns, &target, account)
        record += RECORD_HEADER + captured
    account.frames = frame.number
    window.position = <size_t>(record - window.data)
    rows[0] = target
    return stop


cdef Stop walk_pcap(
    Window* window, const PcapFile* file, const uint64_t* ports, Rows* rows, Account* account
) noexcept nogil:
    """Take every whole record of the window."""
    if rows.columns:
        if file.swapped:
            return walk(window, file, ports, rows, account, True, True)
        return walk(window, file, ports, rows, account, False, True)
    if file.swapped:
        return walk(window, file, ports, rows, account, True, False)
    return walk(window, file, ports, rows, account, False, False)
