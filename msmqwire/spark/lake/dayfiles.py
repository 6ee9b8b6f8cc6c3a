"""Parquet files by day: how rows of captures are written before they belong to a lake."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

__all__ = ["NO_DAY", "Compression", "DayFiles", "StagedFile", "day_name"]

Compression = Literal["snappy", "zstd", "lz4", "gzip", "brotli", "none"]

# Hive's name for the partition of what has no day; readers take it for null
NO_DAY = "__HIVE_DEFAULT_PARTITION__"
_ROW_GROUP_ROWS = 1 << 17
_MOST_OPEN = 16
# Numbers that go up from row to row: their differences take a fraction of the room
_COUNTED = ("frame", "first_frame", "time", "time_ns", "stream_offset")
# Identifiers of which few come again
_DISTINCT = ("request_id", "correlation_id")


@dataclass(frozen=True)
class StagedFile:
    """A Parquet file that was written and is to be committed: its table and day, and where it lies."""

    table: str
    day: str
    path: str


class DayFiles:
    """Writes the rows of one table into a Parquet file for each day, by their column ``time``.

    Rows wait until there are enough of them for a row group. A capture whose times jump about opens few files at once:
    a day that comes back after its file was closed gets another one.
    """

    def __init__(self, folder: Path, table: str, schema: pa.Schema, compression: Compression) -> None:
        self.files: list[StagedFile] = []
        self._folder = folder
        self._table = table
        self._schema = schema
        self._compression = compression
        self._encodings = _encodings(schema)
        self._waiting: dict[str, list[pa.RecordBatch]] = {}
        self._rows = 0
        self._open: dict[str, pq.ParquetWriter] = {}

    def write(self, batch: pa.RecordBatch) -> None:
        """Add rows."""
        for day, rows in _by_day(batch):
            self._waiting.setdefault(day, []).append(rows)
        self._rows += len(batch)
        if self._rows >= _ROW_GROUP_ROWS:
            self._flush()

    def __enter__(self) -> DayFiles:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Write what waits and complete the files; after an error they are closed as they are."""
        if kind is None:
            self._flush()
        while self._open:
            self._close_oldest()

    def _flush(self) -> None:
        for day, batches in self._waiting.items():
            self._writer(day).write_table(pa.Table.from_batches(batches))
        self._waiting.clear()
        self._rows = 0

    def _writer(self, day: str) -> pq.ParquetWriter:
        if day not in self._open:
            if len(self._open) == _MOST_OPEN:
                self._close_oldest()
            path = str(self._folder / f"{self._table}-{len(self.files)}.parquet")
            self._open[day] = pq.ParquetWriter(path, self._schema, compression=self._compression, **self._encodings)
            self.files.append(StagedFile(self._table, day, path))
        return self._open[day]

    def _close_oldest(self) -> None:
        self._open.pop(next(iter(self._open))).close()


def _encodings(schema: pa.Schema) -> dict[str, Any]:
    """How columns are written: most with a dictionary, but not those that would fill one for nothing."""
    plain = {*_COUNTED, *_DISTINCT}
    dictionaries = [leaf for one in schema if one.name not in plain for leaf in _leaves(one.name, one.type)]
    differences = {name: "DELTA_BINARY_PACKED" for name in _COUNTED if name in schema.names}
    return {"use_dictionary": dictionaries, "column_encoding": differences}


def _leaves(path: str, type_: pa.DataType) -> Iterator[str]:
    """The columns that Parquet makes of one, by their paths."""
    if isinstance(type_, pa.ListType):
        yield from _leaves(f"{path}.list.element", type_.value_type)
    elif isinstance(type_, pa.StructType):
        for member in type_:
            yield from _leaves(f"{path}.{member.name}", member.type)
    else:
        yield path


def _by_day(batch: pa.RecordBatch) -> Iterator[tuple[str, pa.RecordBatch]]:
    days = batch.column("time").cast(pa.date32())
    different = days.unique().to_pylist()
    for day in different:
        here: Any = pc.is_null(days) if day is None else pc.equal(days, pa.scalar(day))
        yield day_name(day), batch if len(different) == 1 else batch.filter(here)


def day_name(day: datetime.date | None) -> str:
    """A day as the name of its folder has it."""
    return NO_DAY if day is None else day.isoformat()
