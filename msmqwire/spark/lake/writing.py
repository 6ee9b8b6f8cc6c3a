"""Parquet files by day: rows are written where they will stay, before a commit makes them part of a table."""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from msmqwire.capture.parquet import ROW_GROUP_BYTES, SKIPS_FILES, Compression, parquet_writer
from msmqwire.columns.arrow_arrays import integers, strings
from msmqwire.errors import LakeError
from msmqwire.spark.lake.storage import Storage, one_line
from msmqwire.spark.schema import FEW_ROWS, SparkColumn, arrow_schema, convert

# Hive's name for the partition of rows without a day; readers read it as null
NO_DAY = "__HIVE_DEFAULT_PARTITION__"
# Fewer than one file may have: a task writes files of several tables at a time
_ROW_GROUP_ROWS = 1 << 15
_MOST_OPEN = 16
_FOLDER = "day="
_NAME = r"[0-9a-f]{32}(-[0-9]+)?\.parquet"
#: The paths of files that this package writes, relative to their table.
WRITTEN = re.compile(rf"day=([0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}|{NO_DAY})/{_NAME}|{_NAME}")
_EPOCH = datetime.datetime(1970, 1, 1)


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
    captures : frozenset of str
        The captures that have rows in it.
    """

    table: str
    path: str
    size: int
    rows: int
    statistics: str
    captures: frozenset[str] = frozenset()

    @property
    def day(self) -> str | None:
        """The day of its rows as in ``ActiveFile``, from the path that ``path_of`` has made."""
        folder, _, _ = self.path.rpartition("/")
        return folder.removeprefix(_FOLDER) or None


class NewFile:
    """A Parquet file of a table that is being written; ``finish`` completes it, ``close`` abandons it."""

    def __init__(self, storage: Storage, table: str, path: str, schema: pa.Schema, compression: Compression) -> None:
        self._table = table
        self._path = path
        self._file = storage.create(f"{table}/{path}")
        self._writer = parquet_writer(self._file, schema, compression)
        self._captures: set[str] = set()

    def write(self, rows: pa.Table, captures: Iterable[str] = ()) -> None:
        """Write a row group, which has rows of these captures."""
        self._writer.write_table(rows)
        self._captures.update(captures)

    def finish(self) -> WrittenFile:
        """Write the footer and close the file; it is not yet durable."""
        with closing(self._file):
            self._writer.close()
            size = self._file.tell()
        written = _written(self._table, self._path, size, self._writer.writer.metadata)
        return replace(written, captures=frozenset(self._captures))

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def written_file(storage: Storage, table: str, path: str) -> WrittenFile:
    """A file that another run has written.

    Raises
    ------
    LakeError
        It is missing, or is not as it was written.
    """
    name = f"{table}/{path}"
    if not WRITTEN.fullmatch(path):
        raise LakeError(f"{storage.uri}: {path!r} is not the name of a file of {table}")
    try:
        with storage.open(name) as file:
            (size,) = storage.sizes([name])
            return _written(table, path, size or 0, pq.ParquetFile(file).metadata)
    except FileNotFoundError:
        raise LakeError(f"{storage.path(name)}: is missing, but a run has committed it") from None
    except (pa.ArrowException, OSError, ValueError) as error:
        raise LakeError(
            f"{storage.path(name)}: is not as the run that has committed it has written it: {one_line(error)}"
        ) from None


class DayFiles:
    """Writes the rows of one table into a Parquet file for each day, by their column ``time``.

    Rows wait until they fill a row group, since converting and writing few rows costs as much as many. Few files are
    open at once: rows of a day whose file was closed before get another file. The names of the files begin with
    ``name``.
    """

    def __init__(
        self, storage: Storage, table: str, columns: Sequence[SparkColumn], compression: Compression, name: str
    ) -> None:
        self.files: list[WrittenFile] = []
        #: The path of each file in the lake, from the moment that the file is created.
        self.names: list[str] = []
        self._storage = storage
        self._table = table
        self._columns = columns
        self._schema = arrow_schema(columns)
        self._compression = compression
        self._name = name
        self._waiting: list[pa.RecordBatch] = []
        self._captures: list[str] = []
        self._rows = self._bytes = 0
        self._open: dict[str, NewFile] = {}

    def write(self, batch: pa.RecordBatch, capture: str) -> None:
        """Add rows of a capture, with the columns of its table as they are read."""
        self._waiting.append(batch)
        self._captures.append(capture)
        self._rows += len(batch)
        self._bytes += batch.get_total_buffer_size()
        if self._rows >= _ROW_GROUP_ROWS or self._bytes >= ROW_GROUP_BYTES:
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
        if not self._waiting:
            return
        numbers = np.repeat(np.arange(len(self._captures)), [len(batch) for batch in self._waiting])
        captures = strings(self._captures).take(integers(numbers))
        rows = pa.Table.from_batches(self._waiting)
        if self._rows < FEW_ROWS * len(self._waiting):
            rows = rows.combine_chunks()
        rows = rows.append_column("capture", captures)
        rows = convert(rows, self._columns)
        days = list(_by_day(rows))
        for day, of_day in days:
            names: Any = self._captures if len(days) == 1 else of_day["capture"].unique().to_pylist()
            self._file(day).write(of_day, names)
        self._waiting, self._captures = [], []
        self._rows = self._bytes = 0

    def _file(self, day: str) -> NewFile:
        if day not in self._open:
            if len(self._open) == _MOST_OPEN:
                self._close_oldest()
            path = path_of(f"{self._name}-{len(self.names)}.parquet", day)
            self.names.append(f"{self._table}/{path}")
            self._open[day] = NewFile(self._storage, self._table, path, self._schema, self._compression)
        return self._open[day]

    def _close_oldest(self) -> None:
        self.files.append(self._open.pop(next(iter(self._open))).finish())


def day_name(day: datetime.date | None) -> str:
    """The name of a day in paths."""
    return NO_DAY if day is None else day.isoformat()


def path_of(name: str, day: str | None) -> str:
    """The path of a new file in its table: in the folder of its day, where Spark's reader of Parquet finds the day.

    Other writers of Delta tables choose other paths, so the day of a file of a table is read from the log.
    """
    return name if day is None else f"{_FOLDER}{day}/{name}"


def _written(table: str, path: str, size: int, metadata: pq.FileMetaData) -> WrittenFile:
    return WrittenFile(table, path, size, metadata.num_rows, _statistics(metadata))


def _statistics(metadata: pq.FileMetaData) -> str:
    """The statistics of a file in a Delta table: the number of its rows, least and greatest values of some columns."""
    names = [metadata.schema.column(number).path for number in range(metadata.num_columns)]
    least: dict[str, Any] = {}
    greatest: dict[str, Any] = {}
    nulls: dict[str, int] = {}
    for name in SKIPS_FILES:
        if name not in names:
            continue
        column = names.index(name)
        groups = range(metadata.num_row_groups)
        # A row group without rows has none; pyarrow crashes where they are compared with None by ==
        read: list[Any] = [metadata.row_group(group).column(column).statistics for group in groups]
        found = [one for one in read if one is not None]
        nulls[name] = sum(one.null_count for one in found)
        valued = [one for one in found if one.num_values]
        # Of very long text Parquet says nothing
        if valued and all(one.has_min_max for one in valued):
            is_time = metadata.schema.column(column).logical_type.type == "TIMESTAMP"
            least[name] = _plain(min(one.min_raw for one in valued), is_time)
            greatest[name] = _plain(max(one.max_raw for one in valued), is_time)
    values = {"numRecords": metadata.num_rows, "minValues": least, "maxValues": greatest, "nullCount": nulls}
    return json.dumps(values)


def _plain(value: Any, is_time: bool) -> Any:
    """A value as Delta has it, from what Parquet has: bytes, integers, microseconds since 1970."""
    if is_time:
        time = _EPOCH + datetime.timedelta(microseconds=value)
        return time.isoformat(timespec="microseconds") + "Z"
    return value.decode() if isinstance(value, bytes) else value


def _by_day(rows: pa.Table) -> Iterator[tuple[str, pa.Table]]:
    days = rows.column("time").cast(pa.date32())
    different = days.unique().to_pylist()
    if len(different) == 1:
        yield day_name(different[0]), rows
        return
    for day in different:
        here: Any = pc.is_null(days) if day is None else pc.equal(days, pa.scalar(day))
        yield day_name(day), rows.filter(here)
