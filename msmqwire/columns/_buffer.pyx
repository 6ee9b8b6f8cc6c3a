"""Memory that a Batch owns: aligned, never resized, freed with its last holder."""

from cpython.buffer cimport PyBuffer_FillInfo
from cpython.mem cimport PyMem_RawFree, PyMem_RawMalloc
from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uintptr_t
from libc.string cimport memcpy, memmove, memset

cdef extern from *:
    """
    #if defined(__SANITIZE_ADDRESS__)
    #define KEEPS_BLOCKS 0
    #elif defined(__has_feature)
    #if __has_feature(address_sanitizer)
    #define KEEPS_BLOCKS 0
    #endif
    #endif
    #ifndef KEEPS_BLOCKS
    #define KEEPS_BLOCKS 1
    #endif
    """
    enum:
        KEEPS_BLOCKS  # not under AddressSanitizer, which finds uses of freed memory

cdef enum:
    ALIGNMENT = 64            # what Arrow recommends for its buffers
    SMALLEST_KEPT = 1 << 14   # bytes of a block that is kept when its Buffer is freed
    MOST_KEPT = 64            # such blocks
    MOST_KEPT_BYTES = 1 << 24

# Memory that malloc takes from the system for every batch costs more than what is written there: the system clears each
# page when it is first touched. So the blocks of freed Buffers are kept, the latest ones.
cdef struct Block:
    void* start
    size_t capacity

cdef Block[MOST_KEPT] kept
cdef size_t kept_count = 0
cdef size_t kept_bytes = 0

# Buffers are created and freed with the GIL held, so a plain counter is exact.
cdef size_t live_bytes = 0


cdef class Buffer:
    """Aligned memory that never moves; read and written through the buffer protocol.

    A Buffer is never resized: a Batch that needs more room takes a new one, so a view can never dangle.
    """

    size: int

    # A Buffer never moves or changes its size, so a view can never dangle; a Batch that needs more takes a new one
    def __dealloc__(self):
        global live_bytes
        if self.block != NULL:
            keep(self.block, self.capacity)
            live_bytes -= self.size

    def __len__(self) -> int:
        return self.size

    def __getbuffer__(self, Py_buffer* view, int flags):
        PyBuffer_FillInfo(view, self, self.data, <Py_ssize_t>self.size, 0, flags)


cdef void forget(size_t place) noexcept:
    """Remove a block from those kept; the others stay in the order in which they were freed."""
    global kept_count, kept_bytes
    kept_bytes -= kept[place].capacity
    kept_count -= 1
    memmove(&kept[place], &kept[place + 1], (kept_count - place) * sizeof(Block))


cdef void keep(void* block, size_t capacity) noexcept:
    """Keep a block to be used again, instead of the oldest ones where there are many."""
    global kept_count, kept_bytes
    if not KEEPS_BLOCKS or capacity < SMALLEST_KEPT or capacity > MOST_KEPT_BYTES:
        PyMem_RawFree(block)
        return
    while kept_count == MOST_KEPT or kept_bytes + capacity > MOST_KEPT_BYTES:
        PyMem_RawFree(kept[0].start)
        forget(0)
    kept[kept_count].start = block
    kept[kept_count].capacity = capacity
    kept_count += 1
    kept_bytes += capacity


cdef void* block_of(size_t* capacity) noexcept:
    """A block of at least ``capacity`` bytes, at most half as many more; its size is written there. NULL if none."""
    cdef size_t i
    cdef void* block
    for i in range(kept_count):
        if capacity[0] <= kept[i].capacity <= capacity[0] + capacity[0] // 2:
            capacity[0] = kept[i].capacity
            block = kept[i].start
            forget(i)
            return block
    return PyMem_RawMalloc(capacity[0])


cdef Buffer allocate(size_t size):
    global live_bytes
    cdef Buffer buffer = Buffer.__new__(Buffer)
    buffer.capacity = size + ALIGNMENT
    buffer.block = block_of(&buffer.capacity)
    if buffer.block == NULL:
        raise MemoryError(f"cannot allocate {size} bytes for a column")
    buffer.data = <uint8_t*>((<uintptr_t>buffer.block + ALIGNMENT - 1) & ~<uintptr_t>(ALIGNMENT - 1))
    buffer.size = size
    live_bytes += size
    return buffer


cdef Buffer allocate_zeroed(size_t size):
    cdef Buffer buffer = allocate(size)
    memset(buffer.data, 0, size)
    return buffer


cdef Buffer buffer_of_bytes(bytes source):
    cdef Buffer buffer = allocate(<size_t>len(source))
    memcpy(buffer.data, <const uint8_t*>source, <size_t>len(source))
    return buffer


cdef Buffer never_freed(Buffer buffer):
    """A Buffer that its module keeps for good, which ``allocated_bytes`` does not count."""
    global live_bytes
    live_bytes -= buffer.size
    return buffer


def allocated_bytes() -> int:
    """Bytes that all live Buffers hold now: back to where it was when every Batch and every view is gone."""
    return live_bytes
