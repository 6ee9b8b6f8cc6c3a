"""Parquet files by day: rows are written where they will stay, before a commit makes them part of a table."""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from msmqwire.capture.parquet import ROW_GROUP_ROWS, parquet_writer
from msmqwire.spark.lake.storage import Storage

__all__ = ["NO_DAY", "Compression", "DayFiles", "WrittenFile", "statistics"]

Compression = Literal["snappy", "zstd", "lz4", "gzip", "brotli", "none"]

# Hive's name for the partition of what has no day; readers take it for null
NO_DAY = "__HIVE_DEFAULT_PARTITION__"
_MOST_OPEN = 16
# The columns whose least and greatest values a table has of each of its files, so that readers pass over files
_STATISTICS = ("capture", "run", "file", "time", "first_time", "src", "dst")


@dataclass(frozen=True)
class WrittenFile:
    """A Parquet file that was written and is not yet part of its table.

    Attributes
    ----------
    table : str
    path : str
        Relative to the table.
    size, rows : int
    statistics : str
        As a Delta table has them: JSON.
    """

    table: str
    path: str
    size: int
    rows: int
    statistics: str


class DayFiles:
    """Writes the rows of one table into a Parquet file for each day, by their column ``time``.

    Rows wait until there are enough of them for a row group. A capture whose times jump about opens few files at once:
    a day that comes back after its file was closed gets another one. The names of the files begin with ``name``.
    """

    def __init__(self, storage: Storage, table: str, schema: pa.Schema, compression: Compression, name: str) -> None:
        self.files: list[WrittenFile] = []
        #: What the lake has for each of the files, from the moment it is created.
        self.names: list[str] = []
        self._storage = storage
        self._table = table
        self._schema = schema
        self._compression = compression
        self._name = name
        self._waiting: dict[str, list[pa.RecordBatch]] = {}
        self._rows = 0
        self._open: dict[str, tuple[str, Any, pq.ParquetWriter]] = {}

    def write(self, batch: pa.RecordBatch) -> None:
        """Add rows."""
        for day, rows in _by_day(batch):
            self._waiting.setdefault(day, []).append(rows)
        self._rows += len(batch)
        if self._rows >= ROW_GROUP_ROWS:
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
            path = f"day={day}/{self._name}-{len(self.names)}.parquet"
            self.names.append(f"{self._table}/{path}")
            file = self._storage.create(self.names[-1])
            writer = parquet_writer(file, self._schema, self._compression)
            self._open[day] = path, file, writer
        return self._open[day][2]

    def _close_oldest(self) -> None:
        path, file, writer = self._open.pop(next(iter(self._open)))
        with file:
            writer.close()
            size = file.tell()
        found: pq.FileMetaData = writer.writer.metadata
        self.files.append(WrittenFile(self._table, path, size, found.num_rows, statistics(found)))


def statistics(metadata: pq.FileMetaData) -> str:
    """What a Delta table says of a file: the number of its rows, and the least and greatest values of some columns."""
    names = [metadata.schema.column(number).path for number in range(metadata.num_columns)]
    least: dict[str, Any] = {}
    greatest: dict[str, Any] = {}
    nulls: dict[str, int] = {}
    for name in _STATISTICS:
        if name not in names:
            continue
        column = names.index(name)
        groups = range(metadata.num_row_groups)
        found: list[Any] = [metadata.row_group(group).column(column).statistics for group in groups]
        # pyarrow crashes where statistics are compared with None by ==
        if any(one is None for one in found):
            continue
        nulls[name] = sum(one.null_count for one in found)
        valued = [one for one in found if one.num_values]
        # Of very long text Parquet says nothing
        if valued and all(one.has_min_max for one in valued):
            least[name] = _plain(min(one.min for one in valued))
            greatest[name] = _plain(max(one.max for one in valued))
    values = {"numRecords": metadata.num_rows, "minValues": least, "maxValues": greatest, "nullCount": nulls}
    return json.dumps(values)


def _plain(value: Any) -> Any:
    if isinstance(value, datetime.datetime):
        return value.astimezone(datetime.UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    return value


def _by_day(batch: pa.RecordBatch) -> Iterator[tuple[str, pa.RecordBatch]]:
    days = batch.column("time").cast(pa.date32())
    different = days.unique().to_pylist()
    for day in different:
        here: Any = pc.is_null(days) if day is None else pc.equal(days, pa.scalar(day))
        yield NO_DAY if day is None else day.isoformat(), batch if len(different) == 1 else batch.filter(here)
