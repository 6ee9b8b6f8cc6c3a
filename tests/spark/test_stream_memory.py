"""The memory of a task of ``read_streams`` is bounded, whatever streams hold: measured without Spark."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import asdict, replace
from typing import Any

import pytest

from tests.spark.captures import ROOT
from tests.spark.huge_streams import SEGMENT, Case

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="memory is counted as Linux counts it")

LARGE, HUGE = 20_000_000, 200_000_000
ALLOWED = 8 << 20
ONE_GAP = (
    rf"\d+\.pcap: 1 gap, {SEGMENT:,} bytes missing.*; the first at byte \d+: frame \d+, \S+ to \S+: "
    rf"{SEGMENT} bytes before this segment are missing, from offset {SEGMENT} of its stream"
)
#: Each case; of how many messages one is lost, 0 for none and None for one in all; and the warning
CASES: dict[str, tuple[Case, int | None, str]] = {
    "with many gaps": (Case(LARGE, lost=3, shuffled=True), 3, r".*: [\d,]+ gaps, .*"),
    "in order": (Case(LARGE), 0, ""),
    "out of order": (Case(LARGE, shuffled=True), 0, ""),
    "in many captures": (Case(LARGE, rotated=True), 0, ""),
    "the largest messages": (Case(LARGE, segments=2995), 0, ""),
    "after a gap": (Case(LARGE, hole=1), None, ONE_GAP),
    "after a gap, out of order, in many captures": (Case(LARGE, hole=1, shuffled=True, rotated=True), None, ONE_GAP),
    # The most that may be held is there in either; most streams are evicted, and one of their two problems is counted
    "all streams wait": (
        Case(100_000_000, messages=10, hole=1),
        10,
        r".*: [\d,]+ gaps, .*, [\d,]+ streams forgotten; .*",
    ),
}


@pytest.mark.long
@pytest.mark.parametrize("name", CASES)
def test_memory_does_not_grow_with_streams(name: str) -> None:
    case, every, warning = CASES[name]
    cases = [case, replace(case, size=HUGE)]
    arguments = [json.dumps(asdict(one)) for one in cases]
    command = [sys.executable, "-m", "tests.spark.huge_streams", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    large, huge = found = [json.loads(line) for line in done.stdout.splitlines()]
    assert huge["peak"] - large["peak"] < ALLOWED
    for one, result in zip(cases, found, strict=True):
        check(one, result, every, warning)


def check(case: Case, found: dict[str, Any], every: int | None, warning: str) -> None:
    """The rows of all messages, without the contents of the incomplete ones, and one warning."""
    messages = case.size // (case.segments * SEGMENT)
    lost = 1 if every is None else -(-messages // every) if every else 0
    assert (found["rows"], found["decoded"]) == (messages, messages - lost)
    assert len(found["said"]) == bool(warning)
    for said in found["said"]:
        assert re.fullmatch(warning.replace("{lost}", str(lost)), said)
        losses = re.findall(r"([\d,]+) (?:gap|conflict|segment|packet|stream)", said.partition("; the first")[0])
        problems = sum(int(number.replace(",", "")) for number in losses)
        assert lost <= problems < max(2 * lost, 2)
