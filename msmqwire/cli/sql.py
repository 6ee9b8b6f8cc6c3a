"""Ask captures in SQL, with DuckDB.

tables: topology, notifications, messages, sessions, connections; `msmqwire explain NAME` has the columns of each.

A statement reads the captures once, and decodes only the columns that it names. Rows of a statement that
uses one table once are written as they are found. What is larger than --memory goes to temporary files.
The statement cannot read or write other files, nor use the network, unless --allow-files permits it.
Without a statement, it is a shell on a terminal: statements end with ; and .help shows the rest.
The column trailing has the name of a reserved word: write it in double quotes.

exit status:
  0  the result was written, and no payload that was read had a fault
  1  wrong usage, a statement that DuckDB refuses, or a file that cannot be read or written
  2  something was lost, as for msmqwire decode: some payloads had faults, or frames were malformed

examples:
  msmqwire sql "SELECT label, count(*) n FROM messages GROUP BY label ORDER BY n DESC" day.pcap
  msmqwire sql "SELECT * FROM messages WHERE label LIKE 'Order%'" captures/ -o orders.parquet
  msmqwire sql "SELECT time, src, dst FROM sessions WHERE kind = 'ping'" *.pcap -T csv
  msmqwire sql "FROM messages SELECT dst, sum(message_size) GROUP BY ALL" --since 2024-03-04 day.pcap
  msmqwire sql day.pcap
  msmqwire sql "COPY (SELECT src, label FROM messages) TO 'labels.xlsx' (FORMAT xlsx)" day.pcap --allow-files
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from msmqwire.cli.arguments import (
    CAPTURE_HELP,
    add_format,
    add_output,
    add_quiet,
    add_selection,
    add_strict,
    capture_files,
    read_options,
)
from msmqwire.cli.console import CommandError, optional, say
from msmqwire.cli.counts import counts, report
from msmqwire.cli.formats import FORMATS, chosen_format, write_table
from msmqwire.cli.target import is_terminal, open_target
from msmqwire.errors import counted

if TYPE_CHECKING:
    import pyarrow as pa

    from msmqwire.cli.target import Sink


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options to the parser."""
    help = "a statement of DuckDB's SQL; @FILE has it; without it, read statements on the terminal"
    parser.add_argument("statement", metavar="STATEMENT", help=help)
    parser.add_argument("files", nargs="*", metavar="CAPTURE", help=CAPTURE_HELP)
    add_format(parser, FORMATS)
    add_output(parser)
    parser.add_argument("--memory", default="1GB", metavar="SIZE", help="what DuckDB may use (default: 1GB)")
    parser.add_argument(
        "--allow-files", action="store_true", help="let the statement read and write files, and use the network"
    )
    add_strict(parser)
    add_selection(parser)
    add_quiet(parser)


def run(options: argparse.Namespace) -> int:
    """Answer; the exit status."""
    optional("pyarrow", "msmqwire sql")
    format = chosen_format(options.format, options.output)
    optional("duckdb", "msmqwire sql")
    from msmqwire.insight.sql import connect

    if _is_capture(options.statement):
        return _shell(options, format)
    if not options.files:
        raise CommandError("name captures after the statement; captures alone start a shell")
    statement = _statement(options.statement)
    names, refused = capture_files(options.files)
    how = read_options(options, names, strict=options.strict)
    with connect(names, how, memory=options.memory, files=options.allow_files) as database:
        schema, batches = database.batches(statement)
        with open_target(options.output, names) as sink:
            rows = _written(format, sink, schema, batches)
        statuses = [report(*counts(reader, refused), quiet=options.quiet) for reader in database.readers]
    if not options.quiet:
        say(counted(rows, "row"))
    return max(statuses, default=0)


def _is_capture(text: str) -> bool:
    """Return True if the first argument is no statement: these have spaces, and are not the names of files."""
    return os.path.exists(text) or not (text.startswith("@") or any(map(str.isspace, text)))


def _shell(options: argparse.Namespace, format: str) -> int:
    """Answer statements that are typed; the exit status."""
    from msmqwire.insight.sql import connect

    given = [options.statement, *options.files]
    if not is_terminal(options.output) or sys.stdin is None or not sys.stdin.isatty():
        raise CommandError(f"{given[0]}: is no statement; without one, a shell needs a terminal")
    if "-" in given:
        raise CommandError("-: each statement of a shell reads the captures, and standard input can be read only once")
    optional("prompt_toolkit", "the shell of msmqwire sql")
    from msmqwire.cli.sql_shell import run_shell

    names, _ = capture_files(given)
    how = read_options(options, names, strict=options.strict)
    with connect(names, how, memory=options.memory, files=options.allow_files) as database:

        def answer(statement: str, format: str) -> None:
            schema, batches = database.batches(statement)
            with open_target("-", names) as sink:
                rows = _written(format, sink, schema, batches)
            for reader in database.readers:
                lines, status = counts(reader, 0)
                report(lines, status, quiet=options.quiet or status == 0)
            if not options.quiet:
                say(counted(rows, "row"))

        def answer_and_close(statement: str, format: str) -> None:
            try:
                answer(statement, format)
            finally:
                while database.readers:
                    database.readers.pop().close()

        run_shell(answer_and_close, format)
    return 0


def _written(format: str, sink: Sink, schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> int:
    """Return the number of rows that were written."""
    from pyarrow import ArrowNotImplementedError

    try:
        return write_table(format, sink, schema, batches)
    except ArrowNotImplementedError as error:
        raise CommandError(f"{format} has no type for a column of the result; cast it to VARCHAR: {error}") from None


def _statement(text: str) -> str:
    if not text.startswith("@"):
        return text
    from msmqwire.directory.document import read_bytes

    name = os.path.expanduser(text[1:])
    try:
        return read_bytes(name).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise CommandError(f"{name}: is not UTF-8 text; expected a statement") from None
