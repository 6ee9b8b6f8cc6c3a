"""Counts that wrap (S9)."""

from __future__ import annotations

import pytest

from msmqwire.session.numbers import latest, on_wire


@pytest.mark.parametrize(
    ("number", "count", "expected"),
    [
        (0, 0, 0),
        (5, 5, 5),
        (4, 5, 4),
        (6, 5, None),
        (65535, 0, None),
        (65535, 5, None),
        (65535, 65536, 65535),
        (0, 65536, 65536),
        (1, 65536, None),
        (65530, 65540, 65530),
        (3, 65540, 65539),
        (4, 4 + 32767, 4),
        (4, 4 + 32768, None),
    ],
)
def test_latest(number: int, count: int, expected: int | None) -> None:
    assert latest(number, count) == expected


def test_on_wire() -> None:
    assert [on_wire(count) for count in (0, 65535, 65536, 65537)] == [0, 65535, 0, 1]
