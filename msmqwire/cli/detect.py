"""``msmqwire detect``: attacks, probes and dangerous configurations in captures."""

from __future__ import annotations

import argparse
import dataclasses
import re
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from msmqwire.cli.arguments import (
    add_captures_or_lake,
    add_expected,
    add_format,
    add_output,
    add_quiet,
    add_selection,
    capture_files,
    check_captures_or_lake,
    read_options,
)
from msmqwire.cli.console import CommandError, counted, json_line, optional, printable, say
from msmqwire.cli.counts import report
from msmqwire.cli.lake_rows import check_lake, lake_rows, report_lake
from msmqwire.cli.progress import progress
from msmqwire.cli.target import is_terminal, open_target

if TYPE_CHECKING:
    from msmqwire.insight import Summary
    from msmqwire.insight.findings import Detector, Finding

__all__ = ["add", "detect", "run"]

FORMATS = ("table", "json", "zeek")

_EPILOG = """\
A finding has the packets with the same evidence: hosts, lengths, queues. --suricata writes the
rules that Suricata can express; the others need the state of streams or several packets.

exit status:
  0  no findings
  1  wrong usage, or a file that cannot be read, or is no capture
  2  there are findings, or something was lost: frames or streams were malformed or truncated

examples:
  msmqwire detect capture.pcapng
  msmqwire detect *.pcap --expect 10.20.1.10 --expect 10.20.7.0/24
  msmqwire detect day.pcap.zst | jq 'select(.severity == "high")'
  msmqwire detect -T zeek day.pcap > msmqwire_findings.log
  msmqwire detect --lake lake --since 2024-03-04
  msmqwire detect --suricata > msmqwire.rules
"""


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options to the parser."""
    parser.description = "Find attacks, probes and dangerous configurations in captures or a lake."
    parser.epilog = _EPILOG
    add_captures_or_lake(parser)
    add_expected(parser)
    parser.add_argument("--suricata", action="store_true", help="write the rules for Suricata instead")
    parser.add_argument("--rules", action="store_true", help="list the rules instead")
    add_format(parser, FORMATS)
    add_output(parser)
    add_selection(parser)
    add_quiet(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Detect; the exit status."""
    optional("pyarrow", "msmqwire detect")
    if options.suricata or options.rules:
        return _write_rules(options)
    check_captures_or_lake(options)
    detector, complete = detect(options)
    findings = detector.findings()
    format = options.format or ("table" if is_terminal(options.output) else "json")
    with open_target(options.output, options.files) as sink:
        for line in {"table": _for_people, "json": _json, "zeek": _zeek}[format](findings):
            sink.write(line.encode("utf-8", "replace"))
    if not options.quiet:
        say(counted(len(findings), "finding"))
    if detector.omitted():
        say(f"{counted(detector.omitted(), 'finding')} left out: there are more than 10,000 of a rule")
    return 0 if complete and not findings else 2


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


def detect(options: argparse.Namespace, summary: Summary | None = None) -> tuple[Detector, bool]:
    """Apply the rules to the rows of a command, and add the rows to a summary; whether all captures were read."""
    from msmqwire.insight import COLUMNS
    from msmqwire.insight.findings import CapturedRows, Detector

    if options.lake:
        return _detect_in_lake(options, summary)
    names, refused = capture_files(options.files)
    how = read_options(options, names)
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
    return detector, report(reader, refused, quiet=options.quiet, payloads=False) == 0


def _detect_in_lake(options: argparse.Namespace, summary: Summary | None) -> tuple[Detector, bool]:
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
    return detector, report_lake(options, payloads=False) == 0


def _json(findings: Sequence[Finding]) -> list[str]:
    return [json_line(dataclasses.asdict(finding)) + "\n" for finding in findings]


def _for_people(findings: Sequence[Finding]) -> list[str]:
    lines = []
    for finding in findings:
        place = {"file": finding.file, "frames": " ".join(map(str, finding.frames))}
        values = {name: _shown(value) for name, value in (place | finding.readable()).items() if value}
        longest = max(map(len, values))
        lines.append(f"{finding.severity:6}  {finding.rule}: {finding.title} ({finding.reference})\n")
        lines += [f"        {name:{longest}}  {printable(value)}\n" for name, value in values.items()]
    return lines or ["no findings\n"]


def _shown(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


_ZEEK = (
    ("ts", "time"), ("rule", "string"), ("severity", "string"), ("title", "string"), ("src", "string"),
    ("dst", "string"), ("file", "string"), ("frames", "vector[count]"), ("evidence", "string"), ("reference", "string"),
)  # fmt: skip


def _zeek(findings: Sequence[Finding]) -> list[str]:
    """The ASCII log of Zeek: a header, then values separated by tabs."""
    lines = ["#separator \\x09\n", "#set_separator\t,\n", "#empty_field\t(empty)\n", "#unset_field\t-\n"]
    lines += ["#path\tmsmqwire_findings\n", "#fields\t" + "\t".join(name for name, _ in _ZEEK) + "\n"]
    lines += ["#types\t" + "\t".join(kind for _, kind in _ZEEK) + "\n"]
    for finding in findings:
        evidence = dict(finding.evidence)
        seen = evidence.pop("first_seen")
        values = {
            **dataclasses.asdict(finding),
            "ts": _seconds(seen),
            "src": evidence.pop("src", None),
            "dst": evidence.pop("dst", None),
            "frames": ",".join(map(str, finding.frames)),
            "evidence": json_line(evidence),
        }
        lines.append("\t".join(_zeek_cell(values[name]) for name, _ in _ZEEK) + "\n")
    return lines


def _zeek_cell(value: Any) -> str:
    if value is None:
        return "-"
    # Zeek writes what could be taken for a separator as \xNN
    text = re.sub(r"[\x00-\x1f\x7f\\]", lambda match: f"\\x{ord(match[0]):02x}", str(value))
    return printable(text) or "(empty)"


def _seconds(time: str | None) -> str | None:
    return None if time is None else f"{datetime.fromisoformat(time).timestamp():.6f}"
