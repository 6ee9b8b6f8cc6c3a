"""A captured frame, the counts of frames, and the reasons why records cannot be read."""

from libc.stddef cimport size_t
from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from msmqwire.wire._address cimport ADDRESS_FAMILY_AT, ADDRESS_SIZE, address_size
from msmqwire.wire._transport cimport Transport

cdef enum:
    LARGEST_FRAME = 262144  # captured bytes, as in libpcap and Wireshark; a larger length is not plausible
    MOST_PROBLEMS = 100     # are described; all problems are counted
    MOST_UNREAD = 256       # streams that are not read and that are counted
    LINK_TYPES = 320        # link types that are counted one by one; larger numbers are counted together


# The texts are REASONS in _frame.pyx.
cdef enum Reason:
    SOUND
    RECORD_CUT
    FRAME_TOO_LARGE
    FRAME_OVER_ORIGINAL
    FRACTION
    BLOCK_LENGTH
    BLOCK_TOO_LARGE
    BLOCK_ENDS_DIFFER
    FRAME_OVER_BLOCK
    UNKNOWN_INTERFACE
    SECTION_ORDER
    LINK_CUT
    IP_VERSION
    IP_CUT
    IP_HEADER_LENGTH
    IP_TOTAL_LENGTH
    UDP_CUT
    UDP_LENGTH
    PAYLOAD_CUT
    FRAGMENT
    TCP_CUT
    TCP_HEADER_LENGTH
    IPX_CUT
    IPX_LENGTH
    GAP
    END_MISSING
    CONFLICT
    NO_PACKET
    NO_PACKET_JOINED
    UNFINISHED
    EVICTED
    INCOMPLETE
    FRAGMENT_DIFFERS
    UNCOMPARED
    UNANSWERED
    INTERFACE_LIMIT
    ENCAPSULATION_CUT


# Encapsulations that are recognized and not read. The texts are UNSUPPORTED_ENCAPSULATIONS in _frame.pyx.
cdef enum Unsupported:
    ESP
    ESP_IN_UDP
    IP_COMPRESSION
    L2TP
    GTP
    TEREDO
    LISP
    CAPWAP
    TZSP
    OPENVPN
    MACSEC
    PROVIDER_BACKBONE
    TRILL
    SERVICE_HEADER
    FABRIC_PATH
    GRE_ROUTING
    PPP_COMPRESSED
    PPP_MULTILINK
    WLAN_ENCRYPTED
    WLAN_FRAGMENT
    WLAN_AGGREGATE
    TOO_DEEP
    UNSUPPORTED_KINDS  # how many there are


cdef struct Problem:
    uint32_t file      # index among the files of the capture
    uint64_t offset    # of the record in the file
    uint64_t frame     # the number of the frame; 0 if the record does not hold one
    uint64_t needed
    uint64_t available
    uint32_t reason
    bint has_ports
    uint8_t[ADDRESS_SIZE] src  # as in columns; NO_ADDRESS if the ends are not known
    uint8_t[ADDRESS_SIZE] dst
    uint16_t src_port
    uint16_t dst_port


cdef struct Frame:
    const uint8_t* data
    size_t size        # captured bytes
    uint32_t original  # bytes before the snapshot length; known only where frames themselves are rows
    uint32_t link
    bint timed
    int64_t time
    uint64_t number    # in its file, from 1
    uint64_t offset    # of its record in the file


# Sender and receiver of a packet: where their addresses and ports are. Of a fragment ports and transport are unknown.
cdef struct Ends:
    uint16_t family
    Transport transport
    const uint8_t* src
    const uint8_t* dst
    const uint8_t* src_port  # NULL if the ports are not known
    const uint8_t* dst_port


cdef inline void set_addresses(Ends* ends, uint16_t family, const uint8_t* src) noexcept nogil:
    """Set the addresses of IP, where the receiver follows the sender."""
    ends.family = family
    ends.src = src
    ends.dst = src + address_size(family)
    ends.transport = Transport.UNKNOWN
    ends.src_port = ends.dst_port = NULL


cdef inline void set_ports(Ends* ends, Transport transport, const uint8_t* header) noexcept nogil:
    """Set the ports of UDP or TCP, with which the header begins."""
    ends.transport = transport
    ends.src_port = header
    ends.dst_port = header + 2


# Where bytes were captured.
cdef struct Origin:
    uint32_t file     # its number among the files of the capture
    bint timed
    uint64_t frame
    int64_t time
    uint64_t offset   # of the record in the file
    uint64_t first_frame  # the one with the first of the bytes, if they came in IP fragments; else the same


cdef inline Origin origin_of(const Frame* frame, uint32_t file) noexcept nogil:
    """The origin of bytes that are in a frame."""
    cdef Origin origin
    origin.file = file
    origin.timed = frame.timed
    origin.frame = origin.first_frame = frame.number
    origin.time = frame.time
    origin.offset = frame.offset
    return origin


# Fields of FrameCounts in stats.py.
cdef struct FrameCounts:
    uint64_t segments
    uint64_t fragments
    uint64_t other
    uint64_t unsupported
    uint64_t malformed
    uint64_t incomplete_datagrams
    uint64_t fragment_conflicts
    uint64_t invalid_times


# A stream that is not read: a number of UnreadKind, and a port.
cdef struct Unread:
    uint8_t kind
    uint16_t port


# Counts of the frames that a kernel read.
cdef struct Counts:
    uint32_t file      # the file that is being read
    uint64_t frames    # of it, from its beginning
    FrameCounts sums   # not yet added to CaptureStats, like all that follows
    uint64_t[LINK_TYPES] unsupported_links
    uint64_t[UNSUPPORTED_KINDS] unsupported_encapsulations
    uint64_t copies    # among the others
    size_t unread_count
    Unread[MOST_UNREAD] unread  # streams that were recognized
    size_t described
    Problem[MOST_PROBLEMS] problems


cdef inline Problem* describe(
    Counts* counts, uint32_t file, uint64_t offset, uint64_t frame, Reason reason, uint64_t needed, uint64_t available
) noexcept nogil:
    """Describe a problem, unless there are enough already: then NULL."""
    cdef Problem* problem
    if counts.described >= MOST_PROBLEMS:
        return NULL
    problem = &counts.problems[counts.described]
    memset(problem, 0, sizeof(problem[0]))
    problem.file = file
    problem.offset = offset
    problem.frame = frame
    problem.needed = needed
    problem.available = available
    problem.reason = <uint32_t>reason
    counts.described += 1
    return problem


cdef inline void name_ends(Problem* problem, const Ends* ends) noexcept nogil:
    """Note the ends of a problem that was described."""
    if problem == NULL:
        return
    memcpy(problem.src, ends.src, address_size(ends.family))
    memcpy(problem.dst, ends.dst, address_size(ends.family))
    memcpy(&problem.src[ADDRESS_FAMILY_AT], &ends.family, 2)
    memcpy(&problem.dst[ADDRESS_FAMILY_AT], &ends.family, 2)
    if ends.src_port != NULL:
        problem.has_ports = True
        memcpy(&problem.src_port, ends.src_port, 2)
        memcpy(&problem.dst_port, ends.dst_port, 2)


cdef inline Problem* malformed(
    Counts* counts, uint64_t offset, uint64_t frame, Reason reason, uint64_t needed, uint64_t available
) noexcept nogil:
    """Count and describe a record that cannot be read; ``frame``: its number if it holds a frame, else 0."""
    counts.sums.malformed += 1
    return describe(counts, counts.file, offset, frame, reason, needed, available)
