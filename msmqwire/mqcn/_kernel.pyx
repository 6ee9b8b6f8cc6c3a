"""The kernel of MS-MQCN, what _kernel.pxd does not inline: tables, faults, path names and bodies."""

from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint16_t, uint32_t
from libc.string cimport memcpy, memset

from msmqwire.formatname._kernel cimport PATH_NAME, Name, read_element
from msmqwire.properties._lookup cimport KIND_NONE, property_kind, property_place
from msmqwire.propvariant._codec cimport text_size, value_fault, value_layouts, value_size
from msmqwire.wire.cursor cimport load_u16, load_u32
from msmqwire.wire._fault cimport (
    BAD_COMMAND, BAD_COUNT, BAD_NAME, BAD_SIZE, BAD_TERMINATOR, BAD_TEXT, BAD_USE_GUID, BAD_VERSION, TRUNCATED,
    UNKNOWN_PROPERTY, Fault, set_fault, set_fault_of,
)
from msmqwire.wire._guid cimport GUID_SIZE, GUID_TEXT_SIZE, format_guid, parse_guid

from msmqwire.mqcn.property_sets import SENT
from msmqwire.properties.table import by_name

NO_COLUMNS.ids = NULL
NO_COLUMNS.values = NULL

cdef int fill_entries() except -1:
    cdef PropertyEntry* entry
    cdef uint32_t propid
    cdef uint32_t group
    cdef uint32_t bit
    for propid in range(<uint32_t>PROPID_LIMIT):
        entry = &property_entries[propid]
        group = (propid - 1000) // 100 if propid > 1000 else propid // 100
        entry.kind = property_kind(propid)
        if not value_layouts[entry.kind].mask:
            entry.width = <uint8_t>value_layouts[entry.kind].base  # of UNSIZED nothing is left
        entry.object = <uint8_t>(group if group == QUEUE or group == MACHINE else NO_OBJECT)
        entry.bit = OTHERS
    for bit in range(<uint32_t>SENT_COUNT):
        propid = by_name("PROPID_" + SENT[bit]).number
        property_entries[propid].bit = <uint32_t>1 << bit
    return 0


cdef void set_rule(Operation operation, Object object, uint32_t allowed, uint32_t needed):
    cdef PropertyRule* rule = &property_rules[<uint32_t>operation][<uint32_t>object]
    rule.judged = needed | ~allowed
    rule.needed = needed


cdef void fill_rules():
    for object in (NO_OBJECT, QUEUE, MACHINE):
        set_rule(CREATE, object, CREATED, CREATED)
    set_rule(CHANGE, QUEUE, QUEUE_CHANGES, QUEUE_KEY)
    set_rule(CHANGE, MACHINE, MACHINE_CHANGES, MACHINE_KEY)
    # A change of neither never conforms: it would need both, and its first PROPID is of neither
    set_rule(CHANGE, NO_OBJECT, QUEUE_KEY | MACHINE_KEY, QUEUE_KEY | MACHINE_KEY)


fill_entries()
fill_rules()


# --- Cold paths: which field is at fault ---


cdef int header_fault(const uint8_t* data, size_t size, Fault* fault) noexcept nogil:
    if size == 0:
        return set_fault(fault, TRUNCATED, Field.Version, 0, 1, 0)
    if data[0] != 1 and data[0] != 2:
        return set_fault(fault, BAD_VERSION, Field.Version, 0, 0, data[0])
    if size == 1:
        return set_fault(fault, TRUNCATED, Field.NumberOfUpdateNotifications, 1, 1, 0)
    return set_fault(fault, BAD_COUNT, Field.NumberOfUpdateNotifications, 1, 1, data[1])


cdef int item_fault(Fault* fault, uint32_t item) noexcept nogil:
    fault.item = item
    return -1


cdef int update_fault(const uint8_t* data, size_t size, size_t at, Fault* fault) noexcept nogil:
    """The first fault of an update that ``read_update`` refused, in wire order."""
    cdef size_t needed
    cdef uint32_t count
    cdef uint32_t k
    cdef const uint8_t* ids
    cdef uint8_t kind
    if at == size:
        return set_fault(fault, TRUNCATED, Field.Command, at, 1, 0)
    if data[at] > DELETE:
        return set_fault(fault, BAD_COMMAND, Field.Command, at, 0, data[at])
    if size - at < 2:
        return set_fault(fault, TRUNCATED, Field.UseGuid, at + 1, 1, 0)
    if data[at + 1] > 1:
        return set_fault(fault, BAD_USE_GUID, Field.UseGuid, at + 1, 0, data[at + 1])
    at += 2
    if data[at - 1]:
        if size - at < GUID_SIZE:
            return set_fault(fault, TRUNCATED, Field.GuidIdentifier, at, GUID_SIZE, size - at)
        at += GUID_SIZE
    else:
        needed = text_size(data, size, at)
        if needed == 0:
            return set_fault(fault, BAD_TERMINATOR, Field.PathName, at, size - at, size - at)
        at += needed
    if size - at < GUID_SIZE:
        return set_fault(fault, TRUNCATED, Field.GuidMasterId, at, GUID_SIZE, size - at)
    if size - at < COUNT_AT:
        at += RESERVED_AT
        return set_fault(fault, TRUNCATED, Field.Reserved, at, COUNT_AT - RESERVED_AT, size - at)
    if size - at < IDS_AT:
        return set_fault(fault, TRUNCATED, Field.NumberOfProperties, at + COUNT_AT, 1, 0)
    count = data[at + COUNT_AT]
    at += IDS_AT
    ids = data + at
    if 4 * <size_t>count > size - at:
        return set_fault_of(fault, TRUNCATED, Field.PropertyId, at, 4 * count, size - at, count)
    for k in range(count):
        if property_kind(load_u32(ids + 4 * k)) == KIND_NONE:
            set_fault(fault, UNKNOWN_PROPERTY, Field.PropertyId, at + 4 * k, 0, load_u32(ids + 4 * k))
            return item_fault(fault, k)
    at += 4 * count
    for k in range(count):
        kind = property_kind(load_u32(ids + 4 * k))
        needed = value_size(kind, data, size, at)
        if needed == 0:
            value_fault(kind, data, size, at, Field.PropertyValue, fault)
            return item_fault(fault, k)
        at += needed
    # Every byte is good now: the bytes changed since they were refused
    return set_fault(fault, BAD_SIZE, Field.Data, at, at, size)


cdef int violation_fault(const uint8_t* data, size_t size, Fault* fault) noexcept nogil:
    """As a fault, the first violation for which a conforming receiver disregards a message."""
    cdef Update update = no_update()
    cdef Body body
    cdef size_t at = HEADER_SIZE
    cdef size_t properties = 0
    cdef size_t wrong = 0
    if data[0] == 2:
        read_body(data, size, &body, fault)
        return set_fault(fault, BAD_SIZE, Field.Data, body.end, body.end, size)
    for _ in range(data[1]):
        read_update(data, size, &at, &NO_COLUMNS, &properties, False, &update, fault)
        if update.violations & PATH_NAME_SYNTAX:
            at = update.identifier_at
            is_path_name(data + at, (update.identifier_size >> 1) - 1, &wrong)
            return set_fault(fault, BAD_NAME, Field.PathName, at + 2 * wrong, 0, load_u16(data + at + 2 * wrong))
        if update.violations & PROPERTY_COUNT:
            return set_fault(
                fault, BAD_COUNT, Field.NumberOfProperties, update.master_at + COUNT_AT,
                2 if update.command == DELETE else 1, update.property_count,
            )
    return set_fault(fault, BAD_SIZE, Field.Data, at, at, size)


cdef uint32_t repeated_properties(const uint8_t* ids, uint32_t count) noexcept nogil:
    """DUPLICATE_PROPERTY when a PROPID is repeated, else 0."""
    cdef uint8_t[256] seen
    cdef uint32_t k
    cdef uint8_t place
    memset(seen, 0, sizeof(seen))
    for k in range(count):
        place = property_place(load_u32(ids + 4 * k))
        if seen[place]:
            return DUPLICATE_PROPERTY
        seen[place] = 1
    return 0


cdef uint32_t second_value(const uint8_t* data, size_t size, const uint8_t* values, uint32_t propid) noexcept nogil:
    """The byte after the value of the first property, whose PROPID is ``propid``; 0 past the end."""
    cdef size_t values_at = <size_t>(values - data)
    cdef size_t at = values_at + value_size(property_kind(propid), data, size, values_at)
    return data[at] if at < size else 0


# --- Path names: [MS-MQMQ] 2.1.1 ---

cdef enum:
    LONGEST_PATH_NAME = 423  # a computer, \private$\, a queue, a semicolon and a subqueue


cdef bint is_path_name(const uint8_t* path, size_t units, size_t* wrong) noexcept nogil:
    """Return True if a PathName is a QueuePathName of the grammar; if not, ``wrong`` is its first wrong unit.

    That is ``units`` where the name is incomplete.
    """
    cdef uint8_t[LONGEST_PATH_NAME + 1] text  # one unit more is always wrong
    cdef Name name
    cdef Fault fault
    cdef uint16_t unit
    cdef size_t at = 0
    cdef size_t i
    units = min(units, <size_t>LONGEST_PATH_NAME + 1)
    for i in range(units):
        unit = load_u16(path + 2 * i)
        text[i] = <uint8_t>min(unit, <uint16_t>0xFF)  # the grammar allows neither
    if read_element(text, units, &at, PATH_NAME, &name, &fault) == 0:
        return True
    wrong[0] = fault.offset
    return False


# --- Bodies: [MS-MQCN] 2.2.5. Literals match in any case of ASCII letters ---

cdef const char* OPENING = b"<notification><event>"
cdef const char* EVENT_TO_GUID = b"</event><objectguid>"
cdef const char* GUID_END = b"</objectguid"
cdef const char* GUID_TO_NAME = b"><domaincontroller>"
cdef const char* CLOSING = b"</domaincontroller></notification>"

cdef enum:
    OPENING_UNITS = 21
    EVENT_TO_GUID_UNITS = 20
    GUID_END_UNITS = 12
    GUID_TO_NAME_UNITS = 19
    CLOSING_UNITS = 34
    LAST_TAG_AT = 19       # of </notification> in CLOSING
    LAST_TAG_UNITS = 15


cdef size_t matching(const uint8_t* text, size_t units, const char* expected, size_t length) noexcept nogil:
    """The number of code units of ``text`` that match ``expected``, lower-case ASCII, in any case of ASCII letters."""
    cdef size_t i
    cdef uint16_t unit
    if units > length:
        units = length
    for i in range(units):
        unit = load_u16(text + 2 * i)
        if c"A" <= unit <= c"Z":
            unit |= 0x20
        if unit != expected[i]:
            return i
    return units


cdef bint ends_with(const uint8_t* text, size_t units, const char* expected, size_t length) noexcept nogil:
    return units >= length and matching(text + 2 * (units - length), length, expected, length) == length


cdef int text_fault(Fault* fault, Field field, const uint8_t* text, size_t units, size_t unit) noexcept nogil:
    """The code unit ``unit`` breaks the grammar, or the text ends there."""
    cdef bint there = unit < units
    return set_fault(
        fault, BAD_TEXT, <uint32_t>field, HEADER_SIZE + 2 * unit, there, load_u16(text + 2 * unit) if there else 0
    )


cdef bint skip(
    const uint8_t* text, size_t units, size_t* at, const char* expected, size_t length, Fault* fault
) noexcept nogil:
    """Move ``at`` past ``expected``; False with ``fault`` set where it does not match."""
    cdef size_t found = matching(text + 2 * at[0], units - at[0], expected, length)
    at[0] += found
    if found < length:
        text_fault(fault, Field.NotificationBody, text, units, at[0])
    return found == length


cdef size_t read_guid(const uint8_t* text, size_t units, uint8_t* guid) noexcept nogil:
    """Parse the text of a GUID in code units of UTF-16. Return the number of characters read."""
    cdef uint8_t[GUID_TEXT_SIZE] digits
    cdef size_t i
    units = min(units, <size_t>GUID_TEXT_SIZE)
    for i in range(units):
        digits[i] = <uint8_t>min(load_u16(text + 2 * i), <uint16_t>0xFF)  # which is no digit
    return parse_guid(digits, units, guid)


cdef int read_body(const uint8_t* data, size_t size, Body* body, Fault* fault) noexcept nogil:
    """The Notification Body of a message after its header; the grammar must match from end to end."""
    cdef const uint8_t* text = data + HEADER_SIZE
    cdef size_t units = (size - HEADER_SIZE) // 2
    cdef size_t at
    cdef size_t end
    cdef size_t found
    body.violations = 0
    if units and load_u16(text + 2 * (units - 1)) == 0:
        units -= 1
    if not ends_with(text, units, CLOSING + LAST_TAG_AT, LAST_TAG_UNITS):
        end = units
        while end and not ends_with(text, end, CLOSING + LAST_TAG_AT, LAST_TAG_UNITS):
            end -= 1
        if end:
            units = end
            body.violations = TRAILING_BYTES
    body.end = HEADER_SIZE + 2 * units
    at = 0
    if not skip(text, units, &at, OPENING, OPENING_UNITS, fault):
        return -1
    body.event = <uint32_t>load_u16(text + 2 * at) - c"0" if at < units else 0
    if not 1 <= body.event <= 4:
        return text_fault(fault, Field.Event, text, units, at)
    at += 1
    if not skip(text, units, &at, EVENT_TO_GUID, EVENT_TO_GUID_UNITS, fault):
        return -1
    found = read_guid(text + 2 * at, units - at, body.guid)
    at += found
    if found < GUID_TEXT_SIZE:
        return text_fault(fault, Field.ObjectGuid, text, units, at)
    if not skip(text, units, &at, GUID_END, GUID_END_UNITS, fault):
        return -1
    if at < units and load_u16(text + 2 * at) == c" ":
        at += 1
    if not skip(text, units, &at, GUID_TO_NAME, GUID_TO_NAME_UNITS, fault):
        return -1
    if not ends_with(text + 2 * at, units - at, CLOSING, CLOSING_UNITS):
        return text_fault(fault, Field.NotificationBody, text, units, units)
    end = units - CLOSING_UNITS
    body.name_at = HEADER_SIZE + 2 * at
    body.name_size = 2 * (end - at)
    if at == end or end - at > MAX_NAME_UNITS:
        return text_fault(fault, Field.DomainController, text, units, at)
    while at < end:
        if not FIRST_VISIBLE <= load_u16(text + 2 * at) <= LAST_VISIBLE:
            return text_fault(fault, Field.DomainController, text, units, at)
        at += 1
    return 0


cdef uint8_t* put_units(uint8_t* target, const char* text) noexcept nogil:
    """Write ASCII as code units; returns the next byte to write."""
    while text[0]:
        target[0] = <uint8_t>text[0]
        target[1] = 0
        target += 2
        text += 1
    return target


cdef size_t largest_body(size_t name_size) noexcept nogil:
    return 2 * (
        OPENING_UNITS + 1 + EVENT_TO_GUID_UNITS + GUID_TEXT_SIZE + GUID_END_UNITS + 1 + GUID_TO_NAME_UNITS
        + CLOSING_UNITS
    ) + name_size


cdef size_t write_body(
    uint8_t* target, uint32_t event, const uint8_t* guid, const uint8_t* name, size_t name_size, bint closing_space
) noexcept nogil:
    """Write a Notification Body with the letters of the specification; returns its size."""
    cdef uint8_t[37] digits
    cdef char[2] number
    cdef uint8_t* at = put_units(target, b"<Notification><Event>")
    cdef size_t i
    number[0] = <char>(c"0" + event)
    number[1] = 0
    at = put_units(at, number)
    at = put_units(at, b"</Event><ObjectGuid>")
    format_guid(guid, digits)
    for i in range(<size_t>GUID_TEXT_SIZE):
        if digits[i] >= c"a":
            digits[i] -= 0x20
    digits[GUID_TEXT_SIZE] = 0
    at = put_units(at, <const char*>digits)
    at = put_units(at, b"</ObjectGuid ><DomainController>" if closing_space else b"</ObjectGuid><DomainController>")
    memcpy(at, name, name_size)
    at = put_units(at + name_size, b"</DomainController></Notification>")
    return <size_t>(at - target)
