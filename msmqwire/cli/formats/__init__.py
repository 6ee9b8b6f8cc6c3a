"""The formats of a table: a module with a ``Writer`` for each."""

from __future__ import annotations

import os
from collections.abc import Iterable
from importlib import import_module
from typing import TYPE_CHECKING, Protocol

from msmqwire.cli.console import CommandError, optional
from msmqwire.cli.target import is_terminal

if TYPE_CHECKING:
    import pyarrow as pa

    from msmqwire.cli.target import Sink

__all__ = ["FORMATS", "ONE_TABLE", "TableWriter", "chosen_format", "table_writer", "write_table"]

#: The formats of ``-T``; each is the module of that name here, imported when it is chosen.
FORMATS = ("table", "brief", "json", "csv", "parquet")
#: The formats that hold one table.
ONE_TABLE = frozenset({"csv", "parquet"})
_MODULES = {"json": "json_lines", "csv": "separated"}
_SUFFIXES = {".parquet": "parquet", ".json": "json", ".jsonl": "json", ".ndjson": "json", ".csv": "csv"}


class TableWriter(Protocol):
    """Writes the batches of one table to a sink; ``table`` is its name where a sink has rows of several tables."""

    def __init__(self, sink: Sink, schema: pa.Schema, *, table: str = "") -> None: ...

    def write(self, batch: pa.RecordBatch) -> None:
        """Write the rows of one batch."""

    def finish(self) -> None:
        """Write the end of the output; without it the output is incomplete."""


def chosen_format(format: str | None, output: str) -> str:
    """The format to write: that of ``-T``, or of the name of the file, or of the kind of standard output.

    Raises
    ------
    CommandError
        The name of the file has no format, or the format is not for a terminal, or there is no standard output, or the
        format needs a package that is not installed.
    """
    terminal = is_terminal(output)
    if format is None and output != "-":
        suffix = os.path.splitext(output)[1].lower()
        if suffix not in _SUFFIXES:
            raise CommandError(
                f"{output}: the name has no known format; end it in {', '.join(_SUFFIXES)}, or choose one with -T"
            )
        format = _SUFFIXES[suffix]
    if format is None:
        format = "table" if terminal else "json"
    if format == "parquet" and terminal:
        raise CommandError("Parquet is not for a terminal: name a file with -o, or redirect the output")
    if format == "table":
        optional("rich", "the format table")
    return format


def table_writer(format: str, sink: Sink, schema: pa.Schema, *, table: str = "") -> TableWriter:
    """The writer of one of ``FORMATS``."""
    module = import_module(f"{__name__}.{_MODULES.get(format, format)}")
    writer: TableWriter = module.Writer(sink, schema, table=table)
    return writer


def write_table(
    format: str, sink: Sink, schema: pa.Schema, batches: Iterable[pa.RecordBatch], *, table: str = ""
) -> int:
    """Write a complete table; the number of rows."""
    writer = table_writer(format, sink, schema, table=table)
    rows = 0
    for batch in batches:
        writer.write(batch)
        rows += batch.num_rows
    writer.finish()
    return rows
