"""The command ``msmqwire``: a file here for each subcommand, and what all of them share.

Exit status: 0 when all went well, 1 for an error of usage or of reading and writing, 2 when some payloads had faults,
something of the capture was lost, or nobody answered.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from msmqwire.cli import decode, directory, discover, encode, lake, pipeline, replay, resolve, route, serve, signals
from msmqwire.cli.console import describe_os_error, printable, say
from msmqwire.errors import MsmqWireError

__all__ = ["command", "main"]

_EPILOG = """\
examples:
  msmqwire decode capture.pcapng                         every table, for people
  msmqwire decode capture.pcapng | jq .servers           JSON lines when piped: of topology
  msmqwire decode --table messages day.pcap.zst          JSON lines of messages
  msmqwire decode *.pcap -o packets.parquet              one Parquet file
  msmqwire encode rows.jsonl -o packets.pcap             rows back into a capture
  msmqwire pipeline captures/ --lake lake                partitioned tables, by Spark
  msmqwire lake check lake                               is every row of it there
  msmqwire discover                                      directory servers on the local networks
  msmqwire serve --config site.toml                      answer those who look for them
  msmqwire directory check enterprise.toml               what is wrong with an enterprise
  msmqwire route --directory enterprise.toml SRC DST     the way of a message, hop by hop
  msmqwire resolve 'DIRECT=OS:host\\private$\\orders'      what a format name says
  msmqwire replay *.pcap --directory enterprise.toml     the queues machines were told of, compared

`msmqwire SUBCOMMAND --help` says more.
"""


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are one line, and have the exit status of errors."""

    def error(self, message: str) -> NoReturn:
        self.exit(1, f"{self.prog}: {printable(message)} (see {self.prog} --help)\n")


class _Version(argparse.Action):
    """Looks the version up when it is asked for, which takes as long as many a capture."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> NoReturn:
        from importlib import metadata

        try:
            version = metadata.version("msmqwire")
        except metadata.PackageNotFoundError:
            version = "of a source tree that is not installed"
        print(f"msmqwire {version}")
        parser.exit()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line; the exit status.

    When the process is asked to stop by a signal it cleans up and then dies of that signal, as a shell expects.
    """
    options = _parser().parse_args(arguments)
    try:
        with signals.raised():
            status: int = options.run(options)
            return status
    except signals.Stopped as stopped:
        if stopped.number == signal.SIGINT:
            say("msmqwire: interrupted")
        return signals.die_of(stopped.number)
    except BrokenPipeError:
        _drop_standard_output()
        return signals.die_of(signal.SIGPIPE)
    except OSError as error:
        say(f"msmqwire: {describe_os_error(error)}")
    except MsmqWireError as error:
        say(f"msmqwire: {error}")
    _drop_standard_output()
    return 1


def command() -> NoReturn:
    """Run the program ``msmqwire``."""
    status = main()
    # Threads of deltalake sometimes abort an interpreter that waits for nobody
    if "deltalake" in sys.modules:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
        os._exit(status)
    sys.exit(status)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="msmqwire",
        description="Read Microsoft Message Queuing (MSMQ) from network captures, and speak its directory protocols.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="show the version and exit")
    subcommands = parser.add_subparsers(required=True, metavar="SUBCOMMAND", dest="subcommand")
    for module in (decode, encode, pipeline, lake, discover, serve, directory, route, resolve, replay):
        module.add(subcommands)
    return parser


def _drop_standard_output() -> None:
    """Leave nothing there that the interpreter, as it ends, would try to write in vain and complain about."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
