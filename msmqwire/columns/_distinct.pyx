"""The distinct values of a column: an open hash table of the rows in which each was found first.

Captures choose the values, so the factors of the hash are secret: no capture can be made whose values collide.
"""

from libc.stddef cimport size_t
from libc.stdint cimport int32_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memchr, memcmp

from msmqwire.columns._buffer cimport Buffer, allocate, allocate_zeroed
from msmqwire.columns._convert cimport texts_of
from msmqwire.columns.payload_table cimport PayloadTable, payload_at
from msmqwire.wire._address cimport ADDRESS_FAMILY_AT, ADDRESS_SIZE, LONGEST_ADDRESS_TEXT, format_address
from msmqwire.wire.cursor cimport load_u16, load_u64
from msmqwire.wire._format_name cimport FormatName, format_format_name, largest_format_name_text
from msmqwire.wire.simd cimport wire_folded_product

import os

cdef enum:
    INT32_MAX = 0x7FFFFFFF
    REPLACED = 0xEF     # the first byte of U+FFFD in UTF-8

cdef uint64_t[2] KEYS


cdef int fill_keys() except -1:
    cdef bytes random = os.urandom(16)
    KEYS[0] = load_u64(<const uint8_t*>random)
    KEYS[1] = load_u64(<const uint8_t*>random + 8)
    return 0


fill_keys()


cdef const uint64_t* secret_factors() noexcept nogil:
    """The two factors of the hash, for other tables of what captures choose."""
    return KEYS


# The values of a column: addresses, or format names and the payloads of these
cdef struct Values:
    const uint8_t* addresses
    const FormatName* names
    const PayloadTable* payloads
    const uint32_t* rows        # the payload of each name; NULL: name i is of payload i

ctypedef uint64_t (*HashOf)(const Values* values, size_t row) noexcept nogil
ctypedef bint (*Same)(const Values* values, size_t one, size_t other) noexcept nogil

cdef class Distinct:
    cdef Buffer places   # of each row's value among the distinct ones; null rows have 0
    cdef Buffer first    # the row in which each was found first
    cdef size_t found    # distinct values
    cdef size_t probes   # slots that were looked at


cdef inline Distinct find_distinct(
    const Values* values, size_t count, const uint8_t* validity, HashOf hash_of, Same same
):
    """The functions are constants of the caller, and so are compiled into the loop."""
    cdef Distinct distinct = Distinct.__new__(Distinct)
    cdef size_t slot_count = 16
    while slot_count < 2 * count:
        slot_count *= 2
    cdef Buffer table = allocate_zeroed(slot_count * sizeof(uint32_t))
    distinct.places = allocate(count * sizeof(uint32_t))
    distinct.first = allocate(count * sizeof(uint32_t))
    cdef uint32_t* slots = <uint32_t*>table.data
    cdef uint32_t* places = <uint32_t*>distinct.places.data
    cdef uint32_t* first = <uint32_t*>distinct.first.data
    cdef size_t found = 0
    cdef size_t probes = 0
    cdef size_t slot = 0
    cdef size_t i
    with nogil:
        for i in range(count):
            places[i] = 0
            if validity != NULL and not validity[i >> 3] >> (i & 7) & 1:
                continue
            # Most values are those of the row before
            if found == 0 or not same(values, i, first[slots[slot] - 1]):
                slot = <size_t>hash_of(values, i) & (slot_count - 1)
                probes += 1
                while slots[slot] and not same(values, i, first[slots[slot] - 1]):
                    slot = (slot + 1) & (slot_count - 1)
                    probes += 1
                if not slots[slot]:
                    first[found] = <uint32_t>i
                    found += 1
                    slots[slot] = <uint32_t>found
            places[i] = slots[slot] - 1
    distinct.found = found
    distinct.probes = probes
    return distinct


cdef inline uint64_t mixed(uint64_t hash, uint64_t word) noexcept nogil:
    return wire_folded_product(hash ^ KEYS[0], word ^ KEYS[1])


# --- Addresses ---


cdef uint64_t hash_of_address(const Values* values, size_t row) noexcept nogil:
    cdef const uint8_t* address = values.addresses + ADDRESS_SIZE * row
    return mixed(mixed(load_u64(address), load_u64(address + 8)), load_u16(address + ADDRESS_FAMILY_AT))


cdef bint same_address(const Values* values, size_t one, size_t other) noexcept nogil:
    cdef const uint8_t* a = values.addresses + ADDRESS_SIZE * one
    cdef const uint8_t* b = values.addresses + ADDRESS_SIZE * other
    return (
        load_u64(a) == load_u64(b) and load_u64(a + 8) == load_u64(b + 8)
        and load_u16(a + ADDRESS_FAMILY_AT) == load_u16(b + ADDRESS_FAMILY_AT)
    )


cdef Distinct addresses_of(const uint8_t* addresses, size_t count, const uint8_t* validity):
    cdef Values values
    values.addresses, values.names, values.payloads, values.rows = addresses, NULL, NULL, NULL
    return find_distinct(&values, count, validity, hash_of_address, same_address)


cdef tuple distinct_addresses(const uint8_t* values, size_t count, const uint8_t* validity):
    """Places of addresses among the distinct ones, and offsets and text of these; null rows have place 0."""
    cdef Distinct distinct = addresses_of(values, count, validity)
    cdef Buffer offsets = allocate((distinct.found + 1) * sizeof(int32_t))
    cdef Buffer text = allocate(distinct.found * LONGEST_ADDRESS_TEXT)
    cdef const uint32_t* first = <const uint32_t*>distinct.first.data
    cdef int32_t* end = <int32_t*>offsets.data
    cdef size_t i
    end[0] = 0
    for i in range(distinct.found):
        end[i + 1] = end[i] + <int32_t>format_address(values + ADDRESS_SIZE * <size_t>first[i], text.data + end[i])
    return distinct.places, (offsets, text)


def address_probes(bytes addresses) -> int:
    """The slots that are looked at to find addresses of 18 bytes each: what a collision costs."""
    return addresses_of(<const uint8_t*>addresses, <size_t>len(addresses) // ADDRESS_SIZE, NULL).probes


# --- Format names ---


cdef inline uint64_t form_and_number(const FormatName* name) noexcept nogil:
    """The first members of a name but ``code``: in which way the packet has the queue is no part of its text."""
    return <uint64_t>name.number << 8 | name.form


cdef inline const uint8_t* payload_of(const Values* values, size_t row) noexcept nogil:
    return payload_at(values.payloads, row if values.rows == NULL else values.rows[row]).data


cdef uint64_t hash_of_name(const Values* values, size_t row) noexcept nogil:
    cdef const FormatName* name = values.names + row
    cdef const uint8_t* text = payload_of(values, row) + name.offset
    cdef uint64_t hash = mixed(form_and_number(name), name.length)
    cdef size_t i = 0
    hash = mixed(mixed(hash, load_u64(name.guid)), load_u64(name.guid + 8))
    while i + 8 <= name.length:
        hash = mixed(hash, load_u64(text + i))
        i += 8
    while i < name.length:
        hash = mixed(hash, text[i])
        i += 1
    return hash


cdef bint same_name(const Values* values, size_t one, size_t other) noexcept nogil:
    """Return True if names are equal in all but their places in the payloads, and the ways in which these have them."""
    cdef const FormatName* a = values.names + one
    cdef const FormatName* b = values.names + other
    return (
        form_and_number(a) == form_and_number(b) and a.length == b.length
        and memcmp(a.guid, b.guid, 16) == 0
        and (
            a.length == 0
            or memcmp(payload_of(values, one) + a.offset, payload_of(values, other) + b.offset, a.length) == 0
        )
    )


cdef tuple distinct_format_names(
    const FormatName* names, size_t count, const PayloadTable* payloads, const uint32_t* rows, const uint8_t* validity
):
    """Places of format names among the distinct ones, and offsets and UTF-8 of these; null rows have place 0.

    Direct names lie in the payloads of ``rows``, NULL: name i is of payload i.
    """
    cdef Values values
    cdef size_t largest = 0
    cdef size_t i
    values.addresses, values.names, values.payloads, values.rows = NULL, names, payloads, rows
    cdef Distinct distinct = find_distinct(&values, count, validity, hash_of_name, same_name)
    cdef const uint32_t* first = <const uint32_t*>distinct.first.data
    for i in range(distinct.found):
        largest += largest_format_name_text(names + first[i])
    if largest > INT32_MAX:
        raise OverflowError(
            f"{distinct.found} format names may exceed an Arrow string array; decode in smaller batches"
        )
    cdef Buffer offsets = allocate((distinct.found + 1) * sizeof(int32_t))
    cdef Buffer text = allocate(largest)
    cdef int32_t* end = <int32_t*>offsets.data
    end[0] = 0
    for i in range(distinct.found):
        end[i + 1] = end[i] + <int32_t>format_format_name(
            names + first[i], payload_of(&values, first[i]), text.data + end[i]
        )
    if distinct.found and memchr(text.data, REPLACED, <size_t>end[distinct.found]) != NULL:
        return distinct.places, join_equal(distinct, count, text.data[:end[distinct.found]], end)
    return distinct.places, (offsets, text)


cdef tuple join_equal(Distinct distinct, size_t count, bytes text, const int32_t* end):
    """Offsets and text where names may be equal as text alone: a lone surrogate is U+FFFD there, whichever it is."""
    cdef uint32_t* places = <uint32_t*>distinct.places.data
    cdef dict known = {}
    cdef list joined = []
    cdef Py_ssize_t i
    cdef size_t row
    for i in range(<Py_ssize_t>distinct.found):
        joined.append(known.setdefault(text[end[i]:end[i + 1]].decode(), len(known)))
    for row in range(count):
        places[row] = joined[<Py_ssize_t>places[row]]
    return texts_of(list(known))
