"""The oracle of what people read: bodies of messages by BodyType, names of VARTYPEs, SIDs."""

from __future__ import annotations

import math
import struct
import uuid
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

# [MS-OLEPS] 2.15
_NAMES = {
    0: "EMPTY", 1: "NULL", 2: "I2", 3: "I4", 4: "R4", 5: "R8", 6: "CY", 7: "DATE", 8: "BSTR", 9: "DISPATCH",
    10: "ERROR", 11: "BOOL", 12: "VARIANT", 13: "UNKNOWN", 14: "DECIMAL", 16: "I1", 17: "UI1", 18: "UI2", 19: "UI4",
    20: "I8", 21: "UI8", 22: "INT", 23: "UINT", 30: "LPSTR", 31: "LPWSTR", 64: "FILETIME", 65: "BLOB", 66: "STREAM",
    67: "STORAGE", 68: "STREAMED_OBJECT", 69: "STORED_OBJECT", 70: "BLOB_OBJECT", 71: "CF", 72: "CLSID",
}  # fmt: skip


def body_type_name(code: int) -> str | None:
    """A VARTYPE by name; 0x300 is that of .NET's BinaryMessageFormatter."""
    if code == 0x300:
        return "VT_BINARY_OBJECT"
    if code in _NAMES:
        return f"VT_{_NAMES[code]}"
    scalar = code - 0x1000
    return f"VT_{_NAMES[scalar]}|VT_VECTOR" if scalar > 1 and scalar in _NAMES else None


def _shown_time(start: datetime, microseconds: float) -> str | None:
    try:
        return (start + timedelta(microseconds=microseconds)).isoformat()
    except (OverflowError, ValueError):
        return None


def _currency(number: int) -> str:
    sign, number = ("-" if number < 0 else ""), abs(number)
    return f"{sign}{number // 10000}.{number % 10000:04d}"


def _date(days: float) -> str | None:
    if not math.isfinite(days) or abs(days) > 4_000_000:
        return None
    try:
        return (datetime(1899, 12, 30) + timedelta(days)).isoformat()
    except OverflowError:
        return None


def _file_time(ticks: int) -> str | None:
    shown = _shown_time(datetime(1601, 1, 1), ticks // 10)
    return None if shown is None else f"{shown}Z"


_VALUES: dict[str, tuple[str, Callable[[Any], str | None]]] = {
    "I1": ("b", str), "UI1": ("B", str), "I2": ("h", str), "UI2": ("H", str), "I4": ("i", str), "UI4": ("I", str),
    "INT": ("i", str), "UINT": ("I", str), "I8": ("q", str), "UI8": ("Q", str), "R8": ("d", repr),
    "R4": ("f", lambda number: f"{number:.9g}"),
    "CY": ("q", _currency),
    "BOOL": ("h", lambda number: {0: "false", -1: "true"}.get(number)),
    "DATE": ("d", _date),
    "FILETIME": ("Q", _file_time),
    "CLSID": ("16s", lambda data: str(uuid.UUID(bytes_le=data))),
}  # fmt: skip


def readable(body: bytes, code: int) -> tuple[str, str | None]:
    """The format and the text of a body that is not encrypted."""
    if not body:
        return "empty", None
    if body[:1] == b"\0" and body[9:17] == b"\1\0\0\0\0\0\0\0":
        return "dotnet_binary", None
    name = _NAMES.get(code, "")
    text: str | None
    if name in ("BSTR", "LPWSTR") and len(body) % 2 == 0:
        text = body.decode("utf-16-le", errors="replace")
        while text.endswith("\0"):
            text = text[:-1]
        return _text_format(text), text
    layout, show = _VALUES.get(name, ("0s", str))
    if struct.calcsize("<" + layout) == len(body):
        shown = show(struct.unpack("<" + layout, body)[0])
        if shown is not None:
            return "value", shown
    text = _sniffed(body)
    return ("binary", None) if text is None else (_text_format(text), text)


def _text_format(text: str) -> str:
    for char in text:
        if char not in "\ufeff\t\r\n ":
            return "xml" if char == "<" else "text"
    return "text"


def _sniffed(body: bytes) -> str | None:
    encoding = "utf-8-sig"
    if body[:2] in (b"\xff\xfe", b"\xfe\xff"):
        encoding = "utf-16"
    elif body[:2] == b"<\0":
        encoding = "utf-16-le"
    try:
        text = body.decode(encoding)
    except UnicodeDecodeError:
        return None
    while text.endswith("\0"):
        text = text[:-1]
    if not text or any(ord(char) == 0x7F or (ord(char) < 0x20 and char not in "\t\n\r") for char in text):
        return None
    return text


def sid_text(sid: bytes) -> str | None:
    """SID in the form of [MS-DTYP] 2.4.2.1; None for bytes that are no SID."""
    try:
        revision, count, high, low = struct.unpack_from(">BBHI", sid)
        authorities = struct.unpack(f"<{count}I", sid[8:])
    except struct.error:
        return None
    if revision != 1 or count > 15:
        return None
    authority = f"0x{high:04x}{low:08x}" if high else str(low)
    return "-".join(["S", "1", authority, *map(str, authorities)])
