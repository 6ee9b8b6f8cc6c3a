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
table: without --table they write topology, and end with an error at the first row of another table.

formats (-T):
  table     for people: a line for each packet, and below it the fields that are not null, zero or empty;
            with --columns the first 1,000 rows in columns
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

Captures may be compressed (gzip, zstd, lz4, xz, bzip2), whatever their names. Rows appear as they
are read, but those of parquet, and of table with --columns.

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
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from msmqwire.cli.arguments import (
    CAPTURE_HELP,
    add_format,
    add_hex,
    add_jobs,
    add_output,
    add_quiet,
    add_selection,
    add_strict,
    capture_files,
    column_names,
    count,
    is_pipe,
    read_options,
    usable_cores,
)
from msmqwire.cli.chosen_rows import ChosenRows, add_conditions
from msmqwire.cli.console import CommandError, did_you_mean, optional, say
from msmqwire.cli.counts import counts, report
from msmqwire.cli.formats import FORMATS, ONE_TABLE, TablesWriter, chosen_format
from msmqwire.cli.progress import progress
from msmqwire.cli.target import is_terminal, open_target
from msmqwire.errors import counted, meant, similar

if TYPE_CHECKING:
    import pyarrow as pa

ALL = "all"


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options to the parser."""
    parser.add_argument("files", nargs="+", metavar="FILE", help=CAPTURE_HELP)
    add_hex(parser, "FILE", "; table shows the field of each byte")
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
    add_conditions(parser)
    parser.add_argument("-n", "--limit", type=count, metavar="N", help="stop after N rows")
    add_jobs(parser, "decode and encode")
    add_strict(parser)
    parser.add_argument("--guid", choices=("text", "binary"), default="text", help="GUIDs in Parquet (default: text)")
    add_selection(parser)
    add_quiet(parser)


def run(options: argparse.Namespace) -> int:
    """Decode; the exit status."""
    optional("pyarrow", "msmqwire decode")
    if options.hex:
        from msmqwire.cli.payload import decode_hex

        return decode_hex(options)
    if options.extract is not None:
        _refuse(options, "--extract writes bodies of messages", "write")
        if options.table not in (None, ["messages"]):
            raise CommandError(f"--extract writes bodies of messages, not of {', '.join(options.table)}")
        from msmqwire.cli.extract import extract

        return extract(options, ChosenRows(options))
    if options.write is not None:
        _refuse(options, "--write writes frames")
        from msmqwire.cli.write_frames import write_frames

        chosen = ChosenRows(options)
        return write_frames(options, chosen.tables(_tables(options)), chosen)
    return _write_rows(options)


def _refuse(options: argparse.Namespace, instead: str, *names: str) -> None:
    """Refuse the options of rows, and those named, for an option that writes something else."""
    for name in ("columns", "limit", "format", *names):
        if getattr(options, name) is not None:
            raise CommandError(f"{instead}, no rows: leave --{name} out")
    if options.output != "-":
        raise CommandError(f"{instead}, no rows: leave --output out")


def _write_rows(options: argparse.Namespace) -> int:
    """Write rows as they are read; the exit status."""
    from msmqwire.capture import read_tables
    from msmqwire.capture.options import BLOCK_SIZE, LARGE_BLOCK_SIZE

    format = chosen_format(options.format, options.output)
    if options.guid == "binary" and format != "parquet":
        raise CommandError(f"--guid binary is for Parquet; {format} shows GUIDs as text")
    chosen = ChosenRows(options)
    tables = chosen.tables(_tables(options, format))
    names, refused = capture_files(options.files)
    written = {table: _columns(table, options, format, names) for table in tables}
    read = {table: {*columns, *chosen.columns(table)} for table, columns in written.items()}
    derived = []
    if options.columns:
        from msmqwire.insight.bodies import COLUMNS_ON_REQUEST, NEEDED, with_bodies

        derived = [name for name in options.columns if name in COLUMNS_ON_REQUEST]
    if derived:
        read["messages"] = (read["messages"] | {*NEEDED}) - {*derived}
    # Else rows are wanted as they come, or reading stops early
    in_threads = options.limit is None and not any(map(is_pipe, names))
    jobs = options.jobs or usable_cores() if in_threads else 1
    how = read_options(
        *(options, names),
        columns={table: tuple(columns) for table, columns in read.items()},
        guid=options.guid,
        dictionaries=False,
        strict=options.strict,
        jobs=jobs,
        # With --limit less is read after the last row
        block_size=LARGE_BLOCK_SIZE if options.limit is None else BLOCK_SIZE,
    )
    with (
        read_tables(names, tables, how) as reader,
        progress(names, wanted=not (options.quiet or is_terminal(options.output))) as show,
        open_target(options.output, names, jobs) as sink,
    ):
        schemas = {table: _schema(reader.tables[table].schema, columns) for table, columns in written.items()}
        writer = TablesWriter(format, sink, schemas)
        for name, batch in chosen.rows(reader, show):
            if derived:
                batch = with_bodies(batch, derived)
            if options.limit is not None:
                batch = batch.slice(0, options.limit - writer.rows.total())
            writer.write(name, batch)
            if writer.rows.total() == options.limit:
                break
        writer.finish()
        if format == "table" and len(tables) > 1:
            sink.write(_omissions(writer.rows, tables, options.columns).encode())
    status = report(*counts(reader, refused), quiet=options.quiet)
    chosen.report(quiet=options.quiet)
    if writer.rows.total() == options.limit and not options.quiet:
        say(f"stopped after {counted(options.limit, 'row')} (--limit)")
    return status


def _tables(options: argparse.Namespace, format: str = "") -> list[str]:
    """Return the named tables that have all of the requested columns, one for a format that holds only one."""
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
    if not options.columns:
        return tables
    for place, name in enumerate(options.columns):
        options.columns[place] = name = _current_name(name, tables)
        if not any(name in _all_columns(table) for table in tables):
            raise CommandError(f"--columns {name}: no such column{_like(name, tables)}")
    found = [table for table in tables if {*options.columns} <= {*_all_columns(table)}]
    if not found:
        raise CommandError(f"--columns {','.join(options.columns)}: no table has all of these; name fewer, or --table")
    return found


def _current_name(column: str, tables: Sequence[str]) -> str:
    """Return the name of a column, which may be given by a former name that no column of the tables has now."""
    from msmqwire.capture.table_rows import requested_names

    if any(column in _all_columns(table) for table in tables):
        return column
    return next((found for table in tables for found in requested_names(table, [column]) if found != column), column)


def _all_columns(table: str) -> tuple[str, ...]:
    """Return the columns of a table, with those that are derived on request."""
    from msmqwire.capture import table_columns
    from msmqwire.insight.bodies import COLUMNS_ON_REQUEST

    return (*table_columns(table), *(COLUMNS_ON_REQUEST if table == "messages" else ()))


def _like(column: str, tables: Sequence[str]) -> str:
    """Return what a column that the tables lack may be: one of another table, a similar name, or one of theirs."""
    from msmqwire.capture import ALL_TABLES, table_columns

    if owners := [table for table in ALL_TABLES if column in _all_columns(table)]:
        return f" of {', '.join(tables)}; {' and '.join(owners)} has it"
    for scope in (tables, ALL_TABLES):
        owner = {name: table for table in scope for name in _all_columns(table)}
        if like := similar(column, owner):
            return meant([f"{name} of {owner[name]}" for name in like])
    return f"; {tables[0]} has {', '.join(table_columns(tables[0]))}"


def _columns(table: str, options: argparse.Namespace, format: str, files: Sequence[str]) -> Sequence[str]:
    """Return the columns of a table to write, in their order; people see the most important ones."""
    from msmqwire.capture import table_columns

    if options.columns:
        return options.columns  # type: ignore[no-any-return]
    names = table_columns(table)
    if format not in ("table", "brief"):
        return names
    from msmqwire.cli.formats.people import columns_shown

    one_file = len(files) == 1 and (format == "table" or is_terminal(options.output))
    return [name for name in names if name in columns_shown(table) and not (one_file and name == "file")]


def _schema(schema: pa.Schema, names: Sequence[str]) -> pa.Schema:
    """Return the schema of the columns to write; derived columns are text."""
    import pyarrow as pa

    known = {field.name: field for field in schema}
    return pa.schema([known.get(name, pa.field(name, pa.string())) for name in names])


def _omissions(rows: Counter[str], tables: Sequence[str], columns: Sequence[str] | None) -> str:
    """Return which tables have no rows, and what is left out of the others."""
    if not rows.total():
        return "no rows\n"
    without_rows = [table for table in tables if not rows[table]]
    other = "" if "messages" in without_rows else ", most columns of messages"
    none = f"no rows of {', '.join(without_rows)}\n" if without_rows else ""
    if columns:
        return none
    return f"{none}not shown: null, zero and empty fields, the rest of values that end in …{other} (-T json has them)\n"
