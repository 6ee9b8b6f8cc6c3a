# cython: language_level=3
"""The fuzz targets of the MS-MQSD kernel: see checks.pxd."""

from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint32_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcmp, memcpy, memset

from fuzz.checks cimport exact_copy, must
from msmqwire.columns._convert cimport TextSpan
from msmqwire.mqsd._kernel cimport (
    CLOSING_SIZE, FLAGS_SIZE, HAS_REQUEST, IPX_NETWORKS, NETWORKS, REPLY_FIXED_SIZE, SERVERS, ServerColumns, Topology,
    read_topology, write_flags, write_reply, write_request,
)
from msmqwire.wire._fault cimport Fault
from msmqwire.wire._transport cimport Transport

cdef enum:
    SMALLEST_SERVER = 8  # bytes of an entry of a server array with the code unit that closes it


# What one reading of a topology packet gave.
cdef struct Reading:
    int status
    Topology packet
    Fault fault
    size_t entries
    uint32_t checksum  # over the entries


cdef void read_once(
    const uint8_t* data, size_t size, uint32_t transport, bint strict, Reading* reading
) noexcept nogil:
    cdef ServerColumns columns
    cdef size_t most = size // SMALLEST_SERVER + 1
    cdef size_t i
    columns.names = <TextSpan*>malloc(most * sizeof(TextSpan))
    columns.ip = <uint8_t*>malloc(most)
    columns.ipx = <uint8_t*>malloc(most)
    memset(reading, 0, sizeof(reading[0]))
    reading.status = read_topology(
        data, size, transport, strict, &columns, &reading.entries, &reading.packet, &reading.fault
    )
    if reading.status != 0:
        must(reading.status == -1 and reading.entries == 0)
        must(reading.fault.code != 0 and reading.fault.offset <= size)
    else:
        must(reading.packet.described <= size)
        must(reading.entries < most)
        for i in range(reading.entries):
            must(columns.names[i].length >= 2 and columns.names[i].length % 2 == 0)
            must(<size_t>columns.names[i].offset + columns.names[i].length <= size)
            reading.checksum = 31 * reading.checksum + columns.names[i].offset + 3 * columns.names[i].length
            reading.checksum = 31 * reading.checksum + 2 * columns.ip[i] + columns.ipx[i]
        if reading.packet.violations == 0:
            rewritten(data, reading, &columns)
    free(columns.names)
    free(columns.ip)
    free(columns.ipx)


cdef void rewritten(const uint8_t* data, const Reading* reading, const ServerColumns* columns) noexcept nogil:
    """A packet without violations is written byte for byte as it was."""
    cdef const Topology* packet = &reading.packet
    cdef uint8_t* target = <uint8_t*>malloc(packet.described)
    cdef size_t written
    cdef size_t i
    if packet.presence & HAS_REQUEST:
        written = write_request(
            target, data + 4, data + 20, data + 36, packet.items[IPX_NETWORKS], packet.counts[IPX_NETWORKS]
        )
    else:
        write_reply(target, data + 4, packet.counts[NETWORKS], mask_of(data), packet.servers_size)
        written = REPLY_FIXED_SIZE + 16 * <size_t>packet.counts[NETWORKS]
        memcpy(target + REPLY_FIXED_SIZE, packet.items[NETWORKS], 16 * <size_t>packet.counts[NETWORKS])
        if packet.servers_size:
            memcpy(target + written, packet.items[SERVERS] - 16, 16)
            written += 16
            # Entries are neighbours: what is between their names is two bytes that close one, and flags
            for i in range(reading.entries):
                written += FLAGS_SIZE
                must(columns.names[i].offset == written)
                write_flags(target + written - FLAGS_SIZE, columns.ip[i], columns.ipx[i])
                memcpy(target + written, data + written, columns.names[i].length + CLOSING_SIZE)
                written += columns.names[i].length + CLOSING_SIZE
    must(written == packet.described)
    must(memcmp(target, data, written) == 0)
    free(target)


cdef uint32_t mask_of(const uint8_t* data) noexcept nogil:
    cdef uint32_t mask
    memcpy(&mask, data + 24, 4)
    return mask


cdef void check_packet(const uint8_t* data, size_t size) noexcept nogil:
    cdef uint8_t* aligned = exact_copy(data, size, 0)
    cdef uint8_t* shifted = exact_copy(data, size, 1)
    cdef Reading first
    cdef Reading second
    # They follow from the input, so that libFuzzer varies them too and one input costs one reading
    cdef uint32_t transport = <uint32_t>(size % (Transport.IPX + 1))
    cdef bint strict = size != 0 and data[size - 1] & 1
    read_once(aligned, size, transport, strict, &first)
    read_once(shifted + 1, size, transport, strict, &second)
    must(first.status == second.status and first.checksum == second.checksum)
    if first.status == 0:
        must(first.packet.violations == second.packet.violations)
    else:
        must(first.fault.code == second.fault.code and first.fault.offset == second.fault.offset)
    free(aligned)
    free(shifted)


cdef public int fuzz_topology(const uint8_t* data, size_t size) noexcept nogil:
    """A complete packet."""
    check_packet(data, size)
    return 0


cdef public int fuzz_server_array(const uint8_t* data, size_t size) noexcept nogil:
    """The input is the DirectoryServiceServerArray of an otherwise good reply with one network."""
    cdef uint8_t* reply
    cdef uint32_t array_size = <uint32_t>size
    cdef uint32_t one = 1
    if size == 0 or size > 65000:
        return 0
    reply = <uint8_t*>malloc(64 + size)
    memset(reply, 0, 64)
    reply[1] = 2
    memcpy(reply + 20, &one, 4)
    memcpy(reply + 28, &array_size, 4)
    memcpy(reply + 64, data, size)
    check_packet(reply, 64 + size)
    free(reply)
    return 0
