# cython: language_level=3
"""The fuzz targets of capture files and of the layers of a frame: see checks.pxd."""

from libc.stddef cimport size_t
from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memchr, memcmp, memset

from fuzz.checks cimport exact_copy, mix, must
from msmqwire.capture.files._pcap cimport PCAP_HEADER, PcapFile, find_record, read_pcap_header, record_length, walk_pcap
from msmqwire.capture.files._pcapng cimport (
    MOST_NUMBERED, Interface, Numbered, Section, block_length, find_block, is_section, read_interface, read_section,
    walk_pcapng,
)
from msmqwire.capture.files.window cimport INTERFACE, LOST, MORE, SECTION, SKIP, Stop, Window
from msmqwire.capture.frames._fragments cimport free_fragments, give_up_datagrams
from msmqwire.capture.frames._frame cimport (
    ENCAPSULATION_CUT, IPX_LENGTH, LINK_CUT, RECORD_CUT, UNSUPPORTED_KINDS, Counts, FrameCounts, malformed,
)
from msmqwire.capture.frames._layers cimport (
    FOUND, IPX_HEADER, LINK_CISCO_HDLC, LINK_ETHERNET, LINK_IPV4, LINK_IPV6, LINK_LINUX_SLL, LINK_LINUX_SLL2, LINK_LOOP,
    LINK_MPLS, LINK_NFLOG, LINK_NULL, LINK_PKTAP, LINK_PPI, LINK_PPP, LINK_PPP_ETHER, LINK_PPP_HDLC, LINK_RADIOTAP,
    LINK_RAW, LINK_RAW_BSD, LINK_RAW_OPENBSD, LINK_USER2, LINK_WLAN, OTHER, PART, PLAIN_SPACE, TCP_HEADER, UDP_HEADER,
    UNREAD, UNSUPPORTED_ENCAPSULATION, UNSUPPORTED_LINK, Packet, Ports, find_packet, may_be_tunnel, network_u16,
    plain_datagram, wanted,
)
from msmqwire.capture.frames._rows cimport (
    MOST_ASSEMBLED, MOST_FILES, MOST_PACKETS, MOST_PATHS, NO_PATH, SMALLEST_ROW, Lost, Rows
)
from msmqwire.capture.tcp._connections cimport free_connections, start_connections
from msmqwire.capture.tcp._flows cimport NO_FLOW, StreamCounts, Streams, free_table, start_table
from msmqwire.capture.tcp._packets cimport MESSAGE_PACKETS, SESSION_PACKETS
from msmqwire.capture.tcp._streams cimport finish_streams
from msmqwire.columns.payload_table cimport Span
from msmqwire.wire._address cimport ADDRESS_SIZE, address_size
from msmqwire.wire._transport cimport Transport

cdef enum:
    ESP_PROTOCOL = 50
    LONGEST_INPUT = 4096
    MOST_ROWS = MOST_PACKETS + LONGEST_INPUT // SMALLEST_ROW + 1
    MOST_INTERFACES = LONGEST_INPUT // 20 + 1
    TIMED = 2
    STREAMED = 4

# Where the rows of a window are written: allocated once, since nothing but their number depends on the input
cdef Span[MOST_ROWS] SPANS
cdef uint8_t[MOST_ROWS] PRESENCE
cdef uint8_t[MOST_ROWS] FILE
cdef uint64_t[MOST_ROWS] FRAME
cdef uint64_t[MOST_ROWS] FIRST_FRAME
cdef int64_t[MOST_ROWS] TIME
cdef uint8_t[MOST_ROWS * ADDRESS_SIZE] SRC
cdef uint16_t[MOST_ROWS] SRC_PORT
cdef uint8_t[MOST_ROWS * ADDRESS_SIZE] DST
cdef uint16_t[MOST_ROWS] DST_PORT
cdef uint8_t[MOST_ROWS] TRANSPORT
cdef uint64_t[MOST_ROWS] STREAM_OFFSET
cdef uint32_t[MOST_ROWS] OTHERS
cdef Lost[MOST_ROWS] SIZES_LOST
cdef (void*)[MOST_PACKETS + MOST_ASSEMBLED] MEMORY
cdef uint32_t[MOST_FILES] FILES
cdef uint8_t[MOST_ROWS] ENCAPSULATION
cdef uint32_t[MOST_PATHS] PATHS
cdef Interface[MOST_INTERFACES] INTERFACES
cdef Numbered[MOST_NUMBERED] NUMBERED

cdef uint64_t[1024] PORT_SET
cdef Ports PORTS
PORTS.udp = PORTS.tcp = PORTS.ipx = PORT_SET
for number in (1801, 3527, 876):
    number = (number & 0xFF) << 8 | number >> 8
    PORT_SET[number >> 6] |= <uint64_t>1 << (number & 63)

cdef uint32_t[22] LINKS
LINKS[:] = [
    LINK_ETHERNET, LINK_NULL, LINK_RAW_BSD, LINK_RAW_OPENBSD, LINK_RAW, LINK_LOOP, LINK_LINUX_SLL, LINK_IPV4,
    LINK_IPV6, LINK_LINUX_SLL2, LINK_WLAN, 65535, LINK_RADIOTAP, LINK_PPI, LINK_PPP, LINK_PPP_HDLC, LINK_PPP_ETHER,
    LINK_CISCO_HDLC, LINK_MPLS, LINK_NFLOG, LINK_PKTAP, LINK_USER2,
]


# One file and what reading it gave.
cdef struct Reading:
    bint is_pcapng
    PcapFile pcap
    Section section
    bint columns
    bint searching
    bint passing         # over a block that the file has no room for
    uint64_t lost_from   # or where that block begins
    uint64_t skipped
    uint64_t plain_rows
    uint64_t packets     # out of streams
    uint64_t last_frame  # that gave a row of its own
    uint64_t checksum    # over all payloads
    uint64_t column_checksum
    Counts counts
    Streams streams


# --- Rows ---


cdef void start_rows(Rows* rows, bint columns) noexcept nogil:
    memset(rows, 0, sizeof(rows[0]))
    rows.spans = rows.next = SPANS
    rows.most_bytes = LONGEST_INPUT  # of which streams hold no more
    rows.others = OTHERS
    rows.lost = SIZES_LOST
    rows.memory = MEMORY
    rows.files = FILES
    rows.paths = PATHS
    rows.columns = columns
    if columns:
        rows.presence = PRESENCE
        rows.file = FILE
        rows.frame = FRAME
        rows.first_frame = FIRST_FRAME
        rows.time = TIME
        rows.src = SRC
        rows.src_port = SRC_PORT
        rows.dst = DST
        rows.dst_port = DST_PORT
        rows.transport = TRANSPORT
        rows.stream_offset = STREAM_OFFSET
        rows.encapsulation = ENCAPSULATION


cdef void mix_columns(Reading* reading, const Rows* rows, size_t row) noexcept nogil:
    cdef uint64_t* checksum = &reading.column_checksum
    cdef size_t i
    must(rows.file[row] == 0)
    must(rows.first_frame[row] <= rows.frame[row] and rows.frame[row] <= reading.counts.frames)
    must(rows.stream_offset[row] == 0 or rows.presence[row] & STREAMED)
    must(rows.time[row] == 0 or rows.presence[row] & TIMED)
    if not rows.presence[row] & STREAMED and rows.transport[row] != Transport.TCP:
        must(rows.frame[row] > reading.last_frame)
        reading.last_frame = rows.frame[row]
    mix(checksum, rows.presence[row])
    mix(checksum, rows.frame[row])
    mix(checksum, rows.first_frame[row])
    mix(checksum, <uint64_t>rows.time[row])
    mix(checksum, rows.src_port[row])
    mix(checksum, rows.dst_port[row])
    mix(checksum, rows.transport[row])
    must(rows.encapsulation[row] == NO_PATH or rows.encapsulation[row] < rows.path_count)
    mix(checksum, 0 if rows.encapsulation[row] == NO_PATH else rows.paths[rows.encapsulation[row]])
    mix(checksum, rows.stream_offset[row])
    for i in range(<size_t>ADDRESS_SIZE):
        mix(checksum, rows.src[ADDRESS_SIZE * row + i])
        mix(checksum, rows.dst[ADDRESS_SIZE * row + i])


cdef void take_rows(Reading* reading, const Window* window, Rows* rows) noexcept nogil:
    """Payloads lie in the window, or are packets that were put together."""
    cdef size_t count = <size_t>(rows.next - rows.spans)
    cdef size_t put_together = 0
    cdef size_t nbytes = 0
    cdef const Span* span
    cdef size_t row, i
    must(not rows.columns or rows.count == count)
    must(rows.packets <= rows.other_count and rows.other_count <= count)
    must(count - rows.packets <= window.size // SMALLEST_ROW + 1)
    for row in range(count):
        span = &rows.spans[row]
        if span.data < window.data or span.data > window.data + window.size:
            put_together += 1
        else:
            must(span.size <= <size_t>(window.data + window.size - span.data))
        nbytes += span.size
        mix(&reading.checksum, span.size)
        for i in range(span.size):
            mix(&reading.checksum, span.data[i])
        if rows.columns:
            mix_columns(reading, rows, row)
    must(put_together <= rows.packets and nbytes == rows.nbytes)
    for i in range(rows.other_count):
        must(rows.others[i] >> 2 < count and (i == 0 or rows.others[i] > rows.others[i - 1]))
    for i in range(rows.lost_count):
        must(rows.lost[i].row < count and (i == 0 or rows.lost[i].row > rows.lost[i - 1].row) and rows.lost[i].size)
    must(rows.cut <= rows.lost_count)
    for i in range(rows.memory_count):
        free(rows.memory[i])
    reading.plain_rows += count - rows.packets - rows.cut
    reading.packets += rows.packets - (rows.lost_count - rows.cut)


# --- Files: the way that FileReader of _file_reader.pyx goes through them ---


cdef bint search(Reading* reading, Window* window, bint ended) noexcept nogil:
    cdef bint found
    if reading.is_pcapng:
        found = find_block(window, &reading.section, ended)
    else:
        found = find_record(window, &reading.pcap, ended)
    must(window.position <= window.size)
    if found:
        reading.searching = False
        reading.skipped += window.offset + window.position - reading.lost_from
    return found


cdef void lose(Reading* reading, Window* window) noexcept nogil:
    reading.searching = True
    reading.lost_from = window.offset + window.position
    window.position += 1


cdef void truncated_record(Reading* reading, Window* window) noexcept nogil:
    cdef uint64_t needed
    if reading.is_pcapng:
        needed = block_length(window, &reading.section)
    else:
        needed = record_length(window, &reading.pcap)
    must(needed > window.size - window.position)
    reading.counts.frames += 1
    malformed(&reading.counts, window.offset + window.position, 0, RECORD_CUT, needed, window.size - window.position)
    lose(reading, window)


cdef void walk(Reading* reading, Window* window, Rows* rows, bint ended) noexcept nogil:
    """All whole records of the window."""
    cdef size_t before
    cdef Stop stop
    while not reading.passing:
        if reading.searching and not search(reading, window, ended):
            break
        before = window.position
        if reading.is_pcapng:
            stop = walk_pcapng(window, &reading.section, &PORTS, rows, &reading.counts, &reading.streams)
        else:
            stop = walk_pcap(window, &reading.pcap, &PORTS, rows, &reading.counts, &reading.streams, ended)
        must(before <= window.position and window.position <= window.size)
        if stop == SECTION:
            stop = read_section(window, &reading.section, &reading.counts)
        elif stop == INTERFACE:
            must(reading.section.count < MOST_INTERFACES)
            read_interface(window, &reading.section, &INTERFACES[reading.section.count])
            reading.section.interfaces = INTERFACES
            reading.section.count += 1
        must(window.position <= window.size)
        if stop == SKIP:
            must(block_length(window, &reading.section) > LONGEST_INPUT)
            reading.passing = True
            reading.lost_from = window.offset + window.position
        elif stop == LOST:
            lose(reading, window)
        elif stop == MORE:
            if not ended or window.position == window.size:
                break
            truncated_record(reading, window)
        else:
            must(stop == SECTION or stop == INTERFACE)
    if reading.passing:
        window.position = window.size


cdef void finish(Reading* reading, size_t size) noexcept nogil:
    """The counts of a file that was read to its end."""
    cdef const Counts* counts = &reading.counts
    cdef const FrameCounts* sums = &counts.sums
    cdef const StreamCounts* streams = &reading.streams.counts
    if reading.passing:
        reading.counts.frames += 1
        malformed(&reading.counts, reading.lost_from, 0, RECORD_CUT, size, size)
    if reading.passing or reading.searching:
        reading.skipped += size - reading.lost_from
    must(reading.skipped <= size)
    must(
        counts.frames
        == reading.plain_rows + sums.segments + sums.fragments + sums.other + sums.unsupported + sums.malformed
    )
    must(streams.bytes == streams.framed + streams.skipped + streams.duplicate and streams.held == 0)
    must(streams.packets == reading.packets + streams.unselected)
    must(reading.streams.table.count == 0 and reading.streams.table.memory == 0)


cdef void read_file(
    const uint8_t* data, size_t size, uint32_t seed, bint columns, Reading* reading
) noexcept nogil:
    """A file of the format that ``reading`` says, in windows of sizes that follow from ``seed``; 0: in one."""
    cdef size_t at = 0 if reading.is_pcapng else PCAP_HEADER
    cdef size_t end = at
    cdef size_t shift = 0 if seed == 0 else 1
    cdef size_t most = 1 << (4 + (seed >> 16) % 8)
    cdef bint ended = False
    cdef uint8_t* copied
    cdef Window window
    cdef Rows rows
    start_table(&reading.streams.table, seed)
    reading.streams.kinds = MESSAGE_PACKETS | SESSION_PACKETS
    reading.streams.most_ahead = 1 << 20
    reading.streams.most_memory = 64 << 20
    reading.streams.most_flows = 1 << 16
    reading.streams.waiting = NO_FLOW
    reading.streams.fragments.lifetime = 30000000000
    reading.columns = columns
    start_connections(&reading.streams.connections, 8)
    memset(NUMBERED, 0, sizeof(NUMBERED))
    reading.section.numbered = NUMBERED
    while not ended:
        ended = seed == 0 or end == size
        if seed == 0:
            end = size
        else:
            seed = seed * 1103515245 + 12345 | 1
            end += min(size - end, 1 + (seed >> 8) % most)
        copied = exact_copy(data + at, end - at, shift)
        window.data = copied + shift
        window.size = end - at
        window.position = 0
        window.offset = at
        window.limit = <size_t>-1
        start_rows(&rows, columns)
        walk(reading, &window, &rows, ended)
        if ended:
            give_up_datagrams(&reading.streams.fragments, 0, &reading.counts)
            must(finish_streams(&reading.streams, &rows, &reading.counts))
        take_rows(reading, &window, &rows)
        at += window.position
        free(copied)
    finish(reading, size)
    free_table(&reading.streams.table)
    free_fragments(&reading.streams.fragments)
    free_connections(&reading.streams.connections)


cdef void check_file(const uint8_t* data, size_t size, const Reading* empty) noexcept nogil:
    """A file is the same in one window and in many, with columns and without."""
    cdef Reading whole = empty[0]
    cdef Reading parts = empty[0]
    cdef const Counts* one = &whole.counts
    cdef const Counts* other = &parts.counts
    cdef uint32_t seed = 1
    cdef size_t i
    for i in range(size):
        seed = 31 * seed + data[i]
    read_file(data, size, 0, True, &whole)
    read_file(data, size, seed | 1, seed & 2, &parts)
    must(one.frames == other.frames and one.described == other.described)
    must(memcmp(&one.sums, &other.sums, sizeof(FrameCounts)) == 0)
    for i in range(one.described):
        must(one.problems[i].offset == other.problems[i].offset and one.problems[i].offset < size)
        must(one.problems[i].reason == other.problems[i].reason and one.problems[i].needed == other.problems[i].needed)
        must(one.problems[i].available == other.problems[i].available)
    must(whole.skipped == parts.skipped and whole.plain_rows == parts.plain_rows and whole.packets == parts.packets)
    must(whole.checksum == parts.checksum)
    if parts.columns:
        must(whole.column_checksum == parts.column_checksum)


cdef public int fuzz_pcap(const uint8_t* data, size_t size) noexcept nogil:
    """A whole file of the classic format; what does not begin like one is none."""
    cdef Reading empty
    memset(&empty, 0, sizeof(empty))
    if PCAP_HEADER <= size and size <= LONGEST_INPUT and read_pcap_header(data, &empty.pcap):
        check_file(data, size, &empty)
    return 0


cdef public int fuzz_pcapng(const uint8_t* data, size_t size) noexcept nogil:
    """A whole file of blocks; what does not begin with a section header is none."""
    cdef Reading empty
    memset(&empty, 0, sizeof(empty))
    empty.is_pcapng = True
    if PCAP_HEADER <= size and size <= LONGEST_INPUT and is_section(data):
        check_file(data, size, &empty)
    return 0


# --- Layers ---


# What find_packet saw in a frame; places count from the start of the frame.
cdef struct Seen:
    int status
    Packet packet
    size_t src
    size_t header
    size_t payload


cdef void look(const uint8_t* frame, size_t size, uint32_t link, Seen* seen) noexcept nogil:
    """What is found lies inside the frame, its headers one behind the other."""
    cdef Packet* packet = &seen.packet
    memset(seen, 0, sizeof(seen[0]))
    seen.status = find_packet(frame, size, link, &PORTS, packet)
    if seen.status == PART:
        must(frame <= packet.part.ends.src and packet.part.ends.dst < packet.part.data)
        must(packet.part.size <= <size_t>(frame + size - packet.part.data))
        seen.payload = <size_t>(packet.part.data - frame)
        return
    if seen.status != FOUND:
        if seen.status == UNSUPPORTED_ENCAPSULATION:
            must(packet.unsupported < UNSUPPORTED_KINDS)
        else:
            must(
                seen.status == OTHER or seen.status == UNREAD or seen.status == UNSUPPORTED_LINK
                or seen.status == ENCAPSULATION_CUT
                or LINK_CUT <= seen.status <= IPX_LENGTH
            )
        return
    must(frame <= packet.ends.src and frame <= packet.header and packet.header < packet.payload)
    must(packet.payload <= frame + size and packet.size <= <size_t>(frame + size - packet.payload))
    seen.src = <size_t>(packet.ends.src - frame)
    seen.header = <size_t>(packet.header - frame)
    seen.payload = <size_t>(packet.payload - frame)
    if packet.ends.transport == Transport.IPX:
        must(seen.src == seen.header + 18 and seen.payload == seen.header + IPX_HEADER and packet.missing == 0)
        return
    must(packet.header >= packet.ends.dst + address_size(packet.ends.family))
    must(packet.ends.src_port == packet.header)
    must(wanted(PORT_SET, packet.header))
    if packet.ends.transport == Transport.UDP:
        must(seen.payload == seen.header + UDP_HEADER and packet.missing == 0)
        must(network_u16(packet.header + 4) == UDP_HEADER + packet.size)
    else:
        must(packet.ends.transport == Transport.TCP and seen.payload >= seen.header + TCP_HEADER)
        must(packet.missing == 0 or packet.path or packet.payload + packet.size == frame + size)


cdef void check_plain(const uint8_t* frame, size_t size, const Seen* seen) noexcept nogil:
    """The inline way and the general one say the same of a frame that both take."""
    cdef size_t length = plain_datagram(frame, size, PLAIN_SPACE)
    if length == 0:
        return
    must(length >= UDP_HEADER and length <= size - 34)
    if wanted(PORT_SET, frame + 34):
        must(seen.status == FOUND and seen.payload == 42 and seen.packet.size == length - UDP_HEADER)
    elif not may_be_tunnel(frame + 36, length):
        must(seen.status == OTHER)


cdef void check_cut(const uint8_t* frame, size_t size, uint32_t link, const Seen* whole) noexcept nogil:
    """A part of a frame is classified as the whole frame is, except by its contents.

    These are ESP without encryption, VXLAN on any port, and streams of MSMQ that are not read. NFLOG may end after any
    attribute, and has no packet then. USER2 is read as PKTAP where all of its header is there, and is unsupported else.
    """
    cdef uint8_t* copied
    cdef Seen part
    # The last bytes of ESP show whether it is encrypted. Any header may have its protocol number
    if memchr(frame, ESP_PROTOCOL, size) != NULL:
        return
    copied = exact_copy(frame, size, 1)
    look(copied + 1, size, link, &part)
    if part.status == OTHER:
        must(whole.status == OTHER or whole.status == UNREAD or whole.packet.path or link == LINK_NFLOG)
    elif part.status == UNREAD:
        must(whole.status == UNREAD)
    elif part.status == UNSUPPORTED_LINK and part.packet.unsupported == LINK_USER2:
        must(link == LINK_USER2 or link == LINK_PPI)
    elif part.status == UNSUPPORTED_LINK or part.status == UNSUPPORTED_ENCAPSULATION:
        must(whole.status == part.status and whole.packet.unsupported == part.packet.unsupported)
    elif part.status == PART:
        must(whole.status == PART and part.payload == whole.payload)
    elif part.status == FOUND:
        must(whole.status == FOUND and part.packet.ends.transport == whole.packet.ends.transport)
        must(part.header == whole.header and part.payload <= whole.payload)
    free(copied)


cdef public int fuzz_layers(const uint8_t* data, size_t size) noexcept nogil:
    """The input is a frame behind a byte that chooses its link type."""
    cdef uint8_t* aligned
    cdef uint8_t* shifted
    cdef uint32_t link
    cdef Seen first
    cdef Seen second
    cdef size_t cut
    if size == 0:
        return 0
    link = LINKS[data[0] % 22]
    cut = data[size - 1]
    data += 1
    size -= 1
    aligned = exact_copy(data, size, 0)
    shifted = exact_copy(data, size, 1)
    look(aligned, size, link, &first)
    look(shifted + 1, size, link, &second)
    must(first.status == second.status and first.src == second.src and first.header == second.header)
    must(first.payload == second.payload and first.packet.size == second.packet.size)
    must(first.packet.missing == second.packet.missing)
    must(first.status != FOUND or first.packet.ends.transport == second.packet.ends.transport)
    must(first.packet.needed == second.packet.needed and first.packet.available == second.packet.available)
    must(first.packet.part.size == second.packet.part.size and first.packet.part.more == second.packet.part.more)
    must(first.packet.part.offset == second.packet.part.offset and first.packet.path == second.packet.path)
    if link == LINK_ETHERNET:
        check_plain(shifted + 1, size, &second)
    if size:
        check_cut(data, cut % size, link, &first)
        check_cut(data, size - 1, link, &first)
    free(aligned)
    free(shifted)
    return 0
