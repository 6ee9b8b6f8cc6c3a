r"""Read Microsoft Message Queuing (MSMQ) from network captures, and speak its directory protocols.

examples:
  msmqwire decode capture.pcapng                         every table, for people
  msmqwire decode capture.pcapng | jq .table             every table as JSON lines
  msmqwire decode --table messages day.pcap.zst          JSON lines of one table
  msmqwire decode *.pcap --table topology -o out.parquet one Parquet file
  msmqwire encode rows.jsonl -o packets.pcap             rows back into a capture
  msmqwire sql "SELECT label FROM messages" *.pcap       questions in SQL, with DuckDB
  msmqwire anonymize incident.pcap -o safe.pcap          a capture that can be shown to others
  msmqwire summary capture.pcapng                        hosts, queues, sessions, faults
  msmqwire detect capture.pcapng                         attacks, probes, cloned machines
  msmqwire report capture.pcapng -o report.html          summary and findings as one page
  msmqwire explain bad_terminator                        what a name in the tables means
  msmqwire pipeline captures/ --lake lake                partitioned tables, with Spark
  msmqwire lake check lake                               missing files and rows of a lake
  msmqwire discover                                      directory servers on the local networks
  msmqwire serve --config site.toml                      answer clients that look for them
  msmqwire directory check enterprise.toml               find mistakes in an enterprise
  msmqwire route --directory enterprise.toml SRC DST     the route of a message, hop by hop
  msmqwire resolve 'DIRECT=OS:host\private$\orders'      the parts of a format name
  msmqwire send 'DIRECT=OS:host\private$\orders' --text hi  a message to a queue
  msmqwire receive --queue orders                        messages as JSON lines
  msmqwire store list DIR                                what a receiver keeps across its processes
  msmqwire notify --before old.toml --directory new.toml --server dc1   change notifications
  msmqwire replay *.pcap --directory enterprise.toml     queues from notifications, compared

`msmqwire SUBCOMMAND --help` has the options and examples of a subcommand.
"""

# Exit status: 0 when everything was read and written, 1 for wrong usage and files that cannot be read or written, 2
# when something was lost or not found.

from __future__ import annotations

import argparse
import contextlib
import os
import shlex
import signal
import sys
import warnings
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from importlib import import_module
from typing import Any, NoReturn

from msmqwire import __version__
from msmqwire.cli import signals
from msmqwire.cli.console import ClosedOutput, StandardOutput, describe_error, did_you_mean, say
from msmqwire.cli.parser import Parser
from msmqwire.errors import MsmqWireError

__all__ = ["command", "main"]

#: The subcommands; each is the module of that name here, imported when it is chosen. Its docstring is the help, ``add``
#: adds its options to a parser, and ``run`` does the work.
SUBCOMMANDS = {
    "decode": "read captures as tables",
    "encode": "write packets, or a capture, from rows in JSON",
    "sql": "ask captures in SQL",
    "anonymize": "write a capture without names, addresses and contents",
    "summary": "who speaks MSMQ, which queues there are, what is wrong",
    "detect": "find attacks, probes and dangerous configurations",
    "report": "write a summary and findings as one page",
    "explain": "say what a fault, a violation, a column or a PROPID means",
    "pipeline": "decode many captures into partitioned tables, with Spark",
    "lake": "optimize, vacuum or check a lake, or list its runs",
    "discover": "find directory servers on the local networks",
    "serve": "answer clients that look for directory servers",
    "directory": "check or draw an enterprise",
    "route": "follow a message from machine to machine",
    "resolve": "explain a format name and find its destination",
    "send": "send messages to a queue",
    "receive": "receive messages as rows",
    "store": "list or repair what a receiver keeps across its processes",
    "notify": "notify queue managers of changes in a directory",
    "replay": "rebuild the queues that change notifications describe",
}

_PROGRAM = "msmqwire"


class _Completion(argparse.Action):
    """Print the completion script of a shell."""

    def __call__(self, parser: argparse.ArgumentParser, _: Any, values: Any, __: Any = None) -> NoReturn:
        from msmqwire.cli.completion import script

        try:
            text = script(_parser(SUBCOMMANDS), values)
        except MsmqWireError as error:
            parser.error(str(error))
        print(text, flush=True)
        parser.exit()


class _NoPandas:
    """Hides pandas, which pyarrow imports where it converts values of Python; that takes longer than most commands.

    ``sys.modules["pandas"] = None`` would not do: modules made by Cython import that None.
    """

    def find_spec(self, name: str, *_: Any) -> None:
        if name == "pandas":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line; the exit status.

    After a signal that asks it to stop, the process cleans up and then ends by that signal, as shells expect.
    """
    given = sys.argv[1:] if arguments is None else arguments
    output: Any = ClosedOutput() if sys.stdout is None else StandardOutput(sys.stdout)
    try:
        with contextlib.redirect_stdout(output):
            return _run(given)
    except (signals.Stopped, KeyboardInterrupt) as stopped:
        # Before ``signals.raised``, while the subcommand is imported, the interpreter handles an interrupt
        number = stopped.number if isinstance(stopped, signals.Stopped) else signal.SIGINT
        if number == signal.SIGINT:
            say("msmqwire: interrupted")
        return signals.die_of(number)
    except BrokenPipeError:
        _drop_standard_output()
        # Windows has no SIGPIPE
        return signals.die_of(signal.SIGPIPE) if hasattr(signal, "SIGPIPE") else 1
    except (OSError, MsmqWireError) as error:
        say(f"msmqwire: {describe_error(error)}")
    _drop_standard_output()
    return 1


def _show_warning(other: Callable[..., None], message: Warning | str, category: type[Warning], *rest: Any) -> None:
    """Show what will change for users as a line; other warnings are for programmers."""
    if category is FutureWarning:
        say(f"msmqwire: {message}")
    else:
        other(message, category, *rest)


def _run(given: Sequence[str]) -> int:
    """Run a command line, and write its output to the end."""
    try:
        options = _parsed(given)
    except SystemExit:  # after help
        _flush_standard_output()
        raise
    with signals.raised(), warnings.catch_warnings():
        warnings.showwarning = partial(_show_warning, warnings.showwarning)
        status: int = options.run(options)
        _flush_standard_output()
        return status


def command() -> NoReturn:
    """Run the program ``msmqwire``."""
    # numpy's threads for matrices, which no command has, wait busily for 50 ms when they start
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    if sys.stdout is not None:
        # With a buffer also for PYTHONUNBUFFERED, without which writes to a full disk or a pipe may leave out a part;
        # other characters of names would end a command whose output has another encoding than UTF-8
        number, encoding = sys.stdout.fileno(), sys.stdout.encoding
        sys.stdout = open(number, "w", encoding=encoding, errors="backslashreplace", closefd=False)  # noqa: SIM115
    # Spark may need it
    if sys.argv[1:2] != ["pipeline"] and not any(word.startswith(("--spark", "--master")) for word in sys.argv):
        sys.meta_path.insert(0, _NoPandas())
    status = main()
    # Threads of deltalake sometimes abort an interpreter that is ending; all output is flushed
    if "deltalake" in sys.modules:
        os._exit(status)
    sys.exit(status)


def _parsed(given: Sequence[str]) -> argparse.Namespace:
    """Return the options of a command line; the module of the chosen subcommand is imported alone."""
    if not given or given[0] not in SUBCOMMANDS:
        _answer_or_refuse(given)
    return _subparser(Parser(prog=f"{_PROGRAM} {given[0]}"), given[0]).parse(given[1:])


def _answer_or_refuse(given: Sequence[str]) -> NoReturn:
    """Answer a command line without a subcommand, such as ``--version``, or refuse it."""
    parser = _parser({})
    if not given:
        parser.print_help()
        parser.exit()
    name = given[0]
    if name.partition("=")[0] in parser.known_options:
        parser.parse_args(given)  # each of these options ends the process
    if name.startswith("-"):
        if chosen := next((word for word in given if word in SUBCOMMANDS), None):
            parser.error(f"{name}: options of {chosen} stand after it")
        parser.refuse([name])
    if os.path.exists(name):
        parser.error(f"no subcommand {name}; to decode this file: msmqwire decode {shlex.quote(name)}")
    parser.error(f"no subcommand {name}{did_you_mean(name, SUBCOMMANDS)}")


def _subparser(parser: Parser, name: str) -> Parser:
    """Return the parser with what the module of a subcommand adds to it; the docstring of the module is the help."""
    module = import_module(f"msmqwire.cli.{name}")
    parser.describe(module.__doc__)
    module.add(parser)
    parser.set_defaults(run=module.run)
    return parser


def _parser(chosen: Iterable[str]) -> Parser:
    """Return the parser; only the chosen subcommands have their options."""
    parser = Parser(prog=_PROGRAM)
    parser.describe(__doc__)
    parser.add_argument("--version", action="version", version=f"msmqwire {__version__}", help="show the version")
    parser.add_argument(
        "--completion",
        action=_Completion,
        choices=("bash", "zsh", "tcsh", "fish", "powershell"),
        help="print the completion of this shell",
    )
    subcommands = parser.add_subparsers(required=True, metavar="SUBCOMMAND", dest="subcommand")
    for name, summary in SUBCOMMANDS.items():
        subparser = subcommands.add_parser(name, help=summary)
        if name in chosen:
            _subparser(subparser, name)
    return parser


def _flush_standard_output() -> None:
    if sys.stdout is not None:
        sys.stdout.flush()


def _drop_standard_output() -> None:
    """Leave no output that the interpreter would try to write, and fail to, as it exits."""
    try:
        _flush_standard_output()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
