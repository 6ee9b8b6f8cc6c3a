"""The forms of a table: JSON lines, CSV, Parquet, and a table for people; one writer a form, all written in one go."""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING, Protocol

from msmqwire.cli.console import CommandError

if TYPE_CHECKING:
    import pyarrow as pa

    from msmqwire.cli.target import Sink

__all__ = ["FORMS", "TableWriter", "chosen_form", "table_writer"]

#: What ``-T`` takes, and the module with its writer: imported when chosen, since pyarrow and rich take their time.
FORMS = {"table": "terminal", "json": "json_lines", "csv": "separated", "parquet": "parquet"}
_SUFFIXES = {".parquet": "parquet", ".json": "json", ".jsonl": "json", ".ndjson": "json", ".csv": "csv"}


class TableWriter(Protocol):
    """Writes the batches of one table to a sink."""

    def __init__(self, sink: Sink, schema: pa.Schema) -> None: ...

    def write(self, batch: pa.RecordBatch) -> None:
        """Write the rows of one batch."""

    def finish(self) -> None:
        """Write what comes after the last row; without it the output is not whole."""


def chosen_form(form: str | None, output: str, *, terminal: bool) -> str:
    """The form to write: what ``-T`` says, else what the file is called, else what standard output is.

    Raises
    ------
    CommandError
        The file's name does not tell, or the form is not for where it goes.
    """
    if form is None and output != "-":
        suffix = os.path.splitext(output)[1].lower()
        if suffix not in _SUFFIXES:
            raise CommandError(
                f"{output}: the name does not tell the form; end it in {', '.join(_SUFFIXES)}, or say one with -T"
            )
        form = _SUFFIXES[suffix]
    if form is None:
        form = "table" if terminal else "json"
    if form == "parquet" and output == "-" and terminal:
        raise CommandError("Parquet is not for a terminal: name a file with -o, or send it on with > or |")
    return form


def table_writer(form: str, sink: Sink, schema: pa.Schema, *, table: str = "") -> TableWriter:
    """The writer of one of ``FORMS``; one of ``json`` that is told the table's name puts it in front of every row."""
    module = import_module(f"{__name__}.{FORMS[form]}")
    if table:
        tagged: TableWriter = module.Writer(sink, schema, table=table)
        return tagged
    writer: type[TableWriter] = module.Writer
    return writer(sink, schema)
