"""The Arrow C data interface: its structures, and the nodes from which ours are made."""

from libc.stdint cimport int64_t

from msmqwire.columns._buffer cimport Buffer


cdef extern from "msmqwire/columns/arrow_c_data.h" nogil:
    enum:
        ARROW_FLAG_NULLABLE

    struct ArrowSchema:
        const char* format
        const char* name
        const char* metadata
        int64_t flags
        int64_t n_children
        ArrowSchema** children
        ArrowSchema* dictionary
        void (*release)(ArrowSchema*) noexcept
        void* private_data

    struct ArrowArray:
        int64_t length
        int64_t null_count
        int64_t offset
        int64_t n_buffers
        int64_t n_children
        const void** buffers
        ArrowArray** children
        ArrowArray* dictionary
        void (*release)(ArrowArray*) noexcept
        void* private_data

    struct ArrowArrayStream:
        int (*get_schema)(ArrowArrayStream*, ArrowSchema*) noexcept
        int (*get_next)(ArrowArrayStream*, ArrowArray*) noexcept
        const char* (*get_last_error)(ArrowArrayStream*) noexcept
        void (*release)(ArrowArrayStream*) noexcept
        void* private_data


cdef class ArrowNode:
    cdef bytes format
    cdef bytes name
    cdef bytes metadata
    cdef int64_t length
    cdef int64_t null_count
    cdef list buffers
    cdef list children
    cdef ArrowNode dictionary    # of an array of indices, else None


cdef ArrowNode arrow_node(str name, str format, Py_ssize_t length, Buffer validity, Py_ssize_t null_count, list buffers)
cdef object schema_capsule(ArrowNode node)
cdef object array_capsule(ArrowNode node, object holder)
cdef object stream_capsule(ArrowNode node, object holder)
cdef object record_batch(ArrowNode node, object holder, dict schemas, tuple key)
