"""How often a server may answer: exact token buckets, one in total and one for each network, in bounded memory.

A bucket is stored as one number, the time at which it will be full, so a full bucket needs no entry. Times are
nanoseconds of a monotonic clock, such as ``time.monotonic_ns``.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

__all__ = ["NetworkBuckets", "Rate", "TokenBucket"]

_SECOND = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Rate:
    """A number of answers per second in the long run, and a number at once after a pause.

    Raises
    ------
    ValueError
        ``per_second`` is not above 0 and at most 1,000,000,000, or ``burst`` is below 1.
    """

    per_second: float
    burst: int

    def __post_init__(self) -> None:
        if not 0 < self.per_second <= _SECOND:
            raise ValueError(f"{self.per_second} a second is not above 0 and at most {_SECOND:,}")
        if self.burst < 1:
            raise ValueError(f"a burst of {self.burst} is not 1 or more")

    @property
    def interval(self) -> int:
        """Nanoseconds in which a bucket gains one token."""
        return round(_SECOND / self.per_second)

    @property
    def patience(self) -> int:
        """How far from full, in nanoseconds, a bucket with one token may be."""
        return (self.burst - 1) * self.interval


class TokenBucket:
    """One bucket, initially full; ``kept`` of its tokens are for privileged takers only."""

    def __init__(self, rate: Rate, kept: int = 0) -> None:
        self._interval, self._patience = rate.interval, rate.patience
        self._full_at: int | None = None
        self.keep(kept)

    def keep(self, tokens: int) -> None:
        """Have ``tokens`` for privileged takers only from now on."""
        self._kept = tokens * self._interval

    def take(self, now: int, *, privileged: bool = False) -> bool:
        """Take a token; False if there is none."""
        full_at = now if self._full_at is None or self._full_at < now else self._full_at
        # No bucket is emptier than empty, unless the clock went back: that must not refuse for as long
        self._full_at = full_at = min(full_at, now + self._patience + self._interval)
        if full_at - now > self._patience - (0 if privileged else self._kept):
            return False
        self._full_at += self._interval
        return True


class NetworkBuckets:
    """A bucket for each network, at most ``capacity`` of them.

    Beyond that, the bucket that least recently gave a token is dropped, which fills it; it is one of the fullest.
    Forged source addresses therefore take no more memory, and the bucket for all networks still limits the answers.
    """

    def __init__(self, rate: Rate, *, prefix: int, capacity: int) -> None:
        self._interval, self._patience = rate.interval, rate.patience
        self._shift = 32 - prefix
        self._capacity = capacity
        self._full_at: OrderedDict[int, int] = OrderedDict()

    def __len__(self) -> int:
        return len(self._full_at)

    def take(self, address: int, now: int) -> bool:
        """Take a token of the network that contains an IPv4 address; False if it has none."""
        network = address >> self._shift
        full_at = self._full_at.get(network, now)
        full_at = max(now, min(full_at, now + self._patience + self._interval))
        if full_at - now > self._patience:
            self._full_at[network] = full_at
            return False
        self._full_at[network] = full_at + self._interval
        self._full_at.move_to_end(network)
        if len(self._full_at) > self._capacity:
            self._full_at.popitem(last=False)
        return True
