"""CSV of RFC 4180 in UTF-8, without cells that a spreadsheet takes for formulas."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pyarrow as pa

from msmqwire.cli.formats.cells import LineWriter
from msmqwire.columns.json_text import NO_TEXT, Array, joined, json_text, pc, plain_text, utf8_of
from msmqwire.errors import UNPRINTABLE

if TYPE_CHECKING:
    from msmqwire.cli.target import Sink

# What spreadsheets take for the start of a formula, or skip on the way to it (OWASP, "CSV Injection").
_FORMULA = r"^[\s\x{a0}\x{3000}\x{feff}]*[=+\-@\t\r\n\x{ff1d}\x{ff0b}\x{ff0d}\x{ff20}]"
# RFC 4180 requires quotes around the first four; the others are for readers that split there, and for empty text,
# which is not null.
_QUOTED = '[",\r\n;\t]|^$'


class Writer(LineWriter):
    """A header, then a record a row, each ended by CR LF; null is an empty cell, lists and structs are compact JSON."""

    def __init__(self, sink: Sink, schema: pa.Schema, *, table: str = "") -> None:
        super().__init__(sink)
        names = _cells(pa.array(schema.names, pa.string()), terminal=sink.isatty()).to_pylist()
        self._sink.write((",".join(names) + "\r\n").encode())

    def _lines(self, batch: pa.RecordBatch) -> memoryview:
        parts: list[Array | str] = []
        for column in batch.columns:
            parts += ["," if parts else "", _cells(column, terminal=self._sink.isatty())]
        return utf8_of(joined(*parts, "\r\n"))


def _cells(column: Array, *, terminal: bool) -> Array:
    kind = column.type
    if column.null_count == len(column):
        return pa.repeat("", len(column))
    if pa.types.is_nested(kind):
        # Some spreadsheets separate cells at semicolons, so one in a name could begin a formula. JSON has semicolons
        # only in text, where they can be escaped.
        cells = pc.replace_substring(json_text(column), ";", "\\u003b")
        cells = pc.if_else(column.is_valid(), cells, NO_TEXT)
    elif pa.types.is_string(kind):
        cells = pc.replace_substring_regex(column, f"[{UNPRINTABLE}]", "\ufffd") if terminal else column
        cells = _where(_FORMULA, cells, lambda cells: joined("'", cells))
    else:
        cells = plain_text(column)
    return pc.fill_null(_where(_QUOTED, cells, _quoted), "")


def _quoted(cells: Array) -> Array:
    return joined('"', pc.replace_substring(cells, '"', '""'), '"')


def _where(pattern: str, cells: Array, change: Callable[[Array], Array]) -> Array:
    """Cells changed where a pattern is found in them; mostly it is not."""
    found = pc.match_substring_regex(cells, pattern)
    return pc.if_else(found, change(cells), cells) if pc.any(found).as_py() else cells
