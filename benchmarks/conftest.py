"""Sizes, workloads and the table at the end of a benchmark run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from benchmarks import workloads
from benchmarks.comparison import Comparison
from benchmarks.performance_page import write_page
from benchmarks.report import Report, machine
from benchmarks.scale import FULL, QUICK, Scale

LONGEST = 3600
"""Seconds after which a benchmark fails, on a machine with much else to do."""
REPORT = pytest.StashKey[Report]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """--quick and --write-page."""
    parser.addoption("--quick", action="store_true", help="few rows, only to see that all of it works")
    parser.addoption("--write-page", metavar="FOLDER", help="write performance.md and its plots into the folder")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A benchmark may take longer than a test."""
    for item in items:
        if item.path.parent == Path(__file__).parent:
            item.add_marker(pytest.mark.timeout(LONGEST))


def pytest_configure(config: pytest.Config) -> None:
    """One report for the whole run."""
    config.stash[REPORT] = Report(judge=not config.getoption("--quick"))


@pytest.fixture(scope="session")
def scale(request: pytest.FixtureRequest) -> Scale:
    return QUICK if request.config.getoption("--quick") else FULL


@pytest.fixture(scope="session")
def report(request: pytest.FixtureRequest) -> Report:
    return request.config.stash[REPORT]


@pytest.fixture
def compare(benchmark: BenchmarkFixture, scale: Scale, report: Report) -> Comparison:
    return Comparison(benchmark, scale, report)


@pytest.fixture(scope="session")
def requests(scale: Scale) -> workloads.Workload:
    return workloads.requests(scale.rows)


@pytest.fixture(scope="session")
def replies(scale: Scale) -> workloads.Workload:
    return workloads.replies(scale.rows)


@pytest.fixture(scope="session")
def capture_file(requests: workloads.Workload, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    path = tmp_path_factory.mktemp("captures") / "requests.pcap"
    workloads.write_capture(path, requests)
    yield path
    path.unlink()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print the table."""
    lines = config.stash[REPORT].lines
    if lines:
        terminalreporter.section("msmqwire, memcpy and other libraries")
        terminalreporter.line(f"{machine()}; CPU time, paired rounds in one process, medians")
        if config.getoption("--quick"):
            terminalreporter.line("--quick: little data, few rounds; these ratios mean nothing")
        for line in lines:
            terminalreporter.line(line)
    folder = config.getoption("--write-page")
    if lines and folder:
        write_page(config.stash[REPORT], Path(folder))
