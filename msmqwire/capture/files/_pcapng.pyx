"""The capture format of sections, interfaces and blocks (draft-ietf-opsawg-pcapng).

    block:        type u32, length u32, body, length u32 again; the length counts all of it and is a multiple of 4
    section:      type 0x0A0D0D0A, byte order magic, version u16 u16, section length i64, options
    interface:    type 1, link type u16, u16, snapshot length u32, options
    packet:       type 6, interface u32, time u32 (upper half) u32, captured length u32, original length u32, frame,
                  options
    simple:       type 3, original length u32, frame
    old packet:   type 2, as 6 but interface u16, drops u16

A section sets the byte order of its numbers and starts without interfaces; an interface sets the unit of its times.
"""

from libc.stddef cimport size_t
from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memset

from msmqwire.capture.files.dispatch cimport parse_any_frame, parse_plain_udp
from msmqwire.capture.files.window cimport (
    FULL, INTERFACE, LARGEST_RECORD, LOST, MORE, SECOND, SECTION, SKIP, Stop, Window, fetch_ahead, number, reach,
)
from msmqwire.capture.frames._frame cimport (
    BLOCK_ENDS_DIFFER, BLOCK_LENGTH, BLOCK_TOO_LARGE, FRAME_OVER_BLOCK, FRAME_TOO_LARGE, INTERFACE_LIMIT,
    LARGEST_FRAME, SECTION_ORDER, UNKNOWN_INTERFACE, Counts, Frame, malformed,
)
from msmqwire.capture.frames._layers cimport LINK_ETHERNET, PLAIN_SPACE, Ports
from msmqwire.capture.frames._rows cimport Rows
from msmqwire.capture.tcp._flows cimport NO_FLOW, Streams
from msmqwire.wire.cursor cimport load_u16, load_u32
from msmqwire.wire.simd cimport wire_bswap16, wire_bswap32, wire_unlikely

cdef enum:
    SECTION_HEADER = 0x0A0D0D0A
    INTERFACE_DESCRIPTION = 1
    OLD_PACKET = 2
    SIMPLE_PACKET = 3
    NAME_RESOLUTION = 4
    ENHANCED_PACKET = 6
    DECRYPTION_SECRETS = 10
    JOURNAL_EXPORT = 9
    SYSTEM_CALL = 0x204
    SYSTEM_CALL_2 = 0x216
    LARGE_SYSTEM_CALL = 0x221
    CUSTOM = 0xBAD
    CUSTOM_NOT_COPIED = 0x40000BAD

cdef enum:
    BYTE_ORDER_MAGIC = 0x1A2B3C4D
    SMALLEST_BLOCK = 12
    SECTION_FIXED = 28
    INTERFACE_FIXED = 20
    SIMPLE_FIXED = 16
    PACKET_FIXED = 32

# Codes of options
cdef enum:
    END_OF_OPTIONS = 0
    TIME_RESOLUTION = 9
    TIME_OFFSET = 14
    PACKET_NUMBER = 5  # epb_packetid: the same wherever the packet was captured

# The first second, on both sides of 1970, whose nanoseconds do not all fit in 64 bits
cdef uint64_t SECONDS_END = 9223372036


cdef inline uint16_t short_number(const uint8_t* source, bint swapped) noexcept nogil:
    return wire_bswap16(load_u16(source)) if swapped else load_u16(source)


cdef bint is_section(const uint8_t* data) noexcept nogil:
    """Return True if the first 12 bytes of a file are those of a pcapng capture."""
    cdef uint32_t magic = load_u32(data + 8)
    return load_u32(data) == SECTION_HEADER and (magic == BYTE_ORDER_MAGIC or magic == wire_bswap32(BYTE_ORDER_MAGIC))


cdef size_t block_length(const Window* window, const Section* section) noexcept nogil:
    """The length of the block at the position, or of the smallest one when not even that is there."""
    if window.size - window.position < SMALLEST_BLOCK:
        return SMALLEST_BLOCK
    return number(window.data + window.position + 4, section.swapped)


cdef bint is_frame(uint32_t kind) noexcept nogil:
    """Return True if a block of no packet is among those that Wireshark numbers as frames."""
    return (
        kind == JOURNAL_EXPORT or kind == SYSTEM_CALL or kind == SYSTEM_CALL_2 or kind == LARGE_SYSTEM_CALL
        or kind == CUSTOM or kind == CUSTOM_NOT_COPIED
    )


cdef Stop stop_at(
    const uint8_t* block, uint32_t kind, size_t smallest, size_t length, size_t left, bint swapped, uint64_t offset,
    Counts* counts,
) noexcept nogil:
    """Why the walk stops at a block that is not sound: its length cannot be, or it is not all there."""
    if length < smallest or length & 3:
        malformed(counts, offset, 0, BLOCK_LENGTH, length, smallest)
        return LOST
    if length > LARGEST_RECORD:
        if kind == SECTION_HEADER or kind == NAME_RESOLUTION or kind == DECRYPTION_SECRETS or is_frame(kind):
            return SKIP
        malformed(counts, offset, 0, BLOCK_TOO_LARGE, length, LARGEST_RECORD)
        return LOST
    if length > left:
        return MORE
    malformed(counts, offset, 0, BLOCK_ENDS_DIFFER, length, number(block + length - 4, swapped))
    return LOST


cdef inline bint is_sound(const uint8_t* block, size_t length, size_t left, bint swapped) noexcept nogil:
    return (
        length - SMALLEST_BLOCK <= LARGEST_RECORD - SMALLEST_BLOCK and length <= left and not length & 3
        and number(block + length - 4, swapped) == length
    )


# --- Sections and interfaces: seldom, and read by hand ---


cdef Stop read_section(Window* window, Section* section, Counts* counts) noexcept nogil:
    """Begin the section at the position, where 12 bytes or more are.

    MORE if its block continues after the window, else SECTION, SKIP or LOST.
    """
    cdef const uint8_t* block = window.data + window.position
    cdef uint64_t offset = window.offset + window.position
    cdef size_t left = window.size - window.position
    cdef uint32_t magic = load_u32(block + 8)
    cdef size_t length
    cdef Stop stop
    if magic != BYTE_ORDER_MAGIC and magic != wire_bswap32(BYTE_ORDER_MAGIC):
        counts.frames += 1
        malformed(counts, offset, 0, SECTION_ORDER, 0, magic)
        return LOST
    section.swapped = magic != BYTE_ORDER_MAGIC
    section.interfaces = NULL
    section.count = 0
    if section.numbered != NULL:
        memset(section.numbered, 0, MOST_NUMBERED * sizeof(Numbered))
    length = block_length(window, section)
    if length >= SECTION_FIXED and is_sound(block, length, left, section.swapped):
        window.position += length
        return SECTION
    stop = stop_at(block, SECTION_HEADER, SECTION_FIXED, length, left, section.swapped, offset, counts)
    counts.frames += stop == LOST
    return stop


cdef void set_resolution(Interface* interface) noexcept nogil:
    """What turns most time stamps into nanoseconds with one multiplication."""
    cdef uint32_t digits = interface.resolution
    cdef uint64_t limit = SECONDS_END * SECOND
    interface.quick_below = 0
    if digits > 9 or interface.seconds >= <int64_t>SECONDS_END or interface.seconds <= -<int64_t>SECONDS_END:
        return
    interface.nanoseconds = interface.seconds * SECOND
    if interface.nanoseconds > 0:
        limit -= <uint64_t>interface.nanoseconds
    interface.unit = 1
    while digits < 9:
        interface.unit *= 10
        digits += 1
    interface.quick_below = limit // interface.unit


cdef void read_interface(Window* window, const Section* section, Interface* interface) noexcept nogil:
    """Read the interface description at the position, which is complete in the window, and move past it."""
    cdef const uint8_t* block = window.data + window.position
    cdef size_t length = block_length(window, section)
    cdef size_t end = length - 4
    cdef size_t at = INTERFACE_FIXED - 4
    cdef uint32_t code
    cdef size_t size
    interface.link = short_number(block + 8, section.swapped)
    interface.snapshot = number(block + 12, section.swapped)
    interface.resolution = 6
    interface.seconds = 0
    while 4 <= end - at:
        code = short_number(block + at, section.swapped)
        size = short_number(block + at + 2, section.swapped)
        at += 4
        if code == END_OF_OPTIONS or size > end - at:
            break
        if code == TIME_RESOLUTION and size == 1:
            interface.resolution = block[at]
        elif code == TIME_OFFSET and size == 8:
            interface.seconds = long_number(block + at, section.swapped)
        at += (size + 3) & ~<size_t>3  # at most end, like which it is a multiple of 4
    set_resolution(interface)
    window.position += length


cdef int64_t long_number(const uint8_t* source, bint swapped) noexcept nogil:
    cdef uint64_t first = number(source, swapped)
    cdef uint64_t second = number(source + 4, swapped)
    return <int64_t>(first << 32 | second if swapped else second << 32 | first)


# --- After a malformed block ---


cdef bint plausible(const uint8_t* block, bint* swapped) noexcept nogil:
    """Return True if a block of a usual kind may begin with these 12 bytes; a section sets ``swapped``."""
    cdef uint32_t kind = number(block, swapped[0])
    cdef size_t length
    if kind == SECTION_HEADER:
        if not is_section(block):
            return False
        swapped[0] = load_u32(block + 8) != BYTE_ORDER_MAGIC
    elif kind < INTERFACE_DESCRIPTION or kind > ENHANCED_PACKET:
        return False
    length = number(block + 4, swapped[0])
    return SMALLEST_BLOCK <= length and length <= LARGEST_RECORD and not length & 3


cdef bint find_block(Window* window, const Section* section, bint ended) noexcept nogil:
    """Move to the next place where a block may begin: its kind is known, and it has the same length at both ends.

    False if there is none: the bytes after the position must then be searched again with more of the file.
    """
    cdef const uint8_t* block = window.data + window.position
    cdef const uint8_t* end = window.data + window.size
    cdef size_t length
    cdef bint swapped
    cdef bint found = False
    while SMALLEST_BLOCK <= end - block:
        swapped = section.swapped
        if wire_unlikely(plausible(block, &swapped)):
            length = number(block + 4, swapped)
            if length > <size_t>(end - block):
                if not ended:
                    break
            elif number(block + length - 4, swapped) == length:
                found = True
                break
        block += 1
    window.position = <size_t>(block - window.data)
    return found


# --- Time stamps ---


cdef uint64_t nanoseconds_of(uint64_t fraction, uint32_t bits) noexcept nogil:
    """``fraction / 2**bits`` seconds, bits at most 63, in nanoseconds; in halves that 64 bits can multiply."""
    cdef uint64_t high, low
    if bits <= 32:
        return fraction * SECOND >> bits
    bits -= 32
    high = fraction >> bits
    low = fraction & ((<uint64_t>1 << bits) - 1)
    return (high * SECOND + (low * SECOND >> bits)) >> 32


cdef bint whole_seconds(uint64_t whole, int64_t offset, int64_t* seconds) noexcept nogil:
    """``whole + offset``; false unless a time within that second is a number of nanoseconds in 64 bits."""
    cdef uint64_t back = 0 - <uint64_t>offset
    if offset < 0 and whole < back:
        if back - whole >= SECONDS_END:
            return False
        seconds[0] = -<int64_t>(back - whole)
        return True
    if offset < 0:
        whole -= back
    elif <uint64_t>offset >= SECONDS_END or whole >= SECONDS_END:
        return False
    else:
        whole += <uint64_t>offset
    seconds[0] = <int64_t>whole
    return whole < SECONDS_END


cdef bint general_time(const Interface* interface, uint64_t stamp, int64_t* time) noexcept nogil:
    """Any time stamp in nanoseconds, rounded down; false for one beyond the years 1677 to 2262."""
    cdef uint32_t digits = interface.resolution & 0x7F
    cdef uint64_t whole = 0
    cdef uint64_t part = 0
    cdef uint64_t unit = 1
    cdef uint32_t _
    cdef int64_t seconds
    if interface.resolution & 0x80:
        while digits > 63:  # what is lost is less than a nanosecond
            stamp >>= 1
            digits -= 1
        whole = stamp >> digits
        part = nanoseconds_of(stamp & ((<uint64_t>1 << digits) - 1), digits)
    elif digits <= 19:
        for _ in range(digits):
            unit *= 10
        whole = stamp // unit
        part = stamp % unit
        for _ in range(9, digits):
            part //= 10
        for _ in range(digits, 9):
            part *= 10
    else:  # all of 64 bits is less than a second
        part = stamp
        for _ in range(9, digits):
            part //= 10
    if not whole_seconds(whole, interface.seconds, &seconds):
        return False
    time[0] = seconds * SECOND + <int64_t>part
    return True


cdef inline void set_time(Frame* frame, const Interface* interface, uint32_t high, uint32_t low) noexcept nogil:
    cdef uint64_t stamp = <uint64_t>high << 32 | low
    if not wire_unlikely(stamp >= interface.quick_below):
        frame.timed = True
        frame.time = <int64_t>(stamp * interface.unit) + interface.nanoseconds
    else:
        frame.time = 0
        frame.timed = general_time(interface, stamp, &frame.time)


# --- Packets ---


cdef inline bint has_fixed(const Frame* frame, size_t length, size_t fixed, Counts* counts) noexcept nogil:
    """Return True if a packet block is long enough for its numbers."""
    if wire_unlikely(length < fixed):
        malformed(counts, frame.offset, frame.number, BLOCK_LENGTH, length, fixed)
        return False
    return True


cdef inline bint set_frame(
    Frame* frame, const Section* section, uint32_t interface, const uint8_t* data, size_t captured, size_t space,
    Counts* counts,
) noexcept nogil:
    """The captured bytes of a packet block, and their link type; false when it is malformed."""
    if wire_unlikely(captured > space):
        malformed(counts, frame.offset, frame.number, FRAME_OVER_BLOCK, captured, space)
        return False
    if wire_unlikely(captured > LARGEST_FRAME):
        malformed(counts, frame.offset, frame.number, FRAME_TOO_LARGE, captured, LARGEST_FRAME)
        return False
    if wire_unlikely(interface >= section.count):
        malformed(
            counts, frame.offset, frame.number,
            INTERFACE_LIMIT if section.count >= section.most else UNKNOWN_INTERFACE, interface, section.count,
        )
        return False
    frame.data = data
    frame.size = captured
    frame.link = section.interfaces[interface].link
    return True


cdef inline bint read_packet(
    Frame* frame, const Section* section, const uint8_t* block, size_t length, uint32_t interface, Counts* counts,
    bint swapped,
) noexcept nogil:
    """An enhanced or an old packet block; false when it is malformed."""
    if not has_fixed(frame, length, PACKET_FIXED, counts) or not set_frame(
        frame, section, interface, block + 28, number(block + 20, swapped), length - PACKET_FIXED, counts
    ):
        return False
    set_time(frame, &section.interfaces[interface], number(block + 12, swapped), number(block + 16, swapped))
    return True


cdef inline bint has_options(const Frame* frame, size_t length) noexcept nogil:
    """Return True if more than the frame is in an enhanced packet block."""
    return length - PACKET_FIXED >= frame.size + 4


cdef bint is_copy(
    const Section* section, const uint8_t* block, size_t length, size_t captured, uint32_t interface
) noexcept nogil:
    """Return True if the packet was captured at another interface before, as the number in its options says."""
    cdef size_t end = length - 4
    cdef size_t at = PACKET_FIXED - 4 + ((captured + 3) & ~<size_t>3)
    cdef Numbered* known
    cdef uint64_t packet
    cdef uint32_t code
    cdef size_t size
    while section.numbered != NULL and 4 <= end - at:
        code = short_number(block + at, section.swapped)
        size = short_number(block + at + 2, section.swapped)
        at += 4
        if code == END_OF_OPTIONS or size > end - at:
            break
        if code == PACKET_NUMBER and size == 8:
            packet = <uint64_t>long_number(block + at, section.swapped)
            known = &section.numbered[packet & (MOST_NUMBERED - 1)]
            if known.number == packet and known.interface:
                return known.interface != <uint64_t>interface + 1
            known.number = packet
            known.interface = <uint64_t>interface + 1
            break
        at += (size + 3) & ~<size_t>3
    return False


cdef bint read_simple_packet(
    Frame* frame, const Section* section, const uint8_t* block, size_t length, Counts* counts
) noexcept nogil:
    """A simple packet block: of the first interface, without a time, as long as its snapshot length lets it be."""
    cdef size_t captured
    if not has_fixed(frame, length, SIMPLE_FIXED, counts):
        return False
    captured = number(block + 8, section.swapped)
    if section.count and section.interfaces[0].snapshot:
        captured = min(captured, <size_t>section.interfaces[0].snapshot)
    frame.timed = False
    frame.time = 0
    return set_frame(frame, section, 0, block + 12, captured, length - SIMPLE_FIXED, counts)


cdef inline Stop walk(
    Window* window, const Section* section, const Ports* ports, Rows* rows, Counts* counts, Streams* streams,
    bint swapped, bint columns,
) noexcept nogil:
    """``walk_pcapng``, compiled for each byte order, with and without columns."""
    cdef Section current = section[0]  # local copies, so that no store to a column can be thought to change them
    cdef Rows target = rows[0]
    cdef const uint8_t* block = window.data + window.position
    cdef const uint8_t* end = window.data + window.size
    cdef const uint8_t* blocks_end = window.data + reach(window, SMALLEST_BLOCK)
    cdef uint32_t kind
    cdef size_t length, space
    cdef size_t plain_space = 0 if columns and rows.frames_only else PLAIN_SPACE
    cdef bint taken
    cdef Frame frame
    cdef Stop stop = MORE
    frame.number = counts.frames
    while block < blocks_end:
        kind = number(block, swapped)
        length = number(block + 4, swapped)
        fetch_ahead(block)
        if wire_unlikely(kind == SECTION_HEADER):
            stop = SECTION
            break
        frame.offset = window.offset + <size_t>(block - window.data)
        if wire_unlikely(not is_sound(block, length, <size_t>(end - block), swapped)):
            stop = stop_at(
                block, kind, SMALLEST_BLOCK, length, <size_t>(end - block), swapped, frame.offset, counts
            )
            frame.number += stop == LOST
            break
        taken = False
        if kind == ENHANCED_PACKET:
            frame.number += 1
            taken = read_packet(&frame, &current, block, length, number(block + 8, swapped), counts, swapped)
            if wire_unlikely(taken and has_options(&frame, length)) and is_copy(
                &current, block, length, frame.size, number(block + 8, swapped)
            ):
                counts.sums.other += 1
                counts.copies += 1
                taken = False
        elif kind == SIMPLE_PACKET:
            frame.number += 1
            taken = read_simple_packet(&frame, &current, block, length, counts)
        elif kind == OLD_PACKET:
            frame.number += 1
            taken = read_packet(&frame, &current, block, length, short_number(block + 8, swapped), counts, swapped)
        elif kind == INTERFACE_DESCRIPTION:
            if length >= INTERFACE_FIXED:
                stop = INTERFACE
                break
            frame.number += 1
            malformed(counts, frame.offset, frame.number, BLOCK_LENGTH, length, INTERFACE_FIXED)
        elif is_frame(kind):
            frame.number += 1
            counts.sums.other += 1
        if taken:
            space = plain_space if frame.link == LINK_ETHERNET else 0
            if wire_unlikely(not parse_plain_udp(&frame, space, ports.udp, columns, &target, counts)):
                frame.original = number(block + (8 if kind == SIMPLE_PACKET else 24), swapped)
                if wire_unlikely(not parse_any_frame(&frame, ports, columns, &target, counts, streams)):
                    frame.number -= 1
                    stop = FULL
                    break
                if wire_unlikely(streams.waiting != NO_FLOW):
                    stop = FULL
            if wire_unlikely(not frame.timed) and kind != SIMPLE_PACKET:
                counts.sums.invalid_times += 1
        block += length
        if wire_unlikely(stop == FULL):
            break
    counts.frames = frame.number
    window.position = <size_t>(block - window.data)
    target.count = <size_t>(target.next - target.spans)
    rows[0] = target
    return stop


cdef Stop walk_pcapng(
    Window* window, const Section* section, const Ports* ports, Rows* rows, Counts* counts, Streams* streams
) noexcept nogil:
    """Take all complete blocks of the window while the rows have space, up to one that changes the section."""
    if rows.columns:
        if section.swapped:
            return walk(window, section, ports, rows, counts, streams, True, True)
        return walk(window, section, ports, rows, counts, streams, False, True)
    if section.swapped:
        return walk(window, section, ports, rows, counts, streams, True, False)
    return walk(window, section, ports, rows, counts, streams, False, False)
