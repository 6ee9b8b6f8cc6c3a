"""The oracle itself, against the golden vectors: an oracle that is wrong would bless a wrong kernel."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest

from tests.reference import mqcn, propvariant
from tests.reference.mqcn_cases import UNKNOWN, cases, value
from tests.reference.reader import Fault, placeless
from tests.vectors import Vector, load

VECTORS = load("mqcn")


def plain(row: dict[str, Any]) -> dict[str, Any]:
    """A row as a golden vector says it: without nulls and places, a property as its PROPID and value."""
    found = {name: value for name, value in placeless(row).items() if value is not None}
    if "properties" in found:
        found["properties"] = tuple(
            (item["id"], *(item[name] for name in mqcn.MEMBERS if item[name] is not None))
            for item in found["properties"]
        )
    return found


@pytest.mark.parametrize("vector", VECTORS, ids=str)
def test_reads_vector(vector: Vector) -> None:
    for outcome in vector.outcomes:
        got = mqcn.read(vector.data, strict=outcome.strict)
        if outcome.fault is not None:
            assert got == outcome.fault
            assert [row["fault"] for row in mqcn.rows(got)] == [outcome.fault]
            continue
        assert outcome.packet is not None
        assert not isinstance(got, Fault)
        assert list(map(plain, mqcn.rows(got))) == outcome.packet["rows"]
        assert got.found == outcome.violations


def test_vectors_are_named_once() -> None:
    names = [vector.name for vector in VECTORS]
    assert len(names) == len(set(names)) > 130


def test_places_of_properties() -> None:
    """Values follow each other without a gap, from behind the PROPIDs to the end of their update."""
    for data in cases(500, seed=9, broken=0):
        message = mqcn.read(data)
        assert not isinstance(message, Fault)
        for update in message.updates:
            for item, following in zip(update.properties, update.properties[1:], strict=False):
                assert item.offset + item.size == following.offset
            for item in update.properties:
                end = item.offset + item.size
                assert propvariant.read(item.type, data, item.offset) == (item.value, end)


def test_the_table_of_propids() -> None:
    rows = propvariant.propids()
    assert len(rows) == 186
    assert len({(row.object, row.number) for row in rows}) == 186
    assert len(propvariant.TYPE_OF) == 153
    assert set(propvariant.TYPE_OF.values()) <= set(propvariant.TYPES)
    assert not set(UNKNOWN) & set(propvariant.TYPE_OF)


@pytest.mark.parametrize("type_", propvariant.TYPES)
def test_values_anywhere(type_: str) -> None:
    rng = random.Random(type_)
    for _ in range(200):
        data = value(rng, type_)
        read, end = propvariant.read(type_, b"xyz" + data + b"!", 3)
        assert end == 3 + len(data)
        assert propvariant.read(type_, data) == (read, len(data))


@pytest.mark.long
def test_the_cases_reach_every_outcome() -> None:
    """A gate proves that it checked something: every fault, violation and PROPID of MQCN is among the cases."""
    found: Counter[Any] = Counter()
    for broken in (0, 1):
        for data in cases(15_000, seed=1, broken=broken):
            outcome = mqcn.read(data)
            if isinstance(outcome, Fault):
                found[outcome.code, outcome.field.partition("[")[0]] += 1
                continue
            found.update(outcome.found or ("fine",))
            found.update(item.id for update in outcome.updates for item in update.properties)
    fields = (
        "Version", "NumberOfUpdateNotifications", "Command", "UseGuid", "GuidIdentifier", "GuidMasterId", "Reserved",
        "NumberOfProperties", "PropertyId", "PropertyValue",
    )  # fmt: skip
    assert set(found) == {
        *(("truncated", field) for field in fields),
        ("bad_version", "Version"),
        ("bad_count", "NumberOfUpdateNotifications"),
        ("bad_command", "Command"),
        ("bad_use_guid", "UseGuid"),
        ("unknown_property", "PropertyId"),
        ("bad_count", "PropertyValue"),
        *(("bad_terminator", field) for field in ("PathName", "PropertyValue")),
        *(("bad_text", field) for field in ("NotificationBody", "Event", "ObjectGuid", "DomainController")),
        "fine",
        *mqcn.VIOLATIONS,
        *propvariant.TYPE_OF,
    }
    assert min(found.values()) >= 10, found.most_common()[-5:]
