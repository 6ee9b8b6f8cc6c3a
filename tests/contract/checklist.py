"""The rows of ``conformance.csv``, and the mark that ties a test of any module to the rows that it proves."""

from __future__ import annotations

import ast
import csv
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import pytest

Test = TypeVar("Test", bound=Callable[..., Any])

_TESTS = Path(__file__).parents[1]


class Row(NamedTuple):
    """One statement of the specifications, or one decision, that the package follows."""

    id: str
    level: str
    source: str
    statement: str


@cache
def rows() -> dict[str, Row]:
    """The checklist by id."""
    text = (Path(__file__).parent / "conformance.csv").read_text("utf-8")
    return {item["id"]: Row(**item) for item in csv.DictReader(text.splitlines())}


def row(*row_ids: str) -> Callable[[Test], Test]:
    """Mark a test as the test of these rows; the ids become part of its name."""
    if unknown := [each for each in row_ids if each not in rows()]:
        raise KeyError(f"{unknown[0]} is not a row of conformance.csv")

    def mark(test: Test) -> Test:
        marked: Test = pytest.mark.parametrize((), [pytest.param(id="+".join(row_ids))])(test)
        return marked

    return mark


def marked_rows() -> Iterator[tuple[str, str]]:
    """Every row id that marks a test, and the test; read from the source of all test modules, none is imported."""
    for path in sorted(_TESTS.rglob("test_*.py")):
        text = path.read_text("utf-8")
        for node in ast.walk(ast.parse(text if "row(" in text else "")):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
                name = f"{path.relative_to(_TESTS)}::{node.name}"
                yield from ((each, name) for decorator in node.decorator_list for each in _ids(decorator))


def _ids(decorator: ast.expr) -> list[str]:
    if isinstance(decorator, ast.Call) and ast.unparse(decorator.func).split(".")[-1] == "row":
        return [ast.literal_eval(each) for each in decorator.args]
    return []
