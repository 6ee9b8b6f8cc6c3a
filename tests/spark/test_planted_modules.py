"""Python files beside captures are never executed: not by a command, nor by the Spark that it starts."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.cli.support import LOCAL, ROOT
from tests.system_programs import require_program

# Each starts a JVM
pytestmark = pytest.mark.long

COMMAND = Path(sys.executable).with_name("msmqwire")
#: Modules that Spark's workers and the package import, and one that Spark imports for its name.
PLANTED = ("numpy", "json", "pyarrow", "pandas", "socket", "sitecustomize", "pyspark_planted", "msmqwire", "pyspark")
SOURCE = """\
with open({log!r}, "a") as log:
    print(__file__, file=log)
raise ImportError("a planted module was executed")
"""
QUERIES = """\
import os
import sys

from msmqwire.spark import register
from msmqwire.spark.functions import msmq_decode_topology
from msmqwire.spark.session import local_session, start_session
from pyspark.sql import SparkSession

spark = start_session(SparkSession.builder) if "SPARK_REMOTE" in os.environ else local_session(cores=1)
rows = spark.read.format("msmq").option("table", "topology").load(os.path.join(os.getcwd(), "*.pcap"))
payloads = spark.createDataFrame([(b"",)], "payload binary")
print(rows.count(), payloads.select(msmq_decode_topology("payload").fault.code).first()[0])
print("PYTHONSAFEPATH" in os.environ)
"""


@pytest.fixture
def evidence(tmp_path: Path) -> Path:
    """A folder with a capture and planted modules, below a folder that looks like a Spark."""
    require_program("java")
    log = tmp_path / "executed"
    folder = tmp_path / "case" / "evidence"
    folder.mkdir(parents=True)
    shutil.copy(LOCAL, folder)
    for name in PLANTED:
        (folder / f"{name}.py").write_text(SOURCE.format(log=str(log)))
    submit = folder.parent / "bin" / "spark-submit"
    submit.parent.mkdir()
    submit.write_text(f"#!/bin/sh\necho $0 >> {log}\nexit 1\n")
    submit.chmod(0o755)
    (folder.parent / "jars").mkdir()
    return folder


def executed(evidence: Path) -> str:
    """The planted files that were executed."""
    log = evidence.parent.parent / "executed"
    return log.read_text() if log.exists() else ""


def start(evidence: Path, *command: str | Path, env: Mapping[str, str] | None = None) -> str:
    """Run a program in the folder; its output."""
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "SPARK_HOME")}
    done = subprocess.run(
        list(map(str, command)),
        cwd=evidence,
        env={**environment, **(env or {})},
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert executed(evidence) == ""
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_commands(evidence: Path) -> None:
    """Those that read the lake of ``make run`` where the folder is a checkout with planted modules."""
    require_program("make")
    (evidence / "examples").symlink_to(ROOT / "examples")
    goal = [
        "make",
        "--no-print-directory",
        "--dry-run",
        "--always-make",
        "run",
        "CAPTURES=local-site.pcap",
        "LAKE=lake",
        f"PY={sys.executable}",
    ]
    lines = subprocess.run(goal, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    assert lines[-1].startswith(f"{sys.executable} ")
    start(evidence, *shlex.split(lines[-1]))
    for arguments in (["summary", "--lake", "lake"], ["lake", "history", "lake"], ["lake", "check", "lake"]):
        start(evidence, COMMAND, *arguments)
    start(evidence, COMMAND, "replay", "--lake", "lake")


def test_python_with_the_module(evidence: Path) -> None:
    """Python searches the current folder for the package itself."""
    for name in ("msmqwire", "pyspark"):
        (evidence / f"{name}.py").unlink()
    start(evidence, sys.executable, "-m", "msmqwire", "pipeline", "*.pcap", "--lake", "lake", "--master", "local[1]")


@pytest.mark.parametrize("remote", ["", "local[1]"])
def test_sessions_of_a_program(evidence: Path, tmp_path: Path, remote: str) -> None:
    """The data source is planned by workers of the driver, and read by workers of an executor."""
    program = tmp_path / "program" / "queries.py"
    program.parent.mkdir()
    program.write_text(QUERIES)
    output = start(
        evidence,
        sys.executable,
        program,
        env={"SPARK_REMOTE": remote, "PYSPARK_PYTHON": sys.executable} if remote else {},
    )
    assert output.split() == ["4", "truncated", "False"]


def test_a_checkout_that_was_not_built(evidence: Path) -> None:
    """Sources without compiled modules in the current folder do not hide the installed package."""
    (evidence / "msmqwire.py").unlink()
    shutil.copytree(ROOT / "msmqwire", evidence / "msmqwire", ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    assert start(evidence, COMMAND, "decode", "local-site.pcap", "--table", "topology").count("\n") == 4
