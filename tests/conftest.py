"""Fixtures of all tests, the order of the files, and the last lines of a run."""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import signal
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings
from xdist.scheduler import LoadFileScheduling

from msmqwire.cli.arguments import usable_cores
from msmqwire.columns import allocated_bytes
from tests import cpu_time
from tests.system_programs import JAVA_OPTIONS, require_program

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# No deadline: tests assert what happens, never how long it takes
# `make test-long` runs the tests of Hypothesis as well, by their mark, with the profile of more examples
settings.register_profile("short", deadline=None, max_examples=25, print_blob=True)
settings.register_profile("long", settings.get_profile("short"), max_examples=300)
settings.load_profile("short")

# Of the JVM of every Spark session that a test or its processes start
os.environ.setdefault("SPARK_SUBMIT_OPTS", JAVA_OPTIONS)


@cache
def uses_session(file: str) -> bool:
    """Whether tests of the file request the fixture ``spark``."""
    text = (Path(__file__).parents[1] / file).read_text("utf-8")
    return "spark: SparkSession" in text or 'getfixturevalue("spark")' in text


class OneSpark(LoadFileScheduling):  # type: ignore[misc]  # xdist has no types
    """A file stays in one process; all files with the Spark session share one, which costs 15 CPU seconds to start."""

    def _split_scope(self, nodeid: str) -> str:
        file = str(super()._split_scope(nodeid))
        return "spark" if uses_session(file) else file


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of ``tests/cpu_time.py`` and of the picture in README."""
    parser.addoption("--cpu-seconds", action="store_true", help="print the CPU seconds of each test file")
    parser.addoption("--write-picture", action="store_true", help="write the picture of a report in README again")
    parser.addoption("--record-weights", choices=cpu_time.PARTS, help="write them to tests/weights.toml")


def pytest_configure(config: pytest.Config) -> None:
    """Measure CPU time where an option requests it."""
    if config.getoption("cpu_seconds") or config.getoption("record_weights"):
        config.pluginmanager.register(cpu_time.CpuTime(config))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Longest file first where processes share the files, so that no core waits at the end."""
    if hasattr(config, "workerinput"):
        weights = cpu_time.weights(config.getoption("markexpr"))
        items.sort(key=lambda item: -weights.get(item.nodeid.partition("::")[0], 0))


def pytest_xdist_auto_num_workers() -> int:
    """One process more than there are cores, since many tests wait: for Spark, sockets and other programs."""
    return usable_cores() + 1


def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> OneSpark:
    """Hand out the files to the processes of xdist."""
    return OneSpark(config, log)


def pytest_sessionstart(session: pytest.Session) -> None:
    """Import the files from another one on in each process: pytest writes a cache of each that it has rewritten."""
    # Collecting 10,000 tests makes no garbage, and looking for it takes a fifth of the time
    gc.disable()
    if not hasattr(session.config, "workerinput") or session.config.args != session.config.getini("testpaths"):
        return
    worker = session.config.workerinput
    files = sorted(Path(__file__).parent.rglob("test_*.py"))
    first = len(files) * int(worker["workerid"].removeprefix("gw")) // worker["workercount"]
    for path in files[first:] + files[:first]:
        name = ".".join(path.relative_to(Path(__file__).parents[1]).with_suffix("").parts)
        # Collecting the file reports what is wrong with it
        with contextlib.suppress(Exception, pytest.skip.Exception):
            importlib.import_module(name)


def pytest_collection_finish() -> None:
    """Leave modules and tests out of later garbage collections: each would walk a million objects."""
    gc.enable()
    gc.collect()
    gc.freeze()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """After each file, leave out what it imported and keeps."""
    if nextitem is None or nextitem.path != item.path:
        pytest_collection_finish()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> Iterator[None]:
    """End with the number of tests that were skipped, by reason."""
    result = yield
    reasons = Counter(report.longrepr[2] for report in terminalreporter.stats.get("skipped", []))
    for reason, count in reasons.most_common():
        terminalreporter.write_line(f"NOT TESTED: {count} tests, {reason.removeprefix('Skipped: ')}", yellow=True)
    return result


@pytest.fixture(autouse=True, scope="session")
def no_sync() -> Iterator[None]:
    """Do not wait for the disk: no test cuts the power, and those of durability look at the calls."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        yield


@pytest.fixture(autouse=True, scope="session")
def interrupts() -> None:
    """Scripts start background jobs, and so perhaps these tests, with SIGINT ignored, which programs inherit."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def everything_is_released() -> Iterator[None]:
    """No Buffer outlives the test; garbage is collected only where it may hold one."""
    if allocated_bytes():
        gc.collect()
    before = allocated_bytes()
    yield
    if allocated_bytes() != before:
        gc.collect()
    assert allocated_bytes() == before


@pytest.fixture(scope="session")
def spark(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """One Spark for all tests of a process: starting it takes longer than most of them."""
    require_program("java")
    from pyspark import SparkContext

    from msmqwire.spark.session import local_session

    # Its JVM would write what examples name relatively where it was started: in the checkout
    assert SparkContext._gateway is None, "a test of this process has started Spark without this fixture"
    settings = {
        "spark.driver.memory": "1g",
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.showConsoleProgress": "false",
    }
    if request.config.getoption("markexpr") == "not long":
        # Compiling the code of a query takes longer than its few rows; the long tests do it, as sessions of users
        settings |= {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
        # So does planning the rest of a query again after each stage
        settings |= {"spark.sql.adaptive.enabled": "false", "spark.sql.shuffle.partitions": "1"}
    # What an example names relatively, workers read and write where the JVM started
    folder = tmp_path_factory.mktemp("spark")
    (folder / "examples").symlink_to(Path(__file__).parents[1] / "examples")
    with contextlib.chdir(folder):
        session = local_session("msmqwire tests", cores=2, settings=settings)
    yield session
    session.stop()
