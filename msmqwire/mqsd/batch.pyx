"""MS-MQSD packets by the million: the kernel of codec.pxd in one loop, from payloads to columns and back."""

from concurrent.futures import ThreadPoolExecutor

from cpython.ref cimport PyObject
from libc.stddef cimport size_t
from libc.stdint cimport int32_t, uint8_t, uint32_t
from libc.string cimport memcpy, memmove, memset

from msmqwire.columns.batch cimport DECODED, Batch, Hold, prepare
from msmqwire.columns.buffer cimport Buffer, allocate
from msmqwire.columns.convert cimport TextSpan
from msmqwire.columns.payloads cimport Payloads, PayloadTable, Span, attach_offsets32, payload_at
from msmqwire.mqsd.codec cimport (
    COMMA, FIELD_CONNECTED_NETWORK_COUNT, FIELD_CONNECTED_NETWORK_MASK, FIELD_CORRELATION_ID, FIELD_ENTERPRISE_ID,
    FIELD_IPX_NETWORK_COUNT, FIELD_TYPE, FIELD_VERSION, IPX_NETWORKS_AT, MAX_NETWORKS, REQUEST, SERVERS_SIZE_AT,
    ServerColumns, Topology, is_plain_request, read_topology, transport_code, write_reply, write_request, write_server,
)
from msmqwire.wire.fault cimport Fault
from msmqwire.wire.simd cimport wire_popcount, wire_unlikely

from msmqwire.errors import EncodeError

from msmqwire.mqsd.codec import encode
from msmqwire.mqsd.schema import FIELDS, TOPOLOGY

__all__ = ["decode_batch", "encode_batch"]

cdef Payloads NOTHING = Payloads(b"", [0])

# The bits of a presence byte above DECODED, as schema.py has them
cdef enum:
    HAS_REQUEST = 2
    HAS_REPLY = 4
    HAS_IPX = 8
    HAS_REMOTE = 16

cdef enum:
    SMALLEST_SERVER = 8  # bytes of an entry with the code unit that closes it


# Where the columns are written; NULL for those not asked for.
cdef struct TopologyColumns:
    uint8_t* presence
    uint8_t* type
    uint8_t* version
    uint8_t* enterprise_id
    uint8_t* request_id
    uint8_t* site_id
    int32_t* ipx_offsets
    uint8_t* ipx_networks
    uint8_t* correlation_id
    uint32_t* mask
    int32_t* network_offsets
    uint8_t* networks
    uint8_t* responding_site_id
    int32_t* server_offsets
    ServerColumns servers
    uint32_t* violations
    Fault* faults


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
    if len(parts) == 1:
        (<Part>parts[0]).run()
    else:
        with ThreadPoolExecutor(len(parts)) as pool:
            for _ in pool.map(Part.run, parts):
                pass
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
    cdef Payloads source = Payloads.of(payloads, offsets)
    cdef const uint8_t[::1] given
    cdef const uint8_t* transports = NULL
    cdef uint32_t code = 0
    cdef Batch batch
    if threads < 1:
        raise ValueError(f"threads={threads} must be at least 1")
    if source.nbytes >= 0x80000000 or source.table.count >= 0x7FFFFFFF:
        raise ValueError(
            f"{source.nbytes} bytes in {len(source)} payloads: a batch holds less than 2 GiB; decode in slices"
        )
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


# --- From columns to payloads ---


REQUEST_FIELDS = ("enterprise_id", "request_id", "site_id", "ipx_networks")
REPLY_FIELDS = ("correlation_id", "connected_network_mask", "connected_networks", "responding_site_id", "servers")


cdef TopologyColumns columns_of(Batch batch):
    """The columns of a decoded batch as the encoder reads them.

    ``ipx_offsets`` is NULL unless the batch holds all that a request needs, ``network_offsets`` likewise for a reply.
    """
    cdef TopologyColumns columns
    memset(&columns, 0, sizeof(columns))
    columns.presence = batch.data("presence")
    columns.type = batch.data("type")
    columns.version = batch.data("version")
    columns.violations = <uint32_t*>batch.data("violations")
    if all([batch.wants(name) for name in REQUEST_FIELDS]):
        columns.enterprise_id = batch.data("enterprise_id")
        columns.request_id = batch.data("request_id")
        columns.site_id = batch.data("site_id")
        columns.ipx_offsets = <int32_t*>batch.data("ipx_networks")
        columns.ipx_networks = batch.data("ipx_networks[]")
    if all([batch.wants(name) for name in REPLY_FIELDS]):
        columns.correlation_id = batch.data("correlation_id")
        columns.mask = <uint32_t*>batch.data("connected_network_mask")
        columns.network_offsets = <int32_t*>batch.data("connected_networks")
        columns.networks = batch.data("connected_networks[]")
        columns.responding_site_id = batch.data("responding_site_id")
        columns.server_offsets = <int32_t*>batch.data("servers")
        columns.servers.names = <TextSpan*>batch.data("servers[].name")
        columns.servers.ip = batch.data("servers[].ip")
        columns.servers.ipx = batch.data("servers[].ipx")
    return columns


cdef enum:
    NOT_REFUSED = -1


cdef inline int refused_field(const TopologyColumns* columns, size_t row) noexcept nogil:
    """The field that forbids writing the row, FIELD_TYPE for one that is null or broke rules when it was decoded."""
    cdef uint32_t count
    if not columns.presence[row] & DECODED or columns.violations[row]:
        return FIELD_TYPE
    if columns.version[row]:
        return FIELD_VERSION
    if columns.type[row] + REQUEST == REQUEST:
        if columns.ipx_offsets == NULL:
            return FIELD_ENTERPRISE_ID
        count = <uint32_t>(columns.ipx_offsets[row + 1] - columns.ipx_offsets[row])
        return FIELD_IPX_NETWORK_COUNT if count > MAX_NETWORKS else NOT_REFUSED
    if columns.network_offsets == NULL:
        return FIELD_CORRELATION_ID
    count = <uint32_t>(columns.network_offsets[row + 1] - columns.network_offsets[row])
    if count - 1 >= <uint32_t>MAX_NETWORKS:
        return FIELD_CONNECTED_NETWORK_COUNT
    if columns.mask[row] and wire_popcount(columns.mask[row]) != count:
        return FIELD_CONNECTED_NETWORK_MASK
    return NOT_REFUSED


cdef inline size_t write_row(
    const TopologyColumns* columns, const PayloadTable* names, size_t row, uint8_t* target
) noexcept nogil:
    """Write one row and return its size."""
    cdef size_t first
    cdef size_t count
    if columns.type[row] + REQUEST == REQUEST:
        first = <size_t>columns.ipx_offsets[row]
        count = <size_t>columns.ipx_offsets[row + 1] - first
        return write_request(
            target, columns.enterprise_id + 16 * row, columns.request_id + 16 * row, columns.site_id + 16 * row,
            columns.ipx_networks + 4 * first, <uint32_t>count,
        )
    return write_reply_row(columns, payload_at(names, row).data, row, target)


cdef inline size_t write_reply_row(
    const TopologyColumns* columns, const uint8_t* payload, size_t row, uint8_t* target
) noexcept nogil:
    cdef size_t network = <size_t>columns.network_offsets[row]
    cdef uint32_t network_count = <uint32_t>(<size_t>columns.network_offsets[row + 1] - network)
    cdef size_t server = <size_t>columns.server_offsets[row]
    cdef size_t last = <size_t>columns.server_offsets[row + 1]
    cdef const TextSpan* name
    cdef uint8_t* site
    cdef uint8_t* at
    cdef uint32_t servers_size
    site = target + write_reply(
        target, columns.correlation_id + 16 * row, columns.networks + 16 * network, network_count, columns.mask[row], 0
    )
    if server == last:
        return <size_t>(site - target)
    memcpy(site, columns.responding_site_id + 16 * row, 16)
    at = site + 16
    while server < last:
        name = &columns.servers.names[server]
        at = write_server(
            at, columns.servers.ip[server], columns.servers.ipx[server], payload + name.offset, name.length, COMMA
        )
        server += 1
    at[-2] = 0  # the last entry is closed by U+0000
    servers_size = <uint32_t>(at - site - 16)
    memcpy(target + SERVERS_SIZE_AT, &servers_size, 4)
    return <size_t>(at - target)


cdef size_t encode_rows(
    TopologyColumns columns, const PayloadTable* names, size_t rows, uint8_t* data, int32_t* offsets
) noexcept nogil:
    """Write the rows behind each other; the number written, less than ``rows`` when one is refused."""
    cdef uint8_t* target = data
    cdef size_t row
    offsets[0] = 0
    for row in range(rows):
        if wire_unlikely(refused_field(&columns, row) != NOT_REFUSED):
            return row
        target += write_row(&columns, names, row, target)
        offsets[row + 1] = <int32_t>(target - data)
    return rows


cdef class Encoded(Payloads):
    """Payloads that an encoder wrote; the memory can be written again through ``out=``."""
    cdef Buffer data
    cdef Buffer offsets


cdef Encoded room_for(size_t rows, size_t size, Encoded out):
    """``out`` with at least this much room, or a new object."""
    if size >= 0x80000000:
        raise ValueError(f"up to {size} bytes: encode less than 2 GiB at once")
    if out is None:
        out = Encoded.__new__(Encoded)
    # Slices, views and batches of these payloads hold their owner, and keep what they look at
    held = out.owner is not None and (<PyObject*>out.owner).ob_refcnt > 1
    if held or out.data is None or out.data.size < size:
        out.data = allocate(size)
    if held or out.offsets is None or out.offsets.size < 4 * (rows + 1):
        out.offsets = allocate(4 * (rows + 1))
    return out


cdef size_t largest_encoding(Batch batch):
    """A bound on the bytes that a batch encodes to; its names lie in the payloads that it was decoded from."""
    cdef size_t lists = 0
    lists += 4 * <size_t>batch.counts["ipx_networks[]"]
    lists += 16 * <size_t>batch.counts["connected_networks[]"]
    lists += SMALLEST_SERVER * <size_t>batch.counts["servers[]"]
    return IPX_NETWORKS_AT * batch.length + lists + <size_t>batch.payloads.nbytes


def encode_batch(packets, *, Encoded out=None):
    cdef Batch batch
    cdef TopologyColumns columns
    cdef size_t written
    cdef Hold _hold
    if not isinstance(packets, Batch):
        return encode_packets(packets)
    batch = packets
    if batch.table is not TOPOLOGY:
        raise ValueError(f"a batch of {batch.table.name} holds no topology packets")
    if not (batch.wants("type") and batch.wants("version") and batch.wants("violations")):
        raise ValueError("a batch to be encoded needs its columns type, version and violations")
    _hold = Hold(batch)
    columns = columns_of(batch)
    out = room_for(batch.length, largest_encoding(batch), out)
    with nogil:
        written = encode_rows(
            columns, &batch.payloads.table, batch.length, out.data.data, <int32_t*>out.offsets.data
        )
    if written < batch.length:
        raise refusal(&columns, written)
    attach_offsets32(out, out.data.data, <int32_t*>out.offsets.data, written, (out.data, out.offsets))
    return out


cdef Payloads encode_packets(object packets):
    cdef list parts = []
    cdef list offsets = [0]
    cdef Py_ssize_t size = 0
    for packet in packets:
        try:
            part = encode(packet)
        except EncodeError as error:
            raise EncodeError(error.field, error.reason, len(parts)) from None
        parts.append(part)
        size += len(part)
        offsets.append(size)
    return Payloads(b"".join(parts), offsets)


cdef object refusal(const TopologyColumns* columns, size_t row):
    """The EncodeError of a row that cannot be written."""
    cdef int field = refused_field(columns, row)
    if field == FIELD_TYPE:
        reason = "the row is null, has a fault, or breaks rules that no conforming sender breaks"
    elif field == FIELD_VERSION:
        reason = f"is {columns.version[row]}, must be 0"
    elif field == FIELD_ENTERPRISE_ID or field == FIELD_CORRELATION_ID:
        needed = REQUEST_FIELDS if field == FIELD_ENTERPRISE_ID else REPLY_FIELDS
        reason = f"the batch was decoded without all of the columns {', '.join(needed)}"
    elif field == FIELD_CONNECTED_NETWORK_MASK:
        reason = f"has {wire_popcount(columns.mask[row])} bits set; must be 0 or have one for each network"
    else:
        reason = f"must be at most {MAX_NETWORKS}, and at least 1 in a reply"
    return EncodeError(FIELDS[field], reason, row)
