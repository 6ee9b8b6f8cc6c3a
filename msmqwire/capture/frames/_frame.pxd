"""A captured frame, the counts of frames, and the reasons why records cannot be read."""

from libc.stddef cimport size_t
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

cdef enum:
    LARGEST_FRAME = 262144  # captured bytes, as in libpcap and Wireshark; a larger length is not plausible
    MOST_PROBLEMS = 100     # are described; all problems are counted
    LINK_TYPES = 320        # link types that are counted one by one; those of larger numbers are counted together


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
    CONFLICT
    NO_PACKET
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
    AUTHENTICATION_HEADER
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
    uint64_t needed
    uint64_t available
    uint32_t reason


cdef struct Frame:
    const uint8_t* data
    size_t size        # captured bytes
    uint32_t link
    bint timed
    int64_t time
    uint64_t number    # in its file, from 1
    uint64_t offset    # of its record in the file


# Counts of the frames that a kernel read, not yet added to CaptureStats.
cdef struct Counts:
    uint32_t file      # the file that is being read
    uint64_t frames
    uint64_t segments
    uint64_t other
    uint64_t malformed
    uint64_t fragments
    uint64_t incomplete
    uint64_t fragment_conflicts
    uint64_t invalid_times
    uint64_t unsupported
    uint64_t[LINK_TYPES] unsupported_links
    uint64_t[UNSUPPORTED_KINDS] unsupported_encapsulations
    size_t described
    Problem[MOST_PROBLEMS] problems


cdef inline void describe(
    Counts* counts, uint32_t file, uint64_t offset, Reason reason, uint64_t needed, uint64_t available
) noexcept nogil:
    """Describe a problem, unless there are enough already."""
    cdef Problem* problem
    if counts.described < MOST_PROBLEMS:
        problem = &counts.problems[counts.described]
        problem.file = file
        problem.offset = offset
        problem.needed = needed
        problem.available = available
        problem.reason = <uint32_t>reason
        counts.described += 1


cdef inline void malformed(
    Counts* counts, uint64_t offset, Reason reason, uint64_t needed, uint64_t available
) noexcept nogil:
    """Count and describe a record that cannot be read."""
    counts.malformed += 1
    describe(counts, counts.file, offset, reason, needed, available)
