"""One batch decoded into again and again, while Arrow consumers come and go."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from tests.columns.formats import FORMATS, Format
from tests.property import message_packets, notifications, strategies

# Examples, steps of each and payloads of a step: the oracle of replies takes the least time
USUAL = (20, 15, 12)
EFFORT = {"topology": (30, 20, 30)}
PAYLOADS = {
    "topology": strategies.payloads(),
    "notifications": notifications.payloads(),
    "messages": message_packets.payloads(),
    "sessions": message_packets.payloads(),
}


class Reuse(RuleBasedStateMachine):
    def __init__(self, kind: Format) -> None:
        super().__init__()
        self.kind = kind
        *_, self.most = EFFORT.get(str(kind), USUAL)
        self.batch = kind.decode_batch([])
        self.payloads: list[bytes | None] = []
        self.held: list[tuple[pa.Array, list[Any]]] = []

    @rule(data=st.data(), threads=st.integers(1, 2))
    def decode(self, data: st.DataObject, threads: int) -> None:
        payloads = data.draw(st.lists(st.none() | PAYLOADS[str(self.kind)], max_size=self.most))
        if self.held:
            with pytest.raises(BufferError):
                self.kind.decode_batch(payloads, out=self.batch, threads=threads)
        else:
            assert self.kind.decode_batch(payloads, out=self.batch, threads=threads) is self.batch
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
        self.kind.assert_columns(self.batch, self.kind.expected(self.payloads))
        for column, values in self.held:
            assert column.to_pylist() == values


@pytest.mark.parametrize("kind", FORMATS, ids=str)
def test_reuse(kind: Format) -> None:
    examples, steps, _ = EFFORT.get(str(kind), USUAL)
    run_state_machine_as_test(lambda: Reuse(kind), settings=settings(max_examples=examples, stateful_step_count=steps))
