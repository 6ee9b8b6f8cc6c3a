"""How much a benchmark run measures."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Scale:
    """How much is measured: enough to leave every cache, or just enough to run every line."""

    rows: int
    rounds: int
    seconds: float
    """Contenders that take long have as many rounds as fit in so many seconds, and ``slow_rounds`` at least."""
    slow_rounds: int
    largest_sample: int
    spark_rows: int
    spark_rounds: int

    def sample(self, wanted: int) -> int:
        """The packets a slow peer is given; 0 means all of them."""
        return min(wanted or self.rows, self.rows if not wanted else self.largest_sample)


FULL = Scale(
    rows=1_000_000,
    rounds=51,
    seconds=10,
    slow_rounds=7,
    largest_sample=100_000,
    spark_rows=1_000_000,
    spark_rounds=3,
)
QUICK = Scale(
    rows=100_000,
    rounds=9,
    seconds=1,
    slow_rounds=3,
    largest_sample=1_000,
    spark_rows=20_000,
    spark_rounds=2,
)
