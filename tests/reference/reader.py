"""What the oracles share: faults, and a reader that takes fields off the front of a payload, with ``struct`` alone."""

from __future__ import annotations

import struct
from typing import Any, NamedTuple


class Fault(NamedTuple):
    """Why a payload cannot be decoded: what, in which field, at which byte."""

    code: str
    field: str
    offset: int


class MalformedError(Exception):
    """Carries the first fault out of the reader."""

    def __init__(self, code: str, field_name: str, offset: int) -> None:
        super().__init__(code, field_name, offset)
        self.fault = Fault(code, field_name, offset)


class Span(NamedTuple):
    """Bytes of the payload, and where they stand in it."""

    offset: int
    data: bytes

    @property
    def text(self) -> str:
        """The same as UTF-16LE code units, lone surrogates and all."""
        return self.data.decode("utf-16-le", "surrogatepass")


def placeless(value: Any) -> Any:
    """A value of an oracle, or a row, without the places of its texts and bytes."""
    if isinstance(value, Span):
        return value.data
    if isinstance(value, dict):
        return {name: placeless(item) for name, item in value.items()}
    if isinstance(value, tuple):
        items = map(placeless, value)
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    return value


class Reader:
    """Takes fields off the front of a payload; a field that is not there whole is ``truncated``."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.position = 0
        self.taken: list[tuple[str, int, int]] = []  # name, offset and size of each field

    @property
    def left(self) -> int:
        return len(self.data) - self.position

    def take(self, name: str, size: int) -> bytes:
        if size > self.left:
            raise MalformedError("truncated", name, self.position)
        start, self.position = self.position, self.position + size
        self.taken.append((name, start, size))
        return self.data[start : self.position]

    def u8(self, name: str) -> int:
        value: int = struct.unpack("<B", self.take(name, 1))[0]
        return value

    def u16(self, name: str) -> int:
        value: int = struct.unpack("<H", self.take(name, 2))[0]
        return value

    def u32(self, name: str) -> int:
        value: int = struct.unpack("<I", self.take(name, 4))[0]
        return value
