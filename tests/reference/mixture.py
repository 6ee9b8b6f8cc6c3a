"""A seeded mixture of payloads. Plain ``random`` with a seed: the same number means the same bytes everywhere."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

Maker = Callable[[random.Random], bytes]


def mixture(count: int, seed: int, broken: float, valid: Maker, mutated: Maker, noise: Maker) -> Iterator[bytes]:
    """``count`` payloads, of which the share ``broken`` is mutated or, a tenth of it, noise."""
    rng = random.Random(seed)
    for _ in range(count):
        choice = rng.random()
        yield valid(rng) if choice >= broken else mutated(rng) if choice < 0.9 * broken else noise(rng)
