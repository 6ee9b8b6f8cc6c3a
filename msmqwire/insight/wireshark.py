"""The dissector for Wireshark, in Lua: the layouts of packets with names for numbers, texts, times and checks.

Wireshark loads it from the folder of personal Lua plugins, or with ``-X lua_script:msmq.lua``. Its code is in
``dissector.lua``; the tables in it are made of the layouts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from msmqwire.capture import TABLES
from msmqwire.columns.fields import SIZES, Field, enumerated
from msmqwire.columns.schema import Enumeration
from msmqwire.insight.layouts import LAYOUTS, field_ids
from msmqwire.mqqb.message_classes import MESSAGE_CLASSES
from msmqwire.wire.codes import FAULTS

#: The layouts that the dissector has: change notifications are bodies of messages, which may be encrypted.
DISSECTED = tuple(layout for layout in LAYOUTS if layout != "notifications")

_TYPES = {**{f"u{width}": f"uint{width}" for width in (8, 16, 32, 64)}, "guid": "guid", "text": "string"}
_WORDS = re.compile(r"\b[a-z_]\w*")


def dissector() -> str:
    """The dissector as text."""
    parts = []
    for layout in DISSECTED:
        rows = [_field(layout, name, field) for name, field in field_ids(layout)]
        parts.append(f"layouts.{layout} = {{\n" + "".join(f"  {row},\n" for row in rows) + "}")
    experts = [f"experts.{layout} = {{\n{''.join(_experts(layout))}}}" for layout in DISSECTED]
    text = Path(__file__).with_name("dissector.lua").read_text("utf-8")
    text = text.replace("--@LAYOUTS@", "\n".join(parts)).replace("--@EXPERTS@", "\n".join(experts))
    return text.replace("{} --@CLASSES@", _table(MESSAGE_CLASSES))


def _field(layout: str, name: str, field: Field) -> str:
    abbreviation = f"msmq.{layout}.{field.column or name}"
    members = [f'name = "{field.name}", type = "{field.type}"', f"proto = {_proto(abbreviation, field)}"]
    if field.id:
        members.append(f'id = "{field.id}"')
    if field.time:
        members.append(f'time = "{field.time}"')
    members += [
        f"{member} = {_function(text)}" for member, text in (("when", field.when), ("size", field.size)) if text
    ]
    if field.parts:
        parts = [_part(abbreviation, 8 * SIZES[field.type], part) for part in field.parts]
        members.append(f"bits = {{ {', '.join(parts)} }}")
    if field.checks:
        rows = [f'{{ code = "{code}", when = {_function(when)} }}' for code, when in field.checks.items()]
        members.append(f"checks = {{ {', '.join(rows)} }}")
    return "{ " + ", ".join(members) + " }"


def _proto(abbreviation: str, field: Field) -> str:
    if field.time == "unix":
        return f'ProtoField.absolute_time("{abbreviation}", "{field.name}", base.UTC)'
    kind = _TYPES.get(field.type, "bytes")
    if field.names:
        return f'ProtoField.{kind}("{abbreviation}", "{field.name}", base.DEC, {_table(field.names)})'
    return f'ProtoField.{kind}("{abbreviation}", "{field.name}")'


def _part(abbreviation: str, width: int, part: Field) -> str:
    first, count = part.bits
    mask = ((1 << count) - 1) << first
    start = f'"{abbreviation}.{part.name.lower()}", "{part.name}"'
    if count == 1:
        return f"ProtoField.bool({start}, {width}, nil, {mask:#x})"
    names = dict(enumerate(part.shown.names)) if isinstance(part.shown, Enumeration) else part.names
    values = _table(names) if names else "nil"
    return f"ProtoField.uint{width}({start}, base.DEC, {values}, {mask:#x})"


def _experts(layout: str) -> Iterator[str]:
    table = "sessions" if layout == "ping" else layout
    rules = dict(TABLES[table].table.rules)
    for code in enumerated(("truncated", *(code for field in LAYOUTS[layout] for code in field.checks))):
        group, severity = ("PROTOCOL", "WARN") if code in rules else ("MALFORMED", "ERROR")
        sentence = f"{code}: {rules.get(code) or FAULTS[code]}".replace('"', "'")
        yield (
            f'  {code} = ProtoExpert.new("msmq.{layout}.expert.{code}", "{sentence}", expert.group.{group}, '
            f"expert.severity.{severity}),\n"
        )


def _table(names: Mapping[int, str]) -> str:
    return "{ " + ", ".join(f'[{number}] = "{name}"' for number, name in names.items()) + " }"


def _function(expression: str) -> str:
    own = ("and", "or", "not", "has", "bits")
    text = _WORDS.sub(lambda match: match[0] if match[0] in own else f"v.{match[0]}", expression)
    return f"function(v) return {text} end"
