"""GUIDs, and what a network does to the bytes of a packet."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

from hypothesis import strategies as st

guids = st.binary(min_size=16, max_size=16).map(lambda data: uuid.UUID(bytes_le=data))


def edit(draw: st.DrawFn, data: bytearray, numbers: Sequence[int], places: Sequence[int] = ()) -> None:
    """Up to three edits: a truncation, bytes at the end, one of the numbers (at one of the places), a byte changed."""
    for _ in range(draw(st.integers(0, 3))):
        kind = draw(st.integers(0, 3))
        at = draw(st.integers(0, len(data)))
        if kind == 0:
            del data[at:]
        elif kind == 1:
            data += draw(st.binary(max_size=20))
        elif kind == 2:
            at = draw(st.sampled_from([at, *(place for place in places if place + 4 <= len(data))]))
            data[at : at + 4] = draw(st.sampled_from(numbers)).to_bytes(4, "little")
        elif at < len(data):
            data[at] = draw(st.integers(0, 255))
