"""The values of columns as numbers and texts, and distinct texts in the order of their appearance.

Captures choose the texts, so the factors of their hashes are secret.
"""

from cpython.mem cimport PyMem_RawFree, PyMem_RawRealloc
from libc.stddef cimport size_t
from libc.stdint cimport (
    INT64_MIN, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
)
from libc.string cimport memcmp, memcpy, memset

from msmqwire.columns._arrow cimport ArrowArray
from msmqwire.columns._buffer cimport Buffer, allocate
from msmqwire.columns._distinct cimport secret_factors
from msmqwire.columns.payload_table cimport Span
from msmqwire.wire.cursor cimport load_u64

cdef int64_t ABSENT = INT64_MIN
cdef uint64_t FACTOR = secret_factors()[0]
cdef uint64_t OTHER_FACTOR = secret_factors()[1]


cdef void* grown(void* block, size_t size) except NULL nogil:
    block = PyMem_RawRealloc(block, size)
    if block == NULL:
        with gil:
            raise MemoryError(f"cannot allocate {size} bytes for groups")
    return block


# --- Slots ---

cdef int enlarge(Slots* table, size_t count) except -1 nogil:
    """Make room for more entries, whose hashes are known."""
    cdef uint64_t* old = table.slots
    cdef size_t i, at
    table.slots = <uint64_t*>grown(NULL, count * sizeof(uint64_t))
    memset(table.slots, 0, count * sizeof(uint64_t))
    for i in range(table.count):
        if old[i]:
            at = <size_t>(old[i] >> 32) & (count - 1)
            while table.slots[at]:
                at = (at + 1) & (count - 1)
            table.slots[at] = old[i]
    PyMem_RawFree(old)
    table.count = count
    return 0


# --- Values of columns ---

ctypedef fused Integer:
    int8_t
    uint8_t
    int16_t
    uint16_t
    int32_t
    uint32_t
    int64_t
    uint64_t


cdef inline void widen(const Integer* source, int64_t offset, int64_t count, int64_t* out) noexcept nogil:
    cdef int64_t i
    for i in range(count):
        out[i] = <int64_t>source[offset + i]


cdef int read_numbers(const char* format, const ArrowArray* array, int64_t* out) except -1:
    """Integers, booleans or times as 64-bit numbers; ABSENT where they are null."""
    cdef const uint8_t* bits
    cdef const void* data
    cdef int64_t count = array.length
    cdef int64_t at = array.offset
    cdef int64_t i
    cdef char kind = format[0]
    if kind == b"n":
        for i in range(count):
            out[i] = ABSENT
        return 0
    if count == 0:
        return 0
    data = array.buffers[1]
    if kind == b"b":
        bits = <const uint8_t*>data
        for i in range(count):
            out[i] = bits[(at + i) >> 3] >> ((at + i) & 7) & 1
    elif kind == b"c":
        widen(<const int8_t*>data, at, count, out)
    elif kind == b"C":
        widen(<const uint8_t*>data, at, count, out)
    elif kind == b"s":
        widen(<const int16_t*>data, at, count, out)
    elif kind == b"S":
        widen(<const uint16_t*>data, at, count, out)
    elif kind == b"i":
        widen(<const int32_t*>data, at, count, out)
    elif kind == b"I":
        widen(<const uint32_t*>data, at, count, out)
    elif kind == b"l" or (kind == b"t" and format[1] == b"s"):
        widen(<const int64_t*>data, at, count, out)
    elif kind == b"L":
        widen(<const uint64_t*>data, at, count, out)
    else:
        raise TypeError(f"rows cannot be grouped by the Arrow format {format.decode()!r}")
    bits = <const uint8_t*>array.buffers[0]
    if bits != NULL and array.null_count != 0:
        for i in range(count):
            if not bits[(at + i) >> 3] >> ((at + i) & 7) & 1:
                out[i] = ABSENT
    return 0


cdef bint is_text(const char* format) noexcept:
    return format[0] in (b"u", b"U", b"z", b"Z", b"w")


cdef Buffer read_texts(const char* format, const ArrowArray* array):
    """Where each text is; those that are null have no address."""
    cdef int64_t count = array.length
    cdef int64_t at = array.offset
    cdef Buffer spans = allocate(<size_t>count * sizeof(Span))
    cdef Span* span = <Span*>spans.data
    cdef const uint8_t* bits = <const uint8_t*>array.buffers[0]
    cdef bint wide = format[0] in (b"U", b"Z")
    cdef int64_t start, end, i
    cdef int64_t width = int(format[2:].decode()) if format[0] == b"w" else 0
    for i in range(count):
        if width:
            start, end = width * (at + i), width * (at + i + 1)
        elif wide:
            start, end = (<const int64_t*>array.buffers[1])[at + i], (<const int64_t*>array.buffers[1])[at + i + 1]
        else:
            start, end = (<const int32_t*>array.buffers[1])[at + i], (<const int32_t*>array.buffers[1])[at + i + 1]
        if not 0 <= start <= end:
            raise ValueError(f"value {i} of the Arrow array is outside its buffers")
        span[i].data = NULL
        span[i].size = <size_t>(end - start)
        if bits == NULL or bits[(at + i) >> 3] >> ((at + i) & 7) & 1:
            # An array of empty texts may have no bytes
            span[i].data = <const uint8_t*>(array.buffers[1] if width else array.buffers[2]) + start
            if span[i].data == NULL:
                span[i].data = <const uint8_t*>b""
    return spans


# --- Texts ---

cdef class Texts:
    """Distinct texts, numbered in the order of their appearance."""

    def __cinit__(self):
        self.most, self.capacity = 16, 64
        self.data = <uint8_t*>grown(NULL, self.capacity)
        self.ends = <size_t*>grown(NULL, (self.most + 1) * sizeof(size_t))
        self.ends[0] = 0
        enlarge(&self.table, 32)

    def __dealloc__(self):
        PyMem_RawFree(self.data)
        PyMem_RawFree(self.ends)
        PyMem_RawFree(self.table.slots)

    cdef uint64_t hash_of(self, const uint8_t* text, size_t size) noexcept nogil:
        cdef uint64_t hash = mixed(size, 0)
        cdef uint64_t word
        cdef size_t i = 0
        while i + 8 <= size:
            hash = mixed(hash, load_u64(text + i))
            i += 8
        if i < size:
            word = 0
            memcpy(&word, text + i, size - i)
            hash = mixed(hash, word)
        return hash

    cdef int64_t number(self, const uint8_t* text, size_t size) except -1 nogil:
        """The number of a text, which is copied if it is new."""
        cdef uint32_t hash = <uint32_t>self.hash_of(text, size)
        cdef size_t at = hash & (self.table.count - 1)
        cdef size_t i, end
        while self.table.slots[at]:
            if self.table.slots[at] >> 32 == hash:
                i = entry_of(self.table.slots[at])
                if self.ends[i + 1] - self.ends[i] == size and memcmp(self.data + self.ends[i], text, size) == 0:
                    return <int64_t>i
            at = (at + 1) & (self.table.count - 1)
        end = self.ends[self.count]
        if end + size > self.capacity:
            self.data = <uint8_t*>grown(self.data, 2 * (end + size))
            self.capacity = 2 * (end + size)
        if self.count == self.most:
            self.ends = <size_t*>grown(self.ends, (2 * self.most + 1) * sizeof(size_t))
            self.most *= 2
        memcpy(self.data + end, text, size)
        self.table.slots[at] = slot_of(hash, self.count)
        self.count += 1
        self.ends[self.count] = end + size
        if 2 * self.count > self.table.count:
            enlarge(&self.table, 2 * self.table.count)
        return <int64_t>self.count - 1

    cdef size_t nbytes(self) noexcept nogil:
        return self.ends[self.count] + self.count * (sizeof(size_t) + BYTES_OF_SLOTS)
