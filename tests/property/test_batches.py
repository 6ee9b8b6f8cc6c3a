"""Batches of every format: many payloads against the oracle, round trips, and a batch that is written repeatedly."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from tests.columns.formats import FORMATS, Format, each_format
from tests.columns.rows import assert_columns, contents
from tests.property.strategies import PACKETS, PAYLOADS

# Examples, steps of each and payloads of a step: the oracle of replies takes the least time
USUAL = (20, 15, 12)
EFFORT = {"topology": (30, 20, 30)}
WAYS = [(kind, way) for kind in FORMATS for way in kind.ways()]
#: By what the number of examples is divided: the short run takes a part of them.
each_effort = pytest.mark.parametrize("part", [4, pytest.param(1, marks=pytest.mark.long)])


@pytest.mark.parametrize(("kind", "way"), WAYS, ids=str)
@pytest.mark.parametrize("count", [2_000, pytest.param(50_000, marks=pytest.mark.long)])
def test_batches_and_the_oracle_agree(kind: Format, count: int, way: dict[str, Any]) -> None:
    payloads = kind.cases(count // (len(kind.transports) or 1), 1 + way["strict"])
    for start in range(0, len(payloads), 10_000):
        some = payloads[start : start + 10_000]
        joined, offsets = b"".join(some), np.cumsum([0, *map(len, some)])
        batch = kind.assert_rows(some, kind.decode_batch(joined, offsets=offsets, **way), **way)
        again = kind.decode_batch(some, **way)
        assert again.to_arrow().equals(batch.to_arrow())
        assert np.array_equal(again.faults, batch.faults)


@each_effort
@each_format
def test_any_batch_is_what_the_oracle_says(kind: Format, part: int) -> None:
    @settings(max_examples=100 // part)
    @given(data=st.data())
    def agree(data: st.DataObject) -> None:
        many = data.draw(st.lists(st.none() | PAYLOADS[str(kind)], max_size=12))
        strict = data.draw(st.booleans())
        for given_as in (many, pa.array(many, pa.binary()), pa.array([b"x", *many], pa.binary_view())[1:]):
            kind.assert_rows(many, kind.decode_batch(given_as, strict=strict), strict=strict)

    agree()


@each_effort
@each_format
def test_batches_round_trip(kind: Format, part: int) -> None:

    @settings(max_examples=60 // part)
    @given(many=st.lists(PACKETS[str(kind)], max_size=6))
    def agree(many: list[Any]) -> None:
        written = contents(kind.encode_batch(many))
        assert written == list(map(kind.codec.encode, many))
        batch = kind.assert_rows(written, strict=True)
        assert contents(kind.encode_batch(batch)) == written

    agree()


class Reuse(RuleBasedStateMachine):
    def __init__(self, kind: Format) -> None:
        super().__init__()
        self.kind = kind
        *_, self.most = EFFORT.get(str(kind), USUAL)
        self.batch = kind.decode_batch([])
        self.payloads: list[bytes | None] = []
        self.held: list[tuple[pa.Array[Any], list[Any]]] = []

    @rule(data=st.data())
    def decode(self, data: st.DataObject) -> None:
        payloads = data.draw(st.lists(st.none() | PAYLOADS[str(self.kind)], max_size=self.most))
        if self.held:
            with pytest.raises(BufferError):
                self.kind.decode_batch(payloads, out=self.batch)
        else:
            assert self.kind.decode_batch(payloads, out=self.batch) is self.batch
            self.payloads = payloads

    @rule(data=st.data())
    def hold(self, data: st.DataObject) -> None:
        column = self.batch.to_arrow()[data.draw(st.sampled_from(self.kind.table.names))]
        self.held.append((column, column.to_pylist()))

    @precondition(lambda self: self.held)
    @rule(data=st.data())
    def let_go(self, data: st.DataObject) -> None:
        del self.held[data.draw(st.integers(0, len(self.held) - 1))]

    @invariant()
    def what_is_held_stays_as_it_was(self) -> None:
        assert_columns(self.batch, self.kind.expected(self.payloads))
        for column, values in self.held:
            assert column.to_pylist() == values


@each_effort
@each_format
def test_reuse(kind: Format, part: int) -> None:
    examples, steps, _ = EFFORT.get(str(kind), USUAL)
    effort = settings(max_examples=examples // part, stateful_step_count=steps)
    run_state_machine_as_test(lambda: Reuse(kind), settings=effort)  # type: ignore[arg-type]  # it takes any factory
