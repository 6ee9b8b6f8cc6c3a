"""Columns as text: JSON values, times, and cells of CSV.

``pyarrow.compute`` takes a quarter of the time of a loop over Python objects with ``json.dumps``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute

from msmqwire.errors import UNPRINTABLE

if TYPE_CHECKING:
    from msmqwire.columns import Batch

# pyarrow's stubs do not know functions of arrays and Python values
Array = Any
pc: Any = pyarrow.compute

# JSON must escape the controls of C0, the quotation mark and the backslash. It may escape the rest of UNPRINTABLE, and
# so JSON lines cannot control a terminal.
_CONTROL = re.compile(f"[{UNPRINTABLE}]")


def of_re2(characters: str) -> str:
    """Return the inside of a bracket expression for RE2, which needs code points in hexadecimal."""
    return "".join(f"\\x{{{ord(c):x}}}" if c != "-" else c for c in characters)


_ESCAPED_RE2 = f'[{of_re2(UNPRINTABLE)}"\\\\]'
NO_TEXT: Any = pa.scalar(None, pa.string())


def json_text(array: Array) -> Array:
    """JSON values as a string array without nulls: a null is the text ``null``.

    Times are ISO 8601 in UTC with nanoseconds, bytes are hexadecimal. Numbers that JSON lacks (NaN, infinities), and
    values of types that only statements of SQL make, are text.
    """
    kind = array.type
    if array.null_count == len(array):
        return pa.repeat("null", len(array))
    if pa.types.is_list(kind):
        values = _lists(array)
    elif pa.types.is_struct(kind):
        values = _structs(array)
    elif pa.types.is_string(kind):
        values = _quoted(_escaped(array))
    elif pa.types.is_timestamp(kind):
        values = _quoted(_times(array))
    elif is_number(kind):
        values = plain_text(array)
        if pa.types.is_floating(kind):
            values = pc.if_else(pc.is_finite(array), values, _quoted(values))
    elif pa.types.is_boolean(kind):
        values = plain_text(array)
    elif is_bytes(kind):
        values = _quoted(plain_text(array))
    elif pa.types.is_nested(kind):
        values = _objects(array)
    else:
        values = _quoted(_escaped(plain_text(array)))
    return pc.fill_null(values, "null") if array.null_count else values


def json_rows(names: Sequence[str], columns: Sequence[Array], start: str = "{", end: str = "}") -> Array:
    """The rows of columns as JSON objects, in a string array; ``start`` may have members already."""
    parts: list[Array | str] = []
    text = start  # between two parts
    for number, (name, column) in enumerate(zip(names, columns, strict=True)):
        text += f"{',' if number else ''}{json.dumps(name)}:"
        if column.null_count == len(column):  # as most of the columns of a table of messages
            text += "null"
        else:
            parts += [text, json_text(column)]
            text = ""
    return joined(*parts, text + end) if parts else pa.repeat(text + end, len(columns[0]))


def json_objects(batch: Batch) -> list[dict[str, Any]]:
    """The rows of a batch with the values of JSON."""
    rows = batch.to_arrow(guid="text", dictionaries=False)
    return [json.loads(row) for row in json_rows(rows.schema.names, rows.columns).to_pylist()]


def plain_text(array: Array) -> Array:
    """Values as text; null stays null."""
    kind = array.type
    if pa.types.is_string(kind):
        return array
    if pa.types.is_timestamp(kind):
        return _times(array)
    if is_number(kind) or pa.types.is_boolean(kind) or pa.types.is_null(kind):
        return array.cast(pa.string())
    if is_bytes(kind):
        digits = pa.array([value.hex() if value is not None else "" for value in array.to_pylist()], pa.string())
        return null_where(array, digits)
    return null_where(array, pa.array([str(value) for value in array.to_pylist()], pa.string()))


def utf8_of(array: Array) -> memoryview:
    """The concatenated bytes of the strings of an array, without a copy."""
    _, offsets, data = array.buffers()
    if not len(array) or data is None:
        return memoryview(b"")
    ends = memoryview(offsets).cast("i")
    return memoryview(data)[ends[array.offset] : ends[array.offset + len(array)]]


def is_number(kind: Any) -> bool:
    """Return True if a type has integers, decimals or floating-point numbers."""
    return pa.types.is_integer(kind) or pa.types.is_decimal(kind) or pa.types.is_floating(kind)


def is_bytes(kind: Any) -> bool:
    """Return True if a type is binary, of any or of one size."""
    return pa.types.is_binary(kind) or pa.types.is_fixed_size_binary(kind)


def time_text(array: Array) -> Array:
    """Times of UTC without the zone, which needs no time zone database; to the nanosecond, from 1677 to 2262."""
    try:
        times = array.cast(pa.timestamp("ns"))
    except pa.ArrowInvalid:
        times = array.cast(pa.timestamp(array.type.unit))
    return times.cast(pa.string())


def _times(array: Array) -> Array:
    times = time_text(array)
    # Infinity is no time, and has a text in angle brackets
    is_time = pc.invert(pc.starts_with(times, "<"))
    return pc.if_else(is_time, joined(pc.replace_substring(times, " ", "T", max_replacements=1), "Z"), times)


def joined(*parts: Array | str) -> Array:
    """The concatenated parts of each row; null where one of them is."""
    return pc.binary_join_element_wise(*parts, "")


def _quoted(array: Array) -> Array:
    return joined('"', array, '"')


def _escaped(array: Array) -> Array:
    """Text with the escapes of JSON."""
    if not pc.any(pc.match_substring_regex(array, _ESCAPED_RE2)).as_py():
        return array
    for character in '\\"':  # names of queues have backslashes
        array = pc.replace_substring(array, character, f"\\{character}")
    return replaced(array, f"[{of_re2(UNPRINTABLE)}]", lambda value: _CONTROL.sub(_escape, value))


def replaced(array: Array, pattern: str, change: Callable[[str], str]) -> Array:
    """Text changed by a function where a pattern of RE2 occurs, which is in few rows."""
    found = pc.fill_null(pc.match_substring_regex(array, pattern), False)
    if not pc.any(found).as_py():
        return array
    return pc.replace_with_mask(array, found, pa.array(list(map(change, array.filter(found).to_pylist())), pa.string()))


def _escape(match: re.Match[str]) -> str:
    # json.dumps has the short escapes of ASCII
    character = match[0]
    return json.dumps(character)[1:-1] if character < "\x7f" else f"\\u{ord(character):04x}"


def _structs(array: Array) -> Array:
    return null_where(array, json_rows([field.name for field in array.type], array.flatten()))


def _objects(array: Array) -> Array:
    """Maps, unions and lists of other kinds, which few columns are."""
    values = [json.dumps(value, default=str) for value in array.to_pylist()]
    return null_where(array, pa.array(values, pa.string()))


def _lists(array: Array) -> Array:
    items = pc.binary_join(lists_like(array, json_text(array.flatten())), ",")
    return null_where(array, joined("[", items, "]"))


def lists_like(array: Array, items: Array) -> Array:
    """Lists of other items, as many as the lists of an array have; an empty list where the array is null."""
    lengths = pc.fill_null(pc.list_value_length(array), 0)
    return pa.ListArray.from_arrays(pa.concat_arrays([pa.array([0], pa.int32()), pc.cumulative_sum(lengths)]), items)


def null_where(array: Array, values: Array) -> Array:
    """The values, null where the array is."""
    return pc.if_else(array.is_valid(), values, NO_TEXT) if array.null_count else values
