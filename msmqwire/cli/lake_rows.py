"""The rows of a lake for commands that read captures as well, and what of its captures cannot be read."""

from __future__ import annotations

import argparse
from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING

from msmqwire.cli.arguments import read_options
from msmqwire.cli.console import CommandError, optional
from msmqwire.cli.counts import described

if TYPE_CHECKING:
    import pyarrow as pa


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


def lake_counts(options: argparse.Namespace, *, payloads: bool = True) -> tuple[list[str], int]:
    """What became of every frame and payload of a lake, in lines, and the exit status of reading; as of ``counts``."""
    from msmqwire.spark.lake.scanning import totals

    total, problems = totals(options.lake)
    unread = [f"not read: {problem}" for problem in problems]
    return described(total, total.rows, total.faults, total.encrypted, total.unread, unread, payloads=payloads)
