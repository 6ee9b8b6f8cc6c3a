"""The classic capture format."""

from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint32_t, uint64_t

from msmqwire.capture.files.window cimport Stop, Window
from msmqwire.capture.frames._frame cimport Counts
from msmqwire.capture.frames._layers cimport Ports
from msmqwire.capture.frames._rows cimport Rows
from msmqwire.capture.tcp._flows cimport Streams

cdef enum:
    PCAP_HEADER = 24


# What the file header says.
cdef struct PcapFile:
    bint swapped       # numbers are big-endian
    bint nanoseconds
    uint32_t link


cdef bint find_record(Window* window, const PcapFile* file, bint ended) noexcept nogil
cdef bint read_pcap_header(const uint8_t* data, PcapFile* file) noexcept nogil
cdef uint64_t record_length(const Window* window, const PcapFile* file) noexcept nogil
cdef Stop walk_pcap(
    Window* window, const PcapFile* file, const Ports* ports, Rows* rows, Counts* counts, Streams* streams, bint ended
) noexcept nogil
