"""Queues as message packets address them: lists of them, and the two that the protocol itself uses."""

from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint16_t, uint32_t
from libc.string cimport memcpy, memset, strlen

from msmqwire.mqqb._kernel cimport (
    ADDRESS_FIELD_COUNT, ADDRESS_FORMAT_NAME_LIST, ADDRESS_HEADER, ADDRESS_HEADER_FIXED_SIZE, ADDRESS_HEADER_ID,
    ADDRESS_HEADER_SIZE, HAS_MULTI_QUEUE, MULTI_QUEUE_SIGNATURE, QUEUE_COUNT, SIGNATURE_HEADER_ID, Field, Packet,
    padded, skip_padding,
)
from msmqwire.wire._address cimport AF_INET, AF_INET6, inet_pton
from msmqwire.wire.cursor cimport load_u16, load_u32
from msmqwire.wire._fault cimport (
    BAD_HEADER, BAD_SIZE, BAD_TERMINATOR, BAD_TYPE, TRUNCATED, Fault, FaultCode, set_fault, set_fault_of
)
from msmqwire.wire._format_name cimport (
    DIRECT_NAME, DISTRIBUTION_LIST, PRIVATE_QUEUE, PUBLIC_QUEUE, FormatName
)

cdef enum:
    LONGEST_IP_ADDRESS = 45

cdef const char* NOTIFY_QUEUE = "\\private$\\notify_queue$"
cdef const char* ORDER_QUEUE = "\\private$\\order_queue$"

ADDRESS_IDS[:] = [0x0064, 0x00C8, 0x012C]


# --- MultiQueueFormatHeader ---


cdef int element_fault(Fault* fault, FaultCode code, uint32_t field, uint32_t item, size_t at, size_t needed,
                       size_t available) noexcept nogil:
    set_fault(fault, code, field, at, needed, available)
    fault.item = item
    return -1


cdef int read_element(
    const uint8_t* data, size_t start, size_t end, size_t* at, uint32_t field, uint32_t item, FormatName* name,
    Fault* fault,
) noexcept nogil:
    """An MQFFormatNameElement of the header from ``start`` to ``end``: [MS-MQMQ] 2.2.18.1.4.

    Decision: a public name begins at a multiple of 4, like private names and distribution lists; the specification does
    not say.
    """
    cdef size_t here = at[0]
    cdef size_t value
    cdef size_t size
    cdef size_t units
    cdef uint32_t form
    memset(name, 0, sizeof(name[0]))
    if end - here < 2:
        return element_fault(fault, TRUNCATED, field, item, here, 2, end - here)
    form = load_u16(data + here)
    if form == DIRECT_NAME:
        value = here + 2
        units = units_to_null(data, end, value, (end - value) // 2)
        if units == (end - value) // 2:
            return element_fault(fault, BAD_TERMINATOR, field, item, here, end - here, end - here)
        name.offset = <uint32_t>value
        name.length = <uint32_t>(2 * units)
        at[0] = value + 2 * units + 2
    elif form == PUBLIC_QUEUE or form == PRIVATE_QUEUE or form == DISTRIBUTION_LIST:
        value = start + padded(here + 2 - start)
        size = 20 if form == PRIVATE_QUEUE else 16
        if value + size > end:
            return element_fault(fault, TRUNCATED, field, item, here, value + size - here, end - here)
        memcpy(name.guid, data + value, 16)
        if form == PRIVATE_QUEUE:
            name.number = load_u32(data + value + 16)
        at[0] = value + size
    else:
        return element_fault(fault, BAD_TYPE, field, item, here, 0, form)
    name.form = <uint8_t>form
    name.code = <uint8_t>form
    return 0


cdef int read_address_header(
    const uint8_t* data, size_t size, size_t* at, size_t queue, FormatName* names, size_t most, Packet* packet,
    Fault* fault,
) noexcept nogil:
    """An MQFAddressHeader, its first ``most`` names written to ``names`` unless that is NULL: [MS-MQMQ] 2.2.20.2."""
    cdef uint32_t field = <uint32_t>(Field.Destination + ADDRESS_FIELD_COUNT * queue)
    cdef size_t start = at[0]
    cdef size_t left = size - start
    cdef size_t header_size
    cdef size_t here = start + ADDRESS_HEADER_FIXED_SIZE
    cdef FormatName unwanted
    cdef uint32_t count
    cdef uint32_t k
    if left < ADDRESS_HEADER_FIXED_SIZE:
        return set_fault(fault, TRUNCATED, field + ADDRESS_HEADER, start, ADDRESS_HEADER_FIXED_SIZE, left)
    header_size = load_u32(data + start)
    if header_size < ADDRESS_HEADER_FIXED_SIZE:
        return set_fault_of(
            fault, BAD_SIZE, field + ADDRESS_HEADER_SIZE, start, ADDRESS_HEADER_FIXED_SIZE, header_size, header_size
        )
    if header_size > left and start + header_size <= packet.size:
        return set_fault_of(fault, TRUNCATED, field + ADDRESS_HEADER, start, header_size, left, header_size)
    if header_size > left:
        return set_fault_of(fault, BAD_SIZE, field + ADDRESS_HEADER_SIZE, start, header_size, left, header_size)
    if load_u16(data + start + 4) != ADDRESS_IDS[queue]:
        return set_fault(
            fault, BAD_HEADER, field + ADDRESS_HEADER_ID, start + 4, ADDRESS_IDS[queue], load_u16(data + start + 4)
        )
    count = load_u32(data + start + 8)
    packet.list_counts[queue] = count
    for k in range(count):
        if read_element(
            data, start, start + header_size, &here, field + ADDRESS_FORMAT_NAME_LIST, k,
            &unwanted if names == NULL or k >= most else names + k, fault,
        ) != 0:
            if fault.code == <uint32_t>TRUNCATED:
                fault.value = count
            return -1
    at[0] = start + skip_padding(header_size, left, packet)
    return 0


cdef int read_multi_queue(
    const uint8_t* data, size_t size, size_t* at, QueueLists* lists, Packet* packet, Fault* fault
) noexcept nogil:
    """MultiQueueFormatHeader: [MS-MQMQ] 2.2.20.1."""
    cdef size_t queue
    cdef size_t length
    packet.multi_queue_at = at[0]
    for queue in range(<size_t>QUEUE_COUNT):
        if read_address_header(
            data, size, at, queue, NULL if lists == NULL else lists.names[queue],
            0 if lists == NULL else lists.most[queue], packet, fault,
        ) != 0:
            return -1
    if size - at[0] < 8:
        return set_fault(fault, TRUNCATED, Field.MQFSignatureHeader, at[0], 8, size - at[0])
    if load_u16(data + at[0]) != SIGNATURE_HEADER_ID:
        return set_fault(
            fault, BAD_HEADER, Field.MQFSignatureHeader_ID, at[0], SIGNATURE_HEADER_ID, load_u16(data + at[0])
        )
    length = load_u32(data + at[0] + 4)
    at[0] += 8
    if length > size - at[0]:
        return set_fault_of(
            fault, TRUNCATED, Field.MQFSignatureHeader_Signature, at[0], length, size - at[0], length
        )
    packet.parts[MULTI_QUEUE_SIGNATURE].offset = <uint32_t>at[0]
    packet.parts[MULTI_QUEUE_SIGNATURE].length = <uint32_t>length
    packet.presence |= HAS_MULTI_QUEUE
    at[0] += length
    return 0


# --- Queues with a meaning ---


cdef bint is_text(const uint8_t* units, const char* text, size_t count) noexcept nogil:
    """Return True if ``count`` code units are this text in lower case, letters of ASCII in either case."""
    cdef size_t i
    cdef uint16_t unit
    for i in range(count):
        unit = load_u16(units + 2 * i)
        if c"A" <= unit <= c"Z":
            unit += 32
        if unit != <uint16_t>text[i]:
            return False
    return True


cdef bint is_ip_address(const uint8_t* units, size_t count) noexcept nogil:
    """Return True if the code units are an IPv4address or IPv6address of [RFC3986]."""
    cdef char[LONGEST_IP_ADDRESS + 1] text
    cdef uint8_t[16] address
    cdef size_t i
    if count > LONGEST_IP_ADDRESS:
        return False
    for i in range(count):
        if load_u16(units + 2 * i) == 0 or load_u16(units + 2 * i) > 0x7F:
            return False
        text[i] = <char>units[2 * i]
    text[count] = 0
    return inet_pton(AF_INET, text, address) == 1 or inet_pton(AF_INET6, text, address) == 1


cdef bint is_ipx_address(const uint8_t* units, size_t count) noexcept nogil:
    """Return True if the code units are 8HEXDIG "." 12HEXDIG."""
    cdef size_t i
    cdef uint16_t unit
    if count != 21 or load_u16(units + 16) != c".":
        return False
    for i in range(count):
        unit = load_u16(units + 2 * i)
        if i != 8 and not (c"0" <= unit <= c"9" or c"a" <= unit | 0x20 <= c"f"):
            return False
    return True


cdef bint ends_with(const uint8_t* data, const FormatName* name, const char* text) noexcept nogil:
    cdef size_t count = strlen(text)
    cdef size_t units = name.length // 2
    return units >= count and is_text(data + name.offset + 2 * (units - count), text, count)


cdef bint ends_as_notify_queue(const uint8_t* data, const FormatName* name) noexcept nogil:
    return ends_with(data, name, NOTIFY_QUEUE)


cdef bint is_order_queue(const uint8_t* data, const FormatName* name) noexcept nogil:
    """Return True if OrderAck and FinalAck packets go here: [MS-MQQB] 2.2.4."""
    cdef const uint8_t* units = data + name.offset
    cdef size_t address
    if name.form == PRIVATE_QUEUE:
        return name.number == ORDER_QUEUE_NUMBER
    if name.form != DIRECT_NAME or not ends_with(data, name, ORDER_QUEUE):
        return False
    address = name.length // 2 - strlen(ORDER_QUEUE)
    if address <= 4:
        return False
    if is_text(units, "tcp:", 4):
        return is_ip_address(units + 8, address - 4)
    return is_text(units, "spx:", 4) and is_ipx_address(units + 8, address - 4)
