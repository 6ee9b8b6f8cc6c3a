"""Find attacks, probes and dangerous configurations in captures or a lake.

A finding has the packets with the same evidence: hosts, lengths, queues; a probe also has whether it
was answered. The most severe findings come first. --suricata writes the rules that Suricata can
express; the others need the state of streams or several packets.

formats (-T):
  table  for people
  json   JSON lines
  csv    one line a finding, RFC 4180
  zeek   the ASCII log of Zeek
  eve    alerts of Suricata's EVE JSON, for a SIEM
Without -T it is table on a terminal and json otherwise.

exit status:
  0  no findings
  1  wrong usage, or a file that cannot be read, or is no capture
  2  there are findings, or something was lost: frames or streams were malformed or truncated

examples:
  msmqwire detect capture.pcapng
  msmqwire detect *.pcap --expect 10.20.1.10 --expect 10.20.7.0/24
  msmqwire detect day.pcap.zst | jq 'select(.severity == "high")'
  msmqwire detect -T zeek day.pcap > msmqwire_findings.log
  msmqwire detect -T eve day.pcap >> eve.json
  msmqwire detect --lake lake --since 2024-03-04
  msmqwire detect --suricata > msmqwire.rules
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from msmqwire.cli.arguments import (
    add_captures_or_lake,
    add_expected,
    add_format,
    add_jobs,
    add_output,
    add_quiet,
    add_selection,
    capture_files,
    check_captures_or_lake,
    read_options,
    usable_cores,
)
from msmqwire.cli.console import CommandError, optional, say
from msmqwire.cli.counts import counts, report
from msmqwire.cli.findings import FORMATS, write
from msmqwire.cli.lake_rows import check_lake, lake_counts, lake_rows
from msmqwire.cli.progress import progress
from msmqwire.cli.target import is_terminal, open_target
from msmqwire.errors import counted

if TYPE_CHECKING:
    from msmqwire.insight import Summary
    from msmqwire.insight.findings import Detector


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options to the parser."""
    add_captures_or_lake(parser)
    add_expected(parser)
    parser.add_argument("--suricata", action="store_true", help="write the rules for Suricata instead")
    parser.add_argument("--rules", action="store_true", help="list the rules instead")
    add_format(parser, FORMATS)
    add_output(parser)
    add_jobs(parser, "decode")
    add_selection(parser)
    add_quiet(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Detect; the exit status."""
    optional("pyarrow", "msmqwire detect")
    if options.suricata or options.rules:
        return _write_rules(options)
    check_captures_or_lake(options)
    names, refused = ([], 0) if options.lake else capture_files(options.files)
    detector, lines, status = detect(options, names, refused)
    report(lines, status, quiet=options.quiet)
    findings = detector.findings()
    format = options.format or ("table" if is_terminal(options.output) else "json")
    with open_target(options.output, options.files) as sink:
        write(findings, format, sink)
    if not options.quiet:
        say(counted(len(findings), "finding"))
    if detector.omitted():
        say(f"{counted(detector.omitted(), 'candidate')} left out: a rule keeps 10,000")
    return 2 if findings else status


def _write_rules(options: argparse.Namespace) -> int:
    from msmqwire.insight.rules import RULES, suricata_rules

    if options.files or options.lake:
        raise CommandError("--rules and --suricata read no captures")
    text = suricata_rules()
    if options.rules:
        text = "".join(f"{rule.name}  {rule.severity}: {rule.title} ({rule.reference})\n" for rule in RULES)
    with open_target(options.output, []) as sink:
        sink.write(text.encode())
    return 0


def detect(
    options: argparse.Namespace, names: Sequence[str], refused: int, summary: Summary | None = None
) -> tuple[Detector, list[str], int]:
    """Apply the rules to the rows of a command, and add the rows to a summary; the lines and the status of reading.

    ``names`` and ``refused`` are those of ``capture_files``; a lake has none.
    """
    from msmqwire.insight import COLUMNS
    from msmqwire.insight.findings import CapturedRows, Detector

    if options.lake:
        return _detect_in_lake(options, summary)
    how = read_options(options, names, jobs=options.jobs or usable_cores())
    detector = Detector(options.expect)
    with (
        CapturedRows(names, how, COLUMNS if summary is not None else None) as reader,
        progress(names, wanted=not options.quiet) as show,
    ):
        for table, batch in reader:
            detector.add(table, batch)
            if summary is not None:
                summary.add(table, batch)
            show(reader.stats.bytes_read)
    return detector, *counts(reader, refused, payloads=False)


def _detect_in_lake(options: argparse.Namespace, summary: Summary | None) -> tuple[Detector, list[str], int]:
    from msmqwire.insight import COLUMNS
    from msmqwire.insight.findings import Detector
    from msmqwire.insight.rules import COLUMNS as EVIDENCE

    check_lake(options, "accounting", "msmqwire with --lake")
    detector = Detector(options.expect)
    columns = {name: (*EVIDENCE[name], *(() if summary is None else COLUMNS[name])) for name in EVIDENCE}
    for table, batch in lake_rows(options, columns):
        detector.add(table, batch)
        if summary is not None:
            summary.add(table, batch)
    return detector, *lake_counts(options, payloads=False)
