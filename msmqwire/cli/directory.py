"""``msmqwire directory``: check or draw the file of an enterprise."""

from __future__ import annotations

import argparse
import shutil
import subprocess
from pathlib import Path
from typing import Any

from msmqwire.cli.arguments import add_format
from msmqwire.cli.console import CommandError, print_json, printable, say
from msmqwire.cli.target import open_target

__all__ = ["add", "check", "draw"]

_CHECK_EPILOG = """\
exit status:
  0  no findings
  1  wrong usage, or a file that cannot be read, or that is neither TOML nor JSON
  2  findings: standard output has a line for each

examples:
  msmqwire directory check enterprise.toml
  msmqwire directory check -T json enterprise.json | jq -r .object
"""

_DRAW_EPILOG = """\
dot is the language of Graphviz; svg is drawn by Graphviz, which must be installed. Without -T the name
of OUT chooses the format (.dot .gv .svg); without OUT it is dot.

examples:
  msmqwire directory draw enterprise.toml -o enterprise.svg
  msmqwire directory draw enterprise.toml | neato -Tpdf > enterprise.pdf
"""


def add(parser: argparse.ArgumentParser) -> None:
    """Add the commands to the parser."""
    parser.description = "Check or draw an enterprise in a file of TOML or JSON."
    commands = parser.add_subparsers(required=True, metavar="COMMAND", dest="command")
    checking = _command(commands, "check", "find mistakes in an enterprise", _CHECK_EPILOG)
    add_format(checking, ("table", "json"), "table")
    checking.set_defaults(run=check)
    drawing = _command(commands, "draw", "draw the sites of an enterprise and the costs of their links", _DRAW_EPILOG)
    add_format(drawing, ("dot", "svg"))
    drawing.add_argument("-o", "--output", default="-", metavar="OUT", help="a file; - is standard output (default)")
    drawing.set_defaults(run=draw)


def _command(commands: Any, name: str, summary: str, epilog: str) -> argparse.ArgumentParser:
    description = f"{summary[0].upper()}{summary[1:]}."
    parser: argparse.ArgumentParser = commands.add_parser(name, help=summary, description=description, epilog=epilog)
    parser.add_argument("file", metavar="FILE", help="an enterprise: TOML, or JSON if the name ends in .json")
    return parser


def check(options: argparse.Namespace) -> int:
    """Check a file; the exit status."""
    from msmqwire.directory.checking import check as findings_of
    from msmqwire.directory.document import read_document

    document = read_document(options.file)
    findings = [*document.problems, *findings_of(document.objects)]
    for finding in findings:
        if options.format == "json":
            print_json({"object": finding.object, "attribute": finding.attribute, "what": finding.what})
        else:
            print(printable(str(finding)))
    say(f"{len(document.objects):,} objects: {len(findings) or 'no'} {'finding' if len(findings) == 1 else 'findings'}")
    return 2 if findings else 0


def draw(options: argparse.Namespace) -> int:
    """Draw a file; the exit status."""
    from msmqwire.directory import MemoryDirectory
    from msmqwire.directory.drawing import draw as drawing_of

    suffix = "" if options.output == "-" else Path(options.output).suffix.lower()
    format = options.format or {"": "dot", ".dot": "dot", ".gv": "dot", ".svg": "svg"}.get(suffix)
    if format is None or (not options.format and options.output != "-" and not suffix):
        raise CommandError(f"-o {options.output}: the name has no known format; end it in .svg, .dot or .gv")
    drawing = drawing_of(MemoryDirectory.load(options.file)).encode("utf-8")
    if format == "svg":
        drawing = _svg(drawing)
    with open_target(options.output, [options.file]) as target:
        target.write(drawing)
    return 0


def _svg(drawing: bytes) -> bytes:
    program = shutil.which("dot")
    if program is None:
        raise CommandError("SVG needs the program dot of Graphviz, which is not installed: write .dot instead")
    done = subprocess.run([program, "-Tsvg"], input=drawing, capture_output=True, check=False)
    if done.returncode:
        raise CommandError(f"dot failed: {done.stderr.decode('utf-8', 'replace').strip() or done.returncode}")
    return done.stdout
