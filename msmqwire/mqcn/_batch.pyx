"""Many MS-MQCN messages: from payloads to columns.

A batch has three levels with offsets between them: messages (the payloads), changes (the rows) and properties. Of a
property the decoder writes the PROPID and the span of its value; ``_property_columns.pyx`` makes the rest. Rows are
written by hand: blocks of records, as ``decode_block`` has them, take 16% more instructions.
"""

from libc.stddef cimport size_t
from libc.stdint cimport int32_t, uint8_t, uint32_t
from libc.string cimport memcmp, memcpy, memset

from msmqwire.columns._batch cimport DECODED, Batch, Hold, Reading
from msmqwire.columns._convert cimport TextSpan
from msmqwire.columns._decoder cimport Decoder, check_run, decode_payloads
from msmqwire.columns._layout cimport Columns, Layout, find_columns, place_of, put_fault
from msmqwire.columns._payloads cimport Payloads
from msmqwire.columns.payload_table cimport PayloadTable, Span, payload_at
from msmqwire.mqcn._kernel cimport (
    CHANGE, CODE_COUNT, COUNT_AT, CREATE, DELETE, DISCARDABLE, DOMAIN_CONTROLLER, HAS_BODY, HAS_CHANGE, HAS_GUID,
    HAS_OBJECT, HAS_PATH, HAS_RESERVED, HAS_UPDATE, HEADER_SIZE, INDEX, LIST_COUNT, MACHINE, MASTER_GUID, NO_OBJECT,
    NO_UPDATES, OBJECT, OBJECT_GUID, OPERATION, PART_COUNT, PATH_NAME, PROPERTIES, QUEUE, RESERVED, RESERVED_AT,
    SECTION_COUNT, SMALLEST_PROPERTY, SMALLEST_UPDATE, TRAILING_BYTES, VERSION, Body, PropertyColumns, RowColumns,
    Update, no_update, read_body, read_header, read_update_head, read_update_properties, violation_fault,
)
from msmqwire.mqcn._property_columns cimport derive_members, gather_property
from msmqwire.wire._fault cimport Fault
from msmqwire.wire.simd cimport wire_unlikely
from msmqwire.wire._transport cimport Transports

from msmqwire.columns.schema import TEXT, UINT32, ListOf, StructOf
from msmqwire.mqcn.schema import NOTIFICATIONS

if False:  # for type checkers: see stubs.py
    from collections.abc import Sequence
    from typing import Any

    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    from msmqwire.mqcn.values import PropertyColumn

cdef enum:
    OPERATIONS_OF_EVENTS = CREATE | CHANGE << 4 | DELETE << 8 | CHANGE << 12
    COLUMN_COUNT = sizeof(RowColumns) // sizeof(void*)

cdef enum:
    RESERVED_SIZE = COUNT_AT - RESERVED_AT
    NO_VALUE = 0xFF  # of an enumeration; NO_OBJECT - 1

cdef uint8_t[16] ZEROS
memset(ZEROS, 0, sizeof(ZEROS))
cdef uint8_t[RESERVED_SIZE] RESERVED_ZEROS
memset(RESERVED_ZEROS, 0, sizeof(RESERVED_ZEROS))


# The record of a row.
cdef struct Change:
    uint32_t presence
    uint32_t violations
    const uint8_t* sections[SECTION_COUNT]  # the GUIDs; ZEROS where the row lacks them
    TextSpan[PART_COUNT] parts
    uint32_t[LIST_COUNT] counts             # properties written up to this row
    uint8_t[CODE_COUNT] codes


cdef Change RECORD  # only the offsets of its fields are used

LAYOUT = Layout(
    NOTIFICATIONS,
    sizeof(Change),
    arrays={
        "codes": place_of(&RECORD, RECORD.codes),
        "lists": place_of(&RECORD, RECORD.counts),
        "parts": place_of(&RECORD, RECORD.parts),
    },
    written={"properties": ListOf(StructOf((("id", UINT32), ("value", TEXT))), SMALLEST_PROPERTY)},
    smallest_row=SMALLEST_UPDATE,
)


cdef inline void clear_change(Change* change, uint32_t version, uint32_t violations, size_t properties) noexcept nogil:
    """A row without a change; version 0 for a null row."""
    memset(change, 0, sizeof(Change))
    change.presence = DECODED if version else 0
    change.violations = violations
    change.sections[OBJECT_GUID] = ZEROS
    change.sections[MASTER_GUID] = ZEROS
    change.counts[PROPERTIES] = <uint32_t>properties
    change.codes[VERSION] = <uint8_t>version
    change.codes[OPERATION] = NO_VALUE
    change.codes[OBJECT] = NO_VALUE


cdef inline void set_head(Change* change, uint32_t index, const uint8_t* data, const Update* update) noexcept nogil:
    change.codes[VERSION] = 1
    change.codes[INDEX] = <uint8_t>index
    change.codes[OPERATION] = <uint8_t>update.command
    change.sections[OBJECT_GUID] = ZEROS
    change.sections[MASTER_GUID] = data + update.master_at
    change.parts[PATH_NAME].offset = 0
    change.parts[PATH_NAME].length = 0
    change.parts[DOMAIN_CONTROLLER].offset = 0
    change.parts[DOMAIN_CONTROLLER].length = 0
    if update.use_guid:
        change.sections[OBJECT_GUID] = data + update.identifier_at
    else:
        change.parts[PATH_NAME].offset = <uint32_t>update.identifier_at
        change.parts[PATH_NAME].length = <uint32_t>(update.identifier_size - 2)
    change.parts[RESERVED].offset = 0
    change.parts[RESERVED].length = 0
    if wire_unlikely(memcmp(data + update.master_at + RESERVED_AT, RESERVED_ZEROS, RESERVED_SIZE) != 0):
        change.parts[RESERVED].offset = <uint32_t>(update.master_at + RESERVED_AT)
        change.parts[RESERVED].length = RESERVED_SIZE


cdef inline void set_rest(Change* change, const Update* update, size_t properties) noexcept nogil:
    cdef uint32_t has_object = update.object != NO_OBJECT
    change.presence = (
        DECODED | HAS_CHANGE | HAS_UPDATE | has_object * HAS_OBJECT | (HAS_GUID if update.use_guid else HAS_PATH)
        | (HAS_RESERVED if change.parts[RESERVED].length else 0)
    )
    change.codes[OBJECT] = <uint8_t>(update.object - 1)
    change.counts[PROPERTIES] = <uint32_t>properties
    change.violations = update.violations


cdef void put_body(Change* change, const uint8_t* guid, const Body* body, size_t properties) noexcept nogil:
    clear_change(change, 2, body.violations, properties)
    change.presence = DECODED | HAS_CHANGE | HAS_OBJECT | HAS_GUID | HAS_BODY
    change.sections[OBJECT_GUID] = guid
    change.parts[DOMAIN_CONTROLLER].offset = <uint32_t>body.name_at
    change.parts[DOMAIN_CONTROLLER].length = <uint32_t>body.name_size
    change.codes[OPERATION] = <uint8_t>(OPERATIONS_OF_EVENTS >> 4 * (body.event - 1) & 15)
    change.codes[OBJECT] = <uint8_t>(MACHINE - 1 if body.event == 4 else QUEUE - 1)


cdef inline void put_head(const RowColumns* to, size_t row, const Change* change, bint every_column) noexcept nogil:
    """Write what a row has from the head of an update; ``every_column`` is a constant: all columns are requested."""
    if every_column or to.version != NULL:
        to.version[row] = change.codes[VERSION]
    if every_column or to.index != NULL:
        to.index[row] = change.codes[INDEX]
    if every_column or to.operation != NULL:
        to.operation[row] = change.codes[OPERATION]
    if every_column or to.object_guid != NULL:
        memcpy(to.object_guid + 16 * row, change.sections[OBJECT_GUID], 16)
    if every_column or to.path_name != NULL:
        to.path_name[row] = change.parts[PATH_NAME]
    if every_column or to.master_guid != NULL:
        memcpy(to.master_guid + 16 * row, change.sections[MASTER_GUID], 16)
    if every_column or to.domain_controller != NULL:
        to.domain_controller[row] = change.parts[DOMAIN_CONTROLLER]
    if every_column or to.reserved != NULL:
        to.reserved[row] = change.parts[RESERVED]


cdef inline void put_rest(const RowColumns* to, size_t row, const Change* change, bint every_column) noexcept nogil:
    """Write what a row has from its properties."""
    to.presence[row] = <uint8_t>change.presence
    if every_column or to.object != NULL:
        to.object[row] = change.codes[OBJECT]
    if every_column or to.properties != NULL:
        to.properties[row + 1] = <int32_t>change.counts[PROPERTIES]
    if every_column or to.violations != NULL:
        to.violations[row] = change.violations


cdef inline void put_row(const RowColumns* to, size_t row, const Change* change, bint every_column) noexcept nogil:
    put_head(to, row, change, every_column)
    put_rest(to, row, change, every_column)


cdef inline int read_updates(
    const uint8_t* data, size_t size, bint strict, const RowColumns* to, const PropertyColumns* items, size_t* row,
    size_t* properties, bint every_column, bint wanted, Update* update, Fault* fault,
) noexcept nogil:
    """Write the rows of a message of version 1. 0, or -1 with ``fault`` set and rows that do not count."""
    cdef Change change
    cdef Change bare
    cdef size_t at = HEADER_SIZE
    cdef uint32_t count = data[1]
    cdef uint32_t found = 0
    cdef uint32_t i
    for i in range(count):
        if read_update_head(data, size, at, update, fault) != 0:
            return -1
        set_head(&change, i, data, update)
        # Written before the properties are read, which need the registers
        put_head(to, row[0], &change, every_column)
        if read_update_properties(data, size, &at, items, properties, wanted, update, fault) != 0:
            return -1
        set_rest(&change, update, properties[0])
        put_rest(to, row[0], &change, every_column)
        found |= update.violations
        row[0] += 1
    if wire_unlikely(count == 0):
        clear_change(&bare, 1, NO_UPDATES, properties[0])
        put_row(to, row[0], &bare, every_column)
        row[0] += 1
    if wire_unlikely(size - at > 1):
        found |= TRAILING_BYTES
        if to.violations != NULL:
            to.violations[row[0] - 1] |= TRAILING_BYTES
    if wire_unlikely(strict and found & DISCARDABLE):
        return violation_fault(data, size, fault)
    return 0


cdef int read_text(
    const uint8_t* data, size_t size, bint strict, const RowColumns* to, size_t row, size_t properties, Fault* fault
) noexcept nogil:
    """Write the row of a message of version 2."""
    cdef Body body
    cdef Change change
    if read_body(data, size, &body, fault) != 0:
        return -1
    if strict and body.violations & DISCARDABLE:
        return violation_fault(data, size, fault)
    put_body(&change, body.guid, &body, properties)
    put_row(to, row, &change, False)
    return 0


cdef void write_row_without_update(const RowColumns* to, size_t row, size_t properties) noexcept nogil:
    """Write a null row."""
    cdef Change change
    clear_change(&change, 0, 0, properties)
    put_row(to, row, &change, False)


cdef inline void read_messages(
    const PayloadTable* payloads, size_t count, bint strict, const RowColumns* given, PropertyColumns items,
    Columns* columns, bint every_column, bint wanted,
) noexcept nogil:
    """Decode messages; ``every_column`` and ``wanted`` are constants: every column, and properties, are requested.

    It works on local copies, whose addresses only inline functions see, so that no store to a column can be thought
    to change them; other functions get ``given``.
    """
    cdef PayloadTable source = payloads[0]
    cdef RowColumns to = given[0]
    cdef int32_t* groups = columns.groups
    cdef size_t row = columns.rows
    cdef size_t properties = columns.lists[PROPERTIES].count
    cdef size_t first_row
    cdef size_t first_property
    cdef Update update = no_update()
    cdef Fault fault
    cdef Span span
    cdef size_t message
    cdef int status
    for message in range(count):
        span = payload_at(&source, message)
        first_row = row
        first_property = properties
        if wire_unlikely(span.data == NULL):
            write_row_without_update(given, row, properties)
            row += 1
        else:
            status = read_header(span.data, span.size, &fault)
            if wire_unlikely(status != 0):
                pass
            elif span.data[0] == 1:
                status = read_updates(
                    span.data, span.size, strict, &to, &items, &row, &properties, every_column, wanted, &update,
                    &fault,
                )
            else:
                status = read_text(span.data, span.size, strict, given, row, properties, &fault)
                row += 1
            if wire_unlikely(status != 0):
                row = first_row
                properties = first_property
                write_row_without_update(given, row, properties)
                put_fault(columns, &fault, row)
                row += 1
        groups[message + 1] = <int32_t>row
    columns.rows = row
    columns.lists[PROPERTIES].count = properties


cdef class NotificationDecoder(Decoder):
    cdef RowColumns to
    cdef PropertyColumns items

    cdef int prepare(self, Batch batch) except -1:
        find_columns(batch, &self.to, sizeof(self.to))
        self.items.ids = self.columns.lists[PROPERTIES].members[0]
        self.items.values = <TextSpan*>self.columns.lists[PROPERTIES].members[1]
        return 0

    cdef void decode(self) noexcept nogil:
        cdef const PayloadTable* payloads = &self.payloads.table
        if self.columns.count == COLUMN_COUNT:
            read_messages(
                payloads, self.count, self.strict, &self.to, self.items, &self.columns, True, True
            )
        elif self.items.ids != NULL:
            read_messages(
                payloads, self.count, self.strict, &self.to, self.items, &self.columns, False, True
            )
        else:
            read_messages(
                payloads, self.count, self.strict, &self.to, self.items, &self.columns, False, False
            )


cdef class SomeColumns(NotificationDecoder):
    cdef void decode(self) noexcept nogil:
        read_messages(
            &self.payloads.table, self.count, self.strict, &self.to, self.items, &self.columns, False, True
        )


cdef tuple samples():
    """Updates by GUID and by path, with the value of PROPID_Q_QUOTA, and a body, for checks at import."""
    guids = bytes(range(1, 33))
    rest = bytes(24) + b"\1" + (105).to_bytes(4, "little") + b"\1\2\3\4"
    guid = "04030201-0605-0807-090A-0B0C0D0E0F10"
    body = f"<Event>1</Event><ObjectGuid>{guid}</ObjectGuid ><DomainController>dc</DomainController>"
    return (
        b"\1\1\1\1" + guids + rest,
        b"\1\1\0\0" + "a\\q\0".encode("utf-16-le") + guids[16:] + rest,
        b"\2\1" + f"<Notification>{body}</Notification>".encode("utf-16-le"),
    )


SAMPLES = samples()


cdef int check_record(bytes message) except -1:
    """Check that two records of one update, which are made in other memory, have the same values for its columns."""
    cdef const uint8_t* data = <const uint8_t*>message
    cdef Change[2] made
    cdef Update update = no_update()
    cdef Fault fault
    cdef size_t i
    for i in range(2):
        memset(&made[i], <int>(0xA5 + i), sizeof(Change))
        read_update_head(data, <size_t>len(message), HEADER_SIZE, &update, &fault)
        set_head(&made[i], 0, data, &update)
        set_rest(&made[i], &update, 0)
    if (
        memcmp(made[0].sections, made[1].sections, sizeof(made[0].sections)) != 0
        or memcmp(made[0].parts, made[1].parts, sizeof(made[0].parts)) != 0
        or memcmp(made[0].counts, made[1].counts, sizeof(made[0].counts)) != 0
        or memcmp(made[0].codes, made[1].codes, sizeof(made[0].codes)) != 0
    ):
        raise ImportError("the reader of notifications does not set all of a record")
    return 0


cdef int check_rows() except -1:
    """Check the rows of every kind of message, also with bytes in Reserved, without an update, and null."""
    check_record(SAMPLES[0])
    check_record(SAMPLES[1])
    payloads = [*SAMPLES, SAMPLES[0][:36] + bytes(range(24)) + SAMPLES[0][60:], b"\1\0", None]
    return check_run(LAYOUT, NotificationDecoder, SomeColumns, payloads)


check_rows()


cdef class NotificationBatch(Batch):
    """The changes of many messages in three levels: messages, changes (the rows) and properties.

    Examples
    --------
    >>> from msmqwire import mqcn
    >>> batch = mqcn.decode_batch([bytes.fromhex(
    ...     "0101010133221100554477668899aabbccddeeff11ea26c6b6e6499795959150557358d1"
    ...     "0000000000000000000000000000000000000000000000000273000000690000004433221166558877"
    ...     "99aabbccddeeff0000040000"
    ... )])
    >>> batch.messages.tolist(), len(batch)
    ([0, 1], 1)
    >>> values, rows = batch.property(105)  # PROPID_Q_QUOTA
    >>> values.tolist(), rows.tolist()
    ([1024], [0])
    """

    @property
    def messages(self) -> NDArray[np.int32]:
        """The rows of message ``i`` are ``messages[i]`` to ``messages[i + 1]``; every message has at least one."""
        cdef Reading _reading = Reading(self)
        return self.rows_of_payloads()[0]

    def property(self, propid: int) -> PropertyColumn:
        """Every value of one PROPID in the batch, and the row of each value.

        Numbers are an array of the width they have in messages, GUIDs (m, 16) uint8 in wire order, texts a
        ``TextColumn``, blobs a ``BytesColumn``, vectors a ``ListColumn`` of these. A row that has the PROPID twice
        occurs twice; receivers use the first value.

        Raises
        ------
        KeyError
            ``properties`` is not among the requested columns.
        ValueError
            The PROPID is unknown.
        """
        cdef Hold _hold = Hold(self)
        cdef Reading _reading = Reading(self)
        if not self.wants("properties"):
            raise KeyError("'properties' is not among the requested columns")
        return gather_property(self, propid)

    cdef int derive(self, str column) except -1:
        cdef Hold _hold
        cdef Reading _reading
        if column == "properties" and "properties[].ints[]" not in self.counts:
            _hold, _reading = Hold(self), Reading(self)
            derive_members(self)
        return 0


def decode_batch(
    payloads: Any, *, offsets: ArrayLike | None = None, bint strict=False, columns: Sequence[str] | None = None,
    Batch out=None
) -> NotificationBatch:
    """Decode Change Notification Messages into the columns of the notifications table: [MS-MQCN] 2.2.4.

    Every change gives one row; so does a message that cannot be decoded, has no change, or is null. The first use of
    ``batch["properties"]`` makes the members of properties after ``id``, in one pass.

    Parameters
    ----------
    payloads
        As for ``Payloads.of``, less than 2 GiB: bodies of MSMQ messages.
    offsets : array of integers, optional
        The start of each payload in one bytes-like object, and the end of the last.
    strict : bool
        Fault for what a conforming receiver disregards, instead of noting a violation.
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
    return decode_payloads(
        LAYOUT, NotificationDecoder, Payloads.of(payloads, offsets), Transports.__new__(Transports), strict, columns,
        out, NotificationBatch,
    )
