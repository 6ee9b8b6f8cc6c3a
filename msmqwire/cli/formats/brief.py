"""One line a row, for scanning and grep: place, title, and the fields that are not null, zero or empty."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from msmqwire.capture.schema import CAPTURE
from msmqwire.cli.console import printable
from msmqwire.cli.formats.people import Row, route, rows_of, shown, title, titles_of, values_of

if TYPE_CHECKING:
    import pyarrow as pa

    from msmqwire.cli.target import Sink

_ROUTE = ("src", "src_port", "dst", "dst_port")
_NOT_SHOWN = {"first_frame", "version", "index", "transport", "stream_offset"}


class Writer:
    """Lines; on a terminal each is truncated to its width."""

    def __init__(self, sink: Sink, schema: pa.Schema, *, table: str = "") -> None:
        self._sink = sink
        self._table = f"{table:13}  " if table else ""
        self._width = shutil.get_terminal_size().columns if sink.isatty() else None
        names = schema.names
        self._has_route = set(_ROUTE) <= set(names)
        self._whole = not set(CAPTURE.names) <= set(names)  # columns that were chosen
        self._titles = titles_of(names)
        self._places = [name for name in ("file", "frame", "time") if name in names]
        apart = {*self._places, *self._titles, "fault", "violations"}
        if self._has_route:
            apart |= {*_ROUTE, *_NOT_SHOWN}
        self._fields = [name for name in names if name not in apart]

    def write(self, batch: pa.RecordBatch) -> None:
        """Write a line a row."""
        lines = (self._line(row) for row in rows_of(batch))
        self._sink.write("".join(f"{self._fitted(line)}\n" for line in lines).encode("utf-8", "replace"))
        self._sink.flush()

    def finish(self) -> None:
        """Lines need no end."""

    def _line(self, row: Row) -> str:
        where = [shown(row[name]) for name in self._places]
        if self._has_route:
            where.append(route(row))
        if row.get("fault") is not None:
            words = [f"fault {shown(row['fault'])}"]
        else:
            words = [title(row, self._titles), *(f"! {violation}" for violation in row.get("violations") or ())]
        if self._whole:
            words += [f"{name}={shown(row[name], whole=True)}" for name in self._fields if row[name]]
        else:
            words += [f"{name}={shown(value)}" for name, value in values_of(row, self._fields)]
        return self._table + "  ".join(filter(None, [*where, *words]))

    def _fitted(self, line: str) -> str:
        line = printable(line)
        return line if self._width is None or len(line) <= self._width else line[: self._width - 1] + "…"
