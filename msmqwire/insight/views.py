"""Sections that are more than their groups: hosts with their roles, conversations with their queues, the timeline."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from msmqwire.columns.arrow_arrays import integers
from msmqwire.insight.arrays import numbers, pc
from msmqwire.insight.sections import EVIDENCE, ROLES

_MOST_QUEUES = 10
_TIMELINE = ("event", "src", "dst", "detail", "rows", "first_seen", "last_seen", "places")


def hosts(groups: pa.Table) -> pa.Table:
    """Hosts, with the names of their roles and of the packets that show them."""
    for column, names in (("roles", ROLES), ("evidence", EVIDENCE)):
        at = groups.schema.get_field_index(column)
        groups = groups.set_column(at, column, _names(groups[column], names))
    return groups


def _names(bits: Any, names: Sequence[str]) -> Any:
    """Lists of the names whose bits are set."""
    encoded = bits.combine_chunks().dictionary_encode()
    lists = [[name for at, name in enumerate(names) if each >> at & 1] for each in encoded.dictionary.to_pylist()]
    return pa.array(lists, pa.list_(pa.string())).take(encoded.indices)


def conversations(groups: pa.Table, flows: pa.Table | None) -> pa.Table:
    """Conversations, with the number of their queues and the names of those that most messages went to."""
    queues: dict[tuple[str | None, str | None], dict[str | None, None]] = {}
    if flows is not None:
        columns = (flows[name].to_pylist() for name in ("sender", "dst", "queue"))
        for src, dst, queue in zip(*columns, strict=True):
            queues.setdefault((src, dst), {})[queue] = None
    found = [
        list(queues.get(pair, ())) for pair in zip(groups["src"].to_pylist(), groups["dst"].to_pylist(), strict=True)
    ]
    groups = groups.append_column("queue_count", pa.array(list(map(len, found)), pa.int64()))
    first = [names[:_MOST_QUEUES] for names in found]
    return groups.append_column("queues", pa.array(first, pa.list_(pa.string())))


def timeline(events: pa.Table | None, flows: pa.Table | None) -> pa.Table | None:
    """Events and the first message of each host, in the order of their first time; without a time at the end."""
    found = [table for table in (events, flows and _first_messages(flows)) if table is not None]
    if not found:
        return None
    table = pa.concat_tables([each.select(_TIMELINE) for each in found]).combine_chunks()
    place = numbers(pc.list_element(table["places"], 0))
    time, timeless = numbers(table["first_seen"]), numbers(table["first_seen"].is_null())
    return table.take(integers(np.lexsort((place, time, timeless))))


def _first_messages(flows: pa.Table) -> pa.Table:
    """The first message of each host, as an event."""
    time = numbers(flows["first_seen"])
    place = numbers(pc.list_element(flows["places"], 0))
    order = integers(np.lexsort((place, time, numbers(flows["first_seen"].is_null()))))
    table: Any = flows.take(order).combine_chunks()
    encoded = table["sender"].combine_chunks().dictionary_encode(null_encoding="encode")
    _, first = np.unique(numbers(encoded.indices), return_index=True)
    table = table.take(integers(first)).combine_chunks()
    count, times = np.arange(table.num_rows + 1), table["first_seen"]
    places = pa.ListArray.from_arrays(integers(count).cast(pa.int32()), pc.list_element(table["places"].chunk(0), 0))
    return pa.table(
        {
            "event": pa.repeat("first_message", table.num_rows), "src": table["sender"], "dst": table["dst"],
            "detail": table["queue"], "rows": integers(np.diff(count)), "first_seen": times,
            "last_seen": times, "places": places,
        }
    )  # fmt: skip
