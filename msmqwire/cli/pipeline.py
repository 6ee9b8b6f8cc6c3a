"""Decode captures into a lake of Delta tables, partitioned by day, with Spark.

The lake is a folder, or a URI such as s3://bucket/lake, of Delta tables, partitioned by day: topology
(a row a discovery packet), messages (a row a message), notifications (a row a change), sessions (a row
a ping or session packet), faults (a row a payload that cannot be decoded) and accounting (a row a
capture, with the counts of its frames). A second run decodes new captures and captures that have grown;
it completes a run that was killed. Several runs may write to a lake at once.

Spark runs on this machine with all its cores, or where --master, SPARK_REMOTE or spark-submit
choose; captures and lake must then have the same names on all machines.

exit status:
  0  every frame of every capture was read and every payload decoded
  1  wrong usage, or a capture that cannot be read; the lake has the others
  2  something was lost: payloads had faults, frames or messages cannot be read, change
     notifications were encrypted, bytes of TCP streams are missing, a compressed capture is truncated

examples:
  msmqwire pipeline captures/ --lake lake
  msmqwire pipeline 'captures/2024-03-*/*.pcapng' --lake lake
  spark-submit --master yarn $(which msmqwire) pipeline /data/captures --lake /data/lake
"""

from __future__ import annotations

import argparse
import re
from functools import partial
from typing import TYPE_CHECKING

from msmqwire.cli.arguments import add_master, add_ports, add_quiet, column_names, days, hours, read_options
from msmqwire.cli.console import CommandError, optional, say
from msmqwire.cli.progress import capture_progress
from msmqwire.cli.spark_session import with_spark
from msmqwire.errors import printable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options to the parser."""
    parser.add_argument(
        "sources", nargs="+", metavar="SOURCE", help="a capture, a folder of captures, a pattern or a URI"
    )
    parser.add_argument("--lake", required=True, metavar="LAKE", help="the folder or URI of the tables; it is created")
    parser.add_argument(
        "--tables",
        type=column_names,
        metavar="A,B",
        help="the tables to write besides faults and accounting (default: topology,notifications,messages,sessions)",
    )
    parser.add_argument("-r", "--recursive", action="store_true", help="read subfolders as well")
    parser.add_argument("--overwrite", action="store_true", help="decode captures that the lake has, too")
    parser.add_argument(
        "--failfast", action="store_true", help="stop at the first payload or capture that cannot be decoded"
    )
    add_ports(parser)
    parser.add_argument(
        "--compression",
        choices=("snappy", "zstd", "lz4", "gzip", "brotli", "none"),
        default="snappy",
        help="the compression of Parquet files (default: snappy)",
    )
    parser.add_argument("--digest", action="store_true", help="note the SHA-256 of every capture in accounting")
    parser.add_argument(
        "--vacuum-hours", type=hours, metavar="N", help="afterwards delete files that no table has had for N hours"
    )
    parser.add_argument(
        "--retention-days", type=days, metavar="N", help="afterwards delete rows older than N days, as lake delete does"
    )
    add_master(parser)
    add_quiet(parser)


def run(options: argparse.Namespace) -> int:
    """Run the pipeline; the exit status."""
    optional("pyspark", "msmqwire pipeline")
    optional("deltalake", "msmqwire pipeline")
    from msmqwire.capture import TABLES
    from msmqwire.capture.files.listing import find_files
    from msmqwire.spark.lake.storage import Storage

    options.tables = [table.lower() for table in options.tables or TABLES]
    for table in options.tables:
        if table not in TABLES:
            raise CommandError(f"--tables {table}: no such table; there is {', '.join(TABLES)}")
    # Spark takes seconds to start
    try:
        find_files(options.sources, recursive=options.recursive, empty=lambda _: None)
    except ValueError as error:
        raise CommandError(str(error)) from None
    Storage.of(options.lake)
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
                ports=read_options(options, ()).ports,
                compression=options.compression,
                digest=options.digest,
                recursive=options.recursive,
                overwrite=options.overwrite,
                vacuum_hours=options.vacuum_hours,
                retention_days=options.retention_days,
                progress=progress,
            )
    except PySparkException as error:
        cause = _error_of_task(str(error))
        if cause is None:
            raise
        raise CommandError(f"nothing was added to {options.lake}: {cause}") from error
    if not options.quiet:
        print("\n".join(printable(line) for line in str(summary).splitlines()))
    else:
        for problem in summary.problems:
            say(f"msmqwire: {problem}")
    if summary.problems:
        return 1
    return 2 if summary.faults.total() or summary.lost or summary.encrypted else 0


def _error_of_task(text: str) -> str | None:
    """Return the message of an error of this package that a task raised, from the traceback that Spark reports."""
    found: list[str] = re.findall(r"^msmqwire\.errors\.\w+: (.*)$", text, re.MULTILINE)
    return found[-1] if found else None
