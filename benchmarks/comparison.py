"""Check results, time contenders in turn, report ratios: for the benchmarks of all formats."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from pytest_benchmark.fixture import BenchmarkFixture

from benchmarks.peers import Decoder, Peer
from benchmarks.ratios import Contender, Rounds, blocked_memcpy, measure, memcpy, peak_growth, pure_read
from benchmarks.report import Report, Target
from benchmarks.scale import Scale
from benchmarks.workloads import Check, Workload

OURS = "msmqwire"
ALL_COLUMNS = f"{OURS}, all columns"
BLOCKED = "blocked copy, the target stays in the cache"
READ = "read, nothing is written"


class Goal(NamedTuple):
    """The least speed as a part of that of ``memcpy`` and of the blocked copy, both measured in the same run."""

    of_memcpy: float | None = None
    of_blocked: float | None = None


def target(least: float | None) -> Target | None:
    return Target(least) if least else None


def checked_decoder(run: Decoder, work: Workload) -> Decoder:
    """The decoder, after a check of its result."""
    check = Check(work)
    run(check)
    check.finish()
    return run


def checked_encoder(run: Any, work: Workload) -> Any:
    """The encoder, after a check that its output is the workload."""
    at = 0

    def see(chunk: Any) -> None:
        nonlocal at
        raw = bytes(chunk)
        if raw != work.data[at : at + len(raw)]:
            raise AssertionError(f"encoded bytes differ after {at}")
        at += len(raw)

    run(see)
    if at != len(work.data):
        raise AssertionError(f"{at} of {len(work.data)} bytes were encoded")
    return run


@dataclass(frozen=True)
class Comparison:
    """Times contenders in turn, prints a section of the table and records the ratios: the fixture ``compare``."""

    benchmark: BenchmarkFixture
    scale: Scale
    report: Report

    def packets(
        self,
        title: str,
        work: Workload,
        checked: Callable[[Any, Workload], Any],
        mine: dict[str, tuple[Any, Goal]],
        *,
        arrays: Sequence[Peer] = (),
        loops: Sequence[Peer] = (),
        path: Path | None = None,
    ) -> None:
        """Check and compare ways to decode or encode a workload; ``mine`` has ours by name, with their targets."""
        self(
            title,
            yardstick=work.data if path is None else path.read_bytes(),
            mine=[(Contender(name, checked(run, work), len(work)), goal) for name, (run, goal) in mine.items()],
            arrays=[self._contender(peer, work, checked, path) for peer in arrays],
            loops=[self._contender(peer, work, checked, path) for peer in loops],
            targets=[*arrays, *loops],
        )

    def _contender(
        self, peer: Peer, work: Workload, checked: Callable[[Any, Workload], Any], path: Path | None
    ) -> Contender:
        part = work.head(self.scale.sample(peer.sample))
        run = peer.prepare(part) if path is None else peer.prepare(path, len(part))
        notes = [f"{len(part):,} packets"] if len(part) < len(work) else []
        return Contender(peer.name, checked(run, part), len(part), "; ".join(filter(None, [*notes, peer.note])))

    def __call__(
        self,
        title: str,
        *,
        yardstick: bytes,
        mine: Sequence[tuple[Contender, Goal]],
        arrays: Sequence[Contender] = (),
        loops: Sequence[Contender] = (),
        targets: Sequence[Peer] = (),
    ) -> None:
        """Time ``mine`` and ``arrays`` in many rounds, ``loops`` in few."""
        first, report = mine[0][0], self.report
        copies = [memcpy(yardstick, first.packets), blocked_memcpy(yardstick, first.packets, BLOCKED)]
        bounds = [*copies, pure_read(yardstick, first.packets, READ)]
        fast = measure(
            [*bounds, *(c for c, _ in mine), *arrays],
            self.scale.rounds,
            least=self.scale.slow_rounds,
            seconds=self.scale.seconds,
        )
        slow = measure([first, *loops], self.scale.slow_rounds) if loops else Rounds({})
        wanted = {peer.name: Target(peer.target) for peer in targets if peer.target}

        report.section(f"{title}: {first.packets:,} packets of {len(yardstick) / first.packets:.1f} bytes")
        report.heading("of memcpy")
        for bound in bounds:
            report.yardstick(fast, bound.name, len(yardstick))
        ratios = {}
        for contender, goal in mine:
            least = target(goal.of_memcpy)
            ratios[f"{contender.name} of memcpy"] = report.of_bound(fast, contender.name, "memcpy", least)
        report.heading("of blocked")
        for contender, goal in mine:
            least = target(goal.of_blocked)
            ratios[f"{contender.name} of {BLOCKED}"] = report.of_bound(fast, contender.name, BLOCKED, least)
        if arrays or loops:
            report.heading("times slower")
        for rounds, group in ((fast, arrays), (slow, loops)):
            for contender in group:
                ratios[f"times {contender.name}"] = report.against(
                    rounds, first.name, contender.name, wanted.get(contender.name), contender.note
                )
        self.benchmark.extra_info.update({name: round(ratio, 3) for name, ratio in ratios.items()})
        self.benchmark.pedantic(first.run, rounds=self.scale.slow_rounds, iterations=1, warmup_rounds=1)

    def peak_memory(self, run: Callable[[], object], path: Path) -> None:
        """Add the growth of memory while a file is read."""
        growth = peak_growth(run)
        self.report.figure(f"peak memory taken, a file of {mebibytes(path.stat().st_size)}", mebibytes(growth))
        self.benchmark.extra_info["peak growth"] = growth


def mebibytes(size: int | None) -> str:
    """A size in MiB."""
    return "unknown" if size is None else f"{size / 2**20:.1f} MiB"
