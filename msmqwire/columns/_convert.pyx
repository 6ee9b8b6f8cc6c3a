"""Conversions an Arrow export needs: bitmaps, GUIDs in RFC 9562 order or as text, UTF-8, names of enumerations.

Each is one pass without the GIL into memory of its own. A null row holds zeros (or any bytes, for text), so the
conversions need not look at validity; text of null rows has length 0.
"""

from libc.stddef cimport size_t
from libc.stdint cimport int16_t, int32_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from msmqwire.columns._buffer cimport Buffer, allocate, allocate_zeroed, buffer_of_bytes, never_freed
from msmqwire.columns.payload_table cimport PayloadTable, Span, payload_at
from msmqwire.wire.cursor cimport load_u32, load_u64
from msmqwire.wire._fault cimport Fault, field_name
from msmqwire.wire._guid cimport GUID_SIZE, GUID_TEXT_SIZE, format_guid, swap_guid
from msmqwire.wire.simd cimport wire_popcount
from msmqwire.wire._utf16 cimport utf16_to_utf8


cdef enum:
    INT32_MAX = 0x7FFFFFFF
    ZEROS_SIZE = 1 << 18

cdef Buffer ZEROS = never_freed(allocate_zeroed(ZEROS_SIZE))


cdef class Validity:
    cdef tuple of(self, uint32_t bit):
        """The bitmap of the rows that have ``bit``, None when all have, and how many have not."""
        if self.presence is None or self.every & bit == bit:
            return None, 0
        if bit not in self.bitmaps:
            if self.some & bit:
                self.bitmaps[bit] = presence_bitmap(self.presence.data, self.width, bit, self.count)
            else:
                self.bitmaps[bit] = zeros((self.count + 7) // 8), <Py_ssize_t>self.count
        return self.bitmaps[bit]


cdef Validity validity_of(Buffer presence, size_t width, size_t count):
    """Of rows with presence bytes; without these every row has every bit."""
    cdef Validity validity = Validity.__new__(Validity)
    cdef size_t size = width * count
    cdef uint64_t every = <uint64_t>-1
    cdef uint64_t some = 0
    cdef uint64_t word
    cdef uint64_t[2] rest
    cdef size_t i = 0
    validity.presence = presence
    validity.width = width
    validity.count = count
    validity.bitmaps = {}
    if presence is None:
        return validity
    while i + 8 <= size:
        word = load_u64(presence.data + i)
        every &= word
        some |= word
        i += 8
    if i < size:
        rest[0], rest[1] = <uint64_t>-1, 0
        memcpy(&rest[0], presence.data + i, size - i)
        memcpy(&rest[1], presence.data + i, size - i)
        every &= rest[0]
        some |= rest[1]
    i = 32
    while i >= 8 * width:
        every &= every >> i
        some |= some >> i
        i >>= 1
    validity.every, validity.some = <uint32_t>every, <uint32_t>some
    if width == 1:
        validity.every &= 0xFF
        validity.some &= 0xFF
    return validity


cdef tuple presence_bitmap(const uint8_t* presence, size_t width, uint32_t bit, size_t count):
    """The Arrow bitmap of the rows whose presence, of 1 or 4 bytes, has ``bit``, and how many have not.

    The bitmap is None when all have.
    """
    cdef Buffer bits = allocate((count + 7) // 8)
    cdef size_t present = 0
    cdef size_t i = 0
    cdef uint8_t byte
    with nogil:
        while i < count:
            byte = bits_of_rows(presence + width * i, width, bit, min(count - i, <size_t>8))
            present += wire_popcount(byte)
            bits.data[i >> 3] = byte
            i += 8
    return (None, 0) if present == count else (bits, <Py_ssize_t>(count - present))


cdef inline uint8_t bits_of_rows(const uint8_t* presence, size_t width, uint32_t bit, size_t count) noexcept nogil:
    """Eight rows of a bitmap, or the last ``count`` of it."""
    cdef uint8_t bits = 0
    cdef size_t i
    for i in range(count):
        bits |= <uint8_t>((((load_u32(presence + 4 * i) if width == 4 else presence[i]) & bit) != 0) << i)
    return bits


cdef Buffer zeros(size_t size):
    """Bytes of zero that are never written."""
    return ZEROS if size <= ZEROS.size else allocate_zeroed(size)


cdef Buffer widened(const uint8_t* values, size_t count, size_t width):
    """Bytes as integers of 2 or 4 bytes."""
    cdef Buffer wide = allocate(count * width)
    cdef int16_t* two = <int16_t*>wide.data
    cdef int32_t* four = <int32_t*>wide.data
    cdef size_t i
    if width == 2:
        for i in range(count):
            two[i] = values[i]
    else:
        for i in range(count):
            four[i] = values[i]
    return wide


cdef tuple texts_of(list texts):
    """Offsets and UTF-8 of a few strings."""
    cdef Buffer offsets = allocate((<size_t>len(texts) + 1) * sizeof(int32_t))
    cdef int32_t* end = <int32_t*>offsets.data
    cdef list encoded = [text.encode() for text in texts]
    cdef Py_ssize_t i
    end[0] = 0
    for i in range(len(encoded)):
        end[i + 1] = end[i] + <int32_t>len(encoded[i])
    return offsets, buffer_of_bytes(b"".join(encoded))


cdef tuple texts_at(const uint32_t* places, size_t count, const int32_t* ends, const uint8_t* text):
    """Offsets and UTF-8 of the texts at these places of others."""
    cdef Buffer offsets = allocate((count + 1) * sizeof(int32_t))
    cdef int32_t* end = <int32_t*>offsets.data
    cdef size_t total = 0
    cdef size_t i
    cdef int32_t start
    cdef Buffer texts
    with nogil:
        for i in range(count):
            total += <size_t>(ends[places[i] + 1] - ends[places[i]])
    if total > INT32_MAX:
        raise OverflowError(f"{count} texts exceed an Arrow string array; decode in smaller batches")
    texts = allocate(total)
    with nogil:
        end[0] = 0
        for i in range(count):
            start = ends[places[i]]
            end[i + 1] = end[i] + ends[places[i] + 1] - start
            memcpy(texts.data + end[i], text + start, <size_t>(end[i + 1] - end[i]))
    return offsets, texts


cdef Buffer bits_of_bools(const uint8_t* values, size_t count):
    cdef Buffer bits = allocate_zeroed((count + 7) // 8)
    cdef uint8_t* out = bits.data
    cdef size_t i
    with nogil:
        for i in range(count):
            out[i >> 3] |= <uint8_t>((values[i] != 0) << (i & 7))
    return bits


cdef Buffer swapped_guids(const uint8_t* values, size_t count):
    cdef Buffer swapped = allocate(count * GUID_SIZE)
    cdef uint8_t* out = swapped.data
    cdef size_t i
    with nogil:
        for i in range(count):
            swap_guid(values + i * GUID_SIZE, out + i * GUID_SIZE)
    return swapped


cdef Buffer ends_of_guids(size_t count):
    """Offsets of GUIDs as variable-length binary."""
    cdef Buffer offsets = allocate((count + 1) * sizeof(int32_t))
    cdef int32_t* end = <int32_t*>offsets.data
    cdef size_t i
    if count * GUID_SIZE > INT32_MAX:
        raise OverflowError(f"{count} GUIDs exceed an Arrow binary array; decode in smaller batches")
    for i in range(count + 1):
        end[i] = <int32_t>(i * GUID_SIZE)
    return offsets


cdef tuple guid_texts(const uint8_t* values, size_t count, const uint8_t* validity):
    """Offsets and data of the canonical lower-case text; empty where ``validity``, NULL for nowhere, has no bit."""
    cdef Buffer offsets = allocate((count + 1) * sizeof(int32_t))
    cdef Buffer text = allocate(count * GUID_TEXT_SIZE)
    cdef int32_t* end = <int32_t*>offsets.data
    cdef uint8_t* out = text.data
    cdef size_t i
    cdef size_t written = 0
    if count * GUID_TEXT_SIZE > INT32_MAX:
        raise OverflowError(f"{count} GUIDs as text exceed an Arrow string array; decode in smaller batches")
    with nogil:
        for i in range(count):
            end[i] = <int32_t>written
            if validity == NULL or validity[i >> 3] >> (i & 7) & 1:
                format_guid(values + i * GUID_SIZE, out + written)
                written += GUID_TEXT_SIZE
        end[count] = <int32_t>written
    return offsets, text


cdef tuple texts_of_spans(
    const TextSpan* spans, size_t count, const PayloadTable* payloads, const uint32_t* rows
):
    """Offsets and UTF-8 of texts that lie in the payloads of ``rows``; ``rows`` NULL: text i is of payload i."""
    cdef Buffer offsets = allocate((count + 1) * sizeof(int32_t))
    cdef int32_t* end = <int32_t*>offsets.data
    cdef size_t i
    cdef size_t units = 0
    cdef size_t written = 0
    cdef Buffer text
    cdef Span payload
    with nogil:
        for i in range(count):
            units += spans[i].length // 2
    if 3 * units > INT32_MAX:
        raise OverflowError(f"{units} code units may exceed an Arrow string array; decode in smaller batches")
    text = allocate(3 * units + 16)
    with nogil:
        end[0] = 0
        for i in range(count):
            if spans[i].length:
                payload = payload_at(payloads, i if rows == NULL else rows[i])
                written += utf16_to_utf8(payload.data + spans[i].offset, spans[i].length // 2, text.data + written)
            end[i + 1] = <int32_t>written
    return offsets, text


cdef tuple bytes_of_spans(
    const TextSpan* spans, size_t count, const PayloadTable* payloads, const uint32_t* rows
):
    """Offsets and data of bytes that lie in the payloads of ``rows``; ``rows`` NULL: value i is of payload i."""
    cdef Buffer offsets = allocate((count + 1) * sizeof(int32_t))
    cdef int32_t* end = <int32_t*>offsets.data
    cdef size_t i
    cdef size_t total = 0
    cdef Buffer data
    cdef Span payload
    with nogil:
        for i in range(count):
            end[i] = <int32_t>total
            total += spans[i].length
        end[count] = <int32_t>total
    if total > INT32_MAX:
        raise OverflowError(f"{total} bytes exceed an Arrow binary array; decode in smaller batches")
    data = allocate(total)
    with nogil:
        for i in range(count):
            if spans[i].length:
                payload = payload_at(payloads, i if rows == NULL else rows[i])
                memcpy(data.data + end[i], payload.data + spans[i].offset, spans[i].length)
    return offsets, data


cdef tuple ascii_of_spans(
    const TextSpan* spans, size_t count, const PayloadTable* payloads, const uint32_t* rows
):
    """Copy spans of ASCII text. The copy is valid UTF-8, also where the payload was overwritten since it was read."""
    cdef Buffer data
    cdef size_t i
    offsets, data = bytes_of_spans(spans, count, payloads, rows)
    with nogil:
        for i in range(data.size):
            data.data[i] &= 0x7F
    return offsets, data


cdef tuple texts_of_names(const uint8_t* values, size_t count, tuple names):
    """Offsets and UTF-8 of the names that small numbers stand for; a number without a name gives empty text."""
    cdef Buffer offsets = allocate((count + 1) * sizeof(int32_t))
    cdef int32_t* end = <int32_t*>offsets.data
    cdef const uint8_t* starts[256]
    cdef size_t[256] sizes
    cdef list kept = [one.encode() for one in names]
    cdef Buffer text
    cdef uint8_t* out
    cdef size_t i
    cdef size_t total = 0
    cdef bytes name
    memset(sizes, 0, sizeof(sizes))
    for i in range(<size_t>len(kept)):
        name = kept[i]
        starts[i] = <const uint8_t*>name
        sizes[i] = <size_t>len(name)
    with nogil:
        for i in range(count):
            total += sizes[values[i]]
    if total > INT32_MAX:
        raise OverflowError(f"{count} names exceed an Arrow string array; decode in smaller batches")
    text = allocate(total)
    out = text.data
    with nogil:
        end[0] = 0
        for i in range(count):
            if sizes[values[i]]:
                memcpy(out, starts[values[i]], sizes[values[i]])
                out += sizes[values[i]]
            end[i + 1] = <int32_t>(out - text.data)
    return offsets, text


cdef Buffer rows_of_items(const int32_t* offsets, size_t count, const uint32_t* rows):
    """For each item of a list column the row it belongs to; ``rows`` does so for the lists (NULL: list i is row i)."""
    cdef Buffer result = allocate(<size_t>offsets[count] * sizeof(uint32_t))
    cdef uint32_t* out = <uint32_t*>result.data
    cdef size_t i
    cdef int32_t j
    with nogil:
        for i in range(count):
            for j in range(offsets[i], offsets[i + 1]):
                out[j] = <uint32_t>i if rows == NULL else rows[i]
    return result


cdef tuple fault_fields(const Fault* faults, size_t fault_count, size_t count, tuple fields):
    """The field name of each row's fault, ``Name[item]`` for an element of an array, as places in a list of names."""
    cdef Buffer places = allocate_zeroed(count * sizeof(uint32_t))
    cdef dict known = {}
    cdef size_t i
    for i in range(fault_count):
        text = field_name(fields, faults[i].field, faults[i].item)
        (<uint32_t*>places.data)[faults[i].row] = known.setdefault(text, len(known))
    return places, list(known)
