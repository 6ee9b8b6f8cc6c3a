"""What readers see of the properties in a batch, made from their PROPIDs and the spans of their values.

``derive_members`` makes the members of ``properties`` (name, type and the value in the member of its type),
``gather_property`` one property of the complete batch.
"""

from libc.stddef cimport size_t
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t
from libc.string cimport memcpy, memset

from msmqwire.columns._batch cimport Batch
from msmqwire.columns._buffer cimport Buffer, allocate, buffer_of_bytes
from msmqwire.columns._convert cimport TextSpan, bytes_of_spans
from msmqwire.columns.payload_table cimport PayloadTable, payload_at
from msmqwire.properties._lookup cimport (
    KIND_BLOB, KIND_CLSID_VECTOR, KIND_COUNT, KIND_LPWSTR, KIND_LPWSTR_VECTOR, KIND_NONE, KIND_UI1_VECTOR,
    KIND_UI4_VECTOR, property_kind,
)
from msmqwire.propvariant._codec cimport COUNT_SIZE, dtype_of, load_number, text_size
from msmqwire.wire.cursor cimport load_u32

import numpy as np

from msmqwire.columns.views import SPAN_DTYPE, BytesColumn, ListColumn, TextColumn
from msmqwire.mqcn.values import PropertyColumn
from msmqwire.properties.table import KINDS

cdef uint16_t[KIND_COUNT] TYPE_OF
TYPE_OF[:] = KINDS
cdef uint8_t[KIND_COUNT] MEMBER_OF
MEMBER_OF[:] = [
    0, IS_INT, IS_INT, IS_INT, IS_INT, IS_INT, IS_INT, IS_INT, IS_INT, IS_INT, IS_GUID, IS_BYTES, IS_BYTES, IS_INTS,
    IS_GUIDS, IS_TEXT, IS_TEXTS,
]


# The members of properties; those that are lists count their items.
cdef struct Members:
    const uint8_t* ids
    uint16_t* name
    uint16_t* type
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


cdef void name_members(const TextSpan* values, size_t count, Members* members) noexcept nogil:
    """Names, types and presence, and the numbers of items in lists (of texts: at most)."""
    cdef size_t j
    cdef size_t size
    cdef uint32_t propid
    cdef uint8_t kind
    for j in range(count):
        propid = load_u32(members.ids + 4 * j)
        kind = property_kind(propid)
        members.name[j] = <uint16_t>propid  # below PROPID_LIMIT, as its kind is known
        members.type[j] = TYPE_OF[kind]
        members.presence[j] = MEMBER_OF[kind]
        size = values[j].length - COUNT_SIZE
        if kind == KIND_UI4_VECTOR:
            members.int_count += size // 4
        elif kind == KIND_CLSID_VECTOR:
            members.guid_count += size // 16
        elif kind == KIND_LPWSTR_VECTOR:
            members.text_count += size // 2


cdef size_t put_texts(const uint8_t* data, TextSpan value, TextSpan* target) noexcept nogil:
    """Write the spans of the texts of a VT_LPWSTR|VT_VECTOR; returns how many there are, at most one for two bytes.

    The value was checked when it was decoded. Where it changed since, a text without U+0000 is the last.
    """
    cdef size_t at = value.offset + COUNT_SIZE
    cdef size_t end = value.offset + value.length
    cdef size_t written = 0
    cdef size_t size
    while at < end:
        size = text_size(data, end, at)
        if size == 0:
            break
        target[written].offset = <uint32_t>at
        target[written].length = <uint32_t>(size - 2)
        written += 1
        at += size
    return written


cdef void put_members(const uint8_t* data, TextSpan value, size_t j, Members* members) noexcept nogil:
    """The value of property ``j`` in the member of its type; zeros in the other members."""
    cdef uint8_t member = members.presence[j]
    cdef TextSpan nothing
    cdef const uint8_t* start = data + value.offset
    nothing.offset = 0
    nothing.length = 0
    members.int_[j] = load_number(property_kind(load_u32(members.ids + 4 * j)), start) if member == IS_INT else 0
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


cdef void put_all(
    const PayloadTable* payloads, const int32_t* messages, const int32_t* offsets, const TextSpan* values,
    Members* members,
) noexcept nogil:
    cdef size_t message
    cdef size_t j
    cdef const uint8_t* data
    members.int_offsets[0] = members.guid_offsets[0] = members.text_offsets[0] = 0
    for message in range(payloads.count):
        data = payload_at(payloads, message).data
        for j in range(<size_t>offsets[messages[message]], <size_t>offsets[messages[message + 1]]):
            put_members(data, values[j], j, members)


cdef int derive_members(Batch batch) except -1:
    """Make the members of ``properties`` that schema.py lists after ``id``."""
    cdef Members members
    cdef size_t count = batch.counts["properties[]"]
    cdef const TextSpan* values = <const TextSpan*>batch.data("properties[].value")
    memset(&members, 0, sizeof(members))
    members.ids = batch.data("properties[].id")
    members.name = <uint16_t*>batch.reserve("properties[].name", 2 * count)
    members.type = <uint16_t*>batch.reserve("properties[].type", 2 * count)
    members.presence = batch.reserve("properties[]?", count)
    name_members(values, count, &members)
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
    members.int_count = members.guid_count = members.text_count = 0
    put_all(
        &batch.payloads.table, <const int32_t*>batch.groups.data, <const int32_t*>batch.data("properties"), values,
        &members,
    )
    batch.counts["properties[].ints[]"] = members.int_count
    batch.counts["properties[].guids[]"] = members.guid_count
    batch.counts["properties[].texts[]"] = members.text_count
    return 0


# --- One property of a complete batch ---


cdef object gather_property(Batch batch, object propid):
    """Values and rows of one PROPID, in the order of the rows. A row that has the PROPID twice occurs twice."""
    cdef uint8_t kind = KIND_NONE
    cdef object count = batch.counts["properties[]"]
    if hasattr(propid, "__index__") and 0 <= propid <= 0xFFFFFFFF:
        kind = property_kind(propid)
    if kind == KIND_NONE:
        raise ValueError(f"{propid!r} is not a PROPID whose value has a known type")
    messages = batch.rows_of_payloads()[0]
    offsets = np.frombuffer(batch.buffers["properties"], np.int32, <Py_ssize_t>batch.length + 1)
    found = np.flatnonzero(np.frombuffer(batch.buffers["properties[].id"], np.uint32, count) == propid)
    spans = np.frombuffer(batch.buffers["properties[].value"], SPAN_DTYPE, count)[found]
    rows = (np.searchsorted(offsets, found, side="right") - 1).astype(np.uint32)
    payloads = (np.searchsorted(messages, rows, side="right") - 1).astype(np.uint32)
    return PropertyColumn(values_at(batch, kind, spans, payloads), rows)


cdef object values_at(Batch batch, uint8_t kind, object spans, object payloads):
    """The values at ``spans`` in these payloads."""
    cdef size_t count = <size_t>len(spans)
    cdef Buffer owners = buffer_of_bytes(payloads.tobytes())
    if kind == KIND_LPWSTR_VECTOR:
        return texts_at(batch, spans, payloads, <const uint32_t*>owners.data)
    if kind == KIND_LPWSTR:
        spans["length"] -= 2
        return TextColumn(spans, batch.payloads, (), payloads)
    if kind >= KIND_BLOB:
        spans["offset"] += COUNT_SIZE
        spans["length"] -= COUNT_SIZE
    if kind == KIND_BLOB or kind == KIND_UI1_VECTOR:
        return BytesColumn(spans, batch.payloads, (), payloads)
    places = buffer_of_bytes(spans.tobytes())
    ends, data = bytes_of_spans(
        <const TextSpan*>places.data, count, &batch.payloads.table, <const uint32_t*>owners.data
    )
    dtype = dtype_of(kind)
    values = np.frombuffer(data, dtype)
    return values if kind < KIND_BLOB else ListColumn(np.frombuffer(ends, np.int32) // dtype.itemsize, values)


cdef object texts_at(Batch batch, object spans, object payloads, const uint32_t* owners):
    """The texts of vectors of texts; ``owners`` points to the numbers of their payloads."""
    cdef size_t count = <size_t>len(spans)
    cdef Buffer places = buffer_of_bytes(spans.tobytes())
    cdef const TextSpan* place = <const TextSpan*>places.data
    cdef Buffer texts = allocate(<size_t>spans["length"].sum(dtype=np.uint64) // 2 * sizeof(TextSpan))
    cdef Buffer offsets = allocate(4 * (count + 1))
    cdef int32_t* end = <int32_t*>offsets.data
    cdef size_t i
    end[0] = 0
    for i in range(count):
        end[i + 1] = end[i] + <int32_t>put_texts(
            payload_at(&batch.payloads.table, owners[i]).data, place[i], <TextSpan*>texts.data + end[i]
        )
    ends = np.frombuffer(offsets, np.int32, <Py_ssize_t>count + 1)
    found = np.frombuffer(texts, SPAN_DTYPE, end[count])
    return ListColumn(ends, TextColumn(found, batch.payloads, (), np.repeat(payloads, np.diff(ends))))
