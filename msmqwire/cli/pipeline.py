"""``msmqwire pipeline``: captures into a lake of Delta tables, by Spark."""

from __future__ import annotations

import argparse
import re
from functools import partial
from typing import TYPE_CHECKING, Any

from msmqwire.cli.arguments import column_names, ports
from msmqwire.cli.console import CommandError, optional, printable, say
from msmqwire.cli.progress import capture_progress
from msmqwire.cli.spark_session import with_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["add", "run"]

_EPILOG = """\
The lake is a folder, or a URI such as s3://bucket/lake, of Delta tables by day: topology (a
row a packet of discovery), messages (a row a message), notifications (a row a change),
sessions (a row a ping or packet that keeps a session), faults (a row for each that cannot be
decoded) and accounting (a row for each capture: what became of every frame). Running it again
decodes new captures, and captures that have grown. Several runs may write to a lake at once,
and the next run completes one that was killed. msmqwire lake looks after a lake.

Spark runs on this machine with all its cores, or where --master, SPARK_REMOTE or
spark-submit say; captures and lake must then have the same names everywhere.

exit status:
  0  every frame of every capture was read and every payload decoded
  1  wrong usage, or a capture that cannot be read; the lake has all the others
  2  some payloads had faults, some frames or messages cannot be read, change notifications
     were encrypted, bytes of TCP streams were missing, or a compressed capture was cut

examples:
  msmqwire pipeline captures/ --lake lake
  msmqwire pipeline 'captures/2024-03-*/*.pcapng' --lake lake
  spark-submit --master yarn $(which msmqwire) pipeline /data/captures --lake /data/lake
"""


def add(subcommands: Any) -> None:
    """Add the subcommand to the parser."""
    parser = subcommands.add_parser(
        "pipeline",
        help="decode many captures into partitioned tables, by Spark",
        description="Decode captures into a lake of Delta tables, partitioned by day, with Spark.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("sources", nargs="+", metavar="SOURCE", help="a capture, a folder of captures, or a pattern")
    parser.add_argument("--lake", required=True, metavar="DIR", help="the folder or URI of the tables, made if need be")
    parser.add_argument(
        "--tables",
        type=column_names,
        metavar="A,B",
        help="of topology, notifications, messages and sessions those to write, beside faults and accounting "
        "(default: all)",
    )
    parser.add_argument("-r", "--recursive", action="store_true", help="read the folders below a folder as well")
    parser.add_argument("--again", action="store_true", help="decode captures though the lake has them")
    parser.add_argument(
        "--failfast", action="store_true", help="stop at the first payload or capture that cannot be decoded"
    )
    parser.add_argument("--ports", type=ports, metavar="N,N", help="the ports to look at instead of the table's own")
    parser.add_argument(
        "--compression",
        choices=("snappy", "zstd", "lz4", "gzip", "brotli", "none"),
        default="snappy",
        help="of the Parquet files (default: snappy)",
    )
    parser.add_argument("--digest", action="store_true", help="note the SHA-256 of every capture in accounting")
    parser.add_argument("--master", metavar="URL", help="the Spark to use, e.g. local[4], spark://..., sc://...")
    parser.add_argument("-q", "--quiet", action="store_true", help="no summary and no progress")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Run the pipeline; the exit status."""
    optional("pyspark", "msmqwire pipeline", "spark")
    optional("deltalake", "msmqwire pipeline", "spark")
    from msmqwire.capture import TABLES
    from msmqwire.spark.source.files import expand

    options.tables = options.tables or list(TABLES)
    for table in options.tables:
        if table not in TABLES:
            raise CommandError(f"--tables {table}: no such table; there is {', '.join(TABLES)}")
    # Before Spark is started, which takes seconds
    try:
        expand(options.sources, recursive=options.recursive)
    except ValueError as error:
        raise CommandError(str(error)) from None
    return with_spark(options.master, partial(_run, options))


def _run(options: argparse.Namespace, spark: SparkSession) -> int:
    from pyspark.errors import PySparkException

    from msmqwire.spark import pipeline

    try:
        with capture_progress(wanted=not options.quiet) as progress:
            summary = pipeline.run(
                spark,
                options.sources,
                options.lake,
                tables=options.tables,
                mode="FAILFAST" if options.failfast else "PERMISSIVE",
                ports=options.ports,
                compression=options.compression,
                digest=options.digest,
                recursive=options.recursive,
                again=options.again,
                progress=progress,
            )
    except PySparkException as error:
        ours = _error_of_task(str(error))
        if ours is None:
            raise
        raise CommandError(f"nothing was added to {options.lake}: {ours}") from error
    if not options.quiet:
        print("\n".join(printable(line) for line in str(summary).splitlines()))
    else:
        for problem in summary.problems:
            say(f"msmqwire: {problem}")
    if summary.problems:
        return 1
    return 2 if summary.faults.total() or summary.lost or summary.encrypted else 0


def _error_of_task(text: str) -> str | None:
    """What an error of ours said that was raised in a task, from the tracebacks that Spark hands on."""
    ours: list[str] = re.findall(r"^msmqwire\.errors\.\w+: (.*)$", text, re.MULTILINE)
    return ours[-1] if ours else None
