"""Ranges of a file: two processes that read a half each, beside one that reads all of it, by the clock on the wall."""

from __future__ import annotations

import multiprocessing
import os
import statistics
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from benchmarks.conftest import Scale
from benchmarks.report import Report
from msmqwire import capture
from msmqwire.capture.blocks import Pool
from msmqwire.capture.joining import RangeReader
from msmqwire.capture.ranges import END_OF_FILE, FilePart
from msmqwire.capture.streams import StreamTable

PORTS = {transport: frozenset({1801}) for transport in ("udp", "tcp", "ipx")}
TARGET = 1.7


def read_range(path: Path, start: int | None, stop: int) -> int:
    """Read a range, and forget its rows; how many frames there were."""
    with path.open("rb", buffering=0) as file:
        part = FilePart(file.fileno())
        streams = StreamTable(3, capture.StreamLimits(), 1)
        reader = RangeReader(str(path), part.read_into, PORTS, Pool(1 << 20, None), streams, part.seek, start, stop)
        reader.read_all(keep=False)
        return reader.frames


def serve(connection: Connection, path: Path, start: int | None, stop: int) -> None:
    """Read a range each time one is asked to."""
    while connection.recv():
        connection.send(read_range(path, start, stop))


@contextmanager
def process(path: Path, start: int | None, stop: int) -> Iterator[Connection]:
    """A process that reads a range."""
    ours, theirs = multiprocessing.Pipe()
    reader = multiprocessing.Process(target=serve, args=(theirs, path, start, stop))
    reader.start()
    yield ours
    ours.send(False)
    reader.join()


def run(connections: list[Connection]) -> tuple[float, int]:
    """Seconds until all have read theirs, and how many frames there were."""
    begin = time.perf_counter()
    for connection in connections:
        connection.send(True)
    frames = sum(connection.recv() for connection in connections)
    return time.perf_counter() - begin, frames


@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="needs two cores")
def test_two_processes(scale: Scale, report: Report, capture_file: Path) -> None:
    half = capture_file.stat().st_size // 2
    with ExitStack() as stack:
        whole = [stack.enter_context(process(capture_file, None, END_OF_FILE))]
        halves = [
            stack.enter_context(process(capture_file, start, stop))
            for start, stop in ((None, half), (half, END_OF_FILE))
        ]
        assert run(whole)[1] == run(halves)[1]
        ratios = [run(whole)[0] / run(halves)[0] for _ in range(scale.rounds)]
    low, median, high = statistics.quantiles(ratios, n=4, method="inclusive")
    report.section("One capture file (pcap, UDP), read by two processes, a half each")
    report.figure(f"times as fast as one, on the wall (target {TARGET})", f"{median:.2f}")
    report.figure("quartiles", f"{low:.2f}-{high:.2f}")
    report.figure("other work on this machine (load)", f"{os.getloadavg()[0]:.1f}")
