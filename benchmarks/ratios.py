"""The measuring core: CPU time, contenders in turn in one process, medians of paired rounds.

A shared machine is never quiet. What disturbs one contender of a round most likely disturbs its neighbours
too, so a ratio is taken within each round and the median of those ratios is reported; seconds on
their own are only shown for orientation.
"""

from __future__ import annotations

import ctypes
import gc
import math
import random
import re
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np
import psutil

CLEAR_REFS = Path("/proc/self/clear_refs")
CACHED = 1 << 18
"""Bytes that stay in the second-level cache."""


@dataclass(frozen=True)
class Contender:
    """Something that takes time, and how many packets it handled in it."""

    name: str
    run: Callable[[], object]
    packets: int
    note: str = ""


@dataclass
class Rounds:
    """CPU seconds of every contender in every round."""

    packets: dict[str, int]
    seconds: dict[str, list[float]] = field(default_factory=dict)

    def per_packet(self, name: str) -> float:
        """Median CPU seconds for one packet."""
        return statistics.median(self.seconds[name]) / self.packets[name]

    def times_faster(self, fast: str, slow: str) -> float:
        """How many times as much one packet costs with ``slow``: the median of the rounds' ratios."""
        scale = self.packets[fast] / self.packets[slow]
        pairs = zip(self.seconds[fast], self.seconds[slow], strict=True)
        return statistics.median(b / a * scale for a, b in pairs)

    def spread(self, fast: str, slow: str) -> tuple[float, float]:
        """The quartiles of the same ratios: how much to trust the median."""
        scale = self.packets[fast] / self.packets[slow]
        ratios = [b / a * scale for a, b in zip(self.seconds[fast], self.seconds[slow], strict=True)]
        low, _, high = statistics.quantiles(ratios, n=4, method="inclusive")
        return low, high


class FamilyClock:
    """CPU seconds of this process and of all that it and its children ever started.

    A process that has ended keeps the seconds it was last seen with. Spark's daemon of Python workers ignores SIGCHLD
    and never learns theirs; it keeps workers from job to job, and ends them when they were idle for a minute.
    """

    def __init__(self) -> None:
        self._seconds: dict[psutil.Process, float] = {}

    def __call__(self) -> float:
        """CPU seconds so far; those of this process are exact, of the others known to a hundredth."""
        this = psutil.Process()
        for process in this.children(recursive=True):
            try:
                self._seconds[process] = sum(process.cpu_times()[:4])
            except psutil.NoSuchProcess:
                continue
        self._seconds[this] = time.process_time() + sum(this.cpu_times()[2:4])
        return sum(self._seconds.values())


def measure(
    contenders: Sequence[Contender],
    rounds: int,
    *,
    least: int = 1,
    seconds: float = math.inf,
    clock: Callable[[], float] = time.process_time,
    shuffled: bool = False,
) -> Rounds:
    """Run the contenders in turn (A B C A B C ...), after a warm-up of each, with the garbage collector off.

    After so many ``seconds`` there are no more rounds than ``least``. The collector is off in favour of the peers: only
    they make objects. ``shuffled`` changes the order in every round: a JVM may collect the garbage of one contender
    while the next one runs.
    """
    result = Rounds({c.name: c.packets for c in contenders}, {c.name: [] for c in contenders})
    for contender in contenders:
        contender.run()
    gc.collect()
    enabled = gc.isenabled()
    gc.disable()
    end = time.monotonic() + seconds
    try:
        for number in range(rounds):
            if number >= least and time.monotonic() > end:
                break
            turn = random.Random(number).sample(contenders, len(contenders)) if shuffled else contenders
            for contender in turn:
                before = clock()
                made = contender.run()
                result.seconds[contender.name].append(clock() - before)
                del made
    finally:
        if enabled:
            gc.enable()
    return result


def memcpy(data: bytes, packets: int, name: str = "memcpy") -> Contender:
    """The yardstick: one copy of all the bytes into a buffer of their size, allocated and touched before."""
    source = np.frombuffer(data, np.uint8)
    target = np.zeros(len(source), np.uint8)
    target.fill(1)
    return Contender(name, lambda: np.copyto(target, source), packets)


def blocked_memcpy(data: bytes, packets: int, name: str) -> Contender:
    """A copy of all the bytes into one small buffer: a bound for a reader whose output stays in the cache."""
    source = np.frombuffer(data, np.uint8)
    blocks = [source[start : start + CACHED] for start in range(0, len(source), CACHED)]
    target = np.zeros(CACHED, np.uint8)

    def run() -> None:
        for block in blocks:
            np.copyto(target[: len(block)], block)

    return Contender(name, run, packets)


def pure_read(data: bytes, packets: int, name: str) -> Contender:
    """The largest of all the bytes' eights: a bound for a reader without any output."""
    numbers = np.frombuffer(data, np.uint64, len(data) // 8)
    return Contender(name, numbers.max, packets)


def status_bytes(key: str, process: int | Literal["self"] = "self") -> int:
    """A memory figure of a process."""
    status = Path(f"/proc/{process}/status")
    found = re.search(rf"^{key}:\s+(\d+) kB$", status.read_text(), re.MULTILINE)
    if found is None:
        raise OSError(f"{status} has no {key}")
    return 1024 * int(found[1])


def peak_growth(run: Callable[[], object]) -> int | None:
    """Bytes the resident memory grew by at its peak while ``run`` ran; None where Linux does not tell."""
    gc.collect()
    try:
        ctypes.CDLL(None).malloc_trim(0)  # memory freed earlier would hide what is taken now
        CLEAR_REFS.write_text("5")  # forget the peak so far (proc(5))
        before = status_bytes("VmRSS")
        run()
        return max(0, status_bytes("VmHWM") - before)
    except (OSError, AttributeError):
        return None
