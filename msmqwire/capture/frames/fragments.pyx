"""Parts of IP datagrams, put together in whatever order they come; what is there first stays."""

from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint64_t
from libc.stdlib cimport calloc, free, realloc
from libc.string cimport memcmp, memcpy

from msmqwire.capture.frames.frame cimport INCOMPLETE, Counts, Frame, describe


cdef Datagram* find_datagram(Fragments* fragments, const Part* part) noexcept nogil:
    """The datagram that the part belongs to, or NULL."""
    cdef Datagram* datagram = fragments.newest
    while datagram != NULL:
        if (
            datagram.identification == part.identification and datagram.protocol == part.protocol
            and datagram.address_size == part.address_size
            and memcmp(datagram.addresses, part.src, part.address_size) == 0
            and memcmp(datagram.addresses + 16, part.dst, part.address_size) == 0
        ):
            return datagram
        datagram = datagram.older
    return NULL


cdef void take_out(Fragments* fragments, Datagram* datagram) noexcept nogil:
    if datagram.newer != NULL:
        datagram.newer.older = datagram.older
    else:
        fragments.newest = datagram.older
    if datagram.older != NULL:
        datagram.older.newer = datagram.newer
    else:
        fragments.oldest = datagram.newer
    fragments.count -= 1


cdef void drop_datagram(Fragments* fragments, Datagram* datagram) noexcept nogil:
    """Forget a datagram and free what was there of it."""
    take_out(fragments, datagram)
    free(datagram.data)
    free(datagram)


cdef void give_up_datagrams(Fragments* fragments, size_t most, Counts* counts) noexcept nogil:
    """Forget those that have waited longest until no more than ``most`` are left; what may have been ours is told."""
    cdef Datagram* datagram
    while fragments.count > most:
        datagram = fragments.oldest
        if not datagram.foreign:
            counts.incomplete += 1
            describe(counts, datagram.file, datagram.offset, INCOMPLETE, min(datagram.units * 8, datagram.end), 0)
        drop_datagram(fragments, datagram)


cdef void free_fragments(Fragments* fragments) noexcept nogil:
    while fragments.oldest != NULL:
        drop_datagram(fragments, fragments.oldest)
    free(fragments.whole)
    fragments.whole = NULL


cdef void put_newest(Fragments* fragments, Datagram* datagram) noexcept nogil:
    """Have it behind all others."""
    datagram.newer = NULL
    datagram.older = fragments.newest
    if fragments.newest != NULL:
        fragments.newest.newer = datagram
    else:
        fragments.oldest = datagram
    fragments.newest = datagram
    fragments.count += 1


cdef Datagram* begin_datagram(
    Fragments* fragments, const Part* part, const Frame* frame, Counts* counts
) noexcept nogil:
    """A datagram of which nothing is there yet; NULL when there is no memory."""
    cdef Datagram* datagram = <Datagram*>calloc(1, sizeof(Datagram))
    give_up_datagrams(fragments, MOST_DATAGRAMS - 1, counts)
    if datagram == NULL:
        return NULL
    memcpy(datagram.addresses, part.src, part.address_size)
    memcpy(datagram.addresses + 16, part.dst, part.address_size)
    datagram.address_size = part.address_size
    datagram.protocol = part.protocol
    datagram.identification = part.identification
    datagram.file = counts.file
    datagram.offset = frame.offset
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


cdef bint copy_units(Datagram* datagram, const Part* part) noexcept nogil:
    """Put the part where nothing is yet, 8 bytes at a time; false when other bytes are there."""
    cdef size_t at = 0
    cdef size_t unit, size
    cdef uint64_t bit
    cdef bint agrees = True
    while at < part.size:
        unit = (part.offset + at) >> 3
        bit = <uint64_t>1 << (unit & 63)
        size = min(<size_t>8, part.size - at)
        if not datagram.covered[unit >> 6] & bit:
            memcpy(datagram.data + part.offset + at, part.data + at, size)
            datagram.covered[unit >> 6] |= bit
            datagram.units += 1
        elif memcmp(datagram.data + part.offset + at, part.data + at, size) != 0:
            agrees = False
        at += 8
    return agrees


cdef Assembly add_part(
    Fragments* fragments, const Part* part, const Frame* frame, Counts* counts, bint* agrees
) noexcept nogil:
    """Put a part to its datagram; one that is WHOLE then waits to be read.

    ``agrees`` says whether what was there already was the same.
    """
    cdef size_t end = part.offset + part.size
    cdef Datagram* datagram
    agrees[0] = True
    if part.size == 0 or end > LARGEST_DATAGRAM - 1 or (part.more and part.size & 7):
        return IMPOSSIBLE
    datagram = find_datagram(fragments, part)
    if datagram == NULL:
        datagram = begin_datagram(fragments, part, frame, counts)
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
        datagram.first_frame = frame.number
        datagram.foreign = part.foreign
    agrees[0] = copy_units(datagram, part)
    if datagram.total == 0 or datagram.units != (datagram.total + 7) >> 3:
        return HELD
    fragments.whole = datagram.data
    fragments.size = datagram.total
    fragments.first_frame = datagram.first_frame
    take_out(fragments, datagram)
    free(datagram)
    return WHOLE
