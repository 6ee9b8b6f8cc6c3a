"""The captures or the lake that a command reads: their rows, and what became of every frame and payload."""

from __future__ import annotations

import argparse
import contextlib
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from msmqwire.cli.arguments import CAPTURE_HELP, capture_files, read_options, usable_cores
from msmqwire.cli.console import CommandError, optional
from msmqwire.cli.counts import counts, described
from msmqwire.cli.progress import progress

if TYPE_CHECKING:
    import pyarrow as pa

    from msmqwire.capture import ReadOptions, TablesReader


def add_captures_or_lake(parser: argparse.ArgumentParser) -> None:
    """Add captures and ``--lake``, which ``Inputs`` reads."""
    parser.add_argument("files", nargs="*", metavar="CAPTURE", help=CAPTURE_HELP)
    parser.add_argument("--lake", metavar="LAKE", help="a lake of msmqwire pipeline, in place of captures")
    parser.add_argument("--skip-damaged", action="store_true", help="skip files of the lake that cannot be read")


#: Batches of rows, each with the name of its table.
Rows: TypeAlias = "Iterator[tuple[str, pa.RecordBatch]]"
#: After the last batch: the lines and the exit status of reading, as ``msmqwire.cli.counts.counts`` has them.
Counts: TypeAlias = Callable[..., tuple[list[str], int]]


class Inputs:
    """The captures or the lake that options name; ``table`` is a table that the lake must have.

    Attributes
    ----------
    captures : sequence of str
        Empty for a lake.

    Raises
    ------
    OSError, CaptureError, CommandError
        As ``capture_files``; or the options name both or neither, no lake, or ports, which a lake does not select.
    """

    def __init__(self, options: argparse.Namespace, table: str = "accounting") -> None:
        if bool(options.files) == bool(options.lake):
            both = "name captures or a lake, not both"
            raise CommandError(both if options.files else "name captures, or a lake with --lake")
        self._options = options
        self.captures: Sequence[str] = ()
        self._refused = 0
        if options.lake:
            _check_lake(options, table)
        else:
            self.captures, self._refused = capture_files(options.files)

    def options_of_spark(self) -> dict[str, Any]:
        """Return the options with which the data source of Spark reads the rows of the lake that the options select."""
        from msmqwire.capture.options import time_text

        options, chosen = self._options, read_options(self._options, [])
        times = {"since": chosen.since, "until": chosen.until}
        return {
            "lake": options.lake,
            "ignoreCorruptFiles": str(options.skip_damaged).lower(),
            **{name: time_text(time) for name, time in times.items() if time is not None},
            **({"addresses": ",".join(options.addresses)} if options.addresses else {}),
        }

    def counts_of_lake(self, tables: Collection[str], *, payloads: bool = True) -> tuple[list[str], int]:
        """Return the lines and the exit status of tables of the lake, as ``rows`` has them."""
        return _lake_counts(self._options, tables, payloads=payloads)

    @contextlib.contextmanager
    def rows(
        self,
        columns: Mapping[str, Collection[str]],
        read: Callable[[Sequence[str], ReadOptions], TablesReader] | None = None,
    ) -> Iterator[tuple[Rows, Counts]]:
        """Yield the rows that the options select, with the names of tables, and how to count them after the last one.

        Rows of a lake have ``time_ns`` as well.
        ``read`` reads the captures in place of ``read_tables``.
        """
        options = self._options
        if options.lake:
            yield _lake_rows(options, columns), partial(self.counts_of_lake, columns)
            return
        from msmqwire.capture import read_tables
        from msmqwire.capture.options import LARGE_BLOCK_SIZE

        how = read_options(
            *(options, self.captures),
            columns={table: tuple(names) for table, names in columns.items()},
            guid="binary",
            block_size=LARGE_BLOCK_SIZE,
            jobs=options.jobs or usable_cores(),
        )
        with (
            read(self.captures, how) if read else read_tables(self.captures, columns, how) as reader,
            progress(self.captures, wanted=not options.quiet) as show,
        ):
            yield _shown(reader, show), partial(counts, reader, self._refused)


def _shown(reader: TablesReader, show: Callable[[int], None]) -> Rows:
    for each in reader:
        yield each
        show(reader.stats.bytes_read)


def _check_lake(options: argparse.Namespace, table: str) -> None:
    optional("deltalake", "--lake")
    from msmqwire.spark.lake.scanning import open_lake

    if options.ports:
        raise CommandError("--ports: the ports of a lake are those of its runs; give them to msmqwire pipeline")
    lake = open_lake(options.lake)
    if not lake.table(table).has_log and not lake.pending(table):
        raise CommandError(f"{options.lake}: has no table {table}, which msmqwire pipeline makes")


def _lake_rows(options: argparse.Namespace, columns: Mapping[str, Collection[str]]) -> Rows:
    from msmqwire.spark import lake
    from msmqwire.spark.lake.schemas import LAKE_TABLES

    chosen = read_options(options, [])
    selection = {"since": chosen.since, "until": chosen.until, "addresses": chosen.addresses}
    selection["skip_damaged"] = options.skip_damaged
    for table, names in columns.items():
        if table not in LAKE_TABLES:
            continue
        wanted = list(dict.fromkeys([*names, "time_ns"]))
        for batch in lake.batches(options.lake, table, wanted, **selection):  # type: ignore[arg-type]
            yield table, batch


def _lake_counts(
    options: argparse.Namespace, tables: Collection[str], *, payloads: bool = True
) -> tuple[list[str], int]:
    from msmqwire.spark import lake
    from msmqwire.spark.lake.scanning import totals

    total, problems = totals(options.lake, skip_damaged=options.skip_damaged)
    unread = [f"not read: {problem}" for problem in problems]
    rows = {table: number for table, number in total.rows.items() if table in tables}
    faults: Mapping[str, int] = total.faults
    # Accounting adds up the faults of all tables, also deleted ones
    if rows != total.rows or total.deleted:
        found = lake.batches(options.lake, "faults", ["table", "code"], skip_damaged=options.skip_damaged)
        faults = Counter(row["code"] for batch in found for row in batch.to_pylist() if row["table"] in tables)
    return described(total, rows, faults, total.encrypted, total.unread, unread, payloads=payloads)
