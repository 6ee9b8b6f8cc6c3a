"""Ranges of a file, read each on its own, and joined: as if the file had been read from its beginning.

What begins inside a file cannot know what is in front of it. A ``RangeReader`` guesses: that a record begins where
several seem to follow each other, that sections and interfaces are those at the front of the file, and that of every
stream it comes across a packet begins at the first signature. It notes what it guessed. The ``JoiningReader`` has come
to the same place by reading, or by joining, all that is in front of it. It takes what the range gave where everything
guessed is so, and else reads on by itself: a wrong guess costs time and never a row.
"""

from libc.stddef cimport size_t
from libc.stdint cimport uint32_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memcpy, memset

from msmqwire.capture.blocks cimport Block, FileReader
from msmqwire.capture.flows cimport (
    NO_FLOW, Flow, FlowTable, Head as PacketHead, Piece, add_flow, find_flow, move_to_its_place,
)
from msmqwire.capture.frames cimport GAP, Frame, Rows
from msmqwire.capture.guesses cimport BEGINS, CONTINUES, MOST_HEADS, NUMBERED, Guess, Guesses, read_head
from msmqwire.capture.layers cimport Packet, Ports, find_packet
from msmqwire.capture.pcap cimport begins_chain as begins_records, find_record
from msmqwire.capture.pcapng cimport begins_chain as begins_blocks, find_block
from msmqwire.capture.rows cimport take_general
from msmqwire.capture.state cimport restore_streams, save_streams, section_state, set_section
from msmqwire.capture.streams cimport StreamCounts, Streams, StreamTable, deliver_waiting, take_head
from msmqwire.columns.batch cimport Batch
from msmqwire.columns.buffer cimport Buffer, allocate, allocate_zeroed
from msmqwire.mqqb.framing cimport BASE_HEADER_SIZE

from msmqwire.capture.stats import RangeStats

__all__ = ["JoiningReader", "RangeReader"]

cdef enum:
    FARTHEST_FRAME = 1 << 20  # bytes: a file whose first frame is behind them is read as if it had no interfaces
    COUNTS = sizeof(StreamCounts) // sizeof(uint64_t)


# --- A range ---


cdef class RangeReader(FileReader):
    """What begins in ``start`` to ``stop`` of a file, by a guess of what is in front of it."""
    cdef readonly uint64_t begin   # of the first record
    cdef readonly uint64_t stop
    cdef bytes section_before
    cdef list parts                # frames that were kept (a Buffer), the block behind them, problems; or None
    cdef size_t heads_size
    cdef bint found

    def __init__(
        self, name, read_into, ports, pool, StreamTable streams, seek, start, uint64_t stop, *, selection=None
    ):
        FileReader.__init__(self, name, read_into, ports, pool, streams, RangeStats(), selection=selection, last=False)
        streams.streams.guesses.active = streams.streams.guesses.keeping = True
        self.parts = []
        self.stop = stop
        if start is None:
            self.begin = self.offset
            self.section_before = section_state(self)
            self.found = True
            self.limit = stop
        else:
            if self.pcapng:
                self.read_front()
            self.section_before = section_state(self)
            self.limit = stop
            self.go_to(seek, start)
            self.found = self.find_start()

    cdef int go_to(self, object seek, uint64_t offset) except -1:
        """Go on elsewhere in the file."""
        seek(offset)
        self.data = None
        self.carried = 0
        self.offset = offset
        self.ended = self.short = False
        return 0

    cdef int read_front(self) except -1:
        """Read sections and interfaces up to the first frame."""
        cdef Ports ports = self.ports
        cdef Buffer none = allocate_zeroed(8192)
        self.ports.udp = self.ports.tcp = self.ports.ipx = <const uint64_t*>none.data
        while not self.account.frames and self.next_record() < FARTHEST_FRAME and not self.exhausted():
            self.limit = self.next_record() + 1
            self.next_block()
        self.ports = ports
        memset(&self.account.frames, 0, sizeof(self.account.frames))
        self.settled = 0
        self.stats = RangeStats()
        self.streams.streams.guesses.heads_size = 0
        return 0

    cdef bint find_start(self) except -1:
        """Find several records that follow each other; false when the first window has none."""
        cdef bint found
        self.next_window()
        while self.window.position < self.window.size:
            with nogil:
                if self.pcapng:
                    found = find_block(&self.window, &self.section, False)
                    found = found and begins_blocks(&self.window, &self.section)
                else:
                    found = find_record(&self.window, &self.pcap, False)
                    found = found and begins_records(&self.window, &self.pcap)
            if found:
                self.begin = self.next_record()
                return True
            self.window.position += 1  # where none follows, or the window does not tell
        return False

    def read_all(self, *, bint keep=True):
        cdef Guesses* guesses = &self.streams.streams.guesses
        cdef Buffer heads
        cdef Block block
        while self.found and not self.exhausted() and not self.reached():
            block = self.next_rows()
            heads = None
            if guesses.heads_size:
                heads = allocate(guesses.heads_size)
                memcpy(heads.data, guesses.heads, heads.size)
                self.heads_size += heads.size
                guesses.heads_size = 0
            self.parts.append((heads, block if keep else None, self.stats.taken()))
            if guesses.wrong or self.heads_size > MOST_HEADS:
                self.found = False
                self.parts = []
        self.offset = self.next_record()
        self.ended = self.ended and self.data is None  # else others begin between here and the end
        self.data = None


# --- The truth ---


cdef class JoiningReader(FileReader):
    """A file from its beginning, read or joined from ranges; ``seek`` goes on elsewhere in it."""
    cdef object seek
    cdef Buffer heads
    cdef size_t heads_at

    def __init__(self, name, read_into, ports, pool, streams, stats, seek, *, selection=None, bint last=True):
        FileReader.__init__(self, name, read_into, ports, pool, streams, stats, selection=selection, last=last)
        self.seek = seek

    def read_to(self, uint64_t limit):
        self.limit = limit
        while (block := self.next_block()) is not None:
            yield block

    def join(self, RangeReader found):
        cdef Guesses* guesses = &self.streams.streams.guesses
        cdef Buffer data = self.data
        cdef Buffer shifts = None
        cdef StreamCounts counts = self.streams.streams.counts
        stats = self.stats
        if not found.found or self.next_record() != found.begin or not self.reached():
            return None
        if section_state(self) != found.section_before:
            return None
        saved = save_streams(&self.streams.streams)
        self.stats = RangeStats()
        guesses.keeping = True
        guesses.peak = 0
        blocks, problems = self.joined(found)
        if not guesses.wrong:
            shifts = join_streams(self.streams, found.streams, self.account.frames)
        guesses.keeping = guesses.wrong = False
        fed, self.stats = self.stats, stats
        if shifts is None:
            self.data = data
            restore_streams(&self.streams.streams, saved, <uint32_t>len(self.streams.files))
            self.streams.streams.counts = counts
            return None
        for block, ours in blocks:
            if not ours:
                shift_block(block, self.account.frames, shifts)
        for problem, ours in problems:
            stats.describe(*(problem if ours else shifted(problem, shifts)))
        stats.count(fed)
        stats.count(found.stats)
        for name, count in self.streams.counts().items():
            setattr(stats.streams, name, count)
        self.go_behind(found)
        return [block for block, _ in blocks]

    cdef tuple joined(self, RangeReader found):
        """The blocks of a range and its problems, each with whether it is ours, between its own."""
        cdef list blocks = []
        cdef list problems = []
        cdef Block block
        for heads, theirs, described in found.parts:
            if heads is not None:
                self.data = self.heads = heads
                self.heads_at = 0
                while self.data is not None:
                    block = self.next_rows()
                    if block is not None:
                        blocks.append((block, True))
                self.heads = None
                problems += [(problem, True) for problem in self.stats.taken()]
            if theirs is not None:
                blocks.append((theirs, False))
            problems += [(problem, False) for problem in described]
        return blocks, problems

    cdef bint walk_on(self, Rows* rows) except -1:
        cdef Streams* streams = &self.streams.streams
        cdef Frame frame
        cdef Packet packet
        cdef size_t passed = 0
        cdef size_t size
        cdef bint taken
        if self.heads is None:
            return FileReader.walk_on(self, rows)
        if not deliver_waiting(streams, rows, &self.account):
            return False
        while self.heads_at < self.heads.size:
            size = read_head(self.heads.data + self.heads_at, &frame, &passed)
            frame.number += self.account.frames
            if not passed:
                taken = take_general(&frame, &self.ports, rows.columns, rows, &self.account, streams)
            else:
                find_packet(frame.data, frame.size, frame.link, &self.ports, &packet)
                taken = take_head(streams, &frame, &packet, passed, rows, &self.account)
            if not taken:
                return False
            self.heads_at += size
            if streams.waiting != NO_FLOW:
                return False
        return True

    cdef int go_behind(self, RangeReader found) except -1:
        """Go on where the range ended."""
        self.account.frames += found.account.frames
        self.settled = self.account.frames
        set_section(self, section_state(found))
        self.carried = 0
        self.offset = found.offset
        self.short = False
        self.ended = found.ended
        self.data = None
        if self.ended:
            self.data = self.pool.window()
            self.window.data = self.data.data
            self.window.size = self.window.position = 0
            self.window.offset = found.offset
            self.walked = True
        else:
            self.seek(found.offset)
        return 0


# --- What rests on guesses of streams ---


cdef inline uint64_t shift_of(Buffer shifts, uint64_t position) noexcept:
    return (<uint64_t*>shifts.data)[position >> NUMBERED]


cdef tuple shifted(tuple problem, Buffer shifts):
    """A problem with its true position in the stream."""
    name, offset, reason, needed, available = problem
    if reason >= <int>GAP:
        available = <uint64_t>available + shift_of(shifts, available)
    return name, offset, reason, needed, available


cdef void shift_block(Block block, uint64_t frames, Buffer shifts) noexcept:
    """Give rows their true frame numbers and positions in streams."""
    cdef Batch batch = block.capture
    cdef uint64_t* frame = <uint64_t*>batch.data("frame")
    cdef uint64_t* first_frame = <uint64_t*>batch.data("first_frame")
    cdef uint64_t* position = <uint64_t*>batch.data("stream_offset")
    cdef size_t row
    for row in range(batch.length):
        if frame != NULL:
            frame[row] += frames
        if first_frame != NULL:
            first_frame[row] += frames
        if position != NULL:
            position[row] += shift_of(shifts, position[row])


cdef inline bint between_packets(const Flow* flow) noexcept:
    return not (flow.filled or flow.skip or flow.pieces != NULL)


cdef Buffer true_shifts(Streams* truth, Streams* streams):
    """What to add to positions that rest on each guess; None when one of them is wrong."""
    cdef const Guesses* guesses = &streams.guesses
    cdef Buffer shifts = allocate_zeroed((guesses.count + 1) * sizeof(uint64_t))
    cdef const Guess* guess
    cdef const Flow* flow
    cdef size_t i
    for i in range(guesses.count):
        guess = &guesses.guesses[i]
        flow = find_flow(&truth.table, &guess.endpoints)
        if guess.kind == CONTINUES:
            (<uint64_t*>shifts.data)[i + 1] = (flow.position if flow != NULL else 0) - (<uint64_t>(i + 1) << NUMBERED)
        if flow == NULL:
            continue
        if guess.kind == CONTINUES:
            if not between_packets(flow) or flow.first + <uint32_t>flow.position != guess.sequence:
                return None
        elif flow.first == guess.sequence or guess.kind == BEGINS and not between_packets(flow):
            return None
    return shifts


cdef Buffer join_streams(StreamTable truth, StreamTable found, uint64_t frames):
    """Make the streams of a range, ``frames`` behind the first, part of the truth; what ``true_shifts`` says."""
    cdef Streams* streams = &found.streams
    cdef FlowTable* table = &truth.streams.table
    cdef size_t peak = max(truth.streams.guesses.peak, table.memory) + max(streams.guesses.peak, streams.table.memory)
    cdef uint64_t* ours = <uint64_t*>&truth.streams.counts
    cdef const uint64_t* theirs = <const uint64_t*>&streams.counts
    cdef Buffer shifts
    cdef size_t i
    if streams.guesses.wrong or streams.waiting != NO_FLOW or truth.streams.waiting != NO_FLOW:
        return None
    if peak > truth.streams.most_memory or table.count + streams.table.count > truth.streams.most_flows:
        return None
    shifts = true_shifts(&truth.streams, streams)
    if shifts is None:
        return None
    for i in range(streams.guesses.count):
        if streams.guesses.guesses[i].kind == CONTINUES:
            truth.streams.counts.streams -= find_flow(table, &streams.guesses.guesses[i].endpoints) != NULL
    for i in range(<size_t>COUNTS):
        ours[i] += theirs[i]
    join_flows(table, &streams.table, frames, shifts)
    return shifts


cdef int join_flows(FlowTable* table, FlowTable* found, uint64_t frames, Buffer shifts) except -1:
    """Move flows with all that belongs to them, into the order of their last segments."""
    cdef uint32_t index = found.oldest
    cdef Flow* flow
    cdef Flow* target
    while index != NO_FLOW:
        flow = &found.flows[index]
        target = find_flow(table, &flow.endpoints)
        if target != NULL and flow.position >> NUMBERED:
            flow.ended |= target.ended
        shift_flow(flow, frames, shift_of(shifts, flow.position))
        if target == NULL:
            target = add_flow(table, &flow.endpoints)
            if target == NULL:
                raise MemoryError("no memory for the TCP streams of a range")
        index = flow.newer
        move_flow(table, target, flow)
    return 0


cdef void shift_flow(Flow* flow, uint64_t frames, uint64_t shift) noexcept:
    cdef Piece* piece = flow.pieces
    cdef size_t i
    flow.first -= <uint32_t>shift
    flow.position += shift
    flow.first_frame += frames
    flow.last.frame += frames
    if flow.head != NULL:
        for i in range(min(flow.filled, <uint32_t>BASE_HEADER_SIZE)):
            flow.head.origins[i].frame += frames
    while piece != NULL:
        piece.position += shift
        piece.origin.frame += frames
        piece = piece.next


cdef void move_flow(FlowTable* table, Flow* target, Flow* flow) noexcept:
    """Put a flow of another table in the place of one between packets."""
    cdef Flow old = target[0]
    cdef Piece* piece = flow.pieces
    if flow.head != NULL:
        free(old.head)
        table.memory += 0 if old.head != NULL else sizeof(PacketHead)
    table.memory += flow.capacity
    while piece != NULL:
        table.memory += sizeof(Piece) + piece.size
        piece = piece.next
    target[0] = flow[0]
    target.hash, target.newer, target.older = old.hash, old.newer, old.older
    if target.head == NULL:
        target.head = old.head
    move_to_its_place(table, target)
    flow.pieces = flow.last_piece = NULL
    flow.head = NULL
    flow.data = NULL
    flow.filled = 0
