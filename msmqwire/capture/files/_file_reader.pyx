"""One capture file, a window at a time: reading, keeping the incomplete record at the end of a window, and the rows.

A window is read after the space for the bytes kept of the one before, so that the read itself always goes to the same
place, a multiple of 64: if a destination is up to 31 bytes after its source, modulo a page, the copy of the operating
system takes five times as long on some machines.
"""

from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memmove, memset

from msmqwire.capture.files._blocks cimport FULL_BLOCK, Block, Pool, rows_of
from msmqwire.capture.files._pcap cimport PCAP_HEADER, find_record, read_pcap_header, record_length, walk_pcap
from msmqwire.capture.files._pcapng cimport (
    MOST_NUMBERED, Interface, Numbered, block_length, find_block, is_frame, is_section, read_interface, read_section,
    walk_pcapng,
)
from msmqwire.capture.files.window cimport (
    FULL, INTERFACE, LARGEST_RECORD, LOST, MORE, SECTION, SKIP, Stop, Window, number,
)
from msmqwire.capture.frames._fragments cimport give_up_datagrams
from msmqwire.capture.frames._frame cimport (
    BLOCK_ENDS_DIFFER, LINK_TYPES, RECORD_CUT, UNSUPPORTED_KINDS, Counts, Problem, malformed,
)
from msmqwire.capture.frames._rows cimport Rows
from msmqwire.capture.frames._selection cimport PayloadSelection
from msmqwire.capture.tcp._flows cimport NO_FLOW, Streams
from msmqwire.capture.tcp._streams cimport PacketMemory, StreamTable, deliver_waiting, finish_streams, take_memory
from msmqwire.columns._batch cimport Batch, prepare
from msmqwire.columns._buffer cimport Buffer, allocate, allocate_zeroed
from msmqwire.columns._payloads cimport Payloads, payloads_of_spans, with_lost
from msmqwire.columns.payload_table cimport Span
from msmqwire.wire._address cimport (
    ADDRESS_FAMILY_AT, IPV6, LONGEST_ADDRESS_TEXT, NO_ADDRESS, format_address
)
from msmqwire.wire.simd cimport wire_bswap16

from msmqwire.errors import CaptureReadError

from msmqwire.capture.files.other_formats import not_a_capture
from msmqwire.capture.frames._encapsulations import encapsulation_names
from msmqwire.capture.schema import FileLimits

if False:  # for type checkers: see stubs.py
    from collections.abc import Callable

    from msmqwire.capture.stats import CaptureStats

cdef enum:
    FIRST_READ = 4096   # enough for every file header, and leaves the following reads aligned to pages
    FRONT = 1024        # bytes that identify a file: as a rule with the time of its first frame
    SPARSE = 4          # a window is not kept for payloads that would fill less than this part of it

cdef uint64_t END_OF_FILE = 0xFFFFFFFFFFFFFFFF


cdef class FileReader:
    """The blocks of one file; TCP streams continue from one file to the next, up to the ``last``.

    ``read_into`` takes a writable buffer and returns the number of bytes it put there, 0 at the end; ``selection``
    chooses the payloads that give rows; ``streams`` are the TCP streams of all files; ``stats`` receives the counts. Of
    a ``growing`` file the end is not known: reading ends before an incomplete record. The file ends after ``size``
    bytes, even if it has grown since. While ``ready`` returns true, the next read does not wait for data, and a block
    with few payloads is filled from several windows; without it a block has the payloads of one window. ``copies``:
    packets that pcapng numbers are read at each interface, not only at the first.

    Attributes
    ----------
    end : int
        The bytes of the file that were read.
    place : int
        Where the next record begins, or the file ended.
    frames : int
        The frames that were read.
    """

    name: str
    end: int

    def __init__(
        self, str name, read_into: Callable[[memoryview], int], PayloadSelection selection, Pool pool,
        StreamTable streams, stats: CaptureStats, *, bint last=True, bint growing=False, uint64_t size=END_OF_FILE,
        size_t most_interfaces=FileLimits.interfaces, bint copies=False, ready: Callable[[], bool] | None = None
    ) -> None:
        self.name = name
        self.read_into = read_into
        self.ready = ready
        self.pool = pool
        self.streams = streams
        self.selection = selection
        self.counts.file = <uint32_t>len(streams.files)
        streams.files.append(name)
        self.last = last
        self.growing = growing
        self.size = size
        self.section.most = most_interfaces
        self.copies = copies
        self.stats = stats
        self.limit = END_OF_FILE
        self.carry = pool.carry  # one file of a pool is read at a time
        self.start()

    cdef int start(self) except -1:
        """Read the file header; CaptureError if it is not valid."""
        cdef size_t count
        cdef size_t header = PCAP_HEADER
        view = memoryview(self.carry)
        while self.carried < header:
            count = self.read(view[self.carried:FIRST_READ])
            if not count:
                break
            self.carried += count
        self.short = self.carried < FIRST_READ
        self.front = bytes(view[:min(self.carried, <size_t>FRONT)])
        if self.carried >= header and is_section(self.carry.data):
            self.pcapng = True
            if not self.copies:
                self.numbered = allocate_zeroed(MOST_NUMBERED * sizeof(Numbered))
                self.section.numbered = <Numbered*>self.numbered.data
        elif self.carried >= header and read_pcap_header(self.carry.data, &self.pcap):
            self.carried -= header
            self.offset = header
            memmove(self.carry.data, self.carry.data + header, self.carried)
        else:
            if self.growing and self.carried < header:
                self.paused = True
                return 0
            raise not_a_capture(self.name, bytes(view[:min(self.carried, <size_t>FRONT)]))
        return 0

    @property
    def place(self) -> int:
        return self.next_record()

    @property
    def is_empty(self) -> bool:
        """True if the file, read to its end, is a section without interfaces and packets."""
        return self.pcapng and self.ended and not (self.section.count or self.counts.frames)

    @property
    def frames(self) -> int:
        return self.counts.frames

    cdef size_t read(self, object view) except? 0:
        cdef object count
        if self.size - self.end < <size_t>len(view):
            view = view[:self.size - self.end]
        if not len(view):
            return 0
        count = self.read_into(view)
        if count is None:
            raise CaptureReadError(f"{self.name}: cannot be read without waiting; give a file in blocking mode")
        if not 0 <= count <= len(view):
            raise CaptureReadError(f"{self.name}: its reader says {count} bytes where {len(view)} were requested")
        self.end += <uint64_t>count
        self.stats.bytes_read += count
        return count

    def next_block(self) -> Block | None:
        """The next block with rows in it, None at the end of the file."""
        cdef Block block = None
        while block is None and not self.exhausted() and not self.reached():
            block = self.next_rows()
        return block

    def pass_to(self, uint64_t limit) -> bool:
        """Read up to the first record that begins at ``limit`` or later and drop the rows; false at the end."""
        self.limit = limit
        while self.next_block() is not None:
            pass
        return not self.exhausted()

    cdef bint exhausted(self) noexcept:
        """Return True if all bytes of the file were read."""
        return self.data is None and (self.ended or self.paused)

    cdef uint64_t next_record(self) noexcept:
        """Where the next record begins, or the file ended."""
        if self.ended and (self.data is None or self.walked):
            return self.window.offset + self.window.size
        if self.skip_length:
            return self.skip_from
        return self.offset if self.data is None else self.window.offset + self.window.position

    cdef bint reached(self) noexcept:
        """Return True if the next record is known and must be left alone."""
        if self.skip_length or self.streams.streams.waiting != NO_FLOW:
            return False
        if self.searching and not self.search_ends:
            return False
        if self.data is None:
            return self.offset >= self.limit
        return not self.walked and self.window.offset + self.window.position >= self.limit

    cdef int next_window(self) except -1:
        """Read a window after the bytes kept of the one before."""
        cdef size_t start = LARGEST_RECORD - self.carried
        cdef size_t most = self.pool.block_size
        cdef size_t count
        if self.limit - self.offset < most:  # that a record reaches over the limit is seldom by much
            most = min(most, <size_t>(self.limit - self.offset) + FIRST_READ)
        self.data = self.pool.window()
        memcpy(self.data.data + start, self.carry.data, self.carried)
        view = memoryview(self.data)
        count = 0 if self.short else self.read(view[LARGEST_RECORD:LARGEST_RECORD + most])
        self.window.data = self.data.data + start
        self.window.size = self.carried + count
        self.window.position = 0
        self.window.offset = self.offset
        self.keep_front()
        self.paused = self.growing and count == 0 and not self.short
        self.ended = count == 0 and not self.short and not self.growing
        self.short = False
        self.walked = False
        return 0

    cdef int keep_front(self) except -1:
        """Add to the front of a file what its first read did not return."""
        cdef const char* data = <const char*>self.window.data
        cdef size_t known = <size_t>len(self.front)
        cdef uint64_t offset = self.window.offset
        if known < FRONT and offset <= known < offset + self.window.size:
            self.front += data[known - offset:min(self.window.size, FRONT - offset)]
        return 0

    cdef Block next_rows(self):
        """Return the rows of a window, or of several windows, up to the space for them; None without rows."""
        cdef Buffer data
        cdef Buffer gathered = None
        cdef Buffer spans = self.pool.row_spans()
        cdef Batch columns = self.pool.batch() if self.pool.columns or self.selection.by_more else None
        cdef Rows rows = rows_of(self.pool, spans, columns)
        cdef PacketMemory memory
        cdef size_t held = 0  # rows whose payloads are gathered, and their bytes
        cdef size_t held_bytes = 0
        if self.selection.by_more:
            rows.selection = &self.selection.selection
        try:
            while True:
                if self.data is None and not self.finds_window(rows.next != rows.spans):
                    break
                data = self.data
                if not self.walk_window(&rows):
                    break
                self.data = None
                if not self.continues(&rows, held_bytes):
                    break
                if rows.nbytes > held_bytes:
                    if gathered is None:
                        gathered = self.pool.gathering()
                    gather(&rows, held, gathered.data + held_bytes)
                    held, held_bytes = <size_t>(rows.next - rows.spans), rows.nbytes
                data = None
        finally:
            memory = take_memory(&rows)
        rows.count = <size_t>(rows.next - rows.spans)
        if self.streams.streams.no_memory:
            raise MemoryError("no memory for the packets of TCP streams")
        self.add_counts(rows.count - rows.packets - rows.cut)
        return self.block((data, gathered, spans, memory), columns, &rows) if rows.count else None

    cdef bint finds_window(self, bint later) except -1:
        """Read the next window; an error that must come ``later``, after the rows before it, is kept until then."""
        if self.failure is not None:
            failure, self.failure = self.failure, None
            raise failure
        try:
            self.next_window()
        except Exception as error:
            if not later:
                raise
            self.data, self.failure = None, error
            return False
        return True

    cdef bint continues(self, const Rows* rows, size_t held) except -1:
        """Return True if the rows of another window are to be added: this one has few rows and small payloads."""
        cdef size_t most = self.pool.block_size
        return (
            self.ready is not None and <size_t>(rows.next - rows.spans) < FULL_BLOCK and rows.nbytes <= most
            and rows.nbytes - held < most // SPARSE and not self.exhausted() and not self.reached() and self.ready()
        )

    cdef bint walk_window(self, Rows* rows) except -1:
        """Walk the window to its end; false if the rows have no space for what follows the position."""
        cdef Streams* streams = &self.streams.streams
        if not deliver_waiting(streams, rows, &self.counts):
            return False
        if not self.walked:
            if not self.walk(&self.window, rows):
                return False
            if self.reached():
                return False
            self.walked = True
            if self.ended:
                self.finish(&self.window)
            else:
                self.carried = self.window.size - self.window.position
                memcpy(self.carry.data, self.window.data + self.window.position, self.carried)
                self.offset += self.window.position
        if self.ended and self.last:
            give_up_datagrams(&streams.fragments, 0, &self.counts)
            return finish_streams(streams, rows, &self.counts)
        return True

    cdef bint walk(self, Window* window, Rows* rows) except -1:
        """All complete records of the window; the bytes after the position wait for more of the file.

        False if the rows have no space for the record at the position.
        """
        cdef Stop stop
        window.limit = 0
        if self.limit > window.offset:
            window.limit = <size_t>(self.limit - window.offset)
        while True:
            if self.skip_length and not self.pass_over(window):
                return True
            if self.searching and not self.search(window):
                return True
            with nogil:
                if self.pcapng:
                    stop = walk_pcapng(
                        window, &self.section, &self.selection.ports, rows, &self.counts, &self.streams.streams
                    )
                else:
                    stop = walk_pcap(
                        window, &self.pcap, &self.selection.ports, rows, &self.counts, &self.streams.streams,
                        self.ended,
                    )
            if stop == SECTION:
                stop = read_section(window, &self.section, &self.counts)
            elif stop == INTERFACE:
                self.add_interface(window)
            if stop == SKIP:
                self.skip_from = window.offset + window.position
                self.skip_length = block_length(window, &self.section)
                self.skip_kind = number(window.data + window.position, self.section.swapped)
            elif stop == LOST:
                self.lose(window.offset + window.position)
                window.position += 1
            elif stop == FULL:
                return False
            elif stop == MORE:
                if window.position >= window.limit:
                    return True
                if not self.ended or window.position == window.size:
                    return True
                self.truncated_record(window)

    cdef int truncated_record(self, Window* window) noexcept:
        """The file ends inside the record at the position, or its length is wrong and others follow: look for them."""
        cdef uint64_t offset = window.offset + window.position
        cdef uint64_t needed = (
            block_length(window, &self.section) if self.pcapng else record_length(window, &self.pcap)
        )
        self.counts.frames += 1
        malformed(&self.counts, offset, 0, RECORD_CUT, needed, window.size - window.position)
        self.lose(offset)
        window.position += 1
        return 0

    cdef void lose(self, uint64_t offset) noexcept:
        """The bytes from ``offset`` on belong to no record, until one is found again."""
        self.searching = True
        self.lost_from = offset

    cdef bint search(self, Window* window) except -1:
        """Find the next plausible record; false when the window holds none."""
        cdef bint found
        with nogil:
            if self.pcapng:
                found = find_block(window, &self.section, self.ended)
            else:
                found = find_record(window, &self.pcap, self.ended)
        if self.search_ends and window.position >= window.limit:
            window.position = window.limit
            return False
        if found:
            self.searching = False
            self.stats.bytes_skipped += window.offset + window.position - self.lost_from
        return found

    cdef bint pass_over(self, Window* window) noexcept:
        """Pass over a block that no window holds, up to the length at its end; false when the window ends first."""
        cdef uint64_t here = window.offset + window.position
        cdef uint64_t last = self.skip_from + self.skip_length - 4
        cdef uint32_t length
        window.position += <size_t>min(last - here, <uint64_t>(window.size - window.position))
        if window.offset + window.position < last or window.size - window.position < 4:
            return False
        length = number(window.data + window.position, self.section.swapped)
        if length != self.skip_length:
            self.counts.frames += 1
            malformed(&self.counts, self.skip_from, 0, BLOCK_ENDS_DIFFER, self.skip_length, length)
            self.lose(self.skip_from)
        else:
            window.position += 4
            if is_frame(self.skip_kind):
                self.counts.frames += 1
                self.counts.sums.other += 1
        self.skip_length = 0
        return True

    cdef int finish(self, const Window* window) except -1:
        """The file has ended; bytes that are still being searched, or passed over, belong to no record."""
        cdef uint64_t end = window.offset + window.size
        if self.searching:
            self.stats.bytes_skipped += end - self.lost_from
        elif self.skip_length:
            self.counts.frames += 1
            malformed(&self.counts, self.skip_from, 0, RECORD_CUT, self.skip_length, end - self.skip_from)
            self.stats.bytes_skipped += end - self.skip_from
        return 0

    cdef int add_interface(self, Window* window) except -1:
        cdef size_t count = self.section.count
        cdef Buffer more
        if count >= self.section.most:
            window.position += block_length(window, &self.section)
            return 0
        if self.interfaces is None or (count + 1) * sizeof(Interface) > self.interfaces.size:
            more = allocate(2 * (count + 1) * sizeof(Interface))
            if count:
                memcpy(more.data, self.interfaces.data, count * sizeof(Interface))
            self.interfaces = more
        self.section.interfaces = <Interface*>self.interfaces.data
        memset(<Interface*>self.interfaces.data + count, 0, sizeof(Interface))
        read_interface(window, &self.section, <Interface*>self.interfaces.data + count)
        self.section.count = count + 1
        return 0

    cdef int add_counts(self, size_t rows) except -1:
        """Move what the kernels counted into the stats."""
        cdef Counts* counts = &self.counts
        cdef const Problem* problem
        cdef size_t i
        stats = self.stats
        stats.frames += counts.frames - self.added_frames
        stats.payloads += rows
        for name, count in (<dict>counts.sums).items():
            if count:
                setattr(stats, name, getattr(stats, name) + count)
        for i in range(counts.described):
            problem = &counts.problems[i]
            stats._describe(
                self.streams.files[problem.file], problem.offset, problem.reason, problem.needed, problem.available,
                problem.frame, ends_of(problem),
            )
        for name, count in self.streams.counts().items():
            setattr(stats.streams, name, count)
        self.added_frames = counts.frames
        if counts.sums.unsupported:
            count_unsupported(stats, counts)
        for i in range(counts.unread_count):
            stats._count_unread(counts.unread[i].kind, counts.unread[i].port)
        counts.unread_count = 0
        stats.copies += counts.copies
        counts.copies = 0
        memset(&counts.sums, 0, sizeof(counts.sums))
        counts.described = 0
        return 0

    cdef Block block(self, tuple memory, Batch columns, Rows* rows):
        cdef Block block = Block.__new__(Block)
        cdef Py_ssize_t nbytes = <Py_ssize_t>rows.nbytes
        cdef Buffer sizes
        cdef bint sparse = rows.nbytes < self.pool.block_size // SPARSE
        if sparse:
            block.payloads = compact_payloads(rows)
        else:
            block.payloads = payloads_of_spans(rows.spans, rows.count, nbytes, memory)
        if rows.lost_count:
            sizes = sizes_lost(rows)
            block.payloads = with_lost(block.payloads, <const uint32_t*>sizes.data, sizes)
        if columns is None:
            block.capture = prepare(self.pool.table, block.payloads, self.pool.columns, None)
        elif sparse:
            block.capture = compact_columns(columns, block.payloads, self.pool.most_rows)
        else:
            block.capture = prepare(self.pool.table, block.payloads, self.pool.columns, columns)
        block.capture.payloads = self.pool.nothing  # rows of capture columns can be kept without their payloads
        names = [self.streams.files[rows.files[i]] for i in range(rows.file_count)]
        block.capture.own_names["file"] = (self.name, *names)
        paths = tuple([encapsulation_names(rows.paths[i]) for i in range(rows.path_count)])
        block.capture.own_names["encapsulation"] = paths
        block.others = allocate(rows.other_count * sizeof(uint32_t))
        memcpy(block.others.data, rows.others, block.others.size)
        return block


cdef int count_unsupported(stats, Counts* counts) except -1:
    """Move the counts of what is not supported into the stats, by name."""
    cdef size_t i
    for i in range(<size_t>LINK_TYPES):
        if counts.unsupported_links[i]:
            stats._count_link(i, counts.unsupported_links[i])
    for i in range(<size_t>UNSUPPORTED_KINDS):
        if counts.unsupported_encapsulations[i]:
            stats._count_encapsulation(i, counts.unsupported_encapsulations[i])
    memset(counts.unsupported_links, 0, sizeof(counts.unsupported_links))
    memset(counts.unsupported_encapsulations, 0, sizeof(counts.unsupported_encapsulations))
    return 0


cdef void gather(Rows* rows, size_t first, uint8_t* target) noexcept nogil:
    """Move the payloads of the rows from ``first`` on out of their window."""
    cdef Span* span = rows.spans + first
    while span != rows.next:
        memcpy(target, span.data, span.size)
        span.data = target
        target += span.size
        span += 1


cdef Buffer sizes_lost(const Rows* rows):
    """The bytes that the payload of each row lost."""
    cdef Buffer sizes = allocate_zeroed(rows.count * sizeof(uint32_t))
    cdef size_t i
    for i in range(rows.lost_count):
        (<uint32_t*>sizes.data)[rows.lost[i].row] = rows.lost[i].size
    return sizes


cdef Payloads compact_payloads(Rows* rows):
    """A copy of the payloads: few of them need not keep a window in memory."""
    cdef Buffer data = allocate(rows.nbytes)
    cdef Buffer spans = allocate(rows.count * sizeof(Span))
    gather(rows, 0, data.data)
    memcpy(spans.data, rows.spans, spans.size)
    return payloads_of_spans(<const Span*>spans.data, rows.count, <Py_ssize_t>rows.nbytes, (data, spans))


cdef Batch compact_columns(Batch batch, Payloads payloads, size_t most):
    """A copy of columns with space for ``most`` rows, with space for those of ``payloads``."""
    cdef Batch copied = prepare(batch.table, payloads, batch.columns, None)
    cdef Buffer buffer
    cdef size_t size
    for path, buffer in batch.buffers.items():
        size = buffer.size // most * copied.length
        memcpy(copied.reserve(path, size), buffer.data, size)
    return copied


cdef str ends_of(const Problem* problem):
    """The addresses and ports of a problem as text; empty where they are not known."""
    if problem.src[ADDRESS_FAMILY_AT] == NO_ADDRESS:
        return ""
    ports = (wire_bswap16(problem.src_port), wire_bswap16(problem.dst_port)) if problem.has_ports else (None, None)
    return f"{end_of(problem.src, ports[0])} to {end_of(problem.dst, ports[1])}"


cdef str end_of(const uint8_t* address, object port):
    cdef uint8_t[LONGEST_ADDRESS_TEXT] text
    cdef str name = (<char*>text)[:format_address(address, text)].decode("ascii")
    if port is None:
        return name
    return f"[{name}]:{port}" if address[ADDRESS_FAMILY_AT] == IPV6 else f"{name}:{port}"
