"""The state of a reader as bytes: its place in its file, open TCP streams, IP datagrams in fragments.

    reader:      of the front of the file: size u16, CRC-32 u32; searching u8, where from u64; count u32 of packets
                 that have numbers, and these; section
    section:     byte order u8, interfaces
    streams:     count u32, then each flow, the oldest first: Flow, part of a BaseHeader, part of a packet, Run, pieces,
                 those of a SYN that was not answered
    connections: count u32, then each, the oldest first: Connection
    unread:      count u32, then the fingerprints
    datagrams:   count u32, then each, the oldest first: Datagram, its bytes; then fragments that were complete: Repeat

Structures are written as they are in memory, except that of a pointer only its presence is written, of links and hashes
nothing, and of memory only the bytes in use: the same place gives the same bytes, wherever reading began. The bytes are
not trusted: whatever they are, nothing is read or written out of bounds.
"""

from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport malloc
from libc.string cimport memcpy, memset

from msmqwire.capture.files._file_reader cimport FileReader
from msmqwire.capture.files._pcapng cimport MOST_NUMBERED, Interface, Numbered
from msmqwire.capture.frames._fragments cimport (
    COVERAGE_WORDS, LARGEST_DATAGRAM, MOST_ARRIVALS, MOST_DATAGRAMS, MOST_REPEATS, Datagram, Fragments,
    Repeat, free_fragments, put_newest,
)
from msmqwire.capture.frames._frame cimport LARGEST_FRAME, MOST_UNREAD, Origin
from msmqwire.capture.tcp._connections cimport add_connection, find_connection, free_connections
from msmqwire.capture.tcp._flows cimport (
    NO_FLOW, OUTCOME_COUNT, Connection, ConnectionTable, Flow, FlowTable, Head, Piece, Pieces, Run, Streams, add_flow,
    family_of, find_flow, free_table, grow_packet, hold_piece, open_head, open_run, piece_data,
)
from msmqwire.capture.tcp._streams cimport StreamTable
from msmqwire.columns._buffer cimport Buffer, allocate, allocate_zeroed
from msmqwire.mqqb.framing cimport BASE_HEADER_SIZE
from msmqwire.wire._address cimport IPV4, IPV6
from msmqwire.wire.cursor cimport Cursor, cursor_over, remaining, take

import struct
import sys
from zlib import crc32

from msmqwire.capture.frames._encapsulations import encapsulation_names
from msmqwire.errors import CaptureError, CaptureFormatError

if False:  # for type checkers: see stubs.py
    from collections.abc import Callable

cdef enum:
    UNIT = 8  # bytes of a datagram for each bit of what is covered

# Beyond any position in a stream, and far from where sums of them would wrap
cdef uint64_t POSITIONS_END = <uint64_t>1 << 62

LAYOUT: bytes = struct.pack(
    "=?7H", sys.byteorder == "little", sizeof(Flow), sizeof(Run), sizeof(Piece), sizeof(Origin), sizeof(Datagram),
    sizeof(Interface), sizeof(Connection),
)
_FRONT = struct.Struct("=HI")
_SEARCH = struct.Struct("=?Q")
_COUNT = struct.Struct("=I")


# --- A place in a file ---


cdef bytes section_state(FileReader reader):
    """The byte order of the section, and its interfaces."""
    cdef const char* interfaces = <const char*>reader.section.interfaces
    cdef size_t size = reader.section.count * sizeof(Interface)
    return bytes((reader.section.swapped,)) + (interfaces[:size] if size else b"")


cdef bytes numbered_state(FileReader reader):
    """The packets that have a number, in the order of their places."""
    cdef list parts = []
    cdef const Numbered* numbered = reader.section.numbered
    cdef size_t i
    for i in range(<size_t>MOST_NUMBERED if numbered != NULL else 0):
        if numbered[i].interface:
            parts.append((<const char*>&numbered[i])[:sizeof(Numbered)])
    return _COUNT.pack(len(parts)) + b"".join(parts)


cdef int set_numbered(FileReader reader, bytes state) except -1:
    cdef const Numbered* saved = <const Numbered*><const char*>state
    cdef size_t count = <size_t>len(state) // sizeof(Numbered)
    cdef Numbered one
    cdef size_t i
    if count and reader.section.numbered == NULL:
        raise malformed_state()
    for i in range(count):
        memcpy(&one, &saved[i], sizeof(Numbered))
        reader.section.numbered[one.number & (MOST_NUMBERED - 1)] = one
    return 0


cdef int set_section(FileReader reader, bytes state) except -1:
    cdef size_t size = <size_t>len(state) - 1
    reader.section.swapped = state[0]
    reader.section.count = size // sizeof(Interface)
    reader.interfaces = allocate(size)
    memcpy(reader.interfaces.data, <const char*>state + 1, size)
    reader.section.interfaces = <Interface*>reader.interfaces.data
    return 0


def reader_state(FileReader reader) -> bytes:
    """Where a reader is in its file, beside ``place`` and ``frames``."""
    cdef bytes front = reader.front[:reader.next_record()]  # which will not change, even where the file grows
    lost_from = reader.lost_from if reader.searching else 0
    return (
        _FRONT.pack(len(front), crc32(front)) + _SEARCH.pack(reader.searching, lost_from) + numbered_state(reader)
        + section_state(reader)
    )


def resume_reader(FileReader reader, seek: Callable[[int], None], uint64_t place, uint64_t frames, bytes state) -> None:
    """Have a reader, which read only the first bytes of its file, resume where another one stopped.

    Raises
    ------
    CaptureError
        The state is of another file, or malformed.
    """
    cdef Py_ssize_t numbered = _FRONT.size + _SEARCH.size + _COUNT.size
    cdef Py_ssize_t section = numbered
    if len(state) >= section:
        section += _COUNT.unpack_from(state, numbered - _COUNT.size)[0] * <Py_ssize_t>sizeof(Numbered)
    if len(state) <= section or <size_t>(len(state) - section - 1) % sizeof(Interface):
        raise malformed_state()
    seek(place)
    size, checksum = _FRONT.unpack_from(state)
    if len(reader.front) < size or crc32(reader.front[:size]) != checksum:
        raise CaptureFormatError(f"{reader.name}: is not the file that the checkpoint is in: it begins with other bytes")
    reader.searching, reader.lost_from = _SEARCH.unpack_from(state, _FRONT.size)
    set_numbered(reader, state[numbered:section])
    set_section(reader, state[section:])
    reader.carried = 0
    reader.short = reader.paused = False
    move_to(reader, place, frames)


def resume_at_end(FileReader reader, uint64_t place, uint64_t frames) -> None:
    """Give a reader of an empty file the state of a reader that has read a file of ``place`` bytes to its end."""
    move_to(reader, place, frames)


cdef int move_to(FileReader reader, uint64_t place, uint64_t frames) except -1:
    reader.stats.bytes_read -= reader.end
    reader.end = reader.offset = place
    reader.counts.frames = reader.settled = frames
    return 0


def stop_at(FileReader reader, uint64_t place, bytes state) -> None:
    """Have a reader stop where another one stopped."""
    reader.limit = place
    reader.search_ends = len(state) > _FRONT.size and state[_FRONT.size]


# --- Streams and datagrams ---


def streams_state(StreamTable table, FileReader reader: FileReader | None) -> tuple[list[str], bytes]:
    """The streams that are open and the incomplete datagrams, with the names of the files they refer to.

    The table forgets all other files but that of the ``reader``, which follows these names; None between two files.
    """
    cdef uint32_t count = <uint32_t>len(table.files)
    cdef Buffer numbers = allocate_zeroed((count + 1) * sizeof(uint32_t))
    cdef uint32_t* number = <uint32_t*>numbers.data
    cdef uint32_t i
    cdef list names = []
    visit_files(&table.streams, number, count, False)
    for i in range(count - (reader is not None)):
        if number[i]:
            number[i] = <uint32_t>len(names)
            names.append(table.files[i])
    if reader is not None:
        number[count - 1] = reader.counts.file = <uint32_t>len(names)
    visit_files(&table.streams, number, count, True)
    table.files[:] = names if reader is None else [*names, table.files[-1]]
    return names, save_streams(&table.streams)


def set_streams(StreamTable table, list files: list[str], bytes state) -> None:
    """Restore what was saved, into a table for which nothing was read yet.

    Raises
    ------
    CaptureError
        The state is malformed.
    """
    cdef uint32_t count = <uint32_t>len(files) + 1  # with the file that is read next
    cdef Buffer seen = allocate_zeroed(count * sizeof(uint32_t))
    table.files[:] = files
    restore_streams(&table.streams, state)
    if not visit_files(&table.streams, <uint32_t*>seen.data, count, False):
        raise malformed_state()


cdef bint visit_files(Streams* streams, uint32_t* numbers, uint32_t files, bint renumber) noexcept:
    """Visit all origins: note their files in ``numbers``, or give them the numbers there; false if one is unknown."""
    cdef uint32_t index = streams.table.oldest
    cdef bint known = True
    cdef Flow* flow
    cdef size_t i
    while index != NO_FLOW:
        flow = &streams.table.flows[index]
        known &= visit(&flow.seen, numbers, files, renumber)
        if flow.filled >= BASE_HEADER_SIZE:
            known &= visit(&flow.last, numbers, files, renumber)
        else:
            for i in range(flow.filled):
                known &= visit(&flow.head.origins[i], numbers, files, renumber)
        if flow.run != NULL:
            known &= visit(&flow.run.last, numbers, files, renumber)
        known &= visit_pieces(&flow.pieces, numbers, files, renumber)
        known &= visit_pieces(&flow.next_pieces, numbers, files, renumber)
        index = flow.newer
    index = streams.connections.oldest
    while index != NO_FLOW:
        known &= visit(&streams.connections.entries[index].last, numbers, files, renumber)
        index = streams.connections.entries[index].newer
    for i in range(streams.fragments.count):
        known &= visit(&streams.fragments.open[i].first, numbers, files, renumber)
    return known


cdef bint visit_pieces(const Pieces* pieces, uint32_t* numbers, uint32_t files, bint renumber) noexcept:
    cdef Piece* piece = pieces.first
    cdef bint known = True
    while piece != NULL:
        known &= visit(&piece.origin, numbers, files, renumber)
        piece = piece.next
    return known


cdef inline bint visit(Origin* origin, uint32_t* numbers, uint32_t files, bint renumber) noexcept:
    if origin.file >= files:
        return False
    if renumber:
        origin.file = numbers[origin.file]
    else:
        numbers[origin.file] = 1
    return True


cdef bytes save_streams(const Streams* streams):
    """All that is open, for ``restore_streams``."""
    cdef uint32_t index = streams.table.oldest
    cdef size_t i
    cdef uint32_t count = <uint32_t>streams.table.count
    cdef list parts = [(<const char*>&count)[:sizeof(count)]]
    while index != NO_FLOW:
        save_flow(parts, &streams.table.flows[index])
        index = streams.table.flows[index].newer
    save_connections(parts, &streams.connections)
    count = <uint32_t>streams.unread.count
    parts.append((<const char*>&count)[:sizeof(count)])
    parts.append((<const char*>streams.unread.fingerprints)[:count * sizeof(uint64_t)])
    count = <uint32_t>streams.fragments.count
    parts.append((<const char*>&count)[:sizeof(count)])
    for i in range(streams.fragments.count):
        save_datagram(parts, streams.fragments.open[i])
    save_repeats(parts, &streams.fragments)
    return b"".join(parts)


cdef int save_connections(list parts, const ConnectionTable* table) except -1:
    cdef uint32_t count = <uint32_t>table.count
    cdef uint32_t index = table.oldest
    cdef Connection saved
    parts.append((<const char*>&count)[:sizeof(count)])
    while index != NO_FLOW:
        memcpy(&saved, &table.entries[index], sizeof(Connection))
        index = saved.newer
        saved.next = saved.newer = saved.older = 0
        parts.append((<const char*>&saved)[:sizeof(Connection)])
    return 0


cdef int save_repeats(list parts, const Fragments* fragments) except -1:
    cdef const Repeat* repeat
    cdef size_t i
    for i in range(<size_t>MOST_REPEATS):
        repeat = &fragments.repeats[i]
        if repeat.fingerprint:
            parts.append((<const char*>repeat)[:sizeof(Repeat)])
    return 0


cdef int save_flow(list parts, const Flow* flow) except -1:
    cdef Flow saved
    memcpy(&saved, flow, sizeof(Flow))
    saved.hash = saved.newer = saved.older = 0
    saved.head = <Head*><size_t>(flow.head != NULL)
    saved.run = <Run*><size_t>(flow.run != NULL)
    saved.data = <uint8_t*><size_t>(flow.data != NULL)
    saved.pieces.first = saved.pieces.last = NULL
    saved.next_pieces.first = saved.next_pieces.last = NULL
    if flow.filled < BASE_HEADER_SIZE:  # what was there of the packet before
        saved.first_frame = 0
        memset(&saved.last, 0, sizeof(Origin))
    parts.append((<const char*>&saved)[:sizeof(Flow)])
    if flow.filled >= BASE_HEADER_SIZE:
        if flow.data != NULL:
            parts.append((<const char*>flow.data)[:flow.filled])
    elif flow.filled:
        parts.append((<const char*>flow.head.data)[:flow.filled])
        parts.append((<const char*>flow.head.origins)[:flow.filled * sizeof(Origin)])
    if flow.run != NULL:
        parts.append((<const char*>flow.run)[:sizeof(Run)])
    save_pieces(parts, &flow.pieces)
    save_pieces(parts, &flow.next_pieces)
    return 0


cdef int save_pieces(list parts, const Pieces* pieces) except -1:
    cdef const Piece* piece = pieces.first
    cdef Piece held
    while piece != NULL:
        held = piece[0]
        held.next = NULL
        parts.append((<const char*>&held)[:sizeof(Piece)])
        parts.append((<const char*>piece_data(piece))[:piece.size])
        piece = piece.next
    return 0


cdef int save_datagram(list parts, const Datagram* datagram) except -1:
    cdef Datagram saved
    cdef Buffer data = allocate_zeroed(datagram.end)
    cdef size_t at = 0
    memcpy(&saved, datagram, sizeof(Datagram))
    saved.data = NULL
    saved.capacity = 0
    while at < datagram.end:
        if is_covered(datagram, at):
            memcpy(data.data + at, datagram.data + at, min(<size_t>UNIT, datagram.end - at))
        at += UNIT
    parts.append((<const char*>&saved)[:sizeof(Datagram)])
    parts.append((<const char*>data.data)[:datagram.end])
    return 0


cdef inline bint is_covered(const Datagram* datagram, size_t at) noexcept:
    return datagram.covered[at // UNIT >> 6] >> (at // UNIT & 63) & 1


# --- What was saved ---


def malformed_state():
    """The CaptureError of bytes that no reader saved."""
    return CaptureFormatError("the checkpoint is malformed: its state of the reader is impossible")


cdef int restore_streams(Streams* streams, bytes saved) except -1:
    """Restore the saved streams and datagrams, and no others."""
    cdef Cursor cursor = cursor_over(saved, <size_t>len(saved))
    cdef uint32_t count = 0
    cdef uint32_t _
    free_table(&streams.table)
    free_fragments(&streams.fragments)
    free_connections(&streams.connections)
    streams.waiting = NO_FLOW
    copy_next(&cursor, &count, sizeof(count))
    for _ in range(count):
        restore_flow(&streams.table, &cursor)
    copy_next(&cursor, &count, sizeof(count))
    if count > streams.connections.most:
        raise malformed_state()
    for _ in range(count):
        restore_connection(streams, &cursor)
    copy_next(&cursor, &count, sizeof(count))
    if count > MOST_UNREAD:
        raise malformed_state()
    copy_next(&cursor, streams.unread.fingerprints, count * sizeof(uint64_t))
    streams.unread.count = count
    copy_next(&cursor, &count, sizeof(count))
    if count > MOST_DATAGRAMS:
        raise malformed_state()
    for _ in range(count):
        restore_datagram(&streams.fragments, &cursor)
    while remaining(&cursor):
        restore_repeat(&streams.fragments, &cursor)
    return 0


cdef int copy_next(Cursor* cursor, void* target, size_t size) except -1:
    cdef const uint8_t* source = take(cursor, size)
    if source == NULL:
        raise malformed_state()
    memcpy(target, source, size)
    return 0


cdef bint is_family(uint16_t family) noexcept:
    return family == IPV4 or family == IPV6


cdef bint is_possible(const Flow* flow) noexcept:
    """Whether a flow could be, as far as memory depends on it."""
    if not is_family(family_of(&flow.endpoints)) or max(flow.position, flow.end) >= POSITIONS_END:
        return False
    if flow.run != NULL and not (flow.searching and flow.filled < BASE_HEADER_SIZE):
        return False
    if flow.filled < BASE_HEADER_SIZE:
        return flow.data == NULL and not (flow.total or flow.capacity) and (flow.head != NULL or not flow.filled)
    if flow.total <= flow.filled or (flow.data == NULL) != (flow.capacity == 0):
        return False
    # Memory of a packet grows to twice what is needed, and is no less than a page
    return flow.data == NULL or flow.filled <= flow.capacity <= max(<size_t>flow.filled * 2, <size_t>4096)


cdef int check_path(uint32_t path) except -1:
    try:
        encapsulation_names(path)
    except KeyError:
        raise malformed_state() from None
    return 0


cdef int restore_flow(FlowTable* table, Cursor* cursor) except -1:
    """The newest flow of the table."""
    cdef Flow saved
    cdef Flow* flow
    copy_next(cursor, &saved, sizeof(Flow))
    if not is_possible(&saved) or find_flow(table, &saved.endpoints) != NULL:
        raise malformed_state()
    check_path(saved.path)
    flow = add_flow(table, &saved.endpoints)
    if flow == NULL:
        raise no_memory()
    saved.hash, saved.newer, saved.older = flow.hash, flow.newer, flow.older
    flow[0] = saved
    flow.head = NULL
    flow.run = NULL
    flow.data = NULL
    memset(&flow.pieces, 0, sizeof(Pieces))
    memset(&flow.next_pieces, 0, sizeof(Pieces))
    flow.capacity = flow.filled = 0
    if saved.head != NULL and not open_head(table, flow):
        raise no_memory()
    if saved.data != NULL:
        if not grow_packet(table, flow, saved.capacity):
            raise no_memory()
        copy_next(cursor, flow.data, saved.filled)
    elif 0 < saved.filled < BASE_HEADER_SIZE:
        copy_next(cursor, flow.head.data, saved.filled)
        copy_next(cursor, flow.head.origins, saved.filled * sizeof(Origin))
    flow.filled = saved.filled
    if saved.run != NULL:
        restore_run(table, flow, cursor)
    while flow.pieces.count != saved.pieces.count:
        restore_piece(table, &flow.pieces, cursor)
    while flow.next_pieces.count != saved.next_pieces.count:
        restore_piece(table, &flow.next_pieces, cursor)
    return 0


cdef int restore_connection(Streams* streams, Cursor* cursor) except -1:
    """The newest connection."""
    cdef Connection saved
    cdef Connection* connection
    copy_next(cursor, &saved, sizeof(Connection))
    if not is_family(family_of(&saved.ends)) or saved.outcome >= <uint32_t>OUTCOME_COUNT:
        raise malformed_state()
    if find_connection(streams, &saved.ends) != NULL:
        raise malformed_state()
    check_path(saved.path)
    connection = add_connection(streams, &saved.ends)
    if connection == NULL:
        raise no_memory()
    saved.next, saved.newer, saved.older = connection.next, connection.newer, connection.older
    connection[0] = saved
    return 0


cdef int restore_run(FlowTable* table, Flow* flow, Cursor* cursor) except -1:
    if not open_run(table, flow):
        raise no_memory()
    copy_next(cursor, flow.run, sizeof(Run))
    if not 0 < flow.run.size < POSITIONS_END:
        raise malformed_state()
    return 0


cdef int restore_piece(FlowTable* table, Pieces* pieces, Cursor* cursor) except -1:
    cdef Piece piece
    cdef const uint8_t* data
    cdef uint64_t end = 0
    cdef bint differs = False
    cdef size_t duplicate = 0
    copy_next(cursor, &piece, sizeof(Piece))
    data = take(cursor, piece.size)
    if pieces.last != NULL:
        end = pieces.last.position + pieces.last.size
    if data == NULL or not 0 < piece.size <= LARGEST_FRAME or not end <= piece.position < POSITIONS_END:
        raise malformed_state()
    if not hold_piece(table, pieces, piece.position, data, piece.size, &piece.origin, &differs, &duplicate):
        raise no_memory()
    return 0


cdef int restore_datagram(Fragments* fragments, Cursor* cursor) except -1:
    """The newest datagram."""
    cdef Datagram saved
    cdef Datagram* datagram
    cdef const uint8_t* data
    cdef size_t unit
    cdef size_t units = 0
    copy_next(cursor, &saved, sizeof(Datagram))
    data = take(cursor, saved.end)
    if data == NULL or saved.end >= LARGEST_DATAGRAM or (saved.total and saved.total != saved.end):
        raise malformed_state()
    if not is_family(saved.family):
        raise malformed_state()
    for unit in range(<size_t>COVERAGE_WORDS * 64):
        if is_covered(&saved, unit * UNIT):
            units += 1
            if unit * UNIT >= saved.end:
                raise malformed_state()
    if units != saved.units or not 0 < saved.arrival_count <= MOST_ARRIVALS:
        raise malformed_state()
    check_path(saved.path)
    datagram = <Datagram*>malloc(sizeof(Datagram))
    if datagram == NULL:
        raise no_memory()
    datagram[0] = saved
    datagram.data = <uint8_t*>malloc(saved.end)
    datagram.capacity = saved.end
    put_newest(fragments, datagram)
    if datagram.data == NULL:
        raise no_memory()
    memcpy(datagram.data, data, saved.end)
    return 0


cdef int restore_repeat(Fragments* fragments, Cursor* cursor) except -1:
    cdef Repeat repeat
    copy_next(cursor, &repeat, sizeof(Repeat))
    fragments.repeats[repeat.fingerprint >> 1 & (MOST_REPEATS - 1)] = repeat
    return 0


def no_memory():
    """The MemoryError of what is put back."""
    return MemoryError("no memory for the TCP streams and IP datagrams that were open")
