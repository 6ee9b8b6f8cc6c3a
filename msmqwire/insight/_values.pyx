"""Distinct texts in the order of their appearance.

Captures choose the texts, so the factors of their hashes are secret.
"""

from cpython.mem cimport PyMem_RawFree, PyMem_RawRealloc
from libc.stddef cimport size_t
from libc.stdint cimport INT64_MIN, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcmp, memcpy, memset

from msmqwire.columns._distinct cimport secret_factors
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
