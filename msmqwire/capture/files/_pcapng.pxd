"""The capture format of sections, interfaces and blocks."""

from libc.stddef cimport size_t
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from msmqwire.capture.files.window cimport Stop, Window
from msmqwire.capture.frames._frame cimport Counts
from msmqwire.capture.frames._layers cimport Ports
from msmqwire.capture.frames._rows cimport Rows
from msmqwire.capture.tcp._flows cimport Streams

# An interface description, made ready for turning its time stamps into nanoseconds.
cdef struct Interface:
    uint32_t link
    uint32_t snapshot      # bytes of a frame at most, 0 for all
    uint8_t resolution     # if_tsresol
    int64_t seconds        # if_tsoffset
    uint64_t quick_below   # time stamps below it are turned into nanoseconds with the two numbers that follow
    uint64_t unit          # nanoseconds
    int64_t nanoseconds    # if_tsoffset again


cdef enum:
    MOST_NUMBERED = 1024  # packets that are remembered by their number: copies come soon after each other


# A packet that has a number, and where it was captured first.
cdef struct Numbered:
    uint64_t number
    uint64_t interface     # and 1; 0: none


cdef struct Section:
    bint swapped           # numbers are big-endian
    const Interface* interfaces
    size_t count
    size_t most            # interfaces that are kept
    Numbered* numbered     # MOST_NUMBERED of them, by the low bits of the number; NULL: copies are read


cdef bint is_frame(uint32_t kind) noexcept nogil
cdef bint is_section(const uint8_t* data) noexcept nogil
cdef size_t block_length(const Window* window, const Section* section) noexcept nogil
cdef bint find_block(Window* window, const Section* section, bint ended) noexcept nogil
cdef Stop read_section(Window* window, Section* section, Counts* counts) noexcept nogil
cdef void read_interface(Window* window, const Section* section, Interface* interface) noexcept nogil
cdef Stop walk_pcapng(
    Window* window, const Section* section, const Ports* ports, Rows* rows, Counts* counts, Streams* streams
) noexcept nogil
