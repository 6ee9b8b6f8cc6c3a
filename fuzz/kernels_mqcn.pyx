# cython: language_level=3
"""The fuzz targets of the MS-MQCN kernels, those of property values among them: see checks.pxd."""

from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcmp, memcpy, memset

from fuzz.checks cimport exact_copy, mix, must
from msmqwire.columns._convert cimport TextSpan
from msmqwire.mqcn._kernel cimport (
    COUNT_AT, DISCARDABLE, HEADER_SIZE, IDS_AT, NO_UPDATES, RESERVED_AT, SMALLEST_PROPERTY, TRAILING_BYTES, Body,
    PropertyColumns, Update, largest_body, no_update, read_body, read_header, read_update, violation_fault, write_body,
    write_update_head,
)
from msmqwire.properties._lookup cimport KIND_COUNT
from msmqwire.propvariant._codec cimport COUNT_SIZE, value_fault, value_size
from msmqwire.wire.cursor cimport load_u16
from msmqwire.wire._fault cimport Fault

cdef enum:
    COUNT_OF_GUID = 60  # where NumberOfProperties of a message's first update stands that has a GUID


# What one reading of a change notification gave.
cdef struct Notification:
    int status
    uint32_t violations
    uint64_t checksum  # over all that was read
    Fault fault


cdef void mix_update(uint64_t* checksum, const Update* update, size_t base) noexcept nogil:
    """An update that was read at ``base``, whatever stood in front of it."""
    mix(checksum, update.identifier_at - base)
    mix(checksum, update.identifier_size)
    mix(checksum, update.master_at - base)
    mix(checksum, update.command)
    mix(checksum, update.use_guid)
    mix(checksum, update.property_count)
    mix(checksum, update.object)
    mix(checksum, update.violations)


cdef void read_updates(const uint8_t* data, size_t size, Notification* found) noexcept nogil:
    """The updates of version 1, each of them read with and without columns and once more without its neighbours."""
    cdef Update update = no_update()
    cdef Update bare = no_update()
    cdef PropertyColumns columns
    cdef PropertyColumns none
    # As much room as decode_batch reserves
    cdef size_t most = size // SMALLEST_PROPERTY
    cdef size_t at = HEADER_SIZE
    cdef size_t start
    cdef size_t again
    cdef size_t properties = 0
    cdef size_t first
    cdef size_t counted
    columns.ids = <uint8_t*>malloc(4 * most)
    columns.values = <TextSpan*>malloc(most * sizeof(TextSpan))
    none.ids = NULL
    none.values = NULL
    for _ in range(data[1]):
        start = again = at
        first = counted = properties
        found.status = read_update(data, size, &at, &columns, &properties, True, &update, &found.fault)
        must(found.status == read_update(data, size, &again, &none, &counted, False, &bare, &found.fault))
        must(at == again and properties == counted)
        if found.status != 0:
            must(at == start and properties == first)
            break
        must(at <= size and properties <= most and properties - first == update.property_count)
        check_update(data + start, at - start, start, &update, &columns, first)
        found.violations |= update.violations
        mix_update(&found.checksum, &update, 0)
    if found.status == 0:
        if data[1] == 0:
            found.violations |= NO_UPDATES
        if size - at > 1:
            found.violations |= TRAILING_BYTES
    free(columns.ids)
    free(columns.values)


cdef void check_update(
    const uint8_t* data, size_t size, size_t base, const Update* update, const PropertyColumns* columns, size_t first,
) noexcept nogil:
    """An update of ``size`` bytes is what it is wherever it stands, its values lie side by side, and it is written
    again as it was read, but for its Reserved."""
    cdef uint8_t* alone = exact_copy(data, size, 0)
    cdef uint8_t* target = <uint8_t*>malloc(size)
    cdef const uint8_t* identifier = data + update.identifier_at - base
    cdef const TextSpan* value
    cdef PropertyColumns none
    cdef Update same = no_update()
    cdef Fault fault
    cdef size_t at = 0
    cdef size_t properties = 0
    cdef size_t reserved = update.master_at - base + RESERVED_AT
    cdef uint64_t here = 0
    cdef uint64_t there = 0
    cdef size_t k
    none.ids = NULL
    none.values = NULL
    must(read_update(alone, size, &at, &none, &properties, False, &same, &fault) == 0)
    must(at == size)
    mix_update(&here, update, base)
    mix_update(&there, &same, 0)
    must(here == there)
    at = write_update_head(
        target, update.command, identifier if update.use_guid else NULL, identifier, update.identifier_size - 2,
        data + update.master_at - base, update.property_count,
    )
    must(at == update.master_at - base + IDS_AT)
    memcpy(target + at, columns.ids + 4 * first, 4 * update.property_count)
    at += 4 * update.property_count
    for k in range(update.property_count):
        value = &columns.values[first + k]
        must(<size_t>value.offset - base == at and value.length != 0 and value.length <= size - at)
        memcpy(target + at, data + at, value.length)
        at += value.length
    must(at == size)
    must(memcmp(target, data, reserved) == 0)
    reserved += COUNT_AT - RESERVED_AT
    must(memcmp(target + reserved, data + reserved, size - reserved) == 0)
    free(alone)
    free(target)


cdef bint same_letters(const uint8_t* a, const uint8_t* b, size_t units) noexcept nogil:
    """Whether two texts differ in nothing but the case of ASCII letters."""
    cdef uint16_t one
    cdef uint16_t other
    cdef size_t i
    for i in range(units):
        one = load_u16(a + 2 * i)
        other = load_u16(b + 2 * i)
        if one != other and ((one ^ other) != 0x20 or not c"a" <= (one | 0x20) <= c"z"):
            return False
    return True


cdef void read_text(const uint8_t* data, size_t size, Notification* found) noexcept nogil:
    """The body of version 2; it is written again as it was read, but for the case of its letters."""
    cdef Body body
    cdef uint8_t* target
    cdef size_t written
    cdef size_t i
    found.status = read_body(data, size, &body, &found.fault)
    if found.status != 0:
        return
    must(1 <= body.event <= 4 and body.end <= size and body.name_size % 2 == 0)
    must(body.name_at > HEADER_SIZE and body.name_size != 0 and body.name_at + body.name_size < body.end)
    target = <uint8_t*>malloc(largest_body(body.name_size))
    written = write_body(target, body.event, body.guid, data + body.name_at, body.name_size, True)
    must(written == largest_body(body.name_size))
    if written != body.end - HEADER_SIZE:
        written = write_body(target, body.event, body.guid, data + body.name_at, body.name_size, False)
    must(written == body.end - HEADER_SIZE)
    must(same_letters(target, data + HEADER_SIZE, written // 2))
    must(memcmp(target + body.name_at - HEADER_SIZE, data + body.name_at, body.name_size) == 0)
    free(target)
    found.violations = body.violations
    mix(&found.checksum, body.event)
    mix(&found.checksum, body.name_at)
    mix(&found.checksum, body.name_size)
    for i in range(16):
        mix(&found.checksum, body.guid[i])


cdef void read_notification(const uint8_t* data, size_t size, Notification* found) noexcept nogil:
    memset(found, 0, sizeof(found[0]))
    found.status = read_header(data, size, &found.fault)
    if found.status == 0:
        if data[0] == 1:
            read_updates(data, size, found)
        else:
            read_text(data, size, found)
    # What a strict reader faults
    if found.status == 0 and found.violations & DISCARDABLE:
        must(violation_fault(data, size, &found.fault) == -1)
    if found.status != 0 or found.violations & DISCARDABLE:
        must(found.fault.code != 0 and found.fault.offset <= size)


cdef void check_notification(const uint8_t* data, size_t size) noexcept nogil:
    cdef uint8_t* aligned = exact_copy(data, size, 0)
    cdef uint8_t* shifted = exact_copy(data, size, 1)
    cdef Notification first
    cdef Notification second
    read_notification(aligned, size, &first)
    read_notification(shifted + 1, size, &second)
    must(first.status == second.status and first.violations == second.violations)
    must(first.checksum == second.checksum)
    must(first.fault.code == second.fault.code and first.fault.offset == second.fault.offset)
    must(first.fault.field == second.fault.field and first.fault.item == second.fault.item)
    free(aligned)
    free(shifted)


cdef public int fuzz_notification_message(const uint8_t* data, size_t size) noexcept nogil:
    """A whole message."""
    check_notification(data, size)
    return 0


cdef public int fuzz_notification_body(const uint8_t* data, size_t size) noexcept nogil:
    """The input is the body of a message of version 2."""
    cdef uint8_t* message = exact_copy(data, size, HEADER_SIZE)
    message[0] = 2
    message[1] = 1
    check_notification(message, HEADER_SIZE + size)
    free(message)
    return 0


cdef void check_value(uint8_t kind, const uint8_t* data, size_t size) noexcept nogil:
    """A value has the same size wherever it stands, whatever is in front of it and nothing being behind it."""
    cdef uint8_t* aligned = exact_copy(data, size, 0)
    cdef uint8_t* behind = exact_copy(data, size, COUNT_OF_GUID + 1)
    cdef uint8_t* alone
    cdef Fault fault
    cdef size_t needed = value_size(kind, aligned, size, 0)
    memset(behind, 0, COUNT_OF_GUID + 1)
    must(value_size(kind, behind, COUNT_OF_GUID + 1 + size, COUNT_OF_GUID + 1) == needed)
    if needed == 0:
        must(value_fault(kind, aligned, size, 0, 0, &fault) == -1)
        must(fault.code != 0 and fault.offset == 0)
    else:
        must(needed <= size)
        if needed >= COUNT_SIZE:
            alone = exact_copy(data, needed, 1)
            must(value_size(kind, alone + 1, needed, 0) == needed)
            free(alone)
    free(aligned)
    free(behind)


cdef public int fuzz_property_values(const uint8_t* data, size_t size) noexcept nogil:
    """The input is the end of the one update of a message, from NumberOfProperties on: PROPIDs and values.

    What stands behind the first byte is read as a single value as well, of the kind that this byte chooses.
    """
    cdef uint8_t* message = exact_copy(data, size, COUNT_OF_GUID)
    memset(message, 0, COUNT_OF_GUID)
    memset(message, 1, 4)  # version 1, one update, a change, by GUID
    check_notification(message, COUNT_OF_GUID + size)
    free(message)
    if size > COUNT_SIZE:
        check_value(<uint8_t>(1 + data[0] % (KIND_COUNT - 1)), data + 1, size - 1)
    return 0
