"""Parquet, compressed with Zstandard, in large row groups."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING, Any, cast

import pyarrow as pa

from msmqwire.capture.parquet import ROW_GROUP_BYTES, ROW_GROUP_ROWS
from msmqwire.capture.row_groups import RowGroups

if TYPE_CHECKING:
    from msmqwire.cli.target import Sink


class Writer:
    """Row groups of up to 131,072 rows or 16 MiB of columns, whichever comes first."""

    def __init__(self, sink: Sink, schema: pa.Schema, *, table: str = "") -> None:
        self._sink = sink
        self._schema = schema
        self._pool = pa.default_memory_pool()
        # At once, what a row group needed goes back to the system: the peak is 30 MiB lower. Several threads would wait
        # for that, and take a seventh more time
        if sink.jobs == 1 and "jemalloc" in pa.supported_memory_backends():
            pa.set_memory_pool(pa.jemalloc_memory_pool())
            pa.jemalloc_set_decay_ms(0)
        self._groups = RowGroups(cast(IO[Any], sink), schema)
        self._batches: list[pa.RecordBatch] = []
        self._rows = 0
        self._bytes = 0

    def write(self, batch: pa.RecordBatch) -> None:
        """Collect batches, and write them once they fill a row group."""
        # A copy in one piece: the reader uses its buffers again, and many small ones would leave gaps in memory
        self._batches.append(pa.ipc.read_record_batch(batch.serialize(), batch.schema))
        self._rows += batch.num_rows
        self._bytes += batch.nbytes
        if self._rows >= ROW_GROUP_ROWS or self._bytes >= ROW_GROUP_BYTES:
            self._write_group()

    def finish(self) -> None:
        """Write the remaining rows and the footer."""
        self._write_group()
        self._sink.finish()
        self._groups.close()
        pa.set_memory_pool(self._pool)

    def _write_group(self) -> None:
        if self._rows:
            table = pa.Table.from_batches(self._batches, self._schema)
            self._sink.submit(self._groups.append, self._groups.encode, table)
        self._batches, self._rows, self._bytes = [], 0, 0
