"""From a capture to the formats of the command line; to Parquet beside pyarrow's writer and with its other options."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from benchmarks.comparison import OURS, Comparison, Goal
from benchmarks.messages import user_messages
from benchmarks.ratios import Contender, measure
from benchmarks.report import Report, Target
from benchmarks.scale import Scale
from benchmarks.streams import write_streams
from benchmarks.workloads import Workload
from msmqwire.capture import read_table
from msmqwire.capture.parquet import ROW_GROUP_ROWS, writer_options
from msmqwire.cli import main

pytestmark = pytest.mark.benchmark(timer=time.process_time, warmup=True)

DEFAULTS = "the defaults"
#: Other options of pyarrow's writer
CHOICES: dict[str, dict[str, Any]] = {
    DEFAULTS: {},
    "zstd, level 3": {"compression_level": 3},
    "zstd, level 6": {"compression_level": 6},
    "lz4": {"compression": "lz4"},
    "snappy": {"compression": "snappy"},
    "no compression": {"compression": "none"},
    "no page checksums": {"write_page_checksum": False},
    "statistics of all columns": {"write_statistics": True},
    "dictionaries of all columns": {"use_dictionary": True, "column_encoding": None},
    "no dictionaries": {"use_dictionary": False},
}
AS_BYTES = "GUIDs as 16 bytes"
WRITER, DECODED = "pyarrow's writer, given the columns", "decoding to Arrow, and pyarrow's writer"
BINARY, ARROW, ONE, TWO = f"{OURS}, GUIDs as 16 bytes", "to Arrow, GUIDs as text", "one job", "two jobs"


def command(source: Path, target: Path, table: str, jobs: int, *more: str) -> None:
    """The command line, in this process."""
    assert main(["decode", "-q", str(source), "--table", table, "-o", str(target), "-j", str(jobs), *more]) == 0


def written(rows: pa.Table, target: Path, changes: dict[str, Any]) -> None:
    """The rows of the command line, with other options."""
    options = {"compression": "zstd", **writer_options(rows.schema), **changes}
    with target.open("wb") as file, pq.ParquetWriter(file, rows.schema, **options) as writer:
        writer.write_table(rows, row_group_size=ROW_GROUP_ROWS)


def table_of(source: Path, table: str, guid: Literal["text", "binary"] = "text") -> pa.Table:
    with read_table(source, table, guid=guid, dictionaries=False) as reader:
        return pa.Table.from_batches(reader, reader.schema)


def to_arrow(source: Path, table: str = "topology") -> None:
    with read_table(source, table, guid="text", dictionaries=False) as reader:
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


@pytest.fixture(params=[("topology", 1), ("messages", 20)], ids=lambda param: param[0])
def source(request: pytest.FixtureRequest, scale: Scale, capture_file: Path, tmp_path: Path) -> tuple[str, Path, int]:
    """A table, a capture with its rows, and their number; of messages there are fewer than the scale says."""
    table, divisor = request.param
    if table == "topology":
        return table, capture_file, scale.rows
    path = tmp_path / "streams.pcap"
    write_streams(path, user_messages(scale.rows // divisor).split())
    return table, path, scale.rows // divisor


# A row group has some 9,000 messages, and a few of them do not keep two threads busy
@pytest.mark.parametrize("source", [("topology", 1), ("messages", 4)], ids=lambda param: param[0], indirect=True)
def test_jobs(
    benchmark: BenchmarkFixture, scale: Scale, report: Report, source: tuple[str, Path, int], tmp_path: Path
) -> None:
    """By the clock on the wall, so the machine must be idle; two jobs are what the command has on two cores."""
    table, path, rows = source
    targets = tmp_path / "one.parquet", tmp_path / "two.parquet"
    given = table_of(path, table)
    runs: dict[str, Callable[[], None]] = {
        ONE: partial(command, path, targets[0], table, 1),
        TWO: partial(command, path, targets[1], table, 2),
        WRITER: partial(written, given, tmp_path / "theirs.parquet", {}),
    }
    contenders = [Contender(name, run, rows) for name, run in runs.items()]
    rounds = measure(contenders, scale.slow_rounds, clock=time.perf_counter)
    assert targets[0].read_bytes() == targets[1].read_bytes()
    report.section(f"Capture file to Parquet ({table}) with threads, by the clock: {rows:,} rows")
    report.heading("times faster", "row")
    report.ratio(rounds, ONE, 1.0, (1.0, 1.0))
    ratio = rounds.times_faster(TWO, ONE)
    report.ratio(rounds, TWO, ratio, rounds.spread(TWO, ONE), Target(1.7))
    benchmark.extra_info["times faster"] = round(ratio, 3)
    report.heading("cost ratio", "row")
    report.ratio(rounds, WRITER, 1.0, (1.0, 1.0))
    ratio = rounds.times_faster(WRITER, TWO)
    report.ratio(rounds, TWO, ratio, rounds.spread(WRITER, TWO), Target(1.25, at_most=True))
    benchmark.extra_info["of the writer"] = round(ratio, 3)
    benchmark.pedantic(runs[TWO], rounds=1, iterations=1)


def test_text(
    benchmark: BenchmarkFixture, scale: Scale, report: Report, source: tuple[str, Path, int], tmp_path: Path
) -> None:
    """The formats for people beside JSON; the table as records, which is what 80 columns have space for."""
    table, path, rows = source
    runs = {name: partial(command, path, tmp_path / name, table, 1, "-T", name) for name in ("json", "brief", "table")}
    contenders = [Contender(name, run, rows) for name, run in runs.items()]
    rounds = measure(contenders, scale.slow_rounds, least=3, seconds=scale.seconds)
    report.section(f"Capture file to text ({table}): {rows:,} rows")
    report.heading("of JSON", "row")
    for name in runs:
        report.ratio(rounds, name, rounds.times_faster("json", name), rounds.spread("json", name))
        benchmark.extra_info[name] = round(rounds.times_faster("json", name), 3)
    benchmark.pedantic(runs["json"], rounds=1, iterations=1)


def test_writer(
    benchmark: BenchmarkFixture, scale: Scale, report: Report, source: tuple[str, Path, int], tmp_path: Path
) -> None:
    table, path, rows = source
    given, targets = table_of(path, table), (tmp_path / "ours.parquet", tmp_path / "theirs.parquet")

    def decoded_and_written() -> None:
        to_arrow(path, table)
        written(given, targets[1], {})

    runs: dict[str, Callable[[], None]] = {
        WRITER: partial(written, given, targets[1], {}),
        DECODED: decoded_and_written,
        OURS: partial(command, path, targets[0], table, 1),
    }
    contenders = [Contender(name, run, rows) for name, run in runs.items()]
    rounds = measure(contenders, scale.slow_rounds, least=3, seconds=scale.seconds)
    assert pq.read_table(targets[0]).equals(pq.read_table(targets[1]))
    report.section(f"Capture file to Parquet ({table}) beside pyarrow's writer: {rows:,} rows")
    report.heading("of the command", "row")
    for name in runs:
        report.ratio(rounds, name, rounds.times_faster(OURS, name), rounds.spread(OURS, name))
        benchmark.extra_info[name] = round(rounds.times_faster(OURS, name), 3)
    benchmark.pedantic(runs[OURS], rounds=1, iterations=1)


def test_choices(
    benchmark: BenchmarkFixture, scale: Scale, report: Report, source: tuple[str, Path, int], tmp_path: Path
) -> None:
    """Size and time of what pyarrow's writer writes of the same rows."""
    table, path, rows = source
    given, target = table_of(path, table), tmp_path / "out.parquet"
    runs = {name: partial(written, given, target, changes) for name, changes in CHOICES.items()}
    runs[AS_BYTES] = partial(written, table_of(path, table, "binary"), target, {})
    contenders = [Contender(name, run, rows) for name, run in runs.items()]
    rounds = measure(contenders, scale.slow_rounds, least=3, seconds=scale.seconds)
    report.section(
        f"Options of Parquet ({table}): {rows:,} rows of {path.stat().st_size / rows:.0f} bytes in the capture"
    )
    report.heading("of the defaults", "row")
    for name, run in runs.items():
        run()
        size = target.stat().st_size
        ratio, spread = rounds.times_faster(DEFAULTS, name), rounds.spread(DEFAULTS, name)
        report.ratio(rounds, name, ratio, spread, note=f"{size / rows:.1f} bytes a row")
        benchmark.extra_info[f"bytes, {name}"] = size
    benchmark.pedantic(runs[DEFAULTS], rounds=1, iterations=1)
