"""Hand columns to any Arrow consumer without pyarrow, and take arrays from any producer.

An export is a tree of ``ArrowNode``; two walks turn it into the two PyCapsules of the Arrow PyCapsule interface.
Every ``ArrowArray`` holds a reference to what owns its memory, so a consumer may move a child out and release the
rest, as the specification allows. Release callbacks may come from any thread and take the GIL themselves.
"""

cimport cython
from cpython.mem cimport PyMem_RawCalloc, PyMem_RawFree
from cpython.pycapsule cimport PyCapsule_GetPointer, PyCapsule_New
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.errno cimport ENOMEM
from libc.stddef cimport size_t
from libc.stdint cimport int64_t, uintptr_t
from libc.string cimport memset

from msmqwire.columns._buffer cimport Buffer

cdef Py_ssize_t MOST_SCHEMAS = 64  # which readers with ever other columns would keep


# no_gc: these cannot refer to themselves, and to look for garbage among them took a tenth of the time of small batches
@cython.no_gc
cdef class ArrowNode:
    """One array of an export: its type, its buffers and its children."""

    def __arrow_c_schema__(self):
        return schema_capsule(self)


@cython.no_gc
cdef class Owner:
    """What an ``ArrowArray`` keeps alive."""
    cdef ArrowNode node
    cdef object holder


cdef ArrowNode arrow_node(
    str name, str format, Py_ssize_t length, Buffer validity, Py_ssize_t null_count, list buffers
):
    """A node whose first buffer is its validity bitmap, None if nothing is null."""
    cdef ArrowNode node = ArrowNode.__new__(ArrowNode)
    node.name = name.encode()
    node.format = format.encode()
    node.length = length
    node.null_count = null_count
    node.buffers = [validity, *buffers]
    node.children = []
    return node


cdef void* calloc_or_raise(size_t count, size_t size) except NULL:
    cdef void* block = PyMem_RawCalloc(count if count else 1, size)
    if block == NULL:
        raise MemoryError("cannot allocate an Arrow structure")
    return block


cdef void release_schema(ArrowSchema* schema) noexcept with gil:
    cdef int64_t i
    for i in range(schema.n_children):
        if schema.children[i].release != NULL:
            schema.children[i].release(schema.children[i])
        PyMem_RawFree(schema.children[i])
    PyMem_RawFree(schema.children)
    if schema.dictionary != NULL:
        if schema.dictionary.release != NULL:
            schema.dictionary.release(schema.dictionary)
        PyMem_RawFree(schema.dictionary)
    Py_DECREF(<object>schema.private_data)
    schema.release = NULL


cdef int fill_schema(ArrowNode node, ArrowSchema* schema) except -1:
    cdef ArrowNode child
    cdef Py_ssize_t i
    schema.format = node.format
    schema.name = node.name
    schema.metadata = NULL
    if node.metadata is not None:
        schema.metadata = <const char*>node.metadata
    schema.flags = ARROW_FLAG_NULLABLE
    schema.dictionary = NULL
    schema.children = <ArrowSchema**>calloc_or_raise(<size_t>len(node.children), sizeof(void*))
    schema.n_children = 0
    # The node owns the strings
    Py_INCREF(node)
    schema.private_data = <void*>node
    schema.release = release_schema
    for i in range(len(node.children)):
        child = node.children[i]
        schema.children[i] = <ArrowSchema*>calloc_or_raise(1, sizeof(ArrowSchema))
        schema.n_children += 1
        fill_schema(child, schema.children[i])
    if node.dictionary is not None:
        schema.dictionary = <ArrowSchema*>calloc_or_raise(1, sizeof(ArrowSchema))
        fill_schema(node.dictionary, schema.dictionary)
    return 0


cdef void drop_schema_capsule(object capsule) noexcept:
    cdef ArrowSchema* schema = <ArrowSchema*>PyCapsule_GetPointer(capsule, "arrow_schema")
    if schema.release != NULL:
        schema.release(schema)
    PyMem_RawFree(schema)


cdef object schema_capsule(ArrowNode node):
    cdef ArrowSchema* schema = <ArrowSchema*>calloc_or_raise(1, sizeof(ArrowSchema))
    cdef object capsule = PyCapsule_New(schema, "arrow_schema", drop_schema_capsule)
    fill_schema(node, schema)
    return capsule


cdef void release_array(ArrowArray* array) noexcept with gil:
    cdef int64_t i
    for i in range(array.n_children):
        if array.children[i].release != NULL:
            array.children[i].release(array.children[i])
        PyMem_RawFree(array.children[i])
    PyMem_RawFree(array.children)
    if array.dictionary != NULL:
        if array.dictionary.release != NULL:
            array.dictionary.release(array.dictionary)
        PyMem_RawFree(array.dictionary)
    PyMem_RawFree(array.buffers)
    Py_DECREF(<object>array.private_data)
    array.release = NULL


cdef int fill_array(ArrowNode node, object holder, ArrowArray* array) except -1:
    cdef ArrowNode child
    cdef Buffer buffer
    cdef Py_ssize_t i
    array.length = node.length
    array.null_count = node.null_count
    array.offset = 0
    array.n_buffers = len(node.buffers)
    array.dictionary = NULL
    array.buffers = <const void**>calloc_or_raise(<size_t>len(node.buffers), sizeof(void*))
    for i in range(len(node.buffers)):
        buffer = node.buffers[i]
        array.buffers[i] = NULL if buffer is None else buffer.data
    array.children = <ArrowArray**>calloc_or_raise(<size_t>len(node.children), sizeof(void*))
    array.n_children = 0
    cdef Owner owner = Owner.__new__(Owner)
    owner.node, owner.holder = node, holder
    Py_INCREF(owner)
    array.private_data = <void*>owner
    array.release = release_array
    for i in range(len(node.children)):
        child = node.children[i]
        array.children[i] = <ArrowArray*>calloc_or_raise(1, sizeof(ArrowArray))
        array.n_children += 1
        fill_array(child, holder, array.children[i])
    if node.dictionary is not None:
        array.dictionary = <ArrowArray*>calloc_or_raise(1, sizeof(ArrowArray))
        fill_array(node.dictionary, holder, array.dictionary)
    return 0


cdef void drop_array_capsule(object capsule) noexcept:
    cdef ArrowArray* array = <ArrowArray*>PyCapsule_GetPointer(capsule, "arrow_array")
    if array.release != NULL:
        array.release(array)
    PyMem_RawFree(array)


cdef object array_capsule(ArrowNode node, object holder):
    """The array of a node; ``holder`` lives as long as any part of it is held."""
    cdef ArrowArray* array = <ArrowArray*>calloc_or_raise(1, sizeof(ArrowArray))
    cdef object capsule = PyCapsule_New(array, "arrow_array", drop_array_capsule)
    fill_array(node, holder, array)
    return capsule


@cython.no_gc
cdef class StreamSource:
    """What a stream of one array gives."""
    cdef ArrowNode node
    cdef object holder   # None once the array has been given


cdef int stream_schema(ArrowArrayStream* stream, ArrowSchema* schema) noexcept with gil:
    memset(schema, 0, sizeof(schema[0]))
    try:
        fill_schema((<StreamSource>stream.private_data).node, schema)
    except BaseException:
        if schema.release != NULL:
            schema.release(schema)
        return ENOMEM
    return 0


cdef int stream_next(ArrowArrayStream* stream, ArrowArray* array) noexcept with gil:
    cdef StreamSource source = <StreamSource>stream.private_data
    memset(array, 0, sizeof(array[0]))
    if source.holder is None:  # the end
        return 0
    try:
        fill_array(source.node, source.holder, array)
    except BaseException:
        if array.release != NULL:
            array.release(array)
        return ENOMEM
    source.holder = None
    return 0


cdef const char* stream_error(ArrowArrayStream* stream) noexcept:
    return "memory ran out"  # nothing else fails


cdef void release_stream(ArrowArrayStream* stream) noexcept with gil:
    Py_DECREF(<object>stream.private_data)
    stream.release = NULL


cdef void drop_stream_capsule(object capsule) noexcept:
    cdef ArrowArrayStream* stream = <ArrowArrayStream*>PyCapsule_GetPointer(capsule, "arrow_array_stream")
    if stream.release != NULL:
        stream.release(stream)
    PyMem_RawFree(stream)


cdef object stream_capsule(ArrowNode node, object holder):
    """A stream of the array of a node; ``holder`` lives until the array was taken and no part of it is held."""
    cdef ArrowArrayStream* stream = <ArrowArrayStream*>calloc_or_raise(1, sizeof(ArrowArrayStream))
    cdef object capsule = PyCapsule_New(stream, "arrow_array_stream", drop_stream_capsule)
    cdef StreamSource source = StreamSource.__new__(StreamSource)
    source.node, source.holder = node, holder
    Py_INCREF(source)
    stream.private_data = <void*>source
    stream.get_schema = stream_schema
    stream.get_next = stream_next
    stream.get_last_error = stream_error
    stream.release = release_stream
    return capsule


cdef object record_batch(ArrowNode node, object holder, dict schemas, tuple key):
    """The array of a node as a pyarrow.RecordBatch. All nodes of a ``key`` have its schema, which is imported once.

    Of the time that pyarrow takes for the capsules of a few rows, most is for the schema.
    """
    import pyarrow as pa

    cdef ArrowArray array
    schema = schemas.get(key)
    if schema is None:
        if len(schemas) >= MOST_SCHEMAS:
            schemas.clear()
        schema = schemas[key] = pa.schema(node)
    memset(&array, 0, sizeof(array))
    try:
        fill_array(node, holder, &array)
        return pa.RecordBatch._import_from_c(<uintptr_t>&array, schema)
    finally:
        if array.release != NULL:
            array.release(&array)
