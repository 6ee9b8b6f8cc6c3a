"""The oracle itself, against the golden vectors: an oracle that is wrong would bless a wrong kernel."""

from __future__ import annotations

import pytest

from tests.reference import mqsd
from tests.vectors import Vector, load

VECTORS = load("mqsd")


@pytest.mark.parametrize("vector", VECTORS, ids=str)
def test_reads_vector(vector: Vector) -> None:
    for outcome in vector.outcomes:
        got = mqsd.read(vector.data, strict=outcome.strict, transport=outcome.transport)
        row = mqsd.row(got)
        if outcome.fault is not None:
            assert got == outcome.fault
            assert [value for name, value in row.items() if name != "fault"] == [None] * 13
        else:
            assert outcome.packet is not None
            expected = {"version": 0, "reserved": 0, **outcome.packet}
            assert not isinstance(got, mqsd.Fault)
            assert got.reserved == expected.pop("reserved")
            assert got.violations == outcome.violations
            assert {name: row[name] for name in mqsd.COLUMNS if row[name] is not None} == expected


@pytest.mark.parametrize("vector", VECTORS, ids=str)
def test_writes_vector(vector: Vector) -> None:
    for outcome in vector.outcomes:
        if outcome.fault is not None:
            continue
        got = mqsd.read(vector.data, strict=outcome.strict, transport=outcome.transport)
        assert not isinstance(got, mqsd.Fault)
        if got.violations:
            with pytest.raises(ValueError, match="violations"):
                mqsd.write(got)
        else:
            written = mqsd.write(got)
            assert (written == vector.data) is vector.exact
            again = mqsd.row(mqsd.read(written, strict=True, transport=outcome.transport))
            assert again == mqsd.row(got) | {"trailing": None}  # which is not written


def test_vectors_are_named_once() -> None:
    names = [vector.name for vector in VECTORS]
    assert len(names) == len(set(names)) > 40
