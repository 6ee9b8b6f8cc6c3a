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
  msmqwire detect --lake s3://bucket/lake --master spark://master:7077
  msmqwire detect --hex - < payload.txt
  msmqwire detect --suricata > msmqwire.rules
"""

from __future__ import annotations

import argparse
from functools import partial
from typing import TYPE_CHECKING

from msmqwire.cli.arguments import (
    add_expected,
    add_format,
    add_hex,
    add_jobs,
    add_output,
    add_quiet,
    add_rules,
    add_selection,
    add_spark,
    usable_cores,
    wants_spark,
)
from msmqwire.cli.console import CommandError, optional, say
from msmqwire.cli.counts import report
from msmqwire.cli.findings import FORMATS, write
from msmqwire.cli.inputs import Inputs, add_captures_or_lake
from msmqwire.cli.target import is_terminal, open_target
from msmqwire.errors import counted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession

    from msmqwire.insight.findings import Detector, Finding
    from msmqwire.insight.query_files import Section
    from msmqwire.insight.rules import Rule
    from msmqwire.insight.summary import Summary


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options to the parser."""
    add_captures_or_lake(parser)
    add_hex(parser, "CAPTURE")
    add_expected(parser)
    parser.add_argument("--suricata", action="store_true", help="write the rules for Suricata instead")
    parser.add_argument("--rules", action="store_true", help="list the rules instead")
    add_rules(parser)
    add_format(parser, FORMATS)
    add_output(parser)
    add_jobs(parser, "decode and query")
    add_spark(parser)
    add_selection(parser)
    add_quiet(parser)


def run(options: argparse.Namespace) -> int:
    """Detect; the exit status."""
    optional("pyarrow", "msmqwire detect")
    if options.suricata or options.rules:
        return _write_rules(options)
    optional("duckdb", "msmqwire detect")
    rules = chosen_rules(options)
    if wants_spark(options):
        optional("pyspark", "--spark")
        optional("sqlglot", "--spark")
        from msmqwire.cli.spark_session import with_spark

        return with_spark(options.master, partial(_run_on_spark, options, rules))
    if options.hex:
        from msmqwire.cli.payload import findings_of

        findings, status, omitted = findings_of(options, rules), 0, 0
    else:
        detector, _, lines, status = detect(options, Inputs(options))
        report(lines, status, quiet=options.quiet)
        findings, omitted = detector.findings(), detector.omitted()
    return _write(options, rules, findings, omitted, status)


def _run_on_spark(options: argparse.Namespace, rules: tuple[Rule, ...], spark: SparkSession) -> int:
    from msmqwire.spark.insight import detect

    inputs = Inputs(options)
    detector = detect(spark, expected=options.expect, rules=rules, **inputs.options_of_spark())
    try:
        lines, status = inputs.counts_of_lake(detector.columns, payloads=False)
        report(lines, status, quiet=options.quiet)
        return _write(options, rules, detector.findings(), detector.omitted(), status)
    finally:
        detector.close()


def _write(
    options: argparse.Namespace, rules: tuple[Rule, ...], findings: list[Finding], omitted: int, status: int
) -> int:
    format = options.format or ("table" if is_terminal(options.output) else "json")
    with open_target(options.output, [] if options.hex else options.files) as sink:
        write(findings, format, sink, rules)
    if not options.quiet:
        say(counted(len(findings), "finding"))
    if omitted:
        say(f"{counted(omitted, 'candidate')} left out: a rule keeps 10,000")
    return 2 if findings else status


def _write_rules(options: argparse.Namespace) -> int:
    from msmqwire.insight.rules import suricata_rules

    if options.files or options.lake:
        raise CommandError("--rules and --suricata read no captures")
    rules = chosen_rules(options)
    text = suricata_rules(rules)
    if options.rules:
        if options.rules_from:
            optional("duckdb", "msmqwire detect")
            from msmqwire.insight.findings import detection_engine

            detection_engine(rules).close()  # checks them
        text = "".join(
            f"{rule.name}  {rule.severity}: {rule.title}" + (f" ({rule.reference})" if rule.reference else "") + "\n"
            for rule in rules
        )
    with open_target(options.output, []) as sink:
        sink.write(text.encode())
    return 0


def chosen_rules(options: argparse.Namespace) -> tuple[Rule, ...]:
    """Return the rules of the package, and those of ``--rules-from``: a rule replaces that with its name."""
    from msmqwire.insight.rules import RULES_BY_NAME, read_rules

    own = read_rules(options.rules_from) if options.rules_from else []
    return tuple({**RULES_BY_NAME, **{rule.name: rule for rule in own}}.values())


def detect(
    options: argparse.Namespace, inputs: Inputs, sections: Mapping[str, Section] | None = None
) -> tuple[Detector, Summary, list[str], int]:
    """Apply the rules to the rows of a command; the findings, a summary with sections, the lines and status of reading.

    Payloads that cannot be decoded count with sections, which show them; they are no findings.
    """
    from msmqwire.insight.findings import CapturedRows, Detector, detection_engine
    from msmqwire.insight.summary import Summary

    rules, sections = chosen_rules(options), sections or {}
    engine = detection_engine(rules, options.expect, sections.values(), options.jobs or usable_cores())
    with inputs.rows(engine.columns, lambda names, how: CapturedRows(names, how, engine.columns)) as (rows, counts):
        for table, batch in rows:
            engine.add(table, batch)
    return Detector(rules=rules, engine=engine), Summary({}, sections, engine), *counts(payloads=bool(sections))
