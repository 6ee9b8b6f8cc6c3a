"""Parquet files of tables: one choice of encodings, statistics and row groups for the command line and for lakes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import IO, Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq

from msmqwire.capture.schema import CAPTURE
from msmqwire.capture.table_rows import ALL_TABLES
from msmqwire.columns.schema import TIMESTAMP

Compression = Literal["snappy", "zstd", "lz4", "gzip", "brotli", "none"]

# A row group for each block of a capture would be read slowly and compress badly
ROW_GROUP_ROWS = 128 * 1024
ROW_GROUP_BYTES = 16 << 20
# A larger dictionary leaves the cache, and looking values up in it takes longer than compressing them
_DICTIONARY_BYTES = 256 << 10
#: The columns by which readers skip files; statistics of others only cost time.
SKIPS_FILES = ("capture", "run", "file", "time", "first_time", "src", "dst")
# and row groups
_SKIPS_ROWS = frozenset({*SKIPS_FILES, "frame", "time_ns"})


def parquet_writer(file: IO[bytes], schema: pa.Schema, compression: Compression = "zstd") -> pq.ParquetWriter:
    """A writer with ``writer_options``."""
    return pq.ParquetWriter(file, schema, compression=compression, **writer_options(schema))


def writer_options(schema: pa.Schema) -> dict[str, Any]:
    """Options of pyarrow's writer, with encodings that follow from the columns: see ``Column.values``.

    Integers that count up are stored as differences (DELTA_BINARY_PACKED), values that hardly repeat as they are
    (PLAIN), others with a dictionary of their values. Each page has a checksum, by which readers find changed bytes.
    benchmarks/README.md has the size and time of other choices.
    """
    values = _values()
    kinds = {name: values.get(name, "repeated") for name in schema.names}
    dictionaries = [
        leaf for field in schema if kinds[field.name] == "repeated" for leaf in _leaves(field.name, field.type)
    ]
    return {
        "use_dictionary": dictionaries,
        "column_encoding": {name: "DELTA_BINARY_PACKED" for name, kind in kinds.items() if kind == "counted"},
        "write_page_checksum": True,
        "write_statistics": [name for name in schema.names if name in _SKIPS_ROWS],
        "dictionary_pagesize_limit": _DICTIONARY_BYTES,
    }


@cache
def _values() -> dict[str, str]:
    """The kind of values of the columns of all tables, Spark's columns included; see ``Column.values``."""
    found: dict[str, str] = {}
    for column in (*CAPTURE.columns, *(column for kind in ALL_TABLES.values() for column in kind.table.columns)):
        found[column.name] = kind = column.values or column.type.values
        if column.type == TIMESTAMP:
            found[f"{column.name}_ns"] = kind
    return found


def _leaves(path: str, type_: pa.DataType) -> Iterator[str]:
    """The columns that Parquet makes of one, by their paths."""
    if isinstance(type_, pa.ListType):
        yield from _leaves(f"{path}.list.element", type_.value_type)
    elif isinstance(type_, pa.StructType):
        for index in range(type_.num_fields):
            member: Any = type_.field(index)
            yield from _leaves(f"{path}.{member.name}", member.type)
    else:
        yield path
