"""What ``declarations.py`` writes is committed: kernels are compiled with the names of the tables."""

from __future__ import annotations

import pytest

from declarations import NAME, PACKAGE, written
from msmqwire import mqcn, mqqb, mqsd
from msmqwire.columns import Table
from msmqwire.columns.fields import SIZES


def test_the_committed_files_are_what_the_tables_say() -> None:
    files = written()
    assert {*files} == {*PACKAGE.rglob(NAME)}
    for path, text in files.items():
        assert path.read_text("utf-8") == text, f"run `make build`, which writes {path.relative_to(PACKAGE)} anew"


@pytest.mark.parametrize("table", [mqsd.TOPOLOGY, mqqb.MESSAGES, mqqb.SESSIONS, mqcn.NOTIFICATIONS])
def test_the_fields_of_a_header_do_not_overlap(table: Table) -> None:
    for header in table.headers:
        end = 0
        for row in header.on_the_wire():
            if row.at >= 0:
                assert row.at >= end, row.name
                end = row.at + SIZES[row.type]


@pytest.mark.parametrize("table", [mqsd.TOPOLOGY, mqqb.MESSAGES, mqqb.SESSIONS, mqcn.NOTIFICATIONS])
def test_each_column_and_each_presence_bit_is_declared_once(table: Table) -> None:
    columns = [column.name for header in table.headers for column, _ in header.columns]
    assert tuple(columns) == tuple(column.name for column in table.columns)
    bits = list(table.presence_bits.values())
    assert bits == [2 << place for place in range(len(bits))]
    assert sum(bits) < 1 << 32
