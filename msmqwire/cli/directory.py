"""``msmqwire directory``: check or draw an enterprise."""

from __future__ import annotations

import argparse
import dataclasses
import shutil
import subprocess
from pathlib import Path
from typing import Any

from msmqwire.cli.arguments import add_format, add_output
from msmqwire.cli.console import CommandError, print_json, printable, say
from msmqwire.cli.enterprise import DIRECTORY_HELP, LDAP_EPILOG, is_url, open_directory
from msmqwire.cli.target import open_target
from msmqwire.errors import counted

_CHECK_EPILOG = f"""\
exit status:
  0  no findings
  1  wrong usage, a file that cannot be read or is neither TOML nor JSON, or a server that cannot be read
  2  findings: standard output has a line for each

{LDAP_EPILOG}
examples:
  msmqwire directory check enterprise.toml
  msmqwire directory check -T json enterprise.json | jq -r .object
"""

_DRAW_EPILOG = f"""\
dot is the language of Graphviz; svg is drawn by Graphviz, which must be installed. Without -T the name
of OUT chooses the format (.dot .gv .svg); without OUT it is dot.

{LDAP_EPILOG}
examples:
  msmqwire directory draw enterprise.toml -o enterprise.svg
  msmqwire directory draw enterprise.toml | neato -Tpdf > enterprise.pdf
"""


def add(parser: argparse.ArgumentParser) -> None:
    """Add the commands to the parser."""
    parser.description = "Check or draw an enterprise, in a file or in an Active Directory."
    commands = parser.add_subparsers(required=True, metavar="COMMAND", dest="command")
    checking = _command(commands, "check", "find mistakes in an enterprise", _CHECK_EPILOG)
    add_format(checking, ("table", "json"), "table")
    checking.set_defaults(run=check)
    drawing = _command(commands, "draw", "draw the sites of an enterprise and the costs of their links", _DRAW_EPILOG)
    add_format(drawing, ("dot", "svg"))
    add_output(drawing)
    drawing.set_defaults(run=draw)


def _command(commands: Any, name: str, summary: str, epilog: str) -> argparse.ArgumentParser:
    description = f"{summary[0].upper()}{summary[1:]}."
    parser: argparse.ArgumentParser = commands.add_parser(name, help=summary, description=description, epilog=epilog)
    parser.add_argument("file", metavar="SOURCE", help=DIRECTORY_HELP)
    return parser


def check(options: argparse.Namespace) -> int:
    """Check a directory; the exit status."""
    from msmqwire.directory.checking import check as findings_of
    from msmqwire.directory.checking import read_objects
    from msmqwire.directory.document import read_document

    source = options.file
    document = read_objects(open_directory(source)) if is_url(source) else read_document(source)
    findings = [*document.problems, *findings_of(document.objects)]
    for finding in findings:
        if options.format == "json":
            print_json(dataclasses.asdict(finding))
        else:
            print(printable(str(finding)))
    say(f"{len(document.objects):,} objects: {counted(len(findings), 'finding') if findings else 'no findings'}")
    return 2 if findings else 0


def draw(options: argparse.Namespace) -> int:
    """Draw a directory; the exit status."""
    from msmqwire.directory.drawing import draw as drawing_of

    suffix = "-" if options.output == "-" else Path(options.output).suffix.lower()
    format = options.format or {"-": "dot", ".dot": "dot", ".gv": "dot", ".svg": "svg"}.get(suffix)
    if format is None:
        raise CommandError(f"-o {options.output}: the name has no known format; end it in .svg, .dot or .gv")
    drawing = drawing_of(open_directory(options.file)).encode("utf-8")
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
