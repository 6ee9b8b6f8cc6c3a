from libc.stddef cimport size_t
from libc.stdint cimport int64_t, uint32_t, uint64_t, uint8_t

from msmqwire.wire.simd cimport wire_folded_product

cdef enum:
    BYTES_OF_SLOTS = 32  # of an entry: there are at most four slots for each

cdef int64_t ABSENT  # the number of a null
cdef uint64_t FACTOR
cdef uint64_t OTHER_FACTOR

# A slot of a hash table is empty, or has the hash of an entry and, from 1, its number
cdef struct Slots:
    uint64_t* slots
    size_t count        # a power of two


cdef inline uint64_t mixed(uint64_t hash, uint64_t word) noexcept nogil:
    return wire_folded_product(hash ^ FACTOR, word ^ OTHER_FACTOR)


cdef inline uint64_t slot_of(uint32_t hash, size_t entry) noexcept nogil:
    return <uint64_t>hash << 32 | (entry + 1)


cdef inline size_t entry_of(uint64_t slot) noexcept nogil:
    """The entry of a slot that is not empty."""
    return <size_t>(<uint32_t>slot) - 1


cdef void* grown(void* block, size_t size) except NULL nogil
cdef int enlarge(Slots* table, size_t count) except -1 nogil


cdef class Texts:
    cdef uint8_t* data
    cdef size_t capacity
    cdef size_t* ends        # text i is data[ends[i]:ends[i + 1]]
    cdef size_t count
    cdef size_t most         # texts that ``ends`` has room for
    cdef Slots table

    cdef uint64_t hash_of(self, const uint8_t* text, size_t size) noexcept nogil
    cdef int64_t number(self, const uint8_t* text, size_t size) except -1 nogil
    cdef size_t nbytes(self) noexcept nogil
