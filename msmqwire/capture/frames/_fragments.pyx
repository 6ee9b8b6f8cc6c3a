"""IP datagrams reassembled from fragments in any order; the first copy of a byte counts.

A datagram and a fragment that are captured further apart than the lifetime do not belong together, whatever their
identification. Fragments that repeat those of a complete datagram begin a datagram as all others do; it is complete
again, or else it is not counted as incomplete, since nothing of it is missing.
"""

from libc.stddef cimport size_t
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, realloc
from libc.string cimport memcmp, memcpy, memmove, memset

from msmqwire.capture.frames._frame cimport INCOMPLETE, Counts, Ends, Frame, describe, name_ends, origin_of
from msmqwire.wire._address cimport IPV6, address_size
from msmqwire.wire.cursor cimport load_u64


cdef Datagram* find_datagram(Fragments* fragments, const Fragment* part) noexcept nogil:
    """The datagram that the part belongs to, or NULL."""
    cdef Datagram* datagram
    cdef size_t i = fragments.count
    while i:
        i -= 1
        datagram = fragments.open[i]
        if (
            datagram.identification == part.identification and datagram.family == part.ends.family
            and (datagram.protocol == part.protocol or part.ends.family == IPV6)
            and memcmp(datagram.addresses, part.ends.src, address_size(part.ends.family)) == 0
            and memcmp(datagram.addresses + 16, part.ends.dst, address_size(part.ends.family)) == 0
        ):
            return datagram
    return NULL


cdef void take_out(Fragments* fragments, const Datagram* datagram) noexcept nogil:
    cdef size_t i = fragments.count - 1
    while fragments.open[i] != datagram:
        i -= 1
    fragments.count -= 1
    memmove(&fragments.open[i], &fragments.open[i + 1], (fragments.count - i) * sizeof(Datagram*))


cdef void free_datagram(Datagram* datagram) noexcept nogil:
    if datagram != NULL:
        free(datagram.data)
        free(datagram)


cdef void give_up(Fragments* fragments, Datagram* datagram, Counts* counts) noexcept nogil:
    """Free an incomplete datagram; one that may have a selected port is reported."""
    cdef Ends ends = ends_of_datagram(datagram)
    if not datagram.foreign and not datagram.repeats:
        counts.sums.incomplete_datagrams += 1
        name_ends(
            describe(
                counts, datagram.first.file, datagram.first.offset, datagram.first.frame, INCOMPLETE,
                min(datagram.units * 8, datagram.end), 0,
            ),
            &ends,
        )
    take_out(fragments, datagram)
    free_datagram(datagram)


cdef void give_up_datagrams(Fragments* fragments, size_t most, Counts* counts) noexcept nogil:
    """Give up the oldest datagrams until no more than ``most`` are left."""
    while fragments.count > most:
        give_up(fragments, fragments.open[0], counts)


cdef void free_fragments(Fragments* fragments) noexcept nogil:
    cdef size_t i
    for i in range(fragments.count):
        free_datagram(fragments.open[i])
    fragments.count = 0
    free_datagram(fragments.complete)
    fragments.complete = NULL
    memset(fragments.repeats, 0, sizeof(fragments.repeats))


cdef void put_newest(Fragments* fragments, Datagram* datagram) noexcept nogil:
    """Put a datagram after all others; there must be space for it."""
    fragments.open[fragments.count] = datagram
    fragments.count += 1


cdef Datagram* begin_datagram(
    Fragments* fragments, const Fragment* part, const Frame* frame, Counts* counts
) noexcept nogil:
    """A datagram without bytes; NULL when there is no memory."""
    cdef Datagram* datagram = <Datagram*>calloc(1, sizeof(Datagram))
    give_up_datagrams(fragments, MOST_DATAGRAMS - 1, counts)
    if datagram == NULL:
        return NULL
    memcpy(datagram.addresses, part.ends.src, address_size(part.ends.family))
    memcpy(datagram.addresses + 16, part.ends.dst, address_size(part.ends.family))
    datagram.family = part.ends.family
    datagram.protocol = part.protocol
    datagram.identification = part.identification
    datagram.path = part.path
    datagram.first = origin_of(frame, counts.file)
    put_newest(fragments, datagram)
    return datagram


cdef bint make_room(Datagram* datagram, size_t needed) noexcept nogil:
    cdef uint8_t* data
    if needed <= datagram.capacity:
        return True
    needed = min(max(2 * datagram.capacity, needed), <size_t>LARGEST_DATAGRAM)
    data = <uint8_t*>realloc(datagram.data, needed)
    if data == NULL:
        return False
    datagram.data = data
    datagram.capacity = needed
    return True


cdef bint copy_units(Datagram* datagram, const Fragment* part) noexcept nogil:
    """Copy the units of 8 bytes that are missing; false if others differ from the bytes present."""
    cdef uint8_t* data = datagram.data
    cdef size_t at = 0
    cdef size_t unit, size
    cdef uint64_t bit
    cdef bint agrees = True
    while at < part.size:
        unit = (part.offset + at) >> 3
        bit = <uint64_t>1 << (unit & 63)
        size = min(<size_t>8, part.size - at)
        if not datagram.covered[unit >> 6] & bit:
            memcpy(data + part.offset + at, part.data + at, size)
            datagram.covered[unit >> 6] |= bit
            datagram.units += 1
        elif memcmp(data + part.offset + at, part.data + at, size) != 0:
            agrees = False
        at += 8
    return agrees


# --- Fragments that come again ---


cdef inline uint64_t mixed(uint64_t word, uint64_t value) noexcept nogil:
    word = (word ^ value) * <uint64_t>0x9E3779B97F4A7C15
    return word ^ word >> 29


cdef uint64_t fingerprint_of(const Fragment* part) noexcept nogil:
    """A number other than 0 that two fragments have in common if they are equal, and otherwise hardly ever."""
    cdef uint64_t word = mixed(part.protocol, <uint64_t>part.identification << 32 | part.offset << 1 | part.more)
    cdef uint64_t last = 0
    cdef size_t at = 0
    while at < 2 * address_size(part.ends.family):  # the destination follows the source
        memcpy(&last, part.ends.src + at, 4)
        word = mixed(word, last)
        at += 4
    at = 0
    while part.size - at >= 8:
        word = mixed(word, load_u64(part.data + at))
        at += 8
    last = part.size
    memcpy(&last, part.data + at, part.size - at)
    return mixed(word, last) | 1


cdef inline bint is_within(const Fragments* fragments, int64_t one, int64_t other) noexcept nogil:
    """Return True if two times are no further apart than the lifetime of a datagram."""
    return <uint64_t>max(one, other) - <uint64_t>min(one, other) <= fragments.lifetime


cdef bint is_repeat(const Fragments* fragments, uint64_t fingerprint, const Frame* frame) noexcept nogil:
    """Return True if a fragment was in a complete datagram within its lifetime."""
    cdef const Repeat* repeat = &fragments.repeats[fingerprint >> 1 & (MOST_REPEATS - 1)]
    return repeat.fingerprint == fingerprint and is_within(fragments, repeat.time, frame.time)


cdef void remember(Fragments* fragments, const Datagram* datagram, const Frame* frame) noexcept nogil:
    """Remember the fragments of a complete datagram."""
    cdef Repeat* repeat
    cdef uint64_t fingerprint
    cdef size_t i
    for i in range(datagram.arrival_count):
        fingerprint = datagram.arrivals[i].fingerprint
        repeat = &fragments.repeats[fingerprint >> 1 & (MOST_REPEATS - 1)]
        repeat.fingerprint = fingerprint
        repeat.time = frame.time


# --- A fragment ---


cdef uint64_t frame_of(const Datagram* datagram, size_t place) noexcept nogil:
    """The frame with the byte at a place of a datagram."""
    cdef const Arrival* arrival
    cdef size_t i
    for i in range(datagram.arrival_count):
        arrival = &datagram.arrivals[i]
        if arrival.offset <= place < arrival.offset + arrival.size:
            return arrival.frame
    return datagram.arrivals[0].frame


cdef void note_arrival(Datagram* datagram, const Fragment* part, uint64_t fingerprint, uint64_t number) noexcept nogil:
    cdef Arrival* arrival
    cdef size_t i
    for i in range(datagram.arrival_count):
        if datagram.arrivals[i].fingerprint == fingerprint:  # captured twice
            return
    if datagram.arrival_count < MOST_ARRIVALS:
        arrival = &datagram.arrivals[datagram.arrival_count]
        arrival.fingerprint = fingerprint
        arrival.frame = number
        arrival.offset = <uint32_t>part.offset
        arrival.size = <uint32_t>part.size
        datagram.arrival_count += 1


cdef Datagram* datagram_of(
    Fragments* fragments, const Fragment* part, const Frame* frame, uint64_t fingerprint, Counts* counts
) noexcept nogil:
    """The datagram of a fragment, perhaps a new one; NULL when there is no memory."""
    cdef Datagram* datagram = find_datagram(fragments, part)
    cdef bint repeated = is_repeat(fragments, fingerprint, frame)
    if datagram != NULL and (
        (datagram.repeats and not repeated)
        or (datagram.first.timed and frame.timed and not is_within(fragments, datagram.first.time, frame.time))
    ):
        give_up(fragments, datagram, counts)
        datagram = NULL
    if datagram == NULL:
        datagram = begin_datagram(fragments, part, frame, counts)
        if datagram != NULL:
            datagram.repeats = repeated
    return datagram


cdef Assembly add_part(
    Fragments* fragments, const Fragment* part, const Frame* frame, uint64_t number, Counts* counts, bint* agrees
) noexcept nogil:
    """Add a fragment, whose first byte is in the frame ``number``, to its datagram.

    A datagram that is COMPLETE is ``fragments.complete`` until it has been read. ``agrees``: no byte differs from one
    that was present.
    """
    cdef size_t end = part.offset + part.size
    cdef uint64_t fingerprint
    cdef Datagram* datagram
    agrees[0] = True
    if part.size == 0 or end > LARGEST_DATAGRAM - 1 or (part.more and part.size & 7):
        return IMPOSSIBLE
    fingerprint = fingerprint_of(part)
    datagram = datagram_of(fragments, part, frame, fingerprint, counts)
    if datagram == NULL or not make_room(datagram, end):
        return IMPOSSIBLE
    if datagram.total and (end > datagram.total or (not part.more and end != datagram.total)):
        return IMPOSSIBLE
    if not part.more:
        if end < datagram.end:
            return IMPOSSIBLE
        datagram.total = end
    datagram.end = max(datagram.end, end)
    if part.offset == 0 and not datagram.covered[0] & 1:
        datagram.foreign = part.foreign
        datagram.protocol = part.protocol
    agrees[0] = copy_units(datagram, part)
    note_arrival(datagram, part, fingerprint, number)
    if datagram.total == 0 or datagram.units != (datagram.total + 7) >> 3:
        return HELD
    take_out(fragments, datagram)
    remember(fragments, datagram, frame)
    fragments.complete = datagram
    return COMPLETE
