"""``msmqwire report``: a summary and findings as one page."""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import shlex
import sys
from collections.abc import Iterator

from msmqwire.cli.arguments import add_captures_or_lake, add_expected, add_quiet, add_selection, check_captures_or_lake
from msmqwire.cli.console import optional, say
from msmqwire.cli.detect import detect
from msmqwire.cli.target import open_target
from msmqwire.errors import counted

_EPILOG = """\
The page is one file that loads nothing: tables that can be sorted, a timeline, a drawing of hosts if
Graphviz is installed, the frames of every figure, the meaning of every fault and violation.

exit status:
  0  every frame was read and every payload decoded
  1  wrong usage, or a file that cannot be read, or is no capture
  2  something was lost: frames or streams were malformed or truncated, or one of several files is no capture

examples:
  msmqwire report capture.pcapng -o report.html
  msmqwire report --lake lake --since 2024-03-04 -o report.html
  msmqwire report *.pcap --expect 10.20.1.10 -o report.html
"""


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options to the parser."""
    parser.description = "Write a summary of captures or a lake, and findings, as one HTML page."
    parser.epilog = _EPILOG
    add_captures_or_lake(parser)
    parser.add_argument("-o", "--output", required=True, metavar="OUT", help="the page; - is standard output")
    add_expected(parser)
    add_selection(parser)
    add_quiet(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Write the page; the exit status."""
    optional("pyarrow", "msmqwire report")
    from msmqwire.insight import Summary
    from msmqwire.insight.report import page

    check_captures_or_lake(options)
    summary = Summary()
    detector, complete = detect(options, summary)
    findings = detector.findings()
    with open_target(options.output, options.files) as sink:
        sink.write(page(summary, findings, options.files or [options.lake], _made(options)).encode("utf-8", "replace"))
    if not options.quiet:
        say(counted(len(findings), "finding"))
    return 0 if complete else 2


def _made(options: argparse.Namespace) -> list[str]:
    """The version, the command line and the time of a report, and the size and SHA-256 of each local capture."""
    from msmqwire import __version__
    from msmqwire.capture.options import time_ago, time_text

    now = f"{time_text(time_ago(0)):.19}".replace("T", " ")
    command = shlex.join(["msmqwire", *sys.argv[1:]])
    return [f"msmqwire {__version__}, {now} UTC: {command}", *_captures(options.files)]


def _captures(names: list[str]) -> Iterator[str]:
    from msmqwire.capture.files.listing import files_at

    for name in names:
        # Standard error says which names are not captures
        with contextlib.suppress(OSError, ValueError):
            for file in [] if name == "-" or "://" in name else files_at(name):
                with open(file.name, "rb") as opened:
                    digest = hashlib.file_digest(opened, "sha256").hexdigest()
                    yield f"{file.name}: {opened.tell():,} bytes, SHA-256 {digest}"
