"""MS-MQSD packets by the million: columns to payloads."""

from libc.stddef cimport size_t
from libc.stdint cimport int32_t, uint8_t, uint32_t
from libc.string cimport memcpy

from msmqwire.columns.batch cimport DECODED, Batch
from msmqwire.columns.convert cimport TextSpan
from msmqwire.columns.encoded cimport Encoded, Encoder, encode_packets, encode_rows
from msmqwire.columns.payloads cimport payload_at
from msmqwire.mqsd.kernel cimport (
    COMMA, IPX_NETWORKS_AT, REQUEST, SERVERS_SIZE_AT, Field, ServerColumns, write_reply, write_request, write_server
)
from msmqwire.wire.simd cimport wire_unlikely

from msmqwire.errors import EncodeError

from msmqwire.mqsd.packet import encode
from msmqwire.mqsd.schema import FIELDS, TOPOLOGY

__all__ = ["encode_batch"]

REQUEST_NEEDS = ("enterprise_id", "request_id", "site_id", "ipx_networks")
REPLY_NEEDS = ("correlation_id", "connected_network_mask", "connected_networks", "responding_site_id", "servers")

cdef enum:
    SMALLEST_SERVER = 8  # bytes of an entry with the code unit that closes it


cdef class TopologyEncoder(Encoder):
    cdef const uint8_t* presence
    cdef const uint32_t* violations
    cdef const uint8_t* type
    cdef bint requests                  # whether the batch has all that a request needs, likewise for a reply
    cdef bint replies
    cdef const uint8_t* guids[4]        # of a request: three; then the CorrelationID
    cdef const int32_t* ipx_ends
    cdef const uint8_t* ipx_networks
    cdef const uint32_t* mask
    cdef const int32_t* network_ends
    cdef const uint8_t* networks
    cdef const uint8_t* site
    cdef const int32_t* server_ends
    cdef ServerColumns servers

    def __cinit__(self, Batch batch):
        self.presence = batch.data("presence")
        self.violations = <const uint32_t*>batch.data("violations")
        self.type = batch.data("type")
        self.requests = all([batch.wants(name) for name in REQUEST_NEEDS])
        self.replies = all([batch.wants(name) for name in REPLY_NEEDS])
        self.guids = [
            batch.data("enterprise_id"), batch.data("request_id"), batch.data("site_id"), batch.data("correlation_id")
        ]
        self.ipx_ends = <const int32_t*>batch.data("ipx_networks")
        self.ipx_networks = batch.data("ipx_networks[]")
        self.mask = <const uint32_t*>batch.data("connected_network_mask")
        self.network_ends = <const int32_t*>batch.data("connected_networks")
        self.networks = batch.data("connected_networks[]")
        self.site = batch.data("responding_site_id")
        self.server_ends = <const int32_t*>batch.data("servers")
        self.servers.names = <TextSpan*>batch.data("servers[].name")
        self.servers.ip = batch.data("servers[].ip")
        self.servers.ipx = batch.data("servers[].ipx")

    cdef size_t write(self, size_t row, uint8_t* target) noexcept nogil:
        cdef size_t first
        if wire_unlikely(not self.presence[row] & DECODED or self.violations[row]):
            return 0
        if self.type[row] != REQUEST - 1:
            return self.write_reply_row(row, target) if self.replies else 0
        if wire_unlikely(not self.requests):
            return 0
        first = <size_t>self.ipx_ends[row]
        return write_request(
            target, self.guids[0] + 16 * row, self.guids[1] + 16 * row, self.guids[2] + 16 * row,
            self.ipx_networks + 4 * first, <uint32_t>(<size_t>self.ipx_ends[row + 1] - first),
        )

    cdef size_t write_reply_row(self, size_t row, uint8_t* target) noexcept nogil:
        cdef const uint8_t* payload = payload_at(self.payloads, row).data
        cdef size_t network = <size_t>self.network_ends[row]
        cdef size_t server = <size_t>self.server_ends[row]
        cdef size_t last = <size_t>self.server_ends[row + 1]
        cdef const TextSpan* name
        cdef uint8_t* site
        cdef uint8_t* at
        cdef uint32_t servers_size
        site = target + write_reply(
            target, self.guids[3] + 16 * row, self.networks + 16 * network,
            <uint32_t>(<size_t>self.network_ends[row + 1] - network), self.mask[row], 0,
        )
        if server == last:
            return <size_t>(site - target)
        memcpy(site, self.site + 16 * row, 16)
        at = site + 16
        while server < last:
            name = &self.servers.names[server]
            at = write_server(
                at, self.servers.ip[server], self.servers.ipx[server], payload + name.offset, name.length, COMMA
            )
            server += 1
        at[-2] = 0  # the last entry is closed by U+0000
        servers_size = <uint32_t>(at - site - 16)
        memcpy(target + SERVERS_SIZE_AT, &servers_size, 4)
        return <size_t>(at - target)

    cdef size_t largest(self, Batch batch) except? 0:
        cdef size_t lists = 0
        lists += 4 * <size_t>batch.counts.get("ipx_networks[]", 0)
        lists += 16 * <size_t>batch.counts.get("connected_networks[]", 0)
        lists += SMALLEST_SERVER * <size_t>batch.counts.get("servers[]", 0)
        return IPX_NETWORKS_AT * batch.length + lists + <size_t>batch.payloads.nbytes

    cdef object refusal(self, size_t row):
        cdef bint request = self.type[row] == REQUEST - 1
        cdef Field field = Field.EnterpriseID if request else Field.CorrelationID
        if not self.presence[row] & DECODED or self.violations[row]:
            field = Field.Type
            reason = "the row is null, has a fault, or breaks rules that no conforming sender breaks"
        else:
            needed = REQUEST_NEEDS if request else REPLY_NEEDS
            reason = f"the batch was decoded without all of the columns {', '.join(needed)}"
        return EncodeError(FIELDS[field], reason, row)


def encode_batch(packets, *, Encoded out=None):
    """Write packets behind each other: the inverse of ``decode_batch``.

    Parameters
    ----------
    packets : Batch, or iterable of packets
        A batch needs ``type``, ``violations`` and the columns of the packets it holds, as
        ``mqsd.REQUEST_COLUMNS`` names them.
    out : Payloads, optional
        What ``encode_batch`` returned before: its memory is written again, unless a slice, a view or a batch of it
        is still held.

    Raises
    ------
    EncodeError
        With row and field: a row that is null, has a fault, or is not what a conforming sender writes.
    """
    cdef Batch batch
    if not isinstance(packets, Batch):
        return encode_packets(encode, packets)
    batch = packets
    if batch.table is not TOPOLOGY:
        raise ValueError(f"a batch of {batch.table.name} holds no topology packets")
    if not (batch.wants("type") and batch.wants("violations")):
        raise ValueError("a batch to be encoded needs its columns type and violations")
    return encode_rows(TopologyEncoder(batch), batch, out)
