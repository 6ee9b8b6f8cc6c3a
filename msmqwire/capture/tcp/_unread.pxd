"""Streams of MSMQ that are not read: on other ports, and in other protocols."""

from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint32_t

from msmqwire.capture.frames._frame cimport Counts
from msmqwire.capture.frames.packet cimport Packet
from msmqwire.capture.tcp._flows cimport Streams


cdef void note_unread(Streams* streams, const Packet* found, Counts* counts) noexcept nogil
