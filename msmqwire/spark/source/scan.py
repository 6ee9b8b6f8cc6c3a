"""Reads captures as batches of tables in Spark's types, and handles payloads that cannot be decoded.

The data source, the streams and the pipeline read through this module, so their rows are the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Literal, get_args

import pyarrow as pa

from msmqwire import capture
from msmqwire.capture import (
    ALL_TABLES,
    CaptureStats,
    Checkpoint,
    ReadOptions,
    TableRows,
    read_tables,
    table_options,
)
from msmqwire.capture.files.remote import StorageOptions
from msmqwire.capture.files.sources import Source
from msmqwire.capture.options import options_of
from msmqwire.columns.display import payload_shown
from msmqwire.errors import CaptureError, DecodeError
from msmqwire.spark.schema import FEW_ROWS, SparkColumn, convert, table_columns

Mode = Literal["PERMISSIVE", "FAILFAST", "DROPMALFORMED"]
MODES: tuple[Mode, ...] = get_args(Mode)
# The columns that identify a payload, and those needed to drop or report it
_PLACE = {"file", "frame", "stream_offset", "fault"}
_FEW_BYTES = 4 << 20


@dataclass(frozen=True)
class ScanOptions:
    """The rows to read from captures; checked on construction, so that mistakes show on the driver.

    Attributes
    ----------
    tables : tuple of str
    mode : {"PERMISSIVE", "FAILFAST", "DROPMALFORMED"}
        Keep rows with a fault, end the job at the first one, or drop them.
    read : ReadOptions
        What to read from the captures; ``guid`` is ``text`` or ``binary``.
    """

    tables: tuple[str, ...] = ("topology",)
    mode: Mode = "PERMISSIVE"
    read: ReadOptions = field(default_factory=lambda: ReadOptions(guid="text"))

    def __post_init__(self) -> None:
        if not self.tables:
            raise ValueError(f"no table requested; there is {', '.join(ALL_TABLES)}")
        for table in self.tables:
            if table not in ALL_TABLES:
                raise ValueError(f"table={table!r} is not one of {', '.join(ALL_TABLES)}")
        if self.mode not in MODES:
            raise ValueError(f"mode={self.mode!r} is not one of {', '.join(MODES)}")
        self.columns(self.tables[0])

    @property
    def storage_options(self) -> StorageOptions:
        """Keyword arguments of the file systems of URIs."""
        return self.read.storage_options

    def columns(self, table: str) -> tuple[SparkColumn, ...]:
        """All columns of a table, the capture columns first."""
        return table_columns(table, self.read.guid)

    @property
    def payloads(self) -> ReadOptions:
        """The options with which ``open`` and ``checkpoints`` read the payloads of the tables."""
        return table_options(self.tables, self.read)


class Scan:
    """Reads one capture, once, as batches of ``columns``.

    Iterating raises ``CaptureError`` for a file that is not a capture. In mode FAILFAST it raises ``DecodeError`` for
    the first payload that cannot be decoded, and ``CaptureError`` at the end of a capture with unreadable parts.

    Attributes
    ----------
    columns : dict of str to tuple of SparkColumn
        The columns of each table.
    stats, tables, payloads
        As of ``TablesReader``; complete when ``batches`` ends.
    """

    def __init__(self, options: ScanOptions, columns: Mapping[str, Iterable[SparkColumn]] | None = None) -> None:
        self.options = options
        chosen = columns or {}
        self.columns = {table: tuple(chosen.get(table) or options.columns(table)) for table in options.tables}
        self.stats = CaptureStats()
        self.tables: dict[str, TableRows] = {}
        self.payloads = 0

    def batches(
        self, source: Source, *, resume: Checkpoint | None = None, stop: Checkpoint | None = None
    ) -> Iterator[tuple[str, pa.RecordBatch]]:
        """The rows, or the rows from one checkpoint to another: pairs of a table's name and a batch."""
        for table, batch in self.rows(source, resume=resume, stop=stop):
            yield table, convert(batch, self.columns[table])

    def rows(
        self,
        source: Source,
        *,
        resume: Checkpoint | None = None,
        stop: Checkpoint | None = None,
    ) -> Iterator[tuple[str, pa.RecordBatch]]:
        """Read rows with the columns of ``read_tables``, before ``schema.convert`` makes those of Spark."""
        options, mode = self.options, self.options.mode
        needed = set() if mode == "PERMISSIVE" else _PLACE
        names = {table: {column.source for column in columns} | needed for table, columns in self.columns.items()}
        read = options_of(
            options.read,
            {"columns": names, "dictionaries": False, "resume": resume, "stop": stop},
        )
        with read_tables(source, options.tables, read) as reader:
            self.stats, self.tables = reader.stats, reader.tables
            yield from map(self._checked, reader)
            self.payloads = reader.payloads
        if mode == "FAILFAST" and (problems := describe_problems(self.stats)):
            raise CaptureError(problems)

    def _checked(self, read: tuple[str, pa.RecordBatch]) -> tuple[str, pa.RecordBatch]:
        """Rows as the mode has them."""
        table, batch = read
        if self.options.mode == "FAILFAST" and batch.column("fault").null_count < len(batch):
            raise self._refusal(table, batch)
        if self.options.mode == "DROPMALFORMED":
            batch = batch.filter(batch.column("fault").is_null())
        return table, batch

    def _refusal(self, table: str, batch: pa.RecordBatch) -> DecodeError:
        row = batch.column("fault").is_valid().index(True).as_py()
        file, frame, offset, fault = (
            batch.column(name)[row].as_py() for name in ("file", "frame", "stream_offset", "fault")
        )
        payload = self._payload(table, file, frame, offset)
        return DecodeError(fault["code"], fault["field"], fault["offset"], f"frame {frame} of {file}, {payload}")

    def _payload(self, table: str, file: str, frame: int, offset: int | None) -> str:
        """The payload of a row (of a notification: its message), read again to show it in the error."""
        place = {"frame": frame, "stream_offset": offset}
        with (
            suppress(OSError, CaptureError),  # the displayed name may not be the file's, and the file may be gone
            capture.open(
                file,
                table_options(table, ports=self.options.read.ports, storage_options=self.options.storage_options),
                columns=[*place],
            ) as blocks,
        ):
            for block in blocks:
                rows = block.capture.to_arrow().to_pylist()
                if place in rows and (payload := block.payloads[rows.index(place)]) is not None:
                    return payload_shown(payload)
        # The stream began in another capture, or the file has changed
        return f"byte {offset} of its stream" if offset is not None else "which is gone"


def converted(batches: Iterable[pa.RecordBatch], columns: Sequence[SparkColumn]) -> Iterator[pa.RecordBatch]:
    """Batches of one table, as ``Scan.rows`` returns them, as ``columns``.

    Few rows, as of small captures, are put together with the next, since sending them to Spark takes as long as well.
    """
    waiting: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        waiting.append(batch)
        rows += len(batch)
        size += batch.get_total_buffer_size()
        if rows >= FEW_ROWS or size >= _FEW_BYTES:
            yield from _together(waiting, columns)
            waiting, rows, size = [], 0, 0
    if waiting:
        yield from _together(waiting, columns)


def _together(batches: list[pa.RecordBatch], columns: Sequence[SparkColumn]) -> list[pa.RecordBatch]:
    rows: pa.Table = pa.Table.from_batches(batches).combine_chunks()
    return convert(rows, columns).to_batches()


def describe_problems(stats: CaptureStats) -> str | None:
    """Return one line about the parts of a capture that cannot be read, or None."""
    losses = ", ".join(stats.describe_losses())
    if not stats.problems:
        return losses or None
    first = stats.problems[0]
    return f"{first.file}: {losses}; the first at byte {first.offset}: {first.text}"
