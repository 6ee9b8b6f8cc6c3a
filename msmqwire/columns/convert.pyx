"""Conversions an Arrow export needs: bitmaps, GUIDs in RFC 9562 order or as text, UTF-8, names of enumerations.

Each is one pass without the GIL into memory of its own. A null row holds zeros (or any bytes, for text), so the
conversions need not look at validity; text of null rows has length 0.
"""

from libc.stddef cimport size_t
from libc.stdint cimport int32_t, uint8_t, uint32_t
from libc.string cimport memcpy, memset

from msmqwire.columns.buffer cimport Buffer, allocate, allocate_zeroed, buffer_of_bytes
from msmqwire.columns.payloads cimport PayloadTable, Span, payload_at
from msmqwire.wire.address cimport ADDRESS_SIZE, LONGEST_ADDRESS_TEXT, format_address
from msmqwire.wire.cursor cimport load_u32
from msmqwire.wire.fault cimport Fault, field_name
from msmqwire.wire.format_name cimport FormatName, format_format_name, largest_format_name_text
from msmqwire.wire.guid cimport GUID_SIZE, GUID_TEXT_SIZE, format_guid, swap_guid
from msmqwire.wire.utf16 cimport utf16_to_utf8


cdef enum:
    INT32_MAX = 0x7FFFFFFF


cdef tuple presence_bitmap(const uint8_t* presence, size_t width, uint32_t bit, size_t count):
    """The Arrow bitmap of the rows whose presence, of 1 or 4 bytes, has ``bit``, and how many have not.

    The bitmap is None when all have.
    """
    cdef Buffer bits = allocate_zeroed((count + 7) // 8)
    cdef uint8_t* out = bits.data
    cdef size_t i
    cdef size_t present = 0
    cdef uint8_t one
    with nogil:
        for i in range(count):
            one = ((load_u32(presence + 4 * i) if width == 4 else presence[i]) & bit) != 0
            present += one
            out[i >> 3] |= <uint8_t>(one << (i & 7))
    return (None, 0) if present == count else (bits, <Py_ssize_t>(count - present))


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
    """As ``bytes_of_spans`` for text that was ASCII when it was read: it is valid UTF-8 even when it changed since."""
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
    """Offsets and UTF-8 of the field names of faults, ``Name[item]`` for an element of an array; no fault: empty."""
    cdef Buffer offsets = allocate((count + 1) * sizeof(int32_t))
    cdef int32_t* end = <int32_t*>offsets.data
    cdef list texts = []
    cdef size_t row = 0
    cdef size_t i
    cdef int32_t written = 0
    cdef bytes text
    end[0] = 0
    for i in range(fault_count):
        text = field_name(fields, faults[i].field, faults[i].item).encode()
        texts.append(text)
        while row <= faults[i].row:
            end[row] = written
            row += 1
        written += <int32_t>len(text)
    while row <= count:
        end[row] = written
        row += 1
    return offsets, buffer_of_bytes(b"".join(texts))


cdef tuple addresses_as_text(const uint8_t* values, size_t count):
    """Offsets and text of addresses; a row without an address is empty."""
    cdef Buffer offsets = allocate((count + 1) * sizeof(int32_t))
    cdef Buffer text
    cdef int32_t* end = <int32_t*>offsets.data
    cdef size_t i
    cdef size_t written = 0
    if count * LONGEST_ADDRESS_TEXT > INT32_MAX:
        raise OverflowError(f"{count} addresses may exceed an Arrow string array; read in smaller blocks")
    text = allocate(count * LONGEST_ADDRESS_TEXT)
    end[0] = 0
    with nogil:
        for i in range(count):
            written += format_address(values + i * ADDRESS_SIZE, text.data + written)
            end[i + 1] = <int32_t>written
    return offsets, text


cdef tuple format_names_as_text(
    const FormatName* names, size_t count, const PayloadTable* payloads, const uint32_t* rows
):
    """Offsets and UTF-8 of format names; direct names lie in the payloads of ``rows``, NULL: name i is of payload i."""
    cdef Buffer offsets = allocate((count + 1) * sizeof(int32_t))
    cdef int32_t* end = <int32_t*>offsets.data
    cdef Buffer text
    cdef size_t i
    cdef size_t room = 0
    cdef size_t written = 0
    with nogil:
        for i in range(count):
            room += largest_format_name_text(&names[i])
    if room > INT32_MAX:
        raise OverflowError(f"{count} format names may exceed an Arrow string array; decode in smaller batches")
    text = allocate(room)
    end[0] = 0
    with nogil:
        for i in range(count):
            written += format_format_name(
                &names[i], payload_at(payloads, i if rows == NULL else rows[i]).data, text.data + written
            )
            end[i + 1] = <int32_t>written
    return offsets, text
