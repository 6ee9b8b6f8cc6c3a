"""``msmqwire decode --hex``: one payload in hexadecimal, with the fields that its bytes belong to."""

from __future__ import annotations

import argparse
import re
import sys
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from msmqwire.cli.console import CommandError, printable, say
from msmqwire.cli.formats import write_table
from msmqwire.cli.target import open_target
from msmqwire.properties.table import by_number

if TYPE_CHECKING:
    from collections.abc import Iterator

_LARGEST = 16 << 20
_SHOWN = 16
# The base and the digits of offsets: of xxd, hexdump -C, Wireshark and tcpdump; and of od, octal or decimal
_OFFSETS = ((16, "4,6"), (16, "8"), (8, "7"), (10, "7"))
# A line of a hexdump, its offset first; groups of bytes in it. Their characters follow after two blanks or more, and
# two may be in the middle.
_ROW = r"\s*(?:0x)?([0-9a-fA-F]{%s})((?:[:\s].*)?)"
_GROUP = re.compile(r"( *)((?:[0-9a-fA-F]{2})+)(?=[\s|]|$)")


def decode_hex(options: argparse.Namespace, format: str) -> int:
    """Decode one payload; the exit status. The format ``table`` has the byte map as well."""
    from msmqwire.capture import TABLES
    from msmqwire.insight.layouts import guess
    from msmqwire.mqqb.framing import has_signature

    if len(options.files) > 1:
        raise CommandError("--hex decodes one payload: give it as one argument, or - for standard input")
    payload = payload_of(options.files[0])
    layout = options.table[0] if options.table else guess(payload)
    table = "sessions" if layout == "ping" else layout
    if table not in TABLES:
        raise CommandError(f"--table {table}: no such table; there is {', '.join(TABLES)}")
    if table == "sessions" and not has_signature(payload):
        layout = "ping"
    batch = TABLES[table].decode_batch([payload], strict=options.strict).to_arrow(guid="text", dictionaries=False)
    with open_target(options.output, []) as sink:
        if format == "table":
            sink.write("".join(line + "\n" for line in _lines(layout, payload)).encode("utf-8", "replace"))
            sink.write(b"\n")
            batch = _only_values(batch)
        write_table(format, sink, batch.schema, [batch])
    fault = batch.column("fault")[0].as_py() if "fault" in batch.schema.names else None
    if fault is not None and not options.quiet:
        say(f"{table}: {fault['code']}: {fault['field']} at byte {fault['offset']}")
    return 0 if fault is None else 2


def payload_of(text: str) -> bytes:
    """The bytes of an argument, or of standard input: digits, with white space, colons and 0x, or a hexdump."""
    if text == "-":
        if sys.stdin is None:
            raise CommandError("standard input is closed")
        text = sys.stdin.read(_LARGEST)
    found = {_of_hexdump(text.splitlines(), *of_program) for of_program in _OFFSETS} - {None}
    if len(found) == 1:
        return found.pop() or b""
    try:
        return bytes.fromhex(re.sub(r"0x|\\x|[\s:,]", "", text))
    except ValueError:
        raise CommandError(f"{printable(text[:40])!r} is not hexadecimal") from None


def _of_hexdump(lines: list[str], base: int, digits: str) -> bytes | None:
    """The bytes of a hexdump with offsets of so many digits; None where the offsets are not those of the bytes.

    A line has an offset, bytes and perhaps their characters; the last one may be the offset of the end. ``*`` stands
    for repetitions of the line before it.
    """
    rows: list[tuple[int, str]] = []
    repeated = set()
    for line in filter(str.strip, lines):
        if line.strip() == "*":
            repeated.add(len(rows) - 1)
            continue
        match = re.fullmatch(_ROW % digits, line)
        try:
            rows.append((int(match[1], base), match[2]))  # type: ignore[index]
        except (TypeError, ValueError):
            return None
    sizes = [after - before for (before, _), (after, _) in pairwise(rows)]
    if not sizes and not (rows and rows[0][0] == 0 and rows[0][1].startswith((":", "  "))):
        return None  # one line of digits in groups
    if any(size <= 0 for size in sizes) or sum(sizes) > _LARGEST:
        return None
    width = sizes[0] if sizes and 0 not in repeated else _SHOWN
    found = bytearray()
    for at, ((_, rest), size) in enumerate(zip(rows, [*sizes, None], strict=True)):
        data = _first_bytes(rest.removeprefix(":"), width)
        if at in repeated and size and data:
            data *= size // len(data)
        if size is not None and len(data) != size:
            return None
        found += data
    return bytes(found)


def _first_bytes(text: str, most: int) -> bytes:
    """The bytes of a line of a hexdump, up to its characters."""
    data = bytearray()
    at = 0
    while (group := _GROUP.match(text, at)) and (not data or len(group[1]) <= 1 + (len(data) < most)):
        data += bytes.fromhex(group[2])
        at = group.end()
    return bytes(data)


def _lines(layout: str, payload: bytes) -> Iterator[str]:
    """The byte map: offset, bytes, field and value of each field."""
    from msmqwire.insight.layouts import byte_map

    for part in byte_map(layout, payload):
        data = payload[part.start : part.end]
        shown = data[:_SHOWN].hex(" ") + (" ..." if len(data) > _SHOWN else "")
        note = "  truncated" if part.truncated else ""
        yield f"{part.start:6}  {shown:51}  {part.name}  {_shown(part)}{note}".rstrip()


def _shown(part: Any) -> str:
    if part.field.type == "guid":
        from uuid import UUID

        return str(UUID(bytes_le=part.value)) if len(part.value) == 16 else ""
    if part.field.type in ("text", "string"):
        return printable(part.value.decode("utf-16-le", "replace").rstrip("\0"))[:64]
    if part.field.type.startswith("u"):
        number = f"{part.value}" if part.value < 10 else f"{part.value} (0x{part.value:x})"
        return f"{number} {part.field.names.get(part.value, '')}"
    if part.field.type == "value" and part.value is not None:
        return f"{by_number(part.value.id).name} {_shown_value(part.value.value)}"
    return f"{part.end - part.start} bytes"


def _shown_value(value: Any) -> str:
    return f"{value.nbytes} bytes" if hasattr(value, "nbytes") else printable(str(value))[:64]


def _only_values(batch: Any) -> Any:
    """The columns that are not null."""
    names = [name for name in batch.schema.names if not batch.column(name).null_count]
    return batch.select(names)
