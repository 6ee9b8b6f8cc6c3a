"""Rows in words for people: values shortened, times to the microsecond, nothing that controls a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from msmqwire.capture.schema import CAPTURE
from msmqwire.cli.console import printable
from msmqwire.cli.formats.cells import plain_text

if TYPE_CHECKING:
    import pyarrow as pa

    from msmqwire.cli.target import Sink

#: The columns that name a row; those that a table has make its title.
_TITLES = ("type", "operation", "object", "kind")
#: The columns of messages that are shown: sender, queue and purpose.
_OF_MESSAGES = (
    "kind", "source_queue_manager", "sent_time", "message_id", "destination_queue", "destination_queues", "admin_queue",
    "response_queue", "label", "message_class_name", "correlation_ordinal", "message_size", "body", "body_text",
    "notification", "fault", "violations",
)  # fmt: skip
_TIMES = frozenset({"time", "sent_time"})

_LONGEST_TEXT = 64
_BREAKS = str.maketrans({"\n": "\\n", "\r": "\\r", "\t": "\\t"})
_MOST_BYTES = 20
_MOST_ITEMS = 4

Row = dict[str, Any]


def columns_shown(table: str) -> tuple[str, ...] | None:
    """The columns of a table that are shown by default; None for all."""
    return (*CAPTURE.names, *_OF_MESSAGES) if table == "messages" else None


def write_heading(sink: Sink, table: str, *, first: bool) -> None:
    """Write the name of the table that follows."""
    sink.write(f"{'' if first else chr(10)}# {table}\n".encode())


def write_omissions(sink: Sink, without_rows: Sequence[str], columns: Sequence[str] | None) -> None:
    """Write which tables have no rows, and what is left out of the others."""
    other = "" if "messages" in without_rows else ", most columns of messages"
    none = f"no rows of {', '.join(without_rows)}\n" if without_rows else ""
    left_out = (
        ""
        if columns
        else f"not shown: null, zero and empty fields, the rest of values that end in …{other} (-T json has them)\n"
    )
    sink.write(f"\n{none}{left_out}".encode())


def titles_of(names: Sequence[str]) -> list[str]:
    """The columns that make the title of a row."""
    return [name for name in _TITLES if name in names]


def title(row: Row, names: Sequence[str]) -> str:
    """The title of a row."""
    return " ".join(shown(row[name]) for name in names if row[name] is not None)


def rows_of(batch: pa.RecordBatch) -> Iterator[Row]:
    """The rows of a batch, with times as text."""
    columns: dict[str, list[Any]] = {}
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        columns[name] = plain_text(column).to_pylist() if name in _TIMES else column.to_pylist()
    for name in _TIMES & columns.keys():
        columns[name] = [None if text is None else _short_time(text) for text in columns[name]]
    if "sent_time" in columns:  # whole seconds
        columns["sent_time"] = [text and text.removesuffix(".000000") for text in columns["sent_time"]]
    for values in zip(*columns.values(), strict=True):
        yield dict(zip(columns, values, strict=True))


def values_of(row: Row, names: Sequence[str]) -> Iterator[tuple[str, Any]]:
    """The fields of a row that are not null, zero or empty; of a body that is text, the text."""
    for name in names:
        if row[name] and not (name == "body" and row.get("body_text")):
            yield name, row[name]


def _short_time(text: str) -> str:
    """A time of ISO 8601 without its zone; to the microsecond if that is exact."""
    return text.replace("T", " ").removesuffix("Z").removesuffix("000")


def route(row: Row) -> str:
    """The sender and the receiver of a row."""
    return f"{_endpoint(row['src'], row['src_port'])} → {_endpoint(row['dst'], row['dst_port'])}"


def _endpoint(address: str | None, port: int | None) -> str:
    if port is None:
        return shown(address)
    return f"[{address}]:{port}" if ":" in (address or "") else f"{shown(address)}:{port}"


def shown(value: Any, *, whole: bool = False) -> str:
    """Any value of a table in a few words, or a text whole; a line break is a backslash and a letter."""
    if value is None:
        return ""
    if isinstance(value, dict):
        return _shown_struct(value)
    if isinstance(value, list):
        return ", ".join(items(value))
    if isinstance(value, bytes):
        return value.hex() if len(value) <= _MOST_BYTES else f"{value[:_MOST_BYTES].hex()}…"
    text = printable(str(value).translate(_BREAKS))
    return text if whole or len(text) <= _LONGEST_TEXT else text[: _LONGEST_TEXT - 1] + "…"


def items(values: list[Any]) -> list[str]:
    """The first items of a list, and how many more it has."""
    more = [f"… {len(values) - _MOST_ITEMS} more"] if len(values) > _MOST_ITEMS else []
    return [*(shown(item) for item in values[:_MOST_ITEMS]), *more]


def _shown_struct(value: dict[str, Any]) -> str:
    if set(value) == {"code", "field", "offset"}:
        return f"{value['code']}: {value['field']} at byte {value['offset']}"
    if {"id", "name", "type"} < set(value):
        # A property: one other member is its value
        worth = [shown(item) for name, item in value.items() if name not in ("id", "name", "type") and item is not None]
        return " ".join([value["name"], *worth])
    # The first member is a name, the others are flags
    (_, first), *others = value.items()
    notes = [name if member is True else f"{name} {shown(member)}" for name, member in others if member]
    return f"{shown(first)} ({', '.join(notes)})" if notes else shown(first)
