"""A lake: Parquet files by table and day, and a note for each source of the files it has there.

::

    topology/day=2024-03-04/<key>-0.parquet    rows, named after the content they came from
    faults/day=.../  accounting/day=.../       likewise
    _sources/<key>.json                        the files of one source
    _staging/<run>/                            written and not committed

Readers of Parquet pass over folders whose names begin with ``_``. One run at a time may write to a lake.
"""

from __future__ import annotations

import datetime
import json
import os
import shutil
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

__all__ = ["Compression", "DayFiles", "Lake", "StagedFile", "day_name"]

Compression = Literal["snappy", "zstd", "lz4", "gzip", "brotli", "none"]

# Hive's name for the partition of what has no day; readers take it for null
_NO_DAY = "__HIVE_DEFAULT_PARTITION__"
_ROW_GROUP_ROWS = 1 << 17
_MOST_OPEN = 16


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
            self._open[day] = pq.ParquetWriter(path, self._schema, compression=self._compression)
            self.files.append(StagedFile(self._table, day, path))
        return self._open[day]

    def _close_oldest(self) -> None:
        self._open.pop(next(iter(self._open))).close()


def _by_day(batch: pa.RecordBatch) -> Iterator[tuple[str, pa.RecordBatch]]:
    days = batch.column("time").cast(pa.date32())
    different = days.unique().to_pylist()
    for day in different:
        here: Any = pc.is_null(days) if day is None else pc.equal(days, pa.scalar(day))
        yield day_name(day), batch if len(different) == 1 else batch.filter(here)


def day_name(day: datetime.date | None) -> str:
    """A day as the name of its folder has it."""
    return _NO_DAY if day is None else day.isoformat()


class Lake:
    """The folder of a lake: staging, and commits that replace what the same source wrote before."""

    def __init__(self, root: str | os.PathLike[str]) -> None:
        # Workers need not run in the folder that the driver runs in
        self.root = Path(root).absolute()

    @contextmanager
    def staging(self) -> Iterator[Path]:
        """A folder to write to; what was not committed when it is left is gone."""
        folder = self.root / "_staging" / uuid.uuid4().hex
        folder.mkdir(parents=True)
        try:
            yield folder
        finally:
            shutil.rmtree(folder)

    def found(self, table: str, schema: pa.Schema) -> None:
        """Make sure that a table can be read though it has no rows yet."""
        folder = self.root / table / f"day={_NO_DAY}"
        if not folder.parent.exists():
            folder.mkdir(parents=True)
            pq.write_table(schema.empty_table(), folder / "empty.parquet")

    def commit(self, key: str, files: Iterable[StagedFile]) -> None:
        """Make the files those of the source ``key``, in place of all that it had.

        The source's note names old and new files while they change places, so that an interrupted commit leaves nothing
        behind that the next one would not find.
        """
        moves: dict[str, str] = {}
        numbers: Counter[tuple[str, str]] = Counter()
        for file in files:
            place = (file.table, file.day)
            moves[f"{file.table}/day={file.day}/{key}-{numbers[place]}.parquet"] = file.path
            numbers[place] += 1
        old = self.files(key)
        self._note(key, old | moves.keys())
        for name, path in moves.items():
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            os.replace(path, self.root / name)
        for name in old - moves.keys():
            (self.root / name).unlink(missing_ok=True)
        self._note(key, set(moves))

    def forget(self, key: str) -> None:
        """Take the files of a source out of the lake, if it has any."""
        if self._path(key).exists():
            self.commit(key, ())
            self._path(key).unlink()

    def files(self, key: str) -> set[str]:
        """The files of a source, relative to the lake."""
        try:
            return set(json.loads(self._path(key).read_text("utf-8")))
        except FileNotFoundError:
            return set()

    def _note(self, key: str, names: Iterable[str]) -> None:
        path = self._path(key)
        path.parent.mkdir(exist_ok=True)
        draft = path.with_suffix(".draft")
        draft.write_text(json.dumps(sorted(names), indent=0), "utf-8")
        os.replace(draft, path)

    def _path(self, key: str) -> Path:
        return self.root / "_sources" / f"{key}.json"
