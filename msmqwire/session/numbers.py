"""The 16-bit counts of a session: [MS-MQQB] 3.1.1.4.

They wrap, 0 after 65535, and are compared serially (S9): a number is not above another one if it is less than half of
the range before it.
"""

from __future__ import annotations

__all__ = ["SERIAL_RANGE", "difference", "following", "is_at_most"]

SERIAL_RANGE = 1 << 16
_HALF = SERIAL_RANGE // 2


def following(number: int) -> int:
    """The number after ``number``."""
    return (number + 1) % SERIAL_RANGE


def difference(later: int, earlier: int) -> int:
    """How many numbers ``later`` is after ``earlier``, from 0 to 65535."""
    return (later - earlier) % SERIAL_RANGE


def is_at_most(number: int, limit: int) -> bool:
    """Whether ``number`` is ``limit`` or before it."""
    return difference(limit, number) < _HALF
