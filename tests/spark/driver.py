"""A driver in a process of its own, for tests that kill it or its workers: ``python -m tests.spark.driver MASTER``.

Each line of standard input is a run, the arguments of ``pipeline.run`` in JSON; each line of output is its summary.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.spark.captures import ROOT
from tests.system_programs import JAVA_OPTIONS

_SETTINGS = {
    "spark.driver.memory": "1g",
    "spark.executor.extraJavaOptions": JAVA_OPTIONS,
    "spark.ui.showConsoleProgress": "false",
}


#: The folder of the module that makes workers wait.
PAUSES = ROOT / "tests" / "spark" / "pauses"


class Driver:
    """The process, seen from the test."""

    def __init__(self, master: str, waiting: Path | None) -> None:
        paths = [str(PAUSES), *filter(None, [os.environ.get("PYTHONPATH")])]
        paused = {} if waiting is None else {"PYTHONPATH": os.pathsep.join(paths), "MSMQWIRE_PAUSED": str(waiting)}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.spark.driver", master], env={**os.environ, **paused},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=ROOT,
        )  # fmt: skip

    def start(self, **arguments: Any) -> None:
        """Begin a run."""
        assert self.process.stdin is not None
        print(json.dumps(arguments, default=str), file=self.process.stdin, flush=True)

    def summary(self) -> list[Any]:
        """Wait for its end."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, "the driver has failed"
        result: list[Any] = json.loads(line)
        return result

    def kill(self) -> None:
        """End the driver as a machine that fails would."""
        self.process.kill()
        self.process.wait()


@contextmanager
def driver(master: str, waiting: Path | None = None) -> Iterator[Driver]:
    """A driver that is gone at the end; its workers wait in the middle of a file, as ``pauses`` says."""
    one = Driver(master, waiting)
    try:
        yield one
    finally:
        one.process.communicate(timeout=60)


def processes_with(path: Path) -> list[int]:
    """The other processes that have a file open."""
    found = set()
    for link in Path("/proc").glob("[0-9]*/fd/*"):
        try:
            if os.readlink(link) == str(path):
                found.add(int(link.parts[2]))
        except OSError:
            continue
    return sorted(found - {os.getpid()})


def ancestor(process: int, command: str) -> int:
    """The process from which another one descends and whose command line has a word in it."""
    while command not in Path(f"/proc/{process}/cmdline").read_text():
        # After the name in parentheses: state, parent
        process = int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
        assert process > 1
    return process


def kill(*processes: int) -> None:
    """End processes, and wait until they are gone."""
    watched = [os.pidfd_open(process) for process in processes]
    for process in processes:
        os.kill(process, signal.SIGKILL)
    for descriptor in watched:
        gone, _, _ = select.select([descriptor], [], [], 60)
        assert gone
        os.close(descriptor)


def main() -> None:
    """Do the runs."""
    from msmqwire.spark import pipeline
    from msmqwire.spark.session import local_session

    spark = local_session(settings={"spark.master": sys.argv[1], **_SETTINGS})
    for line in sys.stdin:
        summary = pipeline.run(spark, **json.loads(line))
        print(json.dumps([summary.sources, summary.known, summary.frames, summary.rows]), flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
