"""Summarize captures or a lake: hosts, conversations, a timeline, queues, discovery, faults.

tables (--table):
  totals           rows and faults of each table and file
  hosts            an address: its roles (client, directory_server, queue_manager, router, scanner, receiver)
  conversations    who sends what to whom: messages, bytes, queues
  connections      who tried to connect to whom, and what became of it
  timeline         in the order of time: first messages to queues, findings, refusals, negative
                   acknowledgments, gaps, faults
  queue_managers   the GUIDs of queue managers, their addresses and names
  queues           who sends to a queue, messages and bytes
  acknowledgments  messages that asked for acknowledgments, and what was answered after how long
  answers          of a queue: how many asked and were answered, and how soon
  sequences        transactional messages of a sequence: sent, order-acknowledged, missing
  classes          acknowledgments by class; negative ones report messages that were not delivered
  sessions         packets of each direction of a TCP connection, and missing bytes
  repeated         messages that were sent more than once
  discovery        runs of discovery; requests without an answer have no replies
  notifications    changes that a machine was notified of
  problems         faults and violations, by rule
  minutes          rows and faults of each minute

Each row has its first and last time, and the first frames that it was counted from. Memory grows with
what is distinct, up to a limit; standard error says what was left out.

exit status:
  0  every frame was read and every payload decoded
  1  wrong usage, or a file that cannot be read, or is no capture
  2  something was lost: payloads had faults, frames were malformed, or one of several files is no capture

examples:
  msmqwire summary capture.pcapng
  msmqwire summary *.pcap -T json | jq 'select(.table == "queues") | .queue'
  msmqwire summary *.pcap --table queues -o queues.parquet
  msmqwire summary capture.pcapng --table conversations
  msmqwire summary --lake lake --table hosts
  msmqwire summary --lake s3://bucket/lake --master spark://master:7077
"""

from __future__ import annotations

import argparse
from functools import partial
from typing import TYPE_CHECKING, Any

from msmqwire.cli.arguments import (
    add_format,
    add_jobs,
    add_output,
    add_quiet,
    add_selection,
    add_spark,
    usable_cores,
    wants_spark,
)
from msmqwire.cli.console import CommandError, optional
from msmqwire.cli.counts import report
from msmqwire.cli.formats import FORMATS, ONE_TABLE, chosen_format, write_table
from msmqwire.cli.inputs import Inputs, add_captures_or_lake
from msmqwire.cli.target import open_target
from msmqwire.errors import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import pyarrow as pa
    from pyspark.sql import SparkSession

    from msmqwire.cli.target import Sink
    from msmqwire.insight import Summary
    from msmqwire.insight.query_files import Section

_ROWS_OF_A_BATCH = 4096  # their text is in memory


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options to the parser."""
    add_captures_or_lake(parser)
    add_format(parser, FORMATS)
    add_output(parser)
    parser.add_argument("--table", metavar="NAME", help="only this table, see below")
    parser.add_argument("--sections-from", metavar="FOLDER", help="make the tables of its files NAME.sql as well")
    add_jobs(parser, "decode and query")
    add_spark(parser)
    add_selection(parser)
    add_quiet(parser)


def run(options: argparse.Namespace) -> int:
    """Summarize; the exit status."""
    optional("pyarrow", "msmqwire summary")
    optional("duckdb", "msmqwire summary")
    from msmqwire.insight.findings import CapturedRows
    from msmqwire.insight.query_files import SECTIONS, read_sections
    from msmqwire.insight.summary import Summary

    sections = {**SECTIONS, **(read_sections(options.sections_from) if options.sections_from else {})}
    if options.table is not None and options.table not in sections:
        raise CommandError(f"--table {options.table}: no such table; there is {', '.join(sections)}")
    format = chosen_format(options.format, options.output)
    if format in ONE_TABLE and options.table is None:
        raise CommandError(f"{format} holds one table; name it with --table: {', '.join(sections)}")
    if options.table is not None:
        sections = {options.table: sections[options.table]}
    if wants_spark(options):
        optional("pyspark", "--spark")
        optional("sqlglot", "--spark")
        from msmqwire.cli.spark_session import with_spark

        return with_spark(options.master, partial(_run_on_spark, options, format, sections))
    summary = Summary(sections=sections, threads=options.jobs or usable_cores())
    columns = summary.columns
    with Inputs(options).rows(columns, lambda names, how: CapturedRows(names, how, columns)) as (rows, counts):
        for table, batch in rows:
            summary.add(table, batch)
    status = report(*counts(), quiet=options.quiet)
    _write(options, format, summary)
    return status


def _run_on_spark(
    options: argparse.Namespace, format: str, sections: Mapping[str, Section], spark: SparkSession
) -> int:
    from msmqwire.spark.insight import summarize

    inputs = Inputs(options)
    summary = summarize(spark, sections=sections, **inputs.options_of_spark())
    try:
        status = report(*inputs.counts_of_lake(summary.columns), quiet=options.quiet)
        _write(options, format, summary)
    finally:
        summary.close()
    return status


def _write(options: argparse.Namespace, format: str, summary: Summary) -> None:
    """Write the sections, one after the other: together they can take more memory than the rest of the command."""
    notes: list[str] = []
    with open_target(options.output, options.files) as sink:
        for name in summary.sections:
            notes += _write_section(format, sink, summary, name)
            summary.release(name)
    report(notes, 0, quiet=options.quiet)


def _write_section(format: str, sink: Sink, summary: Summary, name: str) -> Iterator[str]:
    """Write a section; yield what to say of it."""
    table, line, (groups, packets) = summary.section(name), summary.line(name), summary.omitted(name)
    if format in ("table", "brief"):
        table = _for_people(table, files=summary.files > 1, routes=format == "table")
    batches = table.to_batches(_ROWS_OF_A_BATCH)
    write_table(format, sink, table.schema, batches, table=name if len(summary.sections) > 1 else "")
    if line:
        yield f"{name}: {line}"
    if groups:
        yield f"{name}: {counted(groups, 'row')} left out, which {counted(packets, 'packet')} belong to"


def _for_people(table: pa.Table, *, files: bool, routes: bool) -> pa.Table:
    """Return both times as one column, frames as text, with the names of ``files`` if wanted, without empty columns.

    With ``routes`` the addresses and ports of both ends are one column as well.
    """
    import pyarrow as pa

    from msmqwire.cli.formats.people import route
    from msmqwire.insight.frames import frames_text, seen_text

    columns: dict[str, Any] = {}
    for field in table.schema:
        values: Any = table[field.name]
        if values.null_count == len(values) and len(values):
            continue
        if pa.types.is_timestamp(field.type):
            values = values.cast(pa.timestamp("us", "UTC"), safe=False).to_pylist()
        elif field.name == "frames":
            values = [frames_text(frames, files=files) for frames in values.to_pylist()]
        elif pa.types.is_list(field.type):
            values = [", ".join(map(str, each)) for each in values.to_pylist()]
        columns[field.name] = values
    if "first_seen" in columns:
        columns["first_seen"] = list(
            map(seen_text, columns["first_seen"], columns.pop("last_seen", columns["first_seen"]))
        )
    if "minute" in columns:
        columns["minute"] = [f"{minute:%Y-%m-%d %H:%M}" for minute in columns["minute"]]
    titles = {"first_seen": "seen"}
    if routes and "src_port" in columns:
        columns["src"] = route(table).to_pylist()
        titles["src"] = "from → to"
        for name in ("src_port", "dst", "dst_port"):
            del columns[name]
    columns = {titles.get(name, name): values for name, values in columns.items()}
    return pa.table(columns)
