"""A driver that commits after every task, and is killed in one of its commits: its note is written, no file is moved.

Its arguments are the captures, the lake, and the number of the commit.
"""

from __future__ import annotations

import os
import signal
import sys

from msmqwire.spark import pipeline
from msmqwire.spark.lake.store import Lake
from msmqwire.spark.session import local_session

#: Of the pipeline: a task for each small capture, several for each of more than 3,000 bytes, and a commit for each.
SETTINGS = {"_PARTS_OF_A_COMMIT": 1, "_SMALLEST_PART_BYTES": 1, "_LARGE_BYTES": 3_000, "_PART_BYTES": 2_500}


class CrashingLake(Lake):
    """Counts its commits down."""

    left: int

    def _finish(self) -> None:
        if self._note.moves:
            CrashingLake.left -= 1
            if not CrashingLake.left:
                os.kill(os.getpid(), signal.SIGKILL)
        super()._finish()


def main(captures: str, lake: str, number: str) -> None:
    """Run the pipeline until then."""
    CrashingLake.left = int(number)
    for name, value in {**SETTINGS, "Lake": CrashingLake}.items():
        setattr(pipeline, name, value)
    java = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    settings = {"spark.driver.memory": "512m", "spark.driver.extraJavaOptions": java}
    pipeline.run(local_session("crashing pipeline", cores=1, settings=settings), captures, lake)


if __name__ == "__main__":
    main(*sys.argv[1:])
