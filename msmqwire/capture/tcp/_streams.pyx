"""From TCP segments to the MSMQ packets of their streams: RFC 9293, [MS-MQQB] 2.1.

A stream is one direction of a connection. Bytes in order go to _packets.pyx. Bytes that are ahead of what is still
missing wait as pieces. Missing bytes are given up when too many wait for them, when the connection is reset or its
ports are reused, when the flow is evicted, and at the end of the capture; reading resumes after the packet that lost
some of its bytes, else at the next signature. A segment whose bytes were read before is compared with the bytes in
memory; if they are no longer there, the segment is counted as not compared. A segment from before the first byte of a
stream belongs to a stream of its own.

Rows have space for a number of packets. A segment that may need more is not taken: the caller makes new rows and calls
again. If a segment was taken and the bytes that waited for it did not fit, its flow is ``waiting``: the caller makes
new rows for it before the next segment.
"""

from cython cimport boundscheck, wraparound
from libc.stddef cimport size_t
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcmp, memcpy, memset

from msmqwire.capture.frames._fragments cimport frame_of, free_fragments
from msmqwire.capture.frames._frame cimport (
    CONFLICT, END_MISSING, EVICTED, GAP, UNANSWERED, UNCOMPARED, UNFINISHED, Counts, Frame, Origin, origin_of,
)
from msmqwire.capture.frames.packet cimport Packet
from msmqwire.capture.frames._rows cimport Rows, keep_memory
from msmqwire.capture.tcp._connections cimport (
    CONNECTION_RECORD, end_connection, free_connections, start_connections, take_attempt,
)
from msmqwire.capture.tcp._flows cimport (
    EARLIER_BIT, NO_FLOW, Endpoints, Flow, Piece, Pieces, Streams, add_flow, count_probes, find_flow,
    free_pieces, free_table, hold_piece, move_to_front, piece_data, remove_flow, start_table, take_piece,
    turned,
)
from msmqwire.capture.tcp._packets cimport (
    CONNECTION_ROWS, MESSAGE_PACKETS, deliver, describe_at, has_room, drop_unfinished_packet, packet_kind
)
from msmqwire.columns._payloads cimport Payloads
from msmqwire.columns.payload_table cimport UNFRAMED, Span, payload_at
from msmqwire.mqqb.framing cimport BASE_HEADER_SIZE
from msmqwire.wire.cursor cimport load_u32
from msmqwire.wire.simd cimport wire_bswap32, wire_unlikely

import numpy as np

if False:  # for type checkers: see stubs.py
    from numpy.typing import NDArray

    from msmqwire.capture.schema import StreamLimits

cdef enum:
    MOST_PIECES = 1024  # of a flow: they are found by walking along them


# --- From segments to bytes in order ---


cdef void give_up(Streams* streams, Flow* flow, Rows* rows, Counts* counts) noexcept nogil:
    """Resume at the first piece, as if the missing bytes before it had been there but could not be read.

    The rows have space for the packet that lost them, and for the bytes in which none began.
    """
    cdef const Piece* piece = flow.pieces.first
    cdef uint64_t gap = piece.position - flow.position
    cdef uint64_t rest = flow.skip
    streams.counts.gaps += 1
    streams.counts.missing += gap
    describe_at(counts, flow, &piece.origin, GAP, gap, flow.position)
    if flow.filled >= BASE_HEADER_SIZE:
        rest = flow.total - flow.filled
    drop_unfinished_packet(streams, flow, rows, counts)
    flow.skip = <uint32_t>(rest - gap) if rest > gap else 0
    flow.searching = True
    flow.position = piece.position


cdef bint drain(Streams* streams, Flow* flow, Rows* rows, Counts* counts) noexcept nogil:
    """Deliver the pieces that are in order; false if the rows have no space for the next: then the flow waits."""
    cdef Piece* piece
    cdef bint is_gap
    while flow.pieces.first != NULL:
        is_gap = flow.pieces.first.position > flow.position
        if is_gap and not (
            flow.flushing or flow.pieces.bytes > streams.most_ahead or flow.pieces.count > MOST_PIECES
        ):
            return True
        if not has_room(rows, flow.pieces.first.size):
            streams.waiting = <uint32_t>(flow - streams.table.flows)
            return False
        if is_gap:
            give_up(streams, flow, rows, counts)
            continue
        piece = take_piece(&streams.table, &flow.pieces)
        streams.counts.held -= piece.size
        if deliver(streams, flow, piece_data(piece), piece.size, &piece.origin, rows, counts):
            keep_memory(rows, piece)
        else:
            free(piece)
    flow.flushing = False
    return True


cdef bint close_stream(Streams* streams, Flow* flow, Rows* rows, Counts* counts) noexcept nogil:
    """The stream has ended; false if the rows have no space for its pieces: then the rest of them comes next."""
    flow.flushing = True
    if not drain(streams, flow, rows, counts):
        return False
    if flow.filled or flow.run != NULL:
        if not has_room(rows, 0):
            return False
        if not flow.searching:
            streams.counts.unfinished += 1
            describe_at(
                counts, flow, &flow.seen, UNFINISHED,
                BASE_HEADER_SIZE if flow.filled < BASE_HEADER_SIZE else flow.total, flow.filled,
            )
        drop_unfinished_packet(streams, flow, rows, counts)
    if wire_unlikely(flow.end > flow.position):
        streams.counts.gaps += 1
        streams.counts.missing += flow.end - flow.position
        describe_at(counts, flow, &flow.seen, END_MISSING, flow.end - flow.position, flow.position)
        flow.end = 0
    return True


cdef bint evict(Streams* streams, Rows* rows, Counts* counts) noexcept nogil:
    """Remove the flow whose last segment is oldest; false if the rows have no space for its pieces."""
    cdef Flow* flow = &streams.table.flows[streams.table.oldest]
    if not close_stream(streams, flow, rows, counts):
        return False
    if not flow.ended:
        streams.counts.evictions += 1
        describe_at(counts, flow, &flow.seen, EVICTED, 0, flow.position)
    drop_unanswered(streams, flow, counts)
    remove_flow(&streams.table, flow)
    return True


cdef void drop_unanswered(Streams* streams, Flow* flow, Counts* counts) noexcept nogil:
    """The data of a SYN that was not answered belongs to no stream."""
    cdef const Piece* piece = flow.next_pieces.first
    if piece != NULL:
        streams.counts.uncompared += 1
        describe_at(counts, flow, &piece.origin, UNANSWERED, flow.next_pieces.bytes, flow.position)
        streams.counts.held -= flow.next_pieces.bytes
        streams.counts.skipped += flow.next_pieces.bytes
        free_pieces(&streams.table, &flow.next_pieces)


cdef size_t compare_open(
    const Flow* flow, const uint8_t* data, size_t size, size_t back, bint* differs
) noexcept nogil:
    """Compare bytes that begin ``back`` bytes before the position with the open packet; how many it does not have."""
    cdef const uint8_t* open = flow.data
    cdef size_t skip = 0
    if back - size >= flow.filled:
        return size
    if flow.filled < BASE_HEADER_SIZE:
        open = flow.head.data
    if open == NULL:
        return size
    if back > flow.filled:
        skip = back - flow.filled
        back = flow.filled
    if memcmp(data + skip, open + (flow.filled - back), size - skip) != 0:
        differs[0] = True
    return skip


cdef void take_bytes(
    Streams* streams, Flow* flow, const uint8_t* data, size_t size, int32_t ahead, const Origin* origin, Rows* rows,
    Counts* counts,
) noexcept nogil:
    """Store bytes that begin ``ahead`` bytes after the position; bytes that are there stay."""
    cdef size_t back = <size_t>(-<int64_t>ahead) if ahead < 0 else 0
    cdef size_t old = min(size, back)
    cdef size_t unknown
    cdef bint differs = False
    streams.counts.bytes += size
    if old and not (size == 1 and back == 1):  # which is a keep-alive, whose byte may be anything
        unknown = compare_open(flow, data, old, back, &differs)
        if unknown:
            streams.counts.uncompared += 1
            describe_at(counts, flow, origin, UNCOMPARED, unknown, flow.position)
    streams.counts.duplicate += old
    data += old
    size -= old
    back -= old
    if size == 0:
        pass
    elif ahead <= 0 and flow.pieces.first == NULL:
        deliver(streams, flow, data, size, origin, rows, counts)
    else:
        hold(streams, &flow.pieces, flow.position + <uint64_t>max(ahead, 0), data, size, origin, &differs)
        drain(streams, flow, rows, counts)
    if differs:
        streams.counts.conflicts += 1
        describe_at(counts, flow, origin, CONFLICT, 0, flow.position)


cdef void hold(
    Streams* streams, Pieces* pieces, uint64_t position, const uint8_t* data, size_t size, const Origin* origin,
    bint* differs,
) noexcept nogil:
    cdef size_t before = pieces.bytes
    cdef size_t duplicate = 0
    if not hold_piece(&streams.table, pieces, position, data, size, origin, differs, &duplicate):
        streams.no_memory = True
        streams.counts.skipped += size - duplicate - (pieces.bytes - before)
    streams.counts.duplicate += duplicate
    streams.counts.held += pieces.bytes - before


cdef void take_unanswered(
    Streams* streams, Flow* flow, const uint8_t* data, size_t size, uint64_t position, const Origin* origin,
    Counts* counts,
) noexcept nogil:
    """Data of a SYN that is not answered yet: they wait until it is, or until another one comes."""
    cdef bint differs = False
    streams.counts.bytes += size
    hold(streams, &flow.next_pieces, position, data, size, origin, &differs)
    if differs:
        streams.counts.conflicts += 1
        describe_at(counts, flow, origin, CONFLICT, 0, flow.position)


cdef void begin_stream(Streams* streams, Flow* flow, uint32_t first, bint joined, Counts* counts) noexcept nogil:
    flow.joined = joined
    flow.ended = flow.flushing = flow.searching = False
    flow.syn_size = 0
    if flow.renewing and flow.next_first == first:
        flow.ended = flow.next_ended
        flow.syn_size = flow.next_size
        flow.pieces = flow.next_pieces
        memset(&flow.next_pieces, 0, sizeof(Pieces))
    drop_unanswered(streams, flow, counts)
    flow.renewing = False
    flow.first = first
    flow.position = flow.end = 0
    flow.skip = 0
    streams.counts.streams += 1


cdef bint renew_stream(
    Streams* streams, Flow* flow, uint32_t first, bint joined, Rows* rows, Counts* counts
) noexcept nogil:
    """End the stream and begin the next one of its endpoints; false if the rows have no space for the pieces."""
    if not close_stream(streams, flow, rows, counts):
        return False
    begin_stream(streams, flow, first, joined, counts)
    return drain(streams, flow, rows, counts)


cdef bint keep_in_bounds(Streams* streams, Rows* rows, Counts* counts) noexcept nogil:
    """Keep held bytes within the limit; false if the rows have no space for the pieces of streams that are removed."""
    while streams.table.memory > streams.most_memory:
        if not evict(streams, rows, counts):
            return False
    return True


cdef bint renew_answered(
    Streams* streams, const Endpoints* endpoints, uint32_t acknowledged, Rows* rows, Counts* counts, bint* answers
) noexcept nogil:
    """Begin the other direction's stream where its SYN says, which a SYN with ACK answers.

    The answer may acknowledge any part of the data in the SYN (RFC 7413). ``answers``: the stream of the other
    direction has just begun with that SYN. False if the rows have no space for the pieces of a stream.
    """
    cdef Endpoints other = turned(endpoints)
    cdef Flow* flow = find_flow(&streams.table, &other)
    if flow == NULL:
        return True
    if is_of_syn(flow, acknowledged) and not renew_stream(streams, flow, flow.next_first, False, rows, counts):
        return False
    answers[0] = acknowledged - flow.first <= flow.syn_size and flow.position <= flow.syn_size
    return True


cdef inline bint is_of_syn(const Flow* flow, uint32_t sequence) noexcept nogil:
    """Return True if a number is that of a byte in the SYN that was not answered yet, or of the first byte after it."""
    return flow.renewing and sequence - flow.next_first <= flow.next_size


cdef bint begins_stream(const Flow* flow, uint32_t flags, uint32_t sequence, size_t size, bint answers) noexcept nogil:
    """Return True if a segment begins a new stream between the endpoints of one that is open.

    A SYN does so after FIN or RST, or as the answer to a SYN. Any other may be forged: it is remembered with its data,
    and the stream begins when it is answered, or with bytes or a FIN that have the number of one of its bytes or the
    next, and do not continue the open stream.
    """
    if flags & SYN:
        return flow.ended or (answers and sequence != flow.first)
    if not size and flags != FIN:
        return False
    return is_of_syn(flow, sequence) and sequence - flow.first != <uint32_t>flow.position


cdef inline bint is_before(const Flow* flow, uint32_t sequence, size_t size) noexcept nogil:
    """Return True if all bytes of a segment are before the first byte of the stream; a keep-alive is not."""
    cdef int32_t ahead = <int32_t>(sequence - flow.first - <uint32_t>flow.position)
    return ahead < 0 and size and -<int64_t>ahead >= <int64_t>(flow.position + size) and not (size == 1 and ahead == -1)


cdef bint is_away(const Streams* streams, const Flow* flow, uint32_t sequence, size_t size) noexcept nogil:
    """Return True if a segment is too far from a stream to belong to it."""
    cdef int32_t ahead = <int32_t>(sequence - flow.first - <uint32_t>flow.position)
    return is_before(flow, sequence, size) or (ahead > 0 and <uint32_t>ahead > streams.most_ahead)


cdef inline bint take_of_stream(
    Streams* streams, const Frame* frame, const Packet* found, Rows* rows, Counts* counts
) noexcept nogil:
    """Add the packets that a segment completes; false if the rows have no space for them: then nothing is changed."""
    cdef uint32_t flags = found.header[13] & (FIN | SYN | RST)
    cdef size_t size = found.size + found.missing
    cdef uint32_t sequence
    cdef Endpoints endpoints
    cdef Flow* flow
    cdef uint32_t first
    cdef bint answers = False
    cdef bint begins = False
    if says_nothing(found):
        counts.sums.segments += 1
        return True
    if not keep_in_bounds(streams, rows, counts):
        return False
    read_endpoints(found, &endpoints)
    sequence = wire_bswap32(load_u32(found.header + 4))
    if wire_unlikely(flags & (SYN | RST)):
        if flags & RST:
            size = 0  # what it carries is not of the stream
            flags &= ~<uint32_t>SYN
        else:
            sequence += 1
            if found.header[13] & ACK and not renew_answered(
                streams, &endpoints, wire_bswap32(load_u32(found.header + 8)), rows, counts, &answers
            ):
                return False
    flow = find_flow(&streams.table, &endpoints)
    if flow != NULL:
        if wire_unlikely(flags & SYN or flow.renewing):
            begins = begins_stream(flow, flags, sequence, size, answers)
        if not begins and wire_unlikely(is_before(flow, sequence, size)) and not flags & SYN:
            endpoints.ports |= <uint64_t>1 << EARLIER_BIT
            flow = find_flow(&streams.table, &endpoints)
            begins = flow != NULL and is_away(streams, flow, sequence, size)
    if flow == NULL:
        if size == 0 and not flags & SYN:
            counts.sums.segments += 1
            pass_over(streams, found.size)
            return True
        if streams.table.count >= streams.most_flows and not evict(streams, rows, counts):
            return False
    elif begins:
        first = flow.next_first if flow.renewing and not flags & SYN else sequence
        if not renew_stream(streams, flow, first, not (flags & SYN or flow.renewing), rows, counts):
            return False
    if not has_room(rows, found.size):  # packets of streams that had to end took some of it
        return False
    if flow == NULL:
        flow = add_flow(&streams.table, &endpoints)
        if flow == NULL:
            streams.no_memory = True
            return True
        begin_stream(streams, flow, sequence, not flags & SYN, counts)
    counts.sums.segments += 1
    add_segment(streams, flow, frame, found, flags, sequence, rows, counts)
    return True


cdef bint take_segment(
    Streams* streams, const Frame* frame, const Packet* found, Rows* rows, Counts* counts
) noexcept nogil:
    """Add the packets that a segment completes, and the connection that it ends.

    False if the rows have no space for them: then nothing is changed.
    """
    cdef Endpoints endpoints
    if not take_of_stream(streams, frame, found, rows, counts):
        return False
    if wire_unlikely(streams.connections.most != 0):
        read_endpoints(found, &endpoints)
        take_attempt(streams, &endpoints, frame, found, rows, counts)
    return True


cdef inline void pass_over(Streams* streams, size_t size) noexcept nogil:
    """Count bytes that are not of a stream."""
    streams.counts.bytes += size
    streams.counts.skipped += size


cdef void add_segment(
    Streams* streams, Flow* flow, const Frame* frame, const Packet* found, uint32_t flags, uint32_t sequence,
    Rows* rows, Counts* counts,
) noexcept nogil:
    """Take the bytes of a segment of an open stream."""
    cdef int32_t ahead
    cdef Origin origin = origin_of(frame, counts.file)
    if wire_unlikely(flags & SYN):
        if sequence != flow.first:
            remember_syn(streams, flow, found, flags, sequence, &origin, rows, counts)
            return
        flow.joined = False  # where it was captured after data
        flow.syn_size = max(flow.syn_size, <uint32_t>(found.size + found.missing))
    move_to_front(&streams.table, flow)
    flow.path = found.path
    flow.seen = origin
    ahead = <int32_t>(sequence - flow.first - <uint32_t>flow.position)
    if wire_unlikely(flags & RST):
        pass_over(streams, found.size)
        if ahead >= 0:
            flow.ended = flow.flushing = True
            drain(streams, flow, rows, counts)
        return
    if wire_unlikely(flags & FIN or found.missing):
        note_end(streams, flow, ahead, <int64_t>(found.size + found.missing), flags)
    if wire_unlikely(found.datagram != NULL):
        take_fragments(streams, flow, found, sequence, False, &origin, rows, counts)
    else:
        take_bytes(streams, flow, found.payload, found.size, ahead, &origin, rows, counts)


cdef void note_end(Streams* streams, Flow* flow, int32_t ahead, int64_t size, uint32_t flags) noexcept nogil:
    """Note how far the stream goes, by a segment with FIN or one that was cut."""
    if ahead + size < 0:
        return
    flow.ended |= flags & FIN != 0
    if ahead <= <int64_t>streams.most_ahead:  # no other stream's
        flow.end = max(flow.end, flow.position + <uint64_t>(ahead + size))


cdef void remember_syn(
    Streams* streams, Flow* flow, const Packet* found, uint32_t flags, uint32_t sequence, Origin* origin, Rows* rows,
    Counts* counts,
) noexcept nogil:
    """Keep the number and the data of a SYN which may begin the next stream between these endpoints."""
    if not flow.renewing or flow.next_first != sequence:
        drop_unanswered(streams, flow, counts)
        flow.renewing = True
        flow.next_first = sequence
        flow.next_size = 0
        flow.next_ended = False
    flow.next_size = max(flow.next_size, <uint32_t>(found.size + found.missing))
    flow.next_ended |= flags & FIN != 0
    if found.datagram != NULL:
        take_fragments(streams, flow, found, sequence, True, origin, rows, counts)
    else:
        take_unanswered(streams, flow, found.payload, found.size, 0, origin, counts)


cdef void take_fragments(
    Streams* streams, Flow* flow, const Packet* found, uint32_t sequence, bint unanswered, Origin* origin, Rows* rows,
    Counts* counts,
) noexcept nogil:
    """Take the bytes of a segment in fragments, frame by frame."""
    cdef size_t start = <size_t>(found.payload - found.datagram.data)
    cdef size_t done = 0
    cdef size_t size
    cdef int32_t ahead
    while done < found.size:
        origin.first_frame = frame_of(found.datagram, start + done)
        size = 8 - (start + done & 7)  # fragments begin at multiples of 8 bytes
        while done + size < found.size and frame_of(found.datagram, start + done + size) == origin.first_frame:
            size += 8
        size = min(size, found.size - done)
        if unanswered:
            take_unanswered(streams, flow, found.payload + done, size, done, origin, counts)
        else:
            ahead = <int32_t>(sequence + <uint32_t>done - flow.first - <uint32_t>flow.position)
            take_bytes(streams, flow, found.payload + done, size, ahead, origin, rows, counts)
        done += size


cdef bint deliver_waiting(Streams* streams, Rows* rows, Counts* counts) noexcept nogil:
    """Deliver what the previous rows had no space for; false if these have none either."""
    if streams.waiting != NO_FLOW:
        if not drain(streams, &streams.table.flows[streams.waiting], rows, counts):
            return False
        streams.waiting = NO_FLOW
    return True


cdef bint finish_streams(Streams* streams, Rows* rows, Counts* counts) noexcept nogil:
    """The capture has ended; false if the rows have no space for the pieces."""
    cdef Flow* flow
    while streams.table.oldest != NO_FLOW:
        flow = &streams.table.flows[streams.table.oldest]
        if not close_stream(streams, flow, rows, counts):
            return False
        drop_unanswered(streams, flow, counts)
        remove_flow(&streams.table, flow)
    while streams.connections.count:
        if not has_room(rows, 0):
            return False
        end_connection(streams, &streams.connections.entries[streams.connections.oldest], rows, counts)
    return True


# --- What Python owns ---


cdef class StreamTable:
    """The streams of a capture, over all its files."""

    files: list[str]

    def __cinit__(self, kinds: int, limits: StreamLimits, uint64_t seed) -> None:
        start_table(&self.streams.table, seed)
        self.streams.kinds = kinds
        self.streams.most_ahead = limits.ahead
        self.streams.most_memory = limits.memory
        self.streams.most_flows = limits.streams
        self.streams.fragments.lifetime = <uint64_t>int(limits.fragment_seconds * 1_000_000_000)
        self.streams.waiting = NO_FLOW
        start_connections(&self.streams.connections, limits.streams if kinds & <int>CONNECTION_ROWS else 0)
        self.files = []

    def __dealloc__(self):
        free_table(&self.streams.table)
        free_fragments(&self.streams.fragments)
        free_connections(&self.streams.connections)

    def counts(self) -> dict[str, int]:
        """The counts so far, by the names of the fields of StreamStats."""
        # Less may be held than was when a part of a capture began
        return dict(self.streams.counts, held=<int64_t>self.streams.counts.held)

    def probes(self) -> tuple[int, int]:
        """The streams that are open, and the slots of the hash table that are looked at to find each of them once."""
        return self.streams.table.count, count_probes(&self.streams.table)


@boundscheck(False)
@wraparound(False)
def packet_kinds(Payloads payloads) -> NDArray[np.uint8]:
    """The bits of PACKET_KINDS for each of the packets of streams; 0 for what is shorter than a BaseHeader.

    Of a packet that lost the rest of its BaseHeader, bits that are missing count as 0. Bytes in which no packet begins
    are among the messages.
    """
    cdef size_t count = payloads.table.count
    cdef uint8_t[BASE_HEADER_SIZE] header
    cdef Span span
    cdef size_t i
    found = np.zeros(count, np.uint8)
    cdef uint8_t[::1] kinds = found
    with nogil:
        for i in range(count):
            span = payload_at(&payloads.table, i)
            if payloads.table.lost != NULL and payloads.table.lost[i] == <uint32_t>CONNECTION_RECORD:
                kinds[i] = CONNECTION_ROWS
            elif payloads.table.lost != NULL and payloads.table.lost[i] & UNFRAMED:
                kinds[i] = MESSAGE_PACKETS
            elif span.size >= BASE_HEADER_SIZE:
                kinds[i] = <uint8_t>packet_kind(span.data)
            elif payloads.table.lost != NULL and payloads.table.lost[i]:
                memset(header, 0, sizeof(header))
                memcpy(header, span.data, span.size)
                kinds[i] = <uint8_t>packet_kind(header)
    return found


cdef class PacketMemory:
    """The memory of packets of a block."""

    def __dealloc__(self):
        cdef size_t i
        for i in range(self.count):
            free(self.blocks[i])
        free(self.blocks)


cdef PacketMemory take_memory(Rows* rows):
    """Return the owner of the memory of the rows, or None."""
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
