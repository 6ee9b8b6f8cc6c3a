"""Message packets by the million, the other way: from columns to payloads."""

from libc.stddef cimport size_t
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

from msmqwire.columns.batch cimport DECODED, Batch, Hold
from msmqwire.columns.convert cimport TextSpan
from msmqwire.columns.encoded cimport Encoded, room_for
from msmqwire.columns.payloads cimport Payloads, PayloadTable, payload_at
from msmqwire.mqqb.assemble cimport LARGEST_HEADERS, LARGEST_SESSION, write_message, write_session
from msmqwire.mqqb.draft cimport Draft, clear_draft, largest_number, store_number
from msmqwire.mqqb.fields cimport PING, UNRESOLVED_NAME
from msmqwire.mqqb.headers cimport read_message
from msmqwire.mqqb.layout cimport (
    COPY_16, COPY_2, COPY_4, COPY_8, MESSAGE_SOURCES, NANOSECONDS, QUEUE_LIST, QUEUE_NAME, SECONDS, SESSION_SOURCES,
    SPAN, Layout, Source, source_of,
)
from msmqwire.mqqb.packet cimport KIND, QUEUE_COUNT, Packet
from msmqwire.mqqb.sessions cimport TRANSPORT_TCP, TRANSPORT_UDP, read_session
from msmqwire.wire.fault cimport Fault
from msmqwire.wire.format_name cimport FormatName
from msmqwire.wire.simd cimport wire_unlikely

from msmqwire.errors import EncodeError

from msmqwire.mqqb.codec import encode
from msmqwire.mqqb.schema import FIELDS, MESSAGES, SESSIONS

__all__ = ["encode_batch"]

# What follows from other columns, so that it need not be there
FOLLOWING = frozenset((
    "fault", "packet_size", "sender_id_type", "body_encrypted", "message_class_name", "message_size", "notification",
    "acknowledged_tx_sequence_id", "acknowledged_tx_sequence_number", "acknowledged_previous_tx_sequence_number",
    "acknowledged_source_queue_manager", "acknowledged_message_id",
))

cdef enum Refusal:
    NOT_REFUSED
    ROW_REFUSED        # null, at fault, or breaking a rule
    NUMBER_REFUSED     # of the column that the place says
    PACKET_REFUSED     # what was written is none that a conforming sender writes


# The columns of a batch as the encoder reads them.
cdef struct Columns:
    Layout layout
    const uint8_t* presence
    const uint32_t* violations
    const int32_t* list_offsets[QUEUE_COUNT]
    FormatName* lists[QUEUE_COUNT]
    bint sessions


# Why a row cannot be written, and the place of the column or the fault that says so.
cdef struct Obstacle:
    Refusal refusal
    size_t source
    Fault fault


cdef inline uint64_t number_in(const Source* source, size_t row) noexcept nogil:
    """The number that stands in a row of a column; one that fits nowhere for a time before 1970."""
    cdef uint32_t narrow
    cdef uint64_t wide
    if source.form == COPY_8:
        memcpy(&wide, source.column + 8 * row, 8)
        return wide
    if source.form == SECONDS:
        return <uint64_t>((<const int64_t*>source.column)[row]) // NANOSECONDS
    if source.form == COPY_2:
        return source.column[2 * row] | <uint64_t>source.column[2 * row + 1] << 8
    if source.form == COPY_4:
        memcpy(&narrow, source.column + 4 * row, 4)
        return narrow
    if source.mask > 0xFF:
        memcpy(&narrow, source.column + 4 * row, 4)
        return narrow
    return source.column[row]


cdef inline int fill_draft(const Columns* columns, size_t row, Draft* draft, Obstacle* obstacle) noexcept nogil:
    """Put the values of a row where they come from. 0, or -1 when one does not fit."""
    cdef const Source* source
    cdef uint64_t number
    cdef size_t i
    for i in range(columns.layout.count):
        source = &columns.layout.sources[i]
        if source.form == SPAN:
            draft.packet.parts[source.place] = (<const TextSpan*>source.column)[row]
        elif source.form == QUEUE_NAME:
            draft.packet.queues[source.place] = (<const FormatName*>source.column)[row]
        elif source.form == COPY_16:
            memcpy(draft.sections[source.place] + source.offset, source.column + 16 * row, 16)
        else:
            number = number_in(source, row)
            if wire_unlikely(number > largest_number(source)):
                obstacle.refusal = NUMBER_REFUSED
                obstacle.source = i
                return -1
            store_number(draft, source, number)
    return 0


cdef inline size_t write_row(
    const Columns* columns, const PayloadTable* payloads, size_t row, Draft* draft, uint8_t* target,
    Obstacle* obstacle,
) noexcept nogil:
    """Write one row and return its size, 0 when it is refused."""
    cdef FormatName* lists[QUEUE_COUNT]
    cdef Packet packet
    cdef size_t queue
    cdef size_t size
    cdef int status
    clear_draft(draft)
    if columns.sessions:
        draft.packet.presence = columns.presence[row]
    else:
        draft.packet.presence = (<const uint32_t*>columns.presence)[row]
    if not draft.packet.presence & DECODED or columns.violations[row] & ~<uint32_t>UNRESOLVED_NAME:
        obstacle.refusal = ROW_REFUSED
        return 0
    if fill_draft(columns, row, draft, obstacle) != 0:
        return 0
    if columns.sessions:
        size = write_session(&draft.packet, target)
        status = read_session(
            target, size, TRANSPORT_UDP if draft.packet.concluded[KIND] == PING else TRANSPORT_TCP, True, &packet,
            &obstacle.fault,
        )
    else:
        for queue in range(<size_t>QUEUE_COUNT):
            lists[queue] = columns.lists[queue] + columns.list_offsets[queue][row]
            draft.packet.list_counts[queue] = <uint32_t>(
                columns.list_offsets[queue][row + 1] - columns.list_offsets[queue][row]
            )
        size = write_message(&draft.packet, payload_at(payloads, row).data, lists, target)
        status = read_message(target, size, True, NULL, &packet, &obstacle.fault)
    # Numbers of a batch can be changed: what was written is read, so that it says the same and breaks no rule
    if wire_unlikely(status != 0 or packet.violations & ~<uint32_t>UNRESOLVED_NAME):
        obstacle.refusal = PACKET_REFUSED if status != 0 else ROW_REFUSED
        return 0
    return size


cdef size_t encode_rows(
    const Columns* columns, const PayloadTable* payloads, size_t rows, uint8_t* data, int32_t* offsets,
    Obstacle* obstacle,
) noexcept nogil:
    """Write the rows behind each other; the number written, less than ``rows`` when one is refused."""
    cdef Draft draft
    cdef size_t at = 0
    cdef size_t size
    cdef size_t row
    offsets[0] = 0
    for row in range(rows):
        size = write_row(columns, payloads, row, &draft, data + at, obstacle)
        if wire_unlikely(size == 0):
            return row
        at += size
        offsets[row + 1] = <int32_t>at
    return rows


cdef list columns_of(Batch batch, Columns* columns):
    """Where the columns of a decoded batch are; the names of those in the layout."""
    cdef dict sources = SESSION_SOURCES if columns.sessions else MESSAGE_SOURCES
    cdef list names = []
    cdef Source source
    missing = [name for name in batch.table.names if name not in FOLLOWING and not batch.wants(name)]
    if missing:
        raise ValueError(f"a batch to be encoded needs its columns {', '.join(missing)}")
    columns.presence = batch.data("presence")
    columns.violations = <const uint32_t*>batch.data("violations")
    columns.layout.count = 0
    for name in sources:
        source = source_of(sources, name)
        if source.form == QUEUE_LIST:
            columns.list_offsets[source.place] = <const int32_t*>batch.data(name)
            columns.lists[source.place] = <FormatName*>batch.data(name + "[]")
        elif name not in FOLLOWING and not (name == "kind" and not columns.sessions):
            source.column = batch.data(name)
            columns.layout.sources[columns.layout.count] = source
            columns.layout.count += 1
            names.append(name)
    return names


def encode_batch(packets, *, Encoded out=None):
    cdef Batch batch
    cdef Columns columns
    cdef Obstacle obstacle
    cdef list names
    cdef size_t largest
    cdef size_t written
    cdef Hold _hold
    if not isinstance(packets, Batch):
        return encode_packets(packets)
    batch = packets
    if batch.table is not MESSAGES and batch.table is not SESSIONS:
        raise ValueError(f"a batch of {batch.table.name} holds no message packets")
    columns.sessions = batch.table is SESSIONS
    _hold = Hold(batch)
    names = columns_of(batch, &columns)
    if columns.sessions:
        largest = LARGEST_SESSION * batch.length
    else:
        largest = LARGEST_HEADERS * batch.length + <size_t>batch.payloads.nbytes
    out = room_for(batch.length, largest, out)
    with nogil:
        written = encode_rows(
            &columns, &batch.payloads.table, batch.length, out.data.data, <int32_t*>out.offsets.data, &obstacle
        )
    if written < batch.length:
        raise refusal(&obstacle, names, written)
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


cdef object refusal(const Obstacle* obstacle, list names, size_t row):
    """The EncodeError of a row that cannot be written."""
    if obstacle.refusal == NUMBER_REFUSED:
        return EncodeError(names[obstacle.source], "is larger than its field", row)
    if obstacle.refusal == PACKET_REFUSED:
        return EncodeError(FIELDS[obstacle.fault.field], "cannot be written with what the row says", row)
    return EncodeError(
        "BaseHeader", "the row is null, has a fault, or breaks rules that no conforming sender breaks", row
    )
