"""What the fuzz targets of the kernels share: pure C functions over exact-size copies, and the invariants they keep.

libFuzzer calls ``fuzz_<target>`` with the GIL released (harness.c). Every input is read twice, from a copy that begins
at an aligned address and from one that begins one byte further, since memory around a payload must not matter. A broken
invariant aborts, so that libFuzzer keeps the input.
"""

from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint64_t
from libc.stdlib cimport abort, malloc
from libc.string cimport memcpy


cdef inline void must(bint condition) noexcept nogil:
    if not condition:
        abort()


cdef inline void mix(uint64_t* checksum, uint64_t value) noexcept nogil:
    checksum[0] = 31 * checksum[0] + value


cdef inline uint8_t* exact_copy(const uint8_t* data, size_t size, size_t shift) noexcept nogil:
    """``size`` bytes that end where the allocation ends, so that AddressSanitizer sees the first byte read behind."""
    cdef uint8_t* block = <uint8_t*>malloc(size + shift)
    if block == NULL:
        abort()
    memcpy(block + shift, data, size)
    return block
