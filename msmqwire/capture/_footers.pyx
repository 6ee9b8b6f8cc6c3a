"""Footers of Parquet files whose row groups move into another file.

A footer is a ``FileMetaData`` of parquet.thrift in Thrift's compact protocol. It is rewritten without a tree of its
values: one of a hundred columns has thousands, and the thread that writes the file waits for them.
"""

from libc.stddef cimport size_t
from libc.stdint cimport int64_t, uint8_t, uint64_t

# Types of the compact protocol; a boolean field has its value in the type
cdef enum CompactType:
    END
    TRUE
    FALSE
    BYTE
    INT16
    INT32
    INT64
    DOUBLE
    BINARY
    LIST
    SET
    MAP
    STRUCT

cdef enum:
    # Fields of FileMetaData
    ROWS = 3
    ROW_GROUPS = 4
    # The path of a field has six bits for its number and for those of the fields around it, in a RowGroup
    COLUMN = 1 << 6
    COLUMN_METADATA = (COLUMN | 3) << 6
    ORDINAL = 7
    LONG_LIST = 15
    LONGEST_VARINT = 10


cdef inline bint is_offset(int64_t path) noexcept:
    """Return True if a field of a RowGroup, or of ColumnChunk and ColumnMetaData in it, is an offset in the file."""
    return path in (
        5, COLUMN | 2, COLUMN | 4, COLUMN | 6, COLUMN_METADATA | 9, COLUMN_METADATA | 10, COLUMN_METADATA | 11,
        COLUMN_METADATA | 14,
    )


cdef bytes varint(uint64_t value):
    cdef uint8_t[LONGEST_VARINT] data
    cdef size_t size = 0
    while value >= 0x80:
        data[size] = <uint8_t>(value & 0x7F | 0x80)
        value >>= 7
        size += 1
    data[size] = <uint8_t>value
    return data[:size + 1]


cdef bytes integer(int64_t value):
    return varint(<uint64_t>value << 1 ^ <uint64_t>(value >> 63))


cdef class Footer:
    """The footer of a Parquet file.

    Parameters
    ----------
    data : bytes
        Without its size and the last magic number.
    """

    cdef bytes data
    cdef size_t at
    cdef list parts      # what is written of a row group; None outside of one
    cdef size_t copied   # the bytes before this place are in them
    cdef int64_t shift
    cdef int64_t ordinal

    def __init__(self, bytes data) -> None:
        self.data = data

    def row_group(self, int64_t shift, int64_t ordinal) -> tuple[int, bytes]:
        """The rows of a file of one row group, and the entry of it, which has another number and begins later."""
        cdef int64_t rows = 0
        cdef int number = 0
        cdef bytes entry = b""
        cdef int kind
        self.at, self.shift, self.ordinal = 0, shift, ordinal
        while (kind := self.next_field(&number)) != END:
            if number == ROWS:
                rows = self.read_integer()
            elif number == ROW_GROUPS:
                self.read_byte()  # a list of one
                self.parts, self.copied = [], self.at
                self.read(STRUCT, 0)
                self.parts.append(self.data[self.copied:self.at])
                entry, self.parts = b"".join(self.parts), None
            else:
                self.read(kind, 0)
        return rows, entry

    def with_row_groups(self, int64_t rows, list entries: list[bytes]) -> bytes:
        """The footer with other row groups, which have so many rows."""
        cdef size_t count = <size_t>len(entries)
        cdef list parts = []
        cdef size_t copied = 0
        cdef int number = 0
        cdef int kind
        self.at = 0
        while (kind := self.next_field(&number)) != END:
            if number in (ROWS, ROW_GROUPS):
                parts.append(self.data[copied:self.at])
            self.read(kind, 0)
            if number == ROWS:
                parts.append(integer(rows))
                copied = self.at
            elif number == ROW_GROUPS:
                parts.append(bytes((min(count, <size_t>LONG_LIST) << 4 | STRUCT,)))
                if count >= LONG_LIST:
                    parts.append(varint(count))
                parts += entries
                copied = self.at
        return b"".join([*parts, self.data[copied:]])

    cdef int read_byte(self) except -1:
        self.skip(1)
        return (<const uint8_t*>self.data)[self.at - 1]

    cdef int skip(self, uint64_t count) except -1:
        if count > <uint64_t>len(self.data) - self.at:
            raise ValueError("the footer of a Parquet file ends inside a value")
        self.at += <size_t>count
        return 0

    cdef uint64_t read_varint(self) except? 0xFFFFFFFF:
        cdef uint64_t value = 0
        cdef int shift = 0
        cdef int byte = 0x80
        while byte & 0x80 and shift < 64:
            byte = self.read_byte()
            value |= <uint64_t>(byte & 0x7F) << shift
            shift += 7
        return value

    cdef int64_t read_integer(self) except? -1:
        cdef uint64_t value = self.read_varint()
        return <int64_t>(value >> 1) ^ -<int64_t>(value & 1)

    cdef int next_field(self, int* number) except -1:
        """The type of the next field of a structure, and its number, given that of the field before; END after it."""
        cdef int head = self.read_byte()
        if head == END:
            return END
        number[0] = number[0] + (head >> 4) if head >> 4 else <int>self.read_integer()
        return head & 15

    cdef int read(self, int kind, int64_t path) except -1:
        """Read a value; of a row group what stays the same is copied, and what does not is written."""
        cdef size_t start = self.at
        cdef int number = 0
        cdef uint64_t count
        cdef int64_t value
        cdef int inner
        if kind in (INT16, INT32, INT64):
            value = self.read_integer()
            if self.parts is not None and (path == ORDINAL or (is_offset(path) and value)):  # 0: there is none
                value = self.ordinal if path == ORDINAL else value + self.shift
                self.parts += self.data[self.copied:start], integer(value)
                self.copied = self.at
        elif kind == STRUCT:
            while (inner := self.next_field(&number)) != END:
                self.read(inner, path << 6 | number)
        elif kind in (LIST, SET):
            inner = self.read_byte()
            count = self.read_varint() if inner >> 4 == LONG_LIST else <uint64_t>(inner >> 4)
            while count:
                self.read(inner & 15, path)
                count -= 1
        elif kind == BINARY:
            self.skip(self.read_varint())
        elif kind in (BYTE, DOUBLE):
            self.skip(1 if kind == BYTE else 8)
        elif kind not in (TRUE, FALSE):
            raise ValueError(f"the footer of a Parquet file has a value of type {kind}")
        return 0
