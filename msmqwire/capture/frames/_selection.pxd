"""The selection of payloads by their ports, times and addresses."""

from libc.stddef cimport size_t
from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t

from msmqwire.capture.frames._layers cimport Ports
from msmqwire.columns._buffer cimport Buffer


# The leading bits that all addresses of a network have in common.
cdef struct Network:
    uint16_t family
    uint32_t bits
    uint8_t[16] prefix


# The payloads that give rows, among those of selected ports.
cdef struct Selection:
    bint by_time
    int64_t since      # nanoseconds since 1970; the first that is selected
    int64_t until      # the first after it that is not
    size_t count
    Network* networks  # either end must be in one of them; without networks all are selected


cdef bint selects(
    const Selection* selection, bint timed, int64_t time, uint16_t family, const uint8_t* src, const uint8_t* dst
) noexcept nogil


cdef class PayloadSelection:
    cdef Ports ports
    cdef Buffer port_sets       # that they point to
    cdef Selection selection
    cdef bint by_more           # than ports
