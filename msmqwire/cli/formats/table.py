"""The table for people: packets with a line for each field, as they are read; of other rows the first, in columns.

``pyarrow.compute`` makes the lines of all packets of a batch at once; rich draws columns.
"""

from __future__ import annotations

import io
import shutil
from typing import TYPE_CHECKING

import pyarrow as pa
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from msmqwire.cli.formats.brief import PacketLines, has_capture_columns
from msmqwire.cli.formats.people import MOST_ITEMS, column, filled, items, phrase
from msmqwire.columns.json_text import Array, joined, pc, utf8_of
from msmqwire.errors import counted, printable

if TYPE_CHECKING:
    from msmqwire.cli.formats import TableWriter
    from msmqwire.cli.target import Sink

_MOST_ROWS = 1000  # rich draws a row in half a millisecond
_WIDEST = 1 << 20  # columns of a terminal
_LONGEST_LIST = 36  # a longer list has a line for each item, as one of GUIDs has


def Writer(sink: Sink, schema: pa.Schema, *, table: str = "") -> TableWriter:  # noqa: N802 (a class elsewhere)
    """Return the writer of packets, or that of other columns."""
    return (_Packets if has_capture_columns(schema.names) else _Columns)(sink, schema, table=table)


class _Packets(PacketLines):
    """A line with the place and the title of each packet, and a line for each field that is not null, zero or empty."""

    def __init__(self, sink: Sink, schema: pa.Schema, *, table: str = "") -> None:
        super().__init__(sink, schema, table=table)
        console = _console(sink)
        self._styles = {name: _ends(console, name) for name in ("dim", "bold cyan", "yellow", "bold red")}
        size = max(map(len, self._fields), default=0)
        before, after = self.style("dim")
        self._labels = {name: f"  {before}{name:{size}}{after}  " for name in self._fields}
        self._next_item = "\n" + " " * (size + 4)
        self._is_empty = not table  # of several tables the command names those without rows

    def write(self, batch: pa.RecordBatch) -> None:
        """Write the packets of a batch."""
        self._is_empty = self._is_empty and not len(batch)
        super().write(batch)

    def finish(self) -> None:
        """Wait for the lines to be written; say if there are none."""
        super().finish()
        if self._is_empty:
            self._sink.write(b"no rows\n")

    def style(self, style: str) -> tuple[str, str]:
        """Return the text that begins and ends a style of rich."""
        return self._styles[style]

    def _lines(self, batch: pa.RecordBatch) -> memoryview:
        lines = [self._place_and_title(batch), *(self._field(batch, name) for name in self._fields)]
        return utf8_of(joined(pc.fill_null(phrase(lines, "\n", len(batch)), ""), "\n"))

    def _field(self, batch: pa.RecordBatch, name: str) -> Array:
        """Return a line for each value, or for each item of a list of properties or of long items."""
        values, array = filled(batch, name), batch[name]
        if pa.types.is_list(array.type):
            lines = pc.binary_join(items(array, None if name == "properties" else MOST_ITEMS), self._next_item)
            is_long = pc.greater(pc.utf8_length(values), 0 if name == "properties" else _LONGEST_LIST)
            values = pc.if_else(is_long, lines, values)
        return joined(self._labels[name], values)


class _Columns:
    """The first rows, with whole texts, in columns; where these do not fit beside each other, a line for each value."""

    def __init__(self, sink: Sink, schema: pa.Schema, *, table: str = "") -> None:
        self._sink = sink
        self._name = table
        self._first = schema.empty_table()
        self._rows = 0

    def write(self, batch: pa.RecordBatch) -> None:
        """Keep the first rows, and count the others."""
        self._rows += len(batch)
        if len(self._first) < _MOST_ROWS:
            rows = pa.Table.from_batches([*self._first.to_batches(), batch], self._first.schema)
            self._first = rows.slice(0, _MOST_ROWS)

    def finish(self) -> None:
        """Draw the first rows below the name of the table; of several tables only those that have rows."""
        if not self._rows and self._name:
            return
        text = self._drawn() if self._rows else "no rows\n"
        if self._rows > len(self._first):
            text += f"{counted(self._rows - len(self._first), 'more row')}: -T brief and -T json have them\n"
        self._sink.write((f"# {self._name}\n{text}\n" if self._name else text).encode())
        self._sink.flush()

    def _drawn(self) -> str:
        names = [printable(name) for name in self._first.schema.names]
        batch = self._first.combine_chunks().to_batches()[0]
        cells = [pc.fill_null(column(batch, name, whole=True), "").to_pylist() for name in batch.schema.names]
        table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False, pad_edge=False)
        for name in names:
            table.add_column(Text(name), overflow="fold")
        for row in zip(*cells, strict=True):
            table.add_row(*map(Text, row))
        console = _console(self._sink)
        unlimited = console.options.update(max_width=_WIDEST)
        if console.measure(table, options=unlimited).minimum <= console.width:
            with console.capture() as found:
                console.print(table)
            return "".join(f"{line.rstrip(' ')}\n" for line in found.get().splitlines())
        size = max(map(len, names))
        rows = (zip(names, row, strict=True) for row in zip(*cells, strict=True))
        return "\n".join("".join(f"{name:{size}}  {value}\n" for name, value in row) for row in rows)


def _ends(console: Console, style: str) -> tuple[str, str]:
    with console.capture() as found:
        console.print("x", style=style, end="")
    before, _, after = found.get().partition("x")
    return before, after


def _console(sink: Sink) -> Console:
    """Return a console of rich for texts that are captured, with the width and the colours of an output."""
    file = io.TextIOWrapper(sink, "utf-8")
    console = Console(file=file)
    is_terminal, colours, width = console.is_terminal, console.color_system, console.width
    file.detach()
    # COLUMNS is 0 where a terminal does not know its size
    return Console(
        file=io.StringIO(),
        width=width or shutil.get_terminal_size().columns,
        force_terminal=is_terminal,
        color_system="standard" if colours else None,
    )
