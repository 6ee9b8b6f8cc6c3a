"""The table a run prints: what was measured, beside what it has to reach."""

from __future__ import annotations

import platform
import re
import textwrap
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from benchmarks.ratios import Rounds

#: Columns of a name; a longer one has a line of its own, so that the manual shows all of the table.
WIDTH = 20


@dataclass(frozen=True)
class Target:
    """A figure to reach: from below, or (``at_most``) not to exceed."""

    value: float
    at_most: bool = False

    def verdict(self, measured: float) -> str:
        """The target and whether it is reached, in words."""
        reached = measured <= self.value if self.at_most else measured >= self.value
        return f"{self} {'reached' if reached else 'missed'}"

    def __str__(self) -> str:
        return f"{'<=' if self.at_most else '>='} {self.value:,g}"


@dataclass(frozen=True)
class Ratio:
    """One figure of a section, with its quartiles."""

    section: str
    figure: str
    name: str
    value: float
    quartiles: tuple[float, float]


@dataclass
class Report:
    """Lines in the order they were measured; without ``judge`` targets are shown but not judged by."""

    judge: bool = True
    lines: list[str] = field(default_factory=list)
    ratios: list[Ratio] = field(default_factory=list)
    _section: str = ""
    _figure: str = ""

    def section(self, title: str) -> None:
        """A new part of the table."""
        self.lines += ["", *textwrap.wrap(title, 84)]
        self._section = title

    def heading(self, figure: str, what: str = "packet") -> None:
        """Names of the columns that follow."""
        self._figure = figure
        self.line("", f"{f'ns/{what}':>12} {figure:>12} {'quartiles':>16} target")

    def figure(self, name: str, value: str) -> None:
        """A line that is no ratio of CPU times."""
        self.line(name, f"{'':12} {value:>12}")

    def yardstick(self, rounds: Rounds, name: str, size: int) -> None:
        """The copy all others are compared with."""
        nanoseconds = 1e9 * rounds.per_packet(name)
        speed = size / rounds.packets[name] / nanoseconds
        self.line(f"{name} ({speed:.1f} GB/s)", f"{nanoseconds:12.2f}")

    def of_bound(self, rounds: Rounds, name: str, bound: str, target: Target | None = None) -> float:
        """Speed as a part of that of a copy; more than 1 is faster than copying."""
        ratio = rounds.times_faster(name, bound)
        self.ratio(rounds, name, ratio, rounds.spread(name, bound), target)
        return ratio

    def against(self, rounds: Rounds, ours: str, peer: str, target: Target | None = None, note: str = "") -> float:
        """How many times as fast as the peer we are."""
        ratio = rounds.times_faster(ours, peer)
        self.ratio(rounds, peer, ratio, rounds.spread(ours, peer), target, note)
        return ratio

    def ratio(
        self,
        rounds: Rounds,
        name: str,
        ratio: float,
        spread: tuple[float, float],
        target: Target | None = None,
        note: str = "",
    ) -> None:
        """One line of the table."""
        self.ratios.append(Ratio(self._section, self._figure, name, ratio, spread))
        label = f"{name}{f' ({note})' if note else ''}"
        quartiles = f"{brief(spread[0])} - {brief(spread[1])}"
        verdict = "" if target is None else target.verdict(ratio) if self.judge else str(target)
        nanoseconds = f"{1e9 * rounds.per_packet(name):12,.2f}"
        self.line(label, f"{nanoseconds} {brief(ratio):>12} {quartiles:>16} {verdict}")

    def line(self, name: str, figures: str) -> None:
        """A name and its figures, below it if it is long."""
        if len(name) > WIDTH:
            self.lines.append(f"  {name}")
            name = ""
        self.lines.append(f"  {name:{WIDTH}} {figures}".rstrip())


def brief(value: float) -> str:
    """Three digits or all before the point."""
    return f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 100 else f"{value:,.0f}"


def machine() -> str:
    """Where this was measured."""
    model = platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        found = re.search(r"^model name\s*: (.*)$", cpuinfo.read_text(), re.MULTILINE)
        model = found[1] if found else model
    return f"{model}, Python {platform.python_version()}, numpy {np.__version__}"
