"""Byte maps: the fields of a payload in the order of the wire, by the rows of the tables of protocols.

Kernels read packets by themselves, and the tests compare both on every vector.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple
from uuid import UUID

from msmqwire.columns.fields import SIZES, WireField
from msmqwire.columns.schema import Table
from msmqwire.errors import printable

_OPERATORS: dict[type[ast.AST], Any] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Eq: operator.eq, ast.Lt: operator.lt,
    ast.Gt: operator.gt, ast.GtE: operator.ge,
}  # fmt: skip
_SHOWN_BYTES = 16
_SHOWN_CHARACTERS = 64


class FieldSpan(NamedTuple):
    """The bytes of a field in a payload; ``end`` is that of the payload where it is truncated.

    ``name`` is that of the field, after those of the fields that it is in: ``NotificationUpdate[0].Command``. ``value``
    is a number, bytes, or the value of a PROPID; None where that has no value.
    """

    name: str
    field: WireField
    start: int
    end: int
    truncated: bool
    value: Any


@cache
def layouts(table: Table) -> dict[str, tuple[WireField, ...]]:
    """The byte maps of a table, by their names."""
    found: dict[str, list[WireField]] = {}
    for header in table.headers:
        if header.layout is not None:
            found.setdefault(header.layout or table.name, []).extend(header.on_the_wire())
    return {name: tuple(fields) for name, fields in found.items()}


def byte_parts(table: Table, layout: str, payload: bytes) -> Iterator[FieldSpan]:
    """The fields of a payload in the order of the wire, up to the first that is truncated; then bytes of no field."""
    reader = _Reader(table, payload)
    yield from reader.parts(layouts(table)[layout])
    if reader.at < len(payload):
        yield FieldSpan("trailing bytes", WireField("", "bytes"), reader.at, len(payload), False, payload[reader.at :])


def rules_broken(table: Table, layout: str, payload: bytes) -> set[str]:
    """The faults and violations of a payload by the expressions of its fields, up to the first that is truncated."""
    reader = _Reader(table, payload)
    parts = reader.parts(layouts(table)[layout])
    return {code for part in parts if not part.truncated for code in reader.broken(part.field)}


def byte_lines(table: Table, layout: str, payload: bytes) -> Iterator[str]:
    """The byte map as text: a line with the offset, the bytes, the name and the value of each field."""
    for part in byte_parts(table, layout, payload):
        data = payload[part.start : part.end]
        shown = data[:_SHOWN_BYTES].hex(" ") + (" ..." if len(data) > _SHOWN_BYTES else "")
        note = "  truncated" if part.truncated else ""
        yield f"{part.start:6}  {shown:51}  {part.name}  {_shown(part)}{note}".rstrip()


def _shown(part: FieldSpan) -> str:
    if part.field.type == "guid":
        return str(UUID(bytes_le=part.value)) if len(part.value) == 16 else ""
    if part.field.type in ("text", "string"):
        return printable(part.value.decode("utf-16-le", "replace").rstrip("\0"))[:_SHOWN_CHARACTERS]
    if part.field.type.startswith("u"):
        number = f"{part.value}" if part.value < 10 else f"{part.value} (0x{part.value:x})"
        return f"{number} {part.field.names.get(part.value, '')}"
    if part.field.type == "value" and part.value is not None:
        return f"{part.value.name} {_shown_value(part.value.value)}"
    return f"{part.end - part.start} bytes"


def _shown_value(value: Any) -> str:
    return f"{value.nbytes} bytes" if hasattr(value, "nbytes") else printable(str(value))[:_SHOWN_CHARACTERS]


class _Reader:
    """Reads the fields of a payload; ``known`` are the numbers in expressions."""

    def __init__(self, table: Table, payload: bytes) -> None:
        self.at = 0
        self._payload = payload
        self._codec = table.codec
        self._known: dict[str, Any] = {"position": 0, "left": len(payload)}
        self._is_truncated = False

    def parts(self, fields: tuple[WireField, ...], path: str = "") -> Iterator[FieldSpan]:
        """The fields from here on, up to the first that is truncated."""
        for field in fields:
            if field.when and not self._value(field.when):
                continue
            name, count = path + field.name, self._value(field.repeat) if field.repeat else 1
            if field.repeat and field.id:
                self._known[field.id] = []
            for place in range(count):
                one = f"{name}[{place}]" if field.repeat else name
                yield from self.parts(field.fields, f"{one}.") if field.fields else self._part(one, field, place)
                if self._is_truncated:
                    return

    def broken(self, field: WireField) -> Iterator[str]:
        """The rules of the field that was read last that its value breaks."""
        return (code for code, expression in field.checks.items() if self._value(expression))

    def _part(self, name: str, field: WireField, place: int) -> Iterator[FieldSpan]:
        size = self._size(field, place)
        if size <= 0:
            return
        start, data = self.at, self._payload[self.at : self.at + size]
        self._is_truncated = len(data) < size
        self.at += len(data)
        self._known |= {"position": self.at, "left": len(self._payload) - self.at}
        value: Any = data
        if field.type.startswith("u"):
            value = int.from_bytes(data, "little")
        elif field.type == "value":
            value = None if self._is_truncated else self._codec["property"](self._known["property_id"][place], data)
        if field.id and field.repeat:
            self._known[field.id].append(value)
        elif field.id:
            self._known[field.id] = value
        yield FieldSpan(name, field, start, self.at, self._is_truncated, value)

    def _size(self, field: WireField, place: int) -> int:
        left = len(self._payload) - self.at
        if field.type == "pad":
            return min(-self.at % 4, int(self._known.get("packet_size", len(self._payload))) - self.at)
        if field.type == "string":
            units = range(self.at, len(self._payload) - 1, 2)
            ends = (at for at in units if self._payload[at : at + 2] == b"\0\0")
            return next(ends, len(self._payload) + 2) + 2 - self.at
        if field.type == "value":
            # What cannot be sized is everything that is left, and more
            rest = memoryview(self._payload)[self.at :]
            try:
                return int(self._codec["property_size"](self._known["property_id"][place], rest))
            except ValueError:
                return left + 1
        return int(SIZES.get(field.type) or self._value(field.size))

    def _value(self, expression: str) -> int:
        return _value(_parsed(expression), self._known)


@cache
def _parsed(expression: str) -> ast.expr:
    return ast.parse(expression, mode="eval").body


def _value(expression: ast.expr, known: dict[str, Any]) -> int:
    """The value of an expression of ``WireField`` that says when it is there, or its size."""
    match expression:
        case ast.Constant(value=int(number)):
            return number
        case ast.Name(id=name):
            return int(known[name])
        case ast.BoolOp(op=ast.And(), values=parts):
            return all(_value(part, known) for part in parts)
        case ast.BoolOp(op=ast.Or(), values=parts):
            return any(_value(part, known) for part in parts)
        case ast.UnaryOp(op=ast.Not(), operand=part):
            return not _value(part, known)
        case ast.BinOp(left=left, op=sign, right=right) | ast.Compare(left=left, ops=[sign], comparators=[right]):
            return int(_OPERATORS[type(sign)](_value(left, known), _value(right, known)))
        case ast.Call(func=ast.Name(id="has"), args=[number, mask]):
            return _value(number, known) & _value(mask, known) != 0
        case ast.Call(func=ast.Name(id="bits"), args=[number, shift, width]):
            return _value(number, known) >> _value(shift, known) & (1 << _value(width, known)) - 1
    raise ValueError(f"{ast.unparse(expression)} is no expression of a field")
