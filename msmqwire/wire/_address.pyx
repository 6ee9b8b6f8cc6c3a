"""Text of network addresses: dotted quads, IPv6 as RFC 5952 writes it, IPX as network:node."""

from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint32_t
from libc.string cimport memcpy

from msmqwire.wire.digits cimport put_hexadecimal, put_octets

# The decimal digits of each byte, and a dot
cdef uint8_t[256][4] DECIMAL
cdef uint8_t[256] DECIMAL_SIZE


cdef int fill_decimals() except -1:
    cdef bytes text
    cdef int byte
    for byte in range(256):
        text = b"%d." % byte
        DECIMAL_SIZE[byte] = <uint8_t>len(text)
        memcpy(DECIMAL[byte], <const char*>text, <size_t>len(text))
    return 0


fill_decimals()


cdef size_t format_ipv4(const uint8_t* address, uint8_t* target) noexcept nogil:
    # Four bytes are written for each number; the next number overwrites the excess
    cdef size_t written = 0
    cdef int i
    for i in range(4):
        memcpy(target + written, DECIMAL[address[i]], 4)
        written += DECIMAL_SIZE[address[i]]
    return written - 1


cdef size_t format_ipv6(const uint8_t* address, uint8_t* target) noexcept nogil:
    cdef uint32_t[8] groups
    cdef int i
    cdef int start = 0
    cdef int best = -1
    cdef int best_length = 1  # a single zero group is not shortened
    cdef size_t written = 0
    for i in range(8):
        groups[i] = <uint32_t>address[2 * i] << 8 | address[2 * i + 1]
        if groups[i]:
            start = i + 1
        elif i - start + 1 > best_length:
            best = start
            best_length = i - start + 1
    i = 0
    while i < 8:
        if i == best:
            target[written] = c":"
            target[written + 1] = c":"
            written += 2
            i += best_length
            continue
        if i and not (best >= 0 and i == best + best_length):
            target[written] = c":"
            written += 1
        written += put_hexadecimal(groups[i], "0123456789abcdef", target + written)
        i += 1
    return written


cdef size_t format_ipx(const uint8_t* address, uint8_t* target) noexcept nogil:
    cdef size_t written = put_octets(address, 4, target)
    target[written] = c":"
    return written + 1 + put_octets(address + 4, 6, target + written + 1)


cdef size_t format_address(const uint8_t* address, uint8_t* target) noexcept nogil:
    """Write the text and return its length, at most LONGEST_ADDRESS_TEXT."""
    if address[ADDRESS_FAMILY_AT] == IPV4:
        return format_ipv4(address, target)
    if address[ADDRESS_FAMILY_AT] == IPV6:
        return format_ipv6(address, target)
    return format_ipx(address, target)
