"""Batches at a prompt and in notebooks, as a line of text or a small table of HTML; and payloads in errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

SHOWN_ROWS = 10
_SHOWN_COLUMNS = 12
_SHOWN_NAMES = 5
_SHOWN_BYTES = 32
_SHOWN_CHARACTERS = 60


def names_shown(names: Sequence[str]) -> str:
    """The number of columns and the first of their names."""
    more = ", ..." if len(names) > _SHOWN_NAMES else ""
    return f"{len(names)} columns ({', '.join(names[:_SHOWN_NAMES])}{more})"


def payload_shown(payload: memoryview) -> str:
    """The size of a payload and its first bytes."""
    more = " ..." if len(payload) > _SHOWN_BYTES else ""
    return f"{len(payload)} bytes: {payload[:_SHOWN_BYTES].hex(' ', 4)}{more}"


def html_table(caption: str, rows: Sequence[Mapping[str, Any]]) -> str:
    """The rows as HTML, all text escaped: the first columns with values, and cells of at most 60 characters."""
    names = [name for name in (rows[0] if rows else ()) if any(row[name] not in (None, []) for row in rows)]
    shown = names[:_SHOWN_COLUMNS]
    head = "".join([f"<th>{escape(name)}</th>" for name in shown])
    body = "".join(["<tr>" + "".join([f"<td>{_cell(row[name])}</td>" for name in shown]) + "</tr>" for row in rows])
    left_out = f"<p>{len(names) - len(shown)} more columns with values</p>" if len(names) > len(shown) else ""
    return f"<p>{escape(caption)}</p><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{left_out}"


def _cell(value: Any) -> str:
    text = "" if value is None else value if isinstance(value, str) else repr(value)
    return escape(text if len(text) <= _SHOWN_CHARACTERS else text[: _SHOWN_CHARACTERS - 3] + "...")
