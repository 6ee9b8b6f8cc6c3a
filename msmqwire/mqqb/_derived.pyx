"""The columns of messages that are made when they are first read, by reading the messages a second time.

Values are found without the GIL and stored with it, so that other threads may read the batch meanwhile. ``readable.py``
says what they are; what takes more than copying, such as numbers and text beyond ASCII, is left to it.
"""

from libc.stddef cimport size_t
from libc.stdint cimport INT32_MAX, int32_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from msmqwire.columns._batch cimport DECODED, Batch, Hold
from msmqwire.columns._buffer cimport Buffer, allocate
from msmqwire.columns._payloads cimport Payloads, PayloadTable, Span, payload_at
from msmqwire.mqqb._kernel cimport HAS_PROPERTIES, HAS_SECURITY_ID, SECURITY_ID, SENDER, Packet
from msmqwire.mqqb._messages cimport read_message
from msmqwire.mqqb._values cimport OF_BODY, SENDER_IS_SID, body_part, body_type_of, derived_value, is_encrypted
from msmqwire.wire.cursor cimport load_u16, load_u32, load_u64
from msmqwire.wire._fault cimport Fault
from msmqwire.wire.simd cimport wire_bswap16, wire_bswap32
from msmqwire.wire._utf16 cimport utf16_to_utf8

from msmqwire.mqqb.readable import BODY_FORMATS, BODY_TYPES, UTF16_TYPES, VALUE_SIZES
from msmqwire.mqqb.schema import MESSAGES

cdef enum:
    BODY_TYPE_NUMBERS = 0x1100      # all numbers of types are smaller
    NO_NAME = 255
    DOTNET_HEADER = 17
    SMALLEST_SID = 8
    MOST_SUB_AUTHORITIES = 15
    AUTHORITY_TEXT = 18             # S-1-0x and twelve digits
    SUB_AUTHORITY_TEXT = 11         # a hyphen and ten digits
    CONTROL = 1                     # kinds of bytes
    BEYOND_ASCII = 2

cdef enum TextForm:
    NO_TEXT
    ASCII_TEXT
    UTF8_TEXT
    UTF16_TEXT
    SID
    ANY_BODY    # for readable.py


# The bytes that the text of a row is made of
cdef struct Origin:
    Span bytes
    TextForm form


cdef struct Rows:
    const PayloadTable* payloads
    const uint32_t* presence
    size_t count


cdef uint8_t EMPTY = <uint8_t>BODY_FORMATS.index("empty")
cdef uint8_t ENCRYPTED = <uint8_t>BODY_FORMATS.index("encrypted")
cdef uint8_t XML = <uint8_t>BODY_FORMATS.index("xml")
cdef uint8_t TEXT = <uint8_t>BODY_FORMATS.index("text")
cdef uint8_t DOTNET_BINARY = <uint8_t>BODY_FORMATS.index("dotnet_binary")
cdef uint8_t BINARY = <uint8_t>BODY_FORMATS.index("binary")
cdef uint32_t BSTR = UTF16_TYPES[0]
cdef uint32_t LPWSTR = UTF16_TYPES[1]

# Of each body type: its place among the names, and the bytes of a body that may be a value of it
cdef uint8_t[BODY_TYPE_NUMBERS] NAME_PLACES
cdef uint8_t[BODY_TYPE_NUMBERS] VALUE_BYTES
cdef tuple BODY_COLUMNS = MESSAGES.select(OF_BODY)


cdef int fill_tables() except -1:
    memset(NAME_PLACES, NO_NAME, sizeof(NAME_PLACES))
    for place, number in enumerate(BODY_TYPES):
        NAME_PLACES[<size_t>number] = place
    for number, size in VALUE_SIZES.items():
        VALUE_BYTES[<size_t>number] = size
    return 0


fill_tables()


cdef int derive_column(Batch batch, object column) except -1:
    """Make the values of a derived column; those ``OF_BODY`` are made together."""
    cdef Rows rows
    # Meanwhile no other thread decodes into the batch, or releases its payloads
    cdef Hold _hold = Hold(batch)
    cdef Payloads payloads = batch.payloads
    rows.payloads = &payloads.table
    rows.presence = <const uint32_t*>batch.data("presence")
    rows.count = batch.length
    cdef Buffer numbers = allocate(rows.count)
    cdef Buffer origins = allocate(rows.count * sizeof(Origin))
    cdef Origin* origin = <Origin*>origins.data
    cdef Buffer present = allocate(rows.count)
    if column.name == "body_type_name":
        with nogil:
            find_body_types(&rows, numbers.data, present.data)
        store_column(batch, column, numbers, present)
        return 0
    if column.name not in OF_BODY:
        with nogil:
            find_sids(&rows, origin)
        texts = joined_texts(origin, rows.count, numbers.data, present.data)
        store_texts(batch, column, texts, present)
        return 0
    with nogil:
        find_bodies(&rows, numbers.data, origin)
    # Texts of the others live until they are copied
    _texts = read_bodies(&rows, numbers.data, origin)
    texts = joined_texts(origin, rows.count, numbers.data, present.data)
    for column in BODY_COLUMNS:
        if not batch.wants(column.name):
            continue
        if column.name == "body_text":
            store_texts(batch, column, texts, present)
        else:
            store_column(batch, column, numbers, None)
    return 0


# --- Reading the messages ---


cdef bint read_row(const Rows* rows, size_t row, Packet* packet, const uint8_t** data) noexcept nogil:
    """Whether a row has a message. Its bytes may have changed since they were first read."""
    cdef Fault fault
    cdef Span payload
    if not rows.presence[row] & DECODED:
        return False
    payload = payload_at(rows.payloads, row)
    data[0] = payload.data
    return payload.data != NULL and read_message(payload.data, payload.size, False, NULL, packet, &fault) == 0


cdef void find_body_types(const Rows* rows, uint8_t* numbers, uint8_t* present) noexcept nogil:
    """The places of the names of body types, and which rows have any."""
    cdef Packet packet
    cdef const uint8_t* data
    cdef uint32_t body_type
    cdef uint8_t place
    cdef size_t row
    for row in range(rows.count):
        place = NO_NAME
        if read_row(rows, row, &packet, &data) and packet.presence & HAS_PROPERTIES:
            body_type = body_type_of(&packet)
            if body_type < BODY_TYPE_NUMBERS:
                place = NAME_PLACES[body_type]
        present[row] = place != NO_NAME
        numbers[row] = place if place != NO_NAME else 0


cdef void find_sids(const Rows* rows, Origin* origins) noexcept nogil:
    cdef Packet packet
    cdef const uint8_t* data
    cdef const uint8_t* sid
    cdef size_t size
    cdef size_t row
    for row in range(rows.count):
        origins[row].form = NO_TEXT
        if (
            read_row(rows, row, &packet, &data) and packet.presence & HAS_SECURITY_ID
            and packet.derived[SENDER] == SENDER_IS_SID
        ):
            sid = data + packet.parts[SECURITY_ID].offset
            size = packet.parts[SECURITY_ID].length
            if (
                size >= SMALLEST_SID and sid[0] == 1 and sid[1] <= MOST_SUB_AUTHORITIES
                and size == <size_t>SMALLEST_SID + 4 * <size_t>sid[1]
            ):
                origins[row].form = SID
                origins[row].bytes.data, origins[row].bytes.size = sid, size


cdef void find_bodies(const Rows* rows, uint8_t* formats, Origin* origins) noexcept nogil:
    """The format of each body, TEXT also where it may turn out to be another, and what its text is made of."""
    cdef Packet packet
    cdef const uint8_t* data
    cdef size_t row
    for row in range(rows.count):
        origins[row].form = NO_TEXT
        formats[row] = 0
        if read_row(rows, row, &packet, &data) and packet.presence & HAS_PROPERTIES:
            formats[row] = format_of(&packet, data, &origins[row])


cdef uint8_t format_of(const Packet* packet, const uint8_t* data, Origin* origin) noexcept nogil:
    cdef uint32_t body_type = body_type_of(packet)
    cdef size_t part = body_part(packet)
    cdef const uint8_t* body = data + packet.parts[part].offset
    cdef size_t size = packet.parts[part].length
    cdef uint8_t kinds
    if size == 0:
        return EMPTY
    if is_encrypted(packet):
        return ENCRYPTED
    if is_dotnet_binary(body, size):
        return DOTNET_BINARY
    origin.bytes.data, origin.bytes.size = body, size
    if (body_type == BSTR or body_type == LPWSTR) and size % 2 == 0:
        origin.form = UTF16_TEXT
        return TEXT
    if (body_type < BODY_TYPE_NUMBERS and VALUE_BYTES[body_type] == size) or may_have_mark(body, size):
        origin.form = ANY_BODY
        return TEXT
    while size and body[size - 1] == 0:
        size -= 1
    kinds = kinds_of_bytes(body, size)
    if size == 0 or kinds & CONTROL:
        return BINARY
    if kinds & BEYOND_ASCII:
        origin.form = ANY_BODY
        return TEXT
    origin.form = ASCII_TEXT
    origin.bytes.size = size
    return TEXT


cdef bint is_dotnet_binary(const uint8_t* body, size_t size) noexcept nogil:
    """Whether a body begins with a SerializationHeaderRecord of version 1.0: [MS-NRBF] 2.6.1."""
    return size >= DOTNET_HEADER and body[0] == 0 and load_u64(body + 9) == 1


cdef bint may_have_mark(const uint8_t* body, size_t size) noexcept nogil:
    """Whether a body begins as UTF-16 or with a byte order mark."""
    if size < 2:
        return False
    return load_u16(body) in (0xFEFF, 0xFFFE, 0x003C) or (size > 2 and body[0] == 0xEF and body[1] == 0xBB)


cdef uint8_t kinds_of_bytes(const uint8_t* body, size_t size) noexcept nogil:
    """Whether there are control characters but HT, LF and CR, and bytes beyond ASCII."""
    cdef uint8_t control = 0
    cdef uint8_t every = 0
    cdef uint8_t byte
    cdef size_t i
    for i in range(size):
        byte = body[i]
        control |= ((byte < 0x20) & (byte != 9) & (byte != 10) & (byte != 13)) | (byte == 0x7F)
        every |= byte
    return <uint8_t>((CONTROL if control else 0) | (BEYOND_ASCII if every & 0x80 else 0))


cdef list read_bodies(const Rows* rows, uint8_t* formats, Origin* origins):
    """The texts of bodies that Python reads; their origins point to them."""
    cdef Packet packet
    cdef const uint8_t* data
    cdef list texts = []
    cdef bytes encoded
    cdef size_t row
    for row in range(rows.count):
        if origins[row].form != ANY_BODY:
            continue
        origins[row].form = NO_TEXT
        formats[row] = 0
        if not (read_row(rows, row, &packet, &data) and packet.presence & HAS_PROPERTIES):
            continue
        name, text = derived_value(&packet, data, "body")
        formats[row] = BODY_FORMATS.index(name)
        if text is not None:
            encoded = text.encode()
            texts.append(encoded)
            origins[row].form = UTF8_TEXT
            origins[row].bytes.data, origins[row].bytes.size = <const uint8_t*>encoded, <size_t>len(encoded)
    return texts


# --- Writing the texts ---


cdef tuple joined_texts(const Origin* origins, size_t count, uint8_t* formats, uint8_t* present):
    """Offsets and UTF-8 of the texts, and in ``present`` which rows have one; bodies that are XML get that format."""
    cdef Buffer offsets = allocate((count + 1) * sizeof(int32_t))
    cdef int32_t* end = <int32_t*>offsets.data
    cdef size_t largest = 0
    cdef size_t written = 0
    cdef size_t row
    for row in range(count):
        largest += largest_text(origins + row)
    # More than is needed, so the text is copied once more
    cdef Buffer space = allocate(largest)
    cdef uint8_t* target = space.data
    with nogil:
        end[0] = 0
        for row in range(count):
            present[row] = origins[row].form != NO_TEXT
            written += write_text(origins + row, target + written, formats + row)
            end[row + 1] = <int32_t>written
    if written > INT32_MAX:
        raise OverflowError(f"{count} texts exceed an Arrow string array; decode in smaller batches")
    cdef Buffer text = allocate(written)
    memcpy(text.data, target, written)
    return offsets, text


cdef size_t largest_text(const Origin* origin) noexcept nogil:
    if origin.form == NO_TEXT:
        return 0
    if origin.form == UTF16_TEXT:
        return 3 * (origin.bytes.size // 2)
    if origin.form == SID:
        return <size_t>AUTHORITY_TEXT + SUB_AUTHORITY_TEXT * ((origin.bytes.size - <size_t>SMALLEST_SID) // 4)
    return origin.bytes.size


cdef size_t write_text(const Origin* origin, uint8_t* target, uint8_t* format) noexcept nogil:
    cdef const uint8_t* data = origin.bytes.data
    cdef size_t size = origin.bytes.size
    cdef size_t i
    if origin.form == NO_TEXT:
        return 0
    if origin.form == SID:
        return format_sid(data, size, target)
    if origin.form == UTF16_TEXT:
        size = utf16_to_utf8(data, size // 2, target)
        while size and target[size - 1] == 0:
            size -= 1
    else:
        memcpy(target, data, size)
    if origin.form == ASCII_TEXT:
        # It was ASCII when it was looked at; whatever it is now, UTF-8 stays valid
        for i in range(size):
            target[i] &= 0x7F
    if origin.form != UTF8_TEXT and begins_as_xml(target, size):
        format[0] = XML
    return size


cdef bint begins_as_xml(const uint8_t* text, size_t size) noexcept nogil:
    """Whether the first character is ``<``, after white space and byte order marks."""
    cdef size_t i = 0
    while i < size:
        if text[i] in (0x09, 0x0A, 0x0D, 0x20):
            i += 1
        elif size - i >= 3 and text[i] == 0xEF and text[i + 1] == 0xBB and text[i + 2] == 0xBF:
            i += 3
        else:
            return text[i] == 0x3C
    return False


cdef size_t format_sid(const uint8_t* sid, size_t size, uint8_t* target) noexcept nogil:
    """Text of a SID: [MS-DTYP] 2.4.2.1."""
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


# --- Storing the columns ---


cdef int store_texts(Batch batch, object column, tuple texts, Buffer present) except -1:
    offsets, batch.buffers[column.name + ".text"] = texts
    return store_column(batch, column, offsets, present)


cdef int store_column(Batch batch, object column, Buffer values, Buffer present) except -1:
    """Store values; without ``present``, presence is not changed."""
    cdef uint32_t* presence = <uint32_t*>batch.data("presence")
    cdef uint32_t bit = <uint32_t>column.presence
    cdef size_t row
    batch.buffers[column.name] = values
    if present is not None:
        for row in range(batch.length):
            presence[row] = presence[row] & ~bit | (bit if present.data[row] else 0)
    batch.counts[column.name] = batch.length
    return 0
