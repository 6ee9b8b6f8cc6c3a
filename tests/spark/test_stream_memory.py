"""What a task of ``read_streams`` holds has bounds, whatever streams hold: measured without Spark."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import asdict, replace
from typing import Any, NamedTuple

import pytest

from tests.spark.huge_streams import SEGMENT, Case
from tests.spark.submit import ROOT

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="memory is counted as Linux counts it")

LARGE, HUGE = 20_000_000, 200_000_000
ALLOWED = 8 << 20
CASES = {
    "in order": Case(LARGE),
    "out of order": Case(LARGE, shuffled=True),
    "in many captures": Case(LARGE, rotated=True),
    "the largest messages": Case(LARGE, segments=2995),
    "behind a hole": Case(LARGE, hole=1),
    "behind a hole, out of order, in many captures": Case(LARGE, hole=1, shuffled=True, rotated=True),
    "with many holes": Case(LARGE, lost=3, shuffled=True),
    # As much as may be held is there in either
    "all streams wait": Case(100_000_000, messages=10, hole=1),
}


class Found(NamedTuple):
    """What a task gave of a case, and the memory it took."""

    case: Case
    rows: int
    decoded: int
    said: list[str]
    peak: int

    @property
    def messages(self) -> int:
        """Those that were sent."""
        return self.case.size // (self.case.segments * SEGMENT)


@pytest.fixture(scope="module")
def found() -> dict[str, list[Found]]:
    """Each case, and one of its kind that is huge; all out of one process, since it takes a second to start."""
    pairs = {name: (case, replace(case, size=HUGE)) for name, case in CASES.items()}
    cases = [case for pair in pairs.values() for case in pair]
    arguments = [json.dumps(asdict(case)) for case in cases]
    command = [sys.executable, "-m", "tests.spark.huge_streams", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    given: list[dict[str, Any]] = list(map(json.loads, done.stdout.splitlines()))
    results = iter([Found(case, **one) for case, one in zip(cases, given, strict=True)])
    return {name: [next(results), next(results)] for name in pairs}


@pytest.mark.parametrize("name", CASES)
def test_memory_has_bounds(found: dict[str, list[Found]], name: str) -> None:
    large, huge = found[name]
    assert huge.peak - large.peak < ALLOWED


@pytest.mark.parametrize("name", ["in order", "out of order", "in many captures", "the largest messages"])
def test_nothing_is_lost(found: dict[str, list[Found]], name: str) -> None:
    for one in found[name]:
        assert (one.rows, one.decoded, one.said) == (one.messages, one.messages, [])


@pytest.mark.parametrize("name", ["behind a hole", "behind a hole, out of order, in many captures"])
def test_a_hole_loses_one_message(found: dict[str, list[Found]], name: str) -> None:
    for one in found[name]:
        assert one.rows == one.decoded == one.messages - 1
        (said,) = one.said
        assert re.fullmatch(
            r"\d+\.pcap: 1 problems of TCP streams; the first at byte \d+: "
            rf"{SEGMENT} bytes before this segment are missing, from offset {SEGMENT} of its stream",
            said,
        )


def test_each_hole_loses_one_message(found: dict[str, list[Found]]) -> None:
    for one in found["with many holes"]:
        lost = -(-one.messages // 3)
        assert one.rows == one.decoded == one.messages - lost
        (said,) = one.said
        assert f": {lost} problems of TCP streams; " in said


def test_streams_that_are_forgotten_lose_what_is_missing(found: dict[str, list[Found]]) -> None:
    for one in found["all streams wait"]:
        streams = -(-one.messages // one.case.messages)
        assert one.rows == one.decoded == one.messages - streams
        (said,) = one.said
        problems = re.search(r": (\d+) problems of TCP streams; ", said)
        assert problems
        assert streams < int(problems[1]) < 2 * streams  # a gap in each, and most were forgotten
