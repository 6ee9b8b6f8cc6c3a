"""MS-MQCN messages by the million: the kernel of codec.pxd in one loop, from payloads to columns.

A batch has three levels with offsets between them: messages (the payloads), changes (the rows) and properties. Of a
property the kernel writes its PROPID and where its value lies; what a reader sees is made of that by ``members.pyx``.
"""

from libc.stddef cimport size_t
from libc.stdint cimport int32_t, uint8_t, uint32_t
from libc.string cimport memcpy, memmove, memset

from msmqwire.columns.batch cimport DECODED, Batch, Hold, prepare
from msmqwire.columns.convert cimport TextSpan
from msmqwire.columns.payloads cimport PayloadTable, Payloads, Span, decodable, payload_at
from msmqwire.mqcn.kernel cimport (
    CHANGE, CREATE, DELETE, DISCARDABLE, HAS_BODY, HAS_CHANGE, HAS_GUID, HAS_OBJECT, HAS_PATH, HAS_UPDATE, HEADER_SIZE,
    MACHINE, NO_OBJECT, NO_UPDATES, QUEUE, SMALLEST_PROPERTY, SMALLEST_UPDATE, TRAILING_BYTES, Body, PropertyColumns,
    PropertyEntry, Update, no_update, property_entries, read_body, read_header, read_update, violation_fault,
)
from msmqwire.mqcn.property_columns cimport derive_members, gather_property
from msmqwire.wire.fault cimport Fault
from msmqwire.wire.simd cimport wire_unlikely

from msmqwire.columns.parallel import run_parts
from msmqwire.mqcn.schema import NOTIFICATIONS

__all__ = ["NotificationBatch", "decode_batch"]

cdef Payloads NOTHING = Payloads(b"", [0])


# Where the columns are written; NULL for those not asked for.
cdef struct NotificationColumns:
    int32_t* messages
    uint8_t* presence
    uint8_t* version
    uint8_t* index
    uint8_t* operation
    uint8_t* object
    uint8_t* object_guid
    TextSpan* path_name
    uint8_t* master_guid
    TextSpan* domain_controller
    int32_t* property_offsets
    PropertyColumns properties
    uint32_t* violations
    Fault* faults


# Messages [start, stop) of one thread, and how many rows, properties and faults it has written.
cdef struct Chunk:
    size_t start
    size_t stop
    size_t rows
    size_t properties
    size_t faults


cdef inline void put_guid(uint8_t* column, size_t row, const uint8_t* source) noexcept nogil:
    """A GUID, or zeros for NULL."""
    if source != NULL:
        memcpy(column + 16 * row, source, 16)
    else:
        memset(column + 16 * row, 0, 16)


cdef inline void put_span(TextSpan* column, size_t row, size_t offset, size_t length) noexcept nogil:
    column[row].offset = <uint32_t>offset
    column[row].length = <uint32_t>length


cdef inline void put_row(
    const NotificationColumns* columns, size_t row, uint32_t presence, uint32_t version, uint32_t index,
    uint32_t operation, uint32_t object, uint32_t violations, size_t properties, bint whole,
) noexcept nogil:
    """The numbers of a row; ``whole`` is a constant that says that every column is wanted."""
    columns.presence[row] = <uint8_t>presence
    if whole or columns.version != NULL:
        columns.version[row] = <uint8_t>version
    if whole or columns.index != NULL:
        columns.index[row] = <uint8_t>index
    if whole or columns.operation != NULL:
        columns.operation[row] = <uint8_t>operation
    if whole or columns.object != NULL:
        columns.object[row] = <uint8_t>(object - (object != NO_OBJECT))
    if whole or columns.violations != NULL:
        columns.violations[row] = violations
    if whole or columns.property_offsets != NULL:
        columns.property_offsets[row + 1] = <int32_t>properties


cdef inline void put_identity(
    const NotificationColumns* columns, size_t row, const uint8_t* object_guid, size_t path_at, size_t path_size,
    const uint8_t* master_guid, size_t name_at, size_t name_size, bint whole,
) noexcept nogil:
    """What names the object and the server of a row."""
    if whole or columns.object_guid != NULL:
        put_guid(columns.object_guid, row, object_guid)
    if whole or columns.path_name != NULL:
        put_span(columns.path_name, row, path_at, path_size)
    if whole or columns.master_guid != NULL:
        put_guid(columns.master_guid, row, master_guid)
    if whole or columns.domain_controller != NULL:
        put_span(columns.domain_controller, row, name_at, name_size)


cdef inline void put_update(
    const NotificationColumns* columns, size_t row, uint32_t index, const uint8_t* data, const Update* update,
    size_t properties, bint whole,
) noexcept nogil:
    cdef uint32_t presence = DECODED | HAS_CHANGE | HAS_UPDATE | (HAS_OBJECT if update.object != NO_OBJECT else 0)
    if update.use_guid:
        put_identity(
            columns, row, data + update.identifier_at, 0, 0, data + update.master_at, 0, 0, whole
        )
        presence |= HAS_GUID
    else:
        put_identity(
            columns, row, NULL, update.identifier_at, update.identifier_size - 2, data + update.master_at, 0, 0, whole
        )
        presence |= HAS_PATH
    put_row(columns, row, presence, 1, index, update.command, update.object, update.violations, properties, whole)


cdef void put_body(const NotificationColumns* columns, size_t row, const Body* body, size_t properties) noexcept nogil:
    cdef uint32_t operation = CHANGE
    if body.event == 1:
        operation = CREATE
    elif body.event == 3:
        operation = DELETE
    put_identity(columns, row, body.guid, 0, 0, NULL, body.name_at, body.name_size, False)
    put_row(
        columns, row, DECODED | HAS_CHANGE | HAS_OBJECT | HAS_GUID | HAS_BODY, 2, 0, operation,
        MACHINE if body.event == 4 else QUEUE, body.violations, properties, False,
    )


cdef void put_bare(
    const NotificationColumns* columns, size_t row, uint32_t version, uint32_t violations, size_t properties
) noexcept nogil:
    """A row without a change: zeros, so that no column shows what an earlier batch held; version 0 for a null row."""
    put_identity(columns, row, NULL, 0, 0, NULL, 0, 0, False)
    put_row(columns, row, DECODED if version else 0, version, 0, 0, NO_OBJECT, violations, properties, False)


cdef inline int decode_updates(
    const NotificationColumns* columns, const NotificationColumns* given, const PropertyEntry* entries,
    const uint8_t* data, size_t size, bint strict, Chunk* chunk, bint whole, Fault* fault,
) noexcept nogil:
    """The updates of a message of version 1, a row each. 0, or -1 with ``fault`` set and rows that do not count."""
    cdef Update update = no_update()
    cdef size_t at = HEADER_SIZE
    cdef uint32_t count = data[1]
    cdef uint32_t found = 0
    cdef uint32_t i
    for i in range(count):
        if read_update(
            data, size, &at, entries, &columns.properties, &chunk.properties, whole, &update, fault
        ) != 0:
            return -1
        found |= update.violations
        put_update(columns, chunk.rows, i, data, &update, chunk.properties, whole)
        chunk.rows += 1
    if wire_unlikely(count == 0):
        put_bare(given, chunk.rows, 1, NO_UPDATES, chunk.properties)
        chunk.rows += 1
    if wire_unlikely(size - at > 1):
        found |= TRAILING_BYTES
        if columns.violations != NULL:
            columns.violations[chunk.rows - 1] |= TRAILING_BYTES
    if wire_unlikely(strict and found & DISCARDABLE):
        return violation_fault(data, size, fault)
    return 0


cdef int decode_body(
    const NotificationColumns* columns, const uint8_t* data, size_t size, bint strict, size_t row, size_t properties,
    Fault* fault,
) noexcept nogil:
    """The body of a message of version 2, one row."""
    cdef Body body
    if read_body(data, size, &body, fault) != 0:
        return -1
    if strict and body.violations & DISCARDABLE:
        return violation_fault(data, size, fault)
    put_body(columns, row, &body, properties)
    return 0


cdef inline void decode_loop(
    const PayloadTable* payloads, const NotificationColumns* given, const PropertyEntry* entries, bint strict,
    Chunk* part, bint whole,
) noexcept nogil:
    """Decode the messages of a chunk; ``whole`` is a constant wherever this is called.

    It works on local copies, whose addresses only inline functions see, so that no store to a column can be thought
    to change them; what is not inline gets ``given``.
    """
    cdef PayloadTable source = payloads[0]
    cdef NotificationColumns columns = given[0]
    cdef Chunk chunk = part[0]
    cdef Chunk before
    cdef Fault fault
    cdef Span span
    cdef size_t message
    cdef int status
    for message in range(chunk.start, chunk.stop):
        span = payload_at(&source, message)
        before = chunk
        if wire_unlikely(span.data == NULL):
            put_bare(given, chunk.rows, 0, 0, chunk.properties)
            chunk.rows += 1
        else:
            status = read_header(span.data, span.size, &fault)
            if wire_unlikely(status != 0):
                pass
            elif span.data[0] == 1:
                status = decode_updates(
                    &columns, given, entries, span.data, span.size, strict, &chunk, whole, &fault
                )
            else:
                status = decode_body(given, span.data, span.size, strict, chunk.rows, chunk.properties, &fault)
                chunk.rows += 1
            if wire_unlikely(status != 0):
                chunk = before  # nothing of a faulty message is half-delivered
                put_bare(given, chunk.rows, 0, 0, chunk.properties)
                fault.row = <uint32_t>chunk.rows
                columns.faults[chunk.faults] = fault
                chunk.faults += 1
                chunk.rows += 1
        columns.messages[message + 1] = <int32_t>chunk.rows
    part[0] = chunk


cdef void decode_messages(
    const PayloadTable* payloads, const NotificationColumns* columns, bint strict, Chunk* chunk
) noexcept nogil:
    """Decode the messages of a chunk; its rows and properties count from 0 at the addresses that ``columns`` gives."""
    cdef bint whole = (
        columns.version != NULL and columns.index != NULL and columns.operation != NULL and columns.object != NULL
        and columns.object_guid != NULL and columns.path_name != NULL and columns.master_guid != NULL
        and columns.domain_controller != NULL and columns.property_offsets != NULL and columns.violations != NULL
    )
    if whole:
        decode_loop(payloads, columns, property_entries, strict, chunk, True)
    else:
        decode_loop(payloads, columns, property_entries, strict, chunk, False)


# --- Room for columns ---


cdef size_t most_rows(size_t messages, size_t nbytes) noexcept nogil:
    """At least a row a message; more of them only for updates, which have a smallest size."""
    return messages + nbytes // SMALLEST_UPDATE


cdef NotificationColumns reserve_columns(NotificationBatch batch) except *:
    """Room for every column asked for: as many rows and properties as the bytes of the payloads can hold."""
    cdef NotificationColumns columns
    cdef size_t messages = batch.length
    cdef size_t size = <size_t>batch.payloads.nbytes
    cdef size_t rows = most_rows(messages, size)
    cdef size_t properties = size // SMALLEST_PROPERTY
    columns.faults = batch.reserve_faults()
    columns.messages = <int32_t*>batch.reserve("messages", 4 * (messages + 1))
    columns.presence = batch.reserve("presence", rows)
    columns.version = batch.reserve_column("version", rows)
    columns.index = batch.reserve_column("index", rows)
    columns.operation = batch.reserve_column("operation", rows)
    columns.object = batch.reserve_column("object", rows)
    columns.object_guid = batch.reserve_column("object_guid", 16 * rows)
    columns.path_name = <TextSpan*>batch.reserve_column("path_name", sizeof(TextSpan) * rows)
    columns.master_guid = batch.reserve_column("master_guid", 16 * rows)
    columns.domain_controller = <TextSpan*>batch.reserve_column("domain_controller", sizeof(TextSpan) * rows)
    columns.property_offsets = <int32_t*>batch.reserve_column("properties", 4 * (rows + 1))
    columns.properties.ids = batch.reserve_column("properties[].id", 4 * properties)
    columns.properties.values = <TextSpan*>batch.reserve_column("properties[].value", sizeof(TextSpan) * properties)
    columns.violations = <uint32_t*>batch.reserve_column("violations", 4 * rows)
    columns.messages[0] = 0
    if columns.property_offsets != NULL:
        columns.property_offsets[0] = 0
    return columns


# --- One chunk a thread ---


cdef NotificationColumns shifted(NotificationColumns columns, size_t rows, size_t properties, size_t faults) noexcept:
    """The columns as seen ``rows`` rows, ``properties`` properties and ``faults`` faults further on."""
    columns.presence += rows
    if columns.version != NULL:
        columns.version += rows
    if columns.index != NULL:
        columns.index += rows
    if columns.operation != NULL:
        columns.operation += rows
    if columns.object != NULL:
        columns.object += rows
    if columns.object_guid != NULL:
        columns.object_guid += 16 * rows
    if columns.path_name != NULL:
        columns.path_name += rows
    if columns.master_guid != NULL:
        columns.master_guid += 16 * rows
    if columns.domain_controller != NULL:
        columns.domain_controller += rows
    if columns.property_offsets != NULL:
        columns.property_offsets += rows
        columns.properties.ids += 4 * properties
        columns.properties.values += properties
    if columns.violations != NULL:
        columns.violations += rows
    columns.faults += faults
    return columns


cdef void move(void* target, const void* source, size_t width, size_t count) noexcept nogil:
    if target != NULL:
        memmove(target, source, width * count)


cdef void close_up(
    const NotificationColumns* columns, const NotificationColumns* source, const Chunk* chunk, Chunk* whole
) noexcept:
    """Move what a chunk wrote down behind the chunks before it, and count its offsets on from theirs."""
    cdef NotificationColumns target = shifted(columns[0], whole.rows, whole.properties, whole.faults)
    cdef size_t rows = chunk.rows
    cdef size_t i
    if target.property_offsets != NULL:
        for i in range(rows):
            target.property_offsets[i + 1] = source.property_offsets[i + 1] + <int32_t>whole.properties
        move(target.properties.ids, source.properties.ids, 4, chunk.properties)
        move(target.properties.values, source.properties.values, sizeof(TextSpan), chunk.properties)
    move(target.presence, source.presence, 1, rows)
    move(target.version, source.version, 1, rows)
    move(target.index, source.index, 1, rows)
    move(target.operation, source.operation, 1, rows)
    move(target.object, source.object, 1, rows)
    move(target.object_guid, source.object_guid, 16, rows)
    move(target.path_name, source.path_name, sizeof(TextSpan), rows)
    move(target.master_guid, source.master_guid, 16, rows)
    move(target.domain_controller, source.domain_controller, sizeof(TextSpan), rows)
    move(target.violations, source.violations, 4, rows)
    move(target.faults, source.faults, sizeof(Fault), chunk.faults)
    for i in range(chunk.faults):
        target.faults[i].row += <uint32_t>whole.rows
    for i in range(chunk.start, chunk.stop):
        columns.messages[i + 1] += <int32_t>whole.rows
    whole.rows += rows
    whole.properties += chunk.properties
    whole.faults += chunk.faults


cdef class Part:
    """The work of one thread."""
    cdef Payloads payloads
    cdef NotificationColumns columns
    cdef bint strict
    cdef Chunk chunk

    def run(self):
        with nogil:
            decode_messages(&self.payloads.table, &self.columns, self.strict, &self.chunk)


cdef list parts_of(Payloads payloads, NotificationColumns columns, bint strict, size_t threads):
    cdef size_t count = payloads.table.count
    cdef size_t nbytes = 0
    cdef list parts = []
    cdef Part part
    cdef size_t i
    for i in range(threads):
        part = Part.__new__(Part)
        part.payloads = payloads
        part.strict = strict
        memset(&part.chunk, 0, sizeof(part.chunk))
        part.chunk.start = count * i // threads
        part.chunk.stop = count * (i + 1) // threads
        part.columns = shifted(
            columns, most_rows(part.chunk.start, nbytes), nbytes // SMALLEST_PROPERTY, part.chunk.start
        )
        nbytes += <size_t>payloads[<Py_ssize_t>part.chunk.start:<Py_ssize_t>part.chunk.stop].nbytes
        parts.append(part)
    return parts


cdef class NotificationBatch(Batch):
    @property
    def messages(self):
        self.readable()
        return self.rows_of_payloads()[0]

    def property(self, propid):
        cdef Hold _hold = Hold(self)
        if not self.wants("properties"):
            raise KeyError("'properties' was not among the columns asked for")
        return gather_property(self, propid)

    cdef int derive(self, str column) except -1:
        if column == "properties" and not self.derived:
            derive_members(self)
            self.derived = True
        return 0


cdef int decode_into(NotificationBatch batch, bint strict, size_t threads) except -1:
    """Decode the payloads that the batch holds."""
    cdef NotificationColumns target
    cdef Chunk whole
    cdef Part part
    cdef list parts
    batch.derived = False
    target = reserve_columns(batch)
    parts = parts_of(batch.payloads, target, strict, max(min(threads, batch.length), <size_t>1))
    run_parts(parts)
    whole = (<Part>parts[0]).chunk
    for part in parts[1:]:
        close_up(&target, &part.columns, &part.chunk, &whole)
    batch.groups = batch.buffers["messages"]
    batch.length = whole.rows
    batch.fault_count = whole.faults
    batch.counts = {"properties[]": whole.properties}
    return 0


def decode_batch(payloads, *, offsets=None, bint strict=False, columns=None, Batch out=None, int threads=1):
    cdef Payloads source = decodable(payloads, offsets, threads)
    cdef NotificationBatch batch
    batch = prepare(NOTIFICATIONS, source, columns, out, NotificationBatch)
    batch.writing = True
    try:
        decode_into(batch, strict, <size_t>threads)
    except BaseException:
        # Memory ran out: a batch never says that it has rows for which it has no columns
        batch.hold_payloads(NOTHING)
        decode_into(batch, False, 1)
        raise
    finally:
        batch.writing = False
    return batch
