"""What all packets do as values."""


cdef class WirePacket:
    cdef tuple payload(self)
    cdef str layout(self)
