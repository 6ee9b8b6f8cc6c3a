"""Spark: what a row costs in each way to decode it, over the JVM and all Python workers, and what settings change.

The rows of every way are compared with what the payloads were made from before anything is timed.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter
from pytest_benchmark.fixture import BenchmarkFixture

from benchmarks import spark_forms as forms
from benchmarks.comparison import mebibytes
from benchmarks.messages import user_messages
from benchmarks.ratios import Contender, FamilyClock, Rounds, measure, status_bytes
from benchmarks.report import Report, Target
from benchmarks.scale import Scale
from benchmarks.streams import write_streams
from msmqwire.capture import TABLES
from msmqwire.spark import pipeline
from msmqwire.spark.session import local_session
from msmqwire.spark.streams import read_streams
from tests.system_programs import JAVA_OPTIONS, require_program

CLOCK = FamilyClock()
pytestmark = pytest.mark.benchmark(timer=CLOCK)

CORES = 2
SCAN = "Spark alone: a Parquet scan of the payloads"
PICKLED, ARROW_ROWS = "plain Python UDF, struct by hand", "the same with useArrow=True"
OBJECTS = "pandas UDF, decode_batch by hand"
PANDAS, ARROW, MAP, SOURCE = "pandas UDF", "Arrow UDF", "mapInArrow (decode_frame)", "data source, narrowed schema"
ALONE = "one process alone, the same columns"
WHOLE, SINK = "data source, whole table", "data source, whole table, to write.parquet"
STREAMS = "read_streams, whole table"
PIPELINE, WRITTEN = "pipeline, whole table", "one process alone, whole table, to Parquet"
MIXED, MIXED_ALONE = "pipeline, mixed traffic, all tables", "one process alone, mixed traffic, all tables"
MANY = "pipeline, captures of 100 kB, all tables"
COLUMNAR_INPUT = "spark.sql.execution.arrow.pythonUDF.columnarInput.enabled"
BATCH_ROWS = "spark.sql.execution.arrow.maxRecordsPerBatch"
TARGETS = (
    (ARROW, PICKLED, Target(5)),
    (ARROW, PANDAS, Target(1.4)),
    (ARROW, OBJECTS, None),
    (SOURCE, MAP, Target(1.35)),
    (PIPELINE, SINK, Target(8)),
    (PIPELINE, WRITTEN, Target(0.6)),
)


@pytest.fixture(scope="module")
def spark(request: pytest.FixtureRequest) -> Iterator[SparkSession]:
    require_program("java")
    settings = {"spark.ui.showConsoleProgress": "false"}
    if request.config.getoption("--quick"):
        settings["spark.driver.extraJavaOptions"] = JAVA_OPTIONS
    session = local_session("msmqwire benchmarks", cores=CORES, settings=settings)
    yield session
    session.stop()


@pytest.fixture(scope="module")
def payloads(scale: Scale, tmp_path_factory: pytest.TempPathFactory) -> Iterator[forms.Payloads]:
    folder = tmp_path_factory.mktemp("spark")
    yield forms.write_payloads(folder, scale.spark_rows)
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def column(spark: SparkSession, payloads: forms.Payloads) -> DataFrame:
    return spark.read.parquet(str(payloads.parquet)).select("payload")


@pytest.fixture(scope="module")
def right(spark: SparkSession, payloads: forms.Payloads) -> Callable[[DataFrame], DataFrame]:
    """The rows, once they have proved right."""
    truth = forms.digest(spark.read.parquet(str(payloads.parquet)))

    def check(packets: DataFrame) -> DataFrame:
        assert forms.digest(packets) == truth
        return packets

    return check


def into_nothing(packets: DataFrame) -> Callable[[], None]:
    """A job that makes every row and keeps none."""
    return lambda: packets.write.format("noop").mode("overwrite").save()


def into_folder(write: Callable[[Path], object]) -> Callable[[], None]:
    """Write into a folder that is removed again."""

    def run() -> None:
        with tempfile.TemporaryDirectory() as folder:
            write(Path(folder))

    return run


def run_pipeline(spark: SparkSession, captures: Path, lake: Path, **settings: Any) -> None:
    """The pipeline into a lake that is new; settings are those of ``pipeline.run``."""
    pipeline.run(spark, captures, lake, **{"tables": ("topology",), **settings})


def test_forms(
    benchmark: BenchmarkFixture,
    scale: Scale,
    report: Report,
    spark: SparkSession,
    payloads: forms.Payloads,
    column: DataFrame,
    right: Callable[[DataFrame], DataFrame],
    tmp_path: Path,
) -> None:
    captures = payloads.captures
    whole = spark.read.format("msmq").load(str(captures))

    def sink(folder: Path) -> None:
        whole.write.parquet(str(folder / "topology"))

    decoding = {
        PICKLED: forms.python_udf(column, arrow=False),
        ARROW_ROWS: forms.python_udf(column, arrow=True),
        OBJECTS: forms.pandas_udf_by_hand(column),
        PANDAS: forms.function(column, "pandas"),
        ARROW: forms.function(column, "arrow"),
        MAP: forms.frame(column),
        SOURCE: forms.data_source(spark, captures),
    }
    for packets in (*decoding.values(), forms.flat(whole)):
        right(packets)
    writing: dict[str, Callable[[Path], object]] = {
        SINK: sink,
        PIPELINE: partial(run_pipeline, spark, captures),
        WRITTEN: partial(forms.write_alone, captures),
    }
    for number, write in enumerate(writing.values()):
        folder = tmp_path / str(number)
        folder.mkdir()
        write(folder)
        right(forms.flat(spark.read.parquet(str(folder / "topology"))))
        shutil.rmtree(folder)
    assert forms.decode_alone(captures) == payloads.rows

    runs = {
        SCAN: into_nothing(column),
        **{name: into_nothing(packets) for name, packets in decoding.items()},
        ALONE: lambda: forms.decode_alone(captures),
        WHOLE: into_nothing(whole),
        **{name: into_folder(write) for name, write in writing.items()},
    }
    contenders = [Contender(name, run, payloads.rows) for name, run in runs.items()]
    rounds = measure(contenders, scale.spark_rounds, clock=CLOCK, shuffled=True)

    report.section(
        f"Spark on local[{CORES}]: {payloads.rows:,} payloads of {payloads.size / payloads.rows:.0f} bytes, "
        f"frames of {payloads.capture_size / payloads.rows:.0f}; CPU time of JVM and Python workers; rows/s of a core"
    )
    report.heading("of the scan", "row")
    for name in runs:
        speed = f"{1e-3 / rounds.per_packet(name):,.0f}k rows/s"
        benchmark.extra_info[f"{name}, of the scan"] = report.against(rounds, SCAN, name, note=speed)
    for fast in dict.fromkeys(fast for fast, _, _ in TARGETS):
        report.section(f"{fast}, beside")
        report.heading("times slower", "row")
        for one, slow, target in TARGETS:
            if one == fast:
                benchmark.extra_info[f"{fast}, times {slow}"] = report.against(rounds, fast, slow, target)
    report.section("Bytes of captures that a core reads in a second")
    for name in (SOURCE, WHOLE, SINK, PIPELINE, ALONE, WRITTEN):
        throughput(benchmark, report, rounds, name, payloads.capture_size / payloads.rows)
    benchmark.pedantic(runs[SOURCE], rounds=2)


def test_pipeline(
    benchmark: BenchmarkFixture,
    scale: Scale,
    report: Report,
    spark: SparkSession,
    payloads: forms.Payloads,
    tmp_path: Path,
) -> None:
    """What a row and a capture cost in the pipeline: discovery packets, mixed traffic, and many small captures."""
    mixed, small = tmp_path / "mixed", tmp_path / "small"
    rows = forms.write_mixed(mixed, scale.spark_rows)
    captures = forms.write_small(small, scale.spark_rows // 500)
    everything = tuple(TABLES)
    contenders = [
        Contender(PIPELINE, into_folder(partial(run_pipeline, spark, payloads.captures)), payloads.rows),
        Contender(MIXED, into_folder(partial(run_pipeline, spark, mixed, tables=everything)), rows),
        Contender(MIXED_ALONE, into_folder(partial(forms.write_tables, mixed)), rows),
        Contender(MANY, into_folder(partial(run_pipeline, spark, small, tables=everything)), captures),
    ]
    rounds = measure(contenders, scale.spark_rounds, clock=CLOCK, shuffled=True)
    size = sum(path.stat().st_size for path in mixed.iterdir())
    report.section(f"Pipeline: {rows:,} rows of mixed traffic of {mebibytes(size)}, {captures:,} captures of 100 kB")
    for name, unit, target in (
        (PIPELINE, "us a row", Target(0.8, at_most=True)),
        (MIXED, "us a row", Target(3.0, at_most=True)),
        (MANY, "ms a capture", Target(3.0, at_most=True)),
    ):
        cost = rounds.per_packet(name) * (1e6 if unit == "us a row" else 1e3)
        report.figure(name, f"{cost:.2f} {unit} {target.verdict(cost) if report.judge else target}")
        benchmark.extra_info[f"{name}, {unit}"] = cost
    report.heading("times dearer", "row")
    ratio, target = rounds.times_faster(MIXED_ALONE, MIXED), Target(1.3, at_most=True)
    report.ratio(rounds, MIXED, ratio, rounds.spread(MIXED_ALONE, MIXED), target, "than alone")
    benchmark.extra_info[f"{MIXED}, times {MIXED_ALONE}"] = ratio
    benchmark.pedantic(contenders[0].run, rounds=1)


def test_following(
    benchmark: BenchmarkFixture,
    scale: Scale,
    report: Report,
    spark: SparkSession,
    payloads: forms.Payloads,
    tmp_path: Path,
) -> None:
    """A stream and the pipeline over a capture that grows: a row, 1,000 more frames, and a start with nothing new."""
    (capture, *_) = payloads.captures.iterdir()
    more = b"".join(forms.split_records(capture.read_bytes())[:1000])
    seconds: dict[str, list[tuple[float, float]]] = {}

    def to_its_end(stream: DataStreamWriter) -> None:
        stream.trigger(availableNow=True).start().awaitTermination()

    def timed(name: str, run: Callable[[], object]) -> None:
        started, before = time.monotonic(), CLOCK()
        run()
        seconds.setdefault(name, []).append((CLOCK() - before, time.monotonic() - started))

    for number in range(scale.spark_rounds + 1):
        folder = tmp_path / str(number)
        (folder / "captures").mkdir(parents=True)
        growing = Path(shutil.copy(capture, folder / "captures" / "growing.pcap"))
        stream = spark.readStream.format("msmq").load(str(folder / "captures")).writeStream.format("parquet")
        stream = stream.option("checkpointLocation", str(folder / "log")).option("path", str(folder / "rows"))
        lake = partial(run_pipeline, spark, folder / "captures", folder / "lake")
        timed("first read, stream", partial(to_its_end, stream))
        timed("first read, pipeline", lake)
        timed("nothing new, stream", partial(to_its_end, stream))
        timed("nothing new, pipeline", lake)
        query = stream.trigger(processingTime="0 seconds").start()
        query.processAllAvailable()
        for _ in range(3):
            with growing.open("ab") as file:
                file.write(more)
            timed("1,000 more frames, stream", query.processAllAvailable)
            timed("1,000 more frames, pipeline", lake)
        query.stop()
        shutil.rmtree(folder)
    rows = payloads.rows / len(list(payloads.captures.iterdir()))
    report.section(
        f"A capture of {mebibytes(capture.stat().st_size)} that grows: CPU time, and the shortest time to wait"
    )
    for name, found in seconds.items():
        # The first round warms the JVM
        cpu, wall = sorted(one for one, _ in found[1:])[len(found) // 2 - 1], min(one for _, one in found)
        each = f", {cpu / rows * 1e6:.2f} us a row" if name.startswith("first") else ""
        report.figure(name, f"{cpu:.2f} s of CPU time, {wall:.2f} s{each}")
        benchmark.extra_info[f"{name}, seconds of CPU time"] = cpu
        benchmark.extra_info[f"{name}, shortest seconds"] = wall
    benchmark.pedantic(lambda: None, rounds=1)


def with_setting(spark: SparkSession, name: str, value: str, run: Callable[[], None]) -> Callable[[], None]:
    """The job with a setting of Spark's changed."""

    def changed() -> None:
        before = spark.conf.get(name)
        assert before is not None
        spark.conf.set(name, value)
        try:
            run()
        finally:
            spark.conf.set(name, before)

    return changed


def test_settings(
    benchmark: BenchmarkFixture,
    scale: Scale,
    report: Report,
    spark: SparkSession,
    payloads: forms.Payloads,
    column: DataFrame,
    right: Callable[[DataFrame], DataFrame],
) -> None:
    """What costs more or less than what we set, and how much."""
    function, frame = into_nothing(forms.function(column, "arrow")), into_nothing(forms.frame(column))
    right(forms.data_source(spark, payloads.small))
    right(forms.data_source(spark, payloads.large, splitSize="1m"))

    sizes: dict[str, float] = {}

    def written(captures: Path, compression: str = "snappy") -> Callable[[], None]:
        def write(folder: Path) -> None:
            run_pipeline(spark, captures, folder, compression=compression)
            if captures == payloads.captures:
                files = folder.glob("topology/**/*.parquet")
                sizes[compression] = sum(file.stat().st_size for file in files) / payloads.rows

        return into_folder(write)

    runs = {
        ARROW: {
            "": function,
            "columnar input": with_setting(spark, COLUMNAR_INPUT, "true", function),
            "batches of 1,000 rows": with_setting(spark, BATCH_ROWS, "1000", function),
            "batches of 100,000 rows": with_setting(spark, BATCH_ROWS, "100000", function),
        },
        MAP: {
            "": frame,
            "batches of 1,000 rows": with_setting(spark, BATCH_ROWS, "1000", frame),
            "batches of 100,000 rows": with_setting(spark, BATCH_ROWS, "100000", frame),
        },
        SOURCE: {
            "": into_nothing(forms.data_source(spark, payloads.captures)),
            f"captures of {forms.SMALL_ROWS:,} frames": into_nothing(forms.data_source(spark, payloads.small)),
            "one capture, splitSize 0": into_nothing(forms.data_source(spark, payloads.large, splitSize="0")),
            "one capture, splitSize 64m": into_nothing(forms.data_source(spark, payloads.large, splitSize="64m")),
            "one capture, splitSize 4m": into_nothing(forms.data_source(spark, payloads.large, splitSize="4m")),
        },
        PIPELINE: {
            "": written(payloads.captures),
            f"captures of {forms.SMALL_ROWS:,} frames": written(payloads.small),
            "compression zstd": written(payloads.captures, compression="zstd"),
            "compression none": written(payloads.captures, compression="none"),
        },
    }
    contenders = [
        Contender(f"{form} {setting}", run, payloads.rows)
        for form, all_of in runs.items()
        for setting, run in all_of.items()
    ]
    rounds = measure(contenders, scale.spark_rounds, clock=CLOCK, shuffled=True)
    report.section("Spark: what a row costs with something changed, beside what it costs as it is")
    report.heading("times dearer", "row")
    for form, all_of in runs.items():
        for setting in filter(None, all_of):
            name = f"{form} {setting}"
            benchmark.extra_info[f"{name}, times dearer"] = report.against(rounds, f"{form} ", name)
    report.section(f"Spark: the table in the lake, of frames of {payloads.capture_size / payloads.rows:.0f} bytes")
    for compression, size in sizes.items():
        report.figure(f"bytes a row, compression {compression}", f"{size:.0f}")
        benchmark.extra_info[f"bytes a row, compression {compression}"] = round(size)
    benchmark.pedantic(function, rounds=2)


def python_workers() -> list[psutil.Process]:
    """The Python workers of Spark: processes that its daemon forked."""
    family = psutil.Process().children(recursive=True)
    running = [process for process in family if process.status() != psutil.STATUS_ZOMBIE]
    daemons = {process.pid for process in running if "pyspark.daemon" in process.cmdline()}
    return [process for process in running if process.ppid() in daemons]


def worker_peak(run: Callable[[], None]) -> int:
    """The most that a Python worker takes in a job; workers that were there before are ended first."""
    workers = python_workers()
    for worker in workers:
        worker.terminate()
    psutil.wait_procs(workers)
    run()
    return max(status_bytes("VmHWM", worker.pid) for worker in python_workers())


def test_memory(
    benchmark: BenchmarkFixture,
    scale: Scale,
    report: Report,
    spark: SparkSession,
    payloads: forms.Payloads,
    column: DataFrame,
    tmp_path: Path,
) -> None:
    """What a worker takes, and that a larger capture takes no more."""
    jobs = {
        PICKLED: into_nothing(forms.python_udf(column, arrow=False)),
        ARROW: into_nothing(forms.function(column, "arrow")),
        MAP: into_nothing(forms.frame(column)),
    }
    for captures in (payloads.captures, payloads.large):
        size = mebibytes(max(path.stat().st_size for path in captures.iterdir()))
        jobs[f"{SOURCE}, captures of {size}"] = into_nothing(forms.data_source(spark, captures))
        jobs[f"{PIPELINE}, captures of {size}"] = into_folder(partial(run_pipeline, spark, captures))
    several = []
    for messages in (scale.spark_rows // 40, scale.spark_rows // 4):  # between two hosts: one task has them all
        capture = tmp_path / f"{messages}.pcap"
        write_streams(capture, user_messages(messages).split())
        several.append(f"{STREAMS}, a capture of {mebibytes(capture.stat().st_size)}")
        jobs[several[-1]] = into_nothing(read_streams(spark, capture))
    report.section("Spark: memory of a Python worker at its peak")
    peaks = {name: worker_peak(job) for name, job in jobs.items()}
    for name, peak in peaks.items():
        report.figure(name, mebibytes(peak))
        benchmark.extra_info[f"peak of a worker, {name}"] = peak
    small, large = (peaks[name] for name in several)
    report.figure(f"{STREAMS}, large beside small", f"{large / small:.2f}")
    benchmark.extra_info[f"peak of a worker, {STREAMS}, large beside small"] = large / small
    benchmark.pedantic(jobs[MAP], rounds=1)


def test_throughput(
    benchmark: BenchmarkFixture, scale: Scale, report: Report, spark: SparkSession, tmp_path: Path
) -> None:
    """Bytes of captures that a core reads: of frames that nobody asked for, and of messages."""
    others, streams = tmp_path / "others.pcap", tmp_path / "messages.pcap"
    frames, messages = scale.spark_rows, scale.spark_rows // 4
    forms.write_others(others, frames)
    write_streams(streams, user_messages(messages).split())
    for title, path, table, rows in (
        ("Spark: frames of other protocols", others, "topology", frames),
        ("Spark: messages over TCP", streams, "messages", messages),
    ):
        source = spark.read.format("msmq").option("table", table)
        fault = "struct<code: string, field: string, offset: bigint, value: bigint, needed: bigint>"
        narrow = source.schema(f"frame bigint, fault {fault}").load(str(path))
        assert narrow.where("fault IS NULL").count() == narrow.count() == (0 if path is others else messages)
        runs = {
            "data source, frame and fault": into_nothing(narrow),
            WHOLE: into_nothing(source.load(str(path))),
            PIPELINE: into_folder(partial(run_pipeline, spark, path, tables=(table,))),
        }
        contenders = [Contender(name, run, rows) for name, run in runs.items()]
        rounds = measure(contenders, scale.spark_rounds, clock=CLOCK, shuffled=True)
        size = path.stat().st_size / rows
        report.section(f"{title}: {size:,.0f} bytes for each {'frame' if path is others else 'message'}")
        for name in runs:
            throughput(benchmark, report, rounds, name, size, table)
    benchmark.pedantic(contenders[0].run, rounds=2)


def throughput(
    benchmark: BenchmarkFixture, report: Report, rounds: Rounds, name: str, size: float, of: str = "topology"
) -> None:
    """Bytes of captures that a core reads in a second, where a packet stands in a frame of ``size`` bytes."""
    speed = size / rounds.per_packet(name)
    benchmark.extra_info[f"{name}, {of}, bytes of capture a core-second"] = round(speed)
    report.figure(name, f"{speed / 1e6:,.0f} MB/s")
