"""Payloads in Arrow arrays and streams, by the C data interface.

Offsets and validity are copied, and the bytes are not. If the bytes of an array change all the same, values are wrong,
and no memory outside is read.
"""

from cpython.pycapsule cimport PyCapsule_GetPointer
from libc.stddef cimport size_t
from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.string cimport memcpy, memset

from msmqwire.columns._arrow cimport ArrowArray, ArrowArrayStream, ArrowSchema, arrow_node, schema_capsule
from msmqwire.columns._buffer cimport Buffer, allocate
from msmqwire.columns.payload_table cimport OFFSETS32, OFFSETS64, SPANS, Span, payload_at

# The formats of arrays that hold payloads, and the layout that each has
cdef dict BINARY_FORMATS = {"z": "z", "Z": "Z", "vz": "vz"}
cdef dict TEXT_FORMATS = {"u": "z", "U": "Z", "vu": "vz", "z": "z", "Z": "Z", "vz": "vz"}

ctypedef fused Offset:
    int32_t
    int64_t


cdef class ImportedArray:
    """The payloads of an ArrowArray that we own and release, or of several."""

    def __dealloc__(self):
        if self.array.release != NULL:
            self.array.release(&self.array)


cdef ImportedArray imported_array(object producer, dict formats):
    """The payloads of an array; TypeError if it has none of the formats."""
    schema, capsule = producer.__arrow_c_array__()
    if (<const ArrowSchema*>PyCapsule_GetPointer(schema, "arrow_schema")).dictionary != NULL:
        schema, capsule = producer.__arrow_c_array__(values_schema(formats))
    cdef str layout = layout_of(<const ArrowSchema*>PyCapsule_GetPointer(schema, "arrow_schema"), formats)
    return taken(<ArrowArray*>PyCapsule_GetPointer(capsule, "arrow_array"), layout)


cdef ImportedArray imported_stream(object producer, dict formats):
    """The payloads of all arrays of a stream; TypeError if they have none of the formats."""
    capsule = producer.__arrow_c_stream__()
    cdef ArrowArrayStream* stream = <ArrowArrayStream*>PyCapsule_GetPointer(capsule, "arrow_array_stream")
    cdef ArrowSchema schema
    cdef ArrowArray array
    cdef list chunks = []
    check_stream(stream, stream.get_schema(stream, &schema))
    if schema.dictionary != NULL:
        schema.release(&schema)
        capsule = producer.__arrow_c_stream__(values_schema(formats))
        stream = <ArrowArrayStream*>PyCapsule_GetPointer(capsule, "arrow_array_stream")
        check_stream(stream, stream.get_schema(stream, &schema))
    try:
        layout = layout_of(&schema, formats)
    finally:
        schema.release(&schema)
    while True:
        memset(&array, 0, sizeof(array))
        check_stream(stream, stream.get_next(stream, &array))
        if array.release == NULL:
            break
        chunks.append(taken(&array, layout))
    return chunks[0] if len(chunks) == 1 else chained(chunks)


cdef int check_stream(ArrowArrayStream* stream, int status) except -1:
    cdef const char* message
    if status != 0:
        message = stream.get_last_error(stream)
        raise OSError(status, "the Arrow stream failed" if message == NULL else message.decode(errors="replace"))
    return 0


cdef str layout_of(const ArrowSchema* schema, dict formats):
    cdef str format = schema.format.decode()
    if format in formats:
        return formats[format]
    wanted = "Arrow Binary, LargeBinary or BinaryView" if formats is BINARY_FORMATS else "Arrow strings"
    raise TypeError(f"payloads must be {wanted}, not format {format!r}")


cdef object values_schema(dict formats):
    """The schema to request of a producer of dictionaries: the values instead of their indices."""
    return schema_capsule(arrow_node("", "u" if formats is TEXT_FORMATS else "z", 0, None, 0, []))


cdef ImportedArray taken(ArrowArray* source, str layout):
    """Move an array out of a producer's structure, as the C data interface allows."""
    cdef ImportedArray imported = ImportedArray.__new__(ImportedArray)
    imported.array = source[0]
    source.release = NULL
    copy_validity(imported)
    imported.table.count = <size_t>imported.array.length
    if layout == "vz":
        read_views(imported)
    else:
        read_offsets(imported, wide=layout == "Z")
    return imported


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
        imported.nbytes = rising(imported.table.offsets64, count)
    else:
        imported.table.layout = OFFSETS32
        imported.table.offsets32 = <const int32_t*>copy.data
        imported.nbytes = rising(imported.table.offsets32, count)
    return 0


cdef Py_ssize_t rising(const Offset* offsets, size_t count) except -1:
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
    cdef size_t i, bit
    for i in range(count):
        bit = imported.table.validity_offset + i
        if imported.validity is not None and not (imported.validity.data[bit >> 3] >> (bit & 7)) & 1:
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


cdef ImportedArray chained(list chunks):
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
