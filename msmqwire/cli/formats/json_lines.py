"""JSON lines: an object a row with every column, after the name of the table if that is given."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pyarrow as pa

from msmqwire.cli.formats.cells import LineWriter
from msmqwire.columns.json_text import json_rows, utf8_of

if TYPE_CHECKING:
    from msmqwire.cli.target import Sink


class Writer(LineWriter):
    """UTF-8, a line feed after each object."""

    def __init__(self, sink: Sink, schema: pa.Schema, *, table: str = "") -> None:
        super().__init__(sink)
        self._start = f'{{"table":{json.dumps(table)},' if table else "{"

    def _lines(self, batch: pa.RecordBatch) -> memoryview:
        return json_lines(batch, self._start)


def json_lines(batch: pa.RecordBatch, start: str = "{") -> memoryview:
    """Return the rows of a batch, each an object after ``start`` and a line."""
    return utf8_of(json_rows(batch.schema.names, batch.columns, start, "}\n"))
