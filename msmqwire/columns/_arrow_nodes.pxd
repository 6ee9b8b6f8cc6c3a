"""Arrow nodes of values that are not stored as Arrow stores them."""

from libc.stddef cimport size_t
from libc.stdint cimport uint32_t

from msmqwire.columns._arrow cimport ArrowNode
from msmqwire.columns._buffer cimport Buffer
from msmqwire.wire._fault cimport Fault


cdef ArrowNode guid_node(Buffer buffer, str name, size_t count, Buffer validity, Py_ssize_t nulls, str guid)
cdef ArrowNode names_node(
    str name, object type_, Buffer values, size_t count, Buffer validity, Py_ssize_t nulls, tuple names,
    bint dictionaries,
)
cdef ArrowNode distinct_node(
    str name, size_t count, Buffer validity, Py_ssize_t nulls, Buffer places, tuple texts, bint dictionaries
)
cdef ArrowNode fault_node(
    const Fault* faults, size_t fault_count, size_t count, tuple field_names, bint dictionaries
)
cdef ArrowNode violations_node(const uint32_t* bits, size_t count, Buffer validity, Py_ssize_t nulls, tuple names)
