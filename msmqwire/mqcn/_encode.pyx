"""Many MS-MQCN messages: from columns to payloads.

The values of an update are adjacent in the payload that it was decoded from. An update is written as its head, its
PROPIDs and one copy of its values.
"""

from functools import partial

from libc.stddef cimport size_t
from libc.stdint cimport int32_t, uint8_t, uint32_t
from libc.string cimport memcpy

from msmqwire.columns._batch cimport Batch
from msmqwire.columns._convert cimport TextSpan
from msmqwire.columns._encoded cimport Encoded, Encoder, check_writer, encode_all, payload_bytes, unusable
from msmqwire.columns._layout cimport find_columns
from msmqwire.columns.payload_table cimport PayloadTable, payload_at
from msmqwire.mqcn._kernel cimport (
    CHANGE, HAS_BODY, HAS_CHANGE, HAS_GUID, HEADER_SIZE, NEVER_WRITTEN, RowColumns, write_body, write_update_head,
)
from msmqwire.wire.simd cimport wire_unlikely

from msmqwire.errors import DecodeError, EncodeError
from msmqwire.mqcn._batch import SAMPLES, decode_batch
from msmqwire.mqcn._packet import decode, encode, violated_field
from msmqwire.mqcn.property_sets import describe
from msmqwire.mqcn.schema import NOTIFICATIONS

if False:  # for type checkers: see stubs.py
    from collections.abc import Iterable

    from msmqwire.columns._payloads import Payloads
    from msmqwire.mqcn._packet import ChangeNotificationMessage

# The columns that a row is written from
NEEDED = (
    "operation", "object", "object_guid", "path_name", "master_guid", "domain_controller", "properties", "violations",
)


cdef struct ChangeRows:
    RowColumns columns
    const int32_t* messages
    const uint8_t* ids
    const TextSpan* values


cdef inline bint is_refused(const ChangeRows* rows, size_t row, uint32_t refused) noexcept nogil:
    """Return True if a row is null, has no change, or breaks a rule of the encoder."""
    return not rows.columns.presence[row] & HAS_CHANGE or (rows.columns.violations[row] & refused) != 0


cdef inline size_t write_update(
    const ChangeRows* rows, size_t row, const uint8_t* payload, uint8_t* target
) noexcept nogil:
    cdef const RowColumns* columns = &rows.columns
    cdef size_t first = <size_t>columns.properties[row]
    cdef size_t count = <size_t>columns.properties[row + 1] - first
    cdef size_t at
    cdef size_t end
    cdef size_t start
    at = write_update_head(
        target, columns.operation[row], columns.object_guid + 16 * row if columns.presence[row] & HAS_GUID else NULL,
        payload + columns.path_name[row].offset, columns.path_name[row].length, columns.master_guid + 16 * row,
        <uint32_t>count,
    )
    if count:
        memcpy(target + at, rows.ids + 4 * first, 4 * count)
        at += 4 * count
        start = rows.values[first].offset
        end = rows.values[first + count - 1].offset + rows.values[first + count - 1].length
        memcpy(target + at, payload + start, end - start)
        at += end - start
    return at


cdef size_t write_body_row(
    const ChangeRows* rows, size_t row, const uint8_t* payload, bint closing_space, uint8_t* target
) noexcept nogil:
    cdef uint32_t event = rows.columns.operation[row] + 1
    cdef const TextSpan* name = &rows.columns.domain_controller[row]
    if rows.columns.operation[row] == CHANGE and rows.columns.object[row]:
        event = 4
    return write_body(
        target, event, rows.columns.object_guid + 16 * row, payload + name.offset, name.length, closing_space
    )


cdef size_t encode_messages(
    ChangeRows rows, const PayloadTable* payloads, size_t count, uint32_t refused, bint closing_space, uint8_t* data,
    int32_t* offsets, size_t* bad_row,
) noexcept nogil:
    """Encode messages; see ``Encoder.write``. ``rows`` is a copy, so that no store to a payload can change it."""
    cdef PayloadTable source = payloads[0]
    cdef uint8_t* target = data
    cdef const uint8_t* payload
    cdef size_t message
    cdef size_t row
    cdef size_t stop
    offsets[0] = 0
    for message in range(count):
        row = <size_t>rows.messages[message]
        stop = <size_t>rows.messages[message + 1]
        payload = payload_at(&source, message).data
        target[0] = 1
        target[1] = <uint8_t>(stop - row)
        target += HEADER_SIZE
        while row < stop:
            if wire_unlikely(is_refused(&rows, row, refused)):
                bad_row[0] = row
                return message
            if wire_unlikely(rows.columns.presence[row] & HAS_BODY):
                target[-HEADER_SIZE] = 2
                target += write_body_row(&rows, row, payload, closing_space, target)
            else:
                target += write_update(&rows, row, payload, target)
            row += 1
        offsets[message + 1] = <int32_t>(target - data)
    return count


cdef class MessageEncoder(Encoder):
    cdef ChangeRows rows
    cdef bint closing_space
    cdef uint32_t refused   # violations
    cdef size_t bad_row

    def __cinit__(self, Batch batch, bint closing_space, bint enforce):
        find_columns(batch, &self.rows.columns, sizeof(self.rows.columns))
        self.rows.messages = <const int32_t*>batch.groups.data
        self.rows.ids = batch.data("properties[].id")
        self.rows.values = <const TextSpan*>batch.data("properties[].value")
        self.closing_space = closing_space
        self.refused = 0xFFFFFFFF if enforce else <uint32_t>NEVER_WRITTEN

    cdef size_t write(self, size_t count, uint8_t* data, int32_t* offsets) noexcept nogil:
        return encode_messages(
            self.rows, self.payloads, count, self.refused, self.closing_space, data, offsets, &self.bad_row
        )

    cdef size_t largest(self, Batch batch) except? 0:
        # A message keeps its length, except for the space that closes ObjectGuid
        return payload_bytes(batch) + 2 * batch.payloads.table.count + HEADER_SIZE

    cdef object refusal(self, size_t message):
        cdef Batch batch = self.batch
        cdef size_t row = self.bad_row
        cdef uint32_t violations = self.rows.columns.violations[row] & self.refused
        if not violations:
            return unusable(batch, "Version", row)
        at = row - batch.messages[message]
        try:
            updates = list(enumerate(decode(batch.payloads[message]).updates))[at:at + 1]
        except DecodeError:  # its bytes have changed
            updates = []
        names = describe(batch.violation_names(<Py_ssize_t>row), updates)
        return EncodeError(violated_field(violations), f"the row has {names}", row)


def encode_batch(
    messages: Batch | Iterable[ChangeNotificationMessage], *, Encoded out: Payloads | None = None,
    bint closing_space=True, bint enforce=True
) -> Payloads:
    """Encode many messages: the inverse of ``decode_batch``, without the unused byte of [MS-MQCN] 3.3.5.3.

    Parameters
    ----------
    messages : Batch, or iterable of messages
        A batch needs all of its columns except ``version`` and ``index``.
    out : Payloads, optional
        A result of ``encode_batch`` to overwrite. Its memory is reused unless a slice, a view or a batch of it is
        still held.
    closing_space : bool
        Close ObjectGuid of a body with a space, as its grammar says.
    enforce : bool
        Refuse updates without the PROPIDs of their command ([MS-MQCN] 3.3.5.2).

    Raises
    ------
    EncodeError
        With row and field: the row is null, has a fault, or has violations.
    """
    write = partial(encode, closing_space=closing_space, enforce=enforce)
    return encode_all(
        messages, write, {NOTIFICATIONS: NEEDED}, MessageEncoder, out, (bool(closing_space), bool(enforce))
    )


check_writer(partial(encode_batch, enforce=False), decode_batch(SAMPLES))
