"""Arrow nodes of values that are not stored as Arrow stores them: GUIDs, enumerations, texts, faults and violations."""

from libc.stddef cimport size_t
from libc.stdint cimport int32_t, uint8_t, uint32_t

from msmqwire.columns._arrow cimport ArrowNode, arrow_node
from msmqwire.columns._buffer cimport Buffer, allocate, allocate_zeroed, buffer_of_bytes, lasting
from msmqwire.columns._convert cimport (
    fault_fields, guid_texts, largest_of, swapped_guids, texts_at, texts_of, texts_of_names, widened, zeros,
)
from msmqwire.wire._fault cimport Fault
from msmqwire.wire._guid cimport GUID_SIZE
from msmqwire.wire.simd cimport wire_popcount

from msmqwire.columns.schema import FAULT_CODE
from msmqwire.wire.codes import FAULT_NAMES

# arrow.uuid is an extension type: its name travels in the metadata of the field, in the C data interface's encoding
cdef bytes UUID_METADATA = b"".join(
    (
        (2).to_bytes(4, "little"),
        *(
            len(text).to_bytes(4, "little") + text
            for text in (b"ARROW:extension:name", b"arrow.uuid", b"ARROW:extension:metadata", b"")
        ),
    )
)


cdef ArrowNode guid_node(Buffer buffer, str name, size_t count, Buffer validity, Py_ssize_t nulls, str guid):
    cdef ArrowNode node
    cdef Py_ssize_t length = <Py_ssize_t>count
    if guid == "text":
        texts = guid_texts(buffer.data, count, NULL if validity is None else validity.data)
        return arrow_node(name, "u", length, validity, nulls, list(texts))
    guids = zeros(count * GUID_SIZE) if nulls == length else swapped_guids(buffer.data, count)
    node = arrow_node(name, "w:16", length, validity, nulls, [guids])
    if guid == "uuid":
        node.metadata = UUID_METADATA
    return node


cdef ArrowNode lasting_node(ArrowNode node):
    """A node that is never freed."""
    cdef Buffer buffer
    for buffer in node.buffers:
        if buffer is not None:
            lasting(buffer)
    return node


cdef dict KNOWN_NAMES = {}  # the dictionaries of the enumerations of tables


cdef ArrowNode names_node(
    str name, object type_, Buffer values, size_t count, Buffer validity, Py_ssize_t nulls, tuple names,
    bint dictionaries,
):
    """An enumeration: the names that small numbers stand for; a number without a name has empty text."""
    cdef ArrowNode node
    cdef Buffer indices
    cdef str index
    cdef size_t known
    cdef uint8_t unnamed
    cdef size_t i
    if not dictionaries:
        texts = list(texts_of_names(values.data, count, names))
        return arrow_node(name, "u", <Py_ssize_t>count, validity, nulls, texts)
    if not type_.names and len(set(names)) < len(names):  # files of one name
        distinct = tuple(dict.fromkeys(names))
        places = bytes([distinct.index(each) for each in names]).ljust(256, b"\xff")
        values, names = buffer_of_bytes(values.data[:count].translate(places)), distinct
    indices = values
    known = <size_t>len(names)
    if largest_of(values.data, count) >= known:
        if "" not in names:
            names = (*names, "")
        unnamed = <uint8_t>names.index("")  # names of a dictionary are distinct
        indices = allocate(count)
        for i in range(count):
            indices.data[i] = values.data[i] if values.data[i] < known else unnamed
    index = type_.index
    if index == "int8":
        index = "c"
    elif index == "int16":
        index, indices = "s", widened(indices.data, count, 2)
    else:
        index, indices = "i", widened(indices.data, count, 4)
    node = arrow_node(name, index, <Py_ssize_t>count, validity, nulls, [indices])
    if type_.names:
        node.dictionary = KNOWN_NAMES.get(names)
    if node.dictionary is None:
        node.dictionary = arrow_node("", "u", len(names), None, 0, list(texts_of(list(names))))
        if type_.names:
            KNOWN_NAMES[names] = lasting_node(node.dictionary)
    return node


cdef ArrowNode distinct_node(
    str name, size_t count, Buffer validity, Py_ssize_t nulls, Buffer places, tuple texts, bint dictionaries
):
    """Texts by their places among the distinct ones."""
    cdef ArrowNode node
    cdef Buffer offsets = texts[0]
    cdef Buffer text = texts[1]
    cdef Py_ssize_t length = <Py_ssize_t>count
    cdef Py_ssize_t distinct = <Py_ssize_t>(offsets.size // sizeof(int32_t)) - 1
    if not dictionaries:
        if not distinct:
            return arrow_node(name, "u", length, validity, nulls, [zeros((count + 1) * sizeof(int32_t)), text])
        texts = texts_at(<const uint32_t*>places.data, count, <const int32_t*>offsets.data, text.data)
        return arrow_node(name, "u", length, validity, nulls, list(texts))
    node = arrow_node(name, "i", length, validity, nulls, [places])
    node.dictionary = arrow_node("", "u", distinct, None, 0, [offsets, text])
    return node


cdef ArrowNode fault_node(
    const Fault* faults, size_t fault_count, size_t count, tuple field_names, bint dictionaries
):
    """struct<code, field, offset>, null where there is no fault: the sparse faults spread over all rows."""
    cdef Py_ssize_t length = <Py_ssize_t>count
    cdef Py_ssize_t nulls = <Py_ssize_t>(count - fault_count)
    cdef Buffer validity = zeros((count + 7) // 8)
    cdef Buffer codes = zeros(count)
    cdef Buffer places = zeros(count * sizeof(uint32_t))
    cdef Buffer offsets = places
    cdef list fields = []
    cdef uint32_t row
    cdef size_t i
    if fault_count:
        validity = allocate_zeroed((count + 7) // 8)
        codes = allocate_zeroed(count)
        offsets = allocate_zeroed(count * sizeof(uint32_t))
        for i in range(fault_count):
            row = faults[i].row
            validity.data[row >> 3] |= <uint8_t>(1 << (row & 7))
            codes.data[row] = <uint8_t>faults[i].code
            (<uint32_t*>offsets.data)[row] = <uint32_t>faults[i].offset
        places, fields = fault_fields(faults, fault_count, count, field_names)
    cdef ArrowNode node = arrow_node("fault", "+s", length, validity, nulls, [])
    node.children = [
        names_node("code", FAULT_CODE, codes, count, validity, nulls, FAULT_NAMES, dictionaries),
        distinct_node("field", count, validity, nulls, places, texts_of(fields), dictionaries),
        arrow_node("offset", "I", length, validity, nulls, [offsets]),
    ]
    return node


cdef ArrowNode violations_node(const uint32_t* bits, size_t count, Buffer validity, Py_ssize_t nulls, tuple names):
    """list<string>: the names of the violations whose bits are set in each row."""
    cdef Buffer offsets
    cdef int32_t* end
    cdef Buffer values
    cdef size_t i
    cdef int32_t written = 0
    cdef uint32_t left = 0
    cdef uint32_t bit
    cdef ArrowNode node
    for i in range(count):
        left |= bits[i]
    if left:
        offsets = allocate((count + 1) * sizeof(int32_t))
        end = <int32_t*>offsets.data
        end[0] = 0
        for i in range(count):
            end[i + 1] = end[i] + <int32_t>wire_popcount(bits[i])
        values = allocate(<size_t>end[count])
        for i in range(count):
            left = bits[i]
            bit = 0
            while left:
                if left & 1:
                    values.data[written] = <uint8_t>bit
                    written += 1
                left >>= 1
                bit += 1
    else:
        offsets = zeros((count + 1) * sizeof(int32_t))
        values = zeros(0)
    node = arrow_node("violations", "+l", <Py_ssize_t>count, validity, nulls, [offsets])
    texts = texts_of_names(values.data, <size_t>written, names)
    node.children.append(arrow_node("item", "u", written, None, 0, list(texts)))
    return node
