"""Many MS-MQSD packets: from payloads to columns."""

from libc.stddef cimport size_t
from libc.stdint cimport int32_t, uint8_t, uint32_t
from libc.string cimport memcmp, memcpy, memset

from msmqwire.columns._batch cimport DECODED, Batch
from msmqwire.columns._convert cimport TextSpan
from msmqwire.columns._decoder cimport Decoder, check_run, decode_block, decode_payloads
from msmqwire.columns._layout cimport LARGEST_BLOCK, Layout, repeat_row, find_columns, place_of
from msmqwire.columns._payloads cimport Payloads
from msmqwire.columns.payload_table cimport PayloadTable, Span, payload_at
from msmqwire.mqsd._kernel cimport (
    CORRELATION_ID_AT, ENTERPRISE_ID_AT, HAS_REMOTE, HAS_REPLY, HAS_REQUEST, NETWORKS, REPLY, REPLY_FIELDS, REQUEST,
    REQUEST_FIELDS, REQUEST_ID_AT, RESPONDING_SITE, SERVERS, SITE_ID_AT, TYPE, RowColumns, ServerColumns, Topology,
    clear_topology, copy_networks, is_plain_request, keep_complete_fields, read_plain_reply, read_topology,
)
from msmqwire.wire._fault cimport Fault
from msmqwire.wire._transport cimport Transports, accepted_transports, parse_transports, transport_at

from msmqwire.mqsd.schema import OWN_OF_REPLIES, OWN_OF_REQUESTS, TOPOLOGY, TRANSPORTS

if False:  # for type checkers: see stubs.py
    from collections.abc import Sequence
    from typing import Any

    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    from msmqwire.mqsd.values import TransportName

cdef dict ACCEPTED = accepted_transports(TRANSPORTS)
# The columns of their own that runs of plain packets write; a request has no IPX networks
cdef frozenset BY_HAND_REQUESTS = frozenset(["enterprise_id", "request_id", "site_id", "ipx_networks"])
cdef frozenset BY_HAND_REPLIES = frozenset(
    ["correlation_id", "connected_network_mask", "connected_networks", "responding_site_id", "servers"]
)
cdef Topology RECORD  # only the offsets of its fields are used

LAYOUT = Layout(
    TOPOLOGY,
    sizeof(Topology),
    arrays={
        "codes": place_of(&RECORD, RECORD.codes),
        "lists": place_of(&RECORD, RECORD.counts),
        "items": place_of(&RECORD, RECORD.items),
        "parts": place_of(&RECORD, RECORD.parts),
    },
)


cdef class TopologyDecoder(Decoder):
    cdef RowColumns to
    cdef uint8_t* networks
    cdef ServerColumns servers
    cdef bint by_hand_requests  # whether plain requests are written by hand, likewise plain replies
    cdef bint by_hand_replies

    cdef int prepare(self, Batch batch) except -1:
        find_columns(batch, &self.to, sizeof(self.to))
        self.networks = self.columns.lists[NETWORKS].members[0]
        self.servers.names = <TextSpan*>self.columns.lists[SERVERS].members[0]
        self.servers.ip = self.columns.lists[SERVERS].members[1]
        self.servers.ipx = self.columns.lists[SERVERS].members[2]
        # The general reader writes columns that the runs lack
        self.by_hand_requests = not BY_HAND_REQUESTS.isdisjoint(batch.columns) and not any(
            [batch.wants(name) for name in OWN_OF_REQUESTS if name not in BY_HAND_REQUESTS]
        )
        self.by_hand_replies = {*OWN_OF_REPLIES}.intersection(batch.columns) == BY_HAND_REPLIES
        return 0

    cdef size_t put_plain_requests(self, size_t row) noexcept nogil:
        """Write the plain requests from ``row`` on; the row after the last of them.

        Requests come in long runs, and of a plain one only the GUIDs differ from row to row.
        """
        cdef PayloadTable source = self.payloads.table  # local copies, which no store to a column can change
        cdef RowColumns to = self.to
        cdef size_t start = row
        cdef size_t stop = self.count
        cdef Topology packet
        cdef Span span
        while row < stop:
            span = payload_at(&source, row)
            if not is_plain_request(span.data, span.size):
                break
            if to.enterprise_id != NULL:
                memcpy(to.enterprise_id + 16 * row, span.data + ENTERPRISE_ID_AT, 16)
            if to.request_id != NULL:
                memcpy(to.request_id + 16 * row, span.data + REQUEST_ID_AT, 16)
            if to.site_id != NULL:
                memcpy(to.site_id + 16 * row, span.data + SITE_ID_AT, 16)
            row += 1
        if row != start:
            clear_topology(&packet)
            packet.presence = DECODED | HAS_REQUEST
            packet.codes[TYPE] = REQUEST
            packet.sections[REQUEST_FIELDS] = NULL
            packet.counts[SERVERS] = 0
            repeat_row(&self.columns, &packet, row - start)
        return row

    cdef size_t put_plain_replies(self, size_t row) noexcept nogil:
        """Write the plain replies from ``row`` on; the row after the last of them.

        They come from another site and have no mask and no violation. In a long run they need no record: their columns
        are written while they are read.
        """
        cdef PayloadTable source = self.payloads.table
        cdef const uint8_t* codes = self.transports.codes
        cdef uint32_t transport = self.transports.code
        cdef RowColumns to = self.to
        cdef uint8_t* networks = self.networks
        cdef ServerColumns servers = self.servers
        cdef size_t network = self.columns.lists[NETWORKS].count
        cdef size_t entries = self.columns.lists[SERVERS].count
        cdef size_t start = row
        cdef size_t stop = self.count
        cdef Topology packet    # never in memory, as no function that is not inline is given its address
        cdef Topology alike
        cdef Fault fault
        cdef Span span
        # Compilers warn otherwise, though a reply that is read has them
        packet.items[NETWORKS] = packet.items[SERVERS] = NULL
        packet.counts[NETWORKS] = 0
        packet.sections[RESPONDING_SITE] = NULL
        while row < stop:
            span = payload_at(&source, row)
            if codes != NULL:
                transport = codes[row]
            if not read_plain_reply(span.data, span.size, transport, &servers, &entries, &packet, &fault):
                break
            memcpy(to.correlation_id + 16 * row, span.data + CORRELATION_ID_AT, 16)
            copy_networks(networks + 16 * network, &packet, span.size)
            network += packet.counts[NETWORKS]
            to.connected_networks[row + 1] = <int32_t>network
            memcpy(to.responding_site_id + 16 * row, packet.sections[RESPONDING_SITE], 16)
            to.servers[row + 1] = <int32_t>entries
            row += 1
        if row != start:
            self.columns.lists[NETWORKS].count = network
            self.columns.lists[SERVERS].count = entries
            memset(to.connected_network_mask + start, 0, 4 * (row - start))
            clear_topology(&alike)
            alike.presence = DECODED | HAS_REPLY | HAS_REMOTE
            alike.codes[TYPE] = REPLY
            alike.sections[REPLY_FIELDS] = NULL
            alike.sections[RESPONDING_SITE] = NULL
            alike.counts[NETWORKS] = 1
            alike.counts[SERVERS] = 1
            repeat_row(&self.columns, &alike, row - start)
        return row

    cdef void clear(self, void* record) noexcept nogil:
        clear_topology(<Topology*>record)
        (<Topology*>record).counts[SERVERS] = <uint32_t>self.columns.lists[SERVERS].count

    cdef int keep(
        self, size_t row, const Span* payload, int status, void* record, Fault* fault, uint8_t* header
    ) noexcept nogil:
        cdef Topology* packet = <Topology*>record
        status = keep_complete_fields(
            payload.data, payload.size, self.payloads.table.lost[row], transport_at(self.transports, row), status,
            packet, fault, header,
        )
        packet.counts[SERVERS] = <uint32_t>self.columns.lists[SERVERS].count
        return status

    cdef size_t put_block(self, size_t row) noexcept nogil:
        """Read the next packets, then write their columns; the row after them."""
        cdef Topology[LARGEST_BLOCK] packets
        return decode_block(self, row, packets, read_record, 0)

    cdef void decode(self) noexcept nogil:
        cdef size_t row = 0
        while row < self.count:
            if self.by_hand_requests and self.payloads.table.lost == NULL:
                # What is there of an IPX form can look like a plain request
                row = self.put_plain_requests(row)
            if self.by_hand_replies:
                row = self.put_plain_replies(row)
            if row < self.count:
                row = self.put_block(row)


cdef inline int read_record(
    Decoder decoder, size_t row, const Span* payload, void* record, Fault* fault
) noexcept nogil:
    cdef Topology* packet = <Topology*>record
    cdef size_t* servers = &decoder.columns.lists[SERVERS].count
    if read_topology(
        payload.data, payload.size, transport_at(decoder.transports, row), decoder.strict,
        &(<TopologyDecoder>decoder).servers, servers, packet, fault,
    ) != 0:
        return -1
    packet.counts[SERVERS] = <uint32_t>servers[0]
    return 0


cdef class AnyPackets(TopologyDecoder):
    cdef void decode(self) noexcept nogil:
        self.put_block(0)


cdef int check_record(const Topology* one, const Topology* other) except -1:
    """Check that two records of one packet, which were made in other memory, have the same values for its columns."""
    if (
        memcmp(one.sections, other.sections, sizeof(one.sections)) != 0
        or memcmp(one.codes, other.codes, sizeof(one.codes)) != 0
        or memcmp(one.counts, other.counts, sizeof(one.counts)) != 0
        or memcmp(one.parts, other.parts, sizeof(one.parts)) != 0
    ):
        raise ImportError("the reader of topology does not set all of a record")
    return 0


cdef tuple samples():
    """A plain request, a plain reply, a request in the IPX form and a reply of the local site, for checks at import.

    Their GUIDs have no two bytes alike.
    """
    guids = bytes(range(1, 49))
    request = b"\0\1\0\0" + guids
    reply = b"\0\2\0\0" + guids[:16] + b"\1" + bytes(7) + b"\x08\0\0\0" + guids[16:] + "10a\0".encode("utf-16-le")
    return request, reply, request + b"\1\0\0\0" + guids[:4], reply[:28] + bytes(4) + reply[32:48]


SAMPLES = samples()


cdef int check_runs() except -1:
    """Check the runs, and the records of packets that are in none."""
    cdef Topology[2] packets
    cdef ServerColumns unwanted
    cdef Fault fault
    cdef size_t entries = 0
    cdef size_t i
    check_run(LAYOUT, TopologyDecoder, AnyPackets, [SAMPLES[0]] * 2)
    check_run(LAYOUT, TopologyDecoder, AnyPackets, [SAMPLES[1]] * 2)
    memset(&unwanted, 0, sizeof(unwanted))
    for payload in (*SAMPLES, None):
        for i in range(2):
            memset(&packets[i], <int>(0xA5 + i), sizeof(Topology))
            if payload is None:
                clear_topology(&packets[i])
            else:
                read_topology(payload, <size_t>len(payload), 0, False, &unwanted, &entries, &packets[i], &fault)
            packets[i].counts[SERVERS] = 0  # which ``put_block`` sets
        check_record(&packets[0], &packets[1])
    return 0


check_runs()


def decode_batch(
    payloads: Any, *, offsets: ArrayLike | None = None, bint strict=False,
    transport: TransportName | NDArray[np.uint8] = "unknown", columns: Sequence[str] | None = None, Batch out=None
) -> Batch:
    """Decode MS-MQSD packets into the columns of the topology table: [MS-MQSD] 2.2.

    Every payload gives one row; one that cannot be decoded gives a row with a fault.

    Parameters
    ----------
    payloads
        As for ``Payloads.of``, less than 2 GiB. About 16,000 rows at a time into the same ``out`` is fastest.
    offsets : array of integers, optional
        The start of each payload in one bytes-like object, and the end of the last.
    strict : bool
        Fault for what a conforming receiver discards, instead of noting a violation.
    transport : {"unknown", "udp", "ipx"} or array of uint8, shape (n,)
        The transport of the packets (0 unknown, 1 UDP, 2 IPX in an array).
    columns : sequence of str, optional
        Build only these columns, e.g. ``mqsd.REQUEST_COLUMNS``.
    out : Batch, optional
        A batch to overwrite, with everything that its views show.

    Raises
    ------
    ValueError
        A column that does not exist, offsets outside the data, or an ``out`` with other columns.
    BufferError
        An Arrow consumer still holds ``out``.
    """
    cdef Payloads source = Payloads.of(payloads, offsets)
    cdef Transports transports = parse_transports(transport, ACCEPTED, source.table.count)
    return decode_payloads(LAYOUT, TopologyDecoder, source, transports, strict, columns, out)
