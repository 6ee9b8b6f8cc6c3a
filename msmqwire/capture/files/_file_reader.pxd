"""One capture file, a window at a time."""

from libc.stddef cimport size_t
from libc.stdint cimport uint32_t, uint64_t

from msmqwire.capture.files._blocks cimport Block, Pool
from msmqwire.capture.files._pcap cimport PcapFile
from msmqwire.capture.files._pcapng cimport Section
from msmqwire.capture.files.window cimport Window
from msmqwire.capture.frames._frame cimport Counts
from msmqwire.capture.frames._rows cimport Rows
from msmqwire.capture.frames._selection cimport PayloadSelection
from msmqwire.capture.tcp._streams cimport StreamTable
from msmqwire.columns._batch cimport Batch
from msmqwire.columns._buffer cimport Buffer


cdef class FileReader:
    cdef readonly str name
    cdef object read_into
    cdef object ready          # tells whether the next read returns at once; None: blocks have the rows of one window
    cdef object failure        # of a read, raised when the rows before it were returned
    cdef Pool pool
    cdef StreamTable streams
    cdef PayloadSelection selection
    cdef bint last
    cdef bint growing
    cdef uint64_t size         # where the file ends, even if it has grown since
    cdef object stats
    cdef bint pcapng
    cdef bytes front           # the first bytes, that identify the file
    cdef PcapFile pcap
    cdef Section section
    cdef Buffer interfaces
    cdef bint copies           # packets that were captured at another interface are read again
    cdef Buffer numbered       # the packets that have a number
    cdef Counts counts
    cdef Buffer data           # of the window that is being walked, None when the next is to be read
    cdef Window window
    cdef bint walked           # to its end
    cdef Buffer carry
    cdef size_t carried
    cdef uint64_t offset       # of the first byte that is carried
    cdef uint64_t skip_length  # of a block that is passed over, else 0
    cdef uint64_t skip_from    # where in the file it begins
    cdef uint32_t skip_kind
    cdef bint searching        # for a plausible record
    cdef uint64_t lost_from    # where in the file no record could begin
    cdef uint64_t added_frames      # frames that are in the stats
    cdef readonly uint64_t end  # bytes of it that were read
    cdef bint short            # the first read returned less than requested: it may be all there is for now
    cdef bint ended
    cdef bint paused           # a growing file has no more for now
    cdef uint64_t limit        # records that begin there or later are not read
    cdef bint search_ends      # at the limit as well

    cdef int start(self) except -1
    cdef size_t read(self, object view) except? 0
    cdef bint exhausted(self) noexcept
    cdef uint64_t next_record(self) noexcept
    cdef bint reached(self) noexcept
    cdef int next_window(self) except -1
    cdef int keep_front(self) except -1
    cdef Block next_rows(self)
    cdef bint finds_window(self, bint later) except -1
    cdef bint continues(self, const Rows* rows, size_t held) except -1
    cdef bint walk_window(self, Rows* rows) except -1
    cdef bint walk(self, Window* window, Rows* rows) except -1
    cdef int truncated_record(self, Window* window) noexcept
    cdef void lose(self, uint64_t offset) noexcept
    cdef bint search(self, Window* window) except -1
    cdef bint pass_over(self, Window* window) noexcept
    cdef int finish(self, const Window* window) except -1
    cdef int add_interface(self, Window* window) except -1
    cdef int add_counts(self, size_t rows) except -1
    cdef Block block(self, tuple memory, Batch columns, Rows* rows)
