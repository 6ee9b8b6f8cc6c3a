"""Payloads in Arrow arrays and streams."""

from msmqwire.columns._arrow cimport ArrowArray
from msmqwire.columns._buffer cimport Buffer
from msmqwire.columns.payload_table cimport PayloadTable


cdef class ImportedArray:
    cdef ArrowArray array
    cdef PayloadTable table
    cdef Py_ssize_t nbytes
    cdef Buffer validity
    cdef Buffer places   # offsets or spans
    cdef list chunks     # of a stream


cdef dict BINARY_FORMATS
cdef dict TEXT_FORMATS

cdef ImportedArray imported_array(object producer, dict formats)
cdef ImportedArray imported_stream(object producer, dict formats)
