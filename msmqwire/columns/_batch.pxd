"""The owner of a table's column buffers."""

from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint32_t

from msmqwire.columns._arrow cimport ArrowNode
from msmqwire.columns._buffer cimport Buffer
from msmqwire.columns._convert cimport Validity
from msmqwire.columns._payloads cimport Payloads
from msmqwire.wire._fault cimport Fault
from msmqwire.wire._transport cimport Transports

cdef enum:
    DECODED = 1  # the bit of a presence byte that every protocol gives to a row that was decoded


cdef class ArrowForm


cdef class Batch:
    cdef readonly object table
    cdef readonly tuple columns
    cdef readonly Payloads payloads
    cdef dict buffers        # path of a column -> Buffer
    cdef dict counts         # path of a list's items -> how many there are
    cdef dict own_names      # path of an enumeration -> names that this batch brings itself
    cdef frozenset selected
    cdef Buffer groups       # int32 offsets of the rows of each payload; None where row i is of payload i
    cdef object decoder      # the Decoder that knows where the columns are in ``buffers``; None until they are reserved
    cdef size_t length
    cdef size_t fault_count
    cdef size_t holders      # Arrow consumers and encoders: while there are any it is not overwritten
    cdef bint writing        # a kernel is at work, perhaps without the GIL
    cdef size_t readers      # threads that read the payloads, perhaps without the GIL
    cdef bint forgotten      # the payloads were released
    cdef Transports transports  # of the payloads
    cdef object contents     # the Contents of the columns that were taken; None before the first is

    cdef int hold_payloads(self, Payloads payloads) except -1
    cdef int readable(self) except -1
    cdef Batch head(self, size_t rows)
    cdef int derive(self, str column) except -1
    cdef int derive_presence(self, uint32_t bit) except -1
    cdef Buffer payloads_of_rows(self)
    cdef tuple rows_of_payloads(self)
    cdef object text_table(self, str purpose)
    cdef bint wants(self, str column)
    cdef uint8_t* reserve(self, str path, size_t size) except NULL
    cdef uint8_t* reserve_column(self, str column, size_t size) except? NULL
    cdef uint8_t* data(self, str path) noexcept
    cdef object column(self, str name)
    cdef dict names_by_number(self, str name)
    cdef Fault* reserve_faults(self) except NULL
    cdef ArrowNode arrow_tree(self, ArrowForm form)
    cdef tuple validity_of_column(self, ArrowForm form, size_t index, uint32_t bit)


cdef class ArrowForm:
    cdef Batch batch
    cdef str guid
    cdef bint dictionaries
    cdef Validity validity


cdef class Hold:
    cdef Batch batch


cdef class Reading:
    cdef Batch batch


cdef Batch prepare(object table, Payloads payloads, object columns, Batch out, type kind=*)
cdef object read_only(Buffer buffer)
