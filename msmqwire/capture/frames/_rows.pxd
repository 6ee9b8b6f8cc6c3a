"""The rows of a block, as kernels write them."""

from libc.stddef cimport size_t
from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from msmqwire.capture.frames._frame cimport Ends, Frame
from msmqwire.capture.frames._selection cimport Selection, selects
from msmqwire.columns._batch cimport DECODED
from msmqwire.columns.payload_table cimport Span
from msmqwire.wire._address cimport ADDRESS_FAMILY_AT, ADDRESS_SIZE, IPV4, IPV6, NO_ADDRESS
from msmqwire.wire.cursor cimport load_u16
from msmqwire.wire.simd cimport wire_bswap16, wire_unlikely
from msmqwire.wire._transport cimport Transport

cdef enum:
    SMALLEST_ROW = 44  # bytes of a window that a row takes at least: record header 16, IP 20, UDP 8
    SMALLEST_RECORD = 16  # bytes of a frame without any, in pcap and as a simple packet block
    MOST_PACKETS = 2 * (262144 // 16 + 2)  # rows of streams in a block: as many as the largest frame may complete
    MOST_ASSEMBLED = 1024            # reassembled datagrams in a block
    MOST_FILES = 254                 # files that the rows of a block may come from, beside the one being read
    MOST_PATHS = 254                 # paths of encapsulations in a block
    NO_PATH = 0xFF                   # in the column ``encapsulation``


# Bits of a presence byte, beside DECODED
cpdef enum:
    TIMED = 2     # the row has a time
    STREAMED = 4  # the row is a packet in a TCP stream
    ENCAPSULATED = 8  # the row has a path of encapsulations
    JOINED = 16  # bytes in which no packet begins, the first of a stream whose SYN was not captured


# A row whose payload had more bytes than were captured.
cdef struct Lost:
    uint32_t row
    uint32_t size   # of the bytes that are missing, as far as that is known; with UNFRAMED, of those not in the row


# Where the rows of a block are written; NULL for columns that are not built.
cdef struct Rows:
    Span* spans
    Span* next         # after the last one
    size_t count       # inside a kernel, only with columns
    size_t nbytes
    size_t most_bytes  # with more than these, no further packet of a stream is added
    bint columns       # some column is built
    const Selection* selection  # of the payloads that give rows; NULL for all
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
    uint8_t* encapsulation
    uint64_t* stream_offset
    uint32_t* others       # rows of another transport than UDP: their number, and in the lowest two bits its code
    size_t other_count
    Lost* lost             # rows of truncated payloads
    size_t lost_count
    size_t cut             # of these, datagrams of frames that are counted as malformed
    # For packets in streams, and for bytes between them
    size_t packets         # rows that are such
    void** memory          # blocks of memory that belong to the rows
    size_t memory_count
    size_t assembled       # IP datagrams out of fragments among those blocks
    uint32_t* files        # what the values of the column file stand for, from 1 on; 0 is the file being read
    size_t file_count
    uint32_t* paths        # what the values of the column encapsulation stand for
    size_t path_count
    # For rows that are frames as they were captured
    bint frames_only       # all rows are such
    bint every_frame       # also those that reassembly does not need
    uint16_t* link
    uint64_t* offset
    uint32_t* length


cdef inline void keep_memory(Rows* rows, void* memory) noexcept nogil:
    """Give memory to the rows, which free it with their block."""
    rows.memory[rows.memory_count] = memory
    rows.memory_count += 1


cdef uint8_t value_of_file(Rows* rows, uint32_t file) noexcept nogil
cdef void put_path(Rows* rows, size_t row, uint32_t path) noexcept nogil


cdef inline void put_address(uint8_t* column, size_t row, const uint8_t* address, uint16_t family) noexcept nogil:
    cdef uint8_t* target = column + ADDRESS_SIZE * row
    if family == IPV6:
        memcpy(target, address, 16)
    elif family == IPV4:
        memcpy(target, address, 4)
        memset(target + 4, 0, 12)
    elif family == NO_ADDRESS:
        memset(target, 0, 16)
    else:
        memcpy(target, address, 10)
        memset(target + 10, 0, 6)
    memcpy(target + ADDRESS_FAMILY_AT, &family, 2)


cdef inline void put_columns(
    Rows* rows, size_t row, const Ends* ends, bint timed, int64_t time, uint64_t frame, uint64_t first_frame,
    uint8_t file, uint64_t stream_offset, uint32_t path,
) noexcept nogil:
    rows.presence[row] = <uint8_t>(
        DECODED | (TIMED if timed else 0) | (STREAMED if ends.transport == Transport.TCP else 0)
    )
    if rows.file != NULL:
        rows.file[row] = file
    if rows.frame != NULL:
        rows.frame[row] = frame
    if rows.first_frame != NULL:
        rows.first_frame[row] = first_frame
    if rows.time != NULL:
        rows.time[row] = time
    if rows.src != NULL:
        put_address(rows.src, row, ends.src, ends.family)
    if rows.src_port != NULL:
        rows.src_port[row] = wire_bswap16(load_u16(ends.src_port))
    if rows.dst != NULL:
        put_address(rows.dst, row, ends.dst, ends.family)
    if rows.dst_port != NULL:
        rows.dst_port[row] = wire_bswap16(load_u16(ends.dst_port))
    if rows.transport != NULL:
        rows.transport[row] = <uint8_t>ends.transport
    if rows.encapsulation != NULL:
        rows.encapsulation[row] = NO_PATH
    if wire_unlikely(path != 0):
        put_path(rows, row, path)
    if rows.stream_offset != NULL:
        rows.stream_offset[row] = stream_offset


cdef inline void note_transport(Rows* rows, Transport transport) noexcept nogil:
    """Record that the transport of the next row is not UDP."""
    rows.others[rows.other_count] = <uint32_t>(rows.next - rows.spans) << 2 | <uint32_t>transport
    rows.other_count += 1


cdef inline void note_lost(Rows* rows, size_t size) noexcept nogil:
    """Record that the payload of the next row had ``size`` bytes more."""
    rows.lost[rows.lost_count].row = <uint32_t>(rows.next - rows.spans)
    rows.lost[rows.lost_count].size = <uint32_t>size
    rows.lost_count += 1


cdef inline void put_payload(Rows* rows, const uint8_t* payload, size_t size) noexcept nogil:
    rows.next.data = payload
    rows.next.size = size
    rows.next += 1
    rows.nbytes += size


cdef inline void put_row(
    Rows* rows, bint columns, const Frame* frame, const Ends* ends, const uint8_t* payload, size_t size, uint32_t path
) noexcept nogil:
    """Add the row of a payload that is in one frame; ``path``: the encapsulations around it."""
    put_payload(rows, payload, size)
    if columns:
        put_columns(rows, rows.count, ends, frame.timed, frame.time, frame.number, frame.number, 0, 0, path)
        rows.count += 1


cdef inline bint is_wanted(const Rows* rows, const Ends* ends, bint timed, int64_t time) noexcept nogil:
    """Return True if a payload with this time between these ends is selected."""
    if wire_unlikely(rows.selection != NULL):
        return selects(rows.selection, timed, time, ends.family, ends.src, ends.dst)
    return True
