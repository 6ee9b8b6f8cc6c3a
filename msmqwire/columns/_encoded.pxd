"""Payloads that an encoder wrote, in memory that it can write again."""

from libc.stddef cimport size_t
from libc.stdint cimport int32_t, uint8_t

from msmqwire.columns._batch cimport Batch
from msmqwire.columns._buffer cimport Buffer
from msmqwire.columns._layout cimport Columns
from msmqwire.columns._payloads cimport Payloads
from msmqwire.columns.payload_table cimport PayloadTable


cdef class Encoded(Payloads):
    cdef Buffer data
    cdef Buffer offsets

    cdef int finish(self, size_t count) except -1


cdef class Encoder:
    """Encodes the rows of a batch; a protocol's subclass has these methods."""
    cdef Batch batch
    cdef Columns columns
    cdef const PayloadTable* payloads    # of the batch: texts and blobs stay there

    cdef size_t write(self, size_t count, uint8_t* data, int32_t* offsets) noexcept nogil
    cdef size_t largest(self, Batch batch) except? 0
    cdef object refusal(self, size_t row)


cdef size_t payload_bytes(Batch batch) except? 0
cdef object unusable(Batch batch, str field, size_t row)
cdef Encoded reserve_encoded(size_t count, size_t size, Encoded out)
cdef Payloads encode_all(object packets, object encode, dict needed, type kind, Encoded out, tuple options=*)
cdef int check_writer(object encode, Batch batch) except -1
