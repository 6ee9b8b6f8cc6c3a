"""The Spark of commands that need one: on this machine, or where somebody says."""

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
from msmqwire.cli.console import CommandError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["with_spark"]


def with_spark(master: str | None, work: Callable[[SparkSession], int]) -> int:
    """Do the work with a session that is stopped afterwards; its exit status.

    ``master`` is the Spark to use. Without it that of ``spark-submit`` or SPARK_REMOTE, or else all cores of this
    machine.

    The JVM that is started for it inherits standard error, and fills it with warnings and stack traces in the best of
    cases. So it gets a file, which is kept when Spark fails.

    Raises
    ------
    CommandError
        Spark has failed, or there is no Java to start it.
    """
    if master is None and not _elsewhere() and not _java():
        raise CommandError("Spark needs Java 17 or newer: apt-get install openjdk-17-jre-headless, or set JAVA_HOME")
    from pyspark.errors import PySparkException

    # Not by a plain import: it tells type checkers nothing.
    bridge_error: type[Exception] = import_module("py4j.protocol").Py4JError
    descriptor, log = tempfile.mkstemp(prefix="msmqwire-spark-", suffix=".log")
    failed = False
    try:
        # A JVM whose start is interrupted stays for ever. Once it has started it follows us.
        with signals.deferred(), _standard_error_to(descriptor):
            spark = _session(master)
        try:
            return work(spark)
        finally:
            # That a session is broken is no reason to hide why.
            with contextlib.suppress(Exception):
                spark.stop()
    except (PySparkException, bridge_error) as error:
        failed = True
        raise CommandError(f"Spark has failed: {_reason(str(error))}; its log is {log}") from error
    finally:
        os.close(descriptor)
        if not failed:
            os.unlink(log)


def _reason(text: str) -> str:
    """One line of an error of Spark: the exception of a Python worker, where there is one."""
    raised: list[str] = re.findall(r"^[\w.]+(?:Error|Exception): .*$", text, re.MULTILINE)
    lines = [*raised[-1:], *text.strip().splitlines(), "it did not say why"]
    return lines[0].rstrip(".;: ")


@contextlib.contextmanager
def _standard_error_to(descriptor: int) -> Iterator[None]:
    """Lend processes that are started meanwhile another standard error."""
    ours = os.dup(2)
    try:
        os.dup2(descriptor, 2)
        yield
    finally:
        os.dup2(ours, 2)
        os.close(ours)


def _session(master: str | None) -> SparkSession:
    from msmqwire.spark.session import local_session

    if master is None and not _elsewhere():
        master = "local[*]"
    if master is not None and master.startswith("local"):
        return local_session(settings={"spark.master": master, "spark.ui.showConsoleProgress": "false"})
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName("msmqwire")
    if master is not None:
        builder = builder.remote(master) if master.startswith("sc://") else builder.master(master)
    return builder.getOrCreate()


def _elsewhere() -> bool:
    """Whether somebody has chosen a Spark already: Spark Connect, or the one that submitted us."""
    return bool({"SPARK_REMOTE", "PYSPARK_GATEWAY_PORT"} & os.environ.keys())


def _java() -> str | None:
    home = os.environ.get("JAVA_HOME")
    return shutil.which(os.path.join(home, "bin", "java") if home else "java")
