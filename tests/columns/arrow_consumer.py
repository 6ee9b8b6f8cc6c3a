"""An Arrow consumer in ``ctypes``: reads the two capsules by the C data interface, without pyarrow.

https://arrow.apache.org/docs/format/CDataInterface.html
"""

from __future__ import annotations

import ctypes
import struct
from typing import Any


class Schema(ctypes.Structure):
    """``struct ArrowSchema``."""


class Array(ctypes.Structure):
    """``struct ArrowArray``."""


Schema._fields_ = [
    ("format", ctypes.c_char_p),
    ("name", ctypes.c_char_p),
    ("metadata", ctypes.c_void_p),
    ("flags", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("children", ctypes.POINTER(ctypes.POINTER(Schema))),
    ("dictionary", ctypes.POINTER(Schema)),
    ("release", ctypes.CFUNCTYPE(None, ctypes.POINTER(Schema))),
    ("private_data", ctypes.c_void_p),
]
Array._fields_ = [
    ("length", ctypes.c_int64),
    ("null_count", ctypes.c_int64),
    ("offset", ctypes.c_int64),
    ("n_buffers", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("buffers", ctypes.POINTER(ctypes.c_void_p)),
    ("children", ctypes.POINTER(ctypes.POINTER(Array))),
    ("dictionary", ctypes.POINTER(Array)),
    ("release", ctypes.CFUNCTYPE(None, ctypes.POINTER(Array))),
    ("private_data", ctypes.c_void_p),
]

_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype = ctypes.c_void_p
_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]

#: Buffers of an array of each format ([validity, ...]).
_BUFFERS = {"b": 2, "w:16": 2, "u": 3, "z": 3, "Z": 3, "+l": 2, "+s": 1}
#: Bytes of a number of each format.
_WIDTHS = {"c": 1, "s": 2, "i": 4, "C": 1, "S": 2, "I": 4, "L": 8, "l": 8, "tsn:UTC": 8}


def schema_of(capsule: object) -> Schema:
    return Schema.from_address(_pointer(capsule, b"arrow_schema"))


def array_of(capsule: object) -> Array:
    return Array.from_address(_pointer(capsule, b"arrow_array"))


def metadata_of(schema: Schema) -> dict[str, str]:
    """The metadata of a field: a count, then keys and values behind their lengths."""
    if not schema.metadata:
        return {}
    at = schema.metadata
    texts = []
    (count,) = struct.unpack("=i", ctypes.string_at(at, 4))
    at += 4
    for _ in range(2 * count):
        (size,) = struct.unpack("=i", ctypes.string_at(at, 4))
        texts.append(ctypes.string_at(at + 4, size).decode())
        at += 4 + size
    return dict(zip(texts[::2], texts[1::2], strict=True))


def _bit(address: int, index: int) -> bool:
    return bool(ctypes.string_at(address + index // 8, 1)[0] >> (index % 8) & 1)


def _offset(address: int, index: int, width: int) -> int:
    return int.from_bytes(ctypes.string_at(address + width * index, width), "little")


def _value(schema: Schema, array: Array, index: int) -> Any:
    form = schema.format.decode()
    buffers = array.buffers
    if form == "+s":
        return {
            schema.children[i].contents.name.decode(): item(
                schema.children[i].contents, array.children[i].contents, index
            )
            for i in range(schema.n_children)
        }
    if form == "b":
        return _bit(buffers[1], index)
    if form == "w:16":
        return ctypes.string_at(buffers[1] + 16 * index, 16)
    if form in _WIDTHS:
        raw = ctypes.string_at(buffers[1] + _WIDTHS[form] * index, _WIDTHS[form])
        number = int.from_bytes(raw, "little", signed=form in ("c", "s", "i", "l", "tsn:UTC"))
        return item(schema.dictionary.contents, array.dictionary.contents, number) if schema.dictionary else number
    width = 8 if form == "Z" else 4
    start, stop = _offset(buffers[1], index, width), _offset(buffers[1], index + 1, width)
    if form == "+l":
        child = array.children[0].contents
        assert stop <= child.length
        return [item(schema.children[0].contents, child, i) for i in range(start, stop)]
    raw = ctypes.string_at(buffers[2] + start, stop - start)
    return raw.decode() if form == "u" else raw


def item(schema: Schema, array: Array, index: int) -> Any:
    """One value of an array; None when null."""
    validity = array.buffers[0]
    if validity and not _bit(validity, array.offset + index):
        return None
    return _value(schema, array, array.offset + index)


def check(schema: Schema, array: Array) -> None:
    """The promises of the interface that a consumer relies on, for an array and its children."""
    assert array.release
    assert schema.release
    assert array.offset == 0
    assert array.n_buffers == _BUFFERS.get(schema.format.decode(), 2)
    assert array.n_children == schema.n_children
    assert all(buffer is None or buffer % 64 == 0 for buffer in array.buffers[: array.n_buffers])
    nulls = 0
    if array.buffers[0]:
        nulls = sum(not _bit(array.buffers[0], i) for i in range(array.length))
    assert array.null_count == nulls
    for i in range(schema.n_children):
        child = array.children[i].contents
        assert schema.format == b"+l" or child.length >= array.length
        check(schema.children[i].contents, child)


def to_list(schema: Schema, array: Array) -> list[Any]:
    """Every value of an array."""
    return [item(schema, array, i) for i in range(array.length)]
