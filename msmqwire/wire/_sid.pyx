"""Security identifiers as text: [MS-DTYP] 2.4.2.1."""

from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint64_t
from libc.string cimport memcpy

from msmqwire.wire.cursor cimport load_u16, load_u32
from msmqwire.wire.simd cimport wire_bswap16, wire_bswap32


cdef size_t format_sid(const uint8_t* sid, size_t size, uint8_t* target) noexcept nogil:
    """Write the text of a SID of ``size`` bytes."""
    cdef uint64_t authority = <uint64_t>wire_bswap16(load_u16(sid + 2)) << 32 | wire_bswap32(load_u32(sid + 4))
    cdef size_t written = 4
    cdef size_t at = SMALLEST_SID
    memcpy(target, b"S-1-", 4)
    if authority >> 32:
        memcpy(target + written, b"0x", 2)
        written += 2 + put_number(authority, 16, 12, target + written + 2)
    else:
        written += put_number(authority, 10, 1, target + written)
    while at < size:
        target[written] = 0x2D
        written += 1 + put_number(load_u32(sid + at), 10, 1, target + written + 1)
        at += 4
    return written


cdef size_t put_number(uint64_t number, uint64_t base, size_t digits, uint8_t* target) noexcept nogil:
    """Write a number with at least so many digits."""
    cdef uint8_t[20] reversed_digits
    cdef size_t count = 0
    cdef size_t i
    while number or count < digits:
        reversed_digits[count] = <uint8_t>b"0123456789abcdef"[number % base]
        number //= base
        count += 1
    for i in range(count):
        target[i] = reversed_digits[count - 1 - i]
    return count


def sid_text(bytes sid not None):
    """A SID as text; None when it is not valid.

    Examples
    --------
    >>> sid_text(bytes.fromhex("010200000000000520000000" "20020000"))
    'S-1-5-32-544'
    """
    cdef uint8_t[AUTHORITY_TEXT + MOST_SUB_AUTHORITIES * SUB_AUTHORITY_TEXT] text
    if not is_sid(<const uint8_t*>sid, <size_t>len(sid)):
        return None
    return text[:format_sid(<const uint8_t*>sid, <size_t>len(sid), text)].decode("ascii")
