"""Random schedules of loss, splits, timers and cut connections: each message arrives once and in order, none stalls."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.session.machine_ends import MachineReceiver, MachineSender
from tests.session.reference_ends import ReferenceReceiver, ReferenceSender
from tests.session.simulation import Network, Receiver, Sender, run

WINDOWS = (1, 2, 3, 7, 64, 200)
PAIRS: dict[str, Callable[[int, int], tuple[Sender, Receiver]]] = {
    "ours to ours": lambda sent, received: (MachineSender(sent), MachineReceiver(received)),
    "ours to the reference": lambda sent, received: (MachineSender(sent), ReferenceReceiver(received)),
    "the reference to ours": lambda sent, received: (ReferenceSender(sent), MachineReceiver(received)),
    "the reference to itself": lambda sent, received: (ReferenceSender(sent), ReferenceReceiver(received)),
}


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("seed", range(10))
def test_seeded_schedules(pair: str, seed: int) -> None:
    chance = random.Random(seed)
    windows = chance.choice(WINDOWS), chance.choice(WINDOWS)
    sender, receiver = PAIRS[pair](*windows)
    run(Network(sender, receiver, chance.randrange, windows[0]), chance.randrange(400))


@pytest.mark.parametrize("pair", PAIRS)
@given(data=st.data(), windows=st.tuples(st.sampled_from(WINDOWS), st.sampled_from(WINDOWS)))
def test_schedules(pair: str, data: st.DataObject, windows: tuple[int, int]) -> None:
    sender, receiver = PAIRS[pair](*windows)
    run(Network(sender, receiver, lambda count: data.draw(st.integers(0, count - 1)), windows[0]), 40)
