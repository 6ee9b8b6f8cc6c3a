"""One line a row, for scanning and grep: place, title, and the fields that are not null, zero or empty."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from msmqwire.capture.schema import CAPTURE
from msmqwire.cli.formats.cells import Array, LineWriter, joined, lists_like, pc, utf8_of
from msmqwire.cli.formats.people import column, filled, fitted, phrase, route, shown, title, titles_of, without_empty

if TYPE_CHECKING:
    import pyarrow as pa

    from msmqwire.cli.target import Sink

_ROUTE = ("src", "src_port", "dst", "dst_port")
_NOT_SHOWN = {"first_frame", "version", "index", "transport", "stream_offset"}


class Writer(LineWriter):
    """Lines; on a terminal each is truncated to its width."""

    def __init__(self, sink: Sink, schema: pa.Schema, *, table: str = "") -> None:
        super().__init__(sink)
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

    def _lines(self, batch: pa.RecordBatch) -> memoryview:
        rows = len(batch)
        words = [without_empty(column(batch, name)) for name in self._places]
        if self._has_route:
            words.append(route(batch))
        words.append(self._head(batch))
        for name in self._fields:
            values = filled(batch, name, whole=self._whole)
            if values.null_count < rows:
                words.append(joined(f"{name}=", values))
        lines = joined(self._table, pc.fill_null(phrase(words, "  ", rows), ""))
        if self._width is not None:
            lines = fitted(lines, self._width)
        return utf8_of(joined(lines, "\n"))

    def _head(self, batch: pa.RecordBatch) -> Array:
        names, parts = batch.schema.names, [title(batch, self._titles)]
        if "violations" in names:
            violations: Array = batch["violations"]
            marked = lists_like(violations, joined("! ", shown(violations.flatten())))
            parts.append(without_empty(pc.binary_join(marked, "  ")))
        head = phrase(parts, "  ", len(batch))
        if "fault" not in names:
            return head
        return pc.coalesce(joined("fault ", shown(batch["fault"])), head)
