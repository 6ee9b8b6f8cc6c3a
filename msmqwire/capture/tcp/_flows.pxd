"""The streams that are open: one for each direction of a connection, found by addresses and ports.

Open addressing over indices into one array, and a list of all flows by the time of their last segment. The
address of a flow changes only when one is added.
"""

from libc.stddef cimport size_t
from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t

from msmqwire.capture.frames._fragments cimport Fragments
from msmqwire.capture.frames._frame cimport MOST_UNREAD, Origin
from msmqwire.mqqb.framing cimport BASE_HEADER_SIZE
from msmqwire.wire.simd cimport wire_folded_product

cdef enum:
    NO_FLOW = 0xFFFFFFFF
    KEYS = 6
    RUN_SHOWN = 64  # bytes of a run that its row has


# Bit of Endpoints.ports: the stream of segments from before the first byte of the stream without this bit
cdef enum:
    EARLIER_BIT = 48


# Sender and receiver; of addresses of 4 bytes the rest is zero.
cdef struct Endpoints:
    uint64_t src[2]
    uint64_t dst[2]
    uint64_t ports  # the two as they are in the header, above them the IP version (16 bits), above it EARLIER_BIT


# Bytes that are ahead of their stream; they follow this struct.
cdef struct Piece:
    Piece* next
    uint64_t position  # in the stream
    size_t size
    Origin origin


# Pieces by position; they do not overlap.
cdef struct Pieces:
    Piece* first
    Piece* last
    size_t count
    size_t bytes


# The beginning of a BaseHeader, and where each of its bytes was.
cdef struct Head:
    uint8_t[BASE_HEADER_SIZE] data
    Origin[BASE_HEADER_SIZE] origins


# Bytes of a stream in which no packet begins, from the place where one should.
cdef struct Run:
    uint8_t[RUN_SHOWN] data  # the first of them
    uint64_t position    # in the stream
    uint64_t size
    uint64_t first_frame
    Origin last          # of its bytes, the one captured last


cdef struct Flow:
    Endpoints endpoints
    uint32_t hash
    uint32_t newer       # the flow whose last segment came next, or NO_FLOW
    uint32_t older
    uint32_t first       # sequence number of the stream's first byte
    uint64_t position    # in the stream, of the next byte in order
    uint64_t end         # as far as a FIN, or a segment that was cut, says that the stream has bytes
    Origin seen          # of the last segment
    uint32_t path        # the encapsulations around it
    bint joined          # the SYN of the stream was not captured
    bint ended           # by FIN or RST
    uint32_t syn_size    # bytes in the SYN that began the stream, captured or not
    bint renewing        # a SYN with another number came, which was not answered yet
    uint32_t next_first  # the first sequence number by that SYN
    uint32_t next_size   # bytes in it, captured or not
    bint next_ended      # it has FIN
    bint flushing        # what is missing is given up
    bint searching       # for the signature of a packet
    uint32_t skip        # bytes to pass over: they are the rest of a packet that lost some
    # The packet that is not complete: in `head` below BASE_HEADER_SIZE bytes, then in `data`, which is NULL when its
    # kind is not selected
    uint32_t filled
    uint32_t total
    uint32_t capacity
    Head* head
    Run* run             # NULL unless the search began where a packet should, and messages are selected
    uint8_t* data
    uint64_t first_frame
    Origin last          # of its bytes, the one captured last
    Pieces pieces        # bytes after some that are missing
    Pieces next_pieces   # the data of the SYN that was not answered yet, by their position in its stream


cdef struct FlowTable:
    Flow* flows
    size_t capacity
    uint32_t* slots      # index + 1, 0 for none; twice the capacity of them
    size_t count
    uint32_t unused      # first of a chain through `older`
    uint32_t newest
    uint32_t oldest
    uint64_t seed
    uint64_t[KEYS] keys  # of the hash, made from the seed
    size_t memory        # bytes that belong to flows


# What became of the attempts to connect. The names are OUTCOMES in schema.py.
cdef enum Outcome:
    SILENT
    REFUSED
    RESET
    ESTABLISHED
    CLOSED
    OUTCOME_COUNT  # how many there are


# Two ends; one tried to connect to the other.
cdef struct Connection:
    Endpoints ends       # the lower end first: both directions have the same
    bint reversed        # the end that tried is the second
    uint32_t outcome
    uint32_t next        # of the same bucket, or of the unused ones, or NO_FLOW
    uint32_t newer       # the connection whose last segment came next, or NO_FLOW
    uint32_t older
    uint32_t path        # the encapsulations around the last segment
    uint32_t attempts    # SYN segments
    uint32_t first       # sequence number of the first byte after the last of them
    bint timed           # the first segment
    int64_t time
    uint64_t frame
    Origin last          # of the segments, the one captured last


cdef struct ConnectionTable:
    Connection* entries
    uint32_t* buckets    # index + 1 of the first of each, 0 for none; as many as the capacity, a power of two
    size_t capacity
    size_t count
    size_t most          # 0: connections are not followed
    uint32_t unused      # first of a chain through `next`
    uint32_t newest
    uint32_t oldest


# What streams that are not read are. The names are UNREAD_PROTOCOLS in _unread.pyx.
cdef enum UnreadKind:
    NOTHING
    MSMQ
    SRMP
    PGM
    QMCOMM
    QMCOMM2
    QM2QM
    REMOTE_READ
    QMMGMT
    DSCOMM
    DSCOMM2


# Those that were counted
cdef struct UnreadStreams:
    size_t count
    uint64_t[MOST_UNREAD] fingerprints


# The fields of StreamStats in stats.py.
cdef struct StreamCounts:
    uint64_t streams
    uint64_t packets
    uint64_t unselected
    uint64_t bytes
    uint64_t framed
    uint64_t skipped
    uint64_t duplicate
    uint64_t held
    uint64_t missing
    uint64_t gaps
    uint64_t conflicts
    uint64_t uncompared
    uint64_t no_packet
    uint64_t unfinished
    uint64_t evictions


cdef struct Streams:
    FlowTable table
    uint32_t kinds        # of packets that give rows
    size_t most_ahead     # bytes of a flow that may wait for earlier ones
    size_t most_memory    # bytes of all flows
    size_t most_flows
    uint32_t waiting      # the flow whose bytes in order the rows had no space for, or NO_FLOW
    bint no_memory        # was left, once
    Fragments fragments   # incomplete IP datagrams
    ConnectionTable connections
    UnreadStreams unread
    StreamCounts counts


cdef inline const uint8_t* piece_data(const Piece* piece) noexcept nogil:
    return <const uint8_t*>(piece + 1)


cdef inline uint16_t family_of(const Endpoints* endpoints) noexcept nogil:
    """The address family."""
    return <uint16_t>(endpoints.ports >> 32)


cdef inline uint32_t hash_of(const uint64_t* keys, const Endpoints* endpoints) noexcept nogil:
    """By products with secret factors, which no capture can be made for: whatever it holds, its streams lie apart.

    Keys that are only added do not do this: addresses whose sum or rotation is the same collide under each of them.
    """
    cdef uint64_t word = wire_folded_product(endpoints.src[0] ^ keys[0], endpoints.dst[0] ^ keys[1])
    if endpoints.src[1] | endpoints.dst[1]:
        word ^= wire_folded_product(endpoints.src[1] ^ keys[2], endpoints.dst[1] ^ keys[3])
    return <uint32_t>wire_folded_product(word ^ keys[4], endpoints.ports ^ keys[5])


cdef inline bint same_endpoints(const Endpoints* one, const Endpoints* other) noexcept nogil:
    return not (
        one.ports ^ other.ports | one.src[0] ^ other.src[0] | one.dst[0] ^ other.dst[0]
        | one.src[1] ^ other.src[1] | one.dst[1] ^ other.dst[1]
    )


cdef inline Endpoints turned(const Endpoints* endpoints) noexcept nogil:
    """The same ends in the other direction."""
    cdef Endpoints other
    other.src[0], other.src[1] = endpoints.dst[0], endpoints.dst[1]
    other.dst[0], other.dst[1] = endpoints.src[0], endpoints.src[1]
    other.ports = (
        endpoints.ports >> 32 << 32 | (endpoints.ports & 0xFFFF) << 16 | (endpoints.ports >> 16 & 0xFFFF)
    )
    return other


cdef inline bint is_lower(const Endpoints* ends) noexcept nogil:
    """Return True if the sender is the lower end."""
    if ends.src[0] != ends.dst[0]:
        return ends.src[0] < ends.dst[0]
    if ends.src[1] != ends.dst[1]:
        return ends.src[1] < ends.dst[1]
    return (ends.ports & 0xFFFF) <= (ends.ports >> 16 & 0xFFFF)


cdef inline bint later(const Origin* one, const Origin* other) noexcept nogil:
    return one.frame > other.frame if one.file == other.file else one.file > other.file


cdef Flow* find_flow(FlowTable* table, const Endpoints* endpoints) noexcept nogil
cdef Flow* add_flow(FlowTable* table, const Endpoints* endpoints) noexcept nogil
cdef void move_to_front(FlowTable* table, Flow* flow) noexcept nogil
cdef void remove_flow(FlowTable* table, Flow* flow) noexcept nogil
cdef void start_table(FlowTable* table, uint64_t seed) noexcept nogil
cdef void free_table(FlowTable* table) noexcept nogil
cdef uint64_t count_probes(const FlowTable* table) noexcept nogil
cdef bint hold_piece(
    FlowTable* table, Pieces* pieces, uint64_t position, const uint8_t* data, size_t size, const Origin* origin,
    bint* differs, size_t* duplicate,
) noexcept nogil
cdef Piece* take_piece(FlowTable* table, Pieces* pieces) noexcept nogil
cdef void free_pieces(FlowTable* table, Pieces* pieces) noexcept nogil
cdef bint open_head(FlowTable* table, Flow* flow) noexcept nogil
cdef bint open_run(FlowTable* table, Flow* flow) noexcept nogil
cdef Run* release_run(FlowTable* table, Flow* flow) noexcept nogil
cdef bint grow_packet(FlowTable* table, Flow* flow, size_t needed) noexcept nogil
cdef uint8_t* release_packet(FlowTable* table, Flow* flow) noexcept nogil
