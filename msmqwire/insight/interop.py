"""The layouts for other programs: a dissector for Wireshark in Lua, and descriptions for Kaitai Struct.

``python -m msmqwire.insight.interop FOLDER`` writes ``msmq.lua`` and a ``.ksy`` file for each layout. Wireshark loads
the dissector from the folder of personal Lua plugins, or with ``-X lua_script:msmq.lua``.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from msmqwire.columns.fields import SIZES, WireField
from msmqwire.insight.layouts import LAYOUTS, field_ids
from msmqwire.insight.wireshark import dissector
from msmqwire.properties import NUMBERED, TYPE_NAMES

__all__ = ["kaitai", "write"]

_KAITAI_TYPES = {"u8": "u1", "u16": "u2", "u32": "u4", "u64": "u8"}
_KAITAI_VALUES = {
    "VT_I2": "s2", "VT_I4": "s4", "VT_UI1": "u1", "VT_UI2": "u2", "VT_UI4": "u4", "VT_LPWSTR": "string",
    "VT_CLSID": "guid", "VT_BLOB": "blob", "VT_UI1|VT_VECTOR": "blob", "VT_CLSID|VT_VECTOR": "guids",
    "VT_LPWSTR|VT_VECTOR": "strings",
}  # fmt: skip
# Nothing can be read after the value of an unknown property: its size is unknown
_KAITAI_STRUCTURES = """\
  unknown:
    seq:
      - id: value
        size-eos: true
  string:
    seq:
      - id: value
        type: strz
        encoding: UTF-16LE
  guid:
    seq:
      - id: value
        size: 16
  blob:
    seq:
      - id: count
        type: u4
      - id: value
        size: count
  guids:
    seq:
      - id: count
        type: u4
      - id: value
        size: 16
        repeat: expr
        repeat-expr: count
  strings:
    seq:
      - id: count
        type: u4
      - id: value
        type: strz
        encoding: UTF-16LE
        repeat: expr
        repeat-expr: count
"""


def kaitai(layout: str) -> str:
    """The description of a layout in YAML."""
    fields = LAYOUTS[layout]
    lines = ["meta:", f"  id: msmq_{layout}", "  title: MSMQ, written by msmqwire", "  license: Apache-2.0"]
    lines += ["  endian: le", "seq:", *_kaitai_fields(fields)]
    text = "\n".join(lines) + "\n"
    groups = [(name, field) for name, field in field_ids(fields) if field.fields]
    if groups:
        text += "types:\n"
        for name, field in groups:
            text += f"  {name}:\n    seq:\n"
            text += "".join(f"    {line}\n" for line in _kaitai_fields(field.fields))
        text += _KAITAI_STRUCTURES
    return text


def _kaitai_fields(fields: tuple[WireField, ...]) -> Iterator[str]:
    known: dict[str, str] = {}
    for name, field in field_ids(fields):
        yield f"  - id: {name}"
        yield f"    doc: {field.name}{', UTF-16LE' if field.type == 'text' else ''}"
        yield from _kaitai_type(name, field, known)
        if field.repeat:
            yield from ("    repeat: expr", f"    repeat-expr: '{_kaitai_expression(field.repeat, known)}'")
        if field.when:
            yield f"    if: '{_kaitai_expression(field.when, known)}'"
        if field.id:
            known[field.id] = name


def _kaitai_type(name: str, field: WireField, known: Mapping[str, str]) -> Iterator[str]:
    if field.fields:
        yield f"    type: {name}"
    elif field.type in _KAITAI_TYPES:
        yield f"    type: {_KAITAI_TYPES[field.type]}"
    elif field.type == "string":
        yield from ("    type: strz", "    encoding: UTF-16LE")
    elif field.type == "value":
        yield from ("    type:", "      switch-on: property_id[_index]", "      cases:")
        yield from (f"        {row.number}: {_KAITAI_VALUES[TYPE_NAMES[row.vt]]}" for row in NUMBERED)
        yield "        _: unknown"
    else:
        size = SIZES["guid"] if field.type == "guid" else _kaitai_expression(field.size, known)
        if field.type == "pad":
            fill = "(4 - _io.pos % 4) % 4"
            end = "packet_size" if "packet_size" in known else "_io.size"
            size = f"({fill}) < {end} - _io.pos ? ({fill}) : {end} - _io.pos"
        # Texts stay bytes: a lone surrogate in one would make the packet unreadable
        yield f"    size: '{size}'"


def _kaitai_expression(expression: str, known: Mapping[str, str]) -> str:
    names = {**known, "left": "(_io.size - _io.pos)", "position": "_io.pos"}
    text = re.sub(r"has\((\w+), (\w+)\)", r"(\1 & \2) != 0", expression)
    text = re.sub(
        r"bits\((\w+), (\d+), (\d+)\)", lambda match: f"({match[1]} >> {match[2]} & {(1 << int(match[3])) - 1})", text
    )
    return re.sub(r"\b[a-z]\w*\b", lambda match: names.get(match[0], match[0]), text)


def write(folder: Path) -> list[Path]:
    """Write the dissector and the descriptions into a folder, which is created."""
    folder.mkdir(parents=True, exist_ok=True)
    files = {"msmq.lua": dissector(), **{f"msmq_{layout}.ksy": kaitai(layout) for layout in LAYOUTS}}
    for name, text in files.items():
        (folder / name).write_text(text, "utf-8")
    return [folder / name for name in files]


if __name__ == "__main__":
    for path in write(Path(sys.argv[1])):
        print(path)
