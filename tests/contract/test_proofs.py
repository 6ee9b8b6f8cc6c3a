"""``proofs.csv``: the tests of each row of the tables of ``docs/conformance.md`` on behaviour and on decisions.

The rows of decisions on sessions have anchors, to which the manual links where code cites them.
"""

from __future__ import annotations

import ast
import csv
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "conformance.md"
BEHAVIOUR = "| Section | Rule | Behaviour |"
DECISIONS = "| Question | The text | Decision |"


def page_rows() -> Iterator[str]:
    """Protocol, section and rule of each row of a table of behaviours; protocol and question of each decision."""
    protocol, table = "", ""
    for line in PAGE.read_text("utf-8").splitlines():
        if line.startswith("## "):
            protocol = line.removeprefix("## ").partition(":")[0]
        if line in (BEHAVIOUR, DECISIONS):
            table = line
        elif not line.startswith("|"):
            table = ""
        elif table and not line.startswith("|---"):
            first, second, _ = (cell.strip() for cell in line.strip("|").split(" | "))
            yield f"{protocol} {first}: {second}" if table == BEHAVIOUR else f"{protocol} {first}"


def exists(test: str) -> bool:
    """Whether a test function has this name, in this file."""
    path, _, name = test.partition("::")
    tree = ast.parse((ROOT / path).read_text("utf-8"))
    return any(isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == name for node in tree.body)


def test_each_row_of_the_page_has_its_proofs_and_each_proof_is_a_test() -> None:
    with (Path(__file__).parent / "proofs.csv").open(encoding="utf-8") as source:
        proofs = [(row["page_row"], row["test"]) for row in csv.DictReader(source)]
    assert len(set(proofs)) == len(proofs)
    assert [test for _, test in proofs if not exists(test)] == []
    begins = {begin for begin, _ in proofs}
    rows = list(page_rows())
    assert len(rows) >= 71
    proved = {row: [begin for begin in begins if row.startswith(begin)] for row in rows}
    assert [row for row, found in proved.items() if len(found) != 1] == []
    assert begins - {found[0] for found in proved.values()} == set()


def test_decisions_that_the_package_cites_are_rows_of_the_page() -> None:
    sources = [path for path in (ROOT / "msmqwire").rglob("*") if path.suffix in (".py", ".pyx", ".pxd")]
    cited = {each.lower() for path in sources for each in re.findall(r"\bS\d{1,2}\b", path.read_text("utf-8"))}
    assert len(cited) > 40
    assert cited - set(re.findall(r'<a id="(\w+)"></a>', PAGE.read_text("utf-8"))) == set()
