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
    for flag, suffix in ((0x1000, "VECTOR"), (0x2000, "ARRAY")):
        if code - flag > 1 and code - flag in _NAMES:
            return f"VT_{_NAMES[code - flag]}|VT_{suffix}"
    return None


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
        return "dotnet_binary", _object_text(body[17:])
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
    if text is not None:
        return _text_format(text), text
    if name == "LPSTR":
        while body.endswith(b"\0"):
            body = body[:-1]
        return "ansi_text", body.decode("cp1252", errors="replace")
    return _declared(body) or _interchange(body) or _wide(body) or ("binary", None)


def readable_extension(data: bytes) -> tuple[str, str | None]:
    """The format and the text of ExtensionData: what begins as a document is text, whatever follows."""
    found = readable(data, 0)
    without_mark = data[3:] if data.startswith(b"\xef\xbb\xbf") else data
    if found[0] != "binary" or without_mark.lstrip(b" \t\n\r\v\f")[:1] not in (b"<", b"{", b"["):
        return found
    text = without_mark.decode("utf-8", errors="replace")
    while text.endswith("\0"):
        text = text[:-1]
    return _text_format(text), text


def _object_text(records: bytes) -> str | None:
    """[MS-NRBF]: BinaryObjectString, or ArraySinglePrimitive of bytes, and MessageEnd."""
    if records[:1] == b"\x06":
        size = shift = 0
        for at in range(5, 10):
            if at >= len(records):
                return None
            size += (records[at] & 0x7F) << shift
            shift += 7
            if records[at] < 0x80:
                break
        else:
            return None
        start = at + 1
    elif records[:1] == b"\x0f" and len(records) >= 10 and records[9] == 2:
        size, start = int.from_bytes(records[5:9], "little"), 10
    else:
        return None
    if len(records) != start + size + 1 or records[-1] != 0x0B:
        return None
    return _sniffed(records[start:-1])


_ENCODINGS = (
    "utf-8", "utf-16", "utf-16le", "utf-16be", "us-ascii", "koi8-r", "koi8-u", "shift_jis",
    "gbk", "gb2312", "gb18030", "big5",
)  # fmt: skip
_NUMBERED_ENCODINGS = {"iso-8859-": (1, 2), "iso8859-": (1, 2), "windows-": (3, 4), "cp": (3, 4)}


def _declared(body: bytes) -> tuple[str, str] | None:
    """XML in the encoding that it declares."""
    head = body.partition(b"?>")[0]
    if not (head.startswith(b"<?xml") and head[5:6].isspace()):
        return None
    before, found, after = head.partition(b"encoding")
    value = after.lstrip()[1:].lstrip() if after.lstrip()[:1] == b"=" else b""
    if not found or b">" in before or len(before) > 105 or value[:1] not in (b'"', b"'"):
        return None
    quoted, closed, _ = value[1:].partition(value[:1])
    name = quoted.decode("latin-1").lower()
    letters = name.rstrip("0123456789")
    numbered = len(name) - len(letters) in _NUMBERED_ENCODINGS.get(letters, ())
    if not closed or not (name in _ENCODINGS or numbered):
        return None
    try:
        text = body.decode("utf-8" if name.startswith("utf-16") else name, errors="replace")
    except LookupError:
        text = body.decode("utf-8", errors="replace")
    while text.endswith("\0"):
        text = text[:-1]
    return "xml", text


def _interchange(body: bytes) -> tuple[str, str] | None:
    """HL7 in MLLP, EDIFACT, and the preamble of net.msmq."""
    inner = body[1:].removesuffix(b"\r").removesuffix(b"\x1c")
    framed = body[:1] == b"\x0b" and body in (b"\x0b" + inner + b"\x1c", b"\x0b" + inner + b"\x1c\r")
    named = len(inner) >= 4 and all(0x41 <= letter <= 0x5A for letter in inner[:3])
    if framed and named and inner.endswith(b"\r") and b"\x1c" not in inner:
        return "hl7", inner.decode("utf-8", errors="replace")
    at = 0
    if body.startswith(b"UNA"):
        at = 9
        while body[at : at + 1].isspace():
            at += 1
    separator = body[at + 3 : at + 4]
    if body[at : at + 3] == b"UNB" and separator and not (separator.isalnum() or separator in b"_ \t\n\r\f\v"):
        level = body[at + 4 : at + 8]
        if level[:3] == b"UNO" and b"A" <= level[3:4] <= b"Y":
            parts = {"C": 1, "D": 2, "E": 5, "F": 7, "G": 3, "H": 4, "I": 6, "J": 8, "K": 9}
            part = parts.get(chr(level[3]))
            return "edifact", body.decode(f"iso-8859-{part}" if part else "utf-8", errors="replace")
    mode = body[:4] == b"\0\1\0\1" and body[4:5] in (b"\1", b"\2", b"\3", b"\4") and body[5:6] == b"\2"
    if mode and body[7:].startswith(b"net.msmq://"):
        return "net_msmq", body[7 : 7 + body[6]].decode("utf-8", errors="replace")
    return None


def _wide(body: bytes) -> tuple[str, str] | None:
    """XML or JSON in UTF-16 without a byte order mark, all of it."""
    for encoding in ("utf-16-le", "utf-16-be"):
        try:
            text = body.decode(encoding)
        except UnicodeDecodeError:
            continue
        while text.endswith("\0"):
            text = text[:-1]
        ends = text.strip()[:1] + text.strip()[-1:]
        if ends in ("<>", "{}", "[]") and not any(map(_is_control, text)):
            return _text_format(text), text
    return None


def _is_control(char: str) -> bool:
    return ord(char) == 0x7F or (ord(char) < 0x20 and char not in "\t\n\r")


def _text_format(text: str) -> str:
    if text.startswith("MSH|^~\\&|"):
        return "hl7"
    if text[:3] == "UNB" and text[4:7] == "UNO" and len(text) > 7 and ord(text[3]) < 0x80:
        return "edifact"
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
    if not text or any(map(_is_control, text)):
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
