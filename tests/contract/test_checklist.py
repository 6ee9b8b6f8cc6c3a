"""Every row of the checklist has one test."""

from __future__ import annotations

from collections import Counter

from tests.contract.checklist import marked_rows, rows


def test_every_row_has_its_test() -> None:
    tested = Counter(row_id for row_id, _ in marked_rows())
    assert tested == dict.fromkeys(rows(), 1)
    assert len(tested) >= 90


def test_rows_are_complete() -> None:
    for row in rows().values():
        assert row.level in ("MUST", "SHOULD", "MAY", "DECISION")
        assert row.source
        assert row.statement
