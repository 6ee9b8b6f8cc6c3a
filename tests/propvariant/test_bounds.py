"""No codec reads a byte outside its value: a guard page next to a value kills the process that reads it."""

from __future__ import annotations

import sys

import pytest

from tests.columns.processes import run

PROGRAM = """
import random
from msmqwire import propvariant
from tests.columns.guard_pages import place
from tests.propvariant.values import TYPES, VT, fault_of, plain, read
from tests.reference.mqcn_cases import value
from tests.reference.reader import Fault

checked = 0
for type_ in TYPES:
    rng = random.Random(type_)
    for data in [value(rng, type_) for _ in range(60)]:
        for cut in {len(data), len(data) - 1, len(data) // 2, 0}:
            for at_the_end in (False, True):
                buffer = place(data[: max(cut, 0)], at_the_end)
                expected = read(type_, data[: max(cut, 0)])
                got = fault_of(propvariant.decode, VT[type_], buffer, exact=False)
                fault_of(propvariant.size, VT[type_], buffer)
                fault_of(propvariant.view, VT[type_], buffer)
                assert (got if isinstance(got, Fault) else plain(type_, got)) == (
                    expected if isinstance(expected, Fault) else expected[0]
                )
                checked += 1
print(checked)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="needs mprotect")
def test_nothing_is_read_outside_a_value() -> None:
    assert int(run("-c", PROGRAM)) > 4000
