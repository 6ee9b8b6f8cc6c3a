"""MS-MQSD packets by the million: the kernel of codec.pxd in one loop, from payloads to columns."""

from libc.stddef cimport size_t
from libc.stdint cimport int32_t, uint8_t, uint32_t
from libc.string cimport memcpy, memmove, memset

from msmqwire.columns.batch cimport DECODED, Batch, prepare
from msmqwire.columns.convert cimport TextSpan
from msmqwire.columns.payloads cimport Payloads, PayloadTable, Span, decodable, payload_at
from msmqwire.mqsd.codec cimport REQUEST, Topology, is_plain_request, read_topology, transport_code
from msmqwire.wire.fault cimport Fault
from msmqwire.wire.simd cimport wire_unlikely

from msmqwire.columns.parallel import run_parts
from msmqwire.mqsd.schema import TOPOLOGY

__all__ = ["decode_batch"]

cdef Payloads NOTHING = Payloads(b"", [0])

# Rows [start, stop) of one thread, and how many items it has written of each list.
cdef struct Chunk:
    size_t start
    size_t stop
    size_t ipx_networks
    size_t networks
    size_t servers
    size_t faults


cdef inline void copy_guid(uint8_t* column, size_t row, const uint8_t* source) noexcept nogil:
    memcpy(column + 16 * row, source, 16)


cdef inline void clear_guid(uint8_t* column, size_t row) noexcept nogil:
    memset(column + 16 * row, 0, 16)


cdef inline void put_request(
    const TopologyColumns* columns, size_t row, const uint8_t* data, const Topology* packet, Chunk* chunk
) noexcept nogil:
    if columns.enterprise_id != NULL:
        copy_guid(columns.enterprise_id, row, data + 4)
    if columns.request_id != NULL:
        copy_guid(columns.request_id, row, data + 20)
    if columns.site_id != NULL:
        copy_guid(columns.site_id, row, data + 36)
    if wire_unlikely(packet.network_count != 0 and columns.ipx_networks != NULL):
        memcpy(columns.ipx_networks + 4 * chunk.ipx_networks, packet.networks, 4 * packet.network_count)
        chunk.ipx_networks += packet.network_count


cdef inline void clear_request(const TopologyColumns* columns, size_t row) noexcept nogil:
    if columns.enterprise_id != NULL:
        clear_guid(columns.enterprise_id, row)
    if columns.request_id != NULL:
        clear_guid(columns.request_id, row)
    if columns.site_id != NULL:
        clear_guid(columns.site_id, row)


cdef inline void put_reply(
    const TopologyColumns* columns, size_t row, const uint8_t* data, const Topology* packet, Chunk* chunk
) noexcept nogil:
    cdef uint8_t* target
    cdef uint32_t i
    if columns.correlation_id != NULL:
        copy_guid(columns.correlation_id, row, data + 4)
    if columns.mask != NULL:
        memcpy(&columns.mask[row], data + 24, 4)
    if columns.networks != NULL:
        target = columns.networks + 16 * chunk.networks
        for i in range(packet.network_count):
            memcpy(target + 16 * i, packet.networks + 16 * i, 16)
        chunk.networks += packet.network_count
    if columns.responding_site_id != NULL:
        if packet.servers_size:
            copy_guid(columns.responding_site_id, row, packet.servers - 16)
        else:
            clear_guid(columns.responding_site_id, row)


cdef inline void clear_reply(const TopologyColumns* columns, size_t row) noexcept nogil:
    if columns.correlation_id != NULL:
        clear_guid(columns.correlation_id, row)
    if columns.mask != NULL:
        columns.mask[row] = 0
    if columns.responding_site_id != NULL:
        clear_guid(columns.responding_site_id, row)


cdef void put_null(const TopologyColumns* columns, size_t row) noexcept nogil:
    """A row for a payload that is null or at fault: zeros, so that no column shows what an earlier batch held."""
    clear_request(columns, row)
    clear_reply(columns, row)
    columns.presence[row] = 0
    if columns.type != NULL:
        columns.type[row] = 0
    if columns.version != NULL:
        columns.version[row] = 0
    if columns.violations != NULL:
        columns.violations[row] = 0


cdef inline size_t put_plain_requests(
    const PayloadTable* payloads, const TopologyColumns* columns, size_t row, size_t stop
) noexcept nogil:
    """Write the GUIDs of the plain requests from ``row`` on; the row behind the last of them.

    Requests come in long runs, and of a plain one only the GUIDs differ from row to row.
    """
    cdef Span span
    while row < stop:
        span = payload_at(payloads, row)
        if not is_plain_request(span.data, span.size):
            break
        if columns.enterprise_id != NULL:
            copy_guid(columns.enterprise_id, row, span.data + 4)
        if columns.request_id != NULL:
            copy_guid(columns.request_id, row, span.data + 20)
        if columns.site_id != NULL:
            copy_guid(columns.site_id, row, span.data + 36)
        row += 1
    return row


cdef void fill_offsets(int32_t* offsets, size_t start, size_t stop, size_t items) noexcept nogil:
    """Lists without items in rows [start, stop)."""
    cdef size_t row
    if offsets != NULL:
        for row in range(start, stop):
            offsets[row + 1] = <int32_t>items


cdef void fill_plain_requests(
    const TopologyColumns* columns, size_t start, size_t stop, const Chunk* chunk
) noexcept nogil:
    """What all plain requests have in common, in rows [start, stop)."""
    cdef size_t rows = stop - start
    memset(columns.presence + start, DECODED | HAS_REQUEST, rows)
    if columns.type != NULL:
        memset(columns.type + start, 0, rows)
    if columns.version != NULL:
        memset(columns.version + start, 0, rows)
    if columns.violations != NULL:
        memset(columns.violations + start, 0, 4 * rows)
    if columns.correlation_id != NULL:
        memset(columns.correlation_id + 16 * start, 0, 16 * rows)
    if columns.mask != NULL:
        memset(columns.mask + start, 0, 4 * rows)
    if columns.responding_site_id != NULL:
        memset(columns.responding_site_id + 16 * start, 0, 16 * rows)
    fill_offsets(columns.ipx_offsets, start, stop, chunk.ipx_networks)
    fill_offsets(columns.network_offsets, start, stop, chunk.networks)
    fill_offsets(columns.server_offsets, start, stop, chunk.servers)


cdef inline void put_row(
    const TopologyColumns* columns, size_t row, const uint8_t* data, const Topology* packet, Chunk* chunk,
    bint requests, bint replies,
) noexcept nogil:
    cdef uint32_t presence
    if packet.type == REQUEST:
        presence = DECODED | HAS_REQUEST | (HAS_IPX if packet.network_count else 0)
        if requests:
            put_request(columns, row, data, packet, chunk)
        if replies:
            clear_reply(columns, row)
    else:
        presence = DECODED | HAS_REPLY | (HAS_REMOTE if packet.servers_size else 0)
        if replies:
            put_reply(columns, row, data, packet, chunk)
        if requests:
            clear_request(columns, row)
    columns.presence[row] = <uint8_t>presence
    if columns.type != NULL:
        columns.type[row] = <uint8_t>(packet.type - REQUEST)
    if columns.version != NULL:
        columns.version[row] = data[0]
    if columns.violations != NULL:
        columns.violations[row] = packet.violations


cdef inline void decode_loop(
    const PayloadTable* payloads, TopologyColumns columns, const uint8_t* transports, uint32_t transport, bint strict,
    Chunk* rows, bint requests, bint replies,
) noexcept nogil:
    """Decode the rows of a chunk; without the columns of requests, or of replies, where the last two say so.

    The two are constants wherever this is called, so that each call is compiled to a loop of its own.
    """
    cdef PayloadTable source = payloads[0]  # local copies, so that no store to a column can be thought to change them
    cdef Chunk chunk = rows[0]
    cdef Topology packet
    cdef Fault fault
    cdef Span span
    cdef size_t row = chunk.start
    cdef size_t plain
    memset(&packet, 0, sizeof(packet))
    while row < chunk.stop:
        if requests:
            plain = put_plain_requests(&source, &columns, row, chunk.stop)
            if plain != row:
                fill_plain_requests(&columns, row, plain, &chunk)
                row = plain
                continue
        span = payload_at(&source, row)
        if transports != NULL:
            transport = transports[row]
        if wire_unlikely(span.data == NULL):
            put_null(&columns, row)
        elif wire_unlikely(read_topology(
            span.data, span.size, transport, strict, &columns.servers, &chunk.servers, &packet, &fault
        ) != 0):
            put_null(&columns, row)
            fault.row = <uint32_t>row
            columns.faults[chunk.faults] = fault
            chunk.faults += 1
        else:
            put_row(&columns, row, span.data, &packet, &chunk, requests, replies)
        if requests and columns.ipx_offsets != NULL:
            columns.ipx_offsets[row + 1] = <int32_t>chunk.ipx_networks
        if replies:
            if columns.network_offsets != NULL:
                columns.network_offsets[row + 1] = <int32_t>chunk.networks
            if columns.server_offsets != NULL:
                columns.server_offsets[row + 1] = <int32_t>chunk.servers
        row += 1
    rows[0] = chunk


cdef void decode_rows(
    const PayloadTable* payloads, const TopologyColumns* columns, const uint8_t* transports, uint32_t transport,
    bint strict, Chunk* rows,
) noexcept nogil:
    """Decode the rows of a chunk; its lists count from 0 at the addresses that ``columns`` gives."""
    cdef bint requests = (
        columns.enterprise_id != NULL or columns.request_id != NULL or columns.site_id != NULL
        or columns.ipx_offsets != NULL
    )
    cdef bint replies = (
        columns.correlation_id != NULL or columns.mask != NULL or columns.network_offsets != NULL
        or columns.responding_site_id != NULL or columns.server_offsets != NULL
    )
    if not replies:
        decode_loop(payloads, columns[0], transports, transport, strict, rows, True, False)
    elif not requests:
        decode_loop(payloads, columns[0], transports, transport, strict, rows, False, True)
    else:
        decode_loop(payloads, columns[0], transports, transport, strict, rows, True, True)


cdef TopologyColumns reserve_columns(Batch batch) except *:
    """Room for every column asked for; lists have room for as many items as the bytes of the payloads can hold."""
    cdef TopologyColumns columns
    cdef size_t rows = batch.length
    cdef size_t size = <size_t>batch.payloads.nbytes
    columns.presence = batch.reserve("presence", rows)
    columns.type = batch.reserve_column("type", rows)
    columns.version = batch.reserve_column("version", rows)
    columns.enterprise_id = batch.reserve_column("enterprise_id", 16 * rows)
    columns.request_id = batch.reserve_column("request_id", 16 * rows)
    columns.site_id = batch.reserve_column("site_id", 16 * rows)
    columns.ipx_offsets = <int32_t*>batch.reserve_column("ipx_networks", 4 * (rows + 1))
    columns.ipx_networks = batch.reserve_column("ipx_networks[]", size)
    columns.correlation_id = batch.reserve_column("correlation_id", 16 * rows)
    columns.mask = <uint32_t*>batch.reserve_column("connected_network_mask", 4 * rows)
    columns.network_offsets = <int32_t*>batch.reserve_column("connected_networks", 4 * (rows + 1))
    columns.networks = batch.reserve_column("connected_networks[]", size)
    columns.responding_site_id = batch.reserve_column("responding_site_id", 16 * rows)
    columns.server_offsets = <int32_t*>batch.reserve_column("servers", 4 * (rows + 1))
    columns.servers.names = <TextSpan*>batch.reserve_column(
        "servers[].name", size // SMALLEST_SERVER * sizeof(TextSpan)
    )
    columns.servers.ip = batch.reserve_column("servers[].ip", size // SMALLEST_SERVER)
    columns.servers.ipx = batch.reserve_column("servers[].ipx", size // SMALLEST_SERVER)
    columns.violations = <uint32_t*>batch.reserve_column("violations", 4 * rows)
    columns.faults = batch.reserve_faults()
    for offsets in ("ipx_networks", "connected_networks", "servers"):
        if batch.data(offsets) != NULL:
            (<int32_t*>batch.data(offsets))[0] = 0
    return columns


# --- One chunk a thread ---


cdef TopologyColumns shifted(TopologyColumns columns, size_t start, size_t nbytes) noexcept nogil:
    """The columns for a chunk that begins at row ``start``, behind ``nbytes`` of payload, so that no lists can meet."""
    if columns.ipx_networks != NULL:
        columns.ipx_networks += nbytes // 4 * 4
    if columns.networks != NULL:
        columns.networks += nbytes // 16 * 16
    if columns.servers.names != NULL:
        columns.servers.names += nbytes // SMALLEST_SERVER
        columns.servers.ip += nbytes // SMALLEST_SERVER
        columns.servers.ipx += nbytes // SMALLEST_SERVER
    columns.faults += start
    return columns


cdef void rebase(int32_t* offsets, const Chunk* chunk, int32_t items) noexcept nogil:
    cdef size_t row
    if offsets != NULL:
        for row in range(chunk.start, chunk.stop):
            offsets[row + 1] += items


cdef void close_up(
    const TopologyColumns* columns, const TopologyColumns* source, const Chunk* chunk, Chunk* whole
) noexcept nogil:
    """Move the lists of a chunk down behind those of the chunks before it, and count its offsets on from theirs."""
    if columns.ipx_networks != NULL:
        memmove(columns.ipx_networks + 4 * whole.ipx_networks, source.ipx_networks, 4 * chunk.ipx_networks)
    if columns.networks != NULL:
        memmove(columns.networks + 16 * whole.networks, source.networks, 16 * chunk.networks)
    if columns.servers.names != NULL:
        memmove(
            columns.servers.names + whole.servers, source.servers.names, sizeof(TextSpan) * chunk.servers
        )
        memmove(columns.servers.ip + whole.servers, source.servers.ip, chunk.servers)
        memmove(columns.servers.ipx + whole.servers, source.servers.ipx, chunk.servers)
    memmove(columns.faults + whole.faults, source.faults, sizeof(Fault) * chunk.faults)
    rebase(columns.ipx_offsets, chunk, <int32_t>whole.ipx_networks)
    rebase(columns.network_offsets, chunk, <int32_t>whole.networks)
    rebase(columns.server_offsets, chunk, <int32_t>whole.servers)
    whole.ipx_networks += chunk.ipx_networks
    whole.networks += chunk.networks
    whole.servers += chunk.servers
    whole.faults += chunk.faults


cdef class Part:
    """The work of one thread."""
    cdef Payloads payloads
    cdef TopologyColumns columns
    cdef const uint8_t* transports
    cdef uint32_t transport
    cdef bint strict
    cdef Chunk chunk

    def run(self):
        with nogil:
            decode_rows(
                &self.payloads.table, &self.columns, self.transports, self.transport, self.strict, &self.chunk
            )


cdef list parts_of(Payloads payloads, TopologyColumns columns, size_t threads):
    cdef size_t rows = payloads.table.count
    cdef Py_ssize_t nbytes = 0
    cdef list parts = []
    cdef Part part
    cdef size_t i
    for i in range(threads):
        part = Part.__new__(Part)
        part.payloads = payloads
        memset(&part.chunk, 0, sizeof(part.chunk))
        part.chunk.start = rows * i // threads
        part.chunk.stop = rows * (i + 1) // threads
        part.columns = shifted(columns, part.chunk.start, <size_t>nbytes)
        if i + 1 < threads:
            nbytes += payloads[<Py_ssize_t>part.chunk.start:<Py_ssize_t>part.chunk.stop].nbytes
        parts.append(part)
    return parts


cdef int decode_into(
    Batch batch, const uint8_t* transports, uint32_t transport, bint strict, size_t threads
) except -1:
    """Decode the payloads that the batch holds."""
    cdef TopologyColumns target = reserve_columns(batch)
    cdef list parts = parts_of(batch.payloads, target, max(min(threads, batch.length), <size_t>1))
    cdef Chunk whole
    cdef Part part
    for part in parts:
        part.transports = transports
        part.transport = transport
        part.strict = strict
    run_parts(parts)
    whole = (<Part>parts[0]).chunk
    for part in parts[1:]:
        close_up(&target, &part.columns, &part.chunk, &whole)
    batch.fault_count = whole.faults
    batch.counts = {
        "ipx_networks[]": whole.ipx_networks, "connected_networks[]": whole.networks, "servers[]": whole.servers
    }
    return 0


def decode_batch(
    payloads, *, offsets=None, bint strict=False, transport="unknown", columns=None, Batch out=None, int threads=1
):
    cdef Payloads source = decodable(payloads, offsets, threads)
    cdef const uint8_t[::1] given
    cdef const uint8_t* transports = NULL
    cdef uint32_t code = 0
    cdef Batch batch
    if isinstance(transport, str):
        code = transport_code(transport)
    else:
        given = memoryview(transport)
        if <size_t>given.shape[0] != source.table.count:
            raise ValueError(f"transport has {given.shape[0]} entries for {len(source)} payloads")
        if given.shape[0]:
            transports = &given[0]
    batch = prepare(TOPOLOGY, source, columns, out)
    batch.writing = True
    try:
        decode_into(batch, transports, code, strict, <size_t>threads)
    except BaseException:
        # Memory ran out: a batch never says that it has rows for which it has no columns
        batch.hold_payloads(NOTHING)
        decode_into(batch, NULL, 0, False, 1)
        raise
    finally:
        batch.writing = False
    return batch
