"""The connections that were tried: RFC 9293.

A connection is a pair of ends, one of which sent a SYN to the other or was sent a SYN with ACK. Each segment between
them moves its outcome; when it is over, because its ends connect again, because too many are followed or because the
capture ends, it becomes a row. The payload of the row is a ``Record``.

    silent       no answer was captured, or only such as do not acknowledge the SYN
    refused      the answer was RST
    established  a segment of either end acknowledges the SYN or follows it
    closed       then came FIN
    reset        then came RST
"""

from libc.stddef cimport size_t
from libc.stdint cimport int64_t, uint8_t, uint32_t
from libc.stdlib cimport calloc, free, realloc
from libc.string cimport memcpy, memset

from msmqwire.capture.frames._frame cimport Counts, Ends, Frame, origin_of, set_ports
from msmqwire.capture.frames.packet cimport Packet
from msmqwire.capture.frames._rows cimport (
    STREAMED, Rows, is_wanted, keep_memory, note_lost, note_transport, put_columns, put_payload, value_of_file,
)
from msmqwire.capture.tcp._flows cimport (
    CLOSED, ESTABLISHED, NO_FLOW, REFUSED, RESET, SILENT, Connection, ConnectionTable, Endpoints, Streams, family_of,
    hash_of, is_lower, same_endpoints, turned,
)
from msmqwire.columns._batch cimport DECODED, Batch, prepare
from msmqwire.columns._payloads cimport Payloads
from msmqwire.columns.payload_table cimport Span, payload_at
from msmqwire.wire._transport cimport Transport
from msmqwire.wire.cursor cimport load_u32
from msmqwire.wire.simd cimport wire_bswap32

from msmqwire.capture.schema import CONNECTIONS, FIRST_TIMED
from msmqwire.columns._payloads import Payloads as AnyPayloads

if False:  # for type checkers: see stubs.py
    from collections.abc import Iterable
    from typing import Any

cdef enum:
    FIRST_CAPACITY = 64
    NEAR = 1 << 24  # bytes after a SYN in which segments of its connection are expected

# Control bits of a segment
cdef enum:
    FIN = 1
    SYN = 2
    RST = 4
    ACK = 16


cdef struct Record:
    int64_t time
    uint32_t attempts
    uint8_t outcome
    uint8_t timed


# --- The table ---


cdef void start_connections(ConnectionTable* table, size_t most) noexcept nogil:
    """An empty table for so many connections."""
    memset(table, 0, sizeof(table[0]))
    table.most = most
    table.unused = table.newest = table.oldest = NO_FLOW


cdef void free_connections(ConnectionTable* table) noexcept nogil:
    free(table.entries)
    free(table.buckets)
    start_connections(table, table.most)


cdef inline uint32_t* bucket_of(Streams* streams, const Endpoints* ends) noexcept nogil:
    return &streams.connections.buckets[
        hash_of(streams.table.keys, ends) & <uint32_t>(streams.connections.capacity - 1)
    ]


cdef Connection* find_connection(Streams* streams, const Endpoints* ends) noexcept nogil:
    """The connection of these ends, the lower one first, or NULL."""
    cdef ConnectionTable* table = &streams.connections
    cdef uint32_t index
    if not table.count:
        return NULL
    index = bucket_of(streams, ends)[0]
    while index and not same_endpoints(&table.entries[index - 1].ends, ends):
        index = table.entries[index - 1].next
    return &table.entries[index - 1] if index else NULL


cdef bint grow(Streams* streams) noexcept nogil:
    """Make space for twice as many; false if there is no memory."""
    cdef ConnectionTable* table = &streams.connections
    cdef size_t capacity = max(2 * table.capacity, <size_t>FIRST_CAPACITY)
    cdef uint32_t* buckets = <uint32_t*>calloc(capacity, sizeof(uint32_t))
    cdef Connection* entries = <Connection*>realloc(table.entries, capacity * sizeof(Connection))
    cdef uint32_t* bucket
    cdef uint32_t i
    if entries != NULL:
        table.entries = entries
    if entries == NULL or buckets == NULL:
        free(buckets)
        return False
    free(table.buckets)
    table.buckets = buckets
    i = <uint32_t>capacity
    while i > table.capacity:
        i -= 1
        table.entries[i].next = table.unused
        table.unused = i
    table.capacity = capacity
    i = table.oldest
    while i != NO_FLOW:
        bucket = bucket_of(streams, &table.entries[i].ends)
        table.entries[i].next = bucket[0]
        bucket[0] = i + 1
        i = table.entries[i].newer
    return True


cdef Connection* add_connection(Streams* streams, const Endpoints* ends) noexcept nogil:
    """A connection of these ends, the lower one first, all else zero; NULL if there is no memory. Others may move."""
    cdef ConnectionTable* table = &streams.connections
    cdef Connection* connection
    cdef uint32_t* bucket
    cdef uint32_t index
    if table.unused == NO_FLOW and not grow(streams):
        return NULL
    index = table.unused
    connection = &table.entries[index]
    table.unused = connection.next
    memset(connection, 0, sizeof(connection[0]))
    connection.ends = ends[0]
    bucket = bucket_of(streams, ends)
    connection.next = bucket[0]
    bucket[0] = index + 1
    put_in_front(table, connection)
    table.count += 1
    return connection


cdef void put_in_front(ConnectionTable* table, Connection* connection) noexcept nogil:
    cdef uint32_t index = <uint32_t>(connection - table.entries)
    connection.older = table.newest
    connection.newer = NO_FLOW
    if table.newest != NO_FLOW:
        table.entries[table.newest].newer = index
    else:
        table.oldest = index
    table.newest = index


cdef void take_out(ConnectionTable* table, const Connection* connection) noexcept nogil:
    if connection.newer != NO_FLOW:
        table.entries[connection.newer].older = connection.older
    else:
        table.newest = connection.older
    if connection.older != NO_FLOW:
        table.entries[connection.older].newer = connection.newer
    else:
        table.oldest = connection.newer


cdef void remove_connection(Streams* streams, Connection* connection) noexcept nogil:
    cdef ConnectionTable* table = &streams.connections
    cdef uint32_t index = <uint32_t>(connection - table.entries)
    cdef uint32_t* link = bucket_of(streams, &connection.ends)
    while link[0] != index + 1:
        link = &table.entries[link[0] - 1].next
    link[0] = connection.next
    take_out(table, connection)
    connection.next = table.unused
    table.unused = index
    table.count -= 1


# --- From segments to outcomes ---


cdef void begin_attempts(
    Connection* connection, bint reversed, uint32_t first, const Frame* frame
) noexcept nogil:
    """A new connection between the ends: nothing is known but its first segment."""
    connection.reversed = reversed
    connection.outcome = SILENT
    connection.attempts = 0
    connection.first = first
    connection.timed = frame.timed
    connection.time = frame.time
    connection.frame = frame.number


cdef inline bint is_over(const Connection* connection) noexcept nogil:
    return connection.outcome == CLOSED or connection.outcome == RESET


cdef bint begins(const Connection* connection, bint forward, bint answers, uint32_t first) noexcept nogil:
    """Return True if a SYN begins a new connection; ``forward``: to the end that was tried, or in answer.

    ``first`` is the sequence number after this SYN, or after the one that it answers. Until a SYN is answered, the
    attempt may be repeated with another number.
    """
    if forward and first == connection.first:
        return False
    return is_over(connection) or (connection.outcome == ESTABLISHED and forward and not answers)


cdef void take_attempt(
    Streams* streams, const Endpoints* endpoints, const Frame* frame, const Packet* found, Rows* rows, Counts* counts
) noexcept nogil:
    """Follow the connection of a segment. The rows have space for one, which a SYN may end."""
    cdef ConnectionTable* table = &streams.connections
    cdef uint32_t flags = found.header[13] & (FIN | SYN | RST | ACK)
    cdef uint32_t sequence = wire_bswap32(load_u32(found.header + 4))
    cdef uint32_t acknowledged = wire_bswap32(load_u32(found.header + 8))
    cdef uint32_t first = sequence + 1
    cdef bint swapped = not is_lower(endpoints)
    cdef Endpoints ends = turned(endpoints) if swapped else endpoints[0]
    cdef Connection* connection = find_connection(streams, &ends)
    cdef bint is_syn = flags & (SYN | RST) == SYN
    cdef bint answers = flags & (SYN | RST | ACK) == (SYN | ACK)
    cdef bint tries  # whether the segment is of the end that tries
    if answers:
        first = acknowledged
    if connection == NULL:
        if not is_syn:
            return
        if table.count >= table.most:
            end_connection(streams, &table.entries[table.oldest], rows, counts)
        connection = add_connection(streams, &ends)
        if connection == NULL:
            streams.no_memory = True
            return
        begin_attempts(connection, swapped != answers, first, frame)
    elif is_syn and begins(connection, (swapped == connection.reversed) != answers, answers, first):
        put_connection(streams, connection, rows, counts)
        begin_attempts(connection, swapped != answers, first, frame)
    tries = swapped == connection.reversed
    if is_syn and not answers:
        if tries:
            connection.attempts += 1
            if connection.outcome != ESTABLISHED:
                connection.first = first
    elif is_over(connection):
        pass
    elif connection.outcome != ESTABLISHED:
        if flags & ACK and (sequence if tries else acknowledged) - connection.first < NEAR:
            if not flags & RST:
                connection.outcome = CLOSED if flags & FIN else ESTABLISHED
            elif not tries:
                connection.outcome = REFUSED
    elif flags & RST:
        connection.outcome = RESET
    elif flags & FIN:
        connection.outcome = CLOSED
    connection.path = found.path
    connection.last = origin_of(frame, counts.file)
    if connection.newer != NO_FLOW:
        take_out(table, connection)
        put_in_front(table, connection)


# --- From outcomes to rows ---


cdef void put_connection(
    Streams* streams, const Connection* connection, Rows* rows, const Counts* counts
) noexcept nogil:
    """Add the row of a connection, if it is selected."""
    cdef Endpoints endpoints = turned(&connection.ends) if connection.reversed else connection.ends
    cdef Ends ends
    cdef Record* record
    cdef uint8_t file = 0
    ends.family = family_of(&endpoints)
    ends.src = <const uint8_t*>endpoints.src
    ends.dst = <const uint8_t*>endpoints.dst
    set_ports(&ends, Transport.TCP, <const uint8_t*>&endpoints.ports)
    if not is_wanted(rows, &ends, connection.last.timed, connection.last.time):
        return
    record = <Record*>calloc(1, sizeof(Record))
    if record == NULL:
        streams.no_memory = True
        return
    record.time = connection.time
    record.timed = connection.timed
    record.attempts = connection.attempts
    record.outcome = <uint8_t>connection.outcome
    note_lost(rows, CONNECTION_RECORD)
    note_transport(rows, Transport.TCP)
    put_payload(rows, <const uint8_t*>record, sizeof(Record))
    rows.packets += 1
    if rows.columns:
        if rows.file != NULL and connection.last.file != counts.file:
            file = value_of_file(rows, connection.last.file)
        put_columns(
            rows, rows.count, &ends, connection.last.timed, connection.last.time, connection.last.frame,
            connection.frame, file, 0, connection.path,
        )
        rows.presence[rows.count] &= <uint8_t>~STREAMED
        rows.count += 1
    keep_memory(rows, record)


cdef void end_connection(Streams* streams, Connection* connection, Rows* rows, const Counts* counts) noexcept nogil:
    """The connection becomes a row, and is no longer followed."""
    put_connection(streams, connection, rows, counts)
    remove_connection(streams, connection)


def decode_connections(
    payloads: Any, *, bint strict=False, columns: Iterable[str] | None = None, Batch out: Batch | None = None
) -> Batch:
    """The columns of ``CONNECTIONS`` from the records of connections; ``strict`` changes nothing.

    Raises
    ------
    ValueError
        A payload is not such a record: only ``Capture`` makes them.
    """
    cdef Payloads source = AnyPayloads.of(payloads)
    cdef Batch batch = prepare(CONNECTIONS, source, columns, out)
    cdef size_t count = source.table.count
    cdef uint8_t first_timed = FIRST_TIMED
    cdef uint8_t* presence = batch.reserve("presence", count)
    cdef uint32_t* attempts = <uint32_t*>batch.reserve_column("attempts", 4 * count)
    cdef uint8_t* outcome = batch.reserve_column("outcome", count)
    cdef int64_t* time = <int64_t*>batch.reserve_column("first_time", 8 * count)
    cdef Record record
    cdef Span span
    cdef size_t i
    for i in range(count):
        span = payload_at(&source.table, i)
        if span.size != sizeof(Record):
            raise ValueError(f"payload {i} is not the record of a connection, which only a reader of captures makes")
        memcpy(&record, span.data, sizeof(Record))
        presence[i] = <uint8_t>(DECODED | (first_timed if record.timed else 0))
        if attempts != NULL:
            attempts[i] = record.attempts
        if outcome != NULL:
            outcome[i] = record.outcome
        if time != NULL:
            time[i] = record.time
    return batch
