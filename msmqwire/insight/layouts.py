"""The fields of each packet in the order of the wire: byte maps, and what dissectors are written from.

The rows are those of the tables of protocols; kernels read packets by themselves, and the tests compare both on every
vector.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

from msmqwire import propvariant
from msmqwire.columns.fields import SIZES, WireField
from msmqwire.columns.schema import Table
from msmqwire.errors import DecodeError
from msmqwire.mqcn import NOTIFICATIONS, PropertyValue
from msmqwire.mqqb import MESSAGES, SESSIONS
from msmqwire.mqqb.framing import FLAG_INTERNAL, has_signature
from msmqwire.mqsd import TOPOLOGY
from msmqwire.properties import type_of


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


def _layouts(table: Table) -> dict[str, tuple[WireField, ...]]:
    """The byte maps of a table, by their names."""
    found: dict[str, list[WireField]] = {}
    for header in table.headers:
        if header.layout is None:
            continue
        found.setdefault(header.layout or table.name, []).extend(header.on_the_wire())
    return {name: tuple(fields) for name, fields in found.items()}


LAYOUTS: dict[str, tuple[WireField, ...]] = {
    **_layouts(TOPOLOGY),
    **_layouts(MESSAGES),
    **_layouts(SESSIONS),
    **_layouts(NOTIFICATIONS),
}

_OPERATORS: dict[type[ast.AST], Any] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Eq: operator.eq, ast.Lt: operator.lt,
    ast.Gt: operator.gt, ast.GtE: operator.ge,
}  # fmt: skip


def field_ids(fields: tuple[WireField, ...]) -> Iterator[tuple[str, WireField]]:
    """Fields with names that are unique among them: the column, or else the name in small letters.

    >>> [name for name, _ in field_ids(LAYOUTS["ping"])]
    ['flags', 'signature', 'cookie', 'queue_manager']
    """
    used: set[str] = set()
    columns = {field.shown for field in fields}
    for field in fields:
        name = field.shown or field.id or re.sub(r"[^a-z0-9]+", "_", field.name.lower())
        base, number = name, 2
        while name in used or (name in columns and not field.shown):
            name, number = f"{base}_{number}", number + 1
        used.add(name)
        yield name, field


def guess(payload: bytes) -> str:
    """The layout of a payload, by the constants that begin it; ``topology`` if it has none.

    >>> guess(bytes.fromhex("0000485504000000d1587355509195954997b6e611ea26c6"))
    'ping'
    """
    if has_signature(payload):
        return "sessions" if payload[2] & FLAG_INTERNAL else "messages"
    if payload[2:4] == b"\x48\x55":
        return "ping"
    return "notifications" if payload[:1] in (b"\1", b"\2") else "topology"


def byte_map(layout: str, payload: bytes) -> Iterator[FieldSpan]:
    """The fields of a payload in the order of the wire, up to the first that is truncated; then bytes of no field.

    Examples
    --------
    >>> for part in byte_map("ping", bytes.fromhex("0000485504000000d1587355509195954997b6e611ea26c6")):
    ...     print(part.start, part.end, part.name, part.value)
    0 2 Ping.Flags 0
    2 4 Ping.Signature 21832
    4 8 Ping.Cookie 4
    8 24 Ping.QMGuid b'\\xd1XsUP\\x91\\x95\\x95I\\x97\\xb6\\xe6\\x11\\xea&\\xc6'
    """
    reader = _Reader(payload)
    yield from reader.parts(LAYOUTS[layout])
    if reader.at < len(payload):
        yield FieldSpan("trailing bytes", WireField("", "bytes"), reader.at, len(payload), False, payload[reader.at :])


def broken_rules(layout: str, payload: bytes) -> set[str]:
    """The faults and violations of a payload by the expressions of its fields, up to the first that is truncated.

    >>> broken_rules("ping", bytes.fromhex("0000475504000000d1587355509195954997b6e611ea26c6"))
    {'bad_signature'}
    """
    reader = _Reader(payload)
    return {code for part in reader.parts(LAYOUTS[layout]) if not part.truncated for code in reader.broken(part.field)}


class _Reader:
    """Reads the fields of a payload; ``known`` are the numbers in expressions."""

    def __init__(self, payload: bytes) -> None:
        self.at = 0
        self._payload = payload
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
            value = None if self._is_truncated else _property(self._known["property_id"][place], data)
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
                return propvariant.size(type_of(self._known["property_id"][place]) or 0, rest)
            except ValueError:
                return left + 1
        return int(SIZES.get(field.type) or self._value(field.size))

    def _value(self, expression: str) -> int:
        return _value(_parsed(expression), self._known)


def _property(propid: int, data: bytes) -> PropertyValue | None:
    try:
        return PropertyValue(propid, propvariant.decode(type_of(propid) or 0, data))
    except DecodeError:
        return None


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
