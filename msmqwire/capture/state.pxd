"""Where a reader is and what it holds, as bytes."""

from libc.stdint cimport uint32_t

from msmqwire.capture.blocks cimport FileReader
from msmqwire.capture.streams cimport Streams

cdef bytes section_state(FileReader reader)
cdef int set_section(FileReader reader, bytes state) except -1
cdef bytes save_streams(const Streams* streams, const uint32_t* numbers=?)
cdef int restore_streams(Streams* streams, bytes saved, uint32_t files) except -1
