"""A Parquet file made of row groups that were encoded apart, each in any thread.

A row group is encoded as a Parquet file of its own. Its pages are copied as they are; the offsets of pages in its entry
of the footer are shifted.

One ``ParquetWriter`` with a thread of its own would need none of this, and 5% less CPU time, but it encodes in that
thread alone. Encoding takes longer than all else: 0.85 s of CPU time beside 0.49 s for 1.5 million requests, 0.22 s
beside 0.13 s for 60,000 messages. So on two idle cores a file would take 1.27 and 1.24 times as long, on more cores
longer still. Dictionaries that the decoding threads make do not help: 0.91 s with and without them.
"""

from __future__ import annotations

from typing import IO, Any

import pyarrow as pa

from msmqwire.capture._footers import Footer
from msmqwire.capture.parquet import parquet_writer

_MAGIC = b"PAR1"


class RowGroups:
    """Writes the file that ``parquet_writer`` would write of the same row groups, byte for byte."""

    def __init__(self, file: IO[bytes], schema: pa.Schema) -> None:
        self._file = file
        self._schema = schema
        self._entries: list[bytes] = []
        self._rows = 0
        self._size = file.write(_MAGIC)

    def encode(self, table: pa.Table) -> pa.Buffer:
        """The row group of a table, for ``append``; may be called in any thread."""
        target: Any = pa.BufferOutputStream()
        with parquet_writer(target, self._schema) as writer:
            if table.num_rows:
                writer.write_table(table, row_group_size=table.num_rows)
        encoded: pa.Buffer = target.getvalue()
        return encoded

    def append(self, encoded: pa.Buffer) -> None:
        """Write a row group after the others."""
        pages, footer = _split(encoded)
        rows, entry = footer.row_group(self._size - len(_MAGIC), len(self._entries))
        self._rows += rows
        self._entries.append(entry)
        self._size += self._file.write(pages)

    def close(self) -> None:
        """Write the footer."""
        _, footer = _split(self.encode(pa.Table.from_batches([], self._schema)))
        whole = footer.with_row_groups(self._rows, self._entries)
        self._file.write(whole + len(whole).to_bytes(4, "little") + _MAGIC)


def _split(file: pa.Buffer) -> tuple[memoryview, Footer]:
    """The pages and the footer of a Parquet file."""
    view = memoryview(file)
    end = len(view) - len(_MAGIC) - 4
    start = end - int.from_bytes(view[end : end + 4], "little")
    return view[len(_MAGIC) : start], Footer(bytes(view[start:end]))
