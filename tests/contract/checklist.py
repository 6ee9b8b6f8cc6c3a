"""The rows of ``conformance.csv``, and the mark that ties a test to one of them."""

from __future__ import annotations

import csv
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import pytest

Test = TypeVar("Test", bound=Callable[..., Any])


class Row(NamedTuple):
    """One statement that the package must live up to."""

    id: str
    level: str
    source: str
    statement: str


@cache
def rows() -> dict[str, Row]:
    """The checklist by id."""
    text = (Path(__file__).parent / "conformance.csv").read_text("utf-8")
    return {item["id"]: Row(**item) for item in csv.DictReader(text.splitlines())}


def row(row_id: str) -> Callable[[Test], Test]:
    """Mark a test as the one of a row: the row's id becomes part of the test's."""
    if row_id not in rows():
        raise KeyError(f"{row_id} is not a row of conformance.csv")

    def mark(test: Test) -> Test:
        test.row_id = row_id  # type: ignore[attr-defined]
        marked: Test = pytest.mark.parametrize((), [pytest.param(id=row_id)])(test)
        return marked

    return mark
