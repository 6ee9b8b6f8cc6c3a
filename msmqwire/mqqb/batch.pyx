"""Message packets by the million: the readers in one loop, from payloads to columns.

A block of packets is read while its headers are in the cache, then its columns are written one after the other, each
in a loop of its own (``layout.pyx`` says from which bytes).
"""

from typing import Any, NamedTuple

from libc.stddef cimport size_t
from libc.stdint cimport int32_t, uint8_t, uint32_t
from libc.string cimport memmove, memset

from msmqwire.columns.batch cimport Batch, prepare
from msmqwire.columns.buffer cimport Buffer, allocate
from msmqwire.columns.convert cimport TextSpan
from msmqwire.columns.payloads cimport (
    Payloads, PayloadTable, Span, decodable, payload_at, payloads_of_spans
)
from msmqwire.mqqb.fields cimport HAS_MULTI_QUEUE, HAS_NOTIFICATION, PLAIN
from msmqwire.mqqb.headers cimport read_message
from msmqwire.mqqb.layout cimport (
    MESSAGE_SOURCES, QUEUE_LIST, SESSION_SOURCES, Layout, Source, put_column, source_of, width_of
)
from msmqwire.mqqb.packet cimport QUEUE_COUNT, Packet, clear_packet
from msmqwire.mqqb.sessions cimport TRANSPORT_TCP, TRANSPORT_UDP, TRANSPORT_UNKNOWN, read_session
from msmqwire.wire.fault cimport Fault
from msmqwire.wire.format_name cimport FormatName
from msmqwire.wire.simd cimport wire_prefetch, wire_unlikely

import numpy as np

from msmqwire.columns.parallel import run_parts
from msmqwire.mqqb.schema import MESSAGES, SESSIONS

__all__ = ["MessageBatch", "Notifications", "decode_batch", "decode_session_batch"]

cdef Payloads NOTHING = Payloads(b"", [0])
cdef tuple LISTS = ("destination_queues", "admin_queues", "response_queues")
cdef dict TRANSPORTS = {"unknown": TRANSPORT_UNKNOWN, "udp": TRANSPORT_UDP, "tcp": TRANSPORT_TCP}

cdef enum:
    BLOCK = 32          # packets that are read before their columns are written
    AHEAD = 12          # packets between the one that is read and the one that is fetched
    CACHE_LINE = 64
    FETCHED = 5         # lines at the start of a packet, where its headers are


class Notifications(NamedTuple):
    """The change notifications among the messages of a batch."""

    payloads: Payloads
    rows: Any
    encrypted: Any


cdef class MessageBatch(Batch):
    def notifications(self):
        cdef const uint32_t* presence = <const uint32_t*>self.data("presence")
        cdef const uint8_t* form = self.data("notification")
        cdef const TextSpan* body = <const TextSpan*>self.data("body")
        cdef Buffer spans
        cdef Span payload
        cdef Py_ssize_t nbytes = 0
        cdef size_t count = 0
        cdef size_t row
        self.readable()
        if not (self.wants("notification") and self.wants("body")):
            raise KeyError("the columns notification and body are needed, and were not asked for")
        to_notify_queue = np.flatnonzero(self.is_present("notification"))
        plain = self["notification"][to_notify_queue] == PLAIN
        rows = to_notify_queue[plain].astype(np.uint32)
        spans = allocate(<size_t>len(rows) * sizeof(Span))
        for row in range(self.length):
            if presence[row] & HAS_NOTIFICATION and form[row] == PLAIN:
                payload = payload_at(&self.payloads.table, row)
                payload.data += body[row].offset
                payload.size = body[row].length
                (<Span*>spans.data)[count] = payload
                nbytes += <Py_ssize_t>payload.size
                count += 1
        bodies = payloads_of_spans(<const Span*>spans.data, count, nbytes, (spans, self.payloads))
        return Notifications(bodies, rows, to_notify_queue[~plain].astype(np.uint32))


# --- One chunk a thread ---


# Rows [start, stop) of one thread, and how many faults and items of lists it has found.
cdef struct Chunk:
    size_t start
    size_t stop
    size_t faults
    size_t[QUEUE_COUNT] items


# Where the columns are written that no packet says alone; NULL for those not asked for.
cdef struct Targets:
    uint8_t* presence
    uint32_t* violations
    Fault* faults
    int32_t* list_offsets[QUEUE_COUNT]


cdef inline void fetch(const PayloadTable* payloads, size_t row, size_t stop) noexcept nogil:
    cdef Span span
    cdef size_t line
    if row < stop:
        span = payload_at(payloads, row)
        for line in range(<size_t>FETCHED):
            wire_prefetch(span.data + CACHE_LINE * line)


cdef class Part:
    """The work of one thread."""
    cdef Payloads payloads
    cdef Layout layout
    cdef Targets targets
    cdef bint sessions
    cdef const uint8_t* transports
    cdef uint32_t transport
    cdef bint strict
    cdef Chunk chunk

    def run(self):
        with nogil:
            if self.sessions:
                decode_rows(self, True)
            else:
                decode_rows(self, False)


cdef inline void put_block(
    const Layout* layout, const Targets* targets, const Packet* packets, size_t count, size_t row, bint sessions,
    Chunk* chunk,
) noexcept nogil:
    cdef size_t i
    cdef size_t queue
    for i in range(layout.count):
        put_column(&layout.sources[i], packets, count, row)
    for i in range(count):
        if sessions:
            targets.presence[row + i] = <uint8_t>packets[i].presence
        else:
            (<uint32_t*>targets.presence)[row + i] = packets[i].presence
    if targets.violations != NULL:
        for i in range(count):
            targets.violations[row + i] = packets[i].violations
    if not sessions:
        for queue in range(<size_t>QUEUE_COUNT):
            if targets.list_offsets[queue] != NULL:
                for i in range(count):
                    chunk.items[queue] += packets[i].list_counts[queue]
                    targets.list_offsets[queue][row + i + 1] = <int32_t>chunk.items[queue]


cdef inline void decode_rows(Part part, bint sessions) noexcept nogil:
    """Decode the rows of a part; ``sessions`` is a constant wherever this is called."""
    cdef PayloadTable source = part.payloads.table
    cdef const Layout* layout = &part.layout
    cdef Targets targets = part.targets
    cdef Chunk chunk = part.chunk
    cdef Packet[BLOCK] packets
    cdef uint32_t transport = part.transport
    cdef size_t row = chunk.start
    cdef size_t count
    cdef size_t i
    cdef Span span
    cdef Fault fault
    cdef int status
    while row < chunk.stop:
        count = min(<size_t>BLOCK, chunk.stop - row)
        for i in range(count):
            fetch(&source, row + i + AHEAD, chunk.stop)
            span = payload_at(&source, row + i)
            if wire_unlikely(span.data == NULL):
                clear_packet(&packets[i])
                continue
            if sessions:
                if part.transports != NULL:
                    transport = part.transports[row + i]
                status = read_session(span.data, span.size, transport, part.strict, &packets[i], &fault)
            else:
                status = read_message(span.data, span.size, part.strict, NULL, &packets[i], &fault)
            if wire_unlikely(status != 0):
                clear_packet(&packets[i])
                fault.row = <uint32_t>(row + i)
                targets.faults[chunk.faults] = fault
                chunk.faults += 1
        put_block(layout, &targets, packets, count, row, sessions, &chunk)
        row += count
    part.chunk = chunk


cdef int reserve_columns(Batch batch, dict sources, Layout* layout, Targets* targets) except -1:
    """Room for every column asked for, and where each is to be written from."""
    cdef Source source
    cdef size_t width
    memset(targets, 0, sizeof(targets[0]))
    layout.count = 0
    for name in batch.columns:
        if name in ("fault", "violations"):
            continue
        source = source_of(sources, name)
        width = width_of(&source)
        if source.form == QUEUE_LIST:
            targets.list_offsets[source.place] = <int32_t*>batch.reserve(name, width * (batch.length + 1))
            targets.list_offsets[source.place][0] = 0
            continue
        source.column = batch.reserve(name, width * batch.length)
        layout.sources[layout.count] = source
        layout.count += 1
    targets.presence = batch.reserve("presence", <size_t>batch.table.presence_width * batch.length)
    targets.violations = <uint32_t*>batch.reserve_column("violations", 4 * batch.length)
    targets.faults = batch.reserve_faults()
    return 0


cdef void close_up(const Targets* targets, Part part, Chunk* whole) noexcept:
    """Move the faults of a chunk down behind those of the chunks before it, and count its lists on from theirs."""
    cdef size_t queue
    cdef size_t row
    memmove(targets.faults + whole.faults, part.targets.faults, sizeof(Fault) * part.chunk.faults)
    whole.faults += part.chunk.faults
    for queue in range(<size_t>QUEUE_COUNT):
        if targets.list_offsets[queue] != NULL:
            for row in range(part.chunk.start, part.chunk.stop):
                targets.list_offsets[queue][row + 1] += <int32_t>whole.items[queue]
        whole.items[queue] += part.chunk.items[queue]


cdef int fill_lists(Batch batch, const Targets* targets, const Chunk* whole) except -1:
    """Write the items of the lists: few messages have any, and those are read a second time."""
    cdef const uint32_t* presence = <const uint32_t*>targets.presence
    cdef FormatName* columns[QUEUE_COUNT]
    cdef FormatName* lists[QUEUE_COUNT]
    cdef size_t queue
    cdef size_t row
    cdef Span span
    cdef Packet packet
    cdef Fault fault
    for queue in range(<size_t>QUEUE_COUNT):
        columns[queue] = NULL
        lists[queue] = NULL
        if targets.list_offsets[queue] != NULL:
            path = LISTS[queue] + "[]"
            columns[queue] = <FormatName*>batch.reserve(path, whole.items[queue] * sizeof(FormatName))
            batch.counts[path] = whole.items[queue]
    if not (whole.items[0] or whole.items[1] or whole.items[2]):
        return 0
    with nogil:
        for row in range(batch.length):
            if presence[row] & HAS_MULTI_QUEUE:
                for queue in range(<size_t>QUEUE_COUNT):
                    if columns[queue] != NULL:
                        lists[queue] = columns[queue] + targets.list_offsets[queue][row]
                span = payload_at(&batch.payloads.table, row)
                read_message(span.data, span.size, False, lists, &packet, &fault)
    return 0


cdef int decode_into(
    Batch batch, const uint8_t* transports, uint32_t transport, bint strict, size_t threads
) except -1:
    """Decode the payloads that the batch holds."""
    cdef bint sessions = batch.table is SESSIONS
    cdef Layout layout
    cdef Targets targets
    cdef Chunk whole
    cdef Part part
    cdef list parts = []
    cdef size_t i
    reserve_columns(batch, SESSION_SOURCES if sessions else MESSAGE_SOURCES, &layout, &targets)
    threads = max(min(threads, batch.length), <size_t>1)
    for i in range(threads):
        part = Part.__new__(Part)
        part.payloads = batch.payloads
        part.layout = layout
        part.targets = targets
        part.sessions = sessions
        part.transports = transports
        part.transport = transport
        part.strict = strict
        memset(&part.chunk, 0, sizeof(part.chunk))
        part.chunk.start = batch.length * i // threads
        part.chunk.stop = batch.length * (i + 1) // threads
        part.targets.faults += part.chunk.start
        parts.append(part)
    run_parts(parts)
    whole = (<Part>parts[0]).chunk
    for part in parts[1:]:
        close_up(&targets, part, &whole)
    batch.fault_count = whole.faults
    if not sessions:
        fill_lists(batch, &targets, &whole)
    return 0


cdef Batch decode_table(
    object table, type kind, Payloads source, object columns, Batch out, const uint8_t* transports,
    uint32_t transport, bint strict, int threads,
):
    cdef Batch batch = prepare(table, source, columns, out, kind)
    batch.writing = True
    try:
        decode_into(batch, transports, transport, strict, <size_t>threads)
    except BaseException:
        # Memory ran out: a batch never says that it has rows for which it has no columns
        batch.hold_payloads(NOTHING)
        decode_into(batch, NULL, TRANSPORT_UNKNOWN, False, 1)
        raise
    finally:
        batch.writing = False
    return batch


def decode_batch(payloads, *, offsets=None, bint strict=False, columns=None, Batch out=None, int threads=1):
    cdef Payloads source = decodable(payloads, offsets, threads)
    return decode_table(MESSAGES, MessageBatch, source, columns, out, NULL, TRANSPORT_UNKNOWN, strict, threads)


def decode_session_batch(
    payloads, *, offsets=None, bint strict=False, transport="unknown", columns=None, Batch out=None, int threads=1
):
    cdef Payloads source = decodable(payloads, offsets, threads)
    cdef const uint8_t[::1] given
    cdef const uint8_t* transports = NULL
    cdef uint32_t code = TRANSPORT_UNKNOWN
    if isinstance(transport, str):
        code = transport_code(transport)
    else:
        given = memoryview(transport)
        if <size_t>given.shape[0] != source.table.count:
            raise ValueError(f"transport has {given.shape[0]} entries for {len(source)} payloads")
        if given.shape[0]:
            transports = &given[0]
    return decode_table(SESSIONS, Batch, source, columns, out, transports, code, strict, threads)


cdef uint32_t transport_code(str transport) except? 0xFFFFFFFF:
    code = TRANSPORTS.get(transport)
    if code is None:
        raise ValueError(f"transport={transport!r} is not one of {', '.join(map(repr, TRANSPORTS))}")
    return code
