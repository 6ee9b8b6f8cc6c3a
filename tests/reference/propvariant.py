"""The oracle of PROPVARIANT ([MS-MQCN] 2.2.3): values of the sixteen types, with ``struct`` alone.

A value carries no tag: its type comes from its PROPID, by ``propids.csv`` beside this file, which was typed from
[MS-MQMQ] 2.3 and owes nothing to the package.
"""

from __future__ import annotations

import csv
import struct
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from tests.reference.reader import MalformedError

#: VARTYPE codes, [MS-MQMQ] 2.2.12.
VT_VECTOR = 0x1000
CODES = {
    "VT_I2": 2,
    "VT_I4": 3,
    "VT_BOOL": 11,
    "VT_VARIANT": 12,
    "VT_I1": 16,
    "VT_UI1": 17,
    "VT_UI2": 18,
    "VT_UI4": 19,
    "VT_I8": 20,
    "VT_UI8": 21,
    "VT_LPWSTR": 31,
    "VT_BLOB": 65,
    "VT_CLSID": 72,
}
NUMBERS = {
    "VT_I2": "<h",
    "VT_I4": "<i",
    "VT_I1": "<b",
    "VT_UI1": "<B",
    "VT_UI2": "<H",
    "VT_UI4": "<I",
    "VT_I8": "<q",
    "VT_UI8": "<Q",
}
VECTORS = ("VT_UI1|VT_VECTOR", "VT_UI4|VT_VECTOR", "VT_CLSID|VT_VECTOR", "VT_LPWSTR|VT_VECTOR")

#: Every type that has a value on the wire; VT_UI1|VT_VECTOR is not in 2.2.3 but three PROPIDs are of it.
TYPES = (*NUMBERS, "VT_BOOL", "VT_LPWSTR", "VT_BLOB", "VT_CLSID", *VECTORS)

#: The smallest element of each counted type: what a count is checked against.
ELEMENTS = {
    "VT_BLOB": 1,
    "VT_UI1|VT_VECTOR": 1,
    "VT_UI4|VT_VECTOR": 4,
    "VT_CLSID|VT_VECTOR": 16,
    "VT_LPWSTR|VT_VECTOR": 2,
}

FIELD = "PropertyValue"


class Row(NamedTuple):
    """One PROPID of [MS-MQMQ] 2.3."""

    name: str
    number: int
    type: str
    object: str
    section: str


@cache
def propids() -> tuple[Row, ...]:
    """All 186 of them, in the order of the specification."""
    text = (Path(__file__).parent / "propids.csv").read_text("utf-8")
    return tuple(
        Row(item["name"], int(item["number"]), item["type"], item["object"], item["section"])
        for item in csv.DictReader(text.splitlines())
    )


#: The type of every PROPID that a value can be sized by: the management groups share their numbers, 1 to 27.
TYPE_OF = {row.number: row.type for row in propids() if row.number >= 101}


def code(type_: str) -> int:
    """The VARTYPE code of a type, e.g. 0x1013 of ``VT_UI4|VT_VECTOR``."""
    base, _, vector = type_.partition("|")
    return CODES[base] | (VT_VECTOR if vector else 0)


def end_of_string(data: bytes, at: int) -> int:
    """Where the terminator of the string at ``at`` stands; -1 when there is none."""
    end = data.find(b"\0\0", at)
    while end >= 0 and (end - at) % 2:
        end = data.find(b"\0\0", end + 1)
    return end


def text_of(data: bytes) -> str:
    """Code units as a string, lone surrogates and all."""
    return data.decode("utf-16-le", "surrogatepass")


def units_of(text: str) -> bytes:
    """The inverse of ``text_of``."""
    return text.encode("utf-16-le", "surrogatepass")


def read(type_: str, data: bytes, at: int = 0, field: str = FIELD) -> tuple[Any, int]:
    """The value at ``at``, and where it ends: int, bool, str, bytes (blobs; a GUID's 16), tuple (other vectors)."""
    left = len(data) - at
    if form := NUMBERS.get(type_):
        if struct.calcsize(form) > left:
            raise MalformedError("truncated", field, at)
        return struct.unpack_from(form, data, at)[0], at + struct.calcsize(form)
    if type_ == "VT_BOOL":
        if left < 2:
            raise MalformedError("truncated", field, at)
        (word,) = struct.unpack_from("<H", data, at)
        if word not in (0, 0xFFFF):
            raise MalformedError("bad_value", field, at)
        return word == 0xFFFF, at + 2
    if type_ == "VT_CLSID":
        if left < 16:
            raise MalformedError("truncated", field, at)
        return data[at : at + 16], at + 16
    if type_ == "VT_LPWSTR":
        end = end_of_string(data, at)
        if end < 0:
            raise MalformedError("bad_terminator", field, at)
        return text_of(data[at:end]), end + 2
    return _read_counted(type_, data, at, field)


def _read_counted(type_: str, data: bytes, at: int, field: str) -> tuple[Any, int]:
    if len(data) - at < 4:
        raise MalformedError("truncated", field, at)
    (count,) = struct.unpack_from("<I", data, at)
    first = at + 4
    if count * ELEMENTS[type_] > len(data) - first:
        raise MalformedError("bad_count", field, at)
    if type_ == "VT_LPWSTR|VT_VECTOR":
        texts = []
        for _ in range(count):
            end = end_of_string(data, first)
            if end < 0:
                raise MalformedError("bad_terminator", field, at)
            texts.append(text_of(data[first:end]))
            first = end + 2
        return tuple(texts), first
    end = first + count * ELEMENTS[type_]
    if type_ == "VT_UI4|VT_VECTOR":
        return struct.unpack_from(f"<{count}I", data, first), end
    if type_ == "VT_CLSID|VT_VECTOR":
        return tuple(data[i : i + 16] for i in range(first, end, 16)), end
    return data[first:end], end
