"""Write a summary of captures or a lake, and findings, as one HTML page.

The page is one file that loads nothing: charts of packets over time, hosts and queues, findings with their
messages, tables that can be sorted, the frames of every figure, the meaning of every fault and violation.

exit status:
  0  every frame was read and every payload decoded
  1  wrong usage, or a file that cannot be read, or is no capture
  2  something was lost: payloads had faults, frames were malformed, or one of several files is no capture

examples:
  msmqwire report capture.pcapng -o report.html
  msmqwire report --lake lake --since 2024-03-04 -o report.html
  msmqwire report *.pcap --expect 10.20.1.10 -o report.html
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shlex
import sys
from collections.abc import Iterable
from itertools import islice
from typing import TYPE_CHECKING, Any

from msmqwire.cli.arguments import add_expected, add_jobs, add_quiet, add_rules, add_selection
from msmqwire.cli.console import optional, say
from msmqwire.cli.counts import report
from msmqwire.cli.detect import detect
from msmqwire.cli.inputs import Inputs, add_captures_or_lake
from msmqwire.cli.target import open_target
from msmqwire.errors import counted

if TYPE_CHECKING:
    from msmqwire.insight.findings import Detector


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options to the parser."""
    add_captures_or_lake(parser)
    parser.add_argument("-o", "--output", required=True, metavar="OUT", help="the page; - is standard output")
    add_expected(parser)
    add_rules(parser)
    add_jobs(parser, "decode and query")
    add_selection(parser)
    add_quiet(parser)


def run(options: argparse.Namespace) -> int:
    """Write the page; the exit status."""
    optional("pyarrow", "msmqwire report")
    optional("duckdb", "msmqwire report")
    from msmqwire.insight.report import REPORT_SECTIONS, page

    inputs = Inputs(options)
    detector, summary, lines, status = detect(options, inputs, REPORT_SECTIONS)
    findings = detector.findings()
    with open_target(options.output, options.files) as sink:
        html = page(
            *(summary, findings, options.files or [options.lake]),
            made=_made(inputs.captures),
            counts=lines,
            messages=_shown_messages(inputs, _places(detector)),
        )
        sink.write(html.encode("utf-8", "replace"))
    report(lines, status, quiet=options.quiet)
    if not options.quiet:
        say(counted(len(findings), "finding"))
    return status


def _places(detector: Detector) -> set[tuple[str | None, int]]:
    """Return the files and frames of findings whose rules read messages, the first of each finding up to a limit."""
    from msmqwire.insight.engine import checked
    from msmqwire.insight.report import MOST_MESSAGES

    rules = {
        rule.name for rule in detector.rules if any(name.text.lower() == "messages" for name in checked(rule).tables)
    }
    places = ((each.file, frame) for each in detector.findings() if each.rule in rules for frame in each.frames)
    return set(islice(places, 10 * MOST_MESSAGES))


def _shown_messages(inputs: Inputs, places: set[tuple[str | None, int]]) -> list[dict[str, Any]]:
    """Return the first messages with their texts, and those of findings; none of a pipe, which is read only once."""
    import pyarrow as pa

    from msmqwire.columns.plain import records
    from msmqwire.insight.report import MESSAGE_COLUMNS, MOST_MESSAGES, TEXTS
    from msmqwire.insight.tables import pc

    if "-" in inputs.captures:
        return []
    frames = pa.array(sorted({frame for _, frame in places}), pa.int64())
    missing = set(places)
    found: list[dict[str, Any]] = []
    first = 0
    with inputs.rows({"messages": MESSAGE_COLUMNS}) as (rows, _):
        for _, batch in rows:
            for start in range(0, batch.num_rows, 128):
                part = batch.slice(start, 128)
                if first == MOST_MESSAGES:
                    part = part.filter(pc.is_in(part.column("frame").cast(pa.int64()), frames))
                for row in records(part):
                    place = row["file"], row["frame"]
                    has_text = first < MOST_MESSAGES and any(row[name] for name in TEXTS)
                    first += has_text
                    if has_text or place in places:
                        found.append(row)
                    missing.discard(place)
            # Further messages of a frame are in the same batch
            if first == MOST_MESSAGES and not missing:
                break
    return found


def _made(names: Iterable[str]) -> list[str]:
    """Return the version, the command line and the time of a report, and the size and SHA-256 of each local capture."""
    from msmqwire import __version__
    from msmqwire.capture.options import time_ago, time_text

    now = f"{time_text(time_ago(0)):.19}".replace("T", " ")
    command = shlex.join(["msmqwire", *sys.argv[1:]])
    return [f"msmqwire {__version__}, {now} UTC: {command}", *map(_digest, names)]


def _digest(name: str) -> str:
    if name == "-" or "://" in name or not os.path.isfile(name):
        return f"{name}: size and SHA-256 are not computed"
    with open(name, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        return f"{name}: {file.tell():,} bytes, SHA-256 {digest}"
