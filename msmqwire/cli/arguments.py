"""Types of arguments, and the options that subcommands share."""

from __future__ import annotations

import argparse
import math
import os
import stat
import sys
import uuid
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from msmqwire.cli.console import CommandError, describe_error, say
from msmqwire.errors import CaptureError, counted
from msmqwire.wire.guids import guid_of
from msmqwire.wire.ports import PING_PORT

if TYPE_CHECKING:
    from msmqwire.capture.options import ReadOptions

_REFUSALS_SHOWN = 3


CAPTURE_HELP = "a capture, a folder of captures, a pattern or a URI; - is standard input"


def add_format(parser: argparse.ArgumentParser, formats: Sequence[str], default: str | None = None) -> None:
    """Add ``-T``, the format to write."""
    note = f"default: {default}" if default else "see below"
    text = f"the format to write: {', '.join(formats)} ({note})"
    parser.add_argument("-T", "--format", choices=formats, default=default, metavar="FORMAT", help=text)


def add_output(parser: argparse.ArgumentParser) -> None:
    """Add ``-o``, the file to write."""
    parser.add_argument("-o", "--output", default="-", metavar="OUT", help="a file; - is standard output (default)")


def add_jobs(parser: argparse.ArgumentParser, work: str, default: int | None = None) -> None:
    """Add ``--jobs``, the threads that do the work: as many as the cores that may be used, if there is no default."""
    text = f"{work} in N threads; rows and their order stay the same (default: {default or 'the cores it may use'})"
    threads = integer(1, 1024, "a number of threads from 1 to 1024")
    parser.add_argument("-j", "--jobs", type=threads, default=default, metavar="N", help=text)


def add_ports(parser: argparse.ArgumentParser) -> None:
    """Add ``--ports``."""
    parser.add_argument(
        "--ports", type=ports, metavar="N,N-N", help="read these ports instead of the table's own, or all"
    )


def add_copies(parser: argparse.ArgumentParser) -> None:
    """Add ``--copies``."""
    parser.add_argument(
        "--copies", action="store_true", help="read a packet at each interface (pktmon component) where it was captured"
    )


def add_addresses(parser: argparse.ArgumentParser, rows: str) -> None:
    """Add ``--address``, the senders and receivers of rows."""
    text = f"{rows} that this address or network (10.20.1.0/24) sent or received; may be repeated"
    parser.add_argument(
        "--address", dest="addresses", action="append", default=[], type=network, metavar="NET", help=text
    )


def add_ping(parser: argparse.ArgumentParser, text: str) -> None:
    """Add ``--ping`` and ``--ping-port``, which ``ping_port`` reads."""
    parser.add_argument("--ping", action="store_true", help=text)
    parser.add_argument("--ping-port", type=port, metavar="N", help=f"--ping at another UDP port than {PING_PORT}")


def ping_port(options: argparse.Namespace) -> int | None:
    """Return the UDP port of pings; None if there are to be none."""
    chosen: int | None = options.ping_port
    return PING_PORT if chosen is None and options.ping else chosen


def add_selection(parser: argparse.ArgumentParser) -> None:
    """Add the options that select payloads: ``--ports``, ``--address``, ``--since``, ``--until`` and ``--copies``."""
    add_ports(parser)
    add_addresses(parser, "only payloads")
    time = "ISO 8601, or 08:10 of the day when the capture begins, or -2h (d, h, m, s) from now; UTC without a zone"
    parser.add_argument("--since", type=moment, metavar="TIME", help=f"only payloads captured then or later: {time}")
    add_copies(parser)
    parser.add_argument("--until", type=moment, metavar="TIME", help="only payloads captured before then")


def read_options(options: argparse.Namespace, files: Sequence[str], **others: Any) -> ReadOptions:
    """Return how to read captures, by the options of a command; times of day are of the first of ``files``."""
    from msmqwire.capture import ReadOptions
    from msmqwire.capture.reader import first_time

    strings = {name: getattr(options, name, None) for name in ("ports", "since", "until")}
    strings["addresses"] = ",".join(getattr(options, "addresses", ()))
    try:
        given = {name: text for name, text in strings.items() if text}
        begins = partial(first_time, files) if files else None
        return ReadOptions.from_strings(given, begins, copies=getattr(options, "copies", False), **others)
    except ValueError as error:
        raise CommandError(str(error)) from None


def add_master(parser: argparse.ArgumentParser, note: str = "") -> None:
    """Add ``--master``; ``note`` ends its help."""
    parser.add_argument("--master", metavar="URL", help=f"the Spark to use, e.g. local[4], spark://..., sc://...{note}")


def add_spark(parser: argparse.ArgumentParser) -> None:
    """Add ``--spark`` and ``--master``, with either of which Spark answers."""
    parser.add_argument("--spark", action="store_true", help="answer with Spark, for a lake that outgrows one machine")
    add_master(parser, "; with it --spark need not be given")


def wants_spark(options: argparse.Namespace) -> bool:
    """Return True if Spark is to answer, which it does for a lake.

    Raises
    ------
    CommandError
        The rows are not those of a lake.
    """
    if not options.spark and options.master is None:
        return False
    if not options.lake:
        raise CommandError("--spark reads a lake: name one with --lake; msmqwire pipeline decodes captures into it")
    return True


def add_expected(parser: argparse.ArgumentParser) -> None:
    """Add ``--expect``, the directory servers whose replies are no findings."""
    parser.add_argument(
        "--expect",
        action="append",
        default=[],
        type=network,
        metavar="NET",
        help="address or network of a directory server; replies of others are findings; may be repeated",
    )


def add_rules(parser: argparse.ArgumentParser) -> None:
    """Add ``--rules-from``, the folder of further rules."""
    parser.add_argument("--rules-from", metavar="FOLDER", help="apply the rules of its files NAME.sql as well")


def add_strict(parser: argparse.ArgumentParser) -> None:
    """Add ``--strict``, with which violations that a receiver discards are faults."""
    parser.add_argument("--strict", action="store_true", help="report violations that a receiver discards as faults")


def add_hex(parser: argparse.ArgumentParser, argument: str, note: str = "") -> None:
    """Add ``--hex``: the argument is a payload, which ``msmqwire.cli.payload`` reads; ``note`` ends the help."""
    parser.add_argument("--hex", action="store_true", help=f"{argument} is one payload, as a log has it{note}")


def add_source(parser: argparse.ArgumentParser, text: str) -> None:
    """Add ``--from``, the queue manager of the directory that sends."""
    parser.add_argument("--from", dest="source", type=object_name, metavar="SRC", help=text)


def add_store(parser: argparse.ArgumentParser, text: str) -> None:
    """Add ``--store``, the folder of a store of messages."""
    parser.add_argument("--store", metavar="DIR", help=text)


def add_quiet(parser: argparse.ArgumentParser) -> None:
    """Add ``-q``."""
    parser.add_argument("-q", "--quiet", action="store_true", help="no counts and no progress on standard error")


def column_names(text: str) -> list[str]:
    """Names separated by commas, each once."""
    names = [name.strip() for name in text.split(",")]
    if len(set(names)) < len(names):
        raise argparse.ArgumentTypeError(f"{text!r} has a name twice")
    return names


def integer(low: int, high: int, what: str = "") -> Callable[[str], int]:
    """Return the type of an option that is a number in a range."""

    def number(text: str) -> int:
        found = int(text) if text.strip().isdecimal() else -1
        if not low <= found <= high:
            raise argparse.ArgumentTypeError(f"{text!r} is not {what or f'a number from {low} to {high}'}")
        return found

    return number


count = integer(1, sys.maxsize, "a number, at least 1")
hours = integer(0, 876_000, "a number of hours, from 0 on")  # to 100 years
days = integer(0, 36_500, "a number of days, from 0 on")
port = integer(1, 65535, "a port from 1 to 65535")
#: 0 lets the system choose.
port_or_free = integer(0, 65535, "a port from 0 to 65535")


def usable_cores() -> int:
    """Return the cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def host_name(text: str) -> str:
    """Check the name or the address of a computer; an empty one would stand for all addresses of this computer."""
    if not text.strip():
        raise argparse.ArgumentTypeError(f"{text!r} is not the name or the address of a computer")
    return text


def _text(parser: str, what: str) -> Callable[[str], str]:
    """Return the type of an argument whose text this function of ``capture.options`` parses, for ``ReadOptions``."""

    def check(text: str) -> str:
        from msmqwire.capture import options

        try:
            getattr(options, parser)(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None
        return text

    check.__doc__ = f"The text of {what}."
    return check


ports = _text("parse_ports", "ports")
network = _text("parse_network", "an address or a network")
moment = _text("parse_moment", "a moment")


def parse_guid(text: str) -> uuid.UUID:
    """Parse a GUID, with or without braces; a ValueError says what one looks like."""
    found = guid_of(text[1:-1] if text[:1] + text[-1:] == "{}" else text)
    if found is None:
        raise ValueError(f"{text!r} is not a GUID, as in dcc51bf6-d4ad-4543-8739-71568e8f9128")
    return found


def guid(text: str) -> uuid.UUID:
    """Parse a GUID as the type of an option."""
    try:
        return parse_guid(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def object_name(text: str) -> str:
    """Return a name or an identifier of an object; an identifier without the braces that other programs show."""
    try:
        return str(parse_guid(text))
    except ValueError:
        return text


def seconds(text: str) -> float:
    """Parse a duration greater than 0."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 < number < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds greater than 0")
    return number


def input_file(name: str, what: str = "capture") -> str:
    """Return the name of a file to read.

    Raises
    ------
    CommandError
        It is standard input, which is closed or a terminal; or a directory, or a URI.
    """
    if name == "-":
        if sys.stdin is None:
            raise CommandError("standard input is closed")
        if sys.stdin.isatty():
            raise CommandError(f"standard input is a terminal: pipe a {what} into msmqwire, or name a file")
    elif "://" in name:
        raise CommandError(f"{name}: is a URI; of URIs only captures are read")
    elif os.path.isdir(name):
        raise CommandError(f"{name} is a directory; name a file in it")
    return name


def is_pipe(name: str) -> bool:
    """Return True if a file, or standard input, can be read only once."""
    try:
        return name == "-" or stat.S_ISFIFO(os.stat(name).st_mode)
    except OSError:
        return False


def capture_files(names: Sequence[str]) -> tuple[list[str], int]:
    """Return the captures that names stand for, and the number of other files, each with a line on standard error.

    Raises
    ------
    OSError, CaptureError, CommandError
        There is only one file, and it is no capture; or none of several is one; or standard input is named twice.
    """
    from msmqwire import capture
    from msmqwire.capture.files.listing import STANDARD_INPUT, files_at

    if names.count(STANDARD_INPUT) > 1:
        raise CommandError("- is given twice, but standard input has one capture only: name files for the others")
    if STANDARD_INPUT in names:
        input_file(STANDARD_INPUT)
    found: list[str] = []
    refusals: list[OSError | CaptureError | CommandError] = []
    for name in names:
        try:
            files = [name] if name == STANDARD_INPUT else [file.name for file in files_at(name)]
        except (OSError, ValueError) as error:
            refusals.append(CommandError(str(error)) if isinstance(error, ValueError) else error)
            continue
        for file in files:
            try:
                # A pipe can be opened only once
                if os.path.isfile(file) or "://" in file:
                    capture.open(file).close()
                found.append(file)
            except (OSError, CaptureError) as error:
                refusals.append(error)
    if len(refusals) == 1 and not found:
        raise refusals[0]
    for refusal in refusals[:_REFUSALS_SHOWN]:
        say(f"msmqwire: {describe_error(refusal)}")
    if len(refusals) > _REFUSALS_SHOWN:
        say(f"msmqwire: ... and {counted(len(refusals) - _REFUSALS_SHOWN, 'more file')}, no captures either")
    if not found:
        raise CommandError(f"none of the {len(refusals):,} files is a capture")
    for name, times in Counter(os.path.realpath(file) if os.path.exists(file) else file for file in found).items():
        if times > 1:
            say(f"msmqwire: {name} is named {times:,} times, and is read as often")
    return found, len(refusals)
