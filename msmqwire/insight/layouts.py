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

from msmqwire.columns.fields import SIZES, Field
from msmqwire.columns.schema import Table
from msmqwire.mqqb import MESSAGES, SESSIONS
from msmqwire.mqsd import TOPOLOGY


class Part(NamedTuple):
    """The bytes of a field in a payload; ``end`` is that of the payload where it is truncated."""

    field: Field
    start: int
    end: int
    truncated: bool
    value: Any


def _layouts(table: Table) -> dict[str, tuple[Field, ...]]:
    """The byte maps of a table, by their names."""
    found: dict[str, list[Field]] = {}
    for header in table.headers:
        found.setdefault(header.layout or table.name, []).extend(header.on_the_wire())
    return {name: tuple(fields) for name, fields in found.items()}


LAYOUTS: dict[str, tuple[Field, ...]] = {
    **_layouts(TOPOLOGY),
    **_layouts(MESSAGES),
    **_layouts(SESSIONS),
    "notifications": (
        Field("Version", "u8", id="version", column="version"),
        Field("NumberOfUpdateNotifications", "u8", id="updates"),
        Field("NotificationUpdate", "bytes", when="version == 1", size="left"),
        Field("NotificationBody", "text", when="version == 2", size="left"),
    ),
}

_OPERATORS: dict[type[ast.AST], Any] = {
    ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Eq: operator.eq, ast.Lt: operator.lt, ast.Gt: operator.gt,
}  # fmt: skip


def field_ids(layout: str) -> Iterator[tuple[str, Field]]:
    """The fields of a layout with names that are unique in it: the column, or else the name in small letters.

    >>> [name for name, _ in field_ids("ping")]
    ['flags', 'signature', 'cookie', 'queue_manager']
    """
    used: set[str] = set()
    columns = {field.column for field in LAYOUTS[layout]}
    for field in LAYOUTS[layout]:
        name = field.column or field.id or re.sub(r"[^a-z0-9]+", "_", field.name.lower())
        base, number = name, 2
        while name in used or (name in columns and not field.column):
            name, number = f"{base}_{number}", number + 1
        used.add(name)
        yield name, field


def guess(payload: bytes) -> str:
    """The layout of a payload, by the constants that begin it; ``topology`` if it has none.

    >>> guess(bytes.fromhex("0000485504000000d1587355509195954997b6e611ea26c6"))
    'ping'
    """
    if payload[4:8] == b"LIOR":
        return "sessions" if payload[2] & 8 else "messages"
    if payload[2:4] == b"\x48\x55":
        return "ping"
    return "notifications" if payload[:1] in (b"\1", b"\2") else "topology"


def byte_map(layout: str, payload: bytes) -> Iterator[Part]:
    """The fields of a payload in the order of the wire, up to the first that is truncated; then bytes of no field.

    Examples
    --------
    >>> for part in byte_map("ping", bytes.fromhex("0000485504000000d1587355509195954997b6e611ea26c6")):
    ...     print(part.start, part.end, part.field.name, part.value)
    0 2 Ping.Flags 0
    2 4 Ping.Signature 21832
    4 8 Ping.Cookie 4
    8 24 Ping.QMGuid b'\\xd1XsUP\\x91\\x95\\x95I\\x97\\xb6\\xe6\\x11\\xea&\\xc6'
    """
    known: dict[str, Any] = {"position": 0, "left": len(payload)}
    at = 0
    for field in LAYOUTS[layout]:
        if field.when and not _value(_parsed(field.when), known):
            continue
        size = -at % 4 if field.type == "pad" else SIZES.get(field.type) or _value(_parsed(field.size), known)
        if field.type == "pad":
            size = min(size, known.get("packet_size", len(payload)) - at)
        if size <= 0:
            continue
        data = payload[at : at + size]
        value = int.from_bytes(data, "little") if field.type.startswith("u") else data
        yield Part(field, at, at + len(data), len(data) < size, value)
        if len(data) < size:
            return
        at += size
        known |= {"position": at, "left": len(payload) - at, **({field.id: value} if field.id else {})}
    if at < len(payload):
        yield Part(Field("trailing bytes", "bytes"), at, len(payload), False, payload[at:])


@cache
def _parsed(expression: str) -> ast.expr:
    return ast.parse(expression, mode="eval").body


def _value(expression: ast.expr, known: dict[str, Any]) -> int:
    """The value of an expression of ``Field`` that says when it is there, or its size."""
    match expression:
        case ast.Constant(value=int(number)):
            return number
        case ast.Name(id=name):
            return int(known[name])
        case ast.BoolOp(op=ast.And(), values=parts):
            return all(_value(part, known) for part in parts)
        case ast.BoolOp(op=ast.Or(), values=parts):
            return any(_value(part, known) for part in parts)
        case ast.BinOp(left=left, op=sign, right=right) | ast.Compare(left=left, ops=[sign], comparators=[right]):
            return int(_OPERATORS[type(sign)](_value(left, known), _value(right, known)))
        case ast.Call(func=ast.Name(id="has"), args=[number, mask]):
            return _value(number, known) & _value(mask, known) != 0
        case ast.Call(func=ast.Name(id="bits"), args=[number, shift, width]):
            return _value(number, known) >> _value(shift, known) & (1 << _value(width, known)) - 1
    raise ValueError(f"{ast.unparse(expression)} is no expression of a field")
