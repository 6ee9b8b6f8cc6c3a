"""Arrow nodes of values that are not stored as Arrow stores them: GUIDs, enumerations, texts, faults and violations."""

from libc.stddef cimport size_t
from libc.stdint cimport int32_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

from msmqwire.columns._arrow cimport ArrowNode, arrow_node
from msmqwire.columns._buffer cimport Buffer, allocate, allocate_zeroed, never_freed
from msmqwire.columns._convert cimport (
    fault_fields, guid_texts, swapped_guids, texts_at, texts_of, texts_of_names, widened, zeros,
)
from msmqwire.wire._fault cimport Fault, needed_of, no_number
from msmqwire.wire._guid cimport GUID_SIZE
from msmqwire.wire.cursor cimport load_u16, load_u64
from msmqwire.wire.simd cimport wire_popcount

from msmqwire.columns.schema import FAULT_CODE

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
            never_freed(buffer)
    return node


cdef class KnownNames:
    """The dictionary of an enumeration, and the place of each number in it: 0xFF and 0 for a number without a name."""
    cdef tuple names
    cdef Py_ssize_t first   # place i has number ``first + i``; -1 if not
    cdef bytes places
    cdef bytes indices
    cdef ArrowNode dictionary

    def __cinit__(self, object type_, tuple numbers, tuple names):
        # Files may have one name; some consumers look a null up in a dictionary as well
        self.names = tuple(dict.fromkeys(names)) or ("",)
        places = bytearray(b"\xff" * (type_.null + 1))
        for number, name in zip(numbers, names, strict=True):
            places[number] = self.names.index(name)
        self.places, self.indices = bytes(places), bytes(places.replace(b"\xff", b"\0"))
        first = numbers[0] if numbers else 0
        self.first = first if numbers == tuple(range(first, first + len(self.names))) else -1
        self.dictionary = arrow_node("", "u", len(self.names), None, 0, list(texts_of(list(self.names))))


cdef dict KNOWN_NAMES = {}  # of the enumerations of tables
cdef dict FORMATS = {"int8": ("c", 1), "int16": ("s", 2), "int32": ("i", 4)}


cdef KnownNames known_names(object type_, tuple names):
    """The names of an enumeration, or those that a batch brings itself."""
    cdef KnownNames known = KNOWN_NAMES.get(type_)
    if known is None:
        known = KnownNames(type_, type_.numbers or tuple(range(len(names))), names)
        if type_.names:
            lasting_node(known.dictionary)
            KNOWN_NAMES[type_] = known
    return known


cdef Buffer places_of(const uint8_t* values, size_t width, size_t count, const uint8_t* places):
    """The places of numbers of 1 or 2 bytes."""
    cdef Buffer found = allocate(count)
    cdef uint8_t* place = found.data
    cdef size_t i
    if width == 1:
        for i in range(count):
            place[i] = places[values[i]]
    else:
        for i in range(count):
            place[i] = places[load_u16(values + 2 * i)]
    return found


cdef Buffer less(const uint8_t* values, size_t count, uint8_t number):
    """Subtract ``number`` from each value, none of which is smaller: eight at a time, without a borrow."""
    cdef Buffer found = allocate(count)
    cdef uint64_t numbers = <uint64_t>0x0101010101010101 * number
    cdef uint64_t eight
    cdef size_t i = 0
    while i + 8 <= count:
        eight = load_u64(values + i) - numbers
        memcpy(found.data + i, &eight, 8)
        i += 8
    while i < count:
        found.data[i] = values[i] - number
        i += 1
    return found


cdef ArrowNode names_node(
    str name, object type_, Buffer values, size_t count, Buffer validity, Py_ssize_t nulls, tuple names,
    bint dictionaries,
):
    """An enumeration; the numbers of rows that are not null have names."""
    cdef ArrowNode node
    cdef KnownNames known = known_names(type_, names)
    cdef Buffer places = values
    cdef size_t width = type_.dtype.itemsize
    if not dictionaries:
        places = places_of(values.data, width, count, known.places)
        texts = list(texts_of_names(places.data, count, known.names))
        return arrow_node(name, "u", <Py_ssize_t>count, validity, nulls, texts)
    format, size = FORMATS[type_.index]
    if nulls == <Py_ssize_t>count:
        places = zeros(count * <size_t>size)
    else:
        if nulls or width != 1 or known.first < 0:
            places = places_of(values.data, width, count, known.indices)
        elif known.first:
            places = less(values.data, count, <uint8_t>known.first)
        if size != 1:
            places = widened(places.data, count, <size_t>size)
    node = arrow_node(name, format, <Py_ssize_t>count, validity, nulls, [places])
    node.dictionary = known.dictionary
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
    """struct<code, field, offset, value, needed>, null where there is no fault: the sparse faults in all rows."""
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
        names_node("code", FAULT_CODE, codes, count, validity, nulls, FAULT_CODE.names, dictionaries),
        distinct_node("field", count, validity, nulls, places, texts_of(fields), dictionaries),
        arrow_node("offset", "I", length, validity, nulls, [offsets]),
        number_node("value", faults, fault_count, count, False),
        number_node("needed", faults, fault_count, count, True),
    ]
    return node


cdef ArrowNode number_node(str name, const Fault* faults, size_t fault_count, size_t count, bint needed):
    """A number of each fault, null where it has none."""
    cdef Buffer validity = zeros((count + 7) // 8)
    cdef Buffer numbers = zeros(count * sizeof(uint64_t))
    cdef size_t found = 0
    cdef uint64_t number
    cdef uint32_t row
    cdef size_t i
    if fault_count:
        validity = allocate_zeroed((count + 7) // 8)
        numbers = allocate_zeroed(count * sizeof(uint64_t))
        for i in range(fault_count):
            row = faults[i].row
            number = needed_of(faults + i) if needed else faults[i].value
            if number != no_number():
                validity.data[row >> 3] |= <uint8_t>(1 << (row & 7))
                (<uint64_t*>numbers.data)[row] = number
                found += 1
    nulls = <Py_ssize_t>(count - found)
    return arrow_node(name, "l", <Py_ssize_t>count, validity if nulls else None, nulls, [numbers])


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
