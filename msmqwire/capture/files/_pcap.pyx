"""The classic capture format (draft-ietf-opsawg-pcap): a file header, then records of 16 bytes and a frame.

    file header:  magic u32, version u16 u16, 8 bytes that readers ignore, snapshot length u32, link type u32
    record:       seconds u32, micro- or nanoseconds u32, captured length u32, original length u32, frame

The magic tells the byte order of all numbers and the unit of the fractions.
"""

from libc.stddef cimport size_t
from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t

from msmqwire.capture.files.dispatch cimport parse_any_frame, parse_plain_udp
from msmqwire.capture.files.window cimport (
    FOLLOWED, FULL, LOST, MORE, SECOND, Stop, Window, fetch_ahead, number, reach,
)
from msmqwire.capture.frames._frame cimport (
    FRACTION, FRAME_OVER_ORIGINAL, FRAME_TOO_LARGE, LARGEST_FRAME, Counts, Frame, malformed,
)
from msmqwire.capture.frames._layers cimport LINK_ETHERNET, PLAIN_SPACE, Ports
from msmqwire.capture.frames._rows cimport Rows
from msmqwire.capture.tcp._flows cimport NO_FLOW, Streams
from msmqwire.wire.cursor cimport load_u16, load_u32
from msmqwire.wire.simd cimport wire_bswap16, wire_bswap32, wire_unlikely

cdef enum:
    MICROSECOND_MAGIC = 0xA1B2C3D4
    NANOSECOND_MAGIC = 0xA1B23C4D
    VERSION_MAJOR = 2
    RECORD_HEADER = 16
    MILLION = 1000000
    DAY = 86400
    LARGEST_ORIGINAL = 1 << 24


cdef inline int64_t time_of(const uint8_t* record, int64_t unit, bint swapped) noexcept nogil:
    return <int64_t>number(record, swapped) * SECOND + <int64_t>number(record + 4, swapped) * unit


cdef bint read_pcap_header(const uint8_t* data, PcapFile* file) noexcept nogil:
    """Read the PCAP_HEADER bytes of a file header; false if they are not valid."""
    cdef uint32_t magic = load_u32(data)
    cdef uint16_t major = load_u16(data + 4)
    file.swapped = magic != MICROSECOND_MAGIC and magic != NANOSECOND_MAGIC
    if file.swapped:
        magic = wire_bswap32(magic)
        major = wire_bswap16(major)
    file.nanoseconds = magic == NANOSECOND_MAGIC
    file.link = number(data + 20, file.swapped) & 0xFFFF  # the upper bits describe frame check sequences
    return (magic == MICROSECOND_MAGIC or magic == NANOSECOND_MAGIC) and major == VERSION_MAJOR


cdef uint64_t record_length(const Window* window, const PcapFile* file) noexcept nogil:
    """The length of the record at the position, or of its header if that is truncated."""
    if window.size - window.position < RECORD_HEADER:
        return RECORD_HEADER
    return RECORD_HEADER + <uint64_t>number(window.data + window.position + 8, file.swapped)


cdef inline bint has_fraction(const uint8_t* record, const PcapFile* file) noexcept nogil:
    """Return True if the fraction is below a second in nanoseconds."""
    return number(record + 4, file.swapped) < <uint32_t>SECOND


cdef inline bint has_valid_lengths(const uint8_t* record, const PcapFile* file) noexcept nogil:
    """Return True if the captured length is at most the original one, and the fraction is one."""
    return number(record + 8, file.swapped) <= number(record + 12, file.swapped) and has_fraction(record, file)


cdef inline bint plausible(const uint8_t* record, const PcapFile* file) noexcept nogil:
    """Return True if these could be the 16 bytes before a frame; about one in 2**40 random ones could."""
    cdef uint32_t captured = number(record + 8, file.swapped)
    return (
        number(record, file.swapped) != 0 and captured != 0 and captured <= <uint32_t>LARGEST_FRAME
        and number(record + 12, file.swapped) <= <uint32_t>LARGEST_ORIGINAL and has_valid_lengths(record, file)
    )


cdef inline bint within_a_day(const uint8_t* record, const uint8_t* other, bint swapped) noexcept nogil:
    """Return True if the two were captured within a day of each other."""
    cdef int64_t apart = <int64_t>number(record, swapped) - <int64_t>number(other, swapped)
    return -DAY <= apart <= DAY


cdef bint find_record(Window* window, const PcapFile* file, bint ended) noexcept nogil:
    """Move to the next place where a record may begin: one that another follows, or that ends with the file.

    False if there is none: the bytes after the position must then be searched again with more of the file.
    """
    cdef const uint8_t* record = window.data + window.position
    cdef const uint8_t* end = window.data + window.size
    cdef const uint8_t* next
    cdef size_t captured
    cdef bint found = False
    while RECORD_HEADER <= end - record:
        captured = number(record + 8, file.swapped)
        if plausible(record, file):
            if not ended and RECORD_HEADER + captured + RECORD_HEADER > <size_t>(end - record):
                break
            if captured <= <size_t>(end - record) - RECORD_HEADER:
                next = record + RECORD_HEADER + captured
                if next == end or (
                    RECORD_HEADER <= end - next and plausible(next, file) and within_a_day(record, next, file.swapped)
                ):
                    found = True
                    break
        record += 1
    window.position = <size_t>(record - window.data)
    return found


cdef Stop resync_after_bad_record(
    const uint8_t* record, const uint8_t* next, const uint8_t* end, const PcapFile* file, bint ended
) noexcept nogil:
    """Return FOLLOWED if another record or the end of the file follows a record with wrong lengths, else LOST.

    The record that follows has valid lengths, or was captured within a day and has a captured length above the
    original one as well: all records are so where a program lengthened frames and left their original lengths.
    """
    if end - next < RECORD_HEADER:
        if not ended:
            return MORE
        return FOLLOWED if next == end else LOST
    if number(next + 8, file.swapped) > <uint32_t>LARGEST_FRAME:
        return LOST
    if has_valid_lengths(next, file):
        return FOLLOWED
    return FOLLOWED if has_fraction(next, file) and within_a_day(record, next, file.swapped) else LOST


cdef inline Stop walk(
    Window* window, const PcapFile* file, const Ports* ports, Rows* rows, Counts* counts, Streams* streams,
    bint ended, bint swapped, bint columns,
) noexcept nogil:
    """``walk_pcap``, compiled for each byte order, with and without columns."""
    cdef Rows target = rows[0]  # a local copy, so that no store to a column can be thought to change it
    cdef const uint8_t* record = window.data + window.position
    cdef const uint8_t* end = window.data + window.size
    cdef const uint8_t* records_end = window.data + reach(window, RECORD_HEADER)
    cdef int64_t unit = 1 if file.nanoseconds else 1000
    cdef uint32_t fractions = SECOND if file.nanoseconds else MILLION  # in a second
    cdef size_t space = 0 if columns and rows.frames_only or file.link != LINK_ETHERNET else PLAIN_SPACE
    cdef size_t captured
    cdef Frame frame
    cdef Stop stop = MORE
    frame.link = file.link
    frame.timed = True
    frame.number = counts.frames
    while record < records_end:
        captured = number(record + 8, swapped)
        fetch_ahead(record)
        if wire_unlikely(captured > <size_t>(end - record) - RECORD_HEADER and captured <= LARGEST_FRAME):
            break
        frame.data = record + RECORD_HEADER
        frame.size = captured
        frame.number += 1
        if columns:
            frame.time = time_of(record, unit, swapped)
        if wire_unlikely(not parse_plain_udp(&frame, space, ports.udp, columns, &target, counts)):
            if captured > LARGEST_FRAME:
                stop = LOST
            elif has_valid_lengths(record, file):
                stop = FOLLOWED
            else:
                stop = resync_after_bad_record(record, record + RECORD_HEADER + captured, end, file, ended)
            if stop != FOLLOWED:
                frame.number -= 1
                break
            stop = MORE
            frame.offset = window.offset + <size_t>(record - window.data)
            frame.original = number(record + 12, swapped)
            if not columns:
                frame.time = time_of(record, unit, swapped)  # which a segment keeps, for columns of another part
            if wire_unlikely(not parse_any_frame(&frame, ports, columns, &target, counts, streams)):
                frame.number -= 1
                stop = FULL
                break
            if wire_unlikely(streams.waiting != NO_FLOW):
                stop = FULL
        if wire_unlikely(number(record + 4, swapped) >= fractions):
            counts.sums.invalid_times += 1
        record += RECORD_HEADER + captured
        if wire_unlikely(stop == FULL):
            break
    counts.frames = frame.number
    window.position = <size_t>(record - window.data)
    target.count = <size_t>(target.next - target.spans)
    rows[0] = target
    if stop == LOST:
        lose_record(window, file, counts)
    return stop


cdef void lose_record(const Window* window, const PcapFile* file, Counts* counts) noexcept nogil:
    cdef const uint8_t* record = window.data + window.position
    cdef uint64_t offset = window.offset + window.position
    cdef uint32_t captured = number(record + 8, file.swapped)
    counts.frames += 1
    if captured > <uint32_t>LARGEST_FRAME:
        malformed(counts, offset, counts.frames, FRAME_TOO_LARGE, captured, LARGEST_FRAME)
    elif captured > number(record + 12, file.swapped):
        malformed(counts, offset, counts.frames, FRAME_OVER_ORIGINAL, captured, number(record + 12, file.swapped))
    else:
        malformed(counts, offset, counts.frames, FRACTION, 0, number(record + 4, file.swapped))


cdef Stop walk_pcap(
    Window* window, const PcapFile* file, const Ports* ports, Rows* rows, Counts* counts, Streams* streams, bint ended
) noexcept nogil:
    """Take all complete records of the window while the rows have space; ``ended``: nothing follows in the file."""
    if rows.columns:
        if file.swapped:
            return walk(window, file, ports, rows, counts, streams, ended, True, True)
        return walk(window, file, ports, rows, counts, streams, ended, False, True)
    if file.swapped:
        return walk(window, file, ports, rows, counts, streams, ended, True, False)
    return walk(window, file, ports, rows, counts, streams, ended, False, False)
