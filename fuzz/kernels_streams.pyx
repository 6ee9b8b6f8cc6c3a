# cython: language_level=3
"""The fuzz target of TCP reassembly, whose input is a stream of operations: see checks.pxd.

    0 limits u8: two bits each for bytes ahead, memory, streams less one, kinds of packets
    1 room u8: how much of a block's room for packets, and for files, there is
    operations: flow and flags u8, position in the stream u16, size u8; `ODD` ones bring their own payload behind it

The other segments carry bytes of one content, a row of packets that tell their numbers, so that what comes out can be
known. ``streams`` in surface.py reads the same form.
"""

from libc.stddef cimport size_t
from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memcmp, memcpy, memset

from fuzz.checks cimport exact_copy, must
from msmqwire.capture.frames._frame cimport Counts, Frame, set_addresses, set_ports
from msmqwire.capture.frames._layers cimport Packet
from msmqwire.capture.frames._rows cimport MOST_FILES, MOST_PACKETS, Lost, Rows
from msmqwire.capture.tcp._flows cimport (
    NO_FLOW, RUN_SHOWN, Flow, Head, Piece, Run as FoundRun, StreamCounts, Streams, find_flow, free_table, start_table,
)
from msmqwire.capture.tcp._packets cimport MESSAGE_PACKETS
from msmqwire.capture.tcp._streams cimport deliver_waiting, finish_streams, take_segment
from msmqwire.columns.payload_table cimport UNFRAMED, Span
from msmqwire.mqqb.framing cimport (
    BASE_HEADER_SIZE, FLAG_INTERNAL, FLAG_SESSION, NOT_A_PACKET, PACKET_SIGNATURE, VERSION_NUMBER, frame_packet,
)
from msmqwire.wire._address cimport IPV4, IPV6
from msmqwire.wire.cursor cimport load_u16, load_u32
from msmqwire.wire.simd cimport wire_bswap16, wire_bswap32
from msmqwire.wire._transport cimport Transport

cdef enum:
    FLOWS = 4
    FLOW_MASK = 3
    SYN_BIT = 4
    FIN_BIT = 8
    RST_BIT = 16
    ODD = 32         # the payload is the input's
    CUT = 64         # only half of the payload was captured
    FAR = 128        # half the sequence numbers away
    OPERATION = 4    # bytes
    LONGEST_INPUT = 4096
    CONTENT = 2048   # bytes; positions beyond it begin again
    LARGEST_SEGMENT = 255
    FILES_EVERY = 4  # operations
    FIRST_PORT = 40000
    FIRST_PACKET = 4096  # as in _flows.pyx
    MOST_BYTES = 1024  # of packets in rows

cdef uint8_t[CONTENT] CONTENT_BYTES
cdef uint16_t[CONTENT] CONTENT_SIZES  # of the packet that begins there
cdef uint32_t[FLOWS] FIRST_SEQUENCE
FIRST_SEQUENCE[:] = [0, 0xFFFFFF9C, 0x7FFFFFCE, 12345]

cdef uint64_t[4] AHEAD
AHEAD[:] = [1 << 20, 0, 30, 300]
cdef uint64_t[4] MEMORY_LIMITS
MEMORY_LIMITS[:] = [64 << 20, 1000, 6000, 12000]
cdef uint32_t[4] KINDS
KINDS[:] = [3, 1, 2, 0]

# Where rows are written: allocated once
cdef Span[MOST_PACKETS] SPANS
cdef uint8_t[MOST_PACKETS] PRESENCE
cdef uint8_t[MOST_PACKETS] FILE
cdef uint64_t[MOST_PACKETS] FRAME
cdef uint64_t[MOST_PACKETS] FIRST_FRAME
cdef int64_t[MOST_PACKETS] TIME
cdef uint16_t[MOST_PACKETS] SRC_PORT
cdef uint64_t[MOST_PACKETS] STREAM_OFFSET
cdef uint32_t[MOST_PACKETS] OTHERS
cdef Lost[MOST_PACKETS] LOST
cdef (void*)[MOST_PACKETS] MEMORY
cdef uint32_t[MOST_FILES] FILES


cdef int fill_content() except -1:
    """Packets one behind the other: every third with a SessionHeader behind it, every fourth an internal one."""
    cdef size_t at = 0
    cdef uint32_t number = 0
    cdef size_t body, size, extent
    cdef uint16_t flags
    while at < CONTENT:
        body = (number * 11) % 61
        size = BASE_HEADER_SIZE + body
        flags = 3
        extent = size
        if number % 3 == 0:
            flags |= FLAG_SESSION
            extent += 16
        elif number % 4 == 1:
            flags |= FLAG_INTERNAL
        if at + extent > CONTENT:
            break
        CONTENT_SIZES[at] = <uint16_t>extent
        CONTENT_BYTES[at] = VERSION_NUMBER
        CONTENT_BYTES[at + 2] = <uint8_t>flags
        CONTENT_BYTES[at + 4:at + 8] = b"LIOR"
        CONTENT_BYTES[at + 8] = <uint8_t>size
        CONTENT_BYTES[at + 12] = <uint8_t>number
        memset(&CONTENT_BYTES[at + BASE_HEADER_SIZE], <int>(0x40 + number), extent - BASE_HEADER_SIZE)
        at += extent
        number += 1
    return 0


fill_content()


cdef struct Run:
    Streams streams
    Counts counts
    Rows rows
    size_t first_packets     # of fresh rows
    size_t first_files
    size_t seen              # rows that were looked at
    size_t lost_seen         # of these, packets that lost bytes
    size_t index             # of the flow of the segment that is offered
    uint64_t begun           # streams before it
    bint[FLOWS] odd          # the flow carried other bytes than those of the content
    size_t[FLOWS] renewals   # how many streams the flow had; those from before its first byte run beside it
    uint64_t[FLOWS] end      # behind its last packet
    uint64_t packets
    uint64_t framed
    uint64_t unframed


cdef void start_rows(Run* run) noexcept nogil:
    cdef Rows* rows = &run.rows
    memset(rows, 0, sizeof(rows[0]))
    rows.spans = rows.next = SPANS
    rows.others = OTHERS
    rows.lost = LOST
    rows.memory = MEMORY
    rows.files = FILES
    rows.columns = True
    rows.presence = PRESENCE
    rows.file = FILE
    rows.frame = FRAME
    rows.first_frame = FIRST_FRAME
    rows.time = TIME
    rows.src_port = SRC_PORT
    rows.stream_offset = STREAM_OFFSET
    rows.most_bytes = MOST_BYTES
    rows.packets = run.first_packets
    rows.file_count = run.first_files
    run.seen = 0
    run.lost_seen = 0


cdef void look_at_run(Run* run, size_t row, size_t flow, size_t lost) noexcept nogil:
    """Bytes in which no packet begins: the first of them do not begin one."""
    cdef const Span* span = &run.rows.spans[row]
    cdef size_t total = 0
    must(run.streams.kinds & MESSAGE_PACKETS)
    must(0 < span.size <= RUN_SHOWN and (lost == 0 or span.size == RUN_SHOWN))
    # Fewer bytes than a BaseHeader may begin like one, where the next byte was judged with those that follow
    must(span.size < BASE_HEADER_SIZE or frame_packet(span.data, span.size, &total) == NOT_A_PACKET)
    if STREAM_OFFSET[row] < run.end[flow]:
        must(run.renewals[flow] > 1)
    run.end[flow] = STREAM_OFFSET[row] + span.size + lost
    run.unframed += span.size + lost


cdef void look_at_row(Run* run, size_t row) noexcept nogil:
    """No byte of a stream is in two rows, and a stream that carries the content gives its packets."""
    cdef const Span* span = &run.rows.spans[row]
    cdef size_t flow = <size_t>(SRC_PORT[row] - FIRST_PORT)
    cdef uint32_t flags
    cdef size_t at = 0
    cdef size_t lost = 0
    if run.lost_seen < run.rows.lost_count and LOST[run.lost_seen].row == row:
        lost = LOST[run.lost_seen].size
        run.lost_seen += 1
        must(lost != 0)
    must(flow < FLOWS and FILE[row] <= run.rows.file_count)
    if lost & UNFRAMED:
        look_at_run(run, row, flow, lost ^ UNFRAMED)
        return
    must(span.size != 0 and span.data[0] == VERSION_NUMBER)
    if span.size < BASE_HEADER_SIZE:
        must(span.size + lost == BASE_HEADER_SIZE)
        run.end[flow] = STREAM_OFFSET[row] + span.size
        return
    flags = load_u16(span.data + 2) & (FLAG_INTERNAL | FLAG_SESSION)
    must(load_u32(span.data + 4) == PACKET_SIGNATURE)
    must(span.size + lost == load_u32(span.data + 8) + <size_t>(16 if flags == FLAG_SESSION else 0))
    if STREAM_OFFSET[row] < run.end[flow]:
        must(run.renewals[flow] > 1)
    run.end[flow] = STREAM_OFFSET[row] + span.size
    if not run.odd[flow]:
        while at < CONTENT and CONTENT_BYTES[at + 12] != span.data[12]:
            must(CONTENT_SIZES[at] != 0)
            at += CONTENT_SIZES[at]
        must(at < CONTENT and span.size + lost == CONTENT_SIZES[at])
        must(memcmp(span.data, &CONTENT_BYTES[at], span.size) == 0)
    if not lost:
        run.framed += span.size
        run.packets += 1


cdef void look_at_rows(Run* run) noexcept nogil:
    cdef size_t count = <size_t>(run.rows.next - run.rows.spans)
    must(run.rows.packets == run.first_packets + count and run.rows.packets <= MOST_PACKETS)
    must(run.rows.count == count and run.rows.other_count == count and run.rows.memory_count <= count)
    must(run.rows.file_count <= MOST_FILES)
    while run.seen < count:
        look_at_row(run, run.seen)
        run.seen += 1
    must(run.lost_seen == run.rows.lost_count)


cdef void note_renewal(Run* run) noexcept nogil:
    if run.streams.counts.streams != run.begun:
        run.begun = run.streams.counts.streams
        run.renewals[run.index] += 1


cdef void next_rows(Run* run) noexcept nogil:
    """Rows had no room: those that are new have, and first for what waited."""
    cdef bint delivered = False
    cdef size_t i
    note_renewal(run)
    while not delivered:
        must(run.rows.next != run.rows.spans)
        look_at_rows(run)
        for i in range(run.rows.memory_count):
            free(run.rows.memory[i])
        start_rows(run)
        delivered = deliver_waiting(&run.streams, &run.rows, &run.counts)


cdef void check_pieces(const Flow* flow, bint waiting, uint64_t most_ahead) noexcept nogil:
    """They are in order, lie apart, and are ahead of the stream."""
    cdef const Piece* piece = flow.pieces.first
    cdef const Piece* last = NULL
    cdef uint64_t position = flow.position
    cdef size_t nbytes = 0
    cdef size_t count = 0
    if piece != NULL and not waiting:
        must(piece.position > position)
    while piece != NULL:
        must(piece.size != 0 and piece.position >= position)
        position = piece.position + piece.size
        nbytes += piece.size
        count += 1
        last = piece
        piece = piece.next
    must(last == flow.pieces.last and nbytes == flow.pieces.bytes and count == flow.pieces.count)
    must(waiting or nbytes <= most_ahead)


cdef void check_flows(Streams* streams) noexcept nogil:
    """All flows are found and in one list; what they hold is what is counted."""
    cdef const StreamCounts* counts = &streams.counts
    cdef uint32_t index = streams.table.oldest
    cdef uint32_t before = NO_FLOW
    cdef uint64_t held = 0
    cdef size_t memory = 0
    cdef size_t count = 0
    cdef Flow* flow
    while index != NO_FLOW:
        flow = &streams.table.flows[index]
        must(flow.older == before)
        must(find_flow(&streams.table, &flow.endpoints) == flow)
        must(flow.filled < BASE_HEADER_SIZE or flow.filled < flow.total)
        must(flow.data == NULL or flow.filled <= flow.capacity)
        check_pieces(flow, index == streams.waiting, streams.most_ahead)
        must(flow.renewing or flow.next_pieces.first == NULL)
        must(flow.next_pieces.bytes <= flow.next_size)
        held += flow.filled + flow.pieces.bytes + flow.next_pieces.bytes
        memory += flow.capacity + flow.pieces.bytes + flow.next_pieces.bytes
        memory += (flow.pieces.count + flow.next_pieces.count) * sizeof(Piece)
        if flow.head != NULL:
            memory += sizeof(Head)
        if flow.run != NULL:
            memory += sizeof(FoundRun)
            must(flow.searching and flow.filled < BASE_HEADER_SIZE and flow.run.size != 0)
            must(flow.run.position + flow.run.size + flow.filled == flow.position)
        count += 1
        before = index
        index = flow.newer
    must(before == streams.table.newest and count == streams.table.count and count <= streams.most_flows)
    must(memory == streams.table.memory and held == counts.held)
    must(counts.bytes == counts.framed + counts.skipped + counts.duplicate + counts.held)


cdef void take(Run* run, uint8_t operation, uint32_t position, const uint8_t* payload, size_t size) noexcept nogil:
    """Offer a segment until it is taken."""
    cdef Streams* streams = &run.streams
    cdef size_t index = operation & FLOW_MASK
    cdef size_t shift = run.counts.frames & 1
    cdef uint32_t sequence = FIRST_SEQUENCE[index] + position
    cdef size_t captured = size // 2 if operation & CUT else size
    cdef uint8_t* copied = exact_copy(payload, captured, shift)
    cdef uint8_t[32] addresses
    cdef uint8_t[20] header
    cdef Frame frame
    cdef Packet packet
    cdef uint16_t port = wire_bswap16(<uint16_t>(FIRST_PORT + index))
    if operation & (ODD | FAR):
        run.odd[index] = True
    if operation & FAR:
        sequence += 0x7FFFFFF0U
    if operation & SYN_BIT:
        sequence -= 1
    sequence = wire_bswap32(sequence)
    memset(addresses, 0, sizeof(addresses))
    memset(header, 0, sizeof(header))
    memcpy(header, &port, 2)
    memcpy(header + 4, &sequence, 4)
    header[13] = (operation & SYN_BIT) >> 1 | (operation & FIN_BIT) >> 3 | (operation & RST_BIT) >> 2
    run.counts.frames += 1
    run.counts.file = <uint32_t>(run.counts.frames // FILES_EVERY)
    memset(&frame, 0, sizeof(frame))
    frame.timed = True
    frame.number = run.counts.frames
    frame.time = <int64_t>run.counts.frames
    memset(&packet, 0, sizeof(packet))
    set_addresses(&packet.ends, IPV6 if index == 3 else IPV4, addresses)
    set_ports(&packet.ends, Transport.TCP, header)
    packet.header = header
    packet.payload = copied + shift
    packet.size = captured
    packet.missing = size - captured
    run.index = index
    run.begun = streams.counts.streams
    while not take_segment(streams, &frame, &packet, &run.rows, &run.counts):
        next_rows(run)
    note_renewal(run)
    while streams.waiting != NO_FLOW:
        next_rows(run)
    look_at_rows(run)
    must(streams.table.memory <= 2 * streams.most_memory + FIRST_PACKET + sizeof(Head) + size * (1 + sizeof(Piece)))
    check_flows(streams)
    # The rows that lie in the segment are looked at; a block keeps its window as long
    free(copied)


cdef void operate(Run* run, const uint8_t* data, size_t size) noexcept nogil:
    cdef const uint8_t* payload
    cdef uint32_t position
    cdef size_t length
    while size >= OPERATION:
        position = load_u16(data + 1)
        length = data[3]
        if data[0] & ODD:
            length = min(length, size - OPERATION)
            payload = data + OPERATION
        else:
            position %= CONTENT
            length = min(length, <size_t>(CONTENT - position))
            payload = &CONTENT_BYTES[position]
        take(run, data[0], position, payload, length)
        if data[0] & ODD:
            data += length
            size -= length
        data += OPERATION
        size -= OPERATION


cdef public int fuzz_streams(const uint8_t* data, size_t size) noexcept nogil:
    """The input is a stream of operations, in the form that stands above."""
    cdef Run run
    cdef Streams* streams = &run.streams
    cdef size_t i
    if size < 2 or size > LONGEST_INPUT:
        return 0
    memset(&run, 0, sizeof(run))
    start_table(&streams.table, size)
    streams.most_ahead = AHEAD[data[0] & 3]
    streams.most_memory = MEMORY_LIMITS[data[0] >> 2 & 3]
    streams.most_flows = 1 + (data[0] >> 4 & 3)
    streams.kinds = KINDS[data[0] >> 6]
    streams.waiting = NO_FLOW
    run.first_packets = MOST_PACKETS - (2 * (LARGEST_SEGMENT // BASE_HEADER_SIZE + 2) + 1 + (data[1] & 15))
    run.first_files = MOST_FILES - 4 - (data[1] >> 4)
    memset(FILES, 0xFF, sizeof(FILES))
    start_rows(&run)
    operate(&run, data + 2, size - 2)
    while not finish_streams(streams, &run.rows, &run.counts):
        next_rows(&run)
    look_at_rows(&run)
    check_flows(streams)
    must(streams.table.count == 0 and streams.counts.held == 0)
    must(run.packets == streams.counts.packets - streams.counts.unselected)
    must(run.framed <= streams.counts.framed and run.unframed <= streams.counts.skipped)
    must(streams.counts.unselected != 0 or run.framed == streams.counts.framed)
    for i in range(run.rows.memory_count):
        free(run.rows.memory[i])
    free_table(&streams.table)
    return 0
