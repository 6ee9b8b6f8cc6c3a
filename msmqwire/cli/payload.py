"""``msmqwire decode --hex``: one payload in hexadecimal, with the fields that its bytes belong to."""

from __future__ import annotations

import argparse
import re
import sys
from typing import TYPE_CHECKING, Any

from msmqwire.cli.console import CommandError, printable, say
from msmqwire.cli.formats import write_table
from msmqwire.cli.target import open_target
from msmqwire.properties.table import by_number

if TYPE_CHECKING:
    from collections.abc import Iterator

_LARGEST = 16 << 20
_SHOWN = 16


def decode_hex(options: argparse.Namespace, format: str) -> int:
    """Decode one payload; the exit status. The format ``table`` has the byte map as well."""
    from msmqwire.capture import TABLES
    from msmqwire.insight.layouts import guess

    if len(options.files) > 1:
        raise CommandError("--hex decodes one payload: give it as one argument, or - for standard input")
    payload = _payload(options.files[0])
    layout = options.table[0] if options.table else guess(payload)
    table = "sessions" if layout == "ping" else layout
    if table not in TABLES:
        raise CommandError(f"--table {table}: no such table; there is {', '.join(TABLES)}")
    if table == "sessions" and payload[4:8] != b"LIOR":
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


def _payload(text: str) -> bytes:
    """The bytes of an argument, or of standard input: digits, with white space, colons, 0x and offsets of a hexdump."""
    if text == "-":
        text = sys.stdin.read(_LARGEST)
    lines = [re.sub(r"^\s*[0-9a-fA-F]{4,8}[: ]\s+|\s{2,}\S*$|\|.*\|$", " ", line) for line in text.splitlines()]
    joined = text if len(lines) < 2 else "\n".join(lines)
    digits = re.sub(r"0x|\\x|[\s:,]", "", joined)
    try:
        return bytes.fromhex(digits)
    except ValueError:
        raise CommandError(f"{printable(text[:40])!r} is not hexadecimal") from None


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
