"""All tables of captures out of one pass: as they come for programs, table after table for people."""

from __future__ import annotations

import contextlib
import os
import stat
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa

from msmqwire.capture.tables import TABLES, TablesReader
from msmqwire.cli.console import say
from msmqwire.cli.forms import table_writer
from msmqwire.cli.forms.terminal import heading, not_shown
from msmqwire.cli.target import Sink, errors_of

__all__ = ["faults_of", "tell_who_waits", "write_as_they_come", "write_one_after_the_other"]

_MOST_IN_MEMORY = 64 << 20


def faults_of(reader: TablesReader) -> Counter[str]:
    """How many payloads had a fault in any table, by its code."""
    return sum((table.faults for table in reader.tables.values()), Counter())


def write_as_they_come(reader: TablesReader, form: str, sink: Sink, show: Callable[[int], None]) -> None:
    """Rows of all tables in the order of the captures' blocks; each says which table it is of."""
    writers = {name: table_writer(form, sink, table.schema, table=name) for name, table in reader.tables.items()}
    for name, batch in reader:
        writers[name].write(batch)
        show(reader.stats.bytes_read)
    for writer in writers.values():
        writer.finish()


def write_one_after_the_other(reader: TablesReader, sink: Sink, show: Callable[[int], None]) -> None:
    """Each table that has rows, under its name; until all are read, the rows wait."""
    with contextlib.ExitStack() as stack:
        waiting: dict[str, _Waiting] = {}
        for name, batch in reader:
            if batch.num_rows:
                if name not in waiting:
                    waiting[name] = stack.enter_context(contextlib.closing(_Waiting(reader.tables[name].schema)))
                waiting[name].write(batch)
            show(reader.stats.bytes_read)
        shown = [name for name in TABLES if name in waiting]
        for name in shown:
            heading(sink, name, first=name == shown[0])
            writer = table_writer("table", sink, reader.tables[name].schema)
            for batch in waiting[name]:
                writer.write(batch)
            writer.finish()
    if shown:
        not_shown(sink, [name for name in TABLES if name not in shown])
    else:
        sink.write(b"no rows\n")


class _Waiting:
    """The rows of a table: in memory while they are few, then in a temporary file that is gone with the process."""

    def __init__(self, schema: pa.Schema) -> None:
        self._file = tempfile.SpooledTemporaryFile(_MOST_IN_MEMORY)  # noqa: SIM115 (closed by close)
        self._writer = pa.ipc.new_stream(self._file, schema)

    def write(self, batch: pa.RecordBatch) -> None:
        """Add rows."""
        with errors_of(f"a temporary file in {tempfile.gettempdir()}"):
            self._writer.write_batch(batch)

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """The rows from the first on; there can be no more of them then."""
        self._writer.close()
        self._file.seek(0)
        yield from pa.ipc.open_stream(self._file)

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()


def tell_who_waits(names: Sequence[str]) -> None:
    """Tell who watches that the rows of a pipe come when it ends, and how to have them at once."""
    pipe = next((name for name in names if name == "-" or _is_pipe(name)), None)
    if pipe is not None and sys.stderr is not None and sys.stderr.isatty():
        say(f"reading {pipe} to its end first; with --table NAME its rows are shown as they come")


def _is_pipe(name: str) -> bool:
    try:
        return stat.S_ISFIFO(os.stat(name).st_mode)
    except OSError:
        return False
