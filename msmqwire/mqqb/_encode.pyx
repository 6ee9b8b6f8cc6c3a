"""Many message packets: from columns to payloads."""

from cython cimport final
from libc.stddef cimport size_t
from libc.stdint cimport int32_t, uint8_t, uint32_t

from msmqwire.columns._batch cimport DECODED, Batch
from msmqwire.columns._encoded cimport Encoded, Encoder, encode_all, payload_bytes, unusable
from msmqwire.columns._layout cimport LIST, Layout, load_rows
from msmqwire.columns.payload_table cimport Span, payload_at, prefetch_lines
from msmqwire.mqqb._kernel cimport HAS_MULTI_QUEUE, QUEUE_COUNT, Draft, Packet, Violation, clear_draft
from msmqwire.mqqb.message._kernel cimport LARGEST_HEADERS, write_message
from msmqwire.mqqb.session._kernel cimport LARGEST_SESSION, write_session
from msmqwire.wire._format_name cimport FormatName
from msmqwire.wire.simd cimport wire_unlikely

from msmqwire.mqqb._layout import MESSAGE_LAYOUT, SESSION_LAYOUT
from msmqwire.mqqb.groups import GROUP_FIELDS, GROUPS, MESSAGE_DEFAULTS, SESSION_DEFAULTS
from msmqwire.mqqb._packet import encode
from msmqwire.mqqb.rules import refusal as broken_rule
from msmqwire.mqqb.schema import MESSAGES, SESSIONS

if False:  # for type checkers: see stubs.py
    from collections.abc import Iterable

    from msmqwire.columns._payloads import Payloads
    from msmqwire.mqqb._packet import MessagePacket

cdef set ENCODED = {
    "kind", "violations", *MESSAGE_DEFAULTS, *[name for group in GROUPS.values() for name in GROUP_FIELDS[group]],
    *[name for defaults in SESSION_DEFAULTS.values() for name in defaults],
}
# Columns that follow from others, so that a batch to be encoded need not have them
DERIVED: frozenset[str] = frozenset(
    [name for table in (MESSAGES, SESSIONS) for name in table.names if name not in ENCODED]
)
cdef dict NEEDED = {table: [name for name in table.names if name in ENCODED] for table in (MESSAGES, SESSIONS)}

cdef enum:
    LARGEST_ELEMENT = 24    # of a list of queues, without the text of a direct name
    BLOCK = 32              # rows that are loaded before their packets are written
    AHEAD = 2               # packets between the one that is written and the one whose payload is fetched
    FETCHED = 2048          # bytes at the start of a payload, out of which a packet is written
    AHEAD_BYTES = 4096      # between the end of a packet and the bytes that are fetched to be written


cdef class PacketEncoder(Encoder):
    cdef bint sessions
    cdef const int32_t* list_ends[QUEUE_COUNT]
    cdef Draft[BLOCK] drafts

    def __cinit__(self, Batch batch):
        cdef Layout layout = SESSION_LAYOUT if batch.table is SESSIONS else MESSAGE_LAYOUT
        cdef size_t i
        self.sessions = batch.table is SESSIONS
        layout.attach(
            batch,
            [
                column.name for column in batch.table.columns
                if column.name not in DERIVED and (self.sessions or column.name != "kind")
            ],
            &self.columns,
        )
        self.columns.stride = sizeof(Draft)
        for i in range(min(<size_t>BLOCK, batch.length)):
            clear_draft(&self.drafts[i])
        for i in range(self.columns.count):
            if self.columns.sources[i].form == LIST:
                self.list_ends[self.columns.sources[i].list] = <const int32_t*>self.columns.sources[i].column

    cdef size_t write(self, size_t rows, uint8_t* data, int32_t* offsets) noexcept nogil:
        cdef size_t at = 0
        cdef size_t first = 0
        cdef size_t count, size, i
        cdef Span ahead
        offsets[0] = 0
        while first < rows:
            count = min(rows - first, <size_t>BLOCK)
            load_rows(&self.columns, first, count, self.drafts)
            for i in range(count):
                if first + i + AHEAD < rows:
                    ahead = payload_at(self.payloads, first + i + AHEAD)
                    prefetch_lines(ahead.data, min(ahead.size, <size_t>FETCHED))
                size = self.write_packet(&self.drafts[i].packet, first + i, data + at)
                if wire_unlikely(size == 0):
                    return first + i
                # Memory that is written for the first time in a while is read before
                prefetch_lines(data + at + AHEAD_BYTES, size)
                at += size
                offsets[first + i + 1] = <int32_t>at
            first += count
        return rows

    @final
    cdef inline size_t write_packet(self, const Packet* packet, size_t row, uint8_t* target) noexcept nogil:
        """Write the packet of a row and return its size; 0 when it is refused."""
        cdef FormatName* lists[QUEUE_COUNT]
        cdef size_t i
        if wire_unlikely(
            not packet.presence & DECODED or packet.violations & ~<uint32_t>Violation.UNRESOLVED_QUEUE
        ):
            return 0
        if self.sessions:
            return write_session(packet, target)
        if wire_unlikely(packet.presence & HAS_MULTI_QUEUE):
            for i in range(<size_t>QUEUE_COUNT):
                lists[i] = <FormatName*>self.columns.lists[i].members[0] + self.list_ends[i][row]
        return write_message(packet, payload_at(self.payloads, row).data, lists, target)

    cdef size_t largest(self, Batch batch) except? 0:
        if self.sessions:
            return LARGEST_SESSION * batch.length
        # Queues of lists were read apart from the rest of their packets: they may be in bytes that are also in a part
        items = sum([batch.counts[name] for name in ("destination_queues[]", "admin_queues[]", "response_queues[]")])
        return (
            LARGEST_HEADERS * batch.length + LARGEST_ELEMENT * <size_t>items
            + (2 if items else 1) * payload_bytes(batch)
        )

    cdef object refusal(self, size_t row):
        for name in self.batch.violation_names(<Py_ssize_t>row):
            if name != "unresolved_queue":
                return broken_rule(name, row)
        return unusable(self.batch, "BaseHeader", row)


def encode_batch(packets: Batch | Iterable[MessagePacket], *, Encoded out: Payloads | None = None) -> Payloads:
    """Encode many packets: the inverse of ``decode_batch`` and ``decode_session_batch``.

    Parameters
    ----------
    packets : Batch, or iterable of packets
        A batch of either table needs all its columns except those that follow from others: ``fault``, ``packet_size``,
        ``sender_id_type``, ``body_encrypted``, ``message_class_name``, ``message_size``, ``notification``,
        ``compound_body``, ``trailing``, flags as received, derived columns and those of acknowledgments.
    out : Payloads, optional
        A result of ``encode_batch`` to overwrite. Its memory is reused unless a slice, a view or a batch of it is
        still held.

    Raises
    ------
    EncodeError
        With row and field: a row that is null, has a fault, or is not what a conforming sender writes.
    ValueError
        The batch lacks columns, or is of another protocol.
    """
    return encode_all(packets, encode, NEEDED, PacketEncoder, out)
