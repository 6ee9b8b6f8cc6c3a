"""The columns of messages that are made when they are first read, by reading the messages a second time.

Values are found without the GIL and stored with it, so that other threads may read the batch meanwhile.
"""

from libc.stddef cimport size_t
from libc.stdint cimport INT32_MAX, int32_t, uint8_t, uint16_t, uint32_t
from libc.string cimport memcpy, memset

from msmqwire.columns._batch cimport DECODED, Batch, Hold, Reading
from msmqwire.columns._buffer cimport Buffer, allocate
from msmqwire.columns._convert cimport TextSpan
from msmqwire.columns.payload_table cimport PayloadTable, Span, payload_at
from msmqwire.mqqb.message._bodies cimport (
    ANY_BODY, BODY_TYPE_NUMBERS, NO_TEXT, SID, Origin, find_body, largest_text, read_any, write_text,
)
from msmqwire.mqqb._kernel cimport EXTENSION_DATA, HAS_PROPERTIES, HAS_SECURITY_ID, SECURITY_ID, SENDER, Packet
from msmqwire.mqqb.message._kernel cimport read_message
from msmqwire.mqqb._values cimport (
    OF_BODY, OF_EXTENSION, SENDER_IS_SID, body_part, body_type_of, is_encrypted,
)
from msmqwire.wire._fault cimport Fault
from msmqwire.wire._sid cimport is_sid

from msmqwire.mqqb.message.readable import BODY_TYPES
from msmqwire.mqqb.schema import MESSAGES

cdef enum:
    NO_FORMAT = 0xFF
    NO_BODY_TYPE = 0xFFFF


cdef struct DerivedRows:
    const PayloadTable* payloads
    const uint32_t* presence
    size_t count


cdef bint[BODY_TYPE_NUMBERS] HAS_NAME
memset(HAS_NAME, 0, sizeof(HAS_NAME))
for number in BODY_TYPES:
    HAS_NAME[<size_t>number] = True

# The columns that are made together
cdef dict FORMAT_AND_TEXT = {
    name: MESSAGES.select(names) for names in (OF_BODY, OF_EXTENSION) for name in names
}


cdef int derive_column(Batch batch, object column) except -1:
    """Make the values of a derived column; the format and the text of bytes are made together."""
    cdef DerivedRows rows
    # Meanwhile no other thread decodes into the batch, or releases its payloads
    cdef Hold _hold = Hold(batch)
    cdef Reading _reading = Reading(batch)
    rows.payloads = &batch.payloads.table
    rows.presence = <const uint32_t*>batch.data("presence")
    rows.count = batch.length
    cdef Buffer numbers = allocate((sizeof(uint16_t) if column.name == "body_type_name" else 1) * rows.count)
    cdef Buffer origins = allocate(rows.count * sizeof(Origin))
    cdef Origin* origin = <Origin*>origins.data
    cdef Buffer present = allocate(rows.count)
    if column.name == "body_type_name":
        with nogil:
            find_body_types(&rows, <uint16_t*>numbers.data, present.data)
        store_column(batch, column, numbers, present)
        return 0
    if column.name not in FORMAT_AND_TEXT:
        with nogil:
            find_sids(&rows, origin)
        texts = joined_texts(origin, rows.count, numbers.data, present.data)
        store_texts(batch, column, texts, present)
        return 0
    cdef bint extension = column.name in OF_EXTENSION
    with nogil:
        find_bodies(&rows, extension, numbers.data, origin)
    cdef list texts_of_python = []  # live until they are copied
    cdef size_t row
    for row in range(rows.count):
        if origin[row].form == ANY_BODY:
            texts_of_python.append(read_any(origin + row, numbers.data + row))
    texts = joined_texts(origin, rows.count, numbers.data, present.data)
    cdef tuple columns = FORMAT_AND_TEXT[column.name]
    if batch.wants(columns[0].name):
        store_column(batch, columns[0], numbers, None)
    if batch.wants(columns[1].name):
        store_texts(batch, columns[1], texts, present)
    return 0


# --- Reading the messages ---


cdef bint read_row(const DerivedRows* rows, size_t row, Packet* packet, const uint8_t** data) noexcept nogil:
    """Return True if a row has a message. Its bytes may have changed since they were first read."""
    cdef Fault fault
    cdef Span payload
    if not rows.presence[row] & DECODED:
        return False
    payload = payload_at(rows.payloads, row)
    data[0] = payload.data
    return payload.data != NULL and read_message(payload.data, payload.size, False, NULL, packet, &fault) == 0


cdef void find_body_types(const DerivedRows* rows, uint16_t* numbers, uint8_t* present) noexcept nogil:
    """The body types that fit into 16 bits, and which rows have one with a name."""
    cdef Packet packet
    cdef const uint8_t* data
    cdef uint32_t body_type
    cdef size_t row
    for row in range(rows.count):
        body_type = NO_BODY_TYPE
        if read_row(rows, row, &packet, &data) and packet.presence & HAS_PROPERTIES:
            body_type = min(body_type_of(&packet), <uint32_t>NO_BODY_TYPE)
        numbers[row] = <uint16_t>body_type
        present[row] = body_type < BODY_TYPE_NUMBERS and HAS_NAME[body_type]


cdef void find_sids(const DerivedRows* rows, Origin* origins) noexcept nogil:
    cdef Packet packet
    cdef const uint8_t* data
    cdef const uint8_t* sid
    cdef size_t size
    cdef size_t row
    for row in range(rows.count):
        origins[row].form = NO_TEXT
        if (
            read_row(rows, row, &packet, &data) and packet.presence & HAS_SECURITY_ID
            and packet.codes[SENDER] == SENDER_IS_SID
        ):
            sid = data + packet.parts[SECURITY_ID].offset
            size = packet.parts[SECURITY_ID].length
            if is_sid(sid, size):
                origins[row].form = SID
                origins[row].bytes.data, origins[row].bytes.size = sid, size


cdef void find_bodies(const DerivedRows* rows, bint extension, uint8_t* formats, Origin* origins) noexcept nogil:
    """The format of each body, or of ExtensionData, and what its text is made of."""
    cdef Packet packet
    cdef const uint8_t* data
    cdef TextSpan body
    cdef size_t row
    for row in range(rows.count):
        origins[row].form = NO_TEXT
        # A body that has changed since it was first read has a format, too
        formats[row] = 0 if rows.presence[row] & HAS_PROPERTIES else NO_FORMAT
        if read_row(rows, row, &packet, &data) and packet.presence & HAS_PROPERTIES:
            body = packet.parts[EXTENSION_DATA if extension else body_part(&packet)]
            formats[row] = find_body(
                data + body.offset, body.length, 0 if extension else body_type_of(&packet),
                not extension and is_encrypted(&packet), extension, origins + row,
            )


# --- Writing the texts ---


cdef tuple joined_texts(const Origin* origins, size_t count, uint8_t* formats, uint8_t* present):
    """Offsets and UTF-8 of the texts, and in ``present`` which rows have one; bodies that are XML get that format."""
    cdef Buffer offsets = allocate((count + 1) * sizeof(int32_t))
    cdef int32_t* end = <int32_t*>offsets.data
    cdef size_t largest = 0
    cdef size_t written = 0
    cdef size_t row
    for row in range(count):
        largest += largest_text(origins + row)
    # More than is needed, so the text is copied once more
    cdef Buffer space = allocate(largest)
    cdef uint8_t* target = space.data
    with nogil:
        end[0] = 0
        for row in range(count):
            present[row] = origins[row].form != NO_TEXT
            written += write_text(origins + row, target + written, formats + row)
            end[row + 1] = <int32_t>written
    if written > INT32_MAX:
        raise OverflowError(f"{count} texts exceed an Arrow string array; decode in smaller batches")
    cdef Buffer text = allocate(written)
    memcpy(text.data, target, written)
    return offsets, text


# --- Storing the columns ---


cdef int store_texts(Batch batch, object column, tuple texts, Buffer present) except -1:
    offsets, batch.buffers[column.name + ".text"] = texts
    return store_column(batch, column, offsets, present)


cdef int store_column(Batch batch, object column, Buffer values, Buffer present) except -1:
    """Store values; without ``present``, presence is not changed."""
    cdef uint32_t* presence = <uint32_t*>batch.data("presence")
    cdef uint32_t bit = <uint32_t>column.presence
    cdef size_t row
    batch.buffers[column.name] = values
    if present is not None:
        for row in range(batch.length):
            presence[row] = presence[row] & ~bit | (bit if present.data[row] else 0)
    batch.counts[column.name] = batch.length
    return 0
