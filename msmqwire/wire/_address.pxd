"""Network addresses in columns, and their text."""

from libc.stddef cimport size_t
from libc.stdint cimport uint8_t

cdef enum:
    ADDRESS_SIZE = 18      # 16 bytes of address, the unused ones zero, then the family as a u16
    ADDRESS_FAMILY_AT = 16
    LONGEST_ADDRESS_TEXT = 39

cdef enum AddressFamily:
    NO_ADDRESS = 0
    IPV4 = 4
    IPV6 = 6
    IPX = 10


cdef inline size_t address_size(int family) noexcept nogil:
    """The bytes of an address of this family."""
    return 16 if family == IPV6 else 4 if family == IPV4 else 10


cdef size_t format_address(const uint8_t* address, uint8_t* target) noexcept nogil


cdef extern from "msmqwire/wire/inet.h" nogil:
    int inet_pton(int family, const char* source, void* target)
    enum:
        AF_INET
        AF_INET6
