"""The format and the text of message bodies: of one, and without the GIL of many.

What takes more than copying, such as numbers and text beyond ASCII, is left to ``readable.py``.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_CheckExact, PyBytes_FromStringAndSize
from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint32_t
from libc.string cimport memcmp, memcpy, memset

from msmqwire.columns._payloads cimport bytes_of
from msmqwire.wire.cursor cimport load_u16, load_u64
from msmqwire.wire._sid cimport format_sid, largest_sid_text
from msmqwire.wire._utf16 cimport utf16_to_utf8

from msmqwire.errors import EncodeError
from msmqwire.mqqb.message import readable
from msmqwire.mqqb.message.readable import ANSI_TYPE, BODY_FORMATS, NRBF_HEADER, UTF16_TYPES, VALUE_SIZES

if False:  # for type checkers: see stubs.py
    from typing_extensions import Buffer

cdef enum:
    CONTROL = 1                 # kinds of bytes
    BEYOND_ASCII = 2

cdef size_t DOTNET_HEADER = NRBF_HEADER
cdef uint8_t EMPTY = <uint8_t>BODY_FORMATS.index("empty")
cdef uint8_t ENCRYPTED = <uint8_t>BODY_FORMATS.index("encrypted")
cdef uint8_t XML = <uint8_t>BODY_FORMATS.index("xml")
cdef uint8_t TEXT = <uint8_t>BODY_FORMATS.index("text")
cdef uint8_t VALUE = <uint8_t>BODY_FORMATS.index("value")
cdef uint8_t DOTNET_BINARY = <uint8_t>BODY_FORMATS.index("dotnet_binary")
cdef uint8_t BINARY = <uint8_t>BODY_FORMATS.index("binary")
cdef uint8_t HL7 = <uint8_t>BODY_FORMATS.index("hl7")
cdef uint8_t EDIFACT = <uint8_t>BODY_FORMATS.index("edifact")
cdef uint32_t BSTR = UTF16_TYPES[0]
cdef uint32_t LPWSTR = UTF16_TYPES[1]
cdef uint32_t LPSTR = ANSI_TYPE

# Of each body type: the bytes of a body that may be a value of it
cdef uint8_t[BODY_TYPE_NUMBERS] VALUE_BYTES
memset(VALUE_BYTES, 0, sizeof(VALUE_BYTES))
for number, size in VALUE_SIZES.items():
    VALUE_BYTES[<size_t>number] = size


def read_body(body: Buffer, body_type: int, bint encrypted) -> tuple[str, str | None]:
    """The format of a body, one of ``BODY_FORMATS``, and its text; None where it has none.

    The body may be any bytes-like object, such as ``body`` of a message or a value of the column ``body``.

    A body whose BodyType says neither text nor value, or does not fit, is text when all of it is UTF-8 or, after a byte
    order mark or before ``<``, UTF-16, without control characters. U+0000 at the end are left out. So is XML or JSON in
    UTF-16, XML in the encoding that it declares, HL7 (in MLLP or not), EDIFACT, and a string or text of an object of
    .NET's BinaryFormatter. VT_LPSTR that is not UTF-8 is ``ansi_text``, read as windows-1252. The text of ``net_msmq``,
    a message of WCF ([MC-NMF]), is the address that it goes to. Wrong bytes of a declared encoding become U+FFFD.

    Examples
    --------
    >>> read_body("Größe".encode("utf-16-le"), 8, False)
    ('text', 'Größe')
    >>> read_body(b"<order/>", 0, False), read_body(b"\\x11\\0\\0\\0", 3, False)
    (('xml', '<order/>'), ('value', '17'))
    """
    cdef bint is_read = body_type in VALUE_SIZES or body_type in UTF16_TYPES or body_type == ANSI_TYPE
    cdef uint32_t known = body_type if is_read else 0
    cdef bytes copied = body if PyBytes_CheckExact(body) else bytes_of(body)
    return format_and_text(<const uint8_t*>copied, <size_t>len(copied), known, encrypted, False)


def write_body(text: str, body_type: int) -> bytes:
    """Return the body of a text: in UTF-16 where BodyType says so, else in UTF-8.

    Raises
    ------
    EncodeError
        A body of this type cannot have this text.
    """
    if not isinstance(text, str):
        raise EncodeError("body_text", f"must be text, not {type(text).__name__}")
    try:
        body = text.encode("utf-16-le" if body_type in UTF16_TYPES else "utf-8")
    except UnicodeEncodeError:
        body = None
    if body is None or read_body(body, body_type, False)[1] != text:
        raise EncodeError("body_text", f"a body of body_type {body_type} cannot have this text; give body instead")
    return body


cdef tuple format_and_text(const uint8_t* body, size_t size, uint32_t body_type, bint encrypted, bint extension):
    """Return the format and the text of a body; see ``read_body``."""
    cdef Origin origin
    cdef bytes text
    cdef uint8_t format = find_body(body, size, body_type, encrypted, extension, &origin)
    _other = read_any(&origin, &format)  # lives until it is copied
    if origin.form == NO_TEXT:
        return BODY_FORMATS[format], None
    text = PyBytes_FromStringAndSize(NULL, <Py_ssize_t>largest_text(&origin))
    size = write_text(&origin, <uint8_t*>PyBytes_AS_STRING(text), &format)
    return BODY_FORMATS[format], text[:size].decode()


cdef uint8_t find_body(
    const uint8_t* body, size_t size, uint32_t body_type, bint encrypted, bint extension, Origin* origin
) noexcept nogil:
    """The format of a body, TEXT also where it may turn out to be another, and what its text is made of.

    An ``extension`` is ExtensionData, whose headers are text also where they are malformed.
    """
    cdef uint8_t kinds
    origin.form = NO_TEXT
    if size == 0:
        return EMPTY
    if encrypted:
        return ENCRYPTED
    origin.bytes.data, origin.bytes.size = body, size
    origin.body_type, origin.extension = body_type, extension
    if is_dotnet_binary(body, size):
        if size > DOTNET_HEADER and body[DOTNET_HEADER] in (0x06, 0x0F):
            origin.form = ANY_BODY
        return DOTNET_BINARY
    if (body_type == BSTR or body_type == LPWSTR) and size % 2 == 0:
        origin.form = UTF16_TEXT
        return TEXT
    if (body_type < BODY_TYPE_NUMBERS and VALUE_BYTES[body_type] == size) or may_have_mark(body, size):
        origin.form = ANY_BODY
        return TEXT
    while size and body[size - 1] == 0:
        size -= 1
    kinds = kinds_of_bytes(body, size)
    if (size == 0 or kinds & CONTROL) and not may_have_name(body, size, body_type, extension):
        return BINARY
    if size == 0 or kinds & (BEYOND_ASCII | CONTROL):
        origin.form = ANY_BODY
        return TEXT
    origin.form = ASCII_TEXT
    origin.bytes.size = size
    return TEXT


cdef bint is_dotnet_binary(const uint8_t* body, size_t size) noexcept nogil:
    """Return True if a body begins with a SerializationHeaderRecord of version 1.0: [MS-NRBF] 2.6.1."""
    return size >= DOTNET_HEADER and body[0] == 0 and load_u64(body + 9) == 1


cdef bint may_have_mark(const uint8_t* body, size_t size) noexcept nogil:
    """Return True if a body begins as UTF-16 or with a byte order mark."""
    if size < 2:
        return False
    return load_u16(body) in (0xFEFF, 0xFFFE, 0x003C) or (size > 2 and body[0] == 0xEF and body[1] == 0xBB)


cdef bint may_have_name(const uint8_t* body, size_t size, uint32_t body_type, bint extension) noexcept nogil:
    """Return True if a body with control characters may be of a format that ``readable.py`` finds."""
    if body_type == LPSTR or extension:
        return True
    # The begin of MLLP, XML, EDIFACT; of XML and JSON in UTF-16, or white space before them; of net.msmq
    if size and body[0] in (0x0B, 0x3C, 0x55):
        return True
    return size > 2 and load_u16(body) in (
        0x007B, 0x005B, 0x3C00, 0x7B00, 0x5B00,
        0x0009, 0x000A, 0x000D, 0x0020, 0x0900, 0x0A00, 0x0D00, 0x2000,
        0x0100,
    )


cdef uint8_t kinds_of_bytes(const uint8_t* body, size_t size) noexcept nogil:
    """Return True if there are control characters but HT, LF and CR, and bytes beyond ASCII."""
    cdef uint8_t control = 0
    cdef uint8_t every = 0
    cdef uint8_t byte
    cdef size_t i
    for i in range(size):
        byte = body[i]
        control |= ((byte < 0x20) & (byte != 9) & (byte != 10) & (byte != 13)) | (byte == 0x7F)
        every |= byte
    return <uint8_t>((CONTROL if control else 0) | (BEYOND_ASCII if every & 0x80 else 0))


cdef bytes read_any(Origin* origin, uint8_t* format):
    """Let Python read a body that is left to it; its text in UTF-8, to which the origin points then."""
    cdef bytes body, encoded
    if origin.form != ANY_BODY:
        return None
    body = origin.bytes.data[:origin.bytes.size]
    if format[0] == DOTNET_BINARY:
        text = readable.object_text(body)
    else:
        if origin.extension:
            name, text = readable.extension_format_and_text(body)
        else:
            name, text = readable.format_and_text(body, origin.body_type)
        format[0] = <uint8_t>BODY_FORMATS.index(name)
    if text is None:
        origin.form = NO_TEXT
        return None
    encoded = text.encode()
    origin.form = UTF8_TEXT
    origin.bytes.data, origin.bytes.size = <const uint8_t*>encoded, <size_t>len(encoded)
    return encoded


cdef size_t largest_text(const Origin* origin) noexcept nogil:
    if origin.form == NO_TEXT:
        return 0
    if origin.form == UTF16_TEXT:
        return 3 * (origin.bytes.size // 2)
    if origin.form == SID:
        return largest_sid_text(origin.bytes.size)
    return origin.bytes.size


cdef size_t write_text(const Origin* origin, uint8_t* target, uint8_t* format) noexcept nogil:
    """Write a text in UTF-8; text that is XML, HL7 or EDIFACT gets that format."""
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
        # The bytes were ASCII when they were read, but may have changed since: the text must be valid UTF-8
        for i in range(size):
            target[i] &= 0x7F
    if format[0] == TEXT:
        if begins_as_xml(target, size):
            format[0] = XML
        elif size > 8 and memcmp(target, b"MSH|^~\\&|", 9) == 0:
            format[0] = HL7
        elif size > 7 and memcmp(target, b"UNB", 3) == 0 and memcmp(target + 4, b"UNO", 3) == 0:
            format[0] = EDIFACT
    return size


cdef bint begins_as_xml(const uint8_t* text, size_t size) noexcept nogil:
    """Return True if the first character is ``<``, after white space and byte order marks."""
    cdef size_t i = 0
    while i < size:
        if text[i] in (0x09, 0x0A, 0x0D, 0x20):
            i += 1
        elif size - i >= 3 and text[i] == 0xEF and text[i + 1] == 0xBB and text[i + 2] == 0xBF:
            i += 3
        else:
            return text[i] == 0x3C
    return False
