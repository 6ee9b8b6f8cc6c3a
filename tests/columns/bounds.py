"""Read payloads of formats against guard pages; prints the number of payloads.

Run as ``python -m tests.columns.bounds EVERY FORMAT...``: of the payloads, one in ``EVERY`` is read.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow as pa

from msmqwire import mqcn, mqqb, mqsd
from msmqwire.columns import FaultEntry
from msmqwire.errors import DecodeError
from tests.columns.formats import FORMATS, Format
from tests.columns.guard_pages import place, place_array

CODECS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], bytes]]] = {
    "topology": (mqsd.decode, mqsd.encode),
    "notifications": (mqcn.decode, mqcn.encode),
    "messages": (mqqb.decode, mqqb.encode),
    "sessions": (mqqb.decode, mqqb.encode),
}


def payloads_of(kind: Format, every: int) -> list[bytes]:
    """Truncated payloads, complete ones, and ones whose PacketSize ends a truncated packet; one in ``every``."""
    whole = [data for data in (*kind.packets, *kind.whole) if len(data) < 10_000]
    payloads = [data[:size] for data in whole for size in range(0, len(data) + 1, 1 + len(data) // 25)]
    if str(kind) in ("messages", "sessions"):
        payloads += [
            data[:8] + size.to_bytes(4, "little") + data[12:size]
            for data in whole
            for size in range(16, len(data), 1 + len(data) // 20)
        ]
    return [*payloads, *whole][::every] + kind.cases(-(-600 // every), 77)


def decoded(kind: Format, payload: pa.Buffer, fault: FaultEntry | None) -> Any:
    """The packet, or None if the payload has the fault; ``mqqb.decode`` reads packets of either table."""
    try:
        return CODECS[str(kind)][0](payload)
    except DecodeError as error:
        numbers = error.code, error.field, error.offset, error.value, error.needed
        if kind.table not in (mqqb.MESSAGES, mqqb.SESSIONS) and fault != numbers:
            raise
        return None


def read_one(kind: Format, data: bytes, at_the_end: bool, batch: Any) -> None:
    """Decode, show and encode a payload, as a packet and as a batch."""
    payload = place(data, at_the_end)
    kind.decode_batch(place_array(data, at_the_end), out=batch)
    kind.look(batch)
    batch.__arrow_c_array__()
    packet = decoded(kind, payload, batch.fault(0))
    if packet is None:
        return
    assert batch.fault(0) is None or kind.table in (mqqb.MESSAGES, mqqb.SESSIONS)
    repr(packet)
    hash(packet)
    if not packet.violations and batch.fault(0) is None:
        assert bytes(kind.encode_batch(batch)[0] or b"") == CODECS[str(kind)][1](packet)


def read_many(kind: Format, payloads: list[bytes], at_the_end: bool) -> None:
    """Decode a column of payloads and compare its rows with the oracle."""
    joined = b"".join(payloads)
    offsets = np.cumsum([0, *map(len, payloads)]).astype(np.int32)
    column = pa.Array.from_buffers(
        pa.binary(), len(payloads), [None, pa.py_buffer(offsets.tobytes()), place(joined, at_the_end)]
    )
    batch = kind.assert_rows(payloads, kind.decode_batch(column))
    kind.look(batch)
    if isinstance(batch, mqcn.NotificationBatch):
        for propid in (103, 115, 206, 207, 223, 1101):
            batch.property(propid)


def read_all(kind: Format, every: int) -> int:
    """Read the payloads of a format at both ends of the area; return their number."""
    payloads, batch = payloads_of(kind, every), kind.decode_batch([])
    for at_the_end in (False, True):
        for payload in payloads:
            read_one(kind, payload, at_the_end, batch)
        for start in range(0, len(payloads), 100):
            some = payloads[start : start + 100]
            if sum(map(len, some)) < 60 * 4096:
                read_many(kind, some, at_the_end)
    return len(payloads)


if __name__ == "__main__":
    # To look at lists pyarrow imports pandas, which takes valgrind longer than the payloads, unless it is too old
    sys.modules["pandas"] = ModuleType("pandas")
    sys.modules["pandas"].__version__ = "0"  # type: ignore[attr-defined]
    every, *names = sys.argv[1:]
    print(sum(read_all(kind, int(every)) for kind in FORMATS if str(kind) in names))
