"""The texts of MS-MQCN: QueuePathName ([MS-MQMQ] 2.1.1) and Notification Body ([MS-MQCN] 2.2.5)."""

from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint32_t

from msmqwire.wire.fault cimport Fault

cdef enum:
    MAX_NAME_UNITS = 256  # of a DomainController


cdef struct Body:
    uint32_t event
    uint32_t violations
    size_t name_at
    size_t name_size    # in bytes
    size_t end          # of what the grammar accounts for
    uint8_t[16] guid    # in packet order


cdef bint is_path_name(const uint8_t* path, size_t units) noexcept nogil
cdef int read_body(const uint8_t* data, size_t size, Body* body, Fault* fault) noexcept nogil
cdef size_t write_body(
    uint8_t* target, uint32_t event, const uint8_t* guid, const uint8_t* name, size_t name_size, bint closing_space
) noexcept nogil
cdef size_t largest_body(size_t name_size) noexcept nogil
