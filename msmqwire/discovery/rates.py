"""How often a server may answer, and with how many bytes.

Token buckets are exact, one in total and one for each network, in bounded memory. The bytes of the last ten seconds are
exact too; their memory is bounded by the answers that the total rate allows in that time.

A bucket is stored as one number, the time at which it will be full, so a full bucket needs no entry. Times are
nanoseconds of a monotonic clock, such as ``time.monotonic_ns``.
"""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from dataclasses import dataclass

_SECOND = 1_000_000_000
#: Nanoseconds in which the bytes to an address and to a network are counted.
WINDOW = 10 * _SECOND


@dataclass(frozen=True, slots=True)
class Rate:
    """A number of answers per second in the long run, and a number at once after a pause.

    Raises
    ------
    ValueError
        ``per_second`` is not from 0.000000001 to 1,000,000,000, or ``burst`` is below 1.
    """

    per_second: float
    burst: int

    def __post_init__(self) -> None:
        if not 0 < self.per_second <= _SECOND:
            raise ValueError(f"{self.per_second} a second is not above 0 and at most {_SECOND:,}")
        if self.per_second < 1 / _SECOND:  # of 1e-320, the time between two answers is no number
            raise ValueError(f"{self.per_second} a second is below {1 / _SECOND:g}")
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


class TokenBuckets:
    """A token bucket for each network of ``prefix`` bits, initially full; with prefix 0 one for all addresses.

    There are at most ``capacity`` buckets. Beyond that, the bucket that least recently gave a token is dropped, which
    fills it; it is one of the fullest. Forged source addresses therefore take no more memory, and the bucket for all
    addresses still limits the answers. ``kept`` tokens of each bucket are for privileged takers only.
    """

    def __init__(self, rate: Rate, *, prefix: int = 0, capacity: int = 1, kept: int = 0) -> None:
        self._interval, self._patience = rate.interval, rate.patience
        self._shift = 32 - prefix
        self._capacity = capacity
        self._full_at: OrderedDict[int, int] = OrderedDict()
        self.keep(kept)

    def __len__(self) -> int:
        return len(self._full_at)

    def keep(self, tokens: int) -> None:
        """Have ``tokens`` for privileged takers only from now on."""
        self._kept = tokens * self._interval

    def take(self, address: int, now: int, *, privileged: bool = False) -> bool:
        """Take a token of the network that contains an IPv4 address; False if it has none."""
        network = address >> self._shift
        full_at = self._full_at.get(network, now)
        # No bucket is emptier than empty, unless the clock went back: that must not refuse for as long
        full_at = max(now, min(full_at, now + self._patience + self._interval))
        if full_at - now > self._patience - (0 if privileged else self._kept):
            self._full_at[network] = full_at
            return False
        self._full_at[network] = full_at + self._interval
        self._full_at.move_to_end(network)
        if len(self._full_at) > self._capacity:
            self._full_at.popitem(last=False)
        return True


class ByteWindow:
    """The bytes sent in the last ten seconds to each source address and to each network of ``prefix`` bits."""

    def __init__(self, *, prefix: int) -> None:
        self._shift = 32 - prefix
        self._sent: deque[tuple[int, int, int]] = deque()  # time, address, bytes
        self._by_address: Counter[int] = Counter()
        self._by_network: Counter[int] = Counter()

    def __len__(self) -> int:
        return len(self._sent)

    def to_address(self, address: int, now: int) -> int:
        """The bytes sent to an IPv4 address."""
        self._forget(now)
        return self._by_address[address]

    def to_network(self, address: int, now: int) -> int:
        """The bytes sent to the network that contains an IPv4 address."""
        self._forget(now)
        return self._by_network[address >> self._shift]

    def add(self, address: int, size: int, now: int) -> None:
        """Count an answer."""
        self._sent.append((now, address, size))
        self._by_address[address] += size
        self._by_network[address >> self._shift] += size

    def _forget(self, now: int) -> None:
        sent = self._sent
        while sent and sent[0][0] <= now - WINDOW:
            _, address, size = sent.popleft()
            for counter, key in ((self._by_address, address), (self._by_network, address >> self._shift)):
                counter[key] -= size
                if not counter[key]:
                    del counter[key]
