"""IP datagrams that came in parts: RFC 791, RFC 8200 4.5."""

from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint32_t, uint64_t

from msmqwire.capture.frames.frame cimport Counts, Frame

cdef enum:
    MOST_DATAGRAMS = 256     # that wait for parts at one time; the one waited for longest is given up for another
    LARGEST_DATAGRAM = 65536
    COVERAGE_WORDS = 128     # a bit for each 8 bytes of a datagram, the unit in which parts begin


# A part of a datagram. Its addresses, protocol and identification tell which.
cdef struct Part:
    const uint8_t* src
    const uint8_t* dst
    size_t address_size
    uint32_t protocol
    uint32_t identification
    const uint8_t* data
    size_t size
    size_t offset        # of the data in the datagram
    bint more            # others follow
    bint foreign         # it is the first one, and its ports are not ours


cdef struct Datagram:
    uint8_t[32] addresses
    uint32_t protocol
    uint32_t identification
    size_t address_size
    uint64_t[COVERAGE_WORDS] covered
    size_t units         # that are covered
    size_t total         # 0 while the last part is not there
    size_t end           # of what is there
    uint8_t* data
    size_t capacity
    bint foreign
    uint64_t first_frame  # the one with its first byte
    uint32_t file        # where the part is that came first
    uint64_t offset      # of its record
    Datagram* newer
    Datagram* older


# What a part did to its datagram.
cdef enum Assembly:
    HELD        # it waits for others
    WHOLE       # it was the last one missing
    IMPOSSIBLE  # it goes on behind the end, or no datagram is so long


cdef struct Fragments:
    Datagram* newest
    Datagram* oldest
    size_t count
    uint8_t* whole        # a datagram that was put together and not read yet, else NULL
    size_t size
    uint64_t first_frame  # with its first byte


cdef Assembly add_part(
    Fragments* fragments, const Part* part, const Frame* frame, Counts* counts, bint* agrees
) noexcept nogil
cdef void drop_datagram(Fragments* fragments, Datagram* datagram) noexcept nogil
cdef void free_fragments(Fragments* fragments) noexcept nogil
cdef void put_newest(Fragments* fragments, Datagram* datagram) noexcept nogil
cdef void give_up_datagrams(Fragments* fragments, size_t most, Counts* counts) noexcept nogil
