"""The table for people, drawn by rich as rows come, in widths that the first rows need."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from msmqwire.capture.schema import CAPTURE
from msmqwire.cli.console import printable
from msmqwire.cli.formats.people import Row, items, route, rows_of, shown, title, titles_of, values_of

if TYPE_CHECKING:
    import pyarrow as pa

    from msmqwire.cli.target import Sink

_CHUNK = 200  # rows drawn at once; the first of them give the widths
_LONGEST_BESIDE = 44  # a longer text stands below its label
_GUID = 36
_GAP = 2


class Writer:
    """Draws batches below one heading, in columns of the same widths; as records where the columns do not fit.

    A table with its capture columns is drawn as a list of packets: place and time of each, and below each other its
    fields. The complete table of notifications is drawn likewise. Other columns are drawn as they are.
    """

    def __init__(self, sink: Sink, schema: pa.Schema, *, table: str = "") -> None:
        # Characters that a terminal cannot show must not fail
        self._text = io.TextIOWrapper(sink, encoding="utf-8", errors="replace", write_through=True)
        self._console = _Console(file=self._text, markup=False, highlight=False, emoji=False)
        self._layout = _layout(schema.names)
        self._widths: list[int] | None = None
        self._begun = False
        self._file: str | None = None

    def write(self, batch: pa.RecordBatch) -> None:
        """Draw the rows of one batch."""
        for start in range(0, batch.num_rows, _CHUNK):
            rows = list(rows_of(batch.slice(start, _CHUNK)))
            for file, group in _by_file(rows, self._layout.by_file):
                self._draw(file, group)

    def finish(self) -> None:
        """Release the sink."""
        if not self._begun:
            self._console.print(Text("no rows", "dim"))
        self._text.detach()

    def _draw(self, file: str | None, rows: list[Row]) -> None:
        cells = [self._layout.cells(row) for row in rows]
        heading = not self._begun or file != self._file
        if heading:
            self._widths = _widths(self._layout.headers, cells, self._console.width, self._layout.last)
            if file is not None:
                self._console.print(Text(printable(file), "bold"), soft_wrap=True)
        self._begun, self._file = True, file
        if self._widths is None:
            for row in cells:
                self._console.print(self._layout.record(row))
                self._console.print()
        else:
            self._draw_columns(cells, self._widths, heading)

    def _draw_columns(self, cells: list[list[Text]], widths: list[int], heading: bool) -> None:
        # One blank of padding and one that the box draws between columns: _GAP
        table = Table(box=SIMPLE_HEAD, show_header=heading, show_edge=False, padding=(0, 1, 0, 0), pad_edge=False)
        for header, width in zip(self._layout.headers, widths, strict=True):
            right = header in self._layout.numbers
            table.add_column(header, width=width, justify="right" if right else "left", overflow="fold")
        for row in cells:
            table.add_row(*row)
        self._console.print(table)


class _Console(Console):
    """A console that leaves broken pipes to the command."""

    def on_broken_pipe(self) -> None:
        """Raise the error that is being handled."""
        raise


class _Columns:
    """Each column as it is, with whole texts; a record has a line for each."""

    by_file = False
    last = 24
    numbers: frozenset[str] = frozenset()

    def __init__(self, names: list[str]) -> None:
        self.headers = tuple(names)

    def cells(self, row: Row) -> list[Text]:
        return [Text(shown(row[name], whole=True)) for name in self.headers]

    def record(self, cells: list[Text]) -> RenderableType:
        grid = Table.grid(padding=(0, 1, 0, 0))
        grid.add_column(style="dim", no_wrap=True)
        grid.add_column(overflow="fold")
        for header, cell in zip(self.headers, cells, strict=True):
            grid.add_row(header, cell)
        return grid


class _Packets:
    """A packet a row, with a line for each field that is not null, zero or empty."""

    by_file = True
    last = 21 + _GUID  # a label and a GUID
    numbers = frozenset({"frame"})
    headers: tuple[str, ...] = ("frame", "time (UTC)", "from → to", "packet")

    def __init__(self, names: list[str]) -> None:
        self._titles = titles_of(names)
        apart = {*CAPTURE.names, *self._titles, "fault", "violations"}
        self._fields = [name for name in names if name not in apart]

    def cells(self, row: Row) -> list[Text]:
        return [Text(shown(row["frame"])), Text(shown(row["time"])), Text(route(row)), self._packet(row)]

    def record(self, cells: list[Text]) -> RenderableType:
        *place, packet = cells
        return Text("\n").join([Text("  ").join(place), packet])

    def _packet(self, row: Row) -> Text:
        if row.get("fault") is not None:
            return Text.assemble(("fault ", "bold red"), shown(row["fault"]))
        head = Text(title(row, self._titles), "bold cyan")
        for violation in row.get("violations") or ():
            head.append(f"  ! {violation}", "yellow")
        values = {name: _lines(name, value) for name, value in values_of(row, self._fields)}
        longest = max(map(len, values), default=0)
        lines = [head]
        for name, (first, *more) in values.items():
            if len(first) > _LONGEST_BESIDE:
                lines += [Text(f" {name}", "dim"), *(Text(f"  {text}") for text in (first, *more))]
            else:
                lines.append(Text.assemble((f" {name:{longest}} ", "dim"), first))
                lines += [Text(" " * (longest + 2) + text) for text in more]
        return Text("\n").join(lines)


def _layout(names: list[str]) -> _Packets | _Columns:
    if set(CAPTURE.names) <= set(names):
        return _Packets(names)
    return _Columns(names)


def _lines(name: str, value: object) -> list[str]:
    """A value beside its label: a list of properties, or of long items, has a line for each."""
    if not isinstance(value, list):
        return [shown(value)]
    if name == "properties":
        return [shown(item) for item in value]
    text = shown(value)
    return items(value) if len(text) > _GUID else [text]


def _by_file(rows: list[Row], apart: bool) -> Iterator[tuple[str | None, list[Row]]]:
    start = 0
    for end in range(1, len(rows) + 1):
        if end == len(rows) or (apart and rows[end]["file"] != rows[start]["file"]):
            yield (rows[start]["file"] if apart else None), rows[start:end]
            start = end


def _widths(headers: tuple[str, ...], cells: list[list[Text]], width: int, keep: int) -> list[int] | None:
    """A width for each column: what the first rows need, and the rest for the last one; None if they do not fit.

    The last column needs ``keep``, if it is that wide. To make space for it, columns before it are folded at blanks,
    first those where that saves most.
    """
    lines = [
        [header, *(line for row in cells for line in row[at].plain.split("\n"))] for at, header in enumerate(headers)
    ]
    available = width - _GAP * (len(headers) - 1)
    *front, last = [max(map(cell_len, column)) for column in lines]
    wanted = min(last, keep)
    savings = [column - _folded(text, 0) for column, text in zip(front, lines, strict=False)]
    for at in sorted(range(len(front)), key=savings.__getitem__, reverse=True):
        excess = sum(front) + wanted - available
        if excess > 0:
            front[at] = _folded(lines[at], front[at] - excess)
    rest = available - sum(front)
    return [*front, rest] if rest >= wanted else None


def _folded(lines: list[str], width: int) -> int:
    """The width of lines that are folded at blanks to ``width``, or to their longest word if that is wider."""
    longest = 0
    for line in lines:
        used = 0
        # An arrow stays with the word before it
        for word in line.replace(" →", "→→").split(" "):
            size = cell_len(word)
            used = used + 1 + size if used and used + 1 + size <= width else size
            longest = max(longest, used)
    return longest
