"""The pipeline when a worker, an executor or the driver is killed in the middle of a capture: nothing lost or twice.

The capture is a named pipe: who reads it waits for the test, which so knows whom to kill, and when.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pytest
from pyspark.sql import SparkSession

from msmqwire.spark import pipeline
from msmqwire.spark.lake import check as sound
from tests.spark.captures import CAPTURES, DAY, MONDAY, PRINTED, SESSION, frame, write_capture
from tests.spark.driver import ancestor, driver, kill, processes_with
from tests.spark.lakes import accounts, assert_rows
from tests.system_programs import require_program

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A capture of many blocks, over two days, with a fault now and then."""
    payloads = [PRINTED[number % 2] if number % 100 else b"?" for number in range(30_000)]
    frames = ((MONDAY + number * DAY // 20_000, frame(payload)) for number, payload in enumerate(payloads))
    return Path(write_capture(tmp_path_factory.mktemp("capture") / "many.pcap", frames)).read_bytes()


@pytest.fixture
def pipe(tmp_path: Path) -> Path:
    path = tmp_path / "many.pcap"
    os.mkfifo(path)
    return path


@contextmanager
def written(pipe: Path, capture: bytes, size: int) -> Iterator[IO[bytes]]:
    """The pipe, once somebody reads it and has read so many bytes."""
    with open(pipe, "wb", buffering=0) as writer:
        assert writer.write(capture[:size]) == size
        yield writer


def check(lake: Path, *captures: str) -> None:
    """The lake has the rows and the counts of the captures, each once, and nothing else."""
    assert_rows(lake, *captures)
    assert sorted(accounts(lake)) == sorted(captures)
    assert not sound(lake)


def become_a_file(pipe: Path, capture: bytes) -> None:
    pipe.unlink()
    pipe.write_bytes(capture)


@pytest.mark.parametrize(
    ("master", "victim"),
    [("local[2,4]", "pyspark.daemon"), ("local-cluster[2,1,1024]", "CoarseGrainedExecutorBackend")],
    ids=["worker", "executor"],
)
def test_killed_in_the_middle(tmp_path: Path, pipe: Path, capture: bytes, master: str, victim: str) -> None:
    require_program("java")
    lake, sources = tmp_path / "lake", [*CAPTURES, SESSION, str(pipe)]
    with driver(master) as running:
        running.start(sources=sources, lake=lake)
        with written(pipe, capture, len(capture) // 2):
            (worker,) = processes_with(pipe)
            # With its executor a worker ends as well, but not at once
            kill(*{worker, worker if victim == "pyspark.daemon" else ancestor(worker, victim)})
        with written(pipe, capture, len(capture)):
            pass
        done, known, frames, rows = running.summary()
        become_a_file(pipe, capture)
        assert (done, known, frames) == (4, 0, 30_039)
        assert rows["topology"] == 30_014
        check(lake, *sources)


def test_a_driver_killed_while_tasks_run(tmp_path: Path, pipe: Path, capture: bytes, spark: SparkSession) -> None:
    """What its tasks do without it comes to nothing."""
    lake, sources = tmp_path / "lake", [*CAPTURES, SESSION, str(pipe)]
    with driver("local[2]") as running:
        running.start(sources=sources[1:], lake=lake)
        with written(pipe, capture, len(capture) // 2) as writer:
            running.kill()
            assert pipeline.run(spark, sources[:1], lake).sources == 1
            check(lake, *sources[:1])
            if processes_with(pipe):
                writer.write(capture[len(capture) // 2 :])
    become_a_file(pipe, capture)
    second = pipeline.run(spark, sources, lake)
    assert (second.sources, second.known) == (3, 1)
    check(lake, *sources)
