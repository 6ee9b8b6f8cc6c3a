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
  msmqwire detect --hex - < payload.txt
  msmqwire detect --suricata > msmqwire.rules
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from msmqwire.cli.arguments import add_expected, add_format, add_jobs, add_output, add_quiet, add_selection
from msmqwire.cli.console import CommandError, optional, say
from msmqwire.cli.counts import report
from msmqwire.cli.findings import FORMATS, write
from msmqwire.cli.inputs import DECODING_THREADS, Inputs, add_captures_or_lake
from msmqwire.cli.target import is_terminal, open_target
from msmqwire.errors import counted

if TYPE_CHECKING:
    from msmqwire.insight import Summary
    from msmqwire.insight.findings import Detector


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options to the parser."""
    add_captures_or_lake(parser)
    parser.add_argument("--hex", action="store_true", help="CAPTURE is one payload, as a log has it")
    add_expected(parser)
    parser.add_argument("--suricata", action="store_true", help="write the rules for Suricata instead")
    parser.add_argument("--rules", action="store_true", help="list the rules instead")
    add_format(parser, FORMATS)
    add_output(parser)
    add_jobs(parser, "decode", DECODING_THREADS)
    add_selection(parser)
    add_quiet(parser)


def run(options: argparse.Namespace) -> int:
    """Detect; the exit status."""
    optional("pyarrow", "msmqwire detect")
    if options.suricata or options.rules:
        return _write_rules(options)
    if options.hex:
        from msmqwire.cli.payload import findings_of

        findings, status, omitted = findings_of(options), 0, 0
    else:
        detector, lines, status = detect(options, Inputs(options))
        report(lines, status, quiet=options.quiet)
        findings, omitted = detector.findings(), detector.omitted()
    format = options.format or ("table" if is_terminal(options.output) else "json")
    with open_target(options.output, [] if options.hex else options.files) as sink:
        write(findings, format, sink)
    if not options.quiet:
        say(counted(len(findings), "finding"))
    if omitted:
        say(f"{counted(omitted, 'candidate')} left out: a rule keeps 10,000")
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
    options: argparse.Namespace, inputs: Inputs, summary: Summary | None = None
) -> tuple[Detector, list[str], int]:
    """Apply the rules to the rows of a command, and add the rows to a summary; the lines and the status of reading.

    Payloads that cannot be decoded count with a summary, which shows them; they are no findings.
    """
    from msmqwire.insight import COLUMNS
    from msmqwire.insight.findings import CapturedRows, Detector
    from msmqwire.insight.rules import COLUMNS as EVIDENCE

    detector = Detector(options.expect)
    more = {} if summary is None else COLUMNS
    columns = {table: (*names, *more.get(table, ())) for table, names in EVIDENCE.items()}
    with inputs.rows(columns, lambda names, how: CapturedRows(names, how, more)) as (rows, counts):
        for table, batch in rows:
            detector.add(table, batch)
            if summary is not None:
                summary.add(table, batch)
    return detector, *counts(payloads=summary is not None)
