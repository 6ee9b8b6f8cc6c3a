"""What all packets do as values."""


cdef class WirePacket:
    pass
