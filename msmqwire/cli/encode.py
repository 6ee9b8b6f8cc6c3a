"""Write packets from rows in JSON lines: a capture, or hexadecimal digits.

Rows are those of msmqwire decode -T json, or written by hand with the columns that the packet
needs. A row is a packet. All notifications of a message are one packet: the message, if its row
is there as well, or a new message to the notify queue. A row without the member "table" is of the
table that has its columns. The default addresses are 192.0.2.1 and 192.0.2.2, the default time is 1970.

A message may have body_text instead of body: UTF-16 with body_type 8 or 31 (the default), else UTF-8.
Where a row has a column and its text (body_text, body_type_name, message_class_name, sender_sid),
both must agree.

formats (-T):
  pcap  a capture that decodes to the same rows (default), except for file, frame, first_frame, the
        case of keywords in direct names (private$), stream_offset if a stream is incomplete,
        packet_size and user_flags if the sender pads or names a queue in another way, and bytes that
        receivers ignore (trailing, reserved)
  hex   a line of hexadecimal digits for each packet

Rows are sorted by time in memory. Rows that no conforming sender writes, with a fault, violations or
a direct name that is not valid, are left out, and so are rows of IPX.

exit status:
  0  every row was written
  1  wrong usage, or a file that cannot be read or written, or a row that is no packet
  2  some rows were left out; standard error counts them

examples:
  msmqwire decode day.pcap | jq -c 'select(.src == "10.20.1.25")' | msmqwire encode -o excerpt.pcap
  msmqwire encode rows.jsonl -T hex

msmqwire anonymize writes a capture that can be shown to others.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any

from msmqwire.cli.arguments import add_format, add_output, add_quiet, input_file
from msmqwire.cli.console import CommandError, say
from msmqwire.cli.target import is_terminal, open_target
from msmqwire.errors import counted
from msmqwire.wire.ports import PING_PORT, SESSION_PORT

if TYPE_CHECKING:
    from msmqwire.capture.files.writing import Flow
    from msmqwire.cli.packets import Row
    from msmqwire.cli.target import Sink

_TABLES = ("topology", "notifications", "messages", "sessions")
#: The columns of the addresses of a packet, and their defaults: addresses of RFC 5737.
_PLACE = {"src": "192.0.2.1", "src_port": 49152, "dst": "192.0.2.2", "dst_port": SESSION_PORT}
#: The columns that are equal in the rows of one packet.
_PACKET = ("file", "frame", "stream_offset", "src", "src_port", "dst", "dst_port")


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options to the parser."""
    parser.add_argument(
        "file", nargs="?", default="-", metavar="FILE", help="JSON lines; - is standard input (default)"
    )
    parser.add_argument(
        "--table", choices=_TABLES, help="the table of rows that name none (default: the one that has their columns)"
    )
    add_format(parser, ("pcap", "hex"), "pcap")
    add_output(parser)
    add_quiet(parser)


@dataclass(frozen=True, slots=True)
class _Packet:
    """The rows of a packet, and the line of the first row."""

    line: int
    table: str
    rows: list[Row]

    @property
    def transport(self) -> str:
        """Its transport."""
        return str(self.rows[0].get("transport") or self.carrier)

    @property
    def carrier(self) -> str:
        """The transport that such packets have over IP."""
        return "udp" if self.table == "topology" or self.rows[0].get("kind") == "ping" else "tcp"

    @property
    def is_left_out(self) -> bool:
        """Whether it cannot be written."""
        return self.transport == "ipx" or any(map(self._is_refused, self.rows))

    def _is_refused(self, row: Row) -> bool:
        """Return True if no conforming sender writes a row."""
        from msmqwire.cli.packets import has_invalid_name

        # A wrong name in a row written by hand, which has no column of violations, is an error
        decoded = self.table == "messages" and "violations" in row
        return bool(row.get("fault") or row.get("violations")) or (decoded and has_invalid_name(row))

    def encoded(self) -> bytes:
        """Return its bytes; errors as in ``packet_of``."""
        from msmqwire.cli.packets import packet_of

        return packet_of(self.table, self.rows)


def run(options: argparse.Namespace) -> int:
    """Encode; the exit status."""
    if options.format == "pcap" and is_terminal(options.output):
        raise CommandError("a capture is not for a terminal: name a file with -o, redirect the output, or use -T hex")
    with _opened(options.file) as file:
        packets = _packets(_rows(file, options))
    messages = {_identity(packet.rows[0]): packet for packet in packets if packet.table == "messages"}
    written, left_out = [], 0
    for packet in packets:
        carrier = messages.get(_identity(packet.rows[0]), packet) if packet.table == "notifications" else packet
        if carrier.is_left_out:
            left_out += len(packet.rows)
        elif carrier is packet:
            written.append(packet)
    placed = _in_order(written, options.file)
    with open_target(options.output, [options.file]) as sink:
        if options.format == "pcap":
            _write_capture(sink, placed, options.file)
        else:
            for packet in written:
                with _errors_of(packet, options.file):
                    sink.write(packet.encoded().hex().encode() + b"\n")
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
    """Yield the line, the table and the columns of each row."""
    from msmqwire.cli.packets import check_columns, lines_of, row_of

    for number, line in enumerate(lines_of(file), 1):
        if not line.strip():
            continue
        try:
            row = row_of(line)
            table = row.pop("table", options.table) or _table_of(row)
            if table not in _TABLES:
                raise ValueError(f"there is no table {table}; there is {', '.join(_TABLES)}")
            check_columns(row, table)
        except ValueError as error:
            raise CommandError(f"{options.file}: line {number}: {error}") from None
        yield number, table, row


def _table_of(row: Row) -> str:
    """Return the table that has the columns of a row; a column ``kind`` says it by its value."""
    from msmqwire.cli.packets import columns_of
    from msmqwire.mqqb.message.schema import KINDS
    from msmqwire.mqqb.session.schema import SESSION_KINDS

    known = {table: columns_of(table) for table in _TABLES}
    kinds = {"messages": KINDS, "sessions": SESSION_KINDS}
    found = [
        table
        for table in _TABLES
        if row.keys() <= known[table] and row.get("kind", "") in ("", *kinds.get(table, ()))
    ]  # fmt: skip
    if len(found) == 1:
        return found[0]
    if found:
        raise ValueError(f"its columns are those of {' and of '.join(found)}: name one with --table or a member table")
    likely = max(_TABLES, key=lambda table: len(row.keys() & known[table]))
    more = ", ".join(sorted(row.keys() - known[likely])) or f"kind {row.get('kind')!r}"
    raise ValueError(f"no table has its columns; {likely}, which has most of them, has no {more}")


def _packets(rows: Iterable[tuple[int, str, dict[str, Any]]]) -> list[_Packet]:
    """Group rows into packets: a notification belongs to the message of the notification before it, or begins one."""
    from msmqwire.mqcn.schema import begins_message

    packets: list[_Packet] = []
    for line, table, row in rows:
        last = packets[-1] if packets and packets[-1].table == table == "notifications" else None
        if last is not None and not begins_message(row) and _identity(row) == _identity(last.rows[0]):
            last.rows.append(row)
        else:
            packets.append(_Packet(line, table, [row]))
    return packets


def _identity(row: Row) -> tuple[str, ...]:
    """Return the identity of the packet of a row; as text, since a row written by hand may have values of any type."""
    return tuple(repr(row.get(column)) for column in _PACKET)


def _write_capture(sink: Sink, packets: Iterable[tuple[int, Flow, _Packet]], name: str) -> None:
    from msmqwire.capture.files.writing import CaptureWriter

    writer = CaptureWriter(sink)
    for time, flow, packet in packets:
        with _errors_of(packet, name):
            if packet.transport != packet.carrier:
                raise ValueError(f"transport: {packet.carrier} carries this packet, not {packet.transport}")
            write = writer.datagram if packet.carrier == "udp" else writer.stream
            write(time, flow, packet.encoded())


def _flow(row: Row) -> Flow:
    """Return the sender and the receiver of the packet of a row."""
    from msmqwire.capture.files.writing import Flow

    place = {**_PLACE, "dst_port": PING_PORT if row.get("kind") == "ping" else _PLACE["dst_port"]}
    place |= {column: row[column] for column in place if row.get(column) is not None}
    for column in ("src", "dst"):
        if not isinstance(place[column], str):
            raise ValueError(f"{column}: {place[column]!r} is not an address")
    return Flow(**place)  # type: ignore[arg-type] # it checks the ports itself


def _in_order(packets: Iterable[_Packet], name: str) -> list[tuple[int, Flow, _Packet]]:
    """Packets by time, with their hosts; those of one time by frame and position in their stream."""
    from msmqwire.cli.packets import time_of

    timed = []
    for packet in packets:
        row = packet.rows[0]
        with _errors_of(packet, name):
            try:
                time = 0 if row.get("time") is None else time_of(row["time"])
            except ValueError as error:
                raise ValueError(f"time: {error}") from None
            place = [row.get(column) or 0 for column in ("frame", "stream_offset")]
            if not all(isinstance(number, int) for number in place):
                raise ValueError("frame and stream_offset must be integers")
            timed.append(((time, *place), _flow(row), packet))
    timed.sort(key=lambda each: each[0])
    return [(order[0], flow, packet) for order, flow, packet in timed]


@contextlib.contextmanager
def _errors_of(packet: _Packet, name: str) -> Iterator[None]:
    """Raise errors of a row with its line in the file."""
    where = f"{name}: line {packet.line}"
    try:
        yield
    except KeyError as error:
        raise CommandError(f"{where}: {error.args[0]} is missing or has an unknown name") from None
    except (ValueError, TypeError, AttributeError) as error:
        raise CommandError(f"{where}: {error}") from None
