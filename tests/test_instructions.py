"""The speed that a clock cannot guard: instructions a row of every kernel stay in a band."""

from __future__ import annotations

import pytest

from benchmarks import instructions
from tests.system_programs import require_program


@pytest.mark.long
def test_instructions_stay_in_their_band() -> None:
    require_program("valgrind")
    pytest.importorskip("pytest_benchmark", reason="the extra bench is not installed, whose workloads are counted")
    counted_with, recorded = instructions.recorded()
    if counted_with != instructions.counted_with():
        pytest.skip(f"counted with {counted_with}, this is {instructions.counted_with()}")
    counts = instructions.count_instructions(instructions.KINDS)
    assert counts.keys() == recorded.keys()
    assert instructions.outside_band(counts) == []
