"""One capture as batches of a table in Spark's types, and what becomes of what cannot be decoded.

The data source and the pipeline both read through this, so that they cannot differ.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import IO, Literal, get_args

import pyarrow as pa

from msmqwire import capture
from msmqwire.capture import CAPTURE, TABLES, CaptureStats, read_table
from msmqwire.errors import CaptureError, DecodeError
from msmqwire.spark.functions import shown
from msmqwire.spark.schema import SparkColumn, SparkGuid, convert, spark_columns

__all__ = ["MODES", "Mode", "Scan", "TableOptions"]

Mode = Literal["PERMISSIVE", "FAILFAST", "DROPMALFORMED"]
MODES: tuple[Mode, ...] = get_args(Mode)


@dataclass(frozen=True)
class TableOptions:
    """Which rows of a capture are wanted; checked when it is made, so that a mistake shows on the driver.

    Attributes
    ----------
    table : str
    mode : {"PERMISSIVE", "FAILFAST", "DROPMALFORMED"}
    guid : {"text", "binary"}
    ports : frozenset of int, or None
        None for those of the table's protocol.
    """

    table: str = "topology"
    mode: Mode = "PERMISSIVE"
    guid: SparkGuid = "text"
    ports: frozenset[int] | None = None

    def __post_init__(self) -> None:
        if self.table not in TABLES:
            raise ValueError(f"table={self.table!r} is not one of {', '.join(TABLES)}")
        if self.mode not in MODES:
            raise ValueError(f"mode={self.mode!r} is not one of {', '.join(MODES)}")
        for port in self.ports or ():
            if not 0 <= port <= 0xFFFF:
                raise ValueError(f"ports: {port} is not 0 to 65535")
        self.columns()

    def columns(self) -> tuple[SparkColumn, ...]:
        """All columns of the table, those that say where a payload comes from first."""
        return spark_columns((*CAPTURE.all_columns, *TABLES[self.table].table.all_columns), self.guid)


class Scan:
    """The rows of one capture as batches of ``columns``, once through.

    Iterating raises ``CaptureError`` for a file that is no capture and, in mode FAILFAST, ``DecodeError`` for the first
    payload that cannot be decoded and ``CaptureError`` at the end of a capture with frames that cannot be read.
    """

    def __init__(self, options: TableOptions, columns: Iterable[SparkColumn] | None = None) -> None:
        self.options = options
        self.columns = options.columns() if columns is None else tuple(columns)
        self.stats = CaptureStats()
        self.faults: Counter[str] = Counter()
        self.rows = 0

    def batches(self, source: str | IO[bytes]) -> Iterator[pa.RecordBatch]:
        """The rows; ``stats``, ``faults`` and ``rows`` account for what was read when it ends."""
        names = {column.source for column in self.columns}
        if self.options.mode != "PERMISSIVE":
            names |= {"file", "frame", "fault"}
        options = self.options
        with read_table(source, options.table, columns=names, guid=options.guid, ports=options.ports) as reader:
            self.stats, self.faults = reader.stats, reader.faults
            for batch in reader:
                if options.mode == "FAILFAST" and batch.column("fault").null_count < len(batch):
                    raise self._refusal(batch)
                self.rows += len(batch)
                if options.mode == "DROPMALFORMED":
                    batch = batch.filter(batch.column("fault").is_null())
                yield convert(batch, self.columns)
        if options.mode == "FAILFAST" and self.stats.damaged:
            file, offset, what = self.stats.problems[0]
            raise CaptureError(
                f"{file}: {self.stats.damaged} frames cannot be read; the first at byte {offset}: {what}"
            )

    def _refusal(self, batch: pa.RecordBatch) -> DecodeError:
        row = batch.column("fault").is_valid().index(True).as_py()
        file, frame, fault = (batch.column(name)[row].as_py() for name in ("file", "frame", "fault"))
        payload = self._payload(file, self.rows + row)
        return DecodeError(fault["code"], fault["field"], fault["offset"], f"frame {frame} of {file}, {payload}")

    def _payload(self, file: str, row: int) -> str:
        """The payload of a row, read once more: only the error that ends the job needs it."""
        ports = TABLES[self.options.table].ports if self.options.ports is None else self.options.ports
        with capture.open(file, ports=ports, columns=()) as blocks:
            payloads = (payload for block in blocks for payload in block.payloads if payload is not None)
            return shown(next(islice(payloads, row, None)))
