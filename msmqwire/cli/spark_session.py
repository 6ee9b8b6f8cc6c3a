"""The Spark session of a command."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import TYPE_CHECKING

from msmqwire.cli import signals
from msmqwire.cli.console import CommandError, optional

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["check_lake", "with_spark"]


def check_lake(uri: str, table: str, purpose: str) -> None:
    """Refuse a lake without a table, before Spark is started, which takes seconds."""
    optional("pyspark", purpose)
    optional("deltalake", purpose)
    from msmqwire.spark.lake.commit import Lake
    from msmqwire.spark.lake.storage import Storage

    if not Lake(Storage.of(uri)).table(table).exists:
        raise CommandError(f"{uri}: has no table {table}, which msmqwire pipeline makes")


def with_spark(master: str | None, work: Callable[[SparkSession], int]) -> int:
    """Do the work with a Spark session; its exit status.

    That is the active session, or a new one at ``master``, which is stopped after the work. The default of ``master``
    is the Spark of ``spark-submit`` or SPARK_REMOTE, or all cores of this machine.

    A JVM writes warnings and stack traces to standard error. They go to a file, which is kept if Spark fails.

    Raises
    ------
    CommandError
        Spark has failed, or there is no Java to start it.
    """
    from pyspark.sql import SparkSession

    active = None if master else SparkSession.getActiveSession()
    if active is not None:
        with _errors_of_spark():
            return work(active)
    if master is None and not _is_chosen() and not _java():
        raise CommandError("Spark needs Java 17 or newer: apt-get install openjdk-17-jre-headless, or set JAVA_HOME")
    descriptor, log = tempfile.mkstemp(prefix="msmqwire-spark-", suffix=".log")
    keep = False
    try:
        with _errors_of_spark(log):
            # A JVM that is interrupted while it starts would not end with this process
            with signals.deferred(), _standard_error_to(descriptor):
                spark = _new_session(master)
            try:
                return work(spark)
            finally:
                # A broken session must not hide its cause
                with contextlib.suppress(Exception):
                    spark.stop()
    except CommandError as error:
        keep = log in str(error)
        raise
    finally:
        os.close(descriptor)
        if not keep:
            os.unlink(log)


@contextlib.contextmanager
def _errors_of_spark(log: str = "") -> Iterator[None]:
    """Raise errors of Spark as one line with the cause."""
    from pyspark.errors import PySparkException

    # A plain import would have no types
    bridge_error: type[Exception] = import_module("py4j.protocol").Py4JError
    try:
        yield
    except (PySparkException, bridge_error) as error:
        note = f"; its log is {log}" if log else ""
        raise CommandError(f"Spark has failed: {_reason(str(error), log)}{note}") from error


def _reason(text: str, log: str) -> str:
    """The cause of an error of Spark, in one line: the exception of a Python worker, or of a JVM that did not start."""
    raised: list[str] = re.findall(r"^[\w.]+(?:Error|Exception): .*$", text, re.MULTILINE)
    if log and "JAVA_GATEWAY_EXITED" in text:
        with open(log, errors="replace") as file:
            said = file.read()
        causes = re.findall(r"^Exception in thread .*?(?:Error|Exception): (.*)$", said, re.MULTILINE)
        said_lines = re.findall(r"^(?!WARNING|Using |\d\d/).*\S.*$", said, re.MULTILINE)
        raised = [*causes, *said_lines][:1]
    lines = [*raised[-1:], *text.strip().splitlines(), "it gave no cause"]
    return lines[0].rstrip(".;: ")


@contextlib.contextmanager
def _standard_error_to(descriptor: int) -> Iterator[None]:
    """Give processes that are started in the block another standard error."""
    ours = os.dup(2)
    try:
        os.dup2(descriptor, 2)
        yield
    finally:
        os.dup2(ours, 2)
        os.close(ours)


def _new_session(master: str | None) -> SparkSession:
    from msmqwire.spark.session import local_session

    if master is None and not _is_chosen():
        master = "local[*]"
    if master is not None and master.startswith("local"):
        return local_session(settings={"spark.master": master, "spark.ui.showConsoleProgress": "false"})
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName("msmqwire")
    if master is not None:
        builder = builder.remote(master) if master.startswith("sc://") else builder.master(master)
    return builder.getOrCreate()


def _is_chosen() -> bool:
    """Whether the environment chooses a Spark: Spark Connect, or the Spark that submitted this process."""
    return bool({"SPARK_REMOTE", "PYSPARK_GATEWAY_PORT"} & os.environ.keys())


def _java() -> str | None:
    home = os.environ.get("JAVA_HOME")
    return shutil.which(os.path.join(home, "bin", "java") if home else "java")
