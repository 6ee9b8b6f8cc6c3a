"""MS-MQSD packets by the million, the other way: from columns to payloads."""

from libc.stddef cimport size_t
from libc.stdint cimport int32_t, uint8_t, uint32_t
from libc.string cimport memcpy, memset

from msmqwire.columns.batch cimport DECODED, Batch, Hold
from msmqwire.columns.convert cimport TextSpan
from msmqwire.columns.encoded cimport Encoded, room_for
from msmqwire.columns.payloads cimport Payloads, PayloadTable, payload_at
from msmqwire.mqsd.batch cimport SMALLEST_SERVER, TopologyColumns
from msmqwire.mqsd.codec cimport (
    COMMA, FIELD_CORRELATION_ID, FIELD_ENTERPRISE_ID, FIELD_TYPE, IPX_NETWORKS_AT, REQUEST, SERVERS_SIZE_AT,
    write_reply, write_request, write_server,
)
from msmqwire.wire.simd cimport wire_unlikely

from msmqwire.errors import EncodeError

from msmqwire.mqsd.codec import encode
from msmqwire.mqsd.schema import FIELDS, TOPOLOGY

__all__ = ["encode_batch"]

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
    """The field that forbids writing the row, FIELD_TYPE for one that is null or broke rules when it was decoded.

    What has neither a fault nor a violation has a version, counts and a mask that can be written.
    """
    if not columns.presence[row] & DECODED or columns.violations[row]:
        return FIELD_TYPE
    if columns.type[row] + REQUEST == REQUEST:
        return FIELD_ENTERPRISE_ID if columns.ipx_offsets == NULL else NOT_REFUSED
    return FIELD_CORRELATION_ID if columns.network_offsets == NULL else NOT_REFUSED


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
    if not (batch.wants("type") and batch.wants("violations")):
        raise ValueError("a batch to be encoded needs its columns type and violations")
    _hold = Hold(batch)
    columns = columns_of(batch)
    out = room_for(batch.length, largest_encoding(batch), out)
    with nogil:
        written = encode_rows(
            columns, &batch.payloads.table, batch.length, out.data.data, <int32_t*>out.offsets.data
        )
    if written < batch.length:
        raise refusal(&columns, written)
    out.finish(written)
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
    else:
        needed = REQUEST_FIELDS if field == FIELD_ENTERPRISE_ID else REPLY_FIELDS
        reason = f"the batch was decoded without all of the columns {', '.join(needed)}"
    return EncodeError(FIELDS[field], reason, row)
