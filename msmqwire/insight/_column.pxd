from libc.stddef cimport size_t
from libc.stdint cimport int64_t, uint8_t

from msmqwire.columns._payloads cimport Payloads
from msmqwire.columns.payload_table cimport Span

cdef enum:
    INT64_SIZE = 8
    GUID_SIZE = 16
    TEXT_SIZE = 16       # of the words of a text
    SIZE_AT = 15         # the byte of its words with the size of a text, which are its bytes before it,
    LONG = 0xFF          # or that it is longer: in a record of a group its first word is then its number
    NO_TEXT = 0xFE       # or that it is null


cdef class Column:
    cdef readonly object type
    cdef readonly object array    # of the numbers
    cdef size_t count
    cdef const int64_t* numbers   # the value of each row; of a text its place in ``values``, of a GUID 0; or ABSENT
    cdef size_t step              # 0: all rows have the first number
    cdef const Span* values       # texts; NULL: the numbers are the values
    cdef const int64_t* words     # of each of these texts
    cdef size_t distinct
    cdef bint has_long
    cdef const uint8_t* guids     # NULL unless the values are GUIDs
    cdef object owner             # of the texts or the GUIDs

    cdef int hold_numbers(self, object numbers) except -1
    cdef int hold_texts(self, Payloads texts) except -1
