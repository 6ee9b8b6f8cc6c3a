"""Settings are checked when they are made."""

from __future__ import annotations

from typing import Any

import pytest

from msmqwire.session import Settings


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("window_size", 0),
        ("window_size", 65536),
        ("ack_wait_timeout", 19_999),
        ("ack_wait_timeout", 120_001),
        ("ack_wait_multiple", 3),
        ("initialization_timeout", 0),
        ("cleanup_timeout", -1.0),
        ("retry_timeout", 0.0),
        ("max_packet_size", 0),
        ("max_packet_size", (4 << 20) + 1),
        ("max_unacknowledged_bytes", 0),
    ],
)
def test_values_that_are_refused(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f"{name} is {value}"):
        Settings(**{name: value})
