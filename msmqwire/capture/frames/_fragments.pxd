"""IP datagrams in fragments: RFC 791, RFC 8200 4.5."""

from libc.stddef cimport size_t
from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t

from msmqwire.capture.frames._frame cimport Counts, Ends, Frame, Origin
from msmqwire.wire._transport cimport Transport

cdef enum:
    MOST_DATAGRAMS = 256     # incomplete at one time; the oldest is given up for another
    LARGEST_DATAGRAM = 65536
    COVERAGE_WORDS = 128     # a bit for each 8 bytes of a datagram, the unit in which fragments begin
    MOST_ARRIVALS = 48       # fragments of a datagram that are remembered one by one
    MOST_REPEATS = 1024      # fragments of complete datagrams that are remembered


# A fragment. Its addresses and identification determine its datagram, and in IPv4 also its protocol. In IPv6 only the
# first fragment says the protocol; the Next Header of the others has no meaning (RFC 8200 4.5).
cdef struct Fragment:
    Ends ends
    uint32_t protocol
    uint32_t identification
    uint32_t path        # the encapsulations around it
    const uint8_t* data
    size_t size
    size_t offset        # of the data in the datagram
    bint more            # others follow
    bint foreign         # it is the first one, and shows that no payload is in the datagram


# A fragment that is in its datagram.
cdef struct Arrival:
    uint64_t fingerprint
    uint64_t frame
    uint32_t offset
    uint32_t size


cdef struct Datagram:
    uint8_t[32] addresses
    uint32_t protocol
    uint32_t identification
    uint32_t path
    uint16_t family
    uint64_t[COVERAGE_WORDS] covered
    size_t units         # that are covered
    size_t total         # 0 while the last fragment is missing
    size_t end           # of the bytes present
    uint8_t* data
    size_t capacity
    bint foreign
    bint repeats         # all its fragments repeat a datagram that was complete
    Origin first         # of the fragment captured first
    Arrival[MOST_ARRIVALS] arrivals
    size_t arrival_count


# The effect of a fragment on its datagram.
cdef enum Assembly:
    HELD        # others are missing
    COMPLETE    # it was the last one missing
    IMPOSSIBLE  # it extends beyond the end, or beyond the largest datagram


# A fragment of a datagram that was complete.
cdef struct Repeat:
    uint64_t fingerprint  # 0: none
    int64_t time


cdef struct Fragments:
    Datagram* open[MOST_DATAGRAMS]  # the incomplete ones, the oldest first
    size_t count
    Datagram* complete    # the datagram that is complete and not read yet, else NULL
    uint64_t lifetime     # nanoseconds after its first fragment in which a datagram may become complete
    Repeat[MOST_REPEATS] repeats  # by the low bits of the fingerprint


cdef inline Ends ends_of_datagram(const Datagram* datagram) noexcept nogil:
    cdef Ends ends
    ends.family = datagram.family
    ends.src = &datagram.addresses[0]
    ends.dst = &datagram.addresses[16]
    ends.transport = Transport.UNKNOWN
    ends.src_port = ends.dst_port = NULL
    return ends


cdef Assembly add_part(
    Fragments* fragments, const Fragment* part, const Frame* frame, uint64_t number, Counts* counts, bint* agrees
) noexcept nogil
cdef uint64_t frame_of(const Datagram* datagram, size_t place) noexcept nogil
cdef void free_datagram(Datagram* datagram) noexcept nogil
cdef void free_fragments(Fragments* fragments) noexcept nogil
cdef void put_newest(Fragments* fragments, Datagram* datagram) noexcept nogil
cdef void give_up_datagrams(Fragments* fragments, size_t most, Counts* counts) noexcept nogil
