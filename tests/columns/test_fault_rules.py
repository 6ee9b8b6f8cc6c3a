"""The manual lists the faults that each decoder finds, and no others."""

from __future__ import annotations

import pytest

from msmqwire.columns import Table
from msmqwire.formatname.schema import FORMAT_NAMES
from msmqwire.wire.codes import FAULT_NAMES, FAULTS
from tests.columns.formats import FORMATS, MESSAGES, NOTIFICATIONS, SESSIONS, TOPOLOGY, Format

#: A reader of captures finds it, no decoder: bytes of a stream in which no packet begins.
OF_CAPTURES = {("bad_signature", "BaseHeader")}


def listed(table: Table) -> set[tuple[str, str]]:
    """The code and the field of each fault; an empty field for all of them."""
    return {
        (code, field) for rule in table.faults for code in rule.codes.split(", ") for field in rule.fields.split(", ")
    }


def found(kind: Format) -> set[tuple[str, str]]:
    """The codes and fields of the faults of the vectors, of their beginnings, and of random packets."""
    payloads = kind.cases(4 * kind.count, 7)
    for vector in kind.vectors:
        payloads.append(vector.data)
        for size in range(min(len(vector.data), 2_000)):
            payloads.append(vector.data[:size])
            # A message whose PacketSize is that of its beginning
            payloads.append(vector.data[:8] + size.to_bytes(4, "little") + vector.data[12:size])
    faults: set[tuple[str, str]] = set()
    for way in kind.ways():
        if not way["strict"]:
            entries = kind.decode_batch(payloads, **way).faults
            pairs = set(zip(entries["code"].tolist(), entries["field"].tolist(), strict=True))
            faults |= {(FAULT_NAMES[code], kind.table.fields[field]) for code, field in pairs}
    return faults


@pytest.mark.parametrize(
    "kinds", [(TOPOLOGY,), (NOTIFICATIONS,), (MESSAGES, SESSIONS)], ids=lambda kinds: str(kinds[0])
)
def test_listed_faults_are_those_of_the_decoder(kinds: tuple[Format, ...]) -> None:
    of_all_fields = {code for code, field in listed(kinds[0].table) if not field}
    faults = {fault for kind in kinds for fault in found(kind) if fault[0] not in of_all_fields}
    assert faults == {fault for fault in listed(kinds[0].table) if fault[1]} - OF_CAPTURES


@pytest.mark.parametrize("table", [*(kind.table for kind in FORMATS), FORMAT_NAMES], ids=lambda table: table.name)
def test_listed_faults_have_names_of_the_table(table: Table) -> None:
    assert listed(table)
    assert {code for code, _ in listed(table)} <= FAULTS.keys()
    assert {field for _, field in listed(table) if field} <= set(table.fields)
