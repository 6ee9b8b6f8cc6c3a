"""The layouts for other programs: a dissector for Wireshark in Lua, and descriptions for Kaitai Struct.

``python -m msmqwire.insight.interop FOLDER`` writes ``msmq.lua`` and a ``.ksy`` file for each layout. Wireshark loads
the dissector from the folder of personal Lua plugins, or with ``-X lua_script:msmq.lua``.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from msmqwire.insight.layouts import LAYOUTS, SIZES, Field

__all__ = ["field_ids", "kaitai", "lua", "write"]

_LUA = """\
-- MSMQ packets: [MS-MQQB], [MS-MQMQ] 2.2.20, [MS-MQSD] 2.2. Written by msmqwire; do not edit.
local msmq = Proto("msmq", "Microsoft Message Queuing")

-- Without the operators of Lua 5.3; every mask is one bit
local function bits(number, shift, width) return math.floor(number / 2 ^ shift) % 2 ^ width end
local function has(number, mask) return math.floor(number / mask) % 2 == 1 end

local layouts = {}
@LAYOUTS@

local all = {}
for _, layout in pairs(layouts) do
  for _, field in ipairs(layout) do all[#all + 1] = field.proto end
end
msmq.fields = all

local sizes = { u8 = 1, u16 = 2, u32 = 4, u64 = 8, guid = 16 }

local function dissect(name, tvb, pinfo, tree)
  pinfo.cols.protocol = "MSMQ"
  local subtree = tree:add(msmq, tvb(), "MSMQ, " .. name)
  local v, at, length = {}, 0, tvb:reported_length_remaining()
  for _, field in ipairs(layouts[name]) do
    v.position, v.left = at, length - at
    if field.when == nil or field.when(v) then
      local size = sizes[field.type]
      if field.type == "pad" then
        size = math.min((4 - at % 4) % 4, (v.packet_size or length) - at)
      elseif size == nil then
        size = field.size(v)
      end
      if size > 0 then
        if size > length - at then
          if at < length then subtree:add(tvb(at), field.name .. ": truncated") end
          return
        end
        local range = tvb(at, size)
        if field.type == "text" then
          subtree:add_packet_field(field.proto, range, ENC_UTF_16 + ENC_LITTLE_ENDIAN)
        else
          subtree:add_le(field.proto, range)
        end
        if field.id and field.type ~= "u64" and field.type ~= "guid" then v[field.id] = range:le_uint() end
        at = at + size
      end
    end
  end
end

local function packet_length(tvb, _, offset)
  local size, flags = tvb(offset + 8, 4):le_uint(), tvb(offset + 2, 2):le_uint()
  -- PacketSize of a message does not count the SessionHeader after it
  if has(flags, 0x10) and not has(flags, 0x08) then size = size + 16 end
  return math.max(size, 16)
end

local function dissect_framed(tvb, pinfo, tree)
  local name = has(tvb(2, 2):le_uint(), 0x08) and "sessions" or "messages"
  dissect(name, tvb, pinfo, tree)
  return tvb:len()
end

function msmq.dissector(tvb, pinfo, tree)
  if pinfo.port_type == 2 then
    if tvb:len() >= 8 and tvb(4, 4):string() ~= "LIOR" then return 0 end
    dissect_tcp_pdus(tvb, tree, 16, packet_length, dissect_framed)
  elseif pinfo.src_port == 3527 or pinfo.dst_port == 3527 then
    dissect("ping", tvb, pinfo, tree)
  else
    dissect("topology", tvb, pinfo, tree)
  end
  return tvb:len()
end

DissectorTable.get("tcp.port"):add(1801, msmq)
DissectorTable.get("udp.port"):add(1801, msmq)
DissectorTable.get("udp.port"):add(3527, msmq)
"""
_LUA_TYPES = {**{f"u{bits}": f"uint{bits}" for bits in (8, 16, 32, 64)}, "guid": "guid", "text": "string"}
_KAITAI_TYPES = {"u8": "u1", "u16": "u2", "u32": "u4", "u64": "u8"}
_WORDS = re.compile(r"\b[a-z_]\w*")


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


def lua() -> str:
    """The dissector."""
    parts = []
    for layout in LAYOUTS:
        if layout == "notifications":  # bodies of messages, which are encrypted or spread over packets
            continue
        rows = [_lua_field(f"msmq.{layout}.{field.column or name}", field) for name, field in field_ids(layout)]
        parts.append(f"layouts.{layout} = {{\n" + "".join(f"  {row},\n" for row in rows) + "}")
    return _LUA.replace("@LAYOUTS@", "\n".join(parts))


def _lua_field(abbreviation: str, field: Field) -> str:
    kind = _LUA_TYPES.get(field.type, "bytes")
    members = [
        f'name = "{field.name}", type = "{field.type}"',
        f'proto = ProtoField.{kind}("{abbreviation}", "{field.name}")',
    ]
    if field.id:
        members.append(f'id = "{field.id}"')
    members += [
        f"{member} = function(v) return {_lua_expression(text)} end"
        for member, text in (("when", field.when), ("size", field.size))
        if text
    ]
    return "{ " + ", ".join(members) + " }"


def _lua_expression(expression: str) -> str:
    own = ("and", "or", "not", "has", "bits")
    return _WORDS.sub(lambda match: match[0] if match[0] in own else f"v.{match[0]}", expression)


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
    files = {"msmq.lua": lua(), **{f"msmq_{layout}.ksy": kaitai(layout) for layout in LAYOUTS}}
    for name, text in files.items():
        (folder / name).write_text(text, "utf-8")
    return [folder / name for name in files]


if __name__ == "__main__":
    for path in write(Path(sys.argv[1])):
        print(path)
