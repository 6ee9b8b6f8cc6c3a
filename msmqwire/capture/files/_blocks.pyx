"""Blocks of payloads, and the memory that they are made in: windows, spans and columns.

These come from a pool and are reused when nothing refers to them any more.
"""

from inspect import signature

from cpython.dict cimport PyDict_GetItem
from cpython.list cimport PyList_GET_ITEM
from cpython.object cimport PyObject
from libc.stddef cimport size_t
from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memset

from msmqwire.capture.files.window cimport LARGEST_RECORD
from msmqwire.capture.frames._rows cimport (
    MOST_ASSEMBLED, MOST_FILES, MOST_PACKETS, MOST_PATHS, SMALLEST_RECORD, SMALLEST_ROW, Lost, Rows
)
from msmqwire.columns._batch cimport Batch, prepare
from msmqwire.columns._buffer cimport Buffer, allocate
from msmqwire.columns._payloads cimport Payloads
from msmqwire.columns.payload_table cimport Span
from msmqwire.wire._address cimport ADDRESS_SIZE
from msmqwire.wire._transport cimport Transport

import numpy as np

from msmqwire.capture.schema import CAPTURE, FRAMES, RECORDS

if False:  # for type checkers: see stubs.py
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from msmqwire.columns import Table

cdef enum:
    KEPT = 4  # windows, spans and batches in a pool, at most

cdef inline bint unshared(PyObject* thing) noexcept:
    """Return True if the reference through which we see it is the only one."""
    return thing.ob_refcnt == 1


cdef class Block:
    """The payloads of one window, or of several with few payloads, and where they come from.

    Attributes
    ----------
    payloads : Payloads
        Views into the memory of the block, which is kept as long as a view exists.
    capture : Batch
        The requested capture columns.
    transports : ndarray of uint8, or None
        What carried each payload, as codes of ``Transport``; None if it was UDP for all of them.
    """

    payloads: Payloads
    capture: Batch

    __signature__ = signature(lambda: None)

    def __init__(self):
        raise TypeError("a Block is made by iterating over a Capture")

    def __len__(self) -> int:
        return <Py_ssize_t>self.payloads.table.count

    def __repr__(self):
        return f"<Block of {len(self)} payloads, {self.payloads.nbytes} bytes>"

    @property
    def transports(self) -> NDArray[np.uint8] | None:
        if not self.others.size:
            return None
        others = np.frombuffer(self.others, np.uint32)
        found = np.full(len(self), <uint8_t>Transport.UDP, np.uint8)
        found[others >> 2] = others & 3
        return found


cdef class Pool:
    """Memory for windows of ``block_size`` bytes and for the columns of their rows, reused when it is free.

    With the ``table`` ``FRAMES`` or ``RECORDS`` rows are frames as they were captured.
    """
    def __init__(self, size_t block_size, columns: Iterable[str] | None, *, table: Table = CAPTURE) -> None:
        self.block_size = block_size
        self.table = table
        self.columns = tuple([column.name for column in table.select(columns)])
        smallest = <size_t>SMALLEST_RECORD if table is RECORDS else <size_t>SMALLEST_ROW
        self.most_rows = FULL_BLOCK + (LARGEST_RECORD + block_size) // smallest + 1 + MOST_PACKETS
        self.windows = []
        self.gathered = []
        self.spans = []
        self.batches = []
        self.nothing = Payloads(b"", [0])
        self.others = allocate(self.most_rows * sizeof(uint32_t))
        self.lost = allocate(self.most_rows * sizeof(Lost))
        self.memory = allocate((MOST_PACKETS + MOST_ASSEMBLED) * sizeof(void*))
        self.files = allocate(MOST_FILES * sizeof(uint32_t))
        self.paths = allocate(MOST_PATHS * sizeof(uint32_t))
        self.carry = allocate(LARGEST_RECORD)

    cdef Buffer free_buffer(self, list kept, size_t size):
        """One of those kept that nothing refers to, or a new one."""
        cdef Buffer buffer
        for place in range(len(kept)):
            if unshared(PyList_GET_ITEM(kept, place)):
                return kept[place]
        buffer = allocate(size)
        self.keep(kept, buffer)
        return buffer

    cdef Buffer window(self):
        return self.free_buffer(self.windows, LARGEST_RECORD + self.block_size)

    cdef Buffer gathering(self):
        return self.free_buffer(self.gathered, self.block_size)

    cdef Buffer row_spans(self):
        return self.free_buffer(self.spans, self.most_rows * sizeof(Span))

    cdef Batch batch(self):
        """The columns of a window's rows."""
        cdef Batch batch
        for place in range(len(self.batches)):
            if is_free(self.batches, place):
                return self.batches[place]
        batch = prepare(self.table, self.nothing, self.columns, None)
        self.keep(self.batches, batch)
        return batch

    cdef int keep(self, list kept, object thing) except -1:
        """Keep one more to be used again, in the place of an older one when there are many, which its holders keep."""
        if <size_t>len(kept) < KEPT:
            kept.append(thing)
        else:
            kept[<Py_ssize_t>(self.turn % KEPT)] = thing
            self.turn += 1
        return 0


cdef bint is_free(list batches, Py_ssize_t place):
    """Return True if nothing else refers to a batch or one of its columns."""
    cdef dict buffers
    if not unshared(PyList_GET_ITEM(batches, place)):
        return False
    buffers = (<Batch>batches[place]).buffers
    for path in buffers:
        if not unshared(PyDict_GetItem(buffers, path)):
            return False
    return True


cdef Rows rows_of(Pool pool, Buffer spans, Batch columns) except *:
    """Where a kernel writes the rows of a window; ``columns`` is None if none is requested."""
    cdef Rows rows
    cdef size_t most = pool.most_rows
    memset(&rows, 0, sizeof(rows))
    rows.spans = rows.next = <Span*>spans.data
    rows.most_bytes = LARGEST_RECORD + pool.block_size  # of a window
    rows.others = <uint32_t*>pool.others.data
    rows.lost = <Lost*>pool.lost.data
    rows.memory = <void**>pool.memory.data
    rows.files = <uint32_t*>pool.files.data
    rows.paths = <uint32_t*>pool.paths.data
    if columns is None:
        return rows
    rows.columns = True
    rows.presence = columns.reserve("presence", most)
    rows.file = columns.reserve_column("file", most)
    rows.frame = <uint64_t*>columns.reserve_column("frame", 8 * most)
    rows.first_frame = <uint64_t*>columns.reserve_column("first_frame", 8 * most)
    rows.time = <int64_t*>columns.reserve_column("time", 8 * most)
    rows.src = columns.reserve_column("src", ADDRESS_SIZE * most)
    rows.src_port = <uint16_t*>columns.reserve_column("src_port", 2 * most)
    rows.dst = columns.reserve_column("dst", ADDRESS_SIZE * most)
    rows.dst_port = <uint16_t*>columns.reserve_column("dst_port", 2 * most)
    rows.transport = columns.reserve_column("transport", most)
    rows.encapsulation = columns.reserve_column("encapsulation", most)
    rows.stream_offset = <uint64_t*>columns.reserve_column("stream_offset", 8 * most)
    rows.every_frame = pool.table is RECORDS
    rows.frames_only = pool.table is FRAMES or rows.every_frame
    rows.link = <uint16_t*>columns.reserve_column("link", 2 * most)
    rows.offset = <uint64_t*>columns.reserve_column("offset", 8 * most)
    rows.length = <uint32_t*>columns.reserve_column("length", 4 * most)
    return rows
