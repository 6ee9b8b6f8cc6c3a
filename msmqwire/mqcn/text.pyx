"""The texts of MS-MQCN, unit by unit: QueuePathName ([MS-MQMQ] 2.1.1) and Notification Body ([MS-MQCN] 2.2.5).

Both are ABNF: literals match in any case of ASCII letters and of no others.
"""

from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint16_t, uint32_t
from libc.string cimport memcpy, memset

from msmqwire.mqcn.fields cimport (
    BACKSLASH, FIELD_DOMAIN_CONTROLLER, FIELD_EVENT, FIELD_NOTIFICATION_BODY, FIELD_OBJECT_GUID, FIRST_VISIBLE,
    HEADER_SIZE, LAST_VISIBLE, MAX_COMPUTER, MAX_QUEUE_NAME, SEMICOLON, TRAILING_BYTES, Field,
)
from msmqwire.wire.cursor cimport load_u16
from msmqwire.wire.fault cimport BAD_TEXT, Fault, set_fault
from msmqwire.wire.guid cimport GUID_SIZE, GUID_TEXT_SIZE, format_guid


cdef size_t matching(const uint8_t* text, size_t units, const char* expected, size_t length) noexcept nogil:
    """How many code units of ``text`` begin ``expected``, lower-case ASCII, in any case of ASCII letters."""
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


# --- Path names ---


cdef inline bint is_queue_name(const uint8_t* name, size_t units) noexcept nogil:
    """QueueName of [MS-MQMQ] 2.1.1, of any version: M{1,124}, or without ``"``, ``+`` and ``,`` M{1,124};M{1,32}."""
    cdef size_t suffix = 0  # where the part behind the semicolon begins
    cdef bint old = False
    cdef size_t i
    cdef uint16_t unit
    for i in range(units):
        unit = load_u16(name + 2 * i)
        if unit < FIRST_VISIBLE or unit > LAST_VISIBLE + 1 or unit == BACKSLASH:
            return False
        if unit == SEMICOLON:
            if suffix:
                return False
            suffix = i + 1
        elif unit == c'"' or unit == c"+" or unit == c",":
            old = True
    if suffix == 0:
        return 1 <= units <= MAX_QUEUE_NAME
    return not old and 1 <= suffix - 1 <= MAX_QUEUE_NAME and 1 <= units - suffix <= 32


cdef bint is_path_name(const uint8_t* path, size_t units) noexcept nogil:
    """QueuePathName of [MS-MQMQ] 2.1.1: a computer, a backslash, and the name of a public, private or system queue."""
    cdef size_t backslash = units
    cdef size_t name_units
    cdef size_t i
    cdef const uint8_t* name
    for i in range(units):
        if load_u16(path + 2 * i) == BACKSLASH:
            backslash = i
    if backslash == units:
        return False
    for i in range(backslash):
        if not FIRST_VISIBLE <= load_u16(path + 2 * i) <= LAST_VISIBLE:
            return False
    name = path + 2 * (backslash + 1)
    name_units = units - backslash - 1
    if 1 <= backslash <= MAX_COMPUTER:
        if is_queue_name(name, name_units):
            return True
        if matching(name, name_units, b"system$;", 8) == 8 and is_queue_name(name + 16, name_units - 8):
            return True
    # A computer may hold backslashes itself, so that ``private$`` counts only where the name is too long without it
    return (
        10 <= backslash <= MAX_COMPUTER + 9
        and matching(path + 2 * (backslash - 9), 9, b"\\private$", 9) == 9
        and is_queue_name(name, name_units)
    )


# --- Bodies ---


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


cdef bint ends_with(const uint8_t* text, size_t units, const char* expected, size_t length) noexcept nogil:
    return units >= length and matching(text + 2 * (units - length), length, expected, length) == length


cdef int text_fault(Fault* fault, Field field, size_t unit) noexcept nogil:
    return set_fault(fault, BAD_TEXT, <uint32_t>field, HEADER_SIZE + 2 * unit, 0, 0)


cdef int hexadecimal_value(uint16_t unit) noexcept nogil:
    if c"0" <= unit <= c"9":
        return unit - c"0"
    if c"a" <= (unit | 0x20) <= c"f" and unit < 0x80:
        return (unit | 0x20) - c"a" + 10
    return -1


# For each of the 32 digits, in the order of the text, the byte of the GUID in packet order that it is half of
cdef uint8_t[16] TEXT_ORDER
TEXT_ORDER[:] = [3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15]


cdef size_t read_guid(const uint8_t* text, size_t units, uint8_t* guid) noexcept nogil:
    """Read the 36 characters of a GUID; the place of the first that is none of one, 36 when all are."""
    cdef size_t i
    cdef size_t digit = 0
    cdef int value
    cdef uint16_t unit
    memset(guid, 0, GUID_SIZE)
    for i in range(<size_t>GUID_TEXT_SIZE):
        if i >= units:
            return i
        unit = load_u16(text + 2 * i)
        if i == 8 or i == 13 or i == 18 or i == 23:
            if unit != c"-":
                return i
            continue
        value = hexadecimal_value(unit)
        if value < 0:
            return i
        guid[TEXT_ORDER[digit >> 1]] |= <uint8_t>(value << (0 if digit & 1 else 4))
        digit += 1
    return GUID_TEXT_SIZE


cdef int read_body(const uint8_t* data, size_t size, Body* body, Fault* fault) noexcept nogil:
    """The Notification Body of a message whose header was read: [MS-MQCN] 2.2.5, anchored at both ends."""
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
    at = matching(text, units, OPENING, OPENING_UNITS)
    if at < OPENING_UNITS:
        return text_fault(fault, FIELD_NOTIFICATION_BODY, at)
    if at == units or not c"1" <= load_u16(text + 2 * at) <= c"4":
        return text_fault(fault, FIELD_EVENT, at)
    body.event = load_u16(text + 2 * at) - c"0"
    at += 1
    found = matching(text + 2 * at, units - at, EVENT_TO_GUID, EVENT_TO_GUID_UNITS)
    at += found
    if found < EVENT_TO_GUID_UNITS:
        return text_fault(fault, FIELD_NOTIFICATION_BODY, at)
    found = read_guid(text + 2 * at, units - at, body.guid)
    at += found
    if found < GUID_TEXT_SIZE:
        return text_fault(fault, FIELD_OBJECT_GUID, at)
    found = matching(text + 2 * at, units - at, GUID_END, GUID_END_UNITS)
    at += found
    if found < GUID_END_UNITS:
        return text_fault(fault, FIELD_NOTIFICATION_BODY, at)
    if at < units and load_u16(text + 2 * at) == c" ":
        at += 1
    found = matching(text + 2 * at, units - at, GUID_TO_NAME, GUID_TO_NAME_UNITS)
    at += found
    if found < GUID_TO_NAME_UNITS:
        return text_fault(fault, FIELD_NOTIFICATION_BODY, at)
    if not ends_with(text + 2 * at, units - at, CLOSING, CLOSING_UNITS):
        return text_fault(fault, FIELD_NOTIFICATION_BODY, units)
    end = units - CLOSING_UNITS
    body.name_at = HEADER_SIZE + 2 * at
    body.name_size = 2 * (end - at)
    if at == end or end - at > MAX_NAME_UNITS:
        return text_fault(fault, FIELD_DOMAIN_CONTROLLER, at)
    while at < end:
        if not FIRST_VISIBLE <= load_u16(text + 2 * at) <= LAST_VISIBLE:
            return text_fault(fault, FIELD_DOMAIN_CONTROLLER, at)
        at += 1
    return 0


cdef uint8_t* put_units(uint8_t* target, const char* text) noexcept nogil:
    """ASCII as code units; returns the byte behind."""
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
    """A Notification Body in the case that the specification shows; returns its size."""
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
