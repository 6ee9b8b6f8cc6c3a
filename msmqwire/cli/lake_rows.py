"""The rows of a lake for commands that read captures as well, and what of its captures cannot be read."""

from __future__ import annotations

import argparse
from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING

from msmqwire.cli.arguments import read_options
from msmqwire.cli.console import CommandError, optional
from msmqwire.cli.counts import say_all
from msmqwire.errors import counted

if TYPE_CHECKING:
    import pyarrow as pa

_PROBLEMS_SHOWN = 10


def check_lake(options: argparse.Namespace, table: str, purpose: str) -> None:
    """Refuse a lake without a table, and options that a lake does not have."""
    optional("deltalake", purpose)
    from msmqwire.spark.lake.scanning import open_lake

    if getattr(options, "ports", None):
        raise CommandError("--ports: the ports of a lake are those of its runs; give them to msmqwire pipeline")
    if not open_lake(options.lake).table(table).exists:
        raise CommandError(f"{options.lake}: has no table {table}, which msmqwire pipeline makes")


def lake_rows(
    options: argparse.Namespace, columns: Mapping[str, Collection[str]]
) -> Iterator[tuple[str, pa.RecordBatch]]:
    """The rows that the options select, of each table with its columns and the nanoseconds of its times."""
    from msmqwire.spark import lake

    chosen = read_options(options, [])
    selection = {"since": chosen.since, "until": chosen.until, "addresses": chosen.addresses}
    for table, names in columns.items():
        wanted = list(dict.fromkeys([*names, "time_ns"]))
        for batch in lake.batches(options.lake, table, wanted, **selection):  # type: ignore[arg-type]
            yield table, batch


def report_lake(options: argparse.Namespace, *, payloads: bool = True) -> int:
    """Print what became of every frame and payload of a lake, unless ``--quiet``; the exit status of reading.

    If ``payloads`` is false, payloads that cannot be decoded do not count.
    """
    lines, status = lake_counts(options, payloads=payloads)
    if not options.quiet:
        say_all(lines)
    return status


def lake_counts(options: argparse.Namespace, *, payloads: bool = True) -> tuple[list[str], int]:
    """The lines and the exit status of ``report_lake``."""
    from msmqwire.spark.lake.scanning import totals

    total, problems = totals(options.lake)
    faults = total.faults if payloads else {}
    encrypted = total.encrypted if payloads else 0
    # The faults of messages that may be notifications are in messages, if the lake has that table
    unread = total.unread if payloads and "messages" not in total.rows else 0
    lines = [*total.report(total.rows, faults, encrypted=encrypted, unread=unread)]
    lines += [f"not read: {problem}" for problem in problems[:_PROBLEMS_SHOWN]]
    if len(problems) > _PROBLEMS_SHOWN:
        lines.append(f"... and {counted(len(problems) - _PROBLEMS_SHOWN, 'more file')}")
    lost = total.lost or total.bytes_skipped or problems
    return lines, 2 if lost or faults or encrypted or unread else 0
