"""Columns as text for people: values shortened, times to the microsecond, nothing that controls a terminal.

``pyarrow.compute`` makes the text of a column at once, as for JSON.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import pyarrow as pa

from msmqwire.capture import table_columns
from msmqwire.capture.schema import CAPTURE
from msmqwire.cli.console import visible
from msmqwire.cli.formats.cells import UNCLEAR_RE2
from msmqwire.columns.json_text import (
    NO_TEXT,
    Array,
    is_bytes,
    joined,
    lists_like,
    null_where,
    pc,
    plain_text,
    replaced,
    time_text,
)
from msmqwire.errors import printable

#: The columns that name a row; those that a table has make its title.
_TITLES = ("type", "operation", "object", "kind")
#: The columns of messages that are shown: sender, queue and purpose; where no packet begins, the first bytes.
_OF_MESSAGES = (
    "kind", "source_queue_manager", "sent_time", "message_id", "destination_queue", "destination_queues", "admin_queue",
    "response_queue", "label", "message_class_name", "correlation_ordinal", "message_size", "body", "body_text",
    "extension_data", "extension_text", "notification", "unrecognized", "unrecognized_size", "fault", "violations",
)  # fmt: skip

# Bytes, which are not shown where their text is
_TEXTS = {"body": "body_text", "extension_data": "extension_text"}
_LONGEST_TEXT = 64
_BREAKS = str.maketrans({"\n": "\\n", "\r": "\\r", "\t": "\\t"})
_MOST_BYTES = 20
#: The items of a list that are shown.
MOST_ITEMS = 4
_FAULT = {"code", "field", "offset", "value", "needed"}
_OF_PROPERTIES = ("id", "name", "type")


def columns_shown(table: str) -> Sequence[str]:
    """Return the columns of a table that are shown by default."""
    return (*CAPTURE.names, *_OF_MESSAGES) if table == "messages" else table_columns(table)


def titles_of(names: Sequence[str]) -> list[str]:
    """Return the columns that make the title of a row."""
    return [name for name in _TITLES if name in names]


def title(batch: pa.RecordBatch, names: Sequence[str]) -> Array:
    """Return the title of each row, null where it would be empty."""
    return phrase([shown(batch[name]) for name in names], " ", len(batch))


def phrase(parts: Sequence[Array], separator: str, rows: int) -> Array:
    """Return the parts of each row that are not null, joined; null where all are."""
    if not parts:
        return pa.nulls(rows, pa.string())
    # The first part is not null: pyarrow 26 drops rows whose parts are all null
    found = pc.binary_join_element_wise("", *parts, separator, null_handling="skip")
    return without_empty(pc.utf8_slice_codeunits(found, len(separator)))


def route(batch: Any, *, ports: bool = True) -> Array:
    """Return the sender and the receiver of each row."""
    ends = [
        _endpoints(batch[name], batch[f"{name}_port"]) if ports else pc.fill_null(batch[name], "")
        for name in ("src", "dst")
    ]
    return joined(ends[0], " → ", ends[1])


def _endpoints(addresses: Array, ports: Array) -> Array:
    hosts = pc.fill_null(addresses, "")
    bracketed = pc.if_else(pc.match_substring(hosts, ":"), joined("[", hosts, "]"), hosts)
    return pc.coalesce(joined(bracketed, ":", plain_text(ports)), hosts)


def column(batch: pa.RecordBatch, name: str, *, whole: bool = False) -> Array:
    """Return a column as ``shown`` shows it, the name of a file in full.

    The time when a message was sent has whole seconds. Bytes of another protocol that are ASCII are text in quotes.
    """
    values = shown(batch[name], whole=whole or name == "file")
    if name == "unrecognized" and batch[name].null_count < len(batch):
        return pc.coalesce(_quoted(batch[name]), values)
    return pc.replace_substring_regex(values, r"\.000000$", "") if name == "sent_time" else values


def _quoted(array: Array) -> Array:
    """Return bytes that are printable ASCII and line breaks as text in quotes; null where they are not."""
    values = [value.decode("latin-1").translate(_BREAKS) if value else "\0" for value in array.to_pylist()]
    found = [f'"{value}"' if value.isascii() and value.isprintable() else "" for value in values]
    return without_empty(pa.array(found, pa.string()))


def filled(batch: pa.RecordBatch, name: str, *, whole: bool = False) -> Array:
    """Return a column as text, null where a value is null, zero or empty; of a body that is text, the text."""
    values = _filled(batch[name], column(batch, name, whole=whole))
    text = _TEXTS.get(name)
    if text in batch.schema.names and not whole:
        values = pc.if_else(_filled(batch[text], shown(batch[text])).is_valid(), NO_TEXT, values)
    return values


def _filled(array: Array, values: Array) -> Array:
    """Return the values, null where a value of the array is null, zero or empty."""
    kind = array.type
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return pc.if_else(pc.equal(array, pa.scalar(0, kind)), NO_TEXT, values)
    if pa.types.is_boolean(kind):
        return pc.if_else(array, values, NO_TEXT)
    return without_empty(values)


def shown(array: Array, *, whole: bool = False) -> Array:
    """Any column in a few words, or text whole; null stays null. A line break is a backslash and a letter."""
    kind = array.type
    if array.null_count == len(array):
        return pa.nulls(len(array), pa.string())
    if pa.types.is_list(kind):
        return _shown_lists(array)
    if pa.types.is_struct(kind):
        return null_where(array, _shown_structs(array))
    if pa.types.is_string(kind):
        return _shown_text(array, whole)
    if is_bytes(kind):
        return _shown_bytes(array.cast(pa.binary()))
    if pa.types.is_timestamp(kind):
        return _shown_times(array)
    if pa.types.is_boolean(kind):
        return pc.if_else(array, "True", "False")
    if pa.types.is_integer(kind):
        return plain_text(array)
    # Columns of a query may have any type
    values = pa.array(["" if value is None else str(value) for value in array.to_pylist()], pa.string())
    return null_where(array, _shown_text(values, whole))


def fitted(array: Array, length: int) -> Array:
    """Text truncated to a number of characters."""
    long = pc.greater(pc.utf8_length(array), length)
    if not pc.any(long).as_py():
        return array
    return pc.if_else(long, joined(pc.utf8_slice_codeunits(array, 0, length - 1), "…"), array)


def without_empty(array: Array) -> Array:
    """Text, null where it is empty."""
    return pc.if_else(pc.equal(array, ""), NO_TEXT, array)


def items(array: Array, most: int | None = MOST_ITEMS) -> Array:
    """Return the first items of lists, shown, and how many more there are."""
    lists = lists_like(array, pc.fill_null(shown(array.flatten()), ""))
    if most is None:
        return lists
    lengths = pc.list_value_length(array)
    if not pc.any(pc.greater(lengths, most)).as_py():
        return lists
    found = [[*each[:most], f"… {len(each) - most} more"] if len(each) > most else each for each in lists.to_pylist()]
    ends = pa.array([0, *accumulate(map(len, found))], pa.int32())
    return pa.ListArray.from_arrays(ends, pa.array([item for each in found for item in each], pa.string()))


def _shown_lists(array: Array) -> Array:
    return pc.binary_join(items(array), ", ")


def _shown_structs(array: Array) -> Array:
    names = [field.name for field in array.type]
    members = dict(zip(names, array.flatten(), strict=True))
    if set(names) == _FAULT:
        code, field, offset = (pc.fill_null(shown(members[name]), "") for name in ("code", "field", "offset"))
        # A length that is too large is what is needed
        is_needed = pc.fill_null(pc.equal(members["value"], members["needed"]), False)
        members["value"] = pc.if_else(is_needed, pa.scalar(None, members["value"].type), members["value"])
        numbers = [joined(f"{name} ", shown(members[name])) for name in ("value", "needed")]
        place = joined(code, ": ", field, " at byte ", offset)
        return pc.coalesce(joined(place, " (", phrase(numbers, ", ", len(array)), ")"), place)
    if set(_OF_PROPERTIES) < set(names):
        # A property: one other member is its value
        values = [shown(member) for name, member in members.items() if name not in _OF_PROPERTIES]
        return phrase([shown(members["name"]), *values], " ", len(array))
    # The first member is a name, the others are flags
    first, *others = names
    notes = []
    for name in others:
        value = _filled(members[name], shown(members[name]))
        flag = pa.types.is_boolean(members[name].type)
        notes.append(pc.if_else(value.is_valid(), name, NO_TEXT) if flag else joined(f"{name} ", value))
    named = pc.fill_null(shown(members[first]), "")
    return pc.coalesce(joined(named, " (", phrase(notes, ", ", len(array)), ")"), named)


def _shown_text(array: Array, whole: bool) -> Array:
    array = replaced(array, UNCLEAR_RE2, lambda value: visible(printable(value.translate(_BREAKS))))
    return array if whole else fitted(array, _LONGEST_TEXT)


def _shown_bytes(array: Array) -> Array:
    digits = plain_text(pc.binary_slice(array, 0, _MOST_BYTES))
    long = pc.greater(pc.binary_length(array), _MOST_BYTES)
    return pc.if_else(long, joined(digits, "…"), digits)


def _shown_times(array: Array) -> Array:
    """Times of UTC without the zone, to the microsecond if that is exact."""
    return pc.replace_substring_regex(time_text(array), pattern="000$", replacement="")
