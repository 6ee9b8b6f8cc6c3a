"""Many MS-MQSD packets: from columns to payloads."""

from libc.stddef cimport size_t
from libc.stdint cimport int32_t, uint8_t, uint32_t
from libc.string cimport memcpy

from msmqwire.columns._batch cimport DECODED, Batch
from msmqwire.columns._convert cimport TextSpan
from msmqwire.columns._encoded cimport (
    Encoded, Encoder, check_writer, encode_all, payload_bytes, unusable,
)
from msmqwire.columns._layout cimport find_columns
from msmqwire.columns.payload_table cimport PayloadTable, payload_at
from msmqwire.mqsd._kernel cimport (
    CLOSING_SIZE, DIRECTORY_SERVICE_SERVER_SIZE_AT, FLAGS_SIZE, HAS_REQUEST, IPX_NETWORKS_AT, REPLY_FIXED_SIZE,
    SMALLEST_SERVER_ARRAY,
    Field, RowColumns, ServerColumns, write_flags, write_reply, write_request,
)
from msmqwire.wire.cursor cimport store_u32
from msmqwire.wire.simd cimport wire_unlikely

from msmqwire.errors import EncodeError

from msmqwire.mqsd._batch import SAMPLES, decode_batch
from msmqwire.mqsd._packet import encode
from msmqwire.mqsd.schema import FIELDS, OWN_OF_REPLIES, OWN_OF_REQUESTS, TOPOLOGY

if False:  # for type checkers: see stubs.py
    from collections.abc import Iterable

    from msmqwire.columns._payloads import Payloads
    from msmqwire.mqsd._packet import TopologyPacket


# A batch that is encoded
cdef struct PacketRows:
    RowColumns columns
    bint requests                  # whether the batch has all that a request needs, likewise for a reply
    bint replies
    const uint8_t* ipx_networks
    const uint8_t* networks
    size_t network_count           # of all rows
    ServerColumns servers


cdef inline size_t write_reply_row(
    const PacketRows* rows, size_t row, const uint8_t* payload, uint8_t* target
) noexcept nogil:
    cdef size_t network = <size_t>rows.columns.connected_networks[row]
    cdef size_t count = <size_t>rows.columns.connected_networks[row + 1] - network
    cdef size_t server = <size_t>rows.columns.servers[row]
    cdef size_t last = <size_t>rows.columns.servers[row + 1]
    cdef uint32_t mask = rows.columns.connected_network_mask[row]
    cdef const TextSpan* names = rows.servers.names
    cdef uint8_t* array
    cdef size_t first
    cdef size_t size
    write_reply(target, rows.columns.correlation_id + 16 * row, <uint32_t>count, mask, 0)
    # Four at once; the next value overwrites the excess, and ``largest`` has space for the last
    if count <= 4 and network + 4 <= rows.network_count:
        memcpy(target + REPLY_FIXED_SIZE, rows.networks + 16 * network, 64)
    else:
        memcpy(target + REPLY_FIXED_SIZE, rows.networks + 16 * network, 16 * count)
    array = target + REPLY_FIXED_SIZE + 16 * count
    if server == last:
        return <size_t>(array - target)
    memcpy(array, rows.columns.responding_site_id + 16 * row, 16)
    array += 16
    # The entries of a row are neighbours in its payload, so that their names and what closes them are copied together
    first = names[server].offset - FLAGS_SIZE
    size = names[last - 1].offset + names[last - 1].length + CLOSING_SIZE - first
    memcpy(array, payload + first, size)
    while server < last:
        write_flags(
            array + (names[server].offset - FLAGS_SIZE - first), rows.servers.ip[server], rows.servers.ipx[server]
        )
        server += 1
    store_u32(target + DIRECTORY_SERVICE_SERVER_SIZE_AT, size)
    return <size_t>(array + size - target)


cdef inline size_t write_row(
    const PacketRows* rows, const PayloadTable* payloads, size_t row, uint8_t* target
) noexcept nogil:
    """Write a row and return its size; 0 when it is refused."""
    cdef size_t first
    if wire_unlikely(not rows.columns.presence[row] & DECODED or rows.columns.violations[row]):
        return 0
    if not rows.columns.presence[row] & HAS_REQUEST:
        return write_reply_row(rows, row, payload_at(payloads, row).data, target) if rows.replies else 0
    if wire_unlikely(not rows.requests):
        return 0
    first = <size_t>rows.columns.ipx_networks[row]
    return write_request(
        target, rows.columns.enterprise_id + 16 * row, rows.columns.request_id + 16 * row,
        rows.columns.site_id + 16 * row,
        rows.ipx_networks + 4 * first, <uint32_t>(<size_t>rows.columns.ipx_networks[row + 1] - first),
    )


cdef class TopologyEncoder(Encoder):
    cdef PacketRows rows

    def __cinit__(self, Batch batch):
        cdef PacketRows* rows = &self.rows
        find_columns(batch, &rows.columns, sizeof(rows.columns))
        rows.requests = all([batch.wants(name) for name in OWN_OF_REQUESTS])
        rows.replies = all([batch.wants(name) for name in OWN_OF_REPLIES])
        rows.ipx_networks = batch.data("ipx_networks[]")
        rows.networks = batch.data("connected_networks[]")
        rows.network_count = batch.counts.get("connected_networks[]", 0)
        rows.servers.names = <TextSpan*>batch.data("servers[].name")
        rows.servers.ip = batch.data("servers[].ip")
        rows.servers.ipx = batch.data("servers[].ipx")

    cdef size_t write(self, size_t rows, uint8_t* data, int32_t* offsets) noexcept nogil:
        cdef PacketRows columns = self.rows  # local copies, which no store to a payload can change
        cdef PayloadTable payloads = self.payloads[0]
        cdef size_t at = 0
        cdef size_t size
        cdef size_t row
        offsets[0] = 0
        for row in range(rows):
            size = write_row(&columns, &payloads, row, data + at)
            if wire_unlikely(size == 0):
                return row
            at += size
            offsets[row + 1] = <int32_t>at
        return rows

    cdef size_t largest(self, Batch batch) except? 0:
        cdef size_t lists = 0
        lists += 4 * <size_t>batch.counts.get("ipx_networks[]", 0)
        lists += 16 * <size_t>batch.counts.get("connected_networks[]", 0)
        lists += SMALLEST_SERVER_ARRAY * <size_t>batch.counts.get("servers[]", 0)
        return IPX_NETWORKS_AT * batch.length + lists + payload_bytes(batch)

    cdef object refusal(self, size_t row):
        cdef bint request = self.rows.columns.presence[row] & HAS_REQUEST
        cdef Field field = Field.EnterpriseID if request else Field.CorrelationID
        error = unusable(self.batch, FIELDS[Field.Type], row)
        if error is not None:
            return error
        needed = OWN_OF_REQUESTS if request else OWN_OF_REPLIES
        return EncodeError(
            FIELDS[field], f"the batch was decoded without all of the columns {', '.join(needed)}", row
        )


def encode_batch(packets: Batch | Iterable[TopologyPacket], *, Encoded out: Payloads | None = None) -> Payloads:
    """Encode many packets: the inverse of ``decode_batch``.

    Parameters
    ----------
    packets : Batch, or iterable of packets
        A batch needs ``violations`` and the columns of its packets, such as ``mqsd.REQUEST_COLUMNS``.
    out : Payloads, optional
        A result of ``encode_batch`` to overwrite. Its memory is reused unless a slice, a view or a batch of it is
        still held.

    Raises
    ------
    EncodeError
        With row and field: a row that is null, has a fault, or is not what a conforming sender writes.
    """
    return encode_all(packets, encode, {TOPOLOGY: ("violations",)}, TopologyEncoder, out)


check_writer(encode_batch, decode_batch(SAMPLES))
