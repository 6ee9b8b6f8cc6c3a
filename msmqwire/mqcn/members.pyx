"""What readers see of the properties in a batch, made of PROPIDs and places of values without a Python object each.

``derive_members`` makes the members of ``properties`` (name, type and the value in the member of its type), and
``gather_property`` one property of the whole batch. Both walk messages, rows and properties by their offsets.
"""

from typing import Any, NamedTuple

from libc.stddef cimport size_t
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint32_t
from libc.string cimport memcpy, memset

from msmqwire.columns.batch cimport Batch, read_only
from msmqwire.columns.buffer cimport Buffer, allocate
from msmqwire.columns.convert cimport TextSpan
from msmqwire.columns.payloads cimport PayloadTable, payload_at
from msmqwire.properties.lookup cimport (
    KIND_BLOB, KIND_BOOL, KIND_CLSID, KIND_CLSID_VECTOR, KIND_I1, KIND_I2, KIND_I4, KIND_LPWSTR,
    KIND_LPWSTR_VECTOR, KIND_NONE, KIND_UI1, KIND_UI1_VECTOR, KIND_UI2, KIND_UI4, KIND_UI4_VECTOR, property_kind,
    property_place,
)
from msmqwire.propvariant.codec cimport COUNT_SIZE, text_size
from msmqwire.wire.cursor cimport load_u16, load_u32, load_u64

import numpy as np

from msmqwire.columns.views import SPAN_DTYPE, BytesColumn, ListColumn, TextColumn

__all__ = ["PropertyColumn"]

# The bits of a property's presence byte, as schema.py has them
cdef enum:
    IS_INT = 1
    IS_TEXT = 2
    IS_GUID = 4
    IS_BYTES = 8
    IS_INTS = 16
    IS_GUIDS = 32
    IS_TEXTS = 64

cdef uint8_t[17] MEMBER_OF  # by Kind
MEMBER_OF[:] = [
    0, IS_INT, IS_INT, IS_INT, IS_INT, IS_INT, IS_INT, IS_INT, IS_INT, IS_INT, IS_GUID, IS_BYTES, IS_BYTES, IS_INTS,
    IS_GUIDS, IS_TEXT, IS_TEXTS,
]

cdef list NUMBER_DTYPES = [None, "<i2", "<i4", "<u2", "i1", "u1", "<u2", "<u4", "<i8", "<u8"]  # by Kind


class PropertyColumn(NamedTuple):
    """One property of a whole batch: its values, and the row that each belongs to."""

    values: Any
    rows: Any


# The properties of a batch, and where the walk over them is.
cdef struct Walk:
    const PayloadTable* payloads
    const int32_t* messages
    const int32_t* offsets
    const uint8_t* ids
    const TextSpan* values
    size_t count


cdef Walk walk_over(Batch batch) except *:
    cdef Walk walk
    walk.payloads = &batch.payloads.table
    walk.messages = <const int32_t*>batch.groups.data
    walk.offsets = <const int32_t*>batch.data("properties")
    walk.ids = batch.data("properties[].id")
    walk.values = <const TextSpan*>batch.data("properties[].value")
    walk.count = batch.counts["properties[]"]
    return walk


cdef inline int64_t number_of(uint8_t kind, const uint8_t* value) noexcept nogil:
    """The integer of a value, signed or not as its kind is."""
    if kind == KIND_UI4:
        return <int64_t>load_u32(value)
    if kind == KIND_UI1:
        return <int64_t>value[0]
    if kind == KIND_I4:
        return <int64_t><int32_t>load_u32(value)
    if kind == KIND_I2:
        return <int64_t><int16_t>load_u16(value)
    if kind == KIND_UI2:
        return <int64_t>load_u16(value)
    if kind == KIND_BOOL:
        return load_u16(value) != 0
    if kind == KIND_I1:
        return <int64_t><int8_t>value[0]
    return <int64_t>load_u64(value)


# Where the members of properties are written.
cdef struct Members:
    uint8_t* name
    uint8_t* type
    uint8_t* presence
    int64_t* int_
    TextSpan* text
    uint8_t* guid
    TextSpan* bytes
    int32_t* int_offsets
    uint8_t* ints
    int32_t* guid_offsets
    uint8_t* guids
    int32_t* text_offsets
    TextSpan* texts
    size_t int_count
    size_t guid_count
    size_t text_count


cdef void name_members(const Walk* walk, Members* members) noexcept nogil:
    """Names, types and presence, and the numbers of elements in vectors of integers and of GUIDs."""
    cdef size_t j
    cdef uint32_t propid
    cdef uint8_t kind
    for j in range(walk.count):
        propid = load_u32(walk.ids + 4 * j)
        kind = property_kind(propid)
        members.name[j] = property_place(propid)
        members.type[j] = kind
        members.presence[j] = MEMBER_OF[kind]
        if kind == KIND_UI4_VECTOR:
            members.int_count += (walk.values[j].length - COUNT_SIZE) // 4
        elif kind == KIND_CLSID_VECTOR:
            members.guid_count += (walk.values[j].length - COUNT_SIZE) // 16
        elif kind == KIND_LPWSTR_VECTOR:
            # no text is shorter than its 0x0000
            members.text_count += (walk.values[j].length - COUNT_SIZE) // 2


cdef size_t put_texts(const uint8_t* data, TextSpan value, TextSpan* target) noexcept nogil:
    """Where the texts of a VT_LPWSTR|VT_VECTOR lie; returns how many they are."""
    cdef size_t at = value.offset + COUNT_SIZE
    cdef size_t end = value.offset + value.length
    cdef size_t written = 0
    cdef size_t size
    while at < end:
        size = text_size(data, end, at)
        target[written].offset = <uint32_t>at
        target[written].length = <uint32_t>(size - 2)
        written += 1
        at += size
    return written


cdef void put_members(const uint8_t* data, const Walk* walk, size_t j, Members* members) noexcept nogil:
    """The value of property ``j`` in the member of its type, and nothing in the others."""
    cdef TextSpan value = walk.values[j]
    cdef uint8_t kind = members.type[j]
    cdef uint8_t member = MEMBER_OF[kind]
    cdef TextSpan nothing
    cdef const uint8_t* start = data + value.offset
    nothing.offset = 0
    nothing.length = 0
    members.int_[j] = number_of(kind, start) if member == IS_INT else 0
    members.text[j] = nothing
    members.bytes[j] = nothing
    if member == IS_GUID:
        memcpy(members.guid + 16 * j, start, 16)
    else:
        memset(members.guid + 16 * j, 0, 16)
    if member == IS_TEXT:
        members.text[j].offset = value.offset
        members.text[j].length = value.length - 2
    elif member == IS_BYTES:
        members.bytes[j].offset = value.offset + COUNT_SIZE
        members.bytes[j].length = value.length - COUNT_SIZE
    elif member == IS_INTS:
        memcpy(members.ints + 4 * members.int_count, start + COUNT_SIZE, value.length - COUNT_SIZE)
        members.int_count += (value.length - COUNT_SIZE) // 4
    elif member == IS_GUIDS:
        memcpy(members.guids + 16 * members.guid_count, start + COUNT_SIZE, value.length - COUNT_SIZE)
        members.guid_count += (value.length - COUNT_SIZE) // 16
    elif member == IS_TEXTS:
        members.text_count += put_texts(data, value, members.texts + members.text_count)
    members.int_offsets[j + 1] = <int32_t>members.int_count
    members.guid_offsets[j + 1] = <int32_t>members.guid_count
    members.text_offsets[j + 1] = <int32_t>members.text_count


cdef void put_all(const Walk* walk, Members* members) noexcept nogil:
    cdef size_t message
    cdef size_t j
    cdef size_t stop
    cdef const uint8_t* data
    members.int_offsets[0] = 0
    members.guid_offsets[0] = 0
    members.text_offsets[0] = 0
    for message in range(walk.payloads.count):
        j = <size_t>walk.offsets[walk.messages[message]]
        stop = <size_t>walk.offsets[walk.messages[message + 1]]
        data = payload_at(walk.payloads, message).data
        while j < stop:
            put_members(data, walk, j, members)
            j += 1


cdef int derive_members(Batch batch) except -1:
    """Make the members of ``properties`` that schema.py lists behind ``id``."""
    cdef Walk walk = walk_over(batch)
    cdef Members members
    cdef size_t count = walk.count
    memset(&members, 0, sizeof(members))
    members.name = batch.reserve("properties[].name", count)
    members.type = batch.reserve("properties[].type", count)
    members.presence = batch.reserve("properties[]?", count)
    name_members(&walk, &members)
    members.int_ = <int64_t*>batch.reserve("properties[].int", 8 * count)
    members.text = <TextSpan*>batch.reserve("properties[].text", sizeof(TextSpan) * count)
    members.guid = batch.reserve("properties[].guid", 16 * count)
    members.bytes = <TextSpan*>batch.reserve("properties[].bytes", sizeof(TextSpan) * count)
    members.int_offsets = <int32_t*>batch.reserve("properties[].ints", 4 * (count + 1))
    members.ints = batch.reserve("properties[].ints[]", 4 * members.int_count)
    members.guid_offsets = <int32_t*>batch.reserve("properties[].guids", 4 * (count + 1))
    members.guids = batch.reserve("properties[].guids[]", 16 * members.guid_count)
    members.text_offsets = <int32_t*>batch.reserve("properties[].texts", 4 * (count + 1))
    members.texts = <TextSpan*>batch.reserve("properties[].texts[]", sizeof(TextSpan) * members.text_count)
    members.int_count = 0
    members.guid_count = 0
    members.text_count = 0
    put_all(&walk, &members)
    batch.counts["properties[].ints[]"] = members.int_count
    batch.counts["properties[].guids[]"] = members.guid_count
    batch.counts["properties[].texts[]"] = members.text_count
    return 0


# --- One property of a whole batch ---


cdef size_t occurrences(const Walk* walk, uint32_t propid) noexcept nogil:
    cdef size_t found = 0
    cdef size_t j
    for j in range(walk.count):
        found += load_u32(walk.ids + 4 * j) == propid
    return found


# Where a property was found: the row, its value and the payload that holds it.
cdef struct Place:
    const uint8_t* data
    TextSpan value
    uint32_t row


cdef void find_places(const Walk* walk, uint32_t propid, Place* places) noexcept nogil:
    cdef size_t message
    cdef size_t row
    cdef size_t j
    cdef const uint8_t* data
    for message in range(walk.payloads.count):
        data = payload_at(walk.payloads, message).data
        for row in range(<size_t>walk.messages[message], <size_t>walk.messages[message + 1]):
            for j in range(<size_t>walk.offsets[row], <size_t>walk.offsets[row + 1]):
                if load_u32(walk.ids + 4 * j) == propid:
                    places.data = data
                    places.value = walk.values[j]
                    places.row = <uint32_t>row
                    places += 1


cdef object gather_property(Batch batch, object propid):
    """Values and rows of one PROPID, in the order of the rows; a row that has it twice is there twice."""
    cdef Walk walk = walk_over(batch)
    cdef uint8_t kind = KIND_NONE
    cdef size_t count
    cdef size_t i
    cdef Buffer found
    cdef Buffer rows
    cdef const Place* places
    if isinstance(propid, int) and 0 <= propid <= 0xFFFFFFFF:
        kind = property_kind(propid)
    if kind == KIND_NONE:
        raise ValueError(f"{propid!r} is not a PROPID whose value has a known type")
    count = occurrences(&walk, propid)
    found = allocate(count * sizeof(Place))
    rows = allocate(4 * count)
    find_places(&walk, propid, <Place*>found.data)
    places = <const Place*>found.data
    for i in range(count):
        (<uint32_t*>rows.data)[i] = places[i].row
    row_numbers = np.frombuffer(rows, np.uint32, <Py_ssize_t>count)
    return PropertyColumn(values_at(batch, kind, places, count, row_numbers), row_numbers)


cdef object values_at(Batch batch, uint8_t kind, const Place* places, size_t count, object rows):
    if kind < KIND_CLSID:
        dtype = np.dtype(NUMBER_DTYPES[kind])
        return np.frombuffer(packed_values(places, count, dtype.itemsize), dtype, <Py_ssize_t>count)
    if kind == KIND_CLSID:
        return np.frombuffer(packed_values(places, count, 16), np.uint8, <Py_ssize_t>(16 * count)).reshape(-1, 16)
    if kind == KIND_LPWSTR:
        return span_column(batch, TextColumn, spans_at(places, count, 0, 2), rows)
    if kind == KIND_BLOB or kind == KIND_UI1_VECTOR:
        return span_column(batch, BytesColumn, spans_at(places, count, COUNT_SIZE, 0), rows)
    if kind == KIND_LPWSTR_VECTOR:
        return texts_at(batch, places, count, rows)
    return vectors_at(places, count, 4 if kind == KIND_UI4_VECTOR else 16)


cdef Buffer packed_values(const Place* places, size_t count, size_t width):
    cdef Buffer packed = allocate(count * width)
    cdef size_t i
    for i in range(count):
        memcpy(packed.data + i * width, places[i].data + places[i].value.offset, width)
    return packed


cdef Buffer spans_at(const Place* places, size_t count, uint32_t head, uint32_t tail):
    """Where the values lie without the count in front of them and the 0x0000 behind."""
    cdef Buffer spans = allocate(count * sizeof(TextSpan))
    cdef TextSpan* span = <TextSpan*>spans.data
    cdef size_t i
    for i in range(count):
        span[i].offset = places[i].value.offset + head
        span[i].length = places[i].value.length - head - tail
    return spans


cdef object span_column(Batch batch, object kind, Buffer spans, object rows):
    found = np.frombuffer(read_only(spans), SPAN_DTYPE, len(rows))
    return kind(found, batch.payloads, batch.rows_of_payloads(), rows)


cdef object vectors_at(const Place* places, size_t count, size_t width):
    cdef Buffer offsets = allocate(4 * (count + 1))
    cdef int32_t* end = <int32_t*>offsets.data
    cdef Buffer values
    cdef size_t i
    end[0] = 0
    for i in range(count):
        end[i + 1] = end[i] + <int32_t>((places[i].value.length - COUNT_SIZE) // width)
    values = allocate(<size_t>end[count] * width)
    for i in range(count):
        memcpy(
            values.data + <size_t>end[i] * width, places[i].data + places[i].value.offset + COUNT_SIZE,
            places[i].value.length - COUNT_SIZE,
        )
    if width == 4:
        elements = np.frombuffer(values, "<u4", end[count])
    else:
        elements = np.frombuffer(values, np.uint8, 16 * end[count]).reshape(-1, 16)
    return ListColumn(np.frombuffer(read_only(offsets), np.int32, <Py_ssize_t>count + 1), elements)


cdef object texts_at(Batch batch, const Place* places, size_t count, object rows):
    cdef Buffer offsets = allocate(4 * (count + 1))
    cdef int32_t* end = <int32_t*>offsets.data
    cdef Buffer spans
    cdef size_t room = 0
    cdef size_t i
    for i in range(count):
        room += (places[i].value.length - COUNT_SIZE) // 2
    spans = allocate(room * sizeof(TextSpan))
    end[0] = 0
    for i in range(count):
        end[i + 1] = end[i] + <int32_t>put_texts(
            places[i].data, places[i].value, <TextSpan*>spans.data + end[i]
        )
    ends = np.frombuffer(read_only(offsets), np.int32, <Py_ssize_t>count + 1)
    texts = span_column(batch, TextColumn, spans, np.repeat(rows, np.diff(ends)))
    return ListColumn(ends, texts)
