"""``spark-submit`` of the installed Spark, in a process group of its own that ends with the test."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pyspark

from tests.spark.captures import ROOT
from tests.system_programs import JAVA_OPTIONS, require_program

HOME = Path(pyspark.__file__).parent


@contextlib.contextmanager
def spark_submit(
    *arguments: str, directory: Path, variables: Mapping[str, str] | None = None
) -> Iterator[subprocess.Popen[str]]:
    """Run ``spark-submit`` in ``directory``; what it prints comes in one pipe.

    Driver and workers run this interpreter, with this package, unless ``variables`` of the environment say otherwise.
    """
    require_program("java")
    # A cluster on this machine leaves its files in Spark's home
    home = directory / "spark"
    home.mkdir()
    for entry in HOME.iterdir():
        if entry.name != "work":
            (home / entry.name).symlink_to(entry)
    environment = {
        **os.environ,
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": str(ROOT),
        **(variables or {}),
    }
    command = [str(home / "bin" / "spark-submit"), "--driver-memory", "1g"]
    chosen = {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.executor.extraJavaOptions": JAVA_OPTIONS,
    }
    settings = [f"--conf={name}={value}" for name, value in chosen.items()]
    process = subprocess.Popen(
        [*command, *settings, *arguments],
        cwd=directory,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        process.wait(timeout=60)
