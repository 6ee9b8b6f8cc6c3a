"""No row of the checklist goes untested, and none is tested twice."""

from __future__ import annotations

import importlib
from pathlib import Path

from tests.contract.checklist import rows


def test_every_row_has_its_test() -> None:
    tested: list[str] = []
    for path in sorted(Path(__file__).parent.glob("test_*.py")):
        module = importlib.import_module(f"tests.contract.{path.stem}")
        tests = (item for name, item in vars(module).items() if name.startswith("test_"))
        tested += [test.row_id for test in tests if hasattr(test, "row_id")]
    assert len(tested) == len(set(tested))
    assert set(tested) == set(rows())
    assert len(tested) >= 90


def test_rows_are_whole() -> None:
    for row in rows().values():
        assert row.level in ("MUST", "SHOULD", "MAY", "DECISION")
        assert row.source
        assert row.statement
