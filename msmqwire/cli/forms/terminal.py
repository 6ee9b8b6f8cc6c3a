"""The table for people: rich draws it, as rows come, in widths found from the first of them."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from msmqwire.capture.schema import CAPTURE
from msmqwire.cli.console import printable
from msmqwire.cli.forms.cells import plain_text
from msmqwire.mqcn import NOTIFICATIONS

if TYPE_CHECKING:
    import pyarrow as pa

    from msmqwire.cli.target import Sink

__all__ = ["Writer", "columns_shown", "heading", "not_shown"]

#: What names a row; the columns there are of these make its title.
_TITLES = ("type", "operation", "object", "kind")
#: Of a message, who sent what to which queue, and what for.
_OF_MESSAGES = (
    "kind", "source_queue_manager", "sent_time", "message_id", "destination_queue", "destination_queues", "admin_queue",
    "response_queue", "label", "message_class_name", "correlation_ordinal", "message_size", "body", "notification",
    "fault", "violations",
)  # fmt: skip

_CHUNK = 200  # rows drawn at once, and rows looked at to find the widths
_LONGEST_TEXT = 64
_LONGEST_BESIDE = 44  # a longer text stands below its label
_MOST_BYTES = 20
_MOST_ITEMS = 4
_GUID = 36
_NARROW = 100  # columns of a terminal that has no room for labels beside values
_GAP = 2
_TIMES = frozenset({"time", "sent_time"})

Row = dict[str, Any]


def columns_shown(table: str) -> tuple[str, ...] | None:
    """The columns of a table that are shown when none are named; None for all."""
    return (*CAPTURE.names, *_OF_MESSAGES) if table == "messages" else None


def heading(sink: Sink, table: str, *, first: bool) -> None:
    """Write the name of the table that follows."""
    sink.write(f"{'' if first else chr(10)}# {table}\n".encode())


def not_shown(sink: Sink, without_rows: Sequence[str]) -> None:
    """Write what a reader might look for in vain."""
    other = "" if "messages" in without_rows else ", most columns of messages"
    none = f"no rows of {', '.join(without_rows)}\n" if without_rows else ""
    sink.write(f"\n{none}not shown: what is null, zero or empty, what follows …{other} (-T json has them)\n".encode())


class Writer:
    """Draws batches in chunks of rows, below one heading all of them in the same widths.

    A table with its capture columns is drawn as a list of packets: where and when each was seen, and below each other
    the fields that it carries; the whole table of notifications is drawn likewise. A choice of columns is drawn as just
    these.
    """

    def __init__(self, sink: Sink, schema: pa.Schema) -> None:
        # Given to rich, what a terminal cannot show must not fail.
        self._text = io.TextIOWrapper(sink, encoding="utf-8", errors="replace", write_through=True)
        self._console = _Console(file=self._text, markup=False, highlight=False, emoji=False)
        self._layout = _layout(schema.names, narrow=self._console.width < _NARROW)
        self._widths: list[int] = []
        self._file: str | None = None

    def write(self, batch: pa.RecordBatch) -> None:
        """Draw the rows of one batch."""
        for start in range(0, batch.num_rows, _CHUNK):
            rows = list(_rows(batch.slice(start, _CHUNK)))
            for file, group in _by_file(rows, self._layout.by_file):
                self._draw(file, group)

    def finish(self) -> None:
        """Let go of the sink, which is not ours to close."""
        if not self._widths:
            self._console.print(Text("no rows", "dim"))
        self._text.detach()

    def _draw(self, file: str | None, rows: list[Row]) -> None:
        cells = [self._layout.cells(row) for row in rows]
        headers = self._layout.headers
        heading = not self._widths or file != self._file
        if heading:
            self._widths = _widths(headers, cells, self._console.width, self._layout.last)
            if file is not None:
                self._console.print(Text(printable(file), "bold"), soft_wrap=True)
            self._file = file
        # One blank of padding and one that the box draws between columns: _GAP.
        table = Table(box=SIMPLE_HEAD, show_header=heading, show_edge=False, padding=(0, 1, 0, 0), pad_edge=False)
        for header, width in zip(headers, self._widths, strict=True):
            right = header in self._layout.numbers
            table.add_column(header, width=width, justify="right" if right else "left", overflow="fold")
        for row in cells:
            table.add_row(*row)
        self._console.print(table)


class _Console(Console):
    """A console that leaves it to the command what to do when its reader has gone."""

    def on_broken_pipe(self) -> None:
        """Let the error that is being handled go on."""
        raise


class _Columns:
    """Each column as it is."""

    by_file = False
    last = 24
    numbers: frozenset[str] = frozenset()

    def __init__(self, names: list[str]) -> None:
        self.headers = tuple(names)

    def cells(self, row: Row) -> list[Text]:
        return [Text(shown(row[name])) for name in self.headers]


class _Packets:
    """One packet a row, each field that it carries on a line; what is null, zero or empty is left out."""

    by_file = True
    last = 21 + _GUID  # a label and a GUID
    numbers = frozenset({"frame"})
    headers: tuple[str, ...] = ("frame", "time (UTC)", "from → to", "packet")

    def __init__(self, names: list[str], *, narrow: bool) -> None:
        self._narrow = narrow
        apart = {*CAPTURE.names, *_TITLES, "fault", "violations"}
        self._titles = [name for name in _TITLES if name in names]
        self._fields = [name for name in names if name not in apart]

    def cells(self, row: Row) -> list[Text]:
        route = f"{_endpoint(row['src'], row['src_port'])} → {_endpoint(row['dst'], row['dst_port'])}"
        return [Text(shown(row["frame"])), Text(shown(row["time"])), Text(route), self._packet(row)]

    def _packet(self, row: Row) -> Text:
        if row.get("fault") is not None:
            return Text.assemble(("fault ", "bold red"), shown(row["fault"]))
        title = Text(" ".join(shown(row[name]) for name in self._titles if row[name] is not None), "bold cyan")
        for violation in row.get("violations") or ():
            title.append(f"  ! {violation}", "yellow")
        there = {name: self._lines(name, row[name]) for name in self._fields if row[name]}
        longest = max(map(len, there), default=0)
        lines = [title]
        for name, (first, *more) in there.items():
            if self._narrow:
                lines += [Text(f" {name}", "dim"), *map(Text, (first, *more))]
            elif len(first) > _LONGEST_BESIDE:
                lines += [Text(f" {name}", "dim"), *(Text(f"  {text}") for text in (first, *more))]
            else:
                lines.append(Text.assemble((f" {name:{longest}} ", "dim"), first))
                lines += [Text(" " * (longest + 2) + text) for text in more]
        return Text("\n").join(lines)

    def _lines(self, name: str, value: Any) -> list[str]:
        return [shown(item) for item in value] if name == "properties" else _lines(value)


class _Changes(_Packets):
    """One change a row, each of its properties on a line."""

    by_file = False
    numbers = frozenset({"row"})

    def __init__(self, names: list[str], *, narrow: bool) -> None:
        super().__init__(names, narrow=narrow)
        self._where = [name for name in names if name in ("file", "row")]
        self.headers = (*self._where, "change")
        apart = {*self._where, "version", "index"}
        self._fields = [name for name in self._fields if name not in apart]

    def cells(self, row: Row) -> list[Text]:
        return [*(Text(shown(row[place])) for place in self._where), self._packet(row)]


def _layout(names: list[str], *, narrow: bool) -> _Packets | _Columns:
    if set(CAPTURE.names) <= set(names):
        return _Packets(names, narrow=narrow)
    if {"file", *NOTIFICATIONS.names} <= set(names):
        return _Changes(names, narrow=narrow)
    return _Columns(names)


def _rows(batch: pa.RecordBatch) -> Iterator[Row]:
    columns: dict[str, list[Any]] = {}
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        columns[name] = plain_text(column).to_pylist() if name in _TIMES else column.to_pylist()
    for name in _TIMES & columns.keys():
        columns[name] = [None if text is None else _short_time(text) for text in columns[name]]
    if "sent_time" in columns:  # whole seconds
        columns["sent_time"] = [text and text.removesuffix(".000000") for text in columns["sent_time"]]
    for values in zip(*columns.values(), strict=True):
        yield dict(zip(columns, values, strict=True))


def _by_file(rows: list[Row], apart: bool) -> Iterator[tuple[str | None, list[Row]]]:
    start = 0
    for end in range(1, len(rows) + 1):
        if end == len(rows) or (apart and rows[end]["file"] != rows[start]["file"]):
            yield (rows[start]["file"] if apart else None), rows[start:end]
            start = end


def _short_time(text: str) -> str:
    """ISO 8601 for a column that is headed UTC: microseconds suffice where there is nothing below them."""
    return text.replace("T", " ").removesuffix("Z").removesuffix("000")


def _endpoint(address: str | None, port: int | None) -> str:
    if port is None:
        return shown(address)
    return f"[{address}]:{port}" if ":" in (address or "") else f"{shown(address)}:{port}"


def shown(value: Any) -> str:
    """Any value of a table in a few words that a terminal can show."""
    if value is None:
        return ""
    if isinstance(value, dict):
        return _shown_struct(value)
    if isinstance(value, list):
        return ", ".join(_items(value))
    if isinstance(value, bytes):
        return value.hex() if len(value) <= _MOST_BYTES else f"{value[:_MOST_BYTES].hex()}…"
    text = printable(str(value))
    return text if len(text) <= _LONGEST_TEXT else text[: _LONGEST_TEXT - 1] + "…"


def _items(values: list[Any]) -> list[str]:
    more = [f"… {len(values) - _MOST_ITEMS} more"] if len(values) > _MOST_ITEMS else []
    return [*(shown(item) for item in values[:_MOST_ITEMS]), *more]


def _lines(value: Any) -> list[str]:
    """A value as it stands beside its label: a list of long items one below the other."""
    text = shown(value)
    return _items(value) if isinstance(value, list) and len(text) > _GUID else [text]


def _shown_struct(value: dict[str, Any]) -> str:
    if set(value) == {"code", "field", "offset"}:
        return f"{value['code']}: {value['field']} at byte {value['offset']}"
    if {"id", "name", "type"} < set(value):
        # A property: its value is the one member that is there
        worth = [shown(item) for name, item in value.items() if name not in ("id", "name", "type") and item is not None]
        return " ".join([value["name"], *worth])
    # The first member says which, the flags that are set say what it can.
    (_, first), *others = value.items()
    notes = [name if member is True else f"{name} {shown(member)}" for name, member in others if member]
    return f"{shown(first)} ({', '.join(notes)})" if notes else shown(first)


def _widths(headers: tuple[str, ...], cells: list[list[Text]], available: int, keep: int) -> list[int]:
    """A width for each column: what the first rows need, and what is left for the last one.

    When that is less than ``keep``, columns before it are folded at their spaces, those first where it saves most.
    """
    lines = [
        [header, *(line for row in cells for line in row[at].plain.split("\n"))] for at, header in enumerate(headers)
    ]
    room = max(available - _GAP * (len(headers) - 1), len(headers))
    *front, last = [max(map(cell_len, column)) for column in lines]
    wanted = min(last, keep)
    savings = [width - _folded(column, 0) for width, column in zip(front, lines, strict=False)]
    for at in sorted(range(len(front)), key=savings.__getitem__, reverse=True):
        excess = sum(front) + wanted - room
        if excess > 0:
            front[at] = _folded(lines[at], front[at] - excess)
    return [*front, max(room - sum(front), 8)]


def _folded(lines: list[str], width: int) -> int:
    """How wide lines are when they are folded to ``width`` at spaces; never narrower than their longest word."""
    longest = 0
    for line in lines:
        used = 0
        # An arrow stays with what is before it.
        for word in line.replace(" →", "→→").split(" "):
            size = cell_len(word)
            used = used + 1 + size if used and used + 1 + size <= width else size
            longest = max(longest, used)
    return longest
