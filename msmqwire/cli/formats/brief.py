"""One line a row, for scanning and grep: place, title, and the fields that are not null, zero or empty.

Queue and label come first. A narrow terminal shows the time of day and no ports.
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from msmqwire.capture.schema import CAPTURE
from msmqwire.cli.formats.cells import LineWriter
from msmqwire.cli.formats.people import column, filled, fitted, phrase, route, shown, title, titles_of, without_empty
from msmqwire.columns.json_text import Array, joined, lists_like, pc, utf8_of

if TYPE_CHECKING:
    import pyarrow as pa

    from msmqwire.cli.target import Sink

_ROUTE = ("src", "src_port", "dst", "dst_port")
_QUEUES = ("destination_queue", "destination_queues")
_FIRST = (*_QUEUES, "label")
_WIDE = 120
_NOT_SHOWN = {"first_frame", "version", "index", "transport", "stream_offset"}


class Writer(LineWriter):
    """Lines; on a terminal each is truncated to its width."""

    def __init__(self, sink: Sink, schema: pa.Schema, *, table: str = "") -> None:
        super().__init__(sink)
        self._table = f"{table:13}  " if table else ""
        self._width = shutil.get_terminal_size().columns if sink.isatty() else None
        names = schema.names
        self._has_route = set(_ROUTE) <= set(names)
        self._whole = not set(CAPTURE.names) - {"file"} <= set(names)  # columns that were chosen
        self._titles = titles_of(names)
        self._places = [name for name in ("file", "frame", "time") if name in names]
        apart = {*self._places, *self._titles, "fault", "violations"}
        if self._has_route:
            apart |= {*_ROUTE, *_NOT_SHOWN}
        fields = [name for name in names if name not in apart]
        self._fields = fields if self._whole else sorted(fields, key=lambda name: name not in _FIRST)
        self._is_narrow = self._width is not None and self._width < _WIDE

    def _lines(self, batch: pa.RecordBatch) -> memoryview:
        rows = len(batch)
        words = [without_empty(column(batch, name)) for name in self._places]
        if self._is_narrow and "time" in self._places:
            # After the date
            at = self._places.index("time")
            words[at] = pc.utf8_slice_codeunits(words[at], len("2024-03-04 "))
        if self._has_route:
            words.append(route(batch, ports=not self._is_narrow))
        words.append(self._head(batch))
        for name in self._fields:
            values = filled(batch, name, whole=self._whole)
            if values.null_count < rows:
                # A queue is known by its form
                named = not (self._is_narrow and name in _QUEUES)
                words.append(joined(f"{name}=", values) if named else values)
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
