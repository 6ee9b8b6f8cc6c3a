"""Payloads in Arrow arrays and streams, by the C data interface.

Offsets and validity are copied, and the bytes are not. If the bytes of an array change all the same, values are wrong,
and no memory outside is read.
"""

from cpython.pycapsule cimport PyCapsule_GetPointer
from libc.stddef cimport size_t
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.string cimport memcpy, memset

from msmqwire.columns._arrow cimport ArrowArray, ArrowArrayStream, ArrowSchema
from msmqwire.columns._buffer cimport Buffer, allocate
from msmqwire.columns.payload_table cimport LARGEST_PAYLOAD, OFFSETS32, OFFSETS64, SPANS, Span, payload_at

# The formats of arrays that hold payloads, and the layout that each has
cdef dict BINARY_FORMATS = {"z": "z", "Z": "Z", "vz": "vz", "w": "w"}
cdef dict TEXT_FORMATS = {"u": "z", "U": "Z", "vu": "vz", "z": "z", "Z": "Z", "vz": "vz"}
# What pyarrow calls the types of other formats
cdef dict TYPE_NAMES = {
    "n": "null", "b": "bool", "c": "int8", "C": "uint8", "s": "int16", "S": "uint16", "i": "int32", "I": "uint32",
    "l": "int64", "L": "uint64", "e": "halffloat", "f": "float", "g": "double", "u": "string", "U": "large_string",
    "vu": "string_view", "z": "binary", "Z": "large_binary", "vz": "binary_view", "+l": "list", "+L": "large_list",
    "tdD": "date32[day]", "tdm": "date64[ms]",
}
# The formats of the indices of dictionaries, and their bytes
cdef dict INDEX_WIDTHS = {"c": 1, "C": 1, "s": 2, "S": 2, "i": 4, "I": 4, "l": 8, "L": 8}

ctypedef fused Offset:
    int32_t
    int64_t


cdef class ImportedArray:
    """The payloads of an ArrowArray that we own and release, or of several."""

    def __dealloc__(self):
        if self.array.release != NULL:
            self.array.release(&self.array)


cdef class ImportedSchema:
    """An ArrowSchema that we own and release."""
    cdef ArrowSchema schema

    def __dealloc__(self):
        if self.schema.release != NULL:
            self.schema.release(&self.schema)


cdef class ImportedStream:
    """An ArrowArrayStream that we own and release."""
    cdef ArrowArrayStream stream

    def __dealloc__(self):
        if self.stream.release != NULL:
            self.stream.release(&self.stream)


cdef ImportedArray imported_array(object producer, dict formats):
    """The payloads of an array; TypeError if it has none of the formats, ValueError if it was consumed before."""
    schema_capsule, array_capsule = producer.__arrow_c_array__()
    cdef const ArrowSchema* schema = <const ArrowSchema*>PyCapsule_GetPointer(schema_capsule, "arrow_schema")
    cdef ArrowArray* array = <ArrowArray*>PyCapsule_GetPointer(array_capsule, "arrow_array")
    check_unconsumed(schema.release != NULL, "schema")
    check_unconsumed(array.release != NULL, "array")
    return taken(array, form_of(schema, formats))


cdef ImportedArray imported_stream(object producer, dict formats):
    """The payloads of all arrays of a stream; TypeError and ValueError as for an array."""
    capsule = producer.__arrow_c_stream__()
    cdef ArrowArrayStream* given = <ArrowArrayStream*>PyCapsule_GetPointer(capsule, "arrow_array_stream")
    check_unconsumed(given.release != NULL, "stream")
    # Moved, so that a second consumer finds it consumed instead of at its end
    cdef ImportedStream owner = ImportedStream.__new__(ImportedStream)
    cdef ArrowArrayStream* stream = &owner.stream
    stream[0] = given[0]
    given.release = NULL
    cdef ImportedSchema described = ImportedSchema.__new__(ImportedSchema)
    cdef ArrowArray array
    cdef list chunks = []
    check_stream(stream, stream.get_schema(stream, &described.schema))
    check_unconsumed(described.schema.release != NULL, "schema")
    form = form_of(&described.schema, formats)
    while True:
        memset(&array, 0, sizeof(array))
        check_stream(stream, stream.get_next(stream, &array))
        if array.release == NULL:
            break
        chunks.append(taken(&array, form))
    return chunks[0] if len(chunks) == 1 else concatenate(chunks)


cdef int check_unconsumed(bint valid, str what) except -1:
    """Refuse a structure that another consumer has moved or released: its memory may be gone."""
    if not valid:
        raise ValueError(f"the Arrow {what} was consumed before: export it again")
    return 0


cdef int check_stream(ArrowArrayStream* stream, int status) except -1:
    cdef const char* message
    if status != 0:
        message = stream.get_last_error(stream)
        raise OSError(status, "the Arrow stream failed" if message == NULL else message.decode(errors="replace"))
    return 0


cdef tuple form_of(const ArrowSchema* schema, dict formats):
    """The layout of the values, and the format of the indices if the array is a dictionary, else None."""
    cdef str format = schema.format.decode()
    cdef str index = None
    if schema.dictionary != NULL:
        index, format = format, schema.dictionary.format.decode()
    kind, _, width = format.partition(":")
    if kind in formats and (index is None or index in INDEX_WIDTHS):
        return formats[kind] + width, index
    if format == "+s":
        raise TypeError("payloads are one column, and this is a table: give one of its columns")
    wanted = "binary, of any or of one size" if formats is BINARY_FORMATS else "strings"
    name = f"fixed_size_binary[{width}]" if kind == "w" else TYPE_NAMES.get(format, f"of the format {format!r}")
    raise TypeError(f"payloads must be Arrow {wanted}, not {name}")


cdef ImportedArray taken(ArrowArray* source, tuple form):
    """Move an array out of a producer's structure, as the C data interface allows."""
    cdef ImportedArray imported = ImportedArray.__new__(ImportedArray)
    cdef ImportedArray values
    layout, index = form
    imported.array = source[0]
    source.release = NULL
    if index is None:
        read_values(imported, layout)
        return imported
    if imported.array.dictionary == NULL:
        raise ValueError("the Arrow array lacks its dictionary")
    values = ImportedArray.__new__(ImportedArray)
    values.array = imported.array.dictionary[0]
    values.array.release = NULL  # ``imported`` owns the dictionary
    read_values(values, layout)
    imported.chunks = [values]
    copy_validity(imported)
    read_indices(imported, values, INDEX_WIDTHS[index], index.islower())
    return imported


cdef int read_values(ImportedArray imported, str layout) except -1:
    copy_validity(imported)
    imported.table.count = <size_t>imported.array.length
    if layout == "vz":
        return read_views(imported)
    if layout[0] == "w":
        return read_fixed(imported, int(layout[1:]))
    return read_offsets(imported, wide=layout == "Z")


cdef int read_indices(ImportedArray imported, ImportedArray values, size_t width, bint signed) except -1:
    """The values that the indices of a dictionary stand for."""
    cdef const ArrowArray* array = &imported.array
    cdef size_t count = <size_t>array.length
    cdef const uint8_t* index = NULL
    if count:
        index = <const uint8_t*>array.buffers[1] + width * <size_t>array.offset
    cdef Span* span = make_spans(imported, count)
    cdef uint64_t place
    cdef size_t i
    for i in range(count):
        span[i].data = NULL
        span[i].size = 0
        if is_null(imported, i):
            continue
        place = 0
        memcpy(&place, index + width * i, width)
        if place >= values.table.count or (signed and place >> (8 * width - 1)):
            raise ValueError(f"index {i} of the Arrow array is outside its dictionary")
        span[i] = payload_at(&values.table, <size_t>place)
        imported.nbytes += <Py_ssize_t>span[i].size
    return 0


cdef inline bint is_null(ImportedArray imported, size_t i) noexcept:
    cdef size_t bit = imported.table.validity_offset + i
    return imported.table.validity != NULL and not (imported.table.validity[bit >> 3] >> (bit & 7)) & 1


cdef void copy_validity(ImportedArray imported):
    """Copy the validity bitmap, from the byte that has its first bit on; none without nulls."""
    cdef ArrowArray* array = &imported.array
    cdef size_t first = <size_t>array.offset >> 3
    imported.table.validity_offset = <size_t>array.offset & 7
    if array.null_count == 0 or array.buffers[0] == NULL:
        return
    imported.validity = allocate(((<size_t>array.offset + <size_t>array.length + 7) >> 3) - first)
    memcpy(imported.validity.data, <const uint8_t*>array.buffers[0] + first, imported.validity.size)
    imported.table.validity = imported.validity.data


cdef int read_offsets(ImportedArray imported, bint wide) except -1:
    """Copy offsets of 4 or 8 bytes each: later reads must find the values that were checked."""
    cdef ArrowArray* array = &imported.array
    cdef size_t count = imported.table.count
    cdef const uint8_t* data = <const uint8_t*>array.buffers[2]
    cdef size_t width = 8 if wide else 4
    cdef Buffer copy
    imported.table.data = <const uint8_t*>b"" if data == NULL else data
    if count == 0:  # such an array may come without offsets
        imported.table.layout = SPANS
        return 0
    copy = imported.places = allocate((count + 1) * width)
    memcpy(copy.data, <const uint8_t*>array.buffers[1] + <size_t>array.offset * width, copy.size)
    if wide:
        imported.table.layout = OFFSETS64
        imported.table.offsets64 = <const int64_t*>copy.data
        imported.nbytes = check_ascending(imported.table.offsets64, count)
    else:
        imported.table.layout = OFFSETS32
        imported.table.offsets32 = <const int32_t*>copy.data
        imported.nbytes = check_ascending(imported.table.offsets32, count)
    return 0


cdef int read_fixed(ImportedArray imported, int64_t width) except -1:
    """Values of one size, one after the other."""
    cdef ArrowArray* array = &imported.array
    cdef const uint8_t* data = <const uint8_t*>array.buffers[1]
    cdef size_t count = imported.table.count
    cdef int64_t* offsets
    cdef size_t i
    if not 0 <= width <= LARGEST_PAYLOAD:
        raise ValueError(f"values of {width} bytes are no Arrow array")
    imported.places = allocate((count + 1) * sizeof(int64_t))
    offsets = <int64_t*>imported.places.data
    for i in range(count + 1):
        offsets[i] = width * (array.offset + <int64_t>i)
    imported.table.data = <const uint8_t*>b"" if data == NULL else data
    imported.table.layout = OFFSETS64
    imported.table.offsets64 = offsets
    imported.nbytes = <Py_ssize_t>(offsets[count] - offsets[0])
    return 0


cdef Py_ssize_t check_ascending(const Offset* offsets, size_t count) except -1:
    """The bytes between the first and the last offset; ValueError if one is below 0 or the one before it."""
    cdef bint falling = offsets[0] < 0
    cdef size_t i
    for i in range(count):
        falling |= offsets[i + 1] < offsets[i]
    if falling:
        raise ValueError("the offsets of the Arrow array do not rise from 0 or more")
    return <Py_ssize_t>(offsets[count] - offsets[0])


cdef int read_views(ImportedArray imported) except -1:
    """BinaryView: 16 bytes each, the value itself when it has at most 12 bytes, else a buffer and an offset."""
    cdef ArrowArray* array = &imported.array
    cdef size_t count = imported.table.count
    cdef Span* span = make_spans(imported, count)
    cdef const uint8_t* view = <const uint8_t*>array.buffers[1] + 16 * array.offset
    cdef int64_t data_buffers = array.n_buffers - 3  # after validity and views, and before the sizes of these
    cdef const int64_t* sizes = <const int64_t*>array.buffers[array.n_buffers - 1]
    cdef int32_t[4] words
    cdef size_t i
    for i in range(count):
        if is_null(imported, i):
            span[i].data = NULL
            span[i].size = 0
            continue
        memcpy(words, view + 16 * i, 16)
        span[i].size = <size_t>words[0]
        if 0 <= words[0] <= 12:
            span[i].data = view + 16 * i + 4
        elif (
            words[0] < 0 or words[3] < 0 or not 0 <= words[2] < data_buffers
            or <int64_t>words[3] + words[0] > sizes[words[2]]
        ):
            raise ValueError(f"value {i} of the Arrow array is outside its buffers")
        else:
            span[i].data = <const uint8_t*>array.buffers[2 + words[2]] + words[3]
        imported.nbytes += words[0]
    return 0


cdef Span* make_spans(ImportedArray imported, size_t count) except NULL:
    """Make the table one of spans, which the caller writes."""
    imported.places = allocate(count * sizeof(Span))
    imported.table.layout = SPANS
    imported.table.spans = <Span*>imported.places.data
    imported.table.count = count
    return <Span*>imported.places.data


cdef ImportedArray concatenate(list chunks):
    """The payloads of several arrays, which the result keeps alive."""
    cdef ImportedArray chain = ImportedArray.__new__(ImportedArray)
    cdef ImportedArray chunk
    cdef size_t count = 0
    cdef size_t i
    cdef Span* span
    for chunk in chunks:
        count += chunk.table.count
        chain.nbytes += chunk.nbytes
    chain.chunks = chunks
    span = make_spans(chain, count)
    for chunk in chunks:
        for i in range(chunk.table.count):
            span[0] = payload_at(&chunk.table, i)
            span += 1
    return chain
