"""Cases of a parametrized test that only the long run has."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def long_cases(cases: Iterable[Any]) -> list[Any]:
    """Each case, a tuple where the test has several parameters, marked as long."""
    return [pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=pytest.mark.long) for case in cases]


def first_of(cases: Iterable[Any]) -> list[Any]:
    """The cases, of which the short run has the first."""
    first, *others = cases
    return [first, *long_cases(others)]
