"""Read captures (pcap or pcapng) and write their contents as tables.

tables (--table):
  topology       discovery packets, [MS-MQSD]
  notifications  changes of queues and machines in messages, [MS-MQCN]
  messages       messages and their acknowledgments, [MS-MQQB]
  sessions       pings, and the packets that open and maintain a session, [MS-MQQB]
  all            all of these
  connections    the pairs of addresses and ports that tried to connect: attempts, and what became of
                 them: silent, refused, reset, established or closed; only where it is named
The default is all, or with --columns and --where the tables that have their columns. csv and parquet hold one
table: without --table they write topology, and refuse if another table has rows.

formats (-T):
  table     for people: a packet a row, and below it the fields that are not null, zero or empty
  brief     one line a row, for scanning and grep
  json      JSON lines: an object a row with every column; of several tables, the member "table"
            comes first
  csv       RFC 4180; lists and structs are JSON in their cell; text that a spreadsheet would
            take for a formula begins with an apostrophe
  eve       JSON lines as Suricata's eve.json, for a SIEM: src_ip, dest_ip, timestamp, event_type msmq,
            and the columns of the table in the object msmq
  parquet   Zstandard, GUIDs as text (--guid binary: 16 bytes)

Without -T the name of OUT chooses the format (.parquet .json .jsonl .ndjson .csv); without OUT it
is table on a terminal and json otherwise. OUT appears when it is complete: an error, Ctrl-C or a
full disk leaves the previous file as it was.

Captures may be compressed (gzip, zstd, lz4, xz, bzip2), whatever their names. The format table
shows one table after the other, so the rows of a pipe appear when it ends; with one --table, and
in the other formats, they appear as they are read.

exit status:
  0  every frame was read and every payload decoded
  1  wrong usage, or a file that cannot be read or written, or that is no capture
  2  something was lost: payloads had faults, frames or streams were malformed or truncated, change
     notifications were encrypted, or one of several files is no capture; standard error counts them

examples:
  msmqwire decode capture.pcapng
  msmqwire decode -T brief -n 20 capture.pcapng
  msmqwire decode captures/ --table messages
  msmqwire decode capture.pcapng | jq 'select(.fault) | {table, frame, fault}'
  msmqwire decode --table messages --address 10.20.1.0/24 --since 2024-03-04T08:00 day.pcap
  msmqwire decode day.pcap --where "label LIKE 'Order%' AND dst = '10.1.1.10'"
  msmqwire decode *.pcap --table notifications -o changes.parquet
  msmqwire decode incident.pcap --extract bodies
  msmqwire decode day.pcap --queue orders --write orders.pcapng
  msmqwire decode capture.pcap --columns frame,src,servers -T csv > servers.csv
  msmqwire decode --hex 0000485504000000d1587355509195954997b6e611ea26c6 -T table
  ssh router tcpdump -U -w - port 1801 | msmqwire decode --table messages -
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import stat
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from msmqwire.cli.arguments import (
    CAPTURE_HELP,
    add_format,
    add_jobs,
    add_output,
    add_quiet,
    add_selection,
    capture_files,
    column_names,
    count,
    read_options,
    usable_cores,
)
from msmqwire.cli.console import CommandError, did_you_mean, optional, say
from msmqwire.cli.counts import counts, report
from msmqwire.cli.formats import FORMATS, ONE_TABLE, chosen_format, table_writer, write_table
from msmqwire.cli.progress import progress
from msmqwire.cli.target import Sink, is_terminal, open_target
from msmqwire.errors import counted, meant, similar

if TYPE_CHECKING:
    import pyarrow as pa

    from msmqwire.capture import ReadOptions, TablesReader
    from msmqwire.insight.sql import Condition

ALL = "all"
DEFAULT = "topology"


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options to the parser."""
    parser.add_argument("files", nargs="+", metavar="FILE", help=CAPTURE_HELP)
    parser.add_argument(
        "--hex", action="store_true", help="FILE is one payload, as a log has it; table shows the field of each byte"
    )
    add_format(parser, (*FORMATS, "eve"))
    add_output(parser)
    parser.add_argument(
        "--table", action="append", metavar="NAME", help="the table to write, see below; may be repeated"
    )
    parser.add_argument(
        "--extract",
        metavar="DIR",
        help="write the body and ExtensionData of each message to files in DIR, with a manifest, and no rows",
    )
    parser.add_argument(
        "--write", metavar="CAPTURE", help="write the frames of the rows to CAPTURE (pcapng), as captured, and no rows"
    )
    parser.add_argument("--columns", type=column_names, metavar="A,B", help="only these columns, in this order")
    parser.add_argument(
        "--where", metavar="CONDITION", help="only rows for which this condition in SQL is true; needs DuckDB"
    )
    parser.add_argument(
        "--queue",
        metavar="NAME",
        help=r"only messages to this queue: a format name or its end, as private$\orders",
    )
    parser.add_argument(
        "--message", metavar=r"GUID\NUMBER", help="only the message with this identifier, as Windows prints it"
    )
    parser.add_argument("-n", "--limit", type=count, metavar="N", help="stop after N rows")
    add_jobs(parser, "decode and encode")
    parser.add_argument("--strict", action="store_true", help="report violations that a receiver discards as faults")
    parser.add_argument("--guid", choices=("text", "binary"), default="text", help="GUIDs in Parquet (default: text)")
    add_selection(parser)
    add_quiet(parser)


def run(options: argparse.Namespace) -> int:
    """Decode; the exit status."""
    optional("pyarrow", "msmqwire decode")
    if options.extract is not None and not options.hex:
        return _extract(options)
    if options.write is not None and not options.hex:
        return _write(options)
    format = chosen_format(options.format, options.output)
    if options.guid == "binary" and format != "parquet":
        raise CommandError(f"--guid binary is for Parquet; {format} shows GUIDs as text")
    if options.hex:
        from msmqwire.cli.payload import decode_hex

        return decode_hex(options, format)
    return _decode_captures(options, format)


def _extract(options: argparse.Namespace) -> int:
    from msmqwire.cli.extract import extract

    if options.table not in (None, ["messages"]):
        raise CommandError(f"--extract writes bodies of messages, not of {', '.join(options.table)}")
    _refuse(options, "--extract writes bodies of messages", "write")
    condition = _condition(options)
    if condition is not None and "messages" not in condition.tables:
        raise CommandError(f"{_chosen_by(options)}: messages lacks columns of the condition")
    return extract(options, condition)


def _refuse(options: argparse.Namespace, instead: str, *names: str) -> None:
    """Refuse the options of rows, and those named, for an option that writes something else."""
    for name in ("columns", "limit", "format", *names):
        if getattr(options, name) is not None:
            raise CommandError(f"{instead}, no rows: leave --{name} out")
    if options.output != "-":
        raise CommandError(f"{instead}, no rows: leave --output out")


def _write(options: argparse.Namespace) -> int:
    """Write the frames of rows to a capture; the exit status."""
    from msmqwire.capture import FRAME_COLUMNS, read_tables
    from msmqwire.capture.chosen_frames import ChosenFrames, copy_frames, open_records

    _refuse(options, "--write writes frames")
    condition = _condition(options)
    tables = _tables(options, "json", condition)
    names, refused = capture_files(options.files)
    if pipes := [name for name in names if name == "-" or _is_pipe(name)]:
        raise CommandError(f"--write reads captures twice, and {pipes[0]} is a pipe: name a file")
    if is_terminal(options.write):
        raise CommandError("a capture is not for a terminal: name a file with --write")
    chosen, found = ChosenFrames(names), 0
    how = _read_options(options, names, dict.fromkeys(tables, FRAME_COLUMNS), _jobs(options, names), condition)
    with read_tables(names, tables, how) as reader, progress(names, wanted=not options.quiet) as show:
        if condition is not None:
            _check_condition(condition, [reader.tables[name].schema for name in tables])
        for _, batch in _selected(reader, condition, ()):
            chosen.add(batch)
            found += batch.num_rows
            show(reader.stats.bytes_read)
    with (
        open_target(options.write, names) as sink,
        open_records(names, ports=chosen.ports) as blocks,
        progress(names, wanted=not options.quiet) as show,
    ):
        written = copy_frames(sink, blocks, chosen.mask, show)
    if not options.quiet:
        say(f"{counted(written, 'frame')} written to {options.write}")
    status = report(*counts(reader, refused), quiet=options.quiet)
    if condition is not None and not options.quiet:
        _say_chosen(options, found)
    return status


def _tables(options: argparse.Namespace, format: str, condition: Condition | None) -> list[str]:
    """The tables to read: of the named tables those that have the requested columns, and those of the condition."""
    from msmqwire.capture import ALL_TABLES, TABLES

    known = ", ".join(ALL_TABLES)
    named = options.table or [ALL]
    for name in named:
        if name not in (*ALL_TABLES, ALL):
            raise CommandError(
                f"--table {name}: no such table{did_you_mean(name, (*ALL_TABLES, ALL))}; there is {known}, {ALL}"
            )
    if options.table and format in ONE_TABLE and (ALL in named or len(set(named)) > 1):
        raise CommandError(f"--table {','.join(named)}: {format} holds one table; name it: {known}")
    tables = [table for table in ALL_TABLES if table in named or (ALL in named and table in TABLES)]
    for place, name in enumerate(options.columns or ()):
        options.columns[place] = name = _current_name(name, tables)
        if not any(name in _all_columns(table) for table in tables):
            raise CommandError(f"--columns {name}: no such column{_like(name, tables)}")
    if options.columns:
        tables = [table for table in tables if set(options.columns) <= set(_all_columns(table))]
    if not tables:
        raise CommandError(f"--columns {','.join(options.columns)}: no table has all of these; name fewer, or --table")
    found = [table for table in tables if condition is None or table in condition.tables]
    if not found:
        raise CommandError(f"{_chosen_by(options)}: {', '.join(tables)} lacks columns of the condition")
    return found


def _current_name(column: str, tables: Sequence[str]) -> str:
    """The name of a column, which may be given by a former name that no column of the tables has now."""
    from msmqwire.capture.table_rows import requested_names

    if any(column in _all_columns(table) for table in tables):
        return column
    return next((found for table in tables for found in requested_names(table, [column]) if found != column), column)


def _all_columns(table: str) -> tuple[str, ...]:
    """The columns of a table, with those that are derived on request."""
    from msmqwire.capture import table_columns
    from msmqwire.insight.bodies import COLUMNS_ON_REQUEST

    return (*table_columns(table), *(COLUMNS_ON_REQUEST if table == "messages" else ()))


def _like(column: str, tables: Sequence[str]) -> str:
    """What a column that the tables lack may be: a column of another table, a similar name, or one of theirs."""
    from msmqwire.capture import ALL_TABLES, table_columns

    if owners := [table for table in ALL_TABLES if column in _all_columns(table)]:
        return f" of {', '.join(tables)}; {' and '.join(owners)} has it"
    for scope in (tables, ALL_TABLES):
        owner = {name: table for table in scope for name in _all_columns(table)}
        if like := similar(column, owner):
            return meant([f"{name} of {owner[name]}" for name in like])
    return f"; {tables[0]} has {', '.join(table_columns(tables[0]))}"


def _decode_captures(options: argparse.Namespace, format: str) -> int:
    from msmqwire.capture import read_tables

    condition = _condition(options)
    tables = _tables(options, format, condition)
    # One table of csv and parquet is written, the others are only counted
    written = tables[:1] if format in ONE_TABLE else tables
    names, refused = capture_files(options.files)
    columns = {table: _written_columns(table, options, format) for table in written}
    if format == "brief" and not options.columns and len(names) == 1 and is_terminal(options.output):
        columns = {table: [name for name in found if name != "file"] for table, found in columns.items()}
    jobs = _jobs(options, names)
    reading = _read_options(options, names, {**dict.fromkeys(tables, ("frame",)), **columns}, jobs, condition)
    if format == "table" and len(tables) > 1 and not options.quiet:
        _announce_wait(names)
    found, left = 0, options.limit
    with (
        read_tables(names, tables, reading) as reader,
        progress(names, wanted=not (options.quiet or is_terminal(options.output))) as show,
        open_target(options.output, names, jobs) as sink,
    ):
        if condition is not None:
            _check_condition(condition, [reader.tables[name].schema for name in tables])
        schemas = {table: _schema(reader.tables[table].schema, columns[table]) for table in written}
        as_read = len(tables) == 1 or format not in ("table", *ONE_TABLE)
        output = _AsRead(schemas, format, sink) if as_read else _OneByOne(schemas, format, sink, options.columns)
        with contextlib.closing(output):
            for name, batch in _selected(reader, condition, _derived_columns(options)):
                found += batch.num_rows
                if name in written:
                    batch = batch.select(schemas[name].names).slice(0, left)
                    left = None if left is None else left - batch.num_rows
                output.write(name, batch)
                show(reader.stats.bytes_read)
                if left == 0:
                    break
            output.finish()
    status = report(*counts(reader, refused), quiet=options.quiet)
    if condition is not None and not options.quiet:
        _say_chosen(options, found)
    if left == 0 and not options.quiet:
        say(f"stopped after {counted(options.limit, 'row')} (--limit)")
    return status


def _selected(
    reader: TablesReader, condition: Condition | None, derived: Sequence[str]
) -> Iterator[tuple[str, pa.RecordBatch]]:
    """The rows that meet the condition, messages with their derived columns."""
    for name, batch in reader:
        if condition is not None:
            batch = condition.rows(batch)
        if derived and name == "messages":
            from msmqwire.insight.bodies import with_bodies

            batch = with_bodies(batch, derived)
        yield name, batch


def _read_options(
    options: argparse.Namespace,
    names: Sequence[str],
    columns: Mapping[str, Sequence[str]],
    jobs: int,
    condition: Condition | None,
) -> ReadOptions:
    """How to read captures, for these columns of each table."""
    from msmqwire.capture.options import BLOCK_SIZE, LARGE_BLOCK_SIZE

    if condition is not None:
        columns = {table: tuple({*chosen, *condition.columns(table)}) for table, chosen in columns.items()}
    if derived := _derived_columns(options):
        from msmqwire.insight.bodies import NEEDED

        columns = {**columns, "messages": tuple(({*columns["messages"]} - {*derived}) | {*NEEDED})}
    return read_options(
        *(options, names),
        columns=columns,
        guid=options.guid,
        dictionaries=False,
        strict=options.strict,
        jobs=jobs,
        # With --limit less is read after the last row
        block_size=LARGE_BLOCK_SIZE if options.limit is None else BLOCK_SIZE,
    )


def _jobs(options: argparse.Namespace, names: Sequence[str]) -> int:
    """The threads to decode in: one where rows are wanted as they come, or reading may stop early."""
    if options.limit is not None or any(name == "-" or _is_pipe(name) for name in names):
        return 1
    return options.jobs or usable_cores()


class _AsRead:
    """Writes rows as they are read; rows of several tables say which table they belong to."""

    def __init__(self, schemas: Mapping[str, pa.Schema], format: str, sink: Sink) -> None:
        # Events always say it
        named = len(schemas) > 1 or format == "eve"
        self._writers = {
            name: table_writer(format, sink, schema, table=name if named else "") for name, schema in schemas.items()
        }

    def write(self, name: str, batch: pa.RecordBatch) -> None:
        self._writers[name].write(batch)

    def finish(self) -> None:
        for writer in self._writers.values():
            writer.finish()

    def close(self) -> None:
        """Nothing was opened."""


class _OneByOne:
    """Writes one table after the other when all rows are read; csv and parquet hold only one.

    Raises
    ------
    CommandError
        From ``finish``: the format holds one table, and another table has rows.
    """

    def __init__(
        self, schemas: Mapping[str, pa.Schema], format: str, sink: Sink, columns: Sequence[str] | None
    ) -> None:
        from msmqwire.cli.spool import Spool

        self._schemas, self._format, self._sink, self._columns = schemas, format, sink, columns
        self._spools = {name: Spool(schema) for name, schema in schemas.items()}
        self._rows: Counter[str] = Counter()

    def write(self, name: str, batch: pa.RecordBatch) -> None:
        self._rows[name] += batch.num_rows
        if name in self._spools and batch.num_rows:
            self._spools[name].write(batch)

    def finish(self) -> None:
        if self._format in ONE_TABLE:
            self._write_only(*self._spools)
            return
        from msmqwire.cli.formats.people import write_omissions, write_tables

        shown = {name: (self._schemas[name], spool) for name, spool in self._spools.items() if self._rows[name]}
        write_tables(self._sink, self._format, shown)
        if shown:
            write_omissions(self._sink, [name for name in self._spools if name not in shown], self._columns)

    def _write_only(self, name: str) -> None:
        from msmqwire.capture import TABLES

        if self._rows.total() > self._rows[name]:
            others = [f"{other} ({self._rows[other]:,})" for other in TABLES if self._rows[other]]
            raise CommandError(
                f"{self._format} holds one table, and these have rows: {', '.join(others)}; choose one with --table, "
                "or use -T json"
            )
        write_table(self._format, self._sink, self._schemas[name], self._spools[name])

    def close(self) -> None:
        """Delete temporary files."""
        for spool in self._spools.values():
            spool.close()


def _written_columns(table: str, options: argparse.Namespace, format: str) -> Sequence[str]:
    """The columns of a table to write, in their order."""
    from msmqwire.capture import table_columns

    if options.columns:
        return options.columns  # type: ignore[no-any-return]
    names = table_columns(table)
    if format in ("table", "brief"):
        from msmqwire.cli.formats.people import columns_shown

        wanted = columns_shown(table)
        return names if wanted is None else [name for name in names if name in wanted]
    return names


def _schema(schema: pa.Schema, names: Sequence[str]) -> pa.Schema:
    """The schema of the columns to write; derived columns are text."""
    import pyarrow as pa

    known = {field.name: field for field in schema}
    return pa.schema([known.get(name, pa.field(name, pa.string())) for name in names])


def _derived_columns(options: argparse.Namespace) -> list[str]:
    """The requested columns that are derived from bodies of messages."""
    if not options.columns:
        return []
    from msmqwire.insight.bodies import COLUMNS_ON_REQUEST

    return [name for name in options.columns if name in COLUMNS_ON_REQUEST]


def _condition(options: argparse.Namespace) -> Condition | None:
    """The condition of ``--where``, ``--queue`` and ``--message``, which all must be true; None without them."""
    parts = []
    if options.where is not None:
        parts.append(("--where", f"({options.where}\n)" if options.queue or options.message else options.where))
    if options.queue is not None:
        parts.append(("--queue", _to_queue(options.queue)))
    if options.message is not None:
        parts.append(("--message", _of_message(options.message)))
    if not parts:
        return None
    optional("duckdb", parts[0][0])
    from msmqwire.insight.sql import Condition

    return Condition(" AND ".join(text for _, text in parts))


def _say_chosen(options: argparse.Namespace, rows: int) -> None:
    """Say for how many rows the condition is true."""
    chosen = _chosen_by(options, values=False)
    say(f"{chosen} {'are' if ' ' in chosen else 'is'} true for {counted(rows, 'row')}")


def _chosen_by(options: argparse.Namespace, *, values: bool = True) -> str:
    """The options that a condition is made of."""
    given = {"--where": options.where, "--queue": options.queue, "--message": options.message}
    return " ".join(f"{name} {value}" if values else name for name, value in given.items() if value is not None)


def _to_queue(name: str) -> str:
    """The condition in SQL that a message goes to a queue, whose name has letters of any case."""
    # The name, or its end after a part of a format name; of several destinations each in a line
    pattern = r"(?i)(^|[\\:=/\n])" + re.escape(name.removeprefix("\\")) + r"(\n|$)"
    names = "concat_ws(chr(10), destination_queue, array_to_string(destination_queues, chr(10)))"
    return f"regexp_matches({names}, {_quoted(pattern)})"


def _of_message(identifier: str) -> str:
    from msmqwire.cli.packets import parse_message_identifier

    try:
        manager, number = parse_message_identifier(identifier)
    except ValueError as error:
        raise CommandError(f"--message: {error}") from None
    identifier = f"{manager}\\{number}"
    return f"message_identifier = {_quoted(identifier)}"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _check_condition(condition: Condition, schemas: Sequence[pa.Schema]) -> None:
    from msmqwire.insight.sql import SqlError

    try:
        for schema in schemas:
            condition.check(schema)
    except SqlError as error:
        raise CommandError(f"--where: {error}") from None


def _announce_wait(names: Sequence[str]) -> None:
    """Say that the rows of a pipe appear when it ends, and how to see them as they are read."""
    pipe = next((name for name in names if name == "-" or _is_pipe(name)), None)
    if pipe is not None and sys.stderr is not None and sys.stderr.isatty():
        say(f"reading {pipe} to its end first; with --table NAME rows appear as they are read")


def _is_pipe(name: str) -> bool:
    try:
        return stat.S_ISFIFO(os.stat(name).st_mode)
    except OSError:
        return False
