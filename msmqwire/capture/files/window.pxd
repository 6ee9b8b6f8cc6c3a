"""A part of a file in memory, which the kernels of the file formats walk from record to record."""

from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint32_t, uint64_t

from msmqwire.wire.cursor cimport load_u32
from msmqwire.wire.simd cimport wire_bswap32, wire_prefetch

cdef enum:
    LARGEST_RECORD = 262144 + 65536  # the largest frame, with everything that a file format adds to it
    SECOND = 1000000000  # nanoseconds
    AHEAD = 1024  # bytes: far enough for memory to answer while the records between are read
    CACHE_LINE = 64


# Why a kernel stopped before the end of its window.
cdef enum Stop:
    MORE       # the record at the position continues after the window
    LOST       # no record can begin at the position
    SECTION    # pcapng: a section header is at the position
    INTERFACE  # pcapng: an interface description is at the position
    SKIP       # pcapng: a block larger than a window is at the position
    FOLLOWED   # pcap: the record at the position is followed by another, so the walk continues
    FULL       # the rows have no space for the frame at the position


cdef struct Window:
    const uint8_t* data
    size_t size
    size_t position
    size_t limit       # records that begin here or later are not read
    uint64_t offset    # of data[0] in the file


cdef inline uint32_t number(const uint8_t* source, bint swapped) noexcept nogil:
    """A number of a file; ``swapped``: it is big-endian."""
    return wire_bswap32(load_u32(source)) if swapped else load_u32(source)


cdef inline void fetch_ahead(const uint8_t* record) noexcept nogil:
    """Have memory fetched that the walk will come to."""
    wire_prefetch(record + AHEAD)
    wire_prefetch(record + AHEAD + CACHE_LINE)


cdef inline size_t reach(const Window* window, size_t header) noexcept nogil:
    """The first place in the window where no record may be read: too near to the end, or at the limit."""
    return min(window.size - header + 1, window.limit) if window.size >= header else 0
