"""``musts.csv``: what the sections on message packets require of each field, and what the decoder makes of a breach."""

from __future__ import annotations

import csv
from pathlib import Path

from msmqwire import mqqb
from msmqwire.mqqb.rules import RULES
from msmqwire.wire.codes import FAULT_NAMES
from tests.vectors import load

with (Path(__file__).parent / "musts.csv").open(encoding="utf-8") as source:
    ROWS = list(csv.DictReader(source))
OUTCOMES = [row["outcome"].partition(": ") for row in ROWS]
TABLES = {"messages": mqqb.MESSAGES, "sessions": mqqb.SESSIONS}
NAMES = {name for table in TABLES.values() for name in table.violation_names}


def test_every_rule_has_an_outcome() -> None:
    assert {kind for kind, _, _ in OUTCOMES} == {"violation", "fault", "not judged"}
    assert {detail.partition(",")[0] for kind, _, detail in OUTCOMES if kind == "violation"} == NAMES
    faults = {outcome.fault[0] for vector in load("mqqb") for outcome in vector.outcomes if outcome.fault}
    assert {detail for kind, _, detail in OUTCOMES if kind == "fault"} <= faults <= set(FAULT_NAMES)
    assert all(detail for _, _, detail in OUTCOMES)
    assert len({(row["field"], row["rule"]) for row in ROWS}) == len(ROWS)


def test_every_violation_has_its_rule_and_a_golden_packet() -> None:
    assert set(RULES) == NAMES
    found = {
        (vector.table, name) for vector in load("mqqb") for outcome in vector.outcomes for name in outcome.violations
    }
    assert found == {(name, violation) for name, table in TABLES.items() for violation in table.violation_names}
