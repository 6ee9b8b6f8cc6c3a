"""Frames taken out of captures, read as the captures are."""

from cython cimport boundscheck, wraparound
from libc.stddef cimport size_t
from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy

from msmqwire.capture.files._blocks cimport Pool
from msmqwire.capture.files._file_reader cimport FileReader
from msmqwire.capture.files.dispatch cimport parse_any_frame
from msmqwire.capture.files.window cimport Window
from msmqwire.capture.frames._frame cimport FRAME_TOO_LARGE, LARGEST_FRAME, Frame, malformed
from msmqwire.capture.frames._rows cimport Rows
from msmqwire.capture.frames._selection cimport PayloadSelection
from msmqwire.capture.tcp._flows cimport NO_FLOW, Streams
from msmqwire.capture.tcp._streams cimport StreamTable
from msmqwire.columns._payloads cimport Payloads
from msmqwire.columns.payload_table cimport Span, payload_at

if False:  # for type checkers: see stubs.py
    from collections.abc import Iterable

    from msmqwire.capture.files.sources import FrameRun
    from msmqwire.capture.stats import CaptureStats

cdef enum:
    RECORD_HEADER = 16  # bytes: with them no frame that gives a row is smaller than SMALLEST_ROW


cdef class CapturedFramesReader(FileReader):
    """The blocks of frames out of any number of files.

    ``runs`` are frames of one file each: its name, their numbers, offsets, times, whether they have one, link types,
    and their bytes.
    """
    cdef object runs
    cdef const uint64_t[::1] numbers
    cdef const uint64_t[::1] offsets
    cdef const int64_t[::1] times
    cdef const uint8_t[::1] timed
    cdef const uint16_t[::1] links
    cdef Payloads frames    # of the run, None before the first
    cdef size_t next        # of them to be read
    cdef size_t copied      # the end of those in the window
    cdef const uint8_t* at  # of the next in the window

    def __init__(
        self, runs: Iterable[FrameRun], PayloadSelection selection, Pool pool, StreamTable streams,
        stats: CaptureStats, *, bint last=True
    ) -> None:
        self.runs = iter(runs)
        FileReader.__init__(self, "", None, selection, pool, streams, stats, last=last)

    cdef int start(self) except -1:
        """There is no file header."""
        return 0

    cdef bint next_run(self) except -1:
        """Move to the next frames, of this file or another; false after the last ones."""
        cdef str name
        run = next(self.runs, None)
        if run is None:
            return False
        name, self.numbers, self.offsets, self.times, self.timed, self.links, self.frames = run
        self.next = self.copied = 0
        if name != self.name:
            self.name = name
            self.counts.file = <uint32_t>len(self.streams.files)
            self.streams.files.append(name)
        return True

    cdef int next_window(self) except -1:
        """Copy frames of one run until the window is full."""
        cdef size_t space, size
        cdef uint8_t* target
        cdef Span span
        self.data = self.pool.window()
        space = self.data.size
        target = self.data.data
        self.at = self.window.data = target
        self.walked = False
        while self.frames is None or self.next == self.frames.table.count:
            if not self.next_run():
                self.ended = True
                return 0
        while self.copied < self.frames.table.count:
            span = payload_at(&self.frames.table, self.copied)
            size = span.size if span.size <= LARGEST_FRAME else 0
            if RECORD_HEADER + size > space:
                break
            space -= RECORD_HEADER + size
            if size:
                memcpy(target, span.data, size)
            target += size
            self.copied += 1
        return 0

    @boundscheck(False)
    @wraparound(False)
    cdef bint walk(self, Window* window, Rows* rows) except -1:
        """Take all frames of the window; false if the rows have no space for the next."""
        cdef Streams* streams = &self.streams.streams
        cdef Frame frame
        with nogil:
            while self.next < self.copied and streams.waiting == NO_FLOW:
                frame.data = self.at
                frame.size = frame.original = payload_at(&self.frames.table, self.next).size
                frame.number = self.numbers[self.next]
                frame.offset = self.offsets[self.next]
                frame.time = self.times[self.next]
                frame.timed = self.timed[self.next]
                frame.link = self.links[self.next]
                if frame.size > LARGEST_FRAME:
                    malformed(&self.counts, frame.offset, frame.number, FRAME_TOO_LARGE, frame.size, LARGEST_FRAME)
                elif parse_any_frame(&frame, &self.selection.ports, rows.columns, rows, &self.counts, streams):
                    self.at += frame.size
                else:
                    break
                self.counts.frames += 1
                self.next += 1
        return self.next == self.copied and streams.waiting == NO_FLOW
