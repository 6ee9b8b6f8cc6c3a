"""The pipeline when a worker, an executor or the driver is killed in the middle of a capture: nothing lost or twice.

A worker waits for the test when it has read half of the capture, so that the test knows which process to kill when.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

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
def paused(tmp_path: Path, capture: bytes) -> Path:
    """The capture, in the middle of which workers wait."""
    path = tmp_path / "many.pcap"
    path.write_bytes(capture)
    os.mkfifo(pipe_of(path))
    return path


def pipe_of(paused: Path) -> Path:
    return paused.with_name(f"{paused.name}.pipe")


@contextmanager
def reached(paused: Path) -> Iterator[None]:
    """Once a worker has read half of the capture; afterwards it goes on, if it is still there."""
    with open(pipe_of(paused), "wb", buffering=0) as pipe:
        yield
        with suppress(BrokenPipeError):
            pipe.write(b".")


def check(lake: Path, *captures: str) -> None:
    """The lake has the rows and the counts of the captures, each once, and nothing else."""
    assert_rows(lake, *captures)
    assert sorted(accounts(lake)) == sorted(captures)
    assert not sound(lake)


@pytest.mark.parametrize(
    ("master", "victim"),
    [("local[2,4]", "pyspark.daemon"), ("local-cluster[2,1,1024]", "CoarseGrainedExecutorBackend")],
    ids=["worker", "executor"],
)
def test_killed_in_the_middle(tmp_path: Path, paused: Path, master: str, victim: str) -> None:
    require_program("java")
    lake, sources = tmp_path / "lake", [*CAPTURES, SESSION, str(paused)]
    with driver(master, paused) as running:
        running.start(sources=sources, lake=lake)
        with reached(paused):
            (worker,) = processes_with(pipe_of(paused))
            # With its executor a worker ends as well, but not at once
            kill(*{worker, worker if victim == "pyspark.daemon" else ancestor(worker, victim)})
        with reached(paused):
            pipe_of(paused).unlink()
        done, known, frames, rows = running.summary()
        assert (done, known, frames) == (4, 0, 30_039)
        assert rows["topology"] == 30_014
        check(lake, *sources)


def test_a_driver_killed_while_tasks_run(tmp_path: Path, paused: Path, spark: SparkSession) -> None:
    """What its tasks do without it comes to nothing."""
    lake, sources = tmp_path / "lake", [*CAPTURES, SESSION, str(paused)]
    with driver("local[2]", paused) as running:
        running.start(sources=sources[1:], lake=lake)
        with reached(paused):
            running.kill()
            assert pipeline.run(spark, sources[:1], lake).sources == 1
            check(lake, *sources[:1])
            pipe_of(paused).unlink()
    second = pipeline.run(spark, sources, lake)
    assert (second.sources, second.known) == (3, 1)
    check(lake, *sources)
