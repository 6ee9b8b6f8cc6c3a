"""Seconds of each test file: the longest files run first, and ``--cpu-seconds`` prints the CPU time each one took.

``weights.toml`` holds the recorded seconds by the clock, since a file that waits keeps a process as one that computes;
``make weights`` writes it. Only the order of the files depends on it.
"""

from __future__ import annotations

import time
import tomllib
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

WEIGHTS = Path(__file__).parent / "weights.toml"
PARTS = ("short", "long")
#: The part that each -m of the Makefile chooses
CHOSEN = {"not long": PARTS[:1], "long or hypothesis": PARTS[1:]}
# Files below this stay in the order of their names
RECORDED_FROM = 1.0


def seconds_now() -> tuple[float, float]:
    """User and system time of this process and of all its descendants, living or waited for; and the clock."""
    process = psutil.Process()
    times = [process.cpu_times()]
    for child in process.children(recursive=True):
        try:
            times.append(child.cpu_times())
        except psutil.Error:
            continue
    used = sum(each.user + each.system + each.children_user + each.children_system for each in times)
    return used, time.monotonic()


def weights(marks: str = "") -> dict[str, float]:
    """Recorded seconds by file, of the short or the long tests or of both, as ``-m`` chooses."""
    recorded = tomllib.loads(WEIGHTS.read_text("utf-8"))
    total: dict[str, float] = {}
    for part in CHOSEN.get(marks, PARTS):
        for name, seconds in recorded.get(part, {}).items():
            total[name] = total.get(name, 0) + seconds
    return total


class CpuTime:
    """Pytest plugin: measure each file, in this process or in the workers of xdist."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.begun: dict[str, tuple[float, float]] = {}
        self.cpu: dict[str, float] = {}
        self.elapsed: dict[str, float] = {}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
        """Take the time at the first and after the last test of a file."""
        name = item.nodeid.partition("::")[0]
        if name not in self.begun:
            self.begun[name] = seconds_now()
        result = yield
        if nextitem is None or nextitem.nodeid.partition("::")[0] != name:
            (cpu, clock), (cpu_before, clock_before) = seconds_now(), self.begun[name]
            self.cpu[name], self.elapsed[name] = cpu - cpu_before, clock - clock_before
        return result

    def pytest_sessionfinish(self) -> None:
        """Send the seconds of a worker to the controlling process."""
        if hasattr(self.config, "workeroutput"):
            self.config.workeroutput["seconds"] = self.cpu, self.elapsed

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: object) -> None:
        """Add the seconds of a worker."""
        cpu, elapsed = getattr(node, "workeroutput", {}).get("seconds", ({}, {}))
        self.cpu |= cpu
        self.elapsed |= elapsed

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the CPU seconds, heaviest file first; record the others where that is requested."""
        terminalreporter.section("CPU seconds by file")
        for name, seconds in largest_first(self.cpu):
            terminalreporter.write_line(f"{seconds:8.1f}  {name}")
        terminalreporter.write_line(f"{sum(self.cpu.values()):8.1f}  all {len(self.cpu)} files")
        part = self.config.getoption("record_weights")
        if part:
            record(part, self.elapsed)


def largest_first(seconds: dict[str, float]) -> list[tuple[str, float]]:
    """The files and their seconds, without the quick ones."""
    return sorted([entry for entry in seconds.items() if entry[1] >= RECORDED_FROM], key=lambda entry: -entry[1])


def record(part: str, seconds: dict[str, float]) -> None:
    """Replace one part of ``weights.toml``."""
    parts = {"short": {}, "long": {}} | tomllib.loads(WEIGHTS.read_text("utf-8"))
    parts[part] = {name: round(value) for name, value in largest_first(seconds)}
    lines = ["# Seconds of test files, longest first; written by `make weights`"]
    for name in PARTS:
        lines += ["", f"[{name}]", *(f'"{file}" = {value}' for file, value in parts[name].items())]
    WEIGHTS.write_text("\n".join(lines) + "\n", "utf-8")
