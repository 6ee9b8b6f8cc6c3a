"""From TCP segments to the MSMQ packets of their streams: RFC 9293, [MS-MQQB] 2.1.

A stream is one direction of a connection. Bytes in order go through ``deliver``, which cuts them into packets; a packet
that lies whole in a segment stays where it is, in the window. Bytes that are ahead of what is still missing wait as
pieces. What is missing is given up when too much waits behind it, when the connection is reset or its ports are used
again, when the flow is evicted, and at the end of the capture; reading goes on behind the packet that lost some of its
bytes, else at the next signature.

Rows have room for so many packets. A segment for which there may be too little is not taken: the caller makes new rows
and offers it again. Where a segment was taken and the bytes waiting behind it did not fit, its flow is ``waiting``: the
caller makes new rows for it before it goes on.
"""

from libc.stddef cimport size_t
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memchr, memcmp, memcpy, memmove

from msmqwire.capture.flows cimport (
    NO_FLOW, Endpoints, Flow, Origin, Piece, add_flow, find_flow, free_table, grow_packet, hold_piece, later,
    move_to_front, open_head, piece_data, release_packet, remove_flow, start_table, take_piece,
)
from msmqwire.capture.fragments cimport free_fragments
from msmqwire.capture.frames cimport (
    CONFLICT, EVICTED, GAP, MOST_FILES, MOST_PACKETS, NO_PACKET, STREAMED, TIMED, UNFINISHED, describe, keep_memory,
)
from msmqwire.capture.guesses cimport BEGINS, CONTINUES, DIFFERS, NUMBERED, add_guess, free_guesses, keep_head
from msmqwire.capture.layers cimport TCP_HEADER
from msmqwire.capture.rows cimport OVER_TCP, note_transport, put_address
from msmqwire.capture.selection cimport selects
from msmqwire.columns.batch cimport DECODED
from msmqwire.columns.payloads cimport Payloads, Span, payload_at
from msmqwire.mqqb.framing cimport (
    BASE_HEADER_SIZE, FLAG_INTERNAL, FRAMED, NOT_A_PACKET, VERSION_NUMBER, Framing, frame_packet,
)
from msmqwire.wire.address cimport IPV4, IPV6
from msmqwire.wire.cursor cimport load_u16, load_u32, load_u64
from msmqwire.wire.simd cimport wire_bswap16, wire_bswap32, wire_unlikely

import numpy as np

__all__ = ["StreamTable", "packet_kinds"]

# Control bits of a segment
cdef enum:
    FIN = 1
    SYN = 2
    RST = 4

cdef enum:
    MOST_PIECES = 1024  # of a flow: they are found by walking along them


# --- Rows ---


cdef inline bint has_room(const Rows* rows, size_t size) noexcept nogil:
    """Whether the rows can take all packets that end in ``size`` more bytes of a stream."""
    return (
        MOST_PACKETS - rows.packets >= size // BASE_HEADER_SIZE + 2 and MOST_FILES - rows.file_count >= 2
    )


cdef uint8_t file_value(Rows* rows, const Account* account, uint32_t file) noexcept nogil:
    """What stands for a file in the column ``file`` of these rows."""
    cdef size_t i
    if file == account.file:
        return 0
    for i in range(rows.file_count):
        if rows.files[i] == file:
            return <uint8_t>(i + 1)
    rows.files[rows.file_count] = file
    rows.file_count += 1
    return <uint8_t>rows.file_count


cdef void put_columns(
    Rows* rows, const Account* account, const Flow* flow, size_t row, uint64_t offset, uint64_t first_frame,
    const Origin* last,
) noexcept nogil:
    cdef const Endpoints* ends = &flow.endpoints
    cdef uint32_t ports = <uint32_t>ends.ports
    cdef uint16_t family = <uint16_t>(ends.ports >> 32)
    rows.count += 1
    rows.presence[row] = <uint8_t>(DECODED | STREAMED | TIMED if last.timed else DECODED | STREAMED)
    if rows.file != NULL:
        rows.file[row] = file_value(rows, account, last.file)
    if rows.frame != NULL:
        rows.frame[row] = last.frame
    if rows.first_frame != NULL:
        rows.first_frame[row] = first_frame
    if rows.time != NULL:
        rows.time[row] = last.time
    if rows.src != NULL:
        put_address(rows.src, row, <const uint8_t*>ends.src, family)
    if rows.src_port != NULL:
        rows.src_port[row] = wire_bswap16(<uint16_t>ports)
    if rows.dst != NULL:
        put_address(rows.dst, row, <const uint8_t*>ends.dst, family)
    if rows.dst_port != NULL:
        rows.dst_port[row] = wire_bswap16(<uint16_t>(ports >> 16))
    if rows.transport != NULL:
        rows.transport[row] = OVER_TCP
    if rows.stream_offset != NULL:
        rows.stream_offset[row] = offset


cdef inline bint put_packet(
    Streams* streams, Rows* rows, const Account* account, const Flow* flow, const uint8_t* data, size_t size,
    uint64_t offset, uint64_t first_frame, const Origin* last,
) noexcept nogil:
    """A row for a packet, unless its time or its ends are not asked for; whether there is one."""
    cdef size_t row = <size_t>(rows.next - rows.spans)
    cdef const Endpoints* ends = &flow.endpoints
    if wire_unlikely(rows.selection != NULL) and not selects(
        rows.selection, last.timed, last.time, <uint16_t>(ends.ports >> 32), <const uint8_t*>ends.src,
        <const uint8_t*>ends.dst,
    ):
        streams.counts.unselected += 1
        return False
    note_transport(rows, OVER_TCP)
    rows.next.data = data
    rows.next.size = size
    rows.next += 1
    rows.nbytes += size
    rows.packets += 1
    if rows.columns:
        put_columns(rows, account, flow, row, offset, first_frame, last)
    return True


# --- From bytes in order to packets ---


cdef inline uint32_t packet_kind(const uint8_t* base_header) noexcept nogil:
    """The bit of a packet's kind."""
    return SESSION_PACKETS if load_u16(base_header + 2) & FLAG_INTERNAL else MESSAGE_PACKETS


cdef inline bint selected(const Streams* streams, const uint8_t* base_header) noexcept nogil:
    """Whether packets of this kind give rows."""
    return streams.kinds & packet_kind(base_header)


cdef size_t find_packet_start(const uint8_t* data, size_t size) noexcept nogil:
    """Bytes in front of the next place where a packet may begin."""
    cdef const uint8_t* at = data
    cdef const uint8_t* end = data + size
    cdef size_t total = 0
    while at != end:
        at = <const uint8_t*>memchr(at, VERSION_NUMBER, <size_t>(end - at))
        if at == NULL:
            return size
        if frame_packet(at, <size_t>(end - at), &total) != NOT_A_PACKET:
            return <size_t>(at - data)
        at += 1
    return size


cdef void lose_packet(Streams* streams, Flow* flow) noexcept nogil:
    """The packet that is open will not be complete."""
    streams.counts.held -= flow.filled
    streams.counts.skipped += flow.filled
    free(release_packet(&streams.table, flow))


cdef void start_searching(
    Streams* streams, Flow* flow, uint64_t position, const Origin* origin, Account* account
) noexcept nogil:
    """No packet begins at the position, where one should."""
    if not flow.searching:
        flow.searching = True
        streams.counts.no_packet += 1
        describe(account, origin.file, origin.offset, NO_PACKET, 0, position)


cdef void keep_last(Flow* flow, const Origin* origin) noexcept nogil:
    if later(origin, &flow.last):
        flow.last = origin[0]


cdef void open_packet(
    Streams* streams, Flow* flow, const uint8_t* data, size_t size, size_t total, uint64_t first_frame,
    const Origin* last,
) noexcept nogil:
    """Begin a packet of which a BaseHeader and more is there, but not all."""
    flow.searching = False
    flow.total = <uint32_t>total
    flow.filled = 0
    flow.first_frame = first_frame
    flow.last = last[0]
    if selected(streams, data):
        if not grow_packet(&streams.table, flow, size):
            streams.no_memory = True
        else:
            memcpy(flow.data, data, size)
    flow.filled = <uint32_t>size


cdef void close_packet(Streams* streams, Flow* flow, Rows* rows, const Account* account) noexcept nogil:
    """All of the open packet is there."""
    cdef uint32_t total = flow.total
    cdef uint8_t* data = release_packet(&streams.table, flow)
    streams.counts.held -= total
    streams.counts.framed += total
    streams.counts.packets += 1
    if data == NULL:
        streams.counts.unselected += 1
    elif put_packet(
        streams, rows, account, flow, data, total, flow.position - total, flow.first_frame, &flow.last
    ):
        keep_memory(rows, data)
    else:
        free(data)


cdef size_t fill_packet(
    Streams* streams, Flow* flow, const uint8_t* data, size_t size, const Origin* origin, Rows* rows,
    const Account* account,
) noexcept nogil:
    """Put bytes into the open packet; how many of them it took."""
    cdef size_t count = min(size, <size_t>(flow.total - flow.filled))
    if flow.data != NULL:
        if not grow_packet(&streams.table, flow, flow.filled + count):
            streams.no_memory = True
        else:
            memcpy(flow.data + flow.filled, data, count)
    flow.filled += <uint32_t>count
    flow.position += count
    streams.counts.held += count
    keep_last(flow, origin)
    if flow.filled == flow.total:
        close_packet(streams, flow, rows, account)
    return count


cdef size_t fill_head(
    Streams* streams, Flow* flow, const uint8_t* data, size_t size, const Origin* origin, Rows* rows, Account* account
) noexcept nogil:
    """Put bytes into a BaseHeader that came in parts; how many of them it took."""
    cdef size_t count = min(size, <size_t>(BASE_HEADER_SIZE - flow.filled))
    cdef size_t total = 0
    cdef size_t start, i
    cdef Framing framing
    if not open_head(&streams.table, flow):
        streams.no_memory = True
        streams.counts.skipped += size + flow.filled
        streams.counts.held -= flow.filled
        flow.filled = 0
        flow.position += size
        flow.searching = True
        return size
    memcpy(flow.head.data + flow.filled, data, count)
    for i in range(flow.filled, flow.filled + count):
        flow.head.origins[i] = origin[0]
    flow.filled += <uint32_t>count
    flow.position += count
    streams.counts.held += count
    framing = frame_packet(flow.head.data, flow.filled, &total)
    if framing == NOT_A_PACKET:
        start_searching(streams, flow, flow.position - flow.filled, &flow.head.origins[0], account)
        start = 1 + find_packet_start(flow.head.data + 1, flow.filled - 1)
        flow.filled -= <uint32_t>start
        streams.counts.held -= start
        streams.counts.skipped += start
        memmove(flow.head.data, flow.head.data + start, flow.filled)
        memmove(flow.head.origins, &flow.head.origins[start], flow.filled * sizeof(Origin))
    elif flow.filled == BASE_HEADER_SIZE:
        open_packet(
            streams, flow, flow.head.data, BASE_HEADER_SIZE, total, flow.head.origins[0].frame, &flow.head.origins[0]
        )
        for i in range(1, <size_t>BASE_HEADER_SIZE):
            keep_last(flow, &flow.head.origins[i])
        if framing == FRAMED:
            close_packet(streams, flow, rows, account)
    return count


cdef bint deliver(
    Streams* streams, Flow* flow, const uint8_t* data, size_t size, const Origin* origin, Rows* rows, Account* account
) noexcept nogil:
    """Cut bytes that are in order into packets; whether one of the rows now lies in ``data``."""
    cdef bint used = False
    cdef size_t total = 0
    cdef size_t count
    cdef Framing framing
    while size:
        if flow.skip:
            count = min(size, <size_t>flow.skip)
            flow.skip -= <uint32_t>count
            flow.position += count
            streams.counts.skipped += count
        elif flow.filled >= BASE_HEADER_SIZE:
            count = fill_packet(streams, flow, data, size, origin, rows, account)
        elif flow.filled:
            count = fill_head(streams, flow, data, size, origin, rows, account)
        else:
            framing = frame_packet(data, size, &total)
            if framing == FRAMED:
                flow.searching = False
                streams.counts.packets += 1
                streams.counts.framed += total
                if selected(streams, data):
                    used |= put_packet(
                        streams, rows, account, flow, data, total, flow.position, origin.frame, origin
                    )
                else:
                    streams.counts.unselected += 1
                count = total
                flow.position += count
            elif framing == NOT_A_PACKET:
                start_searching(streams, flow, flow.position, origin, account)
                count = 1 + find_packet_start(data + 1, size - 1)
                flow.position += count
                streams.counts.skipped += count
            elif size < BASE_HEADER_SIZE:
                count = fill_head(streams, flow, data, size, origin, rows, account)
            else:
                count = size
                open_packet(streams, flow, data, size, total, origin.frame, origin)
                flow.position += count
                streams.counts.held += count
        data += count
        size -= count
    return used


# --- From segments to bytes in order ---


cdef void give_up(Streams* streams, Flow* flow, Account* account) noexcept nogil:
    """Go on at the first piece, as if what is missing in front of it had been there but could not be read."""
    cdef const Piece* piece = flow.pieces
    cdef uint64_t gap = piece.position - flow.position
    cdef uint64_t rest = flow.skip
    streams.counts.gaps += 1
    streams.counts.missing += gap
    describe(account, piece.origin.file, piece.origin.offset, GAP, gap, flow.position)
    if flow.filled >= BASE_HEADER_SIZE:
        rest = flow.total - flow.filled
    lose_packet(streams, flow)
    flow.skip = <uint32_t>(rest - gap) if rest > gap else 0
    flow.searching = True
    flow.position = piece.position


cdef bint drain(Streams* streams, Flow* flow, Rows* rows, Account* account) noexcept nogil:
    """Deliver the pieces that are in order; false when the rows have no room for the next."""
    cdef Piece* piece
    while flow.pieces != NULL:
        if flow.pieces.position > flow.position:
            if not (flow.flushing or flow.piece_bytes > streams.most_ahead or flow.piece_count > MOST_PIECES):
                return True
            give_up(streams, flow, account)
        if not has_room(rows, flow.pieces.size):
            return False
        piece = take_piece(&streams.table, flow)
        streams.counts.held -= piece.size
        if deliver(streams, flow, piece_data(piece), piece.size, &piece.origin, rows, account):
            keep_memory(rows, piece)
        else:
            free(piece)
    flow.flushing = False
    return True


cdef bint close_stream(Streams* streams, Flow* flow, Rows* rows, Account* account) noexcept nogil:
    """Nothing more comes; false when the rows have no room for what waits."""
    flow.flushing = True
    if not drain(streams, flow, rows, account):
        return False
    if flow.filled:
        if not flow.searching:
            streams.counts.unfinished += 1
            describe(
                account, flow.file, flow.offset, UNFINISHED,
                BASE_HEADER_SIZE if flow.filled < BASE_HEADER_SIZE else flow.total, flow.filled,
            )
        lose_packet(streams, flow)
    return True


cdef bint evict(Streams* streams, Rows* rows, Account* account) noexcept nogil:
    """Forget the flow whose last segment is the longest ago; false when the rows have no room for what waits."""
    cdef Flow* flow = &streams.table.flows[streams.table.oldest]
    if not close_stream(streams, flow, rows, account):
        streams.waiting = streams.table.oldest  # what is left comes next, even if what came made room enough
        return False
    if not flow.ended:
        streams.counts.evictions += 1
        describe(account, flow.file, flow.offset, EVICTED, 0, flow.position)
    remove_flow(&streams.table, flow)
    return True


cdef bint differs_from_open(const Flow* flow, const uint8_t* data, size_t size, size_t behind) noexcept nogil:
    """Whether bytes that begin ``behind`` bytes in front of the position are not what the open packet has there."""
    cdef const uint8_t* open = flow.data
    cdef size_t skip = 0
    if flow.filled == 0:
        return False
    if flow.filled < BASE_HEADER_SIZE:
        open = flow.head.data
    if open == NULL:
        return False
    if behind > flow.filled:
        skip = behind - flow.filled
        behind = flow.filled
    return size > skip and memcmp(data + skip, open + (flow.filled - behind), size - skip) != 0


cdef void take_bytes(
    Streams* streams, Flow* flow, const uint8_t* data, size_t size, int32_t ahead, const Origin* origin, Rows* rows,
    Account* account,
) noexcept nogil:
    """Bytes that begin ``ahead`` of the position; what was there before is left as it is."""
    cdef size_t behind = <size_t>(-<int64_t>ahead) if ahead < 0 else 0
    cdef size_t old = min(size, behind)
    cdef bint differs = False
    streams.counts.bytes += size
    if old and not (size == 1 and behind == 1):  # which is a keep-alive, whose byte may be anything
        differs = differs_from_open(flow, data, old, behind)
    streams.counts.duplicate += old
    data += old
    size -= old
    behind -= old
    if size == 0:
        pass
    elif ahead <= 0 and flow.pieces == NULL:
        deliver(streams, flow, data, size, origin, rows, account)
    else:
        hold(streams, flow, data, size, <uint64_t>max(ahead, 0), origin, &differs)
        if not drain(streams, flow, rows, account):
            streams.waiting = <uint32_t>(flow - streams.table.flows)
    if differs:
        streams.counts.conflicts += 1
        describe(account, origin.file, origin.offset, CONFLICT, 0, flow.position)


cdef void hold(
    Streams* streams, Flow* flow, const uint8_t* data, size_t size, uint64_t ahead, const Origin* origin, bint* differs
) noexcept nogil:
    cdef size_t before = flow.piece_bytes
    cdef size_t duplicate = 0
    if not hold_piece(&streams.table, flow, flow.position + ahead, data, size, origin, differs, &duplicate):
        streams.no_memory = True
        streams.counts.skipped += size - duplicate - (flow.piece_bytes - before)
    streams.counts.duplicate += duplicate
    streams.counts.held += flow.piece_bytes - before


cdef inline void read_endpoints(const Packet* found, Endpoints* endpoints) noexcept nogil:
    cdef const uint8_t* ip = found.ip
    if ip[0] >> 4 == 6:
        endpoints.src[0] = load_u64(ip + 8)
        endpoints.src[1] = load_u64(ip + 16)
        endpoints.dst[0] = load_u64(ip + 24)
        endpoints.dst[1] = load_u64(ip + 32)
        endpoints.ports = <uint64_t>IPV6 << 32 | load_u32(found.header)
    else:
        endpoints.src[0] = load_u32(ip + 12)
        endpoints.dst[0] = load_u32(ip + 16)
        endpoints.src[1] = endpoints.dst[1] = 0
        endpoints.ports = <uint64_t>IPV4 << 32 | load_u32(found.header)


cdef void begin_stream(Streams* streams, Flow* flow, uint32_t first) noexcept nogil:
    flow.first = first
    flow.position = 0
    flow.skip = 0
    flow.ended = flow.flushing = flow.searching = False
    streams.counts.streams += 1


cdef bint keep_in_bounds(Streams* streams, Rows* rows, Account* account) noexcept nogil:
    """Hold no more than may be held; false when the rows have no room for what waits in streams that are forgotten."""
    if streams.guesses.keeping:
        streams.guesses.peak = max(streams.guesses.peak, streams.table.memory)
        return True
    while streams.table.memory > streams.most_memory:
        if not evict(streams, rows, account):
            return False
    return True


cdef bint take_segment(
    Streams* streams, const Frame* frame, const Packet* found, Rows* rows, Account* account
) noexcept nogil:
    """The packets that a segment completes; false when the rows have no room for them: then nothing is changed."""
    cdef uint32_t flags = found.header[13] & (FIN | SYN | RST)
    cdef uint32_t sequence
    cdef Endpoints endpoints
    cdef Flow* flow
    cdef bint renewed
    if found.size + found.missing == 0 and not flags:
        account.segments += 1
        return True
    if not keep_in_bounds(streams, rows, account):
        return False
    read_endpoints(found, &endpoints)
    sequence = wire_bswap32(load_u32(found.header + 4))
    if flags & SYN:
        sequence += 1
    flow = find_flow(&streams.table, &endpoints)
    if streams.guesses.active and (flow == NULL or flags & SYN):
        if not has_room(rows, found.size):
            return False
        if not flags & SYN:
            return guess_stream(streams, &endpoints, frame, found, rows, account)
        guess_before(streams, flow, &endpoints, sequence)
    renewed = flow != NULL and flags & SYN and sequence != flow.first
    if flow == NULL:
        if found.size + found.missing == 0 and not flags & SYN:
            account.segments += 1
            return True
        if not streams.guesses.keeping and streams.table.count >= streams.most_flows:
            if not evict(streams, rows, account):
                return False
    elif renewed and not close_stream(streams, flow, rows, account):
        return False
    if not has_room(rows, found.size):  # packets of streams that had to end took some of it
        return False
    if flow == NULL:
        flow = add_flow(&streams.table, &endpoints)
        if flow == NULL:
            streams.no_memory = True
            return True
        renewed = True
    if renewed:
        begin_stream(streams, flow, sequence)
    account.segments += 1
    take_part(streams, flow, frame, found, sequence, 0, rows, account)
    return True


cdef void take_part(
    Streams* streams, Flow* flow, const Frame* frame, const Packet* found, uint32_t sequence, size_t passed, Rows* rows,
    Account* account,
) noexcept nogil:
    """A segment but for the bytes that are passed over, which ``sequence`` is behind."""
    cdef uint32_t flags = found.header[13]
    cdef int32_t ahead
    cdef Origin origin
    move_to_front(&streams.table, flow)
    flow.offset = frame.offset
    flow.file = account.file
    origin.file = account.file
    origin.timed = frame.timed
    origin.frame = frame.number
    origin.time = frame.time
    origin.offset = frame.offset
    ahead = <int32_t>(sequence - flow.first - <uint32_t>flow.position)
    take_bytes(streams, flow, found.payload + passed, found.size - passed, ahead, &origin, rows, account)
    if flags & (FIN | RST):
        flow.ended = True
    if flags & RST and ahead >= 0:
        flow.flushing = True
        if not drain(streams, flow, rows, account):
            streams.waiting = <uint32_t>(flow - streams.table.flows)


# --- Where reading began inside a file ---


cdef bint guess_stream(
    Streams* streams, const Endpoints* endpoints, const Frame* frame, const Packet* found, Rows* rows, Account* account
) noexcept nogil:
    """The first segment of a stream that may have been open: its first packet is guessed to be one.

    What is in front of it is kept with its frame, and is of the rows' past: false when they have one already.
    """
    cdef size_t passed = find_packet_start(found.payload, found.size)
    cdef bint whole = found.size - passed < BASE_HEADER_SIZE
    cdef uint32_t sequence
    cdef uint64_t number
    cdef Flow* flow
    if passed or whole:
        if rows.next != rows.spans or account.described:
            return False
        keep_head(&streams.guesses, frame, 0 if whole else passed)
        if whole:
            return True
    flow = add_flow(&streams.table, endpoints)
    if flow == NULL:
        streams.no_memory = True
        return True
    sequence = wire_bswap32(load_u32(found.header + 4)) + <uint32_t>passed
    number = add_guess(&streams.guesses, endpoints, CONTINUES, sequence)
    begin_stream(streams, flow, sequence)
    flow.position = number
    account.segments += not passed
    take_part(streams, flow, frame, found, sequence, passed, rows, account)
    return True


cdef void guess_before(
    Streams* streams, const Flow* flow, const Endpoints* endpoints, uint32_t sequence
) noexcept nogil:
    """A stream begins, if the one that may have been open is another."""
    if flow == NULL:
        add_guess(&streams.guesses, endpoints, BEGINS, sequence)
    elif flow.position >> NUMBERED:
        add_guess(&streams.guesses, endpoints, DIFFERS, sequence)
        if sequence == flow.first:
            streams.guesses.wrong = True


cdef bint take_head(
    Streams* streams, const Frame* frame, const Packet* found, size_t passed, Rows* rows, Account* account
) noexcept nogil:
    """The first ``passed`` bytes of a segment that was kept; false when the rows have no room for their packets."""
    cdef uint8_t[TCP_HEADER] header
    cdef Packet part = found[0]
    cdef Endpoints endpoints
    cdef const Flow* flow
    read_endpoints(found, &endpoints)
    flow = find_flow(&streams.table, &endpoints)
    if flow != NULL:
        if flow.pieces != NULL or flow.first + <uint32_t>flow.position != wire_bswap32(load_u32(found.header + 4)):
            streams.guesses.wrong = True
            return True
    memcpy(header, found.header, TCP_HEADER)
    header[13] = 0  # what it says of the end of the stream is for the rest of the segment
    part.header = header
    part.size = passed
    part.missing = 0
    return take_segment(streams, frame, &part, rows, account)


cdef bint deliver_waiting(Streams* streams, Rows* rows, Account* account) noexcept nogil:
    """What the rows before these had no room for; false when these have none either."""
    if streams.waiting != NO_FLOW:
        if not drain(streams, &streams.table.flows[streams.waiting], rows, account):
            return False
        streams.waiting = NO_FLOW
    return True


cdef bint finish_streams(Streams* streams, Rows* rows, Account* account) noexcept nogil:
    """The capture has ended; false when the rows have no room for what waits."""
    cdef Flow* flow
    while streams.table.oldest != NO_FLOW:
        flow = &streams.table.flows[streams.table.oldest]
        if not close_stream(streams, flow, rows, account):
            return False
        remove_flow(&streams.table, flow)
    return True


# --- What Python owns ---


cdef class StreamTable:
    """The streams of a capture, over all its files."""

    def __cinit__(self, kinds, limits, uint64_t seed):
        start_table(&self.streams.table, seed)
        self.streams.kinds = kinds
        self.streams.most_ahead = limits.ahead
        self.streams.most_memory = limits.memory
        self.streams.most_flows = limits.streams
        self.streams.waiting = NO_FLOW
        self.files = []

    def __dealloc__(self):
        free_table(&self.streams.table)
        free_guesses(&self.streams.guesses)
        free_fragments(&self.streams.fragments)

    def counts(self):
        """The account so far, by the names of the fields of StreamStats."""
        return self.streams.counts


def packet_kinds(Payloads payloads):
    """The bits of PACKET_KINDS for each of the packets of streams; 0 for what is shorter than a BaseHeader."""
    cdef size_t count = payloads.table.count
    cdef Span span
    cdef size_t i
    found = np.zeros(count, np.uint8)
    cdef uint8_t[::1] kinds = found
    with nogil:
        for i in range(count):
            span = payload_at(&payloads.table, i)
            if span.size >= BASE_HEADER_SIZE:
                kinds[i] = <uint8_t>packet_kind(span.data)
    return found


cdef class PacketMemory:
    """Memory that packets of a block lie in."""

    def __dealloc__(self):
        cdef size_t i
        for i in range(self.count):
            free(self.blocks[i])
        free(self.blocks)


cdef PacketMemory take_memory(Rows* rows):
    """The owner of the memory that belongs to the rows; None when there is none."""
    cdef PacketMemory memory
    if not rows.memory_count:
        return None
    memory = PacketMemory.__new__(PacketMemory)
    memory.blocks = <void**>calloc(rows.memory_count, sizeof(void*))
    if memory.blocks == NULL:
        raise MemoryError
    memcpy(memory.blocks, rows.memory, rows.memory_count * sizeof(void*))
    memory.count = rows.memory_count
    rows.memory_count = 0
    return memory
