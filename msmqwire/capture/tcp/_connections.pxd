"""The connections that were tried, and what became of each."""

from libc.stdint cimport uint32_t

from msmqwire.capture.frames._frame cimport Counts, Frame
from msmqwire.capture.frames.packet cimport Packet
from msmqwire.capture.frames._rows cimport Rows
from msmqwire.capture.tcp._flows cimport Connection, ConnectionTable, Endpoints, Streams

# Value of ``Payloads.lost``: the payload is no bytes of the capture, but the record of a connection
cdef enum:
    CONNECTION_RECORD = 0xFFFFFFFF


cdef void start_connections(ConnectionTable* table, size_t most) noexcept nogil
cdef void free_connections(ConnectionTable* table) noexcept nogil
cdef Connection* add_connection(Streams* streams, const Endpoints* ends) noexcept nogil
cdef Connection* find_connection(Streams* streams, const Endpoints* ends) noexcept nogil
cdef void take_attempt(
    Streams* streams, const Endpoints* endpoints, const Frame* frame, const Packet* found, Rows* rows, Counts* counts
) noexcept nogil
cdef void end_connection(Streams* streams, Connection* connection, Rows* rows, const Counts* counts) noexcept nogil
