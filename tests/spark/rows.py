"""What the oracle and the single machine expect of Spark: rows as dictionaries."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, Row

from msmqwire import capture
from msmqwire.capture import TableReader
from tests.columns.formats import NOTIFICATIONS, TOPOLOGY, Format
from tests.columns.rows import shown_row


def _rows(kind: Format, data: bytes, guid: str, **options: Any) -> list[dict[str, Any]]:
    rows = [shown_row(kind.table, row, guid) for row in kind.rows(kind.read(data, **options))]
    # The numbers of a fault, of which oracles say nothing
    fault = kind.decode_batch([data], **options).fault(0)
    return [{**row, "fault": row["fault"] and fault and fault._asdict()} for row in rows]


def topology_rows(
    payloads: Sequence[bytes | None], *, guid: str = "text", **options: Any
) -> list[dict[str, Any] | None]:
    """The oracle's rows for payloads; None for a null payload."""
    return [None if data is None else _rows(TOPOLOGY, data, guid, **options)[0] for data in payloads]


def notification_rows(
    payloads: Sequence[bytes | None], *, guid: str = "text", **options: Any
) -> list[list[dict[str, Any]] | None]:
    """The oracle's rows for each body; None for a null payload."""
    return [None if data is None else _rows(NOTIFICATIONS, data, guid, **options) for data in payloads]


def read_table(source: Any, table: str = "topology", **options: Any) -> TableReader:
    """The reader of the package, with GUIDs as text like Spark."""
    return capture.read_table(source, table, **{"guid": "text", **options})


def in_spark_types(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> pa.Table:
    """What ``read_table`` gives as columns of Spark: times in microseconds, their nanoseconds in ``<name>_ns``."""
    table = pa.Table.from_batches(batches, getattr(batches, "schema", None))
    columns = []
    for field in schema:
        column = table[field.name.removesuffix("_ns")]
        if pa.types.is_timestamp(column.type):
            column = column.cast(pa.int64())
        if pa.types.is_timestamp(field.type):
            column = pc.divide(column, 1000)
        columns.append(column.cast(field.type))
    return pa.table(columns, schema=schema)


def as_dicts(rows: Iterable[Row] | DataFrame) -> list[dict[str, Any]]:
    """Rows with all the structs in them as dictionaries."""
    collected = rows.collect() if isinstance(rows, DataFrame) else rows
    return [row.asDict(recursive=True) for row in collected]
