"""Values of packets as Python objects: read from a packet, and built into one."""

from libc.stddef cimport size_t
from libc.stdint cimport uint8_t

from msmqwire.columns.convert cimport TextSpan
from msmqwire.mqqb.kernel cimport Draft, Packet
from msmqwire.wire.format_name cimport FormatName

# The derived columns that are read together
cdef tuple OF_BODY

cdef object derived_value(const Packet* packet, const uint8_t* data, str name)
cdef object value_of(const Packet* packet, object owner, const uint8_t* data, str name, bint session)
cdef object format_name_of(object name, str field)
cdef tuple queues_of(const Packet* packet, const uint8_t* data, size_t queue)
cdef bytes rewritten_message(const Packet* packet, const uint8_t* data)
cdef bytes packed_session(const Packet* packet)


cdef class Builder:
    """A packet under construction: numbers in a draft, texts and blobs one after the other."""
    cdef Draft draft
    cdef bytearray payload
    cdef list lists
    cdef bint session

    cdef int put(self, str name, object value) except -1
    cdef int put_queues(self, object destination, object admin, object response) except -1
    cdef int put_list(self, size_t queue, object names) except -1
    cdef bytes packed(self)
    cdef TextSpan append(self, bytes data)
    cdef FormatName record_of(self, object name)
    cdef int put_queue(self, size_t queue, object name, str field) except -1
