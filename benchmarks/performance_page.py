"""docs/performance.md and its plots, without a date, so that they change only with the figures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from benchmarks.instructions import recorded
from benchmarks.report import Ratio, Report, machine

INTRODUCTION = """# Performance

`make bench` wrote this page: {machine}. All times are CPU time; contenders run in turn in one process, and a ratio is
the median of the rounds, with its quartiles. `benchmarks/README.md` says what is compared with what.
Ratios to a copy depend on the memory of a machine: compare them on one machine only.

![Speed of msmqwire as a part of the speed of memcpy](performance-memcpy.svg)

![How many times slower other libraries are](performance-others.svg)

```text
{table}
```

## What bounds each kernel

A copy of memory is a bound for kernels that copy. The others are bound by the instructions of a packet and by the
branches that a processor cannot predict, since lists and properties have another number of items in each packet. A
branch that was predicted wrongly costs 10 to 20 cycles. Instructions and such branches of a packet were counted by
valgrind, whose predictor is simpler than that of a processor; bytes are those of the benchmarks' packets.

| kernel | instructions | wrong branches | bytes read | bytes written |
|---|---|---|---|---|
| requests | {instructions[requests]:.0f} | 0.1 | 52 | 58 |
| replies | {instructions[replies]:.0f} | 3.0 | 199 | 135 |
| notifications | {instructions[notifications]:,.0f} | 9.0 | 484 | about 310 |
| messages, all columns | {instructions[messages]:,.0f} | 6.5 | 949 | about 230 |

- Requests have one size and no lists, so the three GUIDs are copied at the speed of memory.
- Of the instructions of a reply, 70% find the names in the list of servers, 128 bytes at a time, and write the place
  and the flags of each server; 15% write the other columns; the others check sizes, counts and the mask. The number of
  servers and of blocks of names differ from packet to packet: a wrong branch or two each.
- Of the instructions of a notification, 60% walk over the properties. The size of a property says where the next one
  begins, so they are read one after the other. A fifth judges path names and sets of properties, and a fifth writes
  rows.
- Of the instructions of a message, 60% read the headers, of which each says whether and where the next one is, and 40%
  write its 88 columns. Values that no message of a block has, and that are zeros from the last use of the batch, are
  not written again. Half of the time is that of memory, and more than half when messages are encoded.

## What bounds a session

A message of 1 kB that is sent and received in one process, with its acknowledgment, costs some 80 times what it costs
to copy its bytes through a pair of sockets. The sender makes and encodes the packet, and keeps it until the
acknowledgment comes; the receiver decodes it, looks for a duplicate and reports the message. The rest is asyncio and
its sockets; 32 messages go to a socket together, since half a window is acknowledged at once.

The commands cost more: `msmqwire receive` writes a row of 90 columns for each message, and has no more than 64 rows
at a time to write, so most of its time goes into the JSON of small batches.

With `--transactional --store` each message is written to the stores of both sides and removed from them. The same rows
in SQLite alone, in the same batches, take a fifth of the CPU time of the two commands. What bounds these is Python:
SQLite takes some 32 of the 153 microseconds; the rest reads and writes rows in JSON, makes packets, and is the session
of both sides. A read of the socket is one transaction of some 32 messages, since a sender waits
for the acknowledgment of half a window; rows are written to files some 200 at a time while messages come without a
pause.
"""


def write_page(report: Report, folder: Path) -> None:
    """Write the page and both plots."""
    table = "\n".join(report.lines).strip("\n")
    _, counts = recorded()
    (folder / "performance.md").write_text(INTRODUCTION.format(machine=machine(), table=table, instructions=counts))
    copies = [ratio for ratio in report.ratios if ratio.figure == "of memcpy"]
    others = [ratio for ratio in report.ratios if ratio.figure == "times slower"]
    plot(folder / "performance-memcpy.svg", copies, "of memcpy (1: as fast as copying the bytes)", logarithmic=False)
    plot(folder / "performance-others.svg", others, "times slower than msmqwire", logarithmic=True)


def plot(path: Path, ratios: Sequence[Ratio], label: str, *, logarithmic: bool) -> None:
    """A bar a ratio, its quartiles as a line, under the titles of their sections."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "msmqwire"
    mpl.rcParams["svg.fonttype"] = "none"
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
