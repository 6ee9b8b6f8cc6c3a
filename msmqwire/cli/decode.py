"""``msmqwire decode``: captures in, or bodies of messages, rows out."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from msmqwire.cli.arguments import column_names, input_file, ports
from msmqwire.cli.console import CommandError, optional, report, report_bodies
from msmqwire.cli.forms import FORMS, chosen_form, table_writer
from msmqwire.cli.progress import progress
from msmqwire.cli.target import open_target, standard_output

if TYPE_CHECKING:
    from msmqwire.capture.tables import TableReader
    from msmqwire.cli.bodies import BodyReader

__all__ = ["add", "run"]

_EPILOG = """\
forms (-T):
  table     for people: a packet a row with the fields that it carries
  json      JSON lines: an object a row, every column in it, null where it has no value
  csv       RFC 4180; lists and structs are JSON in their cell; text that a spreadsheet
            would take for a formula has an apostrophe in front
  parquet   Zstandard, GUIDs as text (--guid binary: 16 bytes)

Without -T the form follows the name of OUT (.parquet .json .jsonl .ndjson .csv); without
OUT it is table on a terminal and json otherwise. OUT appears when it is whole: an error,
Ctrl-C or a full disk leaves what stood there before.

exit status:
  0  every frame was read and every payload decoded
  1  wrong usage, or a file that cannot be read or written, or is no capture
  2  some payloads had faults, or some frames were damaged; standard error counts them

examples:
  msmqwire decode capture.pcapng
  msmqwire decode capture.pcapng | jq 'select(.fault) | {frame, fault}'
  msmqwire decode *.pcap -o packets.parquet
  msmqwire decode capture.pcap --columns frame,src,servers -T csv > servers.csv
  msmqwire decode --kind notification body.bin bodies.parquet
  ssh router tcpdump -U -w - udp port 1801 | msmqwire decode -
"""


def add(subcommands: Any) -> None:
    """Add the subcommand to the parser."""
    parser = subcommands.add_parser(
        "decode",
        help="read captures as a table",
        description="Read captures (pcap or pcapng), or bodies of messages, and write what is in them as a table.",
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
    parser.add_argument("--table", help="topology (default): the packets of discovery, MS-MQSD")
    parser.add_argument("--columns", type=column_names, metavar="A,B", help="only these columns, in this order")
    parser.add_argument(
        "--strict", action="store_true", help="what a conforming receiver would discard is a fault, not a violation"
    )
    parser.add_argument("--guid", choices=("text", "binary"), default="text", help="GUIDs in Parquet (default: text)")
    parser.add_argument("--ports", type=ports, metavar="N,N", help="the ports to look at instead of the table's own")
    parser.add_argument("-q", "--quiet", action="store_true", help="no counts and no progress on standard error")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Decode; the exit status."""
    optional("pyarrow", "msmqwire decode")
    if options.kind == "capture":
        _check_table(options)
    elif options.table or options.ports:
        raise CommandError(
            f"{'--table' if options.table else '--ports'} is for captures, not for --kind {options.kind}"
        )
    terminal = options.output == "-" and standard_output().isatty()
    form = chosen_form(options.form, options.output, terminal=terminal)
    if options.guid == "binary" and form != "parquet":
        raise CommandError(f"--guid binary is for Parquet; {form} shows GUIDs as text")
    if form == "table":
        optional("rich", "the table on a terminal")
    if options.kind == "notification":
        bodies = _body_reader(options)
        _write(bodies, options, form, terminal=terminal)
        if not options.quiet:
            report_bodies(bodies.stats.messages, bodies.rows, bodies.faults)
        return 2 if bodies.faults else 0
    reader = _reader(options)
    _write(reader, options, form, terminal=terminal)
    if not options.quiet:
        report(reader.stats, reader.rows, reader.faults)
    return 2 if reader.faults or reader.stats.damaged or reader.stats.problems else 0


def _check_table(options: argparse.Namespace) -> None:
    from msmqwire.capture.tables import TABLES, table_columns

    options.table = options.table or "topology"
    if options.table not in TABLES:
        raise CommandError(f"--table {options.table}: no such table; there is {', '.join(TABLES)}")
    columns = table_columns(options.table)
    for name in options.columns or ():
        if name not in columns:
            raise CommandError(f"--columns {name}: no such column; {options.table} has {', '.join(columns)}")


def _body_reader(options: argparse.Namespace) -> BodyReader:
    from msmqwire.cli.bodies import BodyReader

    files = [input_file(name, "body") for name in options.files]
    return BodyReader(files, columns=options.columns, guid=options.guid, strict=options.strict)


def _reader(options: argparse.Namespace) -> TableReader:
    from msmqwire.capture import tables

    return tables.read_table(
        [input_file(name) for name in options.files],
        options.table,
        columns=options.columns,
        guid=options.guid,
        strict=options.strict,
        ports=options.ports,
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
