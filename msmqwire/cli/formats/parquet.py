"""Parquet, compressed with Zstandard, in large row groups."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import IO, TYPE_CHECKING, Any, cast

import pyarrow as pa

from msmqwire.capture.parquet import ROW_GROUP_BYTES, ROW_GROUP_ROWS, parquet_writer
from msmqwire.capture.row_groups import RowGroups

if TYPE_CHECKING:
    from msmqwire.cli.target import Sink

# The buffers of a batch have space for the rows of a block: a batch of one row, as it comes from a pipe, keeps 50 kB
_FEW_ROWS = 512
_MOST_SMALL = 64


class Writer:
    """Row groups of up to 131,072 rows or 16 MiB of columns, whichever comes first."""

    def __init__(self, sink: Sink, schema: pa.Schema, *, table: str = "") -> None:
        self._sink = sink
        self._schema = schema
        file = cast(IO[Any], sink)
        self._append: Callable[[pa.Table], object]
        if sink.jobs > 1:
            groups = RowGroups(file, schema)
            self._append, self._close = partial(sink.submit, groups.append, groups.encode), groups.close
        else:
            # The same file for less time: it copies no pages and reads no footers
            writer = parquet_writer(file, schema)
            self._append, self._close = writer.write_table, writer.close
        self._batches: list[pa.RecordBatch] = []
        self._small: list[pa.RecordBatch] = []  # after the others
        self._rows = 0
        self._bytes = 0

    def write(self, batch: pa.RecordBatch) -> None:
        """Collect batches, and write them once they fill a row group."""
        if batch.num_rows < _FEW_ROWS:
            self._small.append(batch)
            if len(self._small) == _MOST_SMALL:
                self._copy_small()
        else:
            self._copy_small()
            self._batches.append(batch)
        self._rows += batch.num_rows
        self._bytes += batch.get_total_buffer_size()  # nbytes takes 30 times as long
        if self._rows >= ROW_GROUP_ROWS or self._bytes >= ROW_GROUP_BYTES:
            self._write_group()

    def finish(self) -> None:
        """Write the remaining rows and the footer."""
        self._write_group()
        self._sink.finish()
        self._close()

    def _copy_small(self) -> None:
        if self._small:
            self._batches += pa.Table.from_batches(self._small).combine_chunks().to_batches()
            self._small = []

    def _write_group(self) -> None:
        self._copy_small()
        if self._rows:
            self._append(pa.Table.from_batches(self._batches, self._schema))
        self._batches, self._rows, self._bytes = [], 0, 0
