"""The Spark session of a command."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import socket
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from msmqwire.cli import signals
from msmqwire.cli.console import CommandError, describe_error, say
from msmqwire.cli.progress import after
from msmqwire.errors import printable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOCAL = re.compile(r"local(\[(\*|[1-9]\d*)( *, *\d+)?\]|-cluster\[ *\d+ *, *\d+ *, *\d+ *\])?")
# Masters that this process connects to, and their usual ports
_SERVERS = {"spark": 7077, "sc": 15002}
_CONNECTING_SECONDS = 5
# Of a JVM of our own, which hands out tasks of Python: it ends before better machine code would pay for its compiling
_JAVA_OPTIONS = "-XX:TieredStopAtLevel=1"
# A wait that takes longer is announced
_SILENT_SECONDS = 5
_INTERVAL = 0.1


def _is_chosen(master: str | None) -> bool:
    """Return True if the command or its environment chooses a Spark: ``--master``, SPARK_REMOTE, spark-submit."""
    return master is not None or bool({"SPARK_REMOTE", "PYSPARK_GATEWAY_PORT"} & os.environ.keys())


def with_spark(master: str | None, work: Callable[[SparkSession], int]) -> int:
    """Do the work with a Spark session; its exit status.

    That is the active session, or a new one at ``master``, which is stopped after the work. The default of ``master``
    is the Spark of ``spark-submit`` or SPARK_REMOTE, or all cores of this machine.

    A JVM writes warnings and stack traces to standard error. They go to a file, which is kept if Spark fails.

    Raises
    ------
    CommandError
        Spark has failed, there is no Java to start it, or ``master`` is not valid or cannot be reached.
    """
    from pyspark.sql import SparkSession

    active = None if master else SparkSession.getActiveSession()
    if active is not None:
        with _errors_of_spark():
            return work(active)
    if master is not None:
        _check_master("--master", master)
    elif "SPARK_REMOTE" in os.environ:
        _check_master("SPARK_REMOTE", os.environ["SPARK_REMOTE"])
    if not _is_chosen(None) and not (master or "").startswith("sc:") and not _java():
        raise CommandError("Spark needs Java 17 or newer: apt-get install openjdk-17-jre-headless, or set JAVA_HOME")
    descriptor, log = tempfile.mkstemp(prefix="msmqwire-spark-", suffix=".log")
    keep = False
    try:
        with _errors_of_spark(log):
            # A JVM that is interrupted while it starts would not end with this process
            with signals.deferred(), _standard_error_to(descriptor) as ours, _announced(master, ours):
                spark = _new_session(master)
            try:
                if master is not None and master.startswith("spark:"):
                    _await_executor(spark, master)
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


def _check_master(option: str, master: str) -> None:
    """Refuse a master that is not valid or cannot be reached; Spark tries again for minutes.

    Raises
    ------
    CommandError
        The line begins with the option and its value.
    """
    # The parameters of Spark Connect have secrets
    shown = f"{option} {master.partition(';')[0]}"
    scheme, _, rest = master.partition("://")
    if _LOCAL.fullmatch(master) or master == "yarn" or (scheme == "k8s" and rest):
        return
    servers = rest.partition("/")[0].split(",") if scheme in _SERVERS else []
    refusals = []
    for server in servers:
        try:
            place = urlsplit(f"//{server}")
            address = place.hostname, place.port or _SERVERS[scheme]
        except ValueError:
            address = None, 0
        if address[0] is None:
            raise CommandError(f"{shown}: {server!r} is not HOST:PORT")
        try:
            with socket.create_connection(address, _CONNECTING_SECONDS):
                return
        except OSError as error:
            refusals.append(f"{server}: {describe_error(error)}")
    if refusals:
        raise CommandError(f"{shown}: no Spark can be reached: {', '.join(refusals)}")
    raise CommandError(f"{shown}: is not a Spark: local[4], spark://HOST:PORT, sc://HOST:PORT, yarn, k8s://URL")


@contextlib.contextmanager
def _announced(master: str | None, descriptor: int) -> Iterator[None]:
    """Say on an open file that Spark is waited for, if the block takes seconds."""
    where = (master or os.environ.get("SPARK_REMOTE", "Spark")).partition(";")[0]
    with after(_SILENT_SECONDS, os.write, descriptor, f"msmqwire: waiting for {printable(where)}\n".encode()):
        yield


def _await_executor(spark: SparkSession, master: str) -> None:
    """Say so if a cluster has no executor for this session after some seconds: its jobs wait for one."""
    # The driver is one of them
    executors = spark.sparkContext._jsc.sc().getExecutorMemoryStatus
    deadline = time.monotonic() + _SILENT_SECONDS
    while executors().size() < 2:
        if time.monotonic() > deadline:
            say(f"msmqwire: waiting for an executor of {master}")
            return
        time.sleep(_INTERVAL)


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
    """Return why a worker failed, a JVM did not start, or a cluster refused, in one line."""
    raised: list[str] = re.findall(r"^[\w.]+(?:Error|Exception): .*$", text, re.MULTILINE)
    said = ""
    if log:
        with open(log, errors="replace") as file:
            said = file.read()
    if killed := re.search(r"Application has been killed\. Reason: (.*)$", said, re.MULTILINE):
        raised = [killed[1]]
    elif "JAVA_GATEWAY_EXITED" in text:
        causes = re.findall(r"^Exception in thread .*?(?:Error|Exception): (.*)$", said, re.MULTILINE)
        said_lines = re.findall(r"^(?!WARNING|Using |\d\d/).*\S.*$", said, re.MULTILINE)
        raised = [*causes, *said_lines][:1]
    lines = [*raised[-1:], *text.strip().splitlines(), "it gave no cause"]
    return lines[0].rstrip(".;: ")


@contextlib.contextmanager
def _standard_error_to(descriptor: int) -> Iterator[int]:
    """Give processes that are started in the block another standard error; yields our own as a descriptor."""
    ours = os.dup(2)
    try:
        os.dup2(descriptor, 2)
        yield ours
    finally:
        os.dup2(ours, 2)
        os.close(ours)


def _new_session(master: str | None) -> SparkSession:
    from msmqwire.spark.session import environment, local_session, start_session

    if not _is_chosen(master):
        master = "local[*]"
    if master is not None and master.startswith("local"):
        # The last one of two that contradict each other counts: the user's
        java_options = f"{_JAVA_OPTIONS} {os.environ.get('SPARK_SUBMIT_OPTS', '')}".rstrip()
        with environment({"SPARK_SUBMIT_OPTS": java_options}):
            return local_session(settings={"spark.master": master, "spark.ui.showConsoleProgress": "false"})
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName("msmqwire")
    if master is not None:
        builder = builder.remote(master) if master.startswith("sc://") else builder.master(master)
    remote = (master or os.environ.get("SPARK_REMOTE", "")).startswith("sc://")
    return start_session(builder, elsewhere=remote)


def _java() -> str | None:
    home = os.environ.get("JAVA_HOME")
    return shutil.which(os.path.join(home, "bin", "java") if home else "java")
