"""Security identifiers as text: [MS-DTYP] 2.4.2.1."""

from libc.stddef cimport size_t
from libc.stdint cimport uint8_t
from libc.string cimport memcpy

from msmqwire.wire.cursor cimport load_u16, load_u32
from msmqwire.wire.digits cimport put_decimal, put_octets
from msmqwire.wire.simd cimport wire_bswap32

LARGEST_SUB_AUTHORITY_COUNT: int = MOST_SUB_AUTHORITIES


cdef size_t format_sid(const uint8_t* sid, size_t size, uint8_t* target) noexcept nogil:
    """Write the text of a SID of ``size`` bytes."""
    cdef size_t written = 4
    cdef size_t at = SMALLEST_SID
    memcpy(target, b"S-1-", 4)
    if load_u16(sid + 2):
        # An authority that does not fit into 32 bits
        memcpy(target + written, b"0x", 2)
        written += 2 + put_octets(sid + 2, SMALLEST_SID - 2, target + written + 2)
    else:
        written += put_decimal(wire_bswap32(load_u32(sid + 4)), target + written)
    while at < size:
        target[written] = c"-"
        written += 1 + put_decimal(load_u32(sid + at), target + written + 1)
        at += 4
    return written


def sid_text(bytes sid not None) -> str | None:
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
