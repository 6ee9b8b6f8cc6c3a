"""Columns and rows of Arrow in one form, whichever a table has: without dictionaries, GUIDs as text or as objects."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pyarrow as pa
import pyarrow.compute

from msmqwire.columns._guids import guid_texts

# The stubs of pyarrow know few of its functions
_compute: Any = pyarrow.compute


def plain(column: Any) -> Any:
    """A column without dictionaries and extension types."""
    if isinstance(column.type, pa.BaseExtensionType):
        column = column.storage
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_string_view(column.type) or pa.types.is_large_string(column.type):
        column = column.cast(pa.string())
    return column


def guid_text(column: Any) -> Any:
    """GUIDs as canonical text, from 16 bytes; other columns as they are."""
    if not pa.types.is_fixed_size_binary(column.type):
        return column
    # pyarrow's stubs do not know the array interface
    texts: Any = guid_texts(column.cast(pa.binary()))
    return pa.array(texts)


def equals_guid(column: Any, guid: UUID) -> Any:
    """A mask of the GUIDs of a plain column that equal ``guid``; null where the GUID is null."""
    form = str(guid) if pa.types.is_string(column.type) else guid.bytes
    return _compute.equal(column, pa.scalar(form, column.type))


def guid_values(column: Any) -> list[UUID | None]:
    """GUIDs as objects, from any column; Spark has them as binary of any size."""
    if pa.types.is_binary(column.type):
        column = column.cast(pa.binary(16))
    return [None if text is None else UUID(text) for text in guid_text(plain(column)).to_pylist()]


def records(rows: Any) -> list[dict[str, Any]]:
    """Return the rows of a table or batch as objects. Times have microseconds: Python has no nanoseconds."""
    for at, field in enumerate(rows.schema):
        if pa.types.is_timestamp(field.type) and field.type.unit == "ns":
            microseconds = rows[field.name].cast(pa.timestamp("us", field.type.tz), safe=False)
            rows = rows.set_column(at, field.name, microseconds)
    found: list[dict[str, Any]] = rows.to_pylist()
    return found
