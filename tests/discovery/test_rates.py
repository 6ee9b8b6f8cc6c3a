"""Token buckets: exact, and in bounded memory."""

from __future__ import annotations

import random
import tracemalloc
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msmqwire.discovery.rates import Rate, TokenBuckets

SECOND = 1_000_000_000


class Bucket:
    """A bucket as one describes it: tokens that drip in, up to so many."""

    def __init__(self, rate: Rate) -> None:
        self.rate, self.tokens, self.at = rate, Fraction(rate.burst), 0

    def take(self, now: int) -> bool:
        self.tokens = min(Fraction(self.rate.burst), self.tokens + Fraction(now - self.at, self.rate.interval))
        self.at = now
        if self.tokens < 1:
            return False
        self.tokens -= 1
        return True


RATES = st.builds(Rate, st.sampled_from((0.1, 1, 3, 100, 12_345.6)), st.integers(1, 20))
WAITS = st.lists(st.integers(0, 5) | st.integers(0, SECOND) | st.integers(0, 100 * SECOND), max_size=100)


@given(RATES, WAITS)
def test_gives_what_a_bucket_with_tokens_gives(rate: Rate, waits: list[int]) -> None:
    model, total, now = Bucket(rate), TokenBuckets(rate), 0
    networks = TokenBuckets(rate, prefix=24, capacity=1)
    for wait in waits:
        now += wait
        expected = model.take(now)
        assert total.take(now % 1_000, now) == expected
        assert networks.take(0x0A140119, now) == expected


def test_a_clock_that_does_not_begin_at_0() -> None:
    for start in (-5 * SECOND, 0, 10**18):
        bucket = TokenBuckets(Rate(1, 2))
        assert [bucket.take(0, start) for _ in range(3)] == [True, True, False]


@pytest.mark.parametrize(("per_second", "burst"), [(0, 1), (1e-320, 1), (-1, 1), (1e10, 1), (float("nan"), 1), (1, 0)])
def test_rates_that_are_none(per_second: float, burst: int) -> None:
    with pytest.raises(ValueError, match=r"a second|not 1 or more"):
        Rate(per_second, burst)


def test_the_network_answered_least_recently_is_forgotten() -> None:
    buckets = TokenBuckets(Rate(1, 1), prefix=32, capacity=3)
    assert all(buckets.take(address, address) for address in (1, 2, 3))
    assert buckets.take(1, 2 * SECOND)
    assert not buckets.take(2, 3)  # being refused does not count as use
    assert buckets.take(4, 2 * SECOND)
    assert len(buckets) == 3
    assert not buckets.take(3, 4)
    assert not buckets.take(1, 2 * SECOND)
    assert buckets.take(2, 4)  # the one that was forgotten


@pytest.mark.long
def test_memory_does_not_grow_with_the_number_of_sources() -> None:
    buckets = TokenBuckets(Rate(1, 1), prefix=24, capacity=1000)
    addresses = random.Random(7)
    tracemalloc.start()
    try:
        peaks = []
        for _ in range(2):
            for _ in range(50_000):
                buckets.take(addresses.getrandbits(32), 0)
            peaks.append(tracemalloc.get_traced_memory()[1])
        assert len(buckets) == 1000
        assert peaks[1] <= peaks[0] * 1.05
    finally:
        tracemalloc.stop()
