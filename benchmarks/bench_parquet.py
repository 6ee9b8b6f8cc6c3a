"""From a capture to Parquet: what a row costs, in one thread and in two, and what compression costs and saves."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from benchmarks.comparison import OURS, Comparison, Goal, mebibytes
from benchmarks.conftest import Scale
from benchmarks.messages import user_messages
from benchmarks.ratios import Contender, measure
from benchmarks.report import Report, Target
from benchmarks.streams import write_streams
from benchmarks.workloads import Workload
from msmqwire.capture import read_table
from msmqwire.capture.parquet import ROW_GROUP_ROWS, Compression, parquet_writer
from msmqwire.cli import main

pytestmark = pytest.mark.benchmark(timer=time.process_time, warmup=True)

COMPRESSIONS: tuple[Compression, ...] = ("zstd", "lz4", "snappy", "none")
BINARY, ARROW, ONE, TWO = f"{OURS}, GUIDs as 16 bytes", "to Arrow, GUIDs as text", "one job", "two jobs"


def command(source: Path, target: Path, table: str, jobs: int, *more: str) -> None:
    """The command line, in this process."""
    assert main(["decode", "-q", str(source), "--table", table, "-o", str(target), "-j", str(jobs), *more]) == 0


def compressed(source: Path, target: Path, table: str, compression: Compression) -> None:
    """The rows of the command line in another compression."""
    with read_table(source, table, guid="text", dictionaries=False) as reader:
        rows = pa.Table.from_batches(reader, reader.schema)
        with target.open("wb") as file, parquet_writer(file, reader.schema, compression) as writer:
            writer.write_table(rows, row_group_size=ROW_GROUP_ROWS)


def to_arrow(source: Path) -> None:
    with read_table(source, "topology", guid="text", dictionaries=False) as reader:
        for batch in reader:
            len(batch)


def test_parquet(compare: Comparison, requests: Workload, capture_file: Path, tmp_path: Path) -> None:
    rows, target = len(requests), tmp_path / "out.parquet"
    text = partial(command, capture_file, target, "topology", 1)
    binary = partial(command, capture_file, target, "topology", 1, "--guid", "binary")
    for run in (text, binary):
        run()
        assert pq.read_metadata(target).num_rows == rows
    ways = {OURS: text, BINARY: binary, ARROW: partial(to_arrow, capture_file)}
    compare(
        "Capture file (pcap, UDP) to Parquet, all columns",
        yardstick=capture_file.read_bytes(),
        mine=[(Contender(name, run, rows), Goal()) for name, run in ways.items()],
    )
    compare.peak_memory(text, capture_file)


@pytest.fixture(params=["topology", "messages"])
def source(request: pytest.FixtureRequest, scale: Scale, capture_file: Path, tmp_path: Path) -> tuple[str, Path, int]:
    """A table, a capture with its rows, and their number."""
    if request.param == "topology":
        return "topology", capture_file, scale.rows
    path = tmp_path / "streams.pcap"
    write_streams(path, user_messages(scale.rows // 20).split())
    return "messages", path, scale.rows // 20


def test_jobs(
    benchmark: BenchmarkFixture, scale: Scale, report: Report, source: tuple[str, Path, int], tmp_path: Path
) -> None:
    """By the clock on the wall, so the machine must be idle."""
    table, path, rows = source
    targets = tmp_path / "one.parquet", tmp_path / "two.parquet"
    runs: list[Callable[[], None]] = [
        partial(command, path, target, table, jobs) for jobs, target in enumerate(targets, 1)
    ]
    names = (ONE, TWO)
    rounds = measure(
        [Contender(name, run, rows) for name, run in zip(names, runs, strict=True)],
        scale.slow_rounds,
        clock=time.perf_counter,
    )
    assert targets[0].read_bytes() == targets[1].read_bytes()
    report.section(f"Capture file to Parquet ({table}) with threads, by the clock: {rows:,} rows")
    report.heading("times faster", "row")
    report.ratio(rounds, ONE, 1.0, (1.0, 1.0))
    ratio = rounds.times_faster(TWO, ONE)
    report.ratio(rounds, TWO, ratio, rounds.spread(TWO, ONE), Target(1.7))
    benchmark.extra_info["times faster"] = round(ratio, 3)
    benchmark.pedantic(runs[1], rounds=1, iterations=1)


def test_compression(
    benchmark: BenchmarkFixture, scale: Scale, report: Report, source: tuple[str, Path, int], tmp_path: Path
) -> None:
    table, path, rows = source
    runs = {name: partial(compressed, path, tmp_path / name, table, name) for name in COMPRESSIONS}
    contenders = [Contender(name, run, rows) for name, run in runs.items()]
    rounds = measure(contenders, scale.slow_rounds, least=3, seconds=scale.seconds)
    report.section(
        f"Compression of Parquet ({table}): {rows:,} rows of {path.stat().st_size / rows:.0f} bytes in the capture"
    )
    report.heading("of zstd", "row")
    for name in COMPRESSIONS:
        size = (tmp_path / name).stat().st_size
        note = f"{size / rows:.1f} bytes a row, {mebibytes(size)}"
        report.ratio(rounds, name, rounds.times_faster(name, "zstd") ** -1, rounds.spread("zstd", name), note=note)
        benchmark.extra_info[f"bytes, {name}"] = size
    benchmark.pedantic(runs["zstd"], rounds=1, iterations=1)
