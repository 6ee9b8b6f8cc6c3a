"""Message bodies as people read them: the types of bodies, and the texts that ``_bodies.pyx`` leaves to Python."""

from __future__ import annotations

import re
import struct
from datetime import datetime, timedelta
from decimal import Decimal
from uuid import UUID

BODY_FORMATS = (
    "empty", "encrypted", "xml", "text", "value", "dotnet_binary", "binary", "ansi_text", "hl7", "edifact", "net_msmq",
)  # fmt: skip

# By the number of the first of each run
_BASE_TYPES = {
    first + place: f"VT_{name}"
    for first, names in (
        (0, "EMPTY NULL I2 I4 R4 R8 CY DATE BSTR DISPATCH ERROR BOOL VARIANT UNKNOWN DECIMAL"),
        (16, "I1 UI1 UI2 UI4 I8 UI8 INT UINT"),
        (30, "LPSTR LPWSTR"),
        (64, "FILETIME BLOB STREAM STORAGE STREAMED_OBJECT STORED_OBJECT BLOB_OBJECT CF CLSID"),
    )
    for place, name in enumerate(names.split())
}
_VECTOR = 0x1000
_ARRAY = 0x2000
# [MS-MQMQ] 2.2.12 and [MS-OLEPS] 2.15; 768 is what the BinaryMessageFormatter of .NET writes
BODY_TYPES = {
    **_BASE_TYPES,
    0x0300: "VT_BINARY_OBJECT",
    **{_VECTOR | code: f"{name}|VT_VECTOR" for code, name in _BASE_TYPES.items() if code > 1},
    **{_ARRAY | code: f"{name}|VT_ARRAY" for code, name in _BASE_TYPES.items() if code > 1},
}

_STRUCTS = {
    code: struct.Struct("<" + letter)
    for code, letter in {
        2: "h", 3: "i", 4: "f", 5: "d", 6: "q", 7: "d", 11: "H", 16: "b", 17: "B", 18: "H", 19: "I", 20: "q",
        21: "Q", 22: "i", 23: "I", 64: "Q",
    }.items()
}  # fmt: skip
_CLSID = 72
# BSTR and LPWSTR
UTF16_TYPES = (8, 31)
ANSI_TYPE = 30
# By the type, the bytes of a body that may be a value
VALUE_SIZES = {**{code: layout.size for code, layout in _STRUCTS.items()}, _CLSID: 16}
NRBF_HEADER = 17
#: The begin of .NET's BinaryFormatter: a SerializationHeaderRecord, type 0, two ids, version 1.0 ([MS-NRBF] 2.6.1).
DOTNET_HEADER = r"(?s)\A\x00.{8}\x01\x00{7}"
# The encodings that XML declares in messages; others of Python's are no encodings of text, or of characters
_ENCODINGS = rb"|".join(
    (
        rb"utf-8", rb"utf-16(?:[lb]e)?", rb"us-ascii", rb"iso-?8859-\d{1,2}", rb"(?:windows-|cp)\d{3,4}", rb"koi8-[ru]",
        rb"shift_jis", rb"gbk", rb"gb2312", rb"gb18030", rb"big5",
    )
)  # fmt: skip
_DECLARATION = re.compile(rb"<\?xml\s[^>]{0,99}?encoding\s*=\s*([\"'])((?i:%b))\1" % _ENCODINGS)
# The first code unit and the last of a document in UTF-16
_DOCUMENTS = {"<": ">", "{": "}", "[": "]"}
# HL7's Minimal Lower Layer Protocol
_MLLP = re.compile(rb"\x0b([A-Z]{3}[^\x1c]*\x0d)\x1c\x0d?", re.DOTALL)
_EDIFACT = re.compile(rb"(?:UNA.{6}\s*)?UNB[^\w\s](UNO[A-Y])", re.DOTALL)
# ISO 9735: the character sets of its syntax identifiers
_EDIFACT_ENCODINGS = {
    f"UNO{letter}": f"iso8859-{part}" for letter, part in zip("CDEFGHIJK", (1, 2, 5, 7, 3, 4, 6, 8, 9), strict=True)
}
# [MC-NMF] 2.2: version 1.0, the mode, and the address that a message of WCF's net.msmq goes to
_NET_MSMQ = re.compile(rb"\x00\x01\x00\x01[\x01-\x04]\x02(.)(net\.msmq://.*)", re.DOTALL)
_CONTROL = re.compile("[\0-\x08\x0b\x0c\x0e-\x1f\x7f]")
_MARKS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"), (b"<\0", "utf-16-le"))


def value_text(body: bytes, body_type: int) -> str | None:
    """The text of a value, numbers and times; None where the type has no values or they have another size."""
    if body_type == _CLSID and len(body) == 16:
        return str(UUID(bytes_le=body))
    layout = _STRUCTS.get(body_type)
    if layout is None or len(body) != layout.size:
        return None
    (value,) = layout.unpack(body)
    match _BASE_TYPES[body_type]:
        case "VT_R4":
            return f"{value:.9g}"
        case "VT_CY":
            return str(Decimal(value).scaleb(-4))
        case "VT_BOOL":
            return {0: "false", 0xFFFF: "true"}.get(value)
        case "VT_DATE":
            return _time_after(datetime(1899, 12, 30), days=value)
        case "VT_FILETIME":
            time = _time_after(datetime(1601, 1, 1), microseconds=value // 10)
            return time and time + "Z"
    return str(value)


def _time_after(epoch: datetime, **elapsed: float) -> str | None:
    try:
        return (epoch + timedelta(**elapsed)).isoformat()
    except (OverflowError, ValueError):
        return None


def format_and_text(body: bytes, body_type: int) -> tuple[str, str | None]:
    """Return the format and the text of a body that takes more than its bytes as they are; it is not empty."""
    if (text := value_text(body, body_type)) is not None:
        return "value", text
    if (text := untyped_text(body)) is not None:
        return "text", text
    if body_type == ANSI_TYPE:
        return "ansi_text", body.rstrip(b"\0").decode("cp1252", "replace")
    if match := _DECLARATION.match(body):
        return "xml", _decoded(body, match[2].decode("ascii"))
    if match := _MLLP.fullmatch(body):
        return "hl7", match[1].decode("utf-8", "replace")
    if match := _EDIFACT.match(body):
        return "edifact", body.decode(_EDIFACT_ENCODINGS.get(match[1].decode("ascii"), "utf-8"), "replace")
    if match := _NET_MSMQ.match(body):
        return "net_msmq", match[2][: match[1][0]].decode("utf-8", "replace")
    if (text := _document(body)) is not None:
        return "text", text
    return "binary", None


def untyped_text(body: bytes) -> str | None:
    """The text of a body in UTF-8, or in UTF-16 with a byte order mark or before ``<``; None for other bytes."""
    encoding = next((name for mark, name in _MARKS if body.startswith(mark)), "utf-8")
    try:
        text = body.decode(encoding).removeprefix("\ufeff").rstrip("\0")
    except UnicodeDecodeError:
        return None
    return None if not text or _CONTROL.search(text) else text


def _decoded(body: bytes, encoding: str) -> str:
    """Return the text of XML in the encoding that it declares; wrong bytes become U+FFFD."""
    # A declaration in single bytes does not declare UTF-16
    narrow = "utf-8" if encoding.lower().startswith("utf-16") else encoding
    try:
        return body.decode(narrow, "replace").rstrip("\0")
    except LookupError:
        return body.decode("utf-8", "replace").rstrip("\0")


def _document(body: bytes) -> str | None:
    """Return XML or JSON in UTF-16 without a byte order mark; None for other bytes."""
    for encoding in ("utf-16-le", "utf-16-be"):
        try:
            text = body.decode(encoding).rstrip("\0")
        except UnicodeDecodeError:
            continue
        inner = text.strip()
        if _DOCUMENTS.get(inner[:1]) == inner[-1:] != "" and not _CONTROL.search(text):
            return text
    return None


def object_text(body: bytes) -> str | None:
    """Return the text of an object of .NET's BinaryFormatter that is a string, or bytes that are text.

    Records are those of [MS-NRBF] 2.5.7 and 2.4.3.3; None for other objects.
    """
    record = body[NRBF_HEADER : NRBF_HEADER + 1]
    try:
        if record == b"\6":
            size, at = length_at(body, NRBF_HEADER + 5)
            text = body[at : at + size]
        elif record == b"\x0f" and body[NRBF_HEADER + 9] == 2:
            at = NRBF_HEADER + 10
            (size,) = struct.unpack_from("<I", body, NRBF_HEADER + 5)
            text = body[at : at + size]
        else:
            return None
    except (IndexError, struct.error):
        return None
    if len(text) != size or body[at + size :] != b"\x0b":
        return None
    return untyped_text(text)


def length_at(data: bytes, at: int) -> tuple[int, int]:
    """Return a length of seven bits a byte ([MS-NRBF] 2.1.1.6), and where it ends.

    Raises
    ------
    IndexError
        It is truncated, or has more than five bytes.
    """
    size = 0
    for place in range(5):
        size |= (data[at + place] & 0x7F) << 7 * place
        if not data[at + place] & 0x80:
            return size, at + place + 1
    raise IndexError


def extension_format_and_text(data: bytes) -> tuple[str, str | None]:
    """Return the format and the text of ExtensionData: headers of NServiceBus or Rebus, or other bytes.

    What begins as XML or JSON is text, also where it is malformed: wrong bytes become U+FFFD.
    """
    found = format_and_text(data, 0)
    if found[0] == "binary" and data.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] in (b"<", b"{", b"["):
        return "text", data.decode("utf-8", "replace").removeprefix("\ufeff").rstrip("\0")
    return found
