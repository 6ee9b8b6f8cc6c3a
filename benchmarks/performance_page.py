"""docs/performance.md and its plots, without a date, so that they change only with the figures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from benchmarks.report import Ratio, Report, machine

INTRODUCTION = """# Performance

`make bench` wrote this page: {machine}. All times are CPU time; contenders run in turn in one process, and a ratio is
the median of the rounds, with its quartiles. [The benchmarks](../benchmarks/README.md) say what is compared with what.
Ratios to a copy depend on the memory of a machine: compare them on one machine only.

![Speed of msmqwire as a part of the speed of memcpy](performance-memcpy.svg)

![How many times slower other libraries are](performance-others.svg)

```text
{table}
```
"""


def write_page(report: Report, folder: Path) -> None:
    """Write the page and both plots."""
    table = "\n".join(report.lines).strip("\n")
    (folder / "performance.md").write_text(INTRODUCTION.format(machine=machine(), table=table))
    copies = [ratio for ratio in report.ratios if ratio.figure == "of memcpy"]
    others = [ratio for ratio in report.ratios if ratio.figure == "times slower"]
    plot(folder / "performance-memcpy.svg", copies, "of memcpy (1: as fast as copying the bytes)", logarithmic=False)
    plot(folder / "performance-others.svg", others, "times slower than msmqwire", logarithmic=True)


def plot(path: Path, ratios: Sequence[Ratio], label: str, *, logarithmic: bool) -> None:
    """A bar a ratio, its quartiles as a line, under the titles of their sections."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "msmqwire"
    from matplotlib import pyplot

    names = [f"{ratio.section.partition(':')[0]}: {ratio.name}" for ratio in ratios]
    values = [ratio.value for ratio in ratios]
    spread = [
        [max(0.0, ratio.value - ratio.quartiles[0]) for ratio in ratios],
        [max(0.0, ratio.quartiles[1] - ratio.value) for ratio in ratios],
    ]
    figure, axes = pyplot.subplots(figsize=(10, 0.6 + 0.24 * len(ratios)), layout="constrained")
    axes.barh(names, values, xerr=spread, color="#3b6ea8", ecolor="#222222")
    axes.invert_yaxis()
    axes.set_xlabel(label)
    axes.tick_params(labelsize=7)
    if logarithmic and ratios:
        axes.set_xscale("log")
    else:
        axes.axvline(1, color="#a83b3b")
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)
