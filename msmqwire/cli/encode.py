"""``msmqwire encode``: rows in JSON, as ``msmqwire decode`` writes them, back into packets."""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any

from msmqwire.cli.arguments import input_file, moment
from msmqwire.cli.console import CommandError, counted, say
from msmqwire.cli.target import open_target

if TYPE_CHECKING:
    from msmqwire.cli.packets import Row
    from msmqwire.cli.target import Sink

__all__ = ["add", "run"]

_TABLES = ("topology", "notifications", "messages", "sessions")
#: The columns that say where a packet was, and what stands for them in a row that was written by hand: addresses of
#: RFC 5737.
_PLACE = {"src": "192.0.2.1", "src_port": 49152, "dst": "192.0.2.2", "dst_port": 1801}
_PING_PORT = 3527
#: The columns that rows of one packet have alike.
_PACKET = ("file", "frame", "stream_offset", "src", "src_port", "dst", "dst_port")

_EPILOG = """\
Rows are those of msmqwire decode -T json, or written by hand: what a packet does not need may
be left out. A row is a packet; of notifications, all rows of a message are one, in a message
to the notify queue that is otherwise empty, unless the row of the message that carried them
is there as well (decode --table all). Rows that do not say which table they are of are those
of --table. Without addresses a packet goes from 192.0.2.1 to 192.0.2.2, without a time it is
of 1970.

forms (-T):
  pcap  a capture that decodes to the same rows; only file, frame, first_frame, the case of keywords
        in direct names (private$) and, where a stream is not there as a whole, stream_offset
        are others (default)
  hex   a line of hexadecimal digits for each packet

Rows are put in the order of their times, for which all are held in memory. Left out are those
with a fault or violations, which no conforming sender writes, and those of IPX.

exit status:
  0  every row was written
  1  wrong usage, or a file that cannot be read or written, or a row that is no packet
  2  some rows were left out; standard error counts them

examples:
  msmqwire decode --table all -T json day.pcap | jq -c 'select(.src == "10.20.1.25")' \\
    | msmqwire encode -o excerpt.pcap
  msmqwire decode day.pcap -T json | sed s/10.20.1/192.0.2/g | msmqwire encode -o safe.pcap
"""


def add(subcommands: Any) -> None:
    """Add the subcommand to the parser."""
    parser = subcommands.add_parser(
        "encode",
        help="write packets, or a capture, from rows in JSON",
        description="Write packets from rows in JSON lines: a capture, or hexadecimal digits.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        "file", nargs="?", default="-", metavar="FILE", help="JSON lines; - is standard input (default)"
    )
    parser.add_argument(
        "--table", choices=_TABLES, default="topology", help="of rows that do not say which (default: topology)"
    )
    parser.add_argument("-T", "--form", choices=("pcap", "hex"), default="pcap", help="the form to write, see below")
    parser.add_argument("-o", "--output", default="-", metavar="OUT", help="a file; - is standard output (default)")
    parser.add_argument("-q", "--quiet", action="store_true", help="no counts on standard error")
    parser.set_defaults(run=run)


@dataclass(frozen=True, slots=True)
class _Packet:
    """The rows of a packet, and the line of the first."""

    line: int
    table: str
    rows: tuple[Row, ...]

    @property
    def transport(self) -> str:
        """What carries it."""
        row = self.rows[0]
        datagram = self.table == "topology" or row.get("kind") == "ping"
        return str(row.get("transport") or ("udp" if datagram else "tcp"))

    @property
    def is_left_out(self) -> bool:
        """Whether it is none that we can write."""
        return self.transport == "ipx" or any(row.get("fault") or row.get("violations") for row in self.rows)


def run(options: argparse.Namespace) -> int:
    """Encode; the exit status."""
    with _opened(options.file) as file:
        packets = list(_packets(_rows(file, options)))
    carried = {_identity(packet.rows[0]) for packet in packets if packet.table == "messages"}
    packets = [each for each in packets if each.table != "notifications" or _identity(each.rows[0]) not in carried]
    written = [packet for packet in packets if not packet.is_left_out]
    with open_target(options.output, [options.file]) as sink:
        if options.form == "pcap":
            _write_capture(sink, written, options.file)
        else:
            for packet in written:
                sink.write(_encoded(packet, options.file).hex().encode() + b"\n")
    left_out = sum(len(packet.rows) for packet in packets if packet.is_left_out)
    if not options.quiet:
        say(
            f"{counted(len(written), 'packet')} written"
            + (f", {counted(left_out, 'row')} left out" if left_out else "")
        )
    return 2 if left_out else 0


@contextlib.contextmanager
def _opened(name: str) -> Iterator[IO[bytes]]:
    if input_file(name, "table of JSON lines") == "-":
        yield sys.stdin.buffer
    else:
        with open(name, "rb") as file:
            yield file


def _rows(file: IO[bytes], options: argparse.Namespace) -> Iterator[tuple[int, str, dict[str, Any]]]:
    """The line, the table and the columns of each row."""
    from msmqwire.capture import table_columns

    known = {table: {*table_columns(table), "fault", "violations"} for table in _TABLES}
    for number, line in enumerate(file, 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            if not isinstance(row, dict):
                raise ValueError("is no object")
            table = row.pop("table", options.table)
            if table not in _TABLES:
                raise ValueError(f"there is no table {table}; there is {', '.join(_TABLES)}")
            if more := row.keys() - known[table]:
                raise ValueError(f"{', '.join(sorted(more))}: no such column of {table}")
        except UnicodeDecodeError:
            raise CommandError(f"{options.file}: line {number}: is no text; expected JSON lines in UTF-8") from None
        except json.JSONDecodeError as error:
            raise CommandError(f"{options.file}: line {number}: is no JSON object: {error}") from None
        except RecursionError:
            raise CommandError(f"{options.file}: line {number}: is no row: it is nested too deeply") from None
        except ValueError as error:
            raise CommandError(f"{options.file}: line {number}: {error}") from None
        yield number, table, row


def _packets(rows: Iterable[tuple[int, str, dict[str, Any]]]) -> Iterator[_Packet]:
    """Rows by packets: those of a notification but the first have a position above 0 in it."""
    held: list[dict[str, Any]] = []
    start = 0
    for line, table, row in rows:
        if table == "notifications" and held and row.get("index") and _identity(row) == _identity(held[0]):
            held.append(row)
            continue
        if held:
            yield _Packet(start, "notifications", tuple(held))
            held = []
        if table == "notifications":
            start, held = line, [row]
        else:
            yield _Packet(line, table, (row,))
    if held:
        yield _Packet(start, "notifications", tuple(held))


def _identity(row: Row) -> tuple[str, ...]:
    """What tells the packet of a row from others; as text, since a row written by hand may hold anything."""
    return tuple(repr(row.get(column)) for column in _PACKET)


def _write_capture(sink: Sink, packets: Iterable[_Packet], name: str) -> None:
    from msmqwire.capture.files.writing import CaptureWriter, Flow

    writer = CaptureWriter(sink)
    for time, packet in _in_order(packets, name):
        with _errors_of(packet, name):
            write = writer.datagram if packet.transport == "udp" else writer.stream
            write(time, Flow(**_place(packet.rows[0])), _encoded(packet, name))


def _place(row: Row) -> dict[str, Any]:
    place = {**_PLACE, "dst_port": _PING_PORT if row.get("kind") == "ping" else _PLACE["dst_port"]}
    return {column: default if row.get(column) is None else row[column] for column, default in place.items()}


def _in_order(packets: Iterable[_Packet], name: str) -> list[tuple[int, _Packet]]:
    """Packets with their times; those of one time by where they were in their capture."""
    timed = []
    for packet in packets:
        row = packet.rows[0]
        with _errors_of(packet, name):
            time = 0 if row.get("time") is None else moment(row["time"])
            place = [row.get(column) or 0 for column in ("frame", "stream_offset")]
            if not all(isinstance(number, int) for number in place):
                raise ValueError("frame and stream_offset must be integers")
            timed.append(((time, *place), packet))
    timed.sort(key=lambda each: each[0])
    return [(order[0], packet) for order, packet in timed]


def _encoded(packet: _Packet, name: str) -> bytes:
    from msmqwire.cli.packets import packet_of

    with _errors_of(packet, name):
        return packet_of(packet.table, packet.rows)


@contextlib.contextmanager
def _errors_of(packet: _Packet, name: str) -> Iterator[None]:
    """What is wrong with a row, with its place in the file."""
    from msmqwire.errors import EncodeError

    where = f"{name}: line {packet.line}"
    try:
        yield
    except EncodeError as error:
        raise CommandError(f"{where}: {error}") from None
    except KeyError as error:
        raise CommandError(f"{where}: {error.args[0]} is missing, or is none of its names") from None
    except (ValueError, TypeError, AttributeError, argparse.ArgumentTypeError) as error:
        raise CommandError(f"{where}: {error}") from None
