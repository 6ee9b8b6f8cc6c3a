"""The columns of the messages table for bytes of TCP streams in which no packet begins."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from msmqwire.columns import UNFRAMED_BIT
from msmqwire.columns.arrow_arrays import binary, integers
from msmqwire.columns.schema import BYTES, UINT32, Column
from msmqwire.mqqb import MESSAGES

if TYPE_CHECKING:
    import pyarrow as pa

    from msmqwire.columns import Payloads

_COLUMNS = (
    Column(
        "unrecognized",
        BYTES,
        "the first 64 bytes of a part of a stream in which no packet begins; null for packets",
    ),
    Column("unrecognized_size", UINT32, "all bytes of that part; 2 GiB if it has more"),
)
_TYPES = {column.name: column.type for column in _COLUMNS}
UNRECOGNIZED = frozenset(_TYPES)

#: The columns of messages that are read from captures, after the capture columns.
CAPTURED_MESSAGES = replace(MESSAGES, columns=(*MESSAGES.columns, *_COLUMNS))


def unrecognized_columns(wanted: frozenset[str], payloads: Payloads) -> dict[str, pa.Array[Any]]:
    """The columns ``wanted``, of ``UNRECOGNIZED``, for the payloads of the table."""
    import pyarrow as pa

    if not wanted:
        return {}
    count, lost = len(payloads), payloads.lost
    rows = np.zeros(0, np.int64) if lost is None else np.flatnonzero(lost & UNFRAMED_BIT)
    if lost is None or not len(rows):
        types: dict[str, Any] = {name: _TYPES[name].arrow() for name in wanted}
        return {name: pa.nulls(count, type_) for name, type_ in types.items()}
    shown = [bytes(payloads[row] or b"") for row in rows.tolist()]
    sizes = (lost[rows] & ~np.uint32(UNFRAMED_BIT)) + np.array(list(map(len, shown)), np.uint32)
    place = np.full(count, -1, np.int64)
    place[rows] = np.arange(len(rows))
    values = {"unrecognized": binary(shown), "unrecognized_size": integers(sizes)}
    return {name: values[name].take(integers(place, place >= 0)) for name in wanted}
