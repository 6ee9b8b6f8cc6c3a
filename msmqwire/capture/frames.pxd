"""What the kernels of this room read and write: a window of a file, the rows of a block, the account of the frames."""

from libc.stddef cimport size_t
from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t

from msmqwire.capture.selection cimport Selection
from msmqwire.columns.payloads cimport Span

cdef enum:
    LARGEST_FRAME = 262144  # captured bytes, as in libpcap and Wireshark: beyond it a length is not believed
    LARGEST_RECORD = 262144 + 65536  # a frame with all that its file format writes around it
    SMALLEST_ROW = 44  # bytes that a row takes at least: 16 of record header, 20 of IP, 8 of UDP
    PROBLEMS = 100  # that are described, as in stats.py; all of them are counted

# Why a kernel stopped before the end of its window.
cdef enum Stop:
    MORE       # the record at the position goes on beyond the window
    LOST       # no record can begin at the position
    SECTION    # pcapng: a section header is at the position
    INTERFACE  # pcapng: an interface description is at the position
    SKIP       # pcapng: a block larger than a window is at the position
    FOLLOWED   # pcap: it need not have stopped, for the record at the position is followed by another
    FULL       # the rows have no room for what the frame at the position may give


# Why a record cannot be read. The texts are REASONS in stats.py, in the same order.
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


cdef struct Problem:
    uint32_t file      # its number among the files of the capture
    uint64_t offset    # in the file, of the record
    uint64_t needed
    uint64_t available
    uint32_t reason


# A part of a file in memory; the position moves from record to record.
cdef struct Window:
    const uint8_t* data
    size_t size
    size_t position
    size_t limit       # a record that begins here, or behind it, is left alone
    uint64_t offset    # of data[0] in the file


# What a file format knows about a frame.
cdef struct Frame:
    const uint8_t* data
    size_t size        # as far as it was captured
    uint32_t link
    bint timed
    int64_t time
    uint64_t number    # in its file, from 1
    uint64_t offset    # of its record in the file


cdef inline size_t reach(const Window* window, size_t header) noexcept nogil:
    """The first place in the window where no record may be read: none that begins there has a whole header or leave."""
    return min(window.size - header + 1, window.limit) if window.size >= header else 0


cdef struct Account:
    uint32_t file      # that is being read
    uint64_t frames
    uint64_t segments
    uint64_t other
    uint64_t damaged
    uint64_t fragments
    uint64_t incomplete
    uint64_t fragment_conflicts
    size_t described
    Problem[PROBLEMS] problems


# Where the rows of a block are written; NULL for columns not asked for.
cdef struct Rows:
    Span* spans
    Span* next         # behind the last one
    size_t count       # kept by columns alone until a kernel returns
    size_t nbytes
    bint columns       # some column was asked for
    const Selection* selection  # of the payloads that give rows; NULL for all of them
    uint8_t* presence
    uint8_t* file
    uint64_t* frame
    uint64_t* first_frame
    int64_t* time
    uint8_t* src
    uint16_t* src_port
    uint8_t* dst
    uint16_t* dst_port
    uint8_t* transport
    uint64_t* stream_offset
    uint32_t* others       # rows of another transport than UDP: their number, and in the lowest two bits which
    size_t other_count
    # Of packets that come out of streams
    size_t packets         # how many of the rows are such
    void** memory          # blocks of memory that now belong to the rows
    size_t memory_count
    size_t assembled       # IP datagrams out of fragments among those blocks
    uint32_t* files        # what the values of the column file stand for, from 1 on; 0 is the file being read
    size_t file_count
    # Of frames that are rows as they were captured
    bint whole             # all rows are such
    uint16_t* link
    uint64_t* offset


cdef enum:
    MOST_PACKETS = 262144 // 16 + 2  # rows out of streams in a block: what the largest frame may give
    MOST_ASSEMBLED = 1024  # datagrams out of fragments in a block
    MOST_FILES = 254      # that these rows may come from, beside the one being read


# The bits of a presence byte above DECODED, as schema.py has them
cdef enum:
    TIMED = 2
    STREAMED = 4


cdef inline void describe(
    Account* account, uint32_t file, uint64_t offset, Reason reason, uint64_t needed, uint64_t available
) noexcept nogil:
    """Describe what is wrong with a record while there is room."""
    cdef Problem* problem
    if account.described < PROBLEMS:
        problem = &account.problems[account.described]
        problem.file = file
        problem.offset = offset
        problem.needed = needed
        problem.available = available
        problem.reason = <uint32_t>reason
        account.described += 1


cdef inline void keep_memory(Rows* rows, void* memory) noexcept nogil:
    """The rows free it when nobody looks at them any more."""
    rows.memory[rows.memory_count] = memory
    rows.memory_count += 1


cdef inline void damaged(
    Account* account, uint64_t offset, Reason reason, uint64_t needed, uint64_t available
) noexcept nogil:
    """Count a damaged record, and describe it while there is room."""
    account.damaged += 1
    describe(account, account.file, offset, reason, needed, available)
