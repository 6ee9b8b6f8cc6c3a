"""The layouts for other programs: a dissector for Wireshark in Lua, and descriptions for Kaitai Struct.

``python -m msmqwire.insight.interop FOLDER`` writes ``msmq.lua`` and a ``.ksy`` file for each layout. Wireshark loads
the dissector from the folder of personal Lua plugins, or with ``-X lua_script:msmq.lua``.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import Path

from msmqwire.columns.fields import SIZES
from msmqwire.insight.layouts import LAYOUTS, field_ids
from msmqwire.insight.wireshark import dissector

__all__ = ["kaitai", "write"]

_KAITAI_TYPES = {"u8": "u1", "u16": "u2", "u32": "u4", "u64": "u8"}


def kaitai(layout: str) -> str:
    """The description of a layout in YAML."""
    lines = ["meta:", f"  id: msmq_{layout}", "  title: MSMQ, written by msmqwire", "  license: Apache-2.0"]
    lines += ["  endian: le", "seq:"]
    known: dict[str, str] = {}
    for name, field in field_ids(layout):
        lines += [f"  - id: {name}", f"    doc: {field.name}{', UTF-16LE' if field.type == 'text' else ''}"]
        size = SIZES["guid"] if field.type == "guid" else _kaitai_expression(field.size, known)
        if field.type == "pad":
            fill = "(4 - _io.pos % 4) % 4"
            end = "packet_size" if "packet_size" in known else "_io.size"
            size = f"({fill}) < {end} - _io.pos ? ({fill}) : {end} - _io.pos"
        if field.type in _KAITAI_TYPES:
            lines.append(f"    type: {_KAITAI_TYPES[field.type]}")
        else:
            # Texts stay bytes: a lone surrogate in one would make the packet unreadable
            lines.append(f"    size: '{size}'")
        if field.when:
            lines.append(f"    if: '{_kaitai_expression(field.when, known)}'")
        if field.id:
            known[field.id] = name
    return "\n".join(lines) + "\n"


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
