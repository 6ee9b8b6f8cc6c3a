"""``msmqwire directory``: look at an enterprise that is written down, before anything relies on it."""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

from msmqwire.cli.console import CommandError, printable, say
from msmqwire.cli.target import open_target

__all__ = ["add", "check", "draw"]

_CHECK_EPILOG = """\
exit status:
  0  nothing is wrong
  1  wrong usage, or a file that cannot be read, or is neither TOML nor JSON
  2  something is wrong: standard output has a line for each finding

examples:
  msmqwire directory check enterprise.toml
  msmqwire directory check --json enterprise.json | jq -r .object
"""

_DRAW_EPILOG = """\
Without OUT the drawing is DOT, the language of Graphviz, on standard output; with OUT the form follows its name: .dot
and .gv are DOT, .svg is drawn by Graphviz, which must be installed.

examples:
  msmqwire directory draw enterprise.toml -o enterprise.svg
  msmqwire directory draw enterprise.toml | neato -Tpdf > enterprise.pdf
"""


def add(subcommands: Any) -> None:
    """Add the subcommand, and those below it, to the parser."""
    parser = subcommands.add_parser(
        "directory",
        help="check or draw an enterprise",
        description="Check or draw an enterprise that is written down as TOML or JSON.",
        allow_abbrev=False,
    )
    below = parser.add_subparsers(required=True, metavar="COMMAND", dest="command")
    checking = _below(below, "check", "find what is wrong with an enterprise", _CHECK_EPILOG)
    checking.add_argument("--json", action="store_true", help="JSON lines: an object with object, attribute and what")
    checking.set_defaults(run=check)
    drawing = _below(below, "draw", "draw the sites of an enterprise and what the links cost", _DRAW_EPILOG)
    drawing.add_argument("-o", "--output", default="-", metavar="OUT", help="a file; - is standard output (default)")
    drawing.set_defaults(run=draw)


def _below(below: Any, name: str, what: str, epilog: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = below.add_parser(
        name,
        help=what,
        description=f"{what[0].upper()}{what[1:]}.",
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("file", metavar="FILE", help="an enterprise: TOML, or JSON if the name ends in .json")
    return parser


def check(options: argparse.Namespace) -> int:
    """Check a file; the exit status."""
    from msmqwire.directory.checking import check as findings_of
    from msmqwire.directory.document import read_document

    document = read_document(options.file)
    findings = [*document.problems, *findings_of(document.objects)]
    for finding in findings:
        if options.json:
            print(json.dumps({"object": finding.object, "attribute": finding.attribute, "what": finding.what}))
        else:
            print(printable(str(finding)))
    say(f"{len(document.objects):,} objects: {len(findings) or 'no'} {'finding' if len(findings) == 1 else 'findings'}")
    return 2 if findings else 0


def draw(options: argparse.Namespace) -> int:
    """Draw a file; the exit status."""
    from msmqwire.directory import MemoryDirectory
    from msmqwire.directory.drawing import draw as drawing_of

    form = "dot" if options.output == "-" else Path(options.output).suffix.lower().lstrip(".")
    if form not in ("dot", "gv", "svg"):
        raise CommandError(f"-o {options.output}: a drawing is .svg, .dot or .gv")
    drawing = drawing_of(MemoryDirectory.load(options.file)).encode("utf-8")
    if form == "svg":
        drawing = _svg(drawing)
    with open_target(options.output, [options.file]) as target:
        target.write(drawing)
    return 0


def _svg(drawing: bytes) -> bytes:
    program = shutil.which("dot")
    if program is None:
        raise CommandError("a drawing as SVG needs Graphviz, whose program dot is not installed: write .dot instead")
    done = subprocess.run([program, "-Tsvg"], input=drawing, capture_output=True, check=False)
    if done.returncode:
        raise CommandError(f"dot failed: {done.stderr.decode('utf-8', 'replace').strip() or done.returncode}")
    return done.stdout
