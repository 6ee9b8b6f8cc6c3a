"""Rows of a table that wait until reading has ended: in memory, and in a temporary file once they are many."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator

import pyarrow as pa

from msmqwire.cli.console import OutputErrors

_MOST_IN_MEMORY = 64 << 20


class Spool:
    """The rows of one table; its file disappears with the process."""

    def __init__(self, schema: pa.Schema) -> None:
        self._file = tempfile.SpooledTemporaryFile(_MOST_IN_MEMORY)  # noqa: SIM115 (closed by close)
        self._writer = pa.ipc.new_stream(self._file, schema)

    def write(self, batch: pa.RecordBatch) -> None:
        """Add rows."""
        with OutputErrors(f"a temporary file in {tempfile.gettempdir()}"):
            self._writer.write_batch(batch)

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """The rows, from the first; no rows can be added after that."""
        self._writer.close()
        self._file.seek(0)
        yield from pa.ipc.open_stream(self._file)

    def close(self) -> None:
        """Delete the file."""
        self._file.close()
