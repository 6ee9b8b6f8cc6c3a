"""The kernel of MS-MQCN: readers and writers of its messages, with the hot readers inline.

[MS-MQCN] 2.2.4-2.2.6, little-endian, packed without padding:

    Change Notification Message   0 Version u8 | 1 NumberOfUpdateNotifications u8 | 2 Data
                                  version 1: as many updates; version 2: one body
    Notification Update           Command u8 | UseGuid u8 | PathName 2(k+1), or GuidIdentifier 16 | GuidMasterId 16
                                  Reserved 24 | NumberOfProperties p u8 | PropertyId p * u32 | PropertyValue p values
    Notification Body             code units: <Notification><Event>e</Event><ObjectGuid>g</ObjectGuid >
                                  <DomainController>d</DomainController></Notification>

The unused byte of 3.3.5.3 may follow either.
"""

from libc.stddef cimport size_t
from libc.stdint cimport int32_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from msmqwire.columns._convert cimport TextSpan
from msmqwire.mqcn._generated cimport *
from msmqwire.properties._lookup cimport PROPID_LIMIT
from msmqwire.propvariant._codec cimport text_size, value_size
from msmqwire.wire.cursor cimport load_u32
from msmqwire.wire._fault cimport Fault
from msmqwire.wire.simd cimport wire_find_unit_and_nulls, wire_lowest_bit, wire_units_outside, wire_unlikely


cdef enum:
    NEVER_WRITTEN = NO_UPDATES | TRAILING_BYTES | PATH_NAME_SYNTAX

cdef enum:
    BACKSLASH = 0x5C
    SEMICOLON = 0x3B
    PATH_UNITS = 64        # code units of a PathName that are searched at once; most have fewer
    OTHERS = 0x40000000    # the bit of any other PROPID


cdef struct PropertyEntry:
    uint32_t bit    # OTHERS where 3.3.5.2 does not name the PROPID
    uint8_t width   # bytes of its value; 0 where they depend on the value, or the PROPID is unknown
    uint8_t kind
    uint8_t object  # that it belongs to: 3.2.5.1


cdef PropertyEntry[PROPID_LIMIT] property_entries  # by PROPID


# The PROPIDs that an update must or must not have: 3.3.5.2.
cdef struct PropertyRule:
    uint32_t judged
    uint32_t needed  # of those


cdef PropertyRule[2][3] property_rules  # by Operation and Object; what a delete has is judged by its values


# Where the properties are written.
cdef struct PropertyColumns:
    uint8_t* ids       # 4 bytes each
    TextSpan* values   # bytes of the payload


cdef PropertyColumns NO_COLUMNS


# The bits of the PROPIDs of an update.
cdef struct Found:
    uint32_t bits
    uint64_t sum  # of the same; another number where a PROPID is repeated


cdef struct Update:
    size_t identifier_at
    size_t identifier_size  # in bytes, a PathName with its 0x0000
    size_t master_at        # GuidMasterId
    uint32_t command
    uint32_t use_guid
    uint32_t property_count
    uint32_t object
    uint32_t violations


cdef struct Body:
    uint32_t event
    uint32_t violations
    size_t name_at      # DomainController
    size_t name_size    # in bytes
    size_t end          # of the text that matches the grammar
    uint8_t[16] guid    # in packet order


cdef bint is_path_name(const uint8_t* path, size_t units, size_t* wrong) noexcept nogil
cdef int read_body(const uint8_t* data, size_t size, Body* body, Fault* fault) noexcept nogil
cdef size_t write_body(
    uint8_t* target, uint32_t event, const uint8_t* guid, const uint8_t* name, size_t name_size, bint closing_space
) noexcept nogil
cdef size_t largest_body(size_t name_size) noexcept nogil

# Cold paths: they find the field, in wire order, that is at fault
cdef int header_fault(const uint8_t* data, size_t size, Fault* fault) noexcept nogil
cdef int update_fault(const uint8_t* data, size_t size, size_t at, Fault* fault) noexcept nogil
cdef int violation_fault(const uint8_t* data, size_t size, Fault* fault) noexcept nogil

cdef uint32_t repeated_properties(const uint8_t* ids, uint32_t count) noexcept nogil
cdef uint32_t second_value(const uint8_t* data, size_t size, const uint8_t* values, uint32_t propid) noexcept nogil


cdef inline Update no_update() noexcept nogil:
    cdef Update update
    update.identifier_at = 0
    update.identifier_size = 0
    update.master_at = 0
    update.command = 0
    update.use_guid = 0
    update.property_count = 0
    update.object = 0
    update.violations = 0
    return update


cdef inline int read_header(const uint8_t* data, size_t size, Fault* fault) noexcept nogil:
    """Version and NumberOfUpdateNotifications: [MS-MQCN] 2.2.4."""
    if wire_unlikely(size < HEADER_SIZE or <uint32_t>data[0] - 1 > 1 or (data[0] == 2 and data[1] != 1)):
        return header_fault(data, size, fault)
    return 0


cdef inline uint32_t object_of(uint32_t propid) noexcept nogil:
    """The object that a known PROPID belongs to: [MS-MQCN] 3.2.5.1."""
    # Bytes have perhaps changed since they were read
    return property_entries[propid].object if propid < PROPID_LIMIT else <uint32_t>NO_OBJECT


cdef inline size_t read_path_name(const uint8_t* data, size_t size, size_t at, bint* regular) noexcept nogil:
    """Bytes of the PathName at ``at`` with its 0x0000; 0 when none ends it.

    ``regular`` tells whether it is ``computer\\queue`` and so a QueuePathName; ``is_path_name`` judges any other.
    """
    cdef const uint8_t* path = data + at
    cdef uint64_t nulls = 0
    cdef uint64_t backslashes = 0
    cdef uint64_t irregular = 0
    cdef uint64_t within
    cdef uint64_t more
    cdef uint32_t block
    regular[0] = False
    if wire_unlikely(size - at < 2 * PATH_UNITS):
        return text_size(data, size, at)
    for block in range(0, 64, 16):  # PATH_UNITS
        irregular |= (
            wire_find_unit_and_nulls(path + 2 * block, SEMICOLON, &more)
            | wire_units_outside(path + 2 * block, FIRST_VISIBLE, LAST_VISIBLE)
        ) << block
        backslashes |= wire_find_unit_and_nulls(path + 2 * block, BACKSLASH, &more) << block
        nulls |= more << block
    if wire_unlikely(nulls == 0):
        return text_size(data, size, at)
    within = (nulls & (0 - nulls)) - 1
    backslashes &= within
    # Exactly one backslash, with a name on each side; both are short enough, as all has at most 63 units
    regular[0] = (
        irregular & within == 0 and backslashes & (backslashes - 1) == 0 and backslashes > 1
        and backslashes != within - (within >> 1)
    )
    return 2 * wire_lowest_bit(nulls) + 2


cdef inline size_t read_properties(
    const uint8_t* data, size_t size, const Update* update, const PropertyColumns* columns, size_t property,
    bint wanted, Found* found,
) noexcept nogil:
    """The end of the properties of an update, written to ``columns`` from ``property`` on; 0 when one is at fault."""
    cdef const PropertyEntry* entries = property_entries
    cdef const PropertyEntry* entry
    cdef uint32_t count = update.property_count
    cdef size_t at = update.master_at + IDS_AT
    cdef const uint8_t* ids = data + at
    cdef uint8_t* id_column = columns.ids + 4 * property if wanted else NULL
    cdef TextSpan* values = columns.values + property if wanted else NULL
    cdef uint32_t propid
    cdef size_t needed
    cdef size_t k
    found.bits = 0
    found.sum = 0
    at += 4 * count
    for k in range(count):
        propid = load_u32(ids + 4 * k)
        if wire_unlikely(propid >= PROPID_LIMIT):
            return 0
        entry = &entries[propid]
        found.bits |= entry.bit
        found.sum += entry.bit
        # A width depends on no byte of the value, so the processor need not wait for a count
        needed = entry.width
        if needed == 0:
            needed = value_size(entry.kind, data, size, at) if at <= size else 0
            if wire_unlikely(needed == 0):
                return 0
        if wanted:
            memcpy(id_column + 4 * k, &propid, 4)
            values[k].offset = <uint32_t>at
            values[k].length = <uint32_t>needed
        at += needed
    return at if at <= size else 0


cdef inline void judge_properties(const uint8_t* data, size_t end, const Found* found, Update* update) noexcept nogil:
    """The object and the violations (3.3.5.2) of an update whose properties were found up to ``end``."""
    cdef const uint8_t* ids = data + update.master_at + IDS_AT
    cdef uint32_t count = update.property_count
    cdef const uint8_t* values = ids + 4 * count
    cdef const PropertyRule* rule
    update.object = NO_OBJECT
    if update.command == DELETE:
        if count >= 2 and load_u32(ids + 4) == PROPID_D_OBJTYPE:
            if count == 2 and load_u32(ids) == PROPID_D_SCOPE:
                update.object = values[1]
            else:
                update.object = second_value(data, end, values, load_u32(ids))
            if update.object > MACHINE:
                update.object = NO_OBJECT
        if wire_unlikely(
            update.object != QUEUE or count != 2 or load_u32(ids) != PROPID_D_SCOPE or values[0] != 1
        ):
            update.violations |= PROPERTY_SET | repeated_properties(ids, count)
        if wire_unlikely(count < 2):
            update.violations |= PROPERTY_COUNT
    else:
        if wire_unlikely(count == 0):
            update.violations |= PROPERTY_COUNT
        else:
            update.object = object_of(load_u32(ids))
        if wire_unlikely(found.sum != found.bits):
            update.violations |= repeated_properties(ids, count)
        rule = &property_rules[update.command][update.object]
        if (found.bits & rule.judged) != rule.needed:
            update.violations |= PROPERTY_SET


cdef inline int read_update_head(
    const uint8_t* data, size_t size, size_t start, Update* update, Fault* fault
) noexcept nogil:
    """A Notification Update at ``start`` up to its PropertyId array: 2.2.6."""
    cdef size_t at = start + 2
    cdef size_t identifier_size = 16
    cdef bint regular = True
    cdef size_t wrong
    if wire_unlikely(size - start < SMALLEST_UPDATE):
        return update_fault(data, size, start, fault)
    # What was checked is used, as the bytes may change
    update.command = data[start]
    update.use_guid = data[start + 1]
    if wire_unlikely(update.command > DELETE or update.use_guid > 1):
        return update_fault(data, size, start, fault)
    update.identifier_at = at
    update.violations = USE_GUID if update.use_guid != (update.command != CREATE) else 0
    if not update.use_guid:
        identifier_size = read_path_name(data, size, at, &regular)
        if wire_unlikely(identifier_size == 0):
            return update_fault(data, size, start, fault)
        if wire_unlikely(not regular) and not is_path_name(data + at, (identifier_size >> 1) - 1, &wrong):
            update.violations |= PATH_NAME_SYNTAX
    update.identifier_size = identifier_size
    at += identifier_size
    update.master_at = at
    if wire_unlikely(size - at < IDS_AT):
        return update_fault(data, size, start, fault)
    update.property_count = data[at + COUNT_AT]
    if wire_unlikely(4 * <size_t>update.property_count > size - at - IDS_AT):
        return update_fault(data, size, start, fault)
    return 0


cdef inline int read_update_properties(
    const uint8_t* data, size_t size, size_t* position, const PropertyColumns* columns, size_t* property, bint wanted,
    Update* update, Fault* fault,
) noexcept nogil:
    """What follows the head of an update at ``position``: properties, written to ``columns`` from ``property`` on.

    On success both move past the update. ``wanted`` is a constant: whether to write properties.
    """
    cdef Found found
    cdef size_t end = read_properties(data, size, update, columns, property[0], wanted, &found)
    if wire_unlikely(end == 0):
        return update_fault(data, size, position[0], fault)
    position[0] = end
    property[0] += update.property_count
    judge_properties(data, end, &found, update)
    return 0


cdef inline int read_update(
    const uint8_t* data, size_t size, size_t* position, const PropertyColumns* columns, size_t* property, bint wanted,
    Update* update, Fault* fault,
) noexcept nogil:
    """One Notification Update at ``position``: ``read_update_head`` and ``read_update_properties``."""
    if read_update_head(data, size, position[0], update, fault) != 0:
        return -1
    return read_update_properties(data, size, position, columns, property, wanted, update, fault)


cdef inline size_t write_update_head(
    uint8_t* target, uint32_t command, const uint8_t* guid, const uint8_t* path, size_t path_size,
    const uint8_t* master_guid, uint32_t property_count,
) noexcept nogil:
    """Write a Notification Update up to its PropertyId array; returns the size. ``guid`` NULL: by path.

    ``path`` has no 0x0000 at its end. Reserved is written as zeros.
    """
    cdef size_t at
    target[0] = <uint8_t>command
    target[1] = guid != NULL
    if guid != NULL:
        memcpy(target + 2, guid, 16)
        at = 18
    else:
        memcpy(target + 2, path, path_size)
        memset(target + 2 + path_size, 0, 2)
        at = 4 + path_size
    memcpy(target + at, master_guid, 16)
    memset(target + at + RESERVED_AT, 0, COUNT_AT - RESERVED_AT)
    target[at + COUNT_AT] = <uint8_t>property_count
    return at + IDS_AT
