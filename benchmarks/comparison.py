"""What the benchmarks of all formats share: answers are checked, contenders timed in turn, ratios reported."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from pytest_benchmark.fixture import BenchmarkFixture

from benchmarks.conftest import Scale
from benchmarks.peers import Decoder, Peer
from benchmarks.ratios import Contender, Rounds, measure, memcpy
from benchmarks.report import Report, Target
from benchmarks.workloads import Check, Workload

OURS = "msmqwire"


def checked_decoder(run: Decoder, work: Workload) -> Decoder:
    """The decoder, once its answer has proved right."""
    check = Check(work)
    run(check)
    check.finish()
    return run


def checked_encoder(run: Any, work: Workload) -> Any:
    """The encoder, once its output has proved to be the workload."""
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


def contenders(
    chosen: Sequence[Peer],
    work: Workload,
    scale: Scale,
    checked: Callable[[Any, Workload], Any],
    *,
    path: Path | None = None,
) -> list[Contender]:
    """The peers, each with its answer checked, on the sample it is due."""
    made = []
    for peer in chosen:
        part = work.head(scale.sample(peer.sample))
        run = peer.prepare(part) if path is None else peer.prepare(path, len(part))
        note = peer.note
        if len(part) < len(work):
            note = f"{len(part):,} packets{'; ' if note else ''}{note}"
        made.append(Contender(peer.name, checked(run, part), len(part), note))
    return made


def compare(
    benchmark: BenchmarkFixture,
    scale: Scale,
    report: Report,
    *,
    title: str,
    yardstick: bytes,
    mine: Sequence[tuple[Contender, float | None]],
    arrays: Sequence[Contender] = (),
    loops: Sequence[Contender] = (),
    targets: Sequence[Peer] = (),
) -> None:
    """Time all of them in turn, the fast in many rounds, the slow in few, and add a section to the table."""
    first = mine[0][0]
    fast = measure([memcpy(yardstick, first.packets), *(c for c, _ in mine), *arrays], scale.rounds)
    slow = measure([first, *loops], scale.slow_rounds) if loops else Rounds({})
    wanted = {peer.name: Target(peer.target) for peer in targets if peer.target}

    report.section(f"{title}: {first.packets:,} packets of {len(yardstick) / first.packets:.1f} bytes")
    report.heading("of memcpy")
    report.yardstick(fast, "memcpy", len(yardstick))
    ratios = {}
    for contender, goal in mine:
        target = Target(goal) if goal else None
        ratios[f"{contender.name} of memcpy"] = report.of_memcpy(fast, contender.name, target)
    if arrays or loops:
        report.heading("times slower")
    for rounds, group in ((fast, arrays), (slow, loops)):
        for contender in group:
            ratios[f"times {contender.name}"] = report.against(
                rounds, first.name, contender.name, wanted.get(contender.name), contender.note
            )
    benchmark.extra_info.update({name: round(ratio, 3) for name, ratio in ratios.items()})
    benchmark.pedantic(first.run, rounds=scale.slow_rounds, iterations=1, warmup_rounds=1)


def mebibytes(size: int | None) -> str:
    """A size for people."""
    return "unknown" if size is None else f"{size / 2**20:.1f} MiB"
