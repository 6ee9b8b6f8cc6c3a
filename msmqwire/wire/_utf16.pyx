"""UTF-16LE to UTF-8: a lone surrogate becomes U+FFFD, as Arrow and Spark demand valid text."""

from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint32_t, uint64_t

from msmqwire.wire.cursor cimport load_u16, load_u64, store_u32
from msmqwire.wire.simd cimport wire_narrow_ascii

if False:  # for type checkers: see stubs.py
    from typing_extensions import Buffer as BytesLike

cdef enum:
    REPLACEMENT = 0xFFFD


cdef inline size_t put_utf8(uint32_t scalar, uint8_t* target) noexcept nogil:
    if scalar < 0x80:
        target[0] = <uint8_t>scalar
        return 1
    if scalar < 0x800:
        target[0] = <uint8_t>(0xC0 | scalar >> 6)
        target[1] = <uint8_t>(0x80 | scalar & 0x3F)
        return 2
    if scalar < 0x10000:
        target[0] = <uint8_t>(0xE0 | scalar >> 12)
        target[1] = <uint8_t>(0x80 | scalar >> 6 & 0x3F)
        target[2] = <uint8_t>(0x80 | scalar & 0x3F)
        return 3
    target[0] = <uint8_t>(0xF0 | scalar >> 18)
    target[1] = <uint8_t>(0x80 | scalar >> 12 & 0x3F)
    target[2] = <uint8_t>(0x80 | scalar >> 6 & 0x3F)
    target[3] = <uint8_t>(0x80 | scalar & 0x3F)
    return 4


cdef inline bint narrow_four(const uint8_t* units, uint8_t* target) noexcept nogil:
    """Write four code units as bytes; false where one is not ASCII, and nothing is written."""
    cdef uint64_t four = load_u64(units)
    if four & 0xFF80FF80FF80FF80ULL:
        return False
    four |= four >> 8
    store_u32(target, <uint32_t>(four & 0xFFFF | four >> 16 & 0xFFFF0000ULL))
    return True


cdef size_t utf16_to_utf8(const uint8_t* units, size_t count, uint8_t* target) noexcept nogil:
    """Write ``count`` code units as UTF-8 and return the bytes written; ``target`` holds at least 3 for each unit."""
    cdef size_t i = 0
    cdef size_t written = 0
    cdef uint32_t more
    cdef uint32_t unit
    cdef uint32_t low
    while i < count:
        # 16 bytes may be stored for 16 units only, so the block never writes past 3 bytes a unit
        while count - i >= 16:
            more = wire_narrow_ascii(units + 2 * i, target + written)
            if more < 16:
                i += more
                written += more
                break
            # Not ``more``: the next block does not wait for what is found in this one
            i += 16
            written += 16
        while count - i >= 4 and narrow_four(units + 2 * i, target + written):
            i += 4
            written += 4
        # A unit that is not ASCII hardly stands alone
        unit = 0xFFFF
        while i < count and unit >= 0x80:
            unit = load_u16(units + 2 * i)
            i += 1
            if 0xD800 <= unit < 0xE000:
                low = load_u16(units + 2 * i) if unit < 0xDC00 and i < count else 0
                if 0xDC00 <= low < 0xE000:
                    i += 1
                    unit = 0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00)
                else:
                    unit = REPLACEMENT
            written += put_utf8(unit, target + written)
    return written


def to_utf8(data: BytesLike) -> bytes:
    """UTF-16LE bytes as UTF-8; a lone surrogate becomes U+FFFD, a last odd byte is ignored.

    >>> to_utf8("nt4pec".encode("utf-16-le"))
    b'nt4pec'
    >>> to_utf8(b"\\x00\\xd8").decode()
    '\\ufffd'
    """
    cdef bytes units = data if type(data) is bytes else bytes(memoryview(data))
    cdef size_t count = <size_t>len(units) // 2
    cdef bytearray target = bytearray(3 * count)
    cdef size_t written
    if count == 0:
        return b""
    written = utf16_to_utf8(<const uint8_t*><const char*>units, count, <uint8_t*>target)
    return bytes(target[:written])
