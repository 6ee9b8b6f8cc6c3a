"""Times as people write them, to the nanosecond that captures have."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

__all__ = ["nanoseconds", "parse_time"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def nanoseconds(time: datetime) -> int:
    """Since 1970, of a time with a zone."""
    return (time - _EPOCH) // timedelta(microseconds=1) * 1000


def parse_time(text: str) -> int:
    """A time of ISO 8601 as nanoseconds since 1970; without a zone it is UTC, as times are shown.

    Raises
    ------
    ValueError
        It is none, or none that a capture can have.
    """
    # datetime would drop what is below microseconds, so the fraction is taken out first
    fraction = re.search(r"(?<=:\d\d)[.,](\d{1,9})(?!\d)", text)
    whole = text.replace(fraction[0], "", 1) if fraction else text
    try:
        if set(whole) & set(".,"):
            raise ValueError
        time = datetime.fromisoformat(whole)
    except ValueError:
        raise ValueError(
            f"{text!r} is not a time of ISO 8601, as in 2024-03-04, 2024-03-04T08:00 or 2024-03-04T08:00:00.25+01:00"
        ) from None
    below = int((fraction[1] if fraction else "").ljust(9, "0"))
    found = nanoseconds(time if time.tzinfo else time.replace(tzinfo=UTC)) + below
    if not -(1 << 63) <= found < 1 << 63:
        raise ValueError(f"{text!r} is not between 1678 and 2262, as times of captures are")
    return found
