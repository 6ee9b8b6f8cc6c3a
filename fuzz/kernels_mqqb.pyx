# cython: language_level=3
"""The fuzz targets of the MS-MQQB kernels: see checks.pxd."""

from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcmp, memset

from fuzz.checks cimport exact_copy, mix, must
from msmqwire.mqqb.framing cimport FRAMED, INCOMPLETE, NOT_A_PACKET, frame_packet
from msmqwire.mqqb._kernel cimport (
    BLANK, CODE_COUNT, DISCARDABLE, PART_COUNT, QUEUE_COUNT, SECTION_COUNT, TRAILING_BYTES, Packet, Violation,
)
from msmqwire.mqqb.message._kernel cimport largest_message, read_message, write_message
from msmqwire.mqqb.message._queues cimport QueueLists
from msmqwire.mqqb.session._kernel cimport LARGEST_SESSION, is_ping, read_session, write_session
from msmqwire.wire._fault cimport TRUNCATED, Fault
from msmqwire.wire._format_name cimport FormatName
from msmqwire.wire._transport cimport Transport

cdef enum:
    SMALLEST_ELEMENT = 4  # of a FormatNameList: FormatType and a U+0000


# What one reading of a packet gave, with room for all its lists.
cdef struct Reading:
    int status
    uint64_t checksum  # over all that was read
    Packet packet
    Fault fault
    QueueLists lists


cdef void reserve_lists(Reading* found, size_t size) noexcept nogil:
    cdef size_t i
    for i in range(QUEUE_COUNT):
        found.lists.most[i] = size // SMALLEST_ELEMENT + 1
        found.lists.names[i] = <FormatName*>malloc(found.lists.most[i] * sizeof(FormatName))


cdef void free_lists(Reading* found) noexcept nogil:
    cdef size_t i
    for i in range(QUEUE_COUNT):
        free(found.lists.names[i])


cdef void mix_name(uint64_t* checksum, const FormatName* name, size_t size) noexcept nogil:
    """A queue, whose direct name must lie in the payload."""
    cdef size_t i
    must(name.length <= size and name.offset <= size - name.length and name.length % 2 == 0)
    mix(checksum, name.form)
    mix(checksum, name.code)
    mix(checksum, name.number)
    mix(checksum, name.offset)
    mix(checksum, name.length)
    for i in range(16):
        mix(checksum, name.guid[i])


cdef void mix_packet(const uint8_t* data, size_t size, Reading* found) noexcept nogil:
    """Everything that was read lies in the payload."""
    cdef const Packet* packet = &found.packet
    cdef size_t i
    cdef uint32_t k
    must(packet.extent <= size and packet.end <= packet.extent)
    mix(&found.checksum, packet.presence)
    mix(&found.checksum, packet.violations)
    mix(&found.checksum, packet.extent)
    for i in range(CODE_COUNT):
        mix(&found.checksum, packet.codes[i])
    for i in range(SECTION_COUNT):
        if packet.sections[i] != BLANK:
            must(data <= packet.sections[i] < data + size)
            mix(&found.checksum, <size_t>(packet.sections[i] - data))
    for i in range(PART_COUNT):
        must(packet.parts[i].length <= size and packet.parts[i].offset <= size - packet.parts[i].length)
        mix(&found.checksum, packet.parts[i].offset)
        mix(&found.checksum, packet.parts[i].length)
    for i in range(QUEUE_COUNT):
        mix_name(&found.checksum, &packet.queues[i], size)
        must(packet.list_counts[i] <= size // SMALLEST_ELEMENT)
        for k in range(packet.list_counts[i]):
            mix_name(&found.checksum, &found.lists.names[i][k], size)


cdef void check_framing(const uint8_t* data, size_t size, const Reading* found) noexcept nogil:
    """What the framer of streams says of the payload fits what its reader found."""
    cdef size_t total = 0
    cdef int framing = frame_packet(data, size, &total)
    if found.status == 0:
        must(framing == FRAMED and total == found.packet.extent)
        must((total == size) or found.packet.violations & TRAILING_BYTES)
    elif framing == INCOMPLETE:
        must(found.fault.code == TRUNCATED and total > size)
    elif framing == FRAMED:
        must(total <= size)
    else:
        must(framing == NOT_A_PACKET)


cdef void check_same(const Reading* first, const Reading* second) noexcept nogil:
    """Two readings of the same bytes give the same."""
    must(first.status == second.status and first.checksum == second.checksum)
    if first.status != 0:
        must(first.fault.code == second.fault.code and first.fault.offset == second.fault.offset)
        must(first.fault.field == second.fault.field and first.fault.item == second.fault.item)


cdef void check_fault(const Reading* found, size_t size) noexcept nogil:
    must(found.fault.code != 0 and found.fault.offset <= size)


# Messages


cdef void read_once(const uint8_t* data, size_t size, bint strict, Reading* found) noexcept nogil:
    memset(&found.fault, 0, sizeof(Fault))
    found.checksum = 0
    found.status = read_message(data, size, strict, &found.lists, &found.packet, &found.fault)
    if found.status == 0:
        mix_packet(data, size, found)
    else:
        check_fault(found, size)


cdef void check_strictness(const uint8_t* data, size_t size, const Reading* lenient) noexcept nogil:
    """A strict reader faults what a lenient one notes as discardable, and nothing else; neither needs the lists."""
    cdef Packet packet
    cdef Fault fault
    cdef int status
    memset(&fault, 0, sizeof(Fault))
    status = read_message(data, size, True, NULL, &packet, &fault)
    if lenient.status != 0:
        must(status != 0 and fault.code == lenient.fault.code and fault.offset == lenient.fault.offset)
    elif lenient.packet.violations & DISCARDABLE:
        must(status != 0 and fault.code != 0 and fault.offset <= size)
    else:
        must(status == 0 and packet.presence == lenient.packet.presence)


cdef void check_message_written(const uint8_t* data, Reading* found, Reading* again) noexcept nogil:
    """A packet without violations is written, read again without a fault, and written the same."""
    cdef const Packet* packet = &found.packet
    cdef size_t largest = largest_message(packet, found.lists.names)
    cdef uint8_t* target = <uint8_t*>malloc(largest)
    cdef size_t written = write_message(packet, data, found.lists.names, target)
    cdef uint8_t* alone
    cdef uint8_t* second
    cdef size_t i
    must(written <= largest and written % 4 == 0)
    alone = exact_copy(target, written, 1)
    read_once(alone + 1, written, True, again)
    must(again.status == 0 and again.packet.violations == packet.violations)
    must(again.packet.presence == packet.presence)
    for i in range(PART_COUNT):
        must(again.packet.parts[i].length == packet.parts[i].length)
        must(memcmp(
            alone + 1 + again.packet.parts[i].offset, data + packet.parts[i].offset, packet.parts[i].length
        ) == 0)
    for i in range(QUEUE_COUNT):
        must(again.packet.list_counts[i] == packet.list_counts[i])
        must(again.packet.queues[i].form == packet.queues[i].form)
        must(memcmp(again.packet.queues[i].guid, packet.queues[i].guid, 16) == 0)
    must(largest_message(&again.packet, again.lists.names) >= written)
    second = <uint8_t*>malloc(largest)
    must(write_message(&again.packet, alone + 1, again.lists.names, second) == written)
    must(memcmp(second, target, written) == 0)
    free(second)
    free(alone)
    free(target)


cdef public int fuzz_message_packet(const uint8_t* data, size_t size) noexcept nogil:
    """A payload for the messages table."""
    cdef uint8_t* aligned = exact_copy(data, size, 0)
    cdef uint8_t* shifted = exact_copy(data, size, 1)
    cdef Reading first
    cdef Reading second
    reserve_lists(&first, size)
    reserve_lists(&second, 2 * size)
    read_once(aligned, size, False, &first)
    read_once(shifted + 1, size, False, &second)
    check_same(&first, &second)
    check_framing(aligned, size, &first)
    check_strictness(aligned, size, &first)
    if first.status == 0 and not first.packet.violations & ~<uint32_t>Violation.UNRESOLVED_QUEUE:
        check_message_written(aligned, &first, &second)
    free_lists(&first)
    free_lists(&second)
    free(aligned)
    free(shifted)
    return 0


# Sessions


cdef void read_session_once(
    const uint8_t* data, size_t size, uint32_t transport, bint strict, Reading* found
) noexcept nogil:
    memset(&found.fault, 0, sizeof(Fault))
    found.checksum = 0
    found.status = read_session(data, size, transport, strict, &found.packet, &found.fault)
    if found.status == 0:
        mix_packet(data, size, found)
    else:
        check_fault(found, size)


cdef void check_session_written(const uint8_t* data, size_t size, uint32_t transport, Reading* found) noexcept nogil:
    """A packet without violations is written, read again without a fault, and written the same."""
    cdef uint8_t[LARGEST_SESSION] target
    cdef uint8_t[LARGEST_SESSION] second
    cdef size_t written = write_session(&found.packet, target)
    cdef Reading again
    memset(&again, 0, sizeof(Reading))
    must(0 < written <= LARGEST_SESSION and written <= size)
    read_session_once(target, written, transport, True, &again)
    must(again.status == 0 and again.packet.violations == 0 and again.packet.presence == found.packet.presence)
    must(memcmp(again.packet.codes, found.packet.codes, CODE_COUNT) == 0)
    must(write_session(&again.packet, second) == written)
    must(memcmp(second, target, written) == 0)


cdef public int fuzz_session_packet(const uint8_t* data, size_t size) noexcept nogil:
    """A payload for the sessions table; transport and strictness follow from the input."""
    cdef uint8_t* aligned = exact_copy(data, size, 0)
    cdef uint8_t* shifted = exact_copy(data, size, 1)
    cdef uint32_t transport = <uint32_t>(size % (Transport.IPX + 1))
    cdef bint strict = size != 0 and data[size - 1] & 1
    cdef Reading first
    cdef Reading second
    memset(&first, 0, sizeof(Reading))
    memset(&second, 0, sizeof(Reading))
    read_session_once(aligned, size, transport, strict, &first)
    read_session_once(shifted + 1, size, transport, strict, &second)
    check_same(&first, &second)
    if not is_ping(aligned, size, transport):
        check_framing(aligned, size, &first)
    if first.status == 0 and not first.packet.violations:
        check_session_written(aligned, size, Transport.TCP if first.packet.end != 24 else Transport.UDP, &first)
    free(aligned)
    free(shifted)
    return 0
