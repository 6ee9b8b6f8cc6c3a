"""The dissector for Wireshark, in Lua: the layouts of packets with names for numbers, texts, times and checks.

Wireshark loads it from the folder of personal Lua plugins, or with ``-X lua_script:msmq.lua``. Its code is in
``dissector.lua``; the tables in it are made of the layouts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from msmqwire import propvariant
from msmqwire.capture import TABLES
from msmqwire.columns.fields import SIZES, WireField, enumerated
from msmqwire.columns.schema import Enumeration
from msmqwire.insight.layouts import LAYOUTS, field_ids
from msmqwire.mqcn.schema import OPERATIONS
from msmqwire.mqqb.message.classes import MESSAGE_CLASSES
from msmqwire.properties import NUMBERED, TYPE_NAMES
from msmqwire.wire import ports
from msmqwire.wire.codes import FAULTS

_TYPES = {
    **{f"u{width}": f"uint{width}" for width in (8, 16, 32, 64)},
    "guid": "guid",
    "text": "string",
    "string": "string",
}
_WORDS = re.compile(r"\b[a-z_]\w*")


def dissector() -> str:
    """The dissector as text."""
    parts = [f"layouts.{layout} = {_fields(layout, fields)}" for layout, fields in LAYOUTS.items()]
    experts = [f"experts.{layout} = {{\n{''.join(_experts(layout))}}}" for layout in LAYOUTS]
    text = Path(__file__).with_name("dissector.lua").read_text("utf-8")
    text = text.replace("--@LAYOUTS@", "\n".join(parts)).replace("--@EXPERTS@", "\n".join(experts))
    for name in ("SESSION_PORT", "DISCOVERY_PORT", "PING_PORT"):
        text = text.replace(f"@{name}@", str(getattr(ports, name)))
    text = text.replace("{} --@CLASSES@", _table(MESSAGE_CLASSES)).replace("{} --@PROPIDS@", _propids())
    return text.replace("{} --@OPERATIONS@", _table(dict(enumerate(OPERATIONS))))


def _fields(layout: str, fields: tuple[WireField, ...]) -> str:
    return "{\n" + "".join(f"  {_field(layout, name, field)},\n" for name, field in field_ids(fields)) + "}"


def _field(layout: str, name: str, field: WireField) -> str:
    abbreviation = f"msmq.{layout}.{field.shown or name}"
    members = [f'name = "{field.name}", type = "{field.type}"']
    if field.fields:
        members.append(f"fields = {_fields(layout, field.fields)}")
    elif field.type != "value":
        members.append(f"proto = {_proto(abbreviation, field)}")
    if field.id:
        members.append(f'id = "{field.id}"')
    if field.time:
        members.append(f'time = "{field.time}"')
    members += [
        f"{member} = {_function(text)}"
        for member, text in (("when", field.when), ("size", field.size), ("count", field.repeat))
        if text
    ]
    if field.parts:
        parts = [_part(abbreviation, 8 * SIZES[field.type], part) for part in field.parts]
        members.append(f"bits = {{ {', '.join(parts)} }}")
    if field.checks:
        rows = [f'{{ code = "{code}", when = {_function(when)} }}' for code, when in field.checks.items()]
        members.append(f"checks = {{ {', '.join(rows)} }}")
    return "{ " + ", ".join(members) + " }"


def _proto(abbreviation: str, field: WireField) -> str:
    if field.time == "unix":
        return f'ProtoField.absolute_time("{abbreviation}", "{field.name}", base.UTC)'
    kind = _TYPES.get(field.type, "bytes")
    if field.names:
        return f'ProtoField.{kind}("{abbreviation}", "{field.name}", base.DEC, {_table(field.names)})'
    return f'ProtoField.{kind}("{abbreviation}", "{field.name}")'


def _part(abbreviation: str, width: int, part: WireField) -> str:
    first, count = part.bits
    mask = ((1 << count) - 1) << first
    start = f'"{abbreviation}.{part.name.lower()}", "{part.name}"'
    if count == 1:
        return f"ProtoField.bool({start}, {width}, nil, {mask:#x})"
    shown = part.column.type if part.column else None
    names = dict(enumerate(shown.names)) if isinstance(shown, Enumeration) else part.names
    values = _table(names) if names else "nil"
    return f"ProtoField.uint{width}({start}, base.DEC, {values}, {mask:#x})"


def _experts(layout: str) -> Iterator[str]:
    table = "sessions" if layout == "ping" else layout
    rules = dict(TABLES[table].table.rules)
    rows = [row for field in LAYOUTS[layout] for row in (field, *field.fields)]
    for code in enumerated(("truncated", *(code for row in rows for code in row.checks))):
        group, severity = ("PROTOCOL", "WARN") if code in rules else ("MALFORMED", "ERROR")
        sentence = f"{code}: {rules.get(code) or FAULTS[code]}".replace('"', "'")
        yield (
            f'  {code} = ProtoExpert.new("msmq.{layout}.expert.{code}", "{sentence}", expert.group.{group}, '
            f"expert.severity.{severity}),\n"
        )


def _propids() -> str:
    """Name and type of each PROPID, and the bytes of its value: without elements, and those of an element."""
    rows = []
    for row in NUMBERED:
        least, more = (propvariant.size(row.vt, count + bytes(32)) for count in (b"\0", b"\1"))
        rows.append(f'  [{row.number}] = {{ "{row.name}", "{TYPE_NAMES[row.vt]}", {least}, {more - least} }},\n')
    return "{\n" + "".join(rows) + "}"


def _table(names: Mapping[int, str]) -> str:
    return "{ " + ", ".join(f'[{number}] = "{name}"' for number, name in names.items()) + " }"


def _function(expression: str) -> str:
    own = ("and", "or", "not", "has", "bits")
    text = _WORDS.sub(lambda match: match[0] if match[0] in own else f"v.{match[0]}", expression)
    return f"function(v) return {text} end"
