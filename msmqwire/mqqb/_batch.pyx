"""Many message packets: from payloads to columns.

A block of packets is read while its headers are in the cache, then its columns are written one after the other, each
in a loop of its own (``_layout.pyx`` lists from which bytes).
"""

from typing import NamedTuple

from libc.stddef cimport size_t
from libc.stdint cimport int32_t, uint8_t, uint32_t
from libc.string cimport memset

from msmqwire.columns._batch cimport Batch, Hold, Reading
from msmqwire.columns._buffer cimport Buffer, allocate
from msmqwire.columns._convert cimport TextSpan
from msmqwire.columns._decoder cimport Decoder, decode_block, decode_payloads
from msmqwire.columns._layout cimport LARGEST_BLOCK, keep_header
from msmqwire.columns._payloads cimport Payloads, payloads_of_spans
from msmqwire.columns.payload_table cimport UNFRAMED, Span, payload_at
from msmqwire.mqqb.message._derived cimport derive_column
from msmqwire.mqqb.framing cimport PACKET_SIGNATURE
from msmqwire.mqqb._kernel cimport (
    HAS_MULTI_QUEUE, HAS_WINDOW, PADDING, PLAIN, QUEUE_COUNT, SESSION, SESSION_HEADER_WINDOW_SIZE_AT,
    WINDOW, Field, Packet, clear_packet, padded,
)
from msmqwire.mqqb.message._kernel cimport note_complete_fields, read_captured_message, read_message
from msmqwire.mqqb.message._queues cimport QueueLists
from msmqwire.mqqb.session._kernel cimport read_captured_session, read_session
from msmqwire.wire._fault cimport BAD_SIGNATURE, INCOMPLETE, Fault, is_lost, no_number, set_fault_of
from msmqwire.wire._format_name cimport FormatName
from msmqwire.wire._transport cimport Transports, accepted_transports, parse_transports, transport_at

import numpy as np

from msmqwire.mqqb._layout import MESSAGE_LAYOUT, SESSION_LAYOUT
from msmqwire.mqqb.schema import MESSAGES, TRANSPORTS

if False:  # for type checkers: see stubs.py
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    from msmqwire.mqqb.groups import TransportName

cdef dict ACCEPTED = accepted_transports(TRANSPORTS)
cdef tuple LISTS = ("destination_queues", "admin_queues", "response_queues")
cdef dict DERIVED = {column.name: column for column in MESSAGES.columns if column.derived}

cdef enum:
    FETCHED = 320       # bytes at the start of a packet, where its headers are


class Notifications(NamedTuple):
    """The change notifications among the messages of a batch.

    Attributes
    ----------
    payloads : Payloads
        The bodies that can be read, not copied, for ``msmqwire.mqcn.decode_batch``.
    rows : ndarray of uint32
        The message that each body belongs to.
    encrypted : ndarray of uint32
        The messages whose bodies cannot be read because they are encrypted.
    """

    payloads: Payloads
    rows: NDArray[np.uint32]
    encrypted: NDArray[np.uint32]


cdef class MessageBatch(Batch):
    """The columns of many messages, a row for each.

    Examples
    --------
    >>> from msmqwire import mqcn, mqqb
    >>> from uuid import UUID
    >>> body = bytes.fromhex("0100")
    >>> queue = "PRIVATE=557358d1-9150-9595-4997-b6e611ea26c6\\\\3"
    >>> batch = mqqb.decode_batch([
    ...     mqqb.encode(mqqb.UserMessage(destination_queue="DIRECT=OS:server\\\\orders")),
    ...     mqqb.encode(mqqb.UserMessage(destination_queue=queue, body=body)),
    ... ])
    >>> found = batch.notifications()
    >>> mqcn.decode_batch(found.payloads).violation_names(0), found.rows.tolist()
    (('no_updates',), [1])
    """

    def notifications(self) -> Notifications:
        """The bodies of messages to the notify queue, not copied: [MS-MQCN] 1.9, 3.2.1.2.1.

        Their senders are not authenticated: a sender can forge all that a packet says of authentication.

        Raises
        ------
        KeyError
            ``notification`` and ``body`` are not among the requested columns.
        """
        cdef Hold _hold = Hold(self)
        cdef Reading _reading = Reading(self)
        cdef const TextSpan* body = <const TextSpan*>self.data("body")
        cdef Buffer spans
        cdef Span payload
        cdef Py_ssize_t nbytes = 0
        cdef size_t count = 0
        cdef uint32_t row
        cdef const uint32_t[::1] chosen
        if not (self.wants("notification") and self.wants("body")):
            raise KeyError("the columns notification and body are needed, and were not requested")
        to_notify_queue = np.flatnonzero(self.is_valid("notification"))
        plain = self["notification"][to_notify_queue] == PLAIN
        rows = chosen = to_notify_queue[plain].astype(np.uint32)
        spans = allocate(<size_t>len(rows) * sizeof(Span))
        for row in chosen:
            payload = payload_at(&self.payloads.table, row)
            payload.data += body[row].offset
            payload.size = body[row].length
            (<Span*>spans.data)[count] = payload
            nbytes += <Py_ssize_t>payload.size
            count += 1
        bodies = payloads_of_spans(<const Span*>spans.data, count, nbytes, (spans, self.payloads))
        return Notifications(bodies, rows, to_notify_queue[~plain].astype(np.uint32))

    cdef int derive(self, str column) except -1:
        if column in DERIVED and column not in self.counts:
            derive_column(self, DERIVED[column])
        return 0


cdef bint keep_complete_fields(
    Decoder decoder, bint sessions, size_t row, const Span* span, Packet* packet, Fault* fault, uint8_t* header
) noexcept nogil:
    """Return True if a payload at fault is truncated; then the packet has the complete fields, some in ``header``."""
    cdef size_t lost = decoder.payloads.table.lost[row]
    if lost & UNFRAMED:
        if fault.field != <uint32_t>Field.PacketSize:  # of a BaseHeader with its signature
            set_fault_of(fault, BAD_SIGNATURE, Field.BaseHeader, 0, PACKET_SIGNATURE, 0, no_number())
        return False
    if sessions:
        read_captured_session(
            span.data, span.size, lost, transport_at(decoder.transports, row), False, packet, fault
        )
    else:
        read_captured_message(span.data, span.size, lost, NULL, packet, fault)
        if packet.violations & PADDING and fault.offset == min(span.size, packet.size):
            fault.offset = padded(fault.offset)  # of the next header, all of which is lost
    if fault.code != <uint32_t>INCOMPLETE and not is_lost(fault, packet.size if packet.size else span.size + lost):
        return False
    keep_header(&decoder.columns, packet, fault, span.data, header)
    if not sessions:
        note_complete_fields(packet, fault)
    elif fault.field == <uint32_t>Field.SessionHeader and fault.available >= SESSION_HEADER_WINDOW_SIZE_AT + 2:
        packet.sections[WINDOW] = packet.sections[SESSION] + SESSION_HEADER_WINDOW_SIZE_AT
        packet.presence |= HAS_WINDOW
    packet.violations = 0
    return True


cdef class PacketDecoder(Decoder):
    cdef bint sessions

    cdef void clear(self, void* record) noexcept nogil:
        clear_packet(<Packet*>record)

    cdef int keep(
        self, size_t row, const Span* payload, int status, void* record, Fault* fault, uint8_t* header
    ) noexcept nogil:
        cdef Packet* packet = <Packet*>record
        if status != 0 and not keep_complete_fields(self, self.sessions, row, payload, packet, fault, header):
            clear_packet(packet)
        return status


cdef inline int read_message_record(
    Decoder decoder, size_t row, const Span* payload, void* record, Fault* fault
) noexcept nogil:
    return read_message(payload.data, payload.size, decoder.strict, NULL, <Packet*>record, fault)


cdef inline int read_session_record(
    Decoder decoder, size_t row, const Span* payload, void* record, Fault* fault
) noexcept nogil:
    cdef uint32_t transport = transport_at(decoder.transports, row)
    return read_session(payload.data, payload.size, transport, decoder.strict, <Packet*>record, fault)


cdef class MessageDecoder(PacketDecoder):
    cdef void decode(self) noexcept nogil:
        cdef Packet[LARGEST_BLOCK] packets
        cdef size_t row = 0
        while row < self.count:
            row = decode_block(self, row, packets, read_message_record, FETCHED)

    cdef int finish(self, Batch batch) except -1:
        """Write the items of the lists: few messages have any, and those are read a second time.

        As many items are written as were counted, wherever the bytes may have changed in between: items that are not
        found are zeros, which stand for no queue.
        """
        cdef const uint32_t* presence = <const uint32_t*>batch.data("presence")
        cdef FormatName* columns[QUEUE_COUNT]
        cdef const int32_t* ends[QUEUE_COUNT]
        cdef QueueLists lists
        cdef bint any_items = False
        cdef size_t queue
        cdef size_t row
        cdef size_t size
        cdef size_t lost = 0
        cdef Span span
        cdef Packet packet
        cdef Fault fault
        memset(&lists, 0, sizeof(lists))
        for queue in range(<size_t>QUEUE_COUNT):
            columns[queue] = NULL
            ends[queue] = <const int32_t*>batch.data(LISTS[queue])
            if batch.wants(LISTS[queue]):
                size = self.columns.lists[queue].count * sizeof(FormatName)
                columns[queue] = <FormatName*>batch.reserve(LISTS[queue] + "[]", size)
                memset(columns[queue], 0, size)
                any_items = any_items or size > 0
        if not any_items:
            return 0
        with nogil:
            for row in range(batch.length):
                if presence[row] & HAS_MULTI_QUEUE:
                    for queue in range(<size_t>QUEUE_COUNT):
                        if columns[queue] != NULL:
                            lists.names[queue] = columns[queue] + ends[queue][row]
                            lists.most[queue] = <size_t>(ends[queue][row + 1] - ends[queue][row])
                    span = payload_at(&batch.payloads.table, row)
                    if batch.payloads.table.lost != NULL:
                        lost = batch.payloads.table.lost[row]
                    read_captured_message(span.data, span.size, lost, &lists, &packet, &fault)
        return 0


cdef class SessionDecoder(PacketDecoder):
    def __cinit__(self):
        self.sessions = True

    cdef void decode(self) noexcept nogil:
        cdef Packet[LARGEST_BLOCK] packets
        cdef size_t row = 0
        while row < self.count:
            row = decode_block(self, row, packets, read_session_record, FETCHED)


def decode_batch(
    payloads: object, *, offsets: ArrayLike | None = None, bint strict=False, columns: Sequence[str] | None = None,
    Batch out=None
) -> MessageBatch:
    """Decode UserMessage packets into the columns of the messages table: [MS-MQMQ] 2.2.20.

    Every payload gives one row; one that cannot be decoded gives a row with a fault.

    Parameters
    ----------
    payloads
        As for ``Payloads.of``, less than 2 GiB: packets, each with the SessionHeader that follows it.
    offsets : array of integers, optional
        The start of each payload in one bytes-like object, and the end of the last.
    strict : bool
        Fault for what a conforming receiver refuses, instead of noting a violation.
    columns : sequence of str, optional
        Build only these columns.
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
    return decode_payloads(
        MESSAGE_LAYOUT, MessageDecoder, source, Transports.__new__(Transports), strict, columns, out, MessageBatch
    )


def decode_session_batch(
    payloads: object, *, offsets: ArrayLike | None = None, bint strict=False,
    transport: TransportName | NDArray[np.uint8] = "unknown", columns: Sequence[str] | None = None, Batch out=None
) -> Batch:
    """Decode pings and the packets of sessions into the columns of the sessions table: [MS-MQQB] 2.2.

    Parameters
    ----------
    payloads, offsets, strict, columns, out
        As for ``decode_batch``.
    transport : {"unknown", "udp", "tcp"} or array of uint8, shape (n,)
        The transport of the packets (0 unknown, 1 UDP, 2 TCP in an array): pings come over UDP, all others over TCP.

    Raises
    ------
    ValueError, BufferError
        As for ``decode_batch``.
    """
    cdef Payloads source = Payloads.of(payloads, offsets)
    cdef Transports transports = parse_transports(transport, ACCEPTED, source.table.count)
    return decode_payloads(SESSION_LAYOUT, SessionDecoder, source, transports, strict, columns, out)
