"""Which bytes each column is made of: one line a column drives decoders, encoders and single packets.

A kernel describes every row in a structure of its own, a *record*, which begins with ``presence`` (u32), ``violations``
(u32) and an array of *sections*: addresses from which fixed fields are loaded. A section that a row lacks points to
zeros, so that loading needs no test. The values of parts that a row lacks are zeros, too.
"""

from libc.stddef cimport size_t
from libc.stdint cimport int32_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from msmqwire.columns._batch cimport Batch
from msmqwire.wire._fault cimport Fault

cdef enum Form:
    COPY        # the bytes at ``offset`` of a section
    BITS        # some bits of the four bytes there
    SECONDS     # the four bytes there, seconds, as nanoseconds
    VALUE       # a value that stands in the record
    LIST        # a list: its count (u32) in the record, then, where ``offset`` is not 0, the address of its items
    LIST_END    # a list whose items the reader writes: their running number (u32) in the record

cdef enum:
    LARGEST_BLOCK = 64  # records that are written to columns, or loaded from them, at a time
    MOST_COLUMNS = 96
    MOST_LISTS = 4
    MOST_MEMBERS = 4
    MOST_FIELDS = 96    # that faults of a table can name
    CUT_SIZE = 64       # bytes of the copy of a truncated header, from which columns are decoded
    NANOSECONDS = 1000000000


cdef struct ColumnCopy:
    Form form
    uint32_t place      # in the record: of the address of the section, of the value, of the count
    uint32_t offset     # in the section; of the address of a list's items in the record
    uint32_t shift
    uint32_t mask
    uint32_t list       # which of ``Columns.lists``
    uint32_t width      # bytes of a value in the column
    uint32_t presence   # a record without this bit has only zeros for the column; 0: it may have any value
    uint8_t absent      # every byte of the column in a row without a value: 0, of enumerations 0xFF
    uint8_t filled
    uint8_t* column
    size_t known        # rows at the start of the column, perhaps of an earlier decoding, whose bytes are ``filled``


# The items of a list column: one buffer for each member
cdef struct Items:
    size_t count                    # written so far
    size_t smallest                 # bytes of payload that an item takes at least; 0: items are written by ``finish``
    size_t member_count             # 0: the column is not requested
    uint8_t* members[MOST_MEMBERS]
    size_t widths[MOST_MEMBERS]


# The header that a fault names: its section in a record, 0 if it has none, and its bit of presence
cdef struct HeaderPlace:
    uint32_t section
    uint32_t presence


# Where the requested columns are, and how much has been written
cdef struct Columns:
    size_t stride       # bytes from a record to the next
    size_t rows
    size_t count
    Items lists[MOST_LISTS]
    int32_t* groups     # end of the rows of each payload; NULL where row i is of payload i
    Fault* faults
    size_t fault_count
    const HeaderPlace* headers  # by the fields of faults
    ColumnCopy sources[MOST_COLUMNS]  # ``count`` of them; the others are neither cleared nor copied


cdef inline void clear_columns(Columns* columns) noexcept:
    """No columns, and nothing written."""
    memset(columns, 0, <size_t>(<uint8_t*>columns.sources - <uint8_t*>columns))


cdef inline void clear_counts(Columns* columns) noexcept:
    """The same columns with nothing written."""
    cdef size_t i
    columns.rows = 0
    columns.fault_count = 0
    for i in range(<size_t>MOST_LISTS):
        columns.lists[i].count = 0


cdef class ColumnLayout:
    """Where the values of one column are in a record, and how they are copied."""
    cdef ColumnCopy source
    cdef tuple members      # of the items of a list: path and bytes of a value for each member
    cdef size_t smallest


cdef class Layout:
    """The layout of one table."""
    cdef readonly object table
    cdef dict lines         # column -> ColumnLayout
    cdef tuple lists        # of list columns: name, path of the items, which of ``Columns.lists``
    cdef size_t stride
    cdef size_t smallest_row
    cdef HeaderPlace[MOST_FIELDS] headers

    cdef int find_headers(self, dict sections) except -1
    cdef ColumnCopy source(self, str column) except *
    cdef int reserve(self, Batch batch, Columns* columns) except -1
    cdef list attach(self, Batch batch, object names, Columns* columns)


cdef inline size_t place_of(const void* record, const void* field) noexcept:
    """The offset of a field in a record."""
    return <size_t>(<const uint8_t*>field - <const uint8_t*>record)


cdef inline void put_fault(Columns* columns, const Fault* fault, size_t row) noexcept nogil:
    columns.faults[columns.fault_count] = fault[0]
    columns.faults[columns.fault_count].row = <uint32_t>row
    columns.fault_count += 1


cdef void keep_header(
    const Columns* columns, void* record, const Fault* fault, const uint8_t* data, uint8_t* copy
) noexcept nogil
cdef int find_columns(Batch batch, void* found, size_t size) except -1
cdef bint same_rows(Layout layout, Batch one, Batch other, str column) except -1
cdef void put_rows(Columns* columns, const void* records, size_t count) noexcept nogil
cdef void repeat_row(Columns* columns, const void* record, size_t count) noexcept nogil
cdef inline uint8_t* field_of(const ColumnCopy* source, const void* record) noexcept nogil:
    """Where the field of a column is; it can be written when the record's sections can."""
    return (<uint8_t* const*>(<const uint8_t*>record + source.place))[0] + source.offset


cdef uint64_t largest_number(const ColumnCopy* source) noexcept nogil
cdef uint64_t number_of(const ColumnCopy* source, const void* record) noexcept nogil
cdef void store_number(const ColumnCopy* source, void* record, uint64_t number) noexcept nogil
cdef void load_rows(const Columns* columns, size_t row, size_t count, void* records) noexcept nogil
