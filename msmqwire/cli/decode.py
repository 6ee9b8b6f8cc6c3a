"""``msmqwire decode``: captures in, or bodies of messages, rows out."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypedDict

from msmqwire.cli.arguments import column_names, input_files, moment, network, ports
from msmqwire.cli.console import CommandError, is_whole, optional, report, report_bodies, say
from msmqwire.cli.forms import FORMS, chosen_form, table_writer
from msmqwire.cli.progress import progress
from msmqwire.cli.target import open_target, standard_output

if TYPE_CHECKING:
    from msmqwire.capture.tables import TableReader
    from msmqwire.cli.bodies import BodyReader

__all__ = ["add", "run"]


class Selection(TypedDict):
    """Which payloads are wanted, as ``capture.open`` takes it."""

    addresses: Sequence[str]
    since: int | None
    until: int | None


ALL = "all"

_EPILOG = """\
tables (--table):
  topology       packets of discovery, MS-MQSD
  notifications  changes of queues and machines that messages tell of, MS-MQCN
  messages       messages and their acknowledgments, MS-MQQB
  sessions       pings, and the packets that open and keep up a session, MS-MQQB
  all            each that has rows, one after the other: the default of -T table; with
                 -T json as they come, and the first member of each object, table, says
                 which it is of
Without --table, json, csv and parquet have topology; so has table with --columns or --ports.

forms (-T):
  table     for people: a packet a row with the fields that it carries
  json      JSON lines: an object a row, every column in it, null where it has no value
  csv       RFC 4180; lists and structs are JSON in their cell; text that a spreadsheet
            would take for a formula has an apostrophe in front
  parquet   Zstandard, GUIDs as text (--guid binary: 16 bytes)

Without -T the form follows the name of OUT (.parquet .json .jsonl .ndjson .csv); without
OUT it is table on a terminal and json otherwise. OUT appears when it is whole: an error,
Ctrl-C or a full disk leaves what stood there before.

Captures may be compressed (gzip, zstd, lz4, xz, bzip2), whatever their names. For people
all tables of a pipe are shown when it ends; one --table, or JSON, as it comes.

exit status:
  0  every frame was read and every payload decoded
  1  wrong usage, or a file that cannot be read or written, or is no capture
  2  something was lost: payloads had faults, frames or streams were damaged or cut, or
     change notifications were encrypted; standard error counts them

examples:
  msmqwire decode capture.pcapng
  msmqwire decode capture.pcapng | jq 'select(.fault) | {frame, fault}'
  msmqwire decode --table all -T json day.pcap.zst | jq 'select(.table == "messages") | .label'
  msmqwire decode --table messages --address 10.20.1.0/24 --since 2024-03-04T08:00 day.pcap
  msmqwire decode *.pcap --table notifications -o changes.parquet
  msmqwire decode capture.pcap --columns frame,src,servers -T csv > servers.csv
  msmqwire decode --kind notification body.bin bodies.parquet
  ssh router tcpdump -U -w - port 1801 | msmqwire decode --table messages -
"""


def add(subcommands: Any) -> None:
    """Add the subcommand to the parser."""
    parser = subcommands.add_parser(
        "decode",
        help="read captures as tables",
        description="Read captures (pcap or pcapng), or bodies of messages, and write what is in them as tables.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("files", nargs="+", metavar="FILE", help="a capture; - is standard input")
    parser.add_argument(
        "--kind",
        choices=("capture", "notification"),
        default="capture",
        help="what FILE is: a capture (default), or the body of a change notification, MS-MQCN; a Parquet file has one "
        "in each row, in the column payload",
    )
    parser.add_argument("-T", "--form", choices=FORMS, help="the form to write, see below")
    parser.add_argument("-o", "--output", default="-", metavar="OUT", help="a file; - is standard output (default)")
    parser.add_argument("--table", metavar="NAME", help="the table to write, see below")
    parser.add_argument("--columns", type=column_names, metavar="A,B", help="only these columns, in this order")
    parser.add_argument(
        "--strict", action="store_true", help="what a conforming receiver would discard is a fault, not a violation"
    )
    parser.add_argument("--guid", choices=("text", "binary"), default="text", help="GUIDs in Parquet (default: text)")
    parser.add_argument("--ports", type=ports, metavar="N,N", help="the ports to look at instead of the table's own")
    parser.add_argument(
        "--address",
        dest="addresses",
        action="append",
        default=[],
        type=network,
        metavar="NET",
        help="only what this address or network (10.20.1.0/24) sent or received; may be given several times",
    )
    parser.add_argument(
        "--since",
        type=moment,
        metavar="TIME",
        help="only what was captured then or later: ISO 8601, UTC without a zone",
    )
    parser.add_argument("--until", type=moment, metavar="TIME", help="only what was captured before then")
    parser.add_argument("-q", "--quiet", action="store_true", help="no counts and no progress on standard error")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Decode; the exit status."""
    optional("pyarrow", "msmqwire decode")
    _check_selection(options)
    terminal = options.output == "-" and standard_output().isatty()
    form = chosen_form(options.form, options.output, terminal=terminal)
    if options.kind == "capture":
        _choose_table(options, form)
    if options.guid == "binary" and form != "parquet":
        raise CommandError(f"--guid binary is for Parquet; {form} shows GUIDs as text")
    if form == "table":
        optional("rich", "the table on a terminal")
    if options.kind == "notification":
        return _decode_bodies(options, form, terminal=terminal)
    if options.table == ALL:
        return _decode_every_table(options, form, terminal=terminal)
    return _decode_table(options, form, terminal=terminal)


def _decode_bodies(options: argparse.Namespace, form: str, *, terminal: bool) -> int:
    bodies = _body_reader(options)
    _write(bodies, options, form, terminal=terminal)
    if not options.quiet:
        report_bodies(bodies.stats.messages, bodies.rows, bodies.faults)
    return 2 if bodies.faults else 0


def _decode_table(options: argparse.Namespace, form: str, *, terminal: bool) -> int:
    reader = _reader(options, form)
    _write(reader, options, form, terminal=terminal)
    if not options.quiet:
        report(reader.stats, reader.rows, reader.faults, encrypted=reader.encrypted, unread=reader.unread)
        if options.table_by_default and not reader.rows and reader.stats.other:
            say("topology, the table without --table, has no rows; --table all shows what there is")
    whole = is_whole(reader.stats) and not (reader.faults or reader.encrypted or reader.unread)
    return 0 if whole else 2


def _decode_every_table(options: argparse.Namespace, form: str, *, terminal: bool) -> int:
    from msmqwire.capture.tables import TABLES, read_tables
    from msmqwire.cli import every_table
    from msmqwire.cli.forms.terminal import columns_shown

    names = input_files(options.files)
    people = form == "table"
    columns = {name: shown for name in TABLES if people and (shown := columns_shown(name))}
    if people and not options.quiet:
        every_table.tell_who_waits(names)
    with (
        read_tables(names, columns=columns, strict=options.strict, **_selection(options)) as reader,
        progress(names, wanted=not (options.quiet or terminal)) as show,
        open_target(options.output, names) as sink,
    ):
        if people:
            every_table.write_one_after_the_other(reader, sink, show)
        else:
            every_table.write_as_they_come(reader, form, sink, show)
    faults = every_table.faults_of(reader)
    encrypted = sum(table.encrypted for table in reader.tables.values())
    if not options.quiet:
        rows = {name: table.rows for name, table in reader.tables.items()}
        report(reader.stats, rows, faults, encrypted=encrypted)
    return 0 if is_whole(reader.stats) and not (faults or encrypted) else 2


def _check_selection(options: argparse.Namespace) -> None:
    if options.kind != "capture":
        for name in ("table", "ports", "addresses", "since", "until"):
            if getattr(options, name) not in (None, []):
                option = "address" if name == "addresses" else name
                raise CommandError(f"--{option} is for captures, not for --kind {options.kind}")
    if options.since is not None and options.until is not None and options.since >= options.until:
        raise CommandError("--until must be later than --since")


def _selection(options: argparse.Namespace) -> Selection:
    return {"addresses": options.addresses, "since": options.since, "until": options.until}


def _choose_table(options: argparse.Namespace, form: str) -> None:
    """Settle which table to write, and whether it has the columns asked for."""
    from msmqwire.capture.tables import TABLES, table_columns

    options.table_by_default = options.table is None
    if options.table is None:
        options.table = ALL if form == "table" and not (options.columns or options.ports) else "topology"
    if options.table == ALL:
        if form not in ("table", "json"):
            raise CommandError(f"--table {ALL}: {form} has one table; name it: {', '.join(TABLES)}")
        for option in ("columns", "ports"):
            if getattr(options, option):
                raise CommandError(f"--{option} is for one table; name it with --table: {', '.join(TABLES)}")
        return
    if options.table not in TABLES:
        raise CommandError(f"--table {options.table}: no such table; there is {', '.join(TABLES)}, {ALL}")
    columns = table_columns(options.table)
    for name in options.columns or ():
        if name not in columns:
            raise CommandError(f"--columns {name}: no such column; {options.table} has {', '.join(columns)}")


def _body_reader(options: argparse.Namespace) -> BodyReader:
    from msmqwire.cli.bodies import BodyReader

    files = input_files(options.files, "body")
    return BodyReader(files, columns=options.columns, guid=options.guid, strict=options.strict)


def _reader(options: argparse.Namespace, form: str) -> TableReader:
    from msmqwire.capture import tables

    columns = options.columns
    if form == "table" and not columns:
        from msmqwire.cli.forms.terminal import columns_shown

        columns = columns_shown(options.table)
    return tables.read_table(
        input_files(options.files),
        options.table,
        columns=columns,
        guid=options.guid,
        strict=options.strict,
        ports=options.ports,
        **_selection(options),
    )


def _write(reader: TableReader | BodyReader, options: argparse.Namespace, form: str, *, terminal: bool) -> None:
    import pyarrow as pa

    schema: pa.Schema = reader.schema
    order = options.columns or schema.names
    ordered = pa.schema([schema.field(name) for name in order])
    wanted = not (options.quiet or terminal)
    with progress(options.files, wanted=wanted) as show, open_target(options.output, options.files) as sink:
        writer = table_writer(form, sink, ordered)
        for batch in reader:
            writer.write(batch.select(order))
            show(reader.stats.bytes_read)
        writer.finish()
