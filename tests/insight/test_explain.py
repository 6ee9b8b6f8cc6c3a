"""Explanations: every name that a table can show has one."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from msmqwire.capture import CAPTURE, TABLES
from msmqwire.insight import SECTIONS
from msmqwire.insight.explain import explain
from msmqwire.insight.rules import RULES
from msmqwire.mqqb.message.classes import MESSAGE_CLASSES
from msmqwire.notification.schema import JUDGEMENT
from msmqwire.properties import PROPERTIES
from tests.cli.support import run


def test_every_message_class_is_explained_by_name_and_number() -> None:
    for number, name in MESSAGE_CLASSES.items():
        assert [each for each in explain(name) if each.kind == "message class"] == explain(hex(number))


@pytest.mark.parametrize("name", TABLES)
def test_every_name_of_a_table_is_explained(name: str) -> None:
    table = TABLES[name].table
    assert tuple(violation for violation, _ in table.rules) == table.violation_names
    assert all("[MS-" in rule for _, rule in table.rules)
    for kind, names in (("violation", table.violation_names), ("column", table.names), ("field", table.fields)):
        for each in names:
            assert [found.where for found in explain(each) if found.kind == kind].count(name) == 1


def test_what_belongs_to_every_table_and_to_commands_is_explained() -> None:
    for name, kind in TABLES.items():
        (table,) = (each for each in explain(name) if each.kind == "table")
        assert (table.sentence, table.section) == (", ".join(kind.table.names), kind.table.section)
    for column in CAPTURE.columns:
        (found,) = (each for each in explain(column.name) if each.where == "every table")
        assert found.sentence == f"{column.type.name}: {column.meaning}"
    for section in SECTIONS:
        assert [each.sentence for each in explain(section) if each.kind == "section of a summary"] == [
            SECTIONS[section].about
        ]
    (found,) = explain("nack_q_exceed_quota")
    assert found.sentence == "MessageClass 0x8003: the destination queue is full: its quota is exceeded"


def test_a_column_of_few_values_names_them() -> None:
    (found,) = explain("delivery_mode")[1:]
    assert found.sentence == "string: UserHeader.Flags.DM; null if neither; one of `express` (0), `recoverable` (1)"
    assert "one of" not in explain("body_type_name")[0].sentence  # it has 67


def test_properties_and_rules() -> None:
    for row in PROPERTIES:
        assert any(found.section == row.section for found in explain(row.name))
        found = explain(str(row.number))
        assert row.name in {each.name for each in found}
        assert all(each.sentence.startswith(f"PROPID {row.number}, ") for each in found)
    assert all(explain(rule.name) for rule in RULES)
    assert explain("q_quota") == explain("PROPID_Q_QUOTA")
    assert explain("nothing at all") == []


@pytest.mark.parametrize("column", JUDGEMENT, ids=lambda column: column.name)
def test_every_value_of_a_judgement_is_explained(column: Any) -> None:
    for value in column.type.names:
        (found,) = (each for each in explain(value) if each.kind == column.name and each.where == "notifications")
        assert found.section == "[MS-MQCN] 3.2.5"
        assert found.sentence
    assert [each.sentence for each in explain("sender_type")] == ["SenderIdentifierType is not QueueManagerIdentifier"]


def test_the_command() -> None:
    status, output, _ = run("explain", "trailing_bytes", "105")
    assert status == 0
    assert "violation trailing_bytes (topology): the broken rule: nothing follows the last field of a reply" in output
    assert "property PROPID_Q_QUOTA (Queue): PROPID 105, VT_UI4 ([MS-MQMQ] 2.3.1.5)" in output
    found = [json.loads(line) for line in run("explain", "hop_count", "-T", "json")[1].splitlines()]
    assert {each["kind"] for each in found} == {"column", "violation"}
    status, _, errors = run("explain", "hop_cuont")
    assert (status, "did you mean hop_count" in errors) == (1, True)


def test_names_of_packets_need_no_pyarrow() -> None:
    program = (
        "import sys; sys.modules['pyarrow'] = None; from msmqwire.cli import main; "
        "sys.exit(main(['explain', 'bad_terminator', 'PROPID_Q_QUOTA', '0x8002']))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (done.returncode, len(done.stdout.splitlines())) == (0, 3), done.stderr
