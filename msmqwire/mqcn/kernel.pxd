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
from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from msmqwire.columns.convert cimport TextSpan
from msmqwire.properties.lookup cimport KIND_BLOB, KIND_LPWSTR, PROPID_LIMIT
from msmqwire.propvariant.codec cimport text_size, value_size
from msmqwire.wire.cursor cimport load_u32
from msmqwire.wire.fault cimport Fault
from msmqwire.wire.simd cimport wire_find_units, wire_lowest_bit, wire_units_outside, wire_unlikely


cpdef enum Field:
    """Fields as the specification names them; the field of a fault."""
    Version
    NumberOfUpdateNotifications
    Command
    UseGuid
    PathName
    GuidIdentifier
    GuidMasterId
    Reserved
    NumberOfProperties
    PropertyId
    PropertyValue
    Event
    ObjectGuid
    DomainController
    NotificationBody
    Data


cpdef enum Violation:
    """Bits of the ``violations`` column of the notifications table; with ``strict=True`` 2, 4 and 8 are faults."""
    NO_UPDATES = 1
    TRAILING_BYTES = 2
    PATH_NAME_SYNTAX = 4
    PROPERTY_COUNT = 8
    USE_GUID = 16
    PROPERTY_SET = 32
    DUPLICATE_PROPERTY = 64

cdef enum:
    DISCARDABLE = 2 | 4 | 8
    NEVER_WRITTEN = 1 | 2 | 4


cpdef enum Presence:
    """Bits of a row's presence byte above DECODED."""
    HAS_CHANGE = 2
    HAS_UPDATE = 4
    HAS_OBJECT = 8
    HAS_GUID = 16
    HAS_PATH = 32
    HAS_BODY = 64


cpdef enum Operation:
    """Command; the text form is the name in lower case."""
    CREATE
    CHANGE
    DELETE


cpdef enum Object:
    """What an update changes; the text form is the name in lower case."""
    NO_OBJECT
    QUEUE
    MACHINE

cdef enum:
    HEADER_SIZE = 2        # bytes of Version and NumberOfUpdateNotifications
    BACKSLASH = 0x5C
    SEMICOLON = 0x3B
    FIRST_VISIBLE = 0x21
    LAST_VISIBLE = 0x7E
    MAX_COMPUTER = 256     # code units
    MAX_QUEUE_NAME = 124
    MAX_NAME_UNITS = 256   # of a DomainController

cdef enum:
    SMALLEST_UPDATE = 45   # with an empty PathName
    RESERVED_AT = 16       # from GuidMasterId
    COUNT_AT = 40
    IDS_AT = 41
    MAX_UPDATES = 255
    MAX_PROPERTIES = 255
    SMALLEST_PROPERTY = 5  # PROPID and value

cdef enum:
    LONGEST_REGULAR_PATH = 381  # a computer, a backslash and a queue

cpdef enum PropertySet:
    """Bits of the PROPIDs that [MS-MQCN] 3.3.5.2 names, in the order of SENT in kernel.pyx."""
    CREATED = 0x7FFF            # the fifteen of a create
    QUEUE_KEY = 0x8000          # PROPID_Q_QMID
    QUEUE_CHANGES = 0x807F
    MACHINE_KEY = 0x30000       # PROPID_QM_MACHINE_ID and PROPID_QM_FOREIGN
    MACHINE_CHANGES = 0x1FF0000

cdef enum:
    OTHERS = 0x40000000         # any other
    SENT_COUNT = 25
    PROPID_D_SCOPE = 1403
    PROPID_D_OBJTYPE = 1404


cdef struct PropertyEntry:
    uint32_t width  # bytes of its value; UNSIZED where they depend on the value
    uint32_t kind
    uint64_t bit    # OTHERS where 3.3.5.2 does not name the PROPID


cdef PropertyEntry[PROPID_LIMIT + 1] property_entries  # by PROPID; the last is for all from PROPID_LIMIT on


# Where the properties are written.
cdef struct PropertyColumns:
    uint8_t* ids       # 4 bytes each
    TextSpan* values   # bytes of the payload


cdef PropertyColumns NO_COLUMNS


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
cdef uint32_t second_value(const uint8_t* data, size_t size, size_t values_at, uint32_t propid) noexcept nogil


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


cdef inline bint is_regular_path(const uint8_t* path, size_t units) noexcept nogil:
    """Whether a PathName is ``computer\\queue`` and so a QueuePathName; ``is_path_name`` judges any other.

    Sixteen code units are read at a time, the last of them in the fields after the PathName.
    """
    cdef size_t block = 0
    cdef size_t left
    cdef uint32_t within
    cdef uint32_t found
    cdef uint32_t irregular = 0
    cdef size_t backslash = 0
    if wire_unlikely(units > LONGEST_REGULAR_PATH):
        return False
    while block < units:
        left = units - block
        within = 0xFFFF if left >= 16 else (<uint32_t>1 << left) - 1
        irregular |= (
            wire_units_outside(path + 2 * block, FIRST_VISIBLE, LAST_VISIBLE)
            | wire_find_units(path + 2 * block, SEMICOLON, SEMICOLON)
        ) & within
        found = wire_find_units(path + 2 * block, BACKSLASH, BACKSLASH) & within
        if found:
            irregular |= found & (found - 1)  # a regular path has one backslash
            irregular |= backslash != 0
            backslash = block + wire_lowest_bit(found)
        block += 16
    return (
        irregular == 0 and backslash - 1 < <size_t>MAX_COMPUTER
        and units - backslash - 2 < <size_t>MAX_QUEUE_NAME
    )


cdef inline uint32_t object_of(uint32_t propid) noexcept nogil:
    """The object that a PROPID belongs to: [MS-MQCN] 3.2.5.1."""
    cdef uint32_t group = (propid - 1000) // 100 if propid > 1000 else propid // 100
    return group if group == QUEUE or group == MACHINE else <uint32_t>NO_OBJECT


cdef inline void judge_update(
    const uint8_t* data, size_t end, size_t values_at, uint64_t seen, uint64_t sum, Update* update
) noexcept nogil:
    """The object and the violations (3.3.5.2) of an update that was read up to ``end``.

    ``seen`` are the bits of its PROPIDs, ``sum`` their sum, which is equal unless a PROPID is repeated.
    """
    cdef const uint8_t* ids = data + update.master_at + IDS_AT
    cdef const uint8_t* values = data + values_at
    cdef uint32_t count = update.property_count
    cdef uint32_t violations = USE_GUID if update.use_guid != (update.command != CREATE) else 0
    cdef uint32_t object = NO_OBJECT
    cdef bint conforms
    cdef size_t wrong
    if update.command == DELETE:
        conforms = False
        if count >= 2 and load_u32(ids + 4) == PROPID_D_OBJTYPE:
            if count == 2 and load_u32(ids) == PROPID_D_SCOPE:
                object = values[1]
                conforms = values[0] == 1 and object == QUEUE
            else:
                object = second_value(data, end, values_at, load_u32(ids))
            if object > MACHINE:
                object = NO_OBJECT
        if wire_unlikely(not conforms):
            violations |= PROPERTY_SET | repeated_properties(ids, count)
        if wire_unlikely(count < 2):
            violations |= PROPERTY_COUNT
    else:
        if wire_unlikely(count == 0):
            violations |= PROPERTY_COUNT
        else:
            object = object_of(load_u32(ids))
        if wire_unlikely(sum != seen):
            violations |= repeated_properties(ids, count)
        if update.command == CREATE:
            conforms = seen == CREATED
        elif object == QUEUE:
            conforms = (seen & ~<uint64_t>QUEUE_CHANGES) == 0 and (seen & QUEUE_KEY) != 0
        else:
            conforms = (
                object == MACHINE and (seen & ~<uint64_t>MACHINE_CHANGES) == 0
                and (seen & MACHINE_KEY) == MACHINE_KEY
            )
        if not conforms:
            violations |= PROPERTY_SET
    if not update.use_guid and wire_unlikely(
        not is_regular_path(data + update.identifier_at, (update.identifier_size >> 1) - 1)
    ):
        if not is_path_name(data + update.identifier_at, (update.identifier_size >> 1) - 1, &wrong):
            violations |= PATH_NAME_SYNTAX
    update.object = object
    update.violations = violations


cdef inline int read_update(
    const uint8_t* data, size_t size, size_t* position, const PropertyEntry* entries, const PropertyColumns* columns,
    size_t* property, bint wanted, Update* update, Fault* fault,
) noexcept nogil:
    """One Notification Update at ``position``, its properties written to ``columns`` from ``property`` on: 2.2.6.

    On success both move past the update. ``wanted`` is a constant: whether to write properties.
    """
    cdef size_t start = position[0]
    cdef size_t at = start
    cdef size_t here = property[0]
    cdef size_t identifier_size = 16
    cdef size_t needed
    cdef const uint8_t* ids
    cdef const PropertyEntry* entry
    cdef uint32_t count
    cdef uint32_t k
    cdef uint32_t propid
    cdef uint64_t seen = 0
    cdef uint64_t sum = 0
    cdef uint8_t* id_column = columns.ids + 4 * here if wanted else NULL
    cdef TextSpan* value_column = columns.values + here if wanted else NULL
    cdef uint64_t span
    if wire_unlikely(size - at < SMALLEST_UPDATE):
        return update_fault(data, size, start, fault)
    update.command = data[at]
    update.use_guid = data[at + 1]
    if wire_unlikely(update.command > DELETE or update.use_guid > 1):
        return update_fault(data, size, start, fault)
    at += 2
    if not update.use_guid:
        identifier_size = text_size(data, size, at)
        if wire_unlikely(identifier_size == 0):
            return update_fault(data, size, start, fault)
    update.identifier_at = at
    update.identifier_size = identifier_size
    at += identifier_size
    if wire_unlikely(size - at < IDS_AT):
        return update_fault(data, size, start, fault)
    update.master_at = at
    count = data[at + COUNT_AT]
    update.property_count = count
    at += IDS_AT
    ids = data + at
    if wire_unlikely(4 * count > size - at):
        return update_fault(data, size, start, fault)
    at += 4 * count
    for k in range(count):
        propid = load_u32(ids + 4 * k)
        entry = &entries[propid if propid < PROPID_LIMIT else PROPID_LIMIT]
        seen |= entry.bit
        sum += entry.bit
        needed = entry.width
        # The width of a kind without a fixed width is larger than any payload. A fixed width depends on no byte of the
        # value, so the processor need not wait for a count.
        if needed > size - at:
            needed = 0
            if entry.kind == KIND_LPWSTR:
                needed = text_size(data, size, at)
            elif entry.kind >= KIND_BLOB:
                needed = value_size(entry.kind, data, size, at)
            if wire_unlikely(needed == 0):
                return update_fault(data, size, start, fault)
        if wanted:
            memcpy(id_column + 4 * k, &propid, 4)
            span = at | <uint64_t>needed << 32  # offset and length of a TextSpan in one store
            memcpy(value_column + k, &span, 8)
        at += needed
    position[0] = at
    property[0] = here + count
    judge_update(data, at, <size_t>(ids - data) + 4 * count, seen, sum, update)
    return 0


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
