"""One line a row, for scanning and grep: place, title, and the fields that are not null, zero or empty.

Queue and label come first. A narrow terminal shows the time of day and no ports.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
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
_NOT_SHOWN = {"version", "index"}


def has_capture_columns(names: Sequence[str]) -> bool:
    """Return True if columns have the places of packets in captures; the file may be missing."""
    return {*CAPTURE.names} - {"file"} <= {*names}


class PacketLines(LineWriter):
    """Base of the writers that show packets to people: the place and the title of each, and which fields follow."""

    def __init__(self, sink: Sink, schema: pa.Schema, *, table: str = "") -> None:
        super().__init__(sink)
        names = schema.names
        self._table = f"{table:13}  " if table else ""
        self._has_route = set(_ROUTE) <= set(names)
        self._titles = titles_of(names)
        self._places = [name for name in ("file", "frame", "time") if name in names]
        self._whole = not has_capture_columns(names)  # columns that were chosen
        apart = {*self._places, *self._titles, "fault", "violations", *(_ROUTE if self._has_route else ())}
        if not self._whole:
            apart |= {*CAPTURE.names} - {"encapsulation"}
        self._fields = [name for name in names if name not in apart]
        self._is_narrow = False

    def style(self, style: str) -> tuple[str, str]:
        """Return the text that begins and ends a style; none where lines are truncated to a width."""
        return "", ""

    def _place_and_title(self, batch: pa.RecordBatch) -> Array:
        words = [without_empty(column(batch, name)) for name in self._places]
        if self._is_narrow and "time" in self._places:
            # After the date
            at = self._places.index("time")
            words[at] = pc.utf8_slice_codeunits(words[at], len("2024-03-04 "))
        if self._has_route:
            words.append(route(batch, ports=not self._is_narrow))
        return without_empty(
            joined(self._table, pc.fill_null(phrase([*words, self._title(batch)], "  ", len(batch)), ""))
        )

    def _title(self, batch: pa.RecordBatch) -> Array:
        """Return the fault of each row, or its title and violations."""
        names, parts = batch.schema.names, [self._styled("bold cyan", title(batch, self._titles))]
        if "violations" in names:
            violations: Array = batch["violations"]
            marked = lists_like(violations, self._styled("yellow", joined("! ", shown(violations.flatten()))))
            parts.append(without_empty(pc.binary_join(marked, "  ")))
        found = phrase(parts, "  ", len(batch))
        if "fault" not in names:
            return found
        before, after = self.style("bold red")
        return pc.coalesce(joined(f"{before}fault{after} ", shown(batch["fault"])), found)

    def _styled(self, style: str, text: Array) -> Array:
        before, after = self.style(style)
        return joined(before, text, after)


class Writer(PacketLines):
    """Lines; on a terminal each is truncated to its width."""

    def __init__(self, sink: Sink, schema: pa.Schema, *, table: str = "") -> None:
        super().__init__(sink, schema, table=table)
        self._width = shutil.get_terminal_size().columns if sink.isatty() else None
        if not self._whole:
            shown = [name for name in self._fields if name not in _NOT_SHOWN]
            self._fields = sorted(shown, key=lambda name: name not in _FIRST)
        self._is_narrow = self._width is not None and self._width < _WIDE

    def _lines(self, batch: pa.RecordBatch) -> memoryview:
        words = [self._place_and_title(batch)]
        for name in self._fields:
            values = filled(batch, name, whole=self._whole)
            if values.null_count < len(batch):
                # A queue is known by its form
                named = not (self._is_narrow and name in _QUEUES)
                words.append(joined(f"{name}=", values) if named else values)
        lines = pc.fill_null(phrase(words, "  ", len(batch)), "")
        if self._width is not None:
            lines = fitted(lines, self._width)
        return utf8_of(joined(lines, "\n"))
