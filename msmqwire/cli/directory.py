"""Check or draw an enterprise, in a file or in an Active Directory."""

from __future__ import annotations

import argparse
import dataclasses
import inspect
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from msmqwire.cli.arguments import add_format, add_output
from msmqwire.cli.console import CommandError, print_json, say
from msmqwire.cli.enterprise import add_directory, is_url, open_directory
from msmqwire.cli.parser import Parser
from msmqwire.cli.target import open_target
from msmqwire.errors import counted, printable


def add(parser: argparse.ArgumentParser) -> None:
    """Add the commands to the parser."""
    commands = parser.add_subparsers(required=True, metavar="COMMAND", dest="command")
    checking = _command(commands, check)
    add_format(checking, ("table", "json"), "table")
    drawing = _command(commands, draw)
    add_format(drawing, ("dot", "svg"))
    add_output(drawing)


def _command(commands: Any, act: Callable[[argparse.Namespace], int]) -> Parser:
    """Return the parser of a command, whose help is the docstring of its function."""
    text = inspect.cleandoc(act.__doc__ or "")
    summary = text.partition(".")[0]
    parser: Parser = commands.add_parser(act.__name__, help=f"{summary[:1].lower()}{summary[1:]}")
    parser.describe(text)
    add_directory(parser, "file")
    parser.set_defaults(act=act)
    return parser


def run(options: argparse.Namespace) -> int:
    """Check or draw; the exit status."""
    status: int = options.act(options)
    return status


def check(options: argparse.Namespace) -> int:
    """Find mistakes in an enterprise.

    exit status:
      0  no findings
      1  wrong usage, a file that cannot be read or is neither TOML nor JSON, or a server that cannot be read
      2  findings: standard output has a line for each

    examples:
      msmqwire directory check enterprise.toml
      msmqwire directory check -T json enterprise.json | jq -r .object
    """
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
    """Draw the sites of an enterprise and the costs of their links.

    dot is the language of Graphviz; svg is drawn by Graphviz, which must be installed. Without -T the name
    of OUT chooses the format (.dot .gv .svg); without OUT it is dot.

    examples:
      msmqwire directory draw enterprise.toml -o enterprise.svg
      msmqwire directory draw enterprise.toml | neato -Tpdf > enterprise.pdf
    """
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
