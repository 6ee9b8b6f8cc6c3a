"""CPU seconds of each test file: the heaviest files run first, and ``--cpu-seconds`` prints what each one took.

``weights.toml`` holds the recorded seconds; ``make weights`` writes it. Only the order of the files depends on it.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

WEIGHTS = Path(__file__).parent / "weights.toml"
PARTS = ("short", "long")
# Files below this stay in the order of their names
RECORDED_FROM = 1.0


def cpu_seconds() -> float:
    """User and system time of this process and of all its descendants, living or waited for."""
    process = psutil.Process()
    times = [process.cpu_times()]
    for child in process.children(recursive=True):
        try:
            times.append(child.cpu_times())
        except psutil.Error:
            continue
    return sum(time.user + time.system + time.children_user + time.children_system for time in times)


def weights() -> dict[str, float]:
    """Recorded CPU seconds by file, short and long tests together."""
    recorded = tomllib.loads(WEIGHTS.read_text("utf-8"))
    total: dict[str, float] = {}
    for part in PARTS:
        for name, seconds in recorded.get(part, {}).items():
            total[name] = total.get(name, 0) + seconds
    return total


class CpuTime:
    """Pytest plugin: measure each file, in this process or in the workers of xdist."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.seconds: dict[str, float] = {}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
        """Take the time at the first and after the last test of a file."""
        name = item.nodeid.partition("::")[0]
        if name not in self.seconds:
            self.seconds[name] = -cpu_seconds()
        result = yield
        if nextitem is None or nextitem.nodeid.partition("::")[0] != name:
            self.seconds[name] += cpu_seconds()
        return result

    def pytest_sessionfinish(self) -> None:
        """Send the seconds of a worker to the controlling process."""
        if hasattr(self.config, "workeroutput"):
            self.config.workeroutput["cpu_seconds"] = self.seconds

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: object) -> None:
        """Add the seconds of a worker."""
        self.seconds |= getattr(node, "workeroutput", {}).get("cpu_seconds", {})

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the seconds, heaviest file first; record them where that is requested."""
        heaviest_first = sorted(self.seconds.items(), key=lambda entry: -entry[1])
        terminalreporter.section("CPU seconds by file")
        for name, seconds in heaviest_first:
            if seconds >= RECORDED_FROM:
                terminalreporter.write_line(f"{seconds:8.1f}  {name}")
        terminalreporter.write_line(f"{sum(self.seconds.values()):8.1f}  all {len(self.seconds)} files")
        part = self.config.getoption("record_weights")
        if part:
            record(part, dict(heaviest_first))


def record(part: str, seconds: dict[str, float]) -> None:
    """Replace one part of ``weights.toml``."""
    parts = {"short": {}, "long": {}} | tomllib.loads(WEIGHTS.read_text("utf-8"))
    parts[part] = {name: round(value) for name, value in seconds.items() if value >= RECORDED_FROM}
    lines = ["# CPU seconds of test files, heaviest first; written by `make weights`"]
    for name in PARTS:
        lines += ["", f"[{name}]", *(f'"{file}" = {value}' for file, value in parts[name].items())]
    WEIGHTS.write_text("\n".join(lines) + "\n", "utf-8")
