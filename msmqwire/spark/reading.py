"""One capture as batches of tables in Spark's types, and what becomes of what cannot be decoded.

The data source and the pipeline both read through this, so that they cannot differ.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Literal, get_args

import pyarrow as pa

from msmqwire import capture
from msmqwire.capture import CAPTURE, TABLES, CaptureStats, Checkpoint, TableRows, read_tables, table_options
from msmqwire.capture.files.sources import Source
from msmqwire.capture.options import parse_network
from msmqwire.errors import CaptureError, DecodeError
from msmqwire.spark.decoder import shown
from msmqwire.spark.remote import StorageOptions
from msmqwire.spark.schema import SparkColumn, SparkGuid, convert, spark_columns
from msmqwire.spark.sources import open_source

__all__ = ["MODES", "Mode", "ReadingOptions", "Scan", "describe_problems"]

Mode = Literal["PERMISSIVE", "FAILFAST", "DROPMALFORMED"]
MODES: tuple[Mode, ...] = get_args(Mode)
# Those that name a payload, and what is needed beside them to refuse it or to leave it out
_PLACE = {"file", "frame", "stream_offset", "fault"}


@dataclass(frozen=True)
class ReadingOptions:
    """Which rows of a capture are wanted; checked when it is made, so that a mistake shows on the driver.

    Attributes
    ----------
    tables : tuple of str
    mode : {"PERMISSIVE", "FAILFAST", "DROPMALFORMED"}
    guid : {"text", "binary"}
    ports : frozenset of int, or None
        None for those of the tables' protocols.
    addresses : tuple of str
        Addresses and networks; empty for all.
    since, until : int or None
        Nanoseconds since 1970, as ``capture.open`` has them.
    storage_options : mapping
        What files on other machines need to be opened, as ``sources.open_source`` has it.
    """

    tables: tuple[str, ...] = ("topology",)
    mode: Mode = "PERMISSIVE"
    guid: SparkGuid = "text"
    ports: frozenset[int] | None = None
    addresses: tuple[str, ...] = ()
    since: int | None = None
    until: int | None = None
    storage_options: StorageOptions = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.tables:
            raise ValueError(f"no table is asked for; there is {', '.join(TABLES)}")
        for table in self.tables:
            if table not in TABLES:
                raise ValueError(f"table={table!r} is not one of {', '.join(TABLES)}")
        if self.mode not in MODES:
            raise ValueError(f"mode={self.mode!r} is not one of {', '.join(MODES)}")
        for port in self.ports or ():
            if not 0 <= port <= 0xFFFF:
                raise ValueError(f"ports: {port} is not 0 to 65535")
        for address in self.addresses:
            try:
                parse_network(address)
            except ValueError as error:
                raise ValueError(f"addresses: {error}") from None
        if self.since is not None and self.until is not None and self.since >= self.until:
            raise ValueError("until must be later than since")
        self.columns(self.tables[0])

    def columns(self, table: str) -> tuple[SparkColumn, ...]:
        """All columns of a table, those that say where a payload comes from first."""
        return spark_columns((*CAPTURE.all_columns, *TABLES[table].table.all_columns), self.guid)


class Scan:
    """The rows of one capture as batches of ``columns``, once through.

    Iterating raises ``CaptureError`` for a file that is no capture and, in mode FAILFAST, ``DecodeError`` for the first
    payload that cannot be decoded and ``CaptureError`` at the end of a capture of which anything cannot be read.

    Attributes
    ----------
    columns : dict of str to tuple of SparkColumn
        Those of each table.
    stats, tables, payloads
        The account of what was read when ``batches`` ends, as in ``TablesReader``.
    """

    def __init__(self, options: ReadingOptions, columns: Mapping[str, Iterable[SparkColumn]] | None = None) -> None:
        self.options = options
        chosen = columns or {}
        self.columns = {
            table: tuple(chosen[table] if table in chosen else options.columns(table)) for table in options.tables
        }
        self.stats = CaptureStats()
        self.tables: dict[str, TableRows] = {}
        self.payloads = 0

    def batches(
        self, source: Source, *, resume: Checkpoint | None = None, stop: Checkpoint | None = None
    ) -> Iterator[tuple[str, pa.RecordBatch]]:
        """The rows, or those from one checkpoint to another: pairs of a table's name and a batch."""
        options = self.options
        more = set() if options.mode == "PERMISSIVE" else _PLACE
        names = {table: {column.source for column in columns} | more for table, columns in self.columns.items()}
        with read_tables(
            source,
            options.tables,
            columns=names,
            guid=options.guid,
            ports=options.ports,
            addresses=options.addresses,
            since=options.since,
            until=options.until,
            resume=resume,
            stop=stop,
        ) as reader:
            self.stats, self.tables = reader.stats, reader.tables
            for table, batch in reader:
                if options.mode == "FAILFAST" and batch.column("fault").null_count < len(batch):
                    raise self._refusal(table, batch)
                if options.mode == "DROPMALFORMED":
                    batch = batch.filter(batch.column("fault").is_null())
                yield table, convert(batch, self.columns[table])
            self.payloads = reader.payloads
        if options.mode == "FAILFAST" and (problems := describe_problems(self.stats)):
            raise CaptureError(problems)

    def _refusal(self, table: str, batch: pa.RecordBatch) -> DecodeError:
        row = batch.column("fault").is_valid().index(True).as_py()
        file, frame, offset, fault = (
            batch.column(name)[row].as_py() for name in ("file", "frame", "stream_offset", "fault")
        )
        payload = self._payload(table, file, frame, offset)
        return DecodeError(fault["code"], fault["field"], fault["offset"], f"frame {frame} of {file}, {payload}")

    def _payload(self, table: str, file: str, frame: int, offset: int | None) -> str:
        """The payload of a row (of a notification: its message), read once more for the error that ends the job."""
        place = {"frame": frame, "stream_offset": offset}
        with (
            suppress(OSError, CaptureError),  # as rows show its name it may be another one, and it may have moved
            open_source(file, self.options.storage_options) as opened,
            capture.open(opened, table_options(table, ports=self.options.ports), columns=place) as blocks,
        ):
            for block in blocks:
                rows = block.capture.to_arrow().to_pylist()
                if place in rows and (payload := block.payloads[rows.index(place)]) is not None:
                    return shown(payload)
        # Of a stream that began in another capture, or in a file that is not what it was
        return f"byte {offset} of its stream" if offset is not None else "which is gone"


def describe_problems(stats: CaptureStats) -> str | None:
    """What of a capture cannot be read, in one line; None when everything can."""
    if not stats.problems:
        return None
    counts = (
        (stats.damaged, "frames cannot be read"),
        (stats.cut_files, "files are cut"),
        (stats.fragment_conflicts + stats.incomplete_datagrams, "IP datagrams in fragments are not whole"),
        (stats.streams.problems, "problems of TCP streams"),
    )
    file, offset, what = stats.problems[0]
    found = ", ".join(f"{count} {name}" for count, name in counts if count)
    return f"{file}: {found}; the first at byte {offset}: {what}"
