"""From the bytes of a stream, in order, to its MSMQ packets: [MS-MQQB] 2.1.

``deliver`` divides bytes into packets by the size in each header. A packet that is complete in these bytes stays
there; a packet in parts is assembled in memory of its flow, which then belongs to the rows. Where no packet begins,
reading resumes at the next place that looks like one; the bytes up to there are a run, which becomes a row too.
"""

from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memchr, memcpy, memmove, memset

from msmqwire.capture.frames._frame cimport NO_PACKET, NO_PACKET_JOINED, Counts, Ends, Origin
from msmqwire.capture.frames._rows cimport (
    JOINED, Rows, is_wanted, keep_memory, note_lost, note_transport, put_columns, put_payload, value_of_file,
)
from msmqwire.capture.tcp._flows cimport (
    RUN_SHOWN, Flow, Run, Streams, grow_packet, later, open_head, open_run, release_packet, release_run,
)
from msmqwire.columns.payload_table cimport UNFRAMED
from msmqwire.mqqb.framing cimport BASE_HEADER_SIZE, FRAMED, NOT_A_PACKET, VERSION_NUMBER, Framing, frame_packet
from msmqwire.wire.simd cimport wire_unlikely
from msmqwire.wire._transport cimport Transport

# The kinds of rows of TCP: messages and their acknowledgments, packets of sessions, and connections
PACKET_KINDS: dict[str, int] = {
    "message": MESSAGE_PACKETS, "session": SESSION_PACKETS, "connection": CONNECTION_ROWS
}


cdef enum:
    SIGNED = 8  # bytes of a BaseHeader up to the end of its Signature
    LARGEST_RUN = 0x80000000  # a run of more bytes counts as one of so many


# --- Rows ---


cdef inline bint put_packet(
    Streams* streams, Rows* rows, const Counts* counts, const Flow* flow, const uint8_t* data, size_t size,
    uint64_t offset, uint64_t first_frame, const Origin* last, size_t lost,
) noexcept nogil:
    """Add the row of a packet or run, if it is selected; whether it is. ``lost``: as in ``Payloads``."""
    cdef Ends ends = ends_of_flow(flow)
    cdef uint8_t file = 0
    if not is_wanted(rows, &ends, last.timed, last.time):
        streams.counts.unselected += not lost
        return False
    if wire_unlikely(lost != 0):
        note_lost(rows, lost)
    note_transport(rows, Transport.TCP)
    put_payload(rows, data, size)
    rows.packets += 1
    if rows.columns:
        if rows.file != NULL and last.file != counts.file:
            file = value_of_file(rows, last.file)
        put_columns(
            rows, rows.count, &ends, last.timed, last.time, last.frame, first_frame, file, offset, flow.path
        )
        rows.count += 1
    return True


# --- Packets ---


cdef inline bint selected(const Streams* streams, const uint8_t* base_header) noexcept nogil:
    """Return True if packets of this kind give rows."""
    return streams.kinds & packet_kind(base_header)


cdef size_t find_packet_start(const uint8_t* data, size_t size) noexcept nogil:
    """Bytes before the next place where a packet may begin."""
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


cdef inline bint is_joined(const Flow* flow, uint64_t position) noexcept nogil:
    """Return True if bytes where no packet begins may be the end of one that began before the capture."""
    return flow.joined and position == 0


cdef void close_run(Streams* streams, Flow* flow, Rows* rows, const Counts* counts) noexcept nogil:
    """The run that is open, if any, becomes a row."""
    cdef Run* run = release_run(&streams.table, flow)
    cdef size_t size
    cdef size_t shown
    if run == NULL:
        return
    size = <size_t>min(run.size, <uint64_t>LARGEST_RUN)
    shown = min(size, <size_t>RUN_SHOWN)
    if put_packet(
        streams, rows, counts, flow, run.data, shown, run.position, run.first_frame, &run.last,
        size - shown | <size_t>UNFRAMED,
    ):
        keep_memory(rows, run)
        if rows.columns and is_joined(flow, run.position):
            rows.presence[rows.count - 1] |= <uint8_t>JOINED
    else:
        free(run)


cdef void extend_run(Flow* flow, const uint8_t* data, size_t size, const Origin* origin) noexcept nogil:
    """Add bytes to the run, if one is open."""
    cdef Run* run = flow.run
    if run == NULL:
        return
    if run.size < <uint64_t>RUN_SHOWN:
        memcpy(run.data + run.size, data, min(size, <size_t>RUN_SHOWN - <size_t>run.size))
    run.size += size
    if later(origin, &run.last):
        run.last = origin[0]


cdef void extend_run_by_head(Flow* flow, size_t size) noexcept nogil:
    """Add the first bytes of the BaseHeader that came in parts."""
    cdef size_t i
    if flow.run != NULL:
        for i in range(size):
            extend_run(flow, flow.head.data + i, 1, &flow.head.origins[i])


cdef void drop_unfinished_packet(Streams* streams, Flow* flow, Rows* rows, const Counts* counts) noexcept nogil:
    """Make rows of the open run and packet: the next bytes are missing. There is space for the rows."""
    if flow.run != NULL:
        if flow.filled < SIGNED:
            extend_run_by_head(flow, flow.filled)
        close_run(streams, flow, rows, counts)
    lose_packet(streams, flow, rows, counts)


cdef void lose_packet(Streams* streams, Flow* flow, Rows* rows, const Counts* counts) noexcept nogil:
    """Make a row of the open packet, which will not be complete."""
    cdef uint32_t filled = flow.filled
    cdef uint32_t total = flow.total
    cdef uint64_t first_frame = flow.first_frame
    cdef size_t capacity
    cdef uint8_t* data
    streams.counts.held -= filled
    streams.counts.skipped += filled
    if 0 < filled < BASE_HEADER_SIZE:
        total = BASE_HEADER_SIZE
        first_frame = flow.head.origins[0].first_frame
        flow.last = flow.head.origins[0]
        data = part_of_head(streams, flow)
    else:
        capacity = flow.capacity
        data = trimmed(release_packet(&streams.table, flow), capacity, filled)
    if data == NULL:
        return
    if put_packet(
        streams, rows, counts, flow, data, filled, flow.position - filled, first_frame, &flow.last, total - filled
    ):
        keep_memory(rows, data)
    else:
        free(data)


cdef uint8_t* trimmed(uint8_t* data, size_t capacity, size_t size) noexcept nogil:
    """The first bytes of some memory, which the next packet may take if they are few."""
    cdef uint8_t* copied = NULL
    if data != NULL and size < capacity // 2:
        copied = <uint8_t*>malloc(size)
    if copied == NULL:
        return data
    memcpy(copied, data, size)
    free(data)
    return copied


cdef uint8_t* part_of_head(Streams* streams, Flow* flow) noexcept nogil:
    """Return a copy of the beginning of a BaseHeader; NULL if these bytes cannot begin one, or it is not selected."""
    cdef uint32_t filled = flow.filled
    cdef uint8_t[BASE_HEADER_SIZE] header
    cdef uint8_t* data = NULL
    cdef size_t i
    memset(header, 0, sizeof(header))
    memcpy(header, flow.head.data, filled)
    if selected(streams, header) and (filled >= SIGNED or not flow.searching):
        for i in range(1, <size_t>filled):
            keep_last(flow, &flow.head.origins[i])
        data = <uint8_t*>malloc(filled)
        if data == NULL:
            streams.no_memory = True
        else:
            memcpy(data, header, filled)
    release_packet(&streams.table, flow)
    return data


cdef void start_searching(
    Streams* streams, Flow* flow, uint64_t position, const Origin* origin, Counts* counts
) noexcept nogil:
    """No packet begins at the position, where one should."""
    if not flow.searching:
        flow.searching = True
        streams.counts.no_packet += 1
        describe_at(counts, flow, origin, NO_PACKET_JOINED if is_joined(flow, position) else NO_PACKET, 0, position)
        if streams.kinds & MESSAGE_PACKETS:
            open_run_at(streams, flow, position, origin)


cdef void open_run_at(Streams* streams, Flow* flow, uint64_t position, const Origin* origin) noexcept nogil:
    if not open_run(&streams.table, flow):
        streams.no_memory = True
        return
    flow.run.position = position
    flow.run.first_frame = origin.first_frame
    flow.run.last = origin[0]


cdef void end_search(Streams* streams, Flow* flow, Rows* rows, const Counts* counts) noexcept nogil:
    """A packet begins."""
    flow.searching = False
    close_run(streams, flow, rows, counts)


cdef void keep_last(Flow* flow, const Origin* origin) noexcept nogil:
    if later(origin, &flow.last):
        flow.last = origin[0]


cdef void open_packet(
    Streams* streams, Flow* flow, const uint8_t* data, size_t size, size_t total, uint64_t first_frame,
    const Origin* last, Rows* rows, const Counts* counts,
) noexcept nogil:
    """Begin a packet that is not complete yet, and has its BaseHeader."""
    if flow.searching:
        end_search(streams, flow, rows, counts)
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


cdef void close_packet(Streams* streams, Flow* flow, Rows* rows, const Counts* counts) noexcept nogil:
    """All of the open packet is there."""
    cdef uint32_t total = flow.total
    cdef uint8_t* data = release_packet(&streams.table, flow)
    streams.counts.held -= total
    streams.counts.framed += total
    streams.counts.packets += 1
    if data == NULL:
        streams.counts.unselected += 1
    elif put_packet(
        streams, rows, counts, flow, data, total, flow.position - total, flow.first_frame, &flow.last, 0
    ):
        keep_memory(rows, data)
    else:
        free(data)


cdef size_t fill_packet(
    Streams* streams, Flow* flow, const uint8_t* data, size_t size, const Origin* origin, Rows* rows,
    const Counts* counts,
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
        close_packet(streams, flow, rows, counts)
    return count


cdef size_t fill_head(
    Streams* streams, Flow* flow, const uint8_t* data, size_t size, const Origin* origin, Rows* rows, Counts* counts
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
        start_searching(streams, flow, flow.position - flow.filled, &flow.head.origins[0], counts)
        start = 1 + find_packet_start(flow.head.data + 1, flow.filled - 1)
        extend_run_by_head(flow, start)
        flow.filled -= <uint32_t>start
        streams.counts.held -= start
        streams.counts.skipped += start
        memmove(flow.head.data, flow.head.data + start, flow.filled)
        memmove(flow.head.origins, &flow.head.origins[start], flow.filled * sizeof(Origin))
    elif flow.filled == BASE_HEADER_SIZE:
        open_packet(
            streams, flow, flow.head.data, BASE_HEADER_SIZE, total, flow.head.origins[0].first_frame,
            &flow.head.origins[0], rows, counts,
        )
        for i in range(1, <size_t>BASE_HEADER_SIZE):
            keep_last(flow, &flow.head.origins[i])
        if framing == FRAMED:
            close_packet(streams, flow, rows, counts)
    return count


cdef bint deliver(
    Streams* streams, Flow* flow, const uint8_t* data, size_t size, const Origin* origin, Rows* rows, Counts* counts
) noexcept nogil:
    """Divide bytes that are in order into packets; whether one of the rows now refers to ``data``."""
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
            count = fill_packet(streams, flow, data, size, origin, rows, counts)
        elif flow.filled:
            count = fill_head(streams, flow, data, size, origin, rows, counts)
        else:
            framing = frame_packet(data, size, &total)
            if framing == FRAMED:
                if wire_unlikely(flow.searching):
                    end_search(streams, flow, rows, counts)
                streams.counts.packets += 1
                streams.counts.framed += total
                if selected(streams, data):
                    used |= put_packet(
                        streams, rows, counts, flow, data, total, flow.position, origin.first_frame, origin, 0
                    )
                else:
                    streams.counts.unselected += 1
                count = total
                flow.position += count
            elif framing == NOT_A_PACKET:
                start_searching(streams, flow, flow.position, origin, counts)
                count = 1 + find_packet_start(data + 1, size - 1)
                extend_run(flow, data, count, origin)
                flow.position += count
                streams.counts.skipped += count
            elif size < BASE_HEADER_SIZE:
                count = fill_head(streams, flow, data, size, origin, rows, counts)
            else:
                count = size
                open_packet(streams, flow, data, size, total, origin.first_frame, origin, rows, counts)
                flow.position += count
                streams.counts.held += count
        data += count
        size -= count
    return used
