"""The formats of a table: a module with a ``Writer`` for each."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Protocol

from msmqwire.cli.console import CommandError, optional
from msmqwire.cli.target import is_terminal

if TYPE_CHECKING:
    import pyarrow as pa

    from msmqwire.cli.target import Sink

__all__ = ["FORMATS", "ONE_TABLE", "TableWriter", "TablesWriter", "chosen_format", "table_writer", "write_table"]

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
    """Return the format to write: that of ``-T``, or of the name of the file, or of the kind of standard output.

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
    """Return the writer of one of ``FORMATS``."""
    module = import_module(f"{__name__}.{_MODULES.get(format, format)}")
    writer: TableWriter = module.Writer(sink, schema, table=table)
    return writer


class TablesWriter:
    """Writes rows of several tables to one output, each with the name of its table.

    Attributes
    ----------
    rows : collections.Counter
        The rows of each table so far.

    Raises
    ------
    CommandError
        From ``write``: the format holds one table, the first one, and the rows are those of another.
    """

    def __init__(self, format: str, sink: Sink, schemas: Mapping[str, pa.Schema]) -> None:
        self.rows: Counter[str] = Counter()
        self._format = format
        self._schemas = schemas
        names = [*schemas][:1] if format in ONE_TABLE else [*schemas]
        # Events always name their table
        is_named = format == "eve" or len(names) > 1
        self._writers = {
            name: table_writer(format, sink, schemas[name], table=name if is_named else "") for name in names
        }

    def write(self, name: str, batch: pa.RecordBatch) -> None:
        """Write the columns of a table in a batch."""
        self.rows[name] += batch.num_rows
        if name in self._writers:
            self._writers[name].write(batch.select(self._schemas[name].names))
        elif batch.num_rows:
            raise CommandError(
                f"{self._format} holds one table, {', '.join(self._writers)} here, and {name} has rows too; choose one "
                "with --table, or use -T json"
            )

    def finish(self) -> None:
        """Write the end of the output."""
        for writer in self._writers.values():
            writer.finish()


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
