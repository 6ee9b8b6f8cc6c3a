"""The counts of a session on the wire: [MS-MQQB] 3.1.1.4.

A count has 16 bits there: 0 follows 65535, and numbers are compared serially (S9). A session keeps its counts whole and
finds for a number of the peer the message that it means.
"""

from __future__ import annotations

_RANGE = 1 << 16
_HALF = _RANGE // 2


def on_wire(count: int) -> int:
    """Return a count as its field has it."""
    return count % _RANGE


def latest(number: int, count: int) -> int | None:
    """Return the latest count, at most ``count``, with the field ``number``; None if ``number`` is above it (S9)."""
    behind = (count - number) % _RANGE
    return count - behind if behind < _HALF and behind <= count else None
