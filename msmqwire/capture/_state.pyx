"""The state of a reader as bytes: its place in its file, open TCP streams, IP datagrams in fragments.

    reader:      FilePlace, then Numbered for each packet that has a number, then Interface for each interface
    streams:     count u32, then each flow, the oldest first: Flow, part of a BaseHeader and the Origin of each byte, or
                 part of a packet; Run; pieces, those of a SYN that was not answered: Piece and its bytes
    connections: count u32, then Connection for each, the oldest first
    unread:      count u32, then the fingerprints
    datagrams:   count u32, then each, the oldest first: Datagram, Arrival for each fragment, its bytes; then Repeat for
                 each fragment of datagrams that were complete

Of a structure the fields that ``Fields`` names are written, in its order; of pointers only the presence, of links and
hashes nothing, and of memory only the bytes in use: the same place gives the same bytes, wherever reading began.
``FIELDS`` has all names and sizes: a checkpoint is read where they are the same. The bytes are not trusted: any
bytes are read within bounds.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport malloc
from libc.string cimport memcpy, memset

from msmqwire.capture.files._file_reader cimport FileReader
from msmqwire.capture.files._pcapng cimport MOST_NUMBERED, Interface, Numbered
from msmqwire.capture.frames._fragments cimport (
    COVERAGE_WORDS, LARGEST_DATAGRAM, MOST_ARRIVALS, MOST_DATAGRAMS, MOST_REPEATS, Arrival, Datagram, Fragments, Repeat,
    free_fragments, put_newest,
)
from msmqwire.capture.frames._frame cimport LARGEST_FRAME, MOST_UNREAD, Origin
from msmqwire.capture.tcp._connections cimport add_connection, find_connection, free_connections
from msmqwire.capture.tcp._flows cimport (
    NO_FLOW, OUTCOME_COUNT, Connection, ConnectionTable, Endpoints, Flow, FlowTable, Piece, Pieces, Run, Streams,
    add_flow, family_of, find_flow, free_table, grow_packet, hold_piece, open_head, open_run, piece_data,
)
from msmqwire.capture.tcp._streams cimport StreamTable
from msmqwire.columns._buffer cimport Buffer, allocate_zeroed
from msmqwire.mqqb.framing cimport BASE_HEADER_SIZE
from msmqwire.wire._address cimport IPV4, IPV6
from msmqwire.wire.cursor cimport Cursor, cursor_over, remaining, take

from zlib import crc32

from msmqwire.capture.frames._encapsulations import encapsulation_names
from msmqwire.errors import CaptureFormatError

if False:  # for type checkers: see stubs.py
    from collections.abc import Callable

cdef enum:
    UNIT = 8  # bytes of a datagram for each bit of what is covered
    MOST_FIELDS = 48

# Beyond any position in a stream, and far from where sums of them would wrap
cdef uint64_t POSITIONS_END = <uint64_t>1 << 62


# --- The fields of structures ---


# Where a reader is in its file.
cdef struct FilePlace:
    uint16_t front          # bytes of the front of the file, and their CRC-32
    uint32_t front_checksum
    bint searching
    uint64_t lost_from
    uint32_t numbered       # packets that have numbers
    bint swapped
    uint32_t interfaces


cdef struct SavedFlow:
    Flow flow
    bint head               # it has one
    bint run
    bint data


cdef class Fields:
    """The fields of a structure that a checkpoint has: their names, and their places in memory."""

    cdef str structure
    cdef list names
    cdef const char* base
    cdef size_t[MOST_FIELDS] places
    cdef size_t[MOST_FIELDS] sizes
    cdef size_t count
    cdef size_t size  # of all fields

    cdef int add(self, str name, void* field, size_t size) except -1:
        if self.count == <size_t>MOST_FIELDS:
            raise ValueError(f"{self.structure} has more than {MOST_FIELDS} fields")
        self.names.append(f"{self.structure}.{name} {size}")
        self.places[self.count] = <size_t>(<const char*>field - self.base)
        self.sizes[self.count] = size
        self.count += 1
        self.size += size
        return 0

    cdef int add_ends(self, str name, Endpoints* ends) except -1:
        self.add(f"{name}.src", &ends.src, sizeof(ends.src))
        self.add(f"{name}.dst", &ends.dst, sizeof(ends.dst))
        return self.add(f"{name}.ports", &ends.ports, sizeof(ends.ports))

    cdef int add_origin(self, str name, Origin* origin) except -1:
        self.add(f"{name}.file", &origin.file, sizeof(origin.file))
        self.add(f"{name}.timed", &origin.timed, sizeof(origin.timed))
        self.add(f"{name}.frame", &origin.frame, sizeof(origin.frame))
        self.add(f"{name}.time", &origin.time, sizeof(origin.time))
        self.add(f"{name}.offset", &origin.offset, sizeof(origin.offset))
        return self.add(f"{name}.first_frame", &origin.first_frame, sizeof(origin.first_frame))

    cdef bytes save(self, const void* structure):
        cdef bytes saved = PyBytes_FromStringAndSize(NULL, <Py_ssize_t>self.size)
        cdef char* target = PyBytes_AS_STRING(saved)
        cdef size_t i
        for i in range(self.count):
            memcpy(target, <const char*>structure + self.places[i], self.sizes[i])
            target += self.sizes[i]
        return saved

    cdef int restore(self, Cursor* cursor, void* structure) except -1:
        cdef const uint8_t* source = take(cursor, self.size)
        cdef size_t i
        if source == NULL:
            raise malformed_state()
        for i in range(self.count):
            memcpy(<char*>structure + self.places[i], source, self.sizes[i])
            source += self.sizes[i]
        return 0


cdef Fields fields_of(str structure, void* example):
    cdef Fields fields = Fields()
    fields.structure, fields.names, fields.base = structure, [], <const char*>example
    return fields


# Structures whose fields are where those of all are
cdef FilePlace a_place
cdef Numbered a_numbered
cdef Interface a_interface
cdef SavedFlow a_flow
cdef Origin a_origin
cdef Run a_run
cdef Piece a_piece
cdef Connection a_connection
cdef Datagram a_datagram
cdef Arrival a_arrival
cdef Repeat a_repeat

cdef Fields PLACE = fields_of("FilePlace", &a_place)
PLACE.add("front", &a_place.front, sizeof(a_place.front))
PLACE.add("front_checksum", &a_place.front_checksum, sizeof(a_place.front_checksum))
PLACE.add("searching", &a_place.searching, sizeof(a_place.searching))
PLACE.add("lost_from", &a_place.lost_from, sizeof(a_place.lost_from))
PLACE.add("numbered", &a_place.numbered, sizeof(a_place.numbered))
PLACE.add("swapped", &a_place.swapped, sizeof(a_place.swapped))
PLACE.add("interfaces", &a_place.interfaces, sizeof(a_place.interfaces))

cdef Fields NUMBERED = fields_of("Numbered", &a_numbered)
NUMBERED.add("number", &a_numbered.number, sizeof(a_numbered.number))
NUMBERED.add("interface", &a_numbered.interface, sizeof(a_numbered.interface))

cdef Fields INTERFACE = fields_of("Interface", &a_interface)
INTERFACE.add("link", &a_interface.link, sizeof(a_interface.link))
INTERFACE.add("snapshot", &a_interface.snapshot, sizeof(a_interface.snapshot))
INTERFACE.add("resolution", &a_interface.resolution, sizeof(a_interface.resolution))
INTERFACE.add("seconds", &a_interface.seconds, sizeof(a_interface.seconds))
INTERFACE.add("quick_below", &a_interface.quick_below, sizeof(a_interface.quick_below))
INTERFACE.add("unit", &a_interface.unit, sizeof(a_interface.unit))
INTERFACE.add("nanoseconds", &a_interface.nanoseconds, sizeof(a_interface.nanoseconds))

cdef Fields FLOW = fields_of("Flow", &a_flow)
FLOW.add_ends("endpoints", &a_flow.flow.endpoints)
FLOW.add("first", &a_flow.flow.first, sizeof(a_flow.flow.first))
FLOW.add("position", &a_flow.flow.position, sizeof(a_flow.flow.position))
FLOW.add("end", &a_flow.flow.end, sizeof(a_flow.flow.end))
FLOW.add_origin("seen", &a_flow.flow.seen)
FLOW.add("path", &a_flow.flow.path, sizeof(a_flow.flow.path))
FLOW.add("joined", &a_flow.flow.joined, sizeof(a_flow.flow.joined))
FLOW.add("ended", &a_flow.flow.ended, sizeof(a_flow.flow.ended))
FLOW.add("syn_size", &a_flow.flow.syn_size, sizeof(a_flow.flow.syn_size))
FLOW.add("renewing", &a_flow.flow.renewing, sizeof(a_flow.flow.renewing))
FLOW.add("next_first", &a_flow.flow.next_first, sizeof(a_flow.flow.next_first))
FLOW.add("next_size", &a_flow.flow.next_size, sizeof(a_flow.flow.next_size))
FLOW.add("next_ended", &a_flow.flow.next_ended, sizeof(a_flow.flow.next_ended))
FLOW.add("flushing", &a_flow.flow.flushing, sizeof(a_flow.flow.flushing))
FLOW.add("searching", &a_flow.flow.searching, sizeof(a_flow.flow.searching))
FLOW.add("skip", &a_flow.flow.skip, sizeof(a_flow.flow.skip))
FLOW.add("filled", &a_flow.flow.filled, sizeof(a_flow.flow.filled))
FLOW.add("total", &a_flow.flow.total, sizeof(a_flow.flow.total))
FLOW.add("capacity", &a_flow.flow.capacity, sizeof(a_flow.flow.capacity))
FLOW.add("head", &a_flow.head, sizeof(a_flow.head))
FLOW.add("run", &a_flow.run, sizeof(a_flow.run))
FLOW.add("data", &a_flow.data, sizeof(a_flow.data))
FLOW.add("first_frame", &a_flow.flow.first_frame, sizeof(a_flow.flow.first_frame))
FLOW.add_origin("last", &a_flow.flow.last)
FLOW.add("pieces", &a_flow.flow.pieces.count, sizeof(a_flow.flow.pieces.count))
FLOW.add("next_pieces", &a_flow.flow.next_pieces.count, sizeof(a_flow.flow.next_pieces.count))

cdef Fields ORIGIN = fields_of("Head", &a_origin)
ORIGIN.add_origin("origins", &a_origin)

cdef Fields RUN = fields_of("Run", &a_run)
RUN.add("data", &a_run.data, sizeof(a_run.data))
RUN.add("position", &a_run.position, sizeof(a_run.position))
RUN.add("size", &a_run.size, sizeof(a_run.size))
RUN.add("first_frame", &a_run.first_frame, sizeof(a_run.first_frame))
RUN.add_origin("last", &a_run.last)

cdef Fields PIECE = fields_of("Piece", &a_piece)
PIECE.add("position", &a_piece.position, sizeof(a_piece.position))
PIECE.add("size", &a_piece.size, sizeof(a_piece.size))
PIECE.add_origin("origin", &a_piece.origin)

cdef Fields CONNECTION = fields_of("Connection", &a_connection)
CONNECTION.add_ends("ends", &a_connection.ends)
CONNECTION.add("reversed", &a_connection.reversed, sizeof(a_connection.reversed))
CONNECTION.add("outcome", &a_connection.outcome, sizeof(a_connection.outcome))
CONNECTION.add("path", &a_connection.path, sizeof(a_connection.path))
CONNECTION.add("attempts", &a_connection.attempts, sizeof(a_connection.attempts))
CONNECTION.add("first", &a_connection.first, sizeof(a_connection.first))
CONNECTION.add("timed", &a_connection.timed, sizeof(a_connection.timed))
CONNECTION.add("time", &a_connection.time, sizeof(a_connection.time))
CONNECTION.add("frame", &a_connection.frame, sizeof(a_connection.frame))
CONNECTION.add_origin("last", &a_connection.last)

cdef Fields DATAGRAM = fields_of("Datagram", &a_datagram)
DATAGRAM.add("addresses", &a_datagram.addresses, sizeof(a_datagram.addresses))
DATAGRAM.add("protocol", &a_datagram.protocol, sizeof(a_datagram.protocol))
DATAGRAM.add("identification", &a_datagram.identification, sizeof(a_datagram.identification))
DATAGRAM.add("path", &a_datagram.path, sizeof(a_datagram.path))
DATAGRAM.add("family", &a_datagram.family, sizeof(a_datagram.family))
DATAGRAM.add("covered", &a_datagram.covered, sizeof(a_datagram.covered))
DATAGRAM.add("units", &a_datagram.units, sizeof(a_datagram.units))
DATAGRAM.add("total", &a_datagram.total, sizeof(a_datagram.total))
DATAGRAM.add("end", &a_datagram.end, sizeof(a_datagram.end))
DATAGRAM.add("foreign", &a_datagram.foreign, sizeof(a_datagram.foreign))
DATAGRAM.add("repeats", &a_datagram.repeats, sizeof(a_datagram.repeats))
DATAGRAM.add_origin("first", &a_datagram.first)
DATAGRAM.add("arrival_count", &a_datagram.arrival_count, sizeof(a_datagram.arrival_count))

cdef Fields ARRIVAL = fields_of("Arrival", &a_arrival)
ARRIVAL.add("fingerprint", &a_arrival.fingerprint, sizeof(a_arrival.fingerprint))
ARRIVAL.add("frame", &a_arrival.frame, sizeof(a_arrival.frame))
ARRIVAL.add("offset", &a_arrival.offset, sizeof(a_arrival.offset))
ARRIVAL.add("size", &a_arrival.size, sizeof(a_arrival.size))

cdef Fields REPEAT = fields_of("Repeat", &a_repeat)
REPEAT.add("fingerprint", &a_repeat.fingerprint, sizeof(a_repeat.fingerprint))
REPEAT.add("time", &a_repeat.time, sizeof(a_repeat.time))

FIELDS: tuple[str, ...] = tuple([
    name
    for fields in (PLACE, NUMBERED, INTERFACE, FLOW, ORIGIN, RUN, PIECE, CONNECTION, DATAGRAM, ARRIVAL, REPEAT)
    for name in (<Fields>fields).names
])


# --- A place in a file ---


def reader_state(FileReader reader) -> bytes:
    """Where a reader is in its file, beside ``place`` and ``frames``."""
    cdef bytes front = reader.front[:reader.next_record()]  # which will not change, even where the file grows
    cdef const Numbered* numbered = reader.section.numbered
    cdef list parts = []
    cdef FilePlace place
    cdef size_t i
    place.front, place.front_checksum = <uint16_t>len(front), crc32(front)
    place.searching, place.lost_from = reader.searching, reader.lost_from if reader.searching else 0
    for i in range(<size_t>MOST_NUMBERED if numbered != NULL else 0):
        if numbered[i].interface:
            parts.append(NUMBERED.save(&numbered[i]))
    place.numbered = <uint32_t>len(parts)
    place.swapped, place.interfaces = reader.section.swapped, <uint32_t>reader.section.count
    for i in range(reader.section.count):
        parts.append(INTERFACE.save(&reader.section.interfaces[i]))
    return PLACE.save(&place) + b"".join(parts)


def resume_reader(FileReader reader, seek: Callable[[int], None], uint64_t place, uint64_t frames, bytes state) -> None:
    """Have a reader, which read only the first bytes of its file, resume where another one stopped.

    Raises
    ------
    CaptureError
        The state is of another file, or malformed.
    """
    cdef Cursor cursor = cursor_over(state, <size_t>len(state))
    cdef Interface* interfaces
    cdef Numbered numbered
    cdef FilePlace saved
    cdef size_t i
    PLACE.restore(&cursor, &saved)
    if remaining(&cursor) != saved.numbered * NUMBERED.size + saved.interfaces * INTERFACE.size:
        raise malformed_state()
    if saved.numbered and reader.section.numbered == NULL:
        raise malformed_state()
    seek(place)
    if len(reader.front) < saved.front or crc32(reader.front[:saved.front]) != saved.front_checksum:
        raise CaptureFormatError(
            f"{reader.name}: is not the file that the checkpoint is in: it begins with other bytes"
        )
    reader.searching, reader.lost_from = saved.searching, saved.lost_from
    for _ in range(saved.numbered):
        NUMBERED.restore(&cursor, &numbered)
        reader.section.numbered[numbered.number & (MOST_NUMBERED - 1)] = numbered
    reader.section.swapped, reader.section.count = saved.swapped, saved.interfaces
    reader.interfaces = allocate_zeroed(saved.interfaces * sizeof(Interface))
    reader.section.interfaces = interfaces = <Interface*>reader.interfaces.data
    for i in range(saved.interfaces):
        INTERFACE.restore(&cursor, &interfaces[i])
    reader.carried = 0
    reader.short = reader.paused = False
    move_to(reader, place, frames)


def resume_at_end(FileReader reader, uint64_t place, uint64_t frames) -> None:
    """Give a reader of an empty file the state of a reader that has read a file of ``place`` bytes to its end."""
    move_to(reader, place, frames)


cdef int move_to(FileReader reader, uint64_t place, uint64_t frames) except -1:
    reader.stats.bytes_read -= reader.end
    reader.end = reader.offset = place
    reader.counts.frames = reader.added_frames = frames
    return 0


def stop_at(FileReader reader, uint64_t place, bytes state) -> None:
    """Have a reader stop where another one stopped.

    Raises
    ------
    CaptureError
        The state is malformed.
    """
    cdef Cursor cursor = cursor_over(state, <size_t>len(state))
    cdef FilePlace saved
    PLACE.restore(&cursor, &saved)
    reader.limit = place
    reader.search_ends = saved.searching


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
    parts.append((<const char*>&count)[:sizeof(count)])
    while index != NO_FLOW:
        parts.append(CONNECTION.save(&table.entries[index]))
        index = table.entries[index].newer
    return 0


cdef int save_repeats(list parts, const Fragments* fragments) except -1:
    cdef const Repeat* repeat
    cdef size_t i
    for i in range(<size_t>MOST_REPEATS):
        repeat = &fragments.repeats[i]
        if repeat.fingerprint:
            parts.append(REPEAT.save(repeat))
    return 0


cdef int save_flow(list parts, const Flow* flow) except -1:
    cdef SavedFlow saved
    cdef uint32_t i
    saved.flow = flow[0]
    saved.head, saved.run, saved.data = flow.head != NULL, flow.run != NULL, flow.data != NULL
    if flow.filled < BASE_HEADER_SIZE:  # what was there of the packet before
        saved.flow.first_frame = 0
        memset(&saved.flow.last, 0, sizeof(Origin))
    parts.append(FLOW.save(&saved))
    if flow.filled >= BASE_HEADER_SIZE:
        if flow.data != NULL:
            parts.append((<const char*>flow.data)[:flow.filled])
    elif flow.filled:
        parts.append((<const char*>flow.head.data)[:flow.filled])
        for i in range(flow.filled):
            parts.append(ORIGIN.save(&flow.head.origins[i]))
    if flow.run != NULL:
        parts.append(RUN.save(flow.run))
    save_pieces(parts, &flow.pieces)
    save_pieces(parts, &flow.next_pieces)
    return 0


cdef int save_pieces(list parts, const Pieces* pieces) except -1:
    cdef const Piece* piece = pieces.first
    while piece != NULL:
        parts.append(PIECE.save(piece))
        parts.append((<const char*>piece_data(piece))[:piece.size])
        piece = piece.next
    return 0


cdef int save_datagram(list parts, const Datagram* datagram) except -1:
    cdef Buffer data = allocate_zeroed(datagram.end)
    cdef size_t at = 0
    while at < datagram.end:
        if is_covered(datagram, at):
            memcpy(data.data + at, datagram.data + at, min(<size_t>UNIT, datagram.end - at))
        at += UNIT
    parts.append(DATAGRAM.save(datagram))
    for at in range(datagram.arrival_count):
        parts.append(ARRIVAL.save(&datagram.arrivals[at]))
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


cdef bint is_possible(const SavedFlow* saved) noexcept:
    """Return True if a flow could be, as far as memory depends on it."""
    cdef const Flow* flow = &saved.flow
    if not is_family(family_of(&flow.endpoints)) or max(flow.position, flow.end) >= POSITIONS_END:
        return False
    if saved.run and not (flow.searching and flow.filled < BASE_HEADER_SIZE):
        return False
    if flow.filled < BASE_HEADER_SIZE:
        return not saved.data and not (flow.total or flow.capacity) and (saved.head or not flow.filled)
    if flow.total <= flow.filled or saved.data != (flow.capacity != 0):
        return False
    # Memory of a packet grows to twice what is needed, and is no less than a page
    return not saved.data or flow.filled <= flow.capacity <= max(<size_t>flow.filled * 2, <size_t>4096)


cdef int check_path(uint32_t path) except -1:
    try:
        encapsulation_names(path)
    except KeyError:
        raise malformed_state() from None
    return 0


cdef int restore_flow(FlowTable* table, Cursor* cursor) except -1:
    """The newest flow of the table."""
    cdef SavedFlow saved
    cdef Flow* flow = &saved.flow
    cdef Flow* restored
    cdef uint32_t filled
    cdef uint32_t capacity
    cdef uint32_t i
    cdef size_t pieces
    cdef size_t next_pieces
    memset(&saved, 0, sizeof(SavedFlow))
    FLOW.restore(cursor, &saved)
    if not is_possible(&saved) or find_flow(table, &flow.endpoints) != NULL:
        raise malformed_state()
    check_path(flow.path)
    restored = add_flow(table, &flow.endpoints)
    if restored == NULL:
        raise no_memory()
    filled, capacity = flow.filled, flow.capacity
    pieces, next_pieces = flow.pieces.count, flow.next_pieces.count
    flow.hash, flow.newer, flow.older = restored.hash, restored.newer, restored.older
    flow.capacity = flow.filled = 0
    flow.pieces.count = flow.next_pieces.count = 0
    restored[0] = flow[0]
    if saved.head and not open_head(table, restored):
        raise no_memory()
    if saved.data:
        if not grow_packet(table, restored, capacity):
            raise no_memory()
        copy_next(cursor, restored.data, filled)
    elif 0 < filled < BASE_HEADER_SIZE:
        copy_next(cursor, restored.head.data, filled)
        for i in range(filled):
            ORIGIN.restore(cursor, &restored.head.origins[i])
    restored.filled = filled
    if saved.run:
        restore_run(table, restored, cursor)
    while restored.pieces.count != pieces:
        restore_piece(table, &restored.pieces, cursor)
    while restored.next_pieces.count != next_pieces:
        restore_piece(table, &restored.next_pieces, cursor)
    return 0


cdef int restore_connection(Streams* streams, Cursor* cursor) except -1:
    """The newest connection."""
    cdef Connection saved
    cdef Connection* connection
    CONNECTION.restore(cursor, &saved)
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
    RUN.restore(cursor, flow.run)
    if not 0 < flow.run.size < POSITIONS_END:
        raise malformed_state()
    return 0


cdef int restore_piece(FlowTable* table, Pieces* pieces, Cursor* cursor) except -1:
    cdef Piece piece
    cdef const uint8_t* data
    cdef uint64_t end = 0
    cdef bint differs = False
    cdef size_t duplicate = 0
    PIECE.restore(cursor, &piece)
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
    cdef size_t i
    memset(&saved, 0, sizeof(Datagram))
    DATAGRAM.restore(cursor, &saved)
    if not 0 < saved.arrival_count <= MOST_ARRIVALS:
        raise malformed_state()
    for i in range(saved.arrival_count):
        ARRIVAL.restore(cursor, &saved.arrivals[i])
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
    if units != saved.units:
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
    REPEAT.restore(cursor, &repeat)
    fragments.repeats[repeat.fingerprint >> 1 & (MOST_REPEATS - 1)] = repeat
    return 0


def no_memory():
    """The MemoryError of what is put back."""
    return MemoryError("no memory for the TCP streams and IP datagrams that were open")
