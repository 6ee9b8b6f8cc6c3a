"""Message bodies as people read them: the types of bodies, and the texts that ``_bodies.pyx`` leaves to Python."""

from __future__ import annotations

import re
import struct
from datetime import datetime, timedelta
from decimal import Decimal
from uuid import UUID

BODY_FORMATS = ("empty", "encrypted", "xml", "text", "value", "dotnet_binary", "binary")

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
# [MS-MQMQ] 2.2.12 and [MS-OLEPS] 2.15; 768 is what the BinaryMessageFormatter of .NET writes
BODY_TYPES = {
    **_BASE_TYPES,
    0x0300: "VT_BINARY_OBJECT",
    **{_VECTOR | code: f"{name}|VT_VECTOR" for code, name in _BASE_TYPES.items() if code > 1},
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
# By the type, the bytes of a body that may be a value
VALUE_SIZES = {**{code: layout.size for code, layout in _STRUCTS.items()}, _CLSID: 16}
#: The begin of .NET's BinaryFormatter: a SerializationHeaderRecord, type 0, two ids, version 1.0 ([MS-NRBF] 2.6.1).
DOTNET_HEADER = r"(?s)\A\x00.{8}\x01\x00{7}"
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


def untyped_text(body: bytes) -> str | None:
    """The text of a body in UTF-8, or in UTF-16 with a byte order mark or before ``<``; None for other bytes."""
    encoding = next((name for mark, name in _MARKS if body.startswith(mark)), "utf-8")
    try:
        text = body.decode(encoding).removeprefix("\ufeff").rstrip("\0")
    except UnicodeDecodeError:
        return None
    return None if not text or _CONTROL.search(text) else text
