"""``proofs.csv``: the test of each row of the tables of ``docs/conformance.md`` on what is implemented."""

from __future__ import annotations

import ast
import csv
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "conformance.md"
HEADER = "| Section | Rule | Behaviour |"


def page_rows() -> Iterator[str]:
    """Protocol, section and rule of each row of a table of behaviours."""
    protocol, within = "", False
    for line in PAGE.read_text("utf-8").splitlines():
        if line.startswith("## "):
            protocol = line.removeprefix("## ").partition(":")[0]
        within = line == HEADER or (within and line.startswith("|"))
        if within and line != HEADER and not line.startswith("|---"):
            section, rule, _ = (cell.strip() for cell in line.strip("|").split(" | "))
            yield f"{protocol} {section}: {rule}"


def exists(test: str) -> bool:
    """Whether a test function has this name, in this file."""
    path, _, name = test.partition("::")
    tree = ast.parse((ROOT / path).read_text("utf-8"))
    return any(isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == name for node in tree.body)


def test_each_row_of_the_page_has_one_proof_and_each_proof_is_a_test() -> None:
    with (Path(__file__).parent / "proofs.csv").open(encoding="utf-8") as source:
        proofs = {row["page_row"]: row["test"] for row in csv.DictReader(source)}
    rows = list(page_rows())
    assert len(rows) >= 37
    proved = {row: [begin for begin in proofs if row.startswith(begin)] for row in rows}
    assert [row for row, found in proved.items() if len(found) != 1] == []
    assert proofs.keys() - {found[0] for found in proved.values()} == set()
    assert [test for test in proofs.values() if not exists(test)] == []
