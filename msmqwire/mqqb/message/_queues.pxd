"""Queues as message packets address them: [MS-MQMQ] 2.2.18.1.4-7, 2.2.19.2, 2.2.20.1-3."""

from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint16_t, uint32_t
from libc.string cimport memcpy

from msmqwire.mqqb._kernel cimport ADMIN_QUEUE, QUEUE_COUNT, USER, Packet, skip_padding
from msmqwire.wire.cursor cimport load_u16, load_u32
from msmqwire.wire._fault cimport BAD_SIZE, BAD_TERMINATOR, TRUNCATED, Fault, set_fault, set_fault_of
from msmqwire.wire._format_name cimport (
    DIRECT_NAME, PRIVATE_QUEUE, PUBLIC_QUEUE, UNRESOLVED_QUEUE, FormatName
)
from msmqwire.wire.simd cimport wire_find_units, wire_lowest_bit, wire_unlikely

# The codes of queues in UserHeader.Flags (DQ, AQ, RQ)
cdef enum QueueCode:
    QUEUE_NONE = 0
    QUEUE_SAME_AS_ADMIN = 1
    QUEUE_ON_SOURCE = 2
    QUEUE_ON_DESTINATION = 3
    QUEUE_ON_ADMIN_HOST = 4
    QUEUE_PUBLIC = 5
    QUEUE_ELSEWHERE = 6
    QUEUE_DIRECT = 7

cdef enum:
    NOTIFY_QUEUE_NUMBER = 3
    ORDER_QUEUE_NUMBER = 4


# HeaderID of the three MQFAddressHeaders
cdef uint16_t[QUEUE_COUNT] ADDRESS_IDS


cdef inline size_t units_to_null(const uint8_t* data, size_t size, size_t at, size_t units) noexcept nogil:
    """The number of code units at ``at`` before the first U+0000; ``units`` if there is none.

    ``size`` bytes may be read: with 32 of them left, sixteen code units are searched at a time.
    """
    cdef size_t i = 0
    cdef uint32_t found
    while i < units:
        if size - (at + 2 * i) >= 32:
            found = wire_find_units(data + at + 2 * i, 0, 0)
            if found:
                return min(i + wire_lowest_bit(found), units)
            i += 16
        elif load_u16(data + at + 2 * i) == 0:
            return i
        else:
            i += 1
    return units


cdef inline int read_direct_name(
    const uint8_t* data, size_t size, size_t* at, FormatName* name, uint32_t field, Packet* packet, Fault* fault
) noexcept nogil:
    """A DirectQueueFormatName and what pads it: [MS-MQMQ] 2.2.18.1.5.2."""
    cdef size_t left = size - at[0]
    cdef size_t count
    cdef size_t last
    cdef size_t found
    if wire_unlikely(left < 2):
        return set_fault(fault, TRUNCATED, field, at[0], 2, left)
    count = load_u16(data + at[0])
    if wire_unlikely(count == 0 or count & 1):
        return set_fault_of(fault, BAD_SIZE, field, at[0], count + (2 if count == 0 else 1), count, count)
    if wire_unlikely(left - 2 < count):
        return set_fault_of(fault, TRUNCATED, field, at[0], 2 + count, left, count)
    last = count // 2 - 1
    found = units_to_null(data, size, at[0] + 2, last + 1)
    if wire_unlikely(found != last):
        return set_fault(
            fault, BAD_TERMINATOR, field, at[0] + 2 + 2 * min(found, last), count, count if found > last else 2 * found
        )
    name.form = DIRECT_NAME
    name.offset = <uint32_t>(at[0] + 2)
    name.length = <uint32_t>(count - 2)
    at[0] = skip_padding(at[0] + 2 + count, size, packet)
    return 0


cdef inline int read_queue(
    const uint8_t* data, size_t size, size_t* at, uint32_t code, size_t queue, uint32_t field, Packet* packet,
    Fault* fault,
) noexcept nogil:
    """DestinationQueue, AdminQueue or ResponseQueue by its code in UserHeader.Flags: [MS-MQMQ] 2.2.19.2."""
    cdef FormatName* name = &packet.queues[queue]
    cdef const FormatName* admin = &packet.queues[ADMIN_QUEUE]
    cdef size_t left = size - at[0]
    cdef size_t needed
    if code == QUEUE_SAME_AS_ADMIN:
        name[0] = admin[0]
        name.code = QUEUE_SAME_AS_ADMIN
        return 0
    name.code = <uint8_t>code
    if code == QUEUE_NONE:
        return 0
    if code == QUEUE_DIRECT:
        return read_direct_name(data, size, at, name, field, packet, fault)
    needed = 4
    if code == QUEUE_PUBLIC:
        needed = 16
    elif code == QUEUE_ELSEWHERE:
        needed = 20
    if wire_unlikely(left < needed):
        return set_fault(fault, TRUNCATED, field, at[0], needed, left)
    name.form = PRIVATE_QUEUE
    if code == QUEUE_PUBLIC:
        name.form = PUBLIC_QUEUE
        memcpy(name.guid, data + at[0], 16)
    elif code == QUEUE_ELSEWHERE:
        memcpy(name.guid, data + at[0], 16)
        name.number = load_u32(data + at[0] + 16)
    else:
        name.number = load_u32(data + at[0])
        if code == QUEUE_ON_SOURCE:
            memcpy(name.guid, packet.sections[USER], 16)
        elif code == QUEUE_ON_DESTINATION:
            memcpy(name.guid, packet.sections[USER] + 16, 16)
        elif admin.form == PRIVATE_QUEUE:
            memcpy(name.guid, admin.guid, 16)
        else:
            name.form = UNRESOLVED_QUEUE
    at[0] += needed
    return 0


# Arrays for the names of a MultiQueueFormatHeader and their sizes; further names are left out
cdef struct QueueLists:
    FormatName* names[QUEUE_COUNT]
    size_t most[QUEUE_COUNT]


cdef int read_multi_queue(
    const uint8_t* data, size_t size, size_t* at, QueueLists* lists, Packet* packet, Fault* fault
) noexcept nogil
cdef bint ends_as_notify_queue(const uint8_t* data, const FormatName* name) noexcept nogil


cdef inline bint is_notify_queue(const uint8_t* data, const FormatName* name) noexcept nogil:
    """Return True if change notifications go here: [MS-MQCN] 1.9, 3.2.1.2.1."""
    if name.form == PRIVATE_QUEUE:
        return name.number == NOTIFY_QUEUE_NUMBER
    if name.form != DIRECT_NAME or name.length == 0 or data[name.offset + name.length - 2] != c"$":
        return False
    return ends_as_notify_queue(data, name)


cdef bint is_order_queue(const uint8_t* data, const FormatName* name) noexcept nogil
