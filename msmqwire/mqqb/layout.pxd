"""Which bytes of a packet each column is made of: one table for the decoder, which copies from packets to columns, and
for the encoder, which copies back."""

from libc.stddef cimport size_t
from libc.stdint cimport int64_t, uint8_t, uint32_t
from libc.string cimport memcpy

from msmqwire.columns.convert cimport TextSpan
from msmqwire.mqqb.packet cimport Packet
from msmqwire.wire.cursor cimport load_u32
from msmqwire.wire.format_name cimport FormatName

cdef enum Form:
    COPY_2          # so many bytes of a section
    COPY_4
    COPY_8
    COPY_16
    BITS_1          # some bits of four bytes, in a byte
    BITS_4          # the same in four
    SECONDS         # a number of seconds, as nanoseconds
    CONCLUDED       # a byte that the reader concluded
    SPAN            # a variable part
    QUEUE_NAME
    QUEUE_LIST      # the offsets of a list; its items are written apart

cdef enum:
    MOST_SOURCES = 80
    NANOSECONDS = 1000000000


cdef struct Source:
    Form form
    uint32_t place      # which Section, Conclusion, Part or Queue
    uint32_t offset     # in the section
    uint32_t shift
    uint32_t mask
    uint8_t* column


cdef struct Layout:
    size_t count
    Source[MOST_SOURCES] sources


cdef inline void put_column(const Source* source, const Packet* packets, size_t count, size_t row) noexcept nogil:
    """Write the rows from ``row`` on of one column: those of ``count`` packets."""
    cdef uint8_t* column = source.column
    cdef uint32_t place = source.place
    cdef uint32_t offset = source.offset
    cdef uint32_t bits
    cdef size_t i
    if source.form == COPY_4:
        for i in range(count):
            memcpy(column + 4 * (row + i), packets[i].sections[place] + offset, 4)
    elif source.form == COPY_16:
        for i in range(count):
            memcpy(column + 16 * (row + i), packets[i].sections[place] + offset, 16)
    elif source.form == BITS_1:
        for i in range(count):
            bits = load_u32(packets[i].sections[place] + offset)
            column[row + i] = <uint8_t>(bits >> source.shift & source.mask)
    elif source.form == SPAN:
        for i in range(count):
            (<TextSpan*>column)[row + i] = packets[i].parts[place]
    elif source.form == COPY_2:
        for i in range(count):
            memcpy(column + 2 * (row + i), packets[i].sections[place] + offset, 2)
    elif source.form == CONCLUDED:
        for i in range(count):
            column[row + i] = packets[i].concluded[place]
    elif source.form == QUEUE_NAME:
        for i in range(count):
            (<FormatName*>column)[row + i] = packets[i].queues[place]
    elif source.form == COPY_8:
        for i in range(count):
            memcpy(column + 8 * (row + i), packets[i].sections[place] + offset, 8)
    elif source.form == SECONDS:
        for i in range(count):
            (<int64_t*>column)[row + i] = <int64_t>load_u32(packets[i].sections[place] + offset) * NANOSECONDS
    elif source.form == BITS_4:
        for i in range(count):
            bits = load_u32(packets[i].sections[place] + offset)
            (<uint32_t*>column)[row + i] = bits >> source.shift & source.mask


cdef dict MESSAGE_SOURCES
cdef dict SESSION_SOURCES
cdef Source source_of(dict sources, str column)
cdef size_t width_of(const Source* source) noexcept
