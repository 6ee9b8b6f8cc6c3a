"""JSON lines: an object a row with every column, after the name of the table if that is given."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pyarrow as pa

from msmqwire.cli.formats.cells import Array, LineWriter, joined, json_text, utf8_of

if TYPE_CHECKING:
    from msmqwire.cli.target import Sink


class Writer(LineWriter):
    """UTF-8, a line feed after each object."""

    def __init__(self, sink: Sink, schema: pa.Schema, *, table: str = "") -> None:
        super().__init__(sink)
        self._start = f'{{"table":{json.dumps(table)},' if table else "{"
        self._keys = [f"{json.dumps(name)}:" for name in schema.names]

    def _lines(self, batch: pa.RecordBatch) -> memoryview:
        parts: list[Array | str] = []
        for key, column in zip(self._keys, batch.columns, strict=True):
            parts += [("," if parts else self._start) + key, json_text(column)]
        return utf8_of(joined(*parts, "}\n"))
