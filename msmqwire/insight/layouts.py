"""The byte maps of all packets, by their names, which dissectors are written from."""

from __future__ import annotations

import re
from collections.abc import Iterator

from msmqwire.columns.byte_map import FieldSpan, byte_lines, byte_parts, layouts, rules_broken
from msmqwire.columns.fields import WireField
from msmqwire.mqcn import NOTIFICATIONS
from msmqwire.mqqb import MESSAGES, SESSIONS
from msmqwire.mqqb.framing import FLAG_INTERNAL, has_signature
from msmqwire.mqsd import TOPOLOGY

#: The table of each byte map.
_TABLES = {name: table for table in (TOPOLOGY, MESSAGES, SESSIONS, NOTIFICATIONS) for name in layouts(table)}
LAYOUTS: dict[str, tuple[WireField, ...]] = {name: layouts(table)[name] for name, table in _TABLES.items()}


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
    return byte_parts(_TABLES[layout], layout, payload)


def broken_rules(layout: str, payload: bytes) -> set[str]:
    """The faults and violations of a payload by the expressions of its fields, up to the first that is truncated.

    >>> broken_rules("ping", bytes.fromhex("0000475504000000d1587355509195954997b6e611ea26c6"))
    {'bad_signature'}
    """
    return rules_broken(_TABLES[layout], layout, payload)


def lines(layout: str, payload: bytes) -> Iterator[str]:
    """The byte map as text, a line for each field."""
    return byte_lines(_TABLES[layout], layout, payload)
