"""What the oracle and the single machine expect of Spark: rows as dictionaries."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, Row

from msmqwire import capture
from msmqwire.capture import TableReader
from tests.mqcn import messages
from tests.mqcn.rows import member_columns
from tests.mqsd.rows import arrow_text, read_all
from tests.reference import mqcn
from tests.reference import mqsd as reference


def spark_value(value: Any, guid: str = "text") -> Any:
    """A value of the oracle as Spark hands it to Python."""
    if isinstance(value, uuid.UUID):
        return str(value) if guid == "text" else value.bytes
    if isinstance(value, str):
        return arrow_text(value)
    if isinstance(value, dict):
        return {name: spark_value(item, guid) for name, item in value.items()}
    if isinstance(value, list):
        return [spark_value(item, guid) for item in value]
    return value


def topology_rows(
    payloads: Sequence[bytes | None], *, guid: str = "text", **options: Any
) -> list[dict[str, Any] | None]:
    """The oracle's rows for payloads; None for a null payload."""
    outcomes = read_all(payloads, **options)
    return [None if outcome is None else spark_value(reference.row(outcome), guid) for outcome in outcomes]


def notification_rows(
    payloads: Sequence[bytes | None], *, guid: str = "text", **options: Any
) -> list[list[dict[str, Any]] | None]:
    """The oracle's rows for each body; None for a null payload."""
    outcomes = messages.read_all(payloads, **options)
    return [None if outcome is None else [_change(row, guid) for row in mqcn.rows(outcome)] for outcome in outcomes]


def _change(row: dict[str, Any], guid: str) -> dict[str, Any]:
    change = dict(row)
    for name in ("object_guid", "master_guid"):
        change[name] = None if row[name] is None else uuid.UUID(bytes_le=row[name])
    if row["properties"] is not None:
        members = member_columns(row["properties"])
        # They are bytes in RFC order here, and in wire order in the rows
        members["guid"] = [None if value is None else uuid.UUID(bytes=value) for value in members["guid"]]
        members["guids"] = [
            None if values is None else [uuid.UUID(bytes=value) for value in values] for values in members["guids"]
        ]
        change["properties"] = [
            dict(zip(members, values, strict=True)) for values in zip(*members.values(), strict=True)
        ]
    change["fault"] = None if row["fault"] is None else row["fault"]._asdict()
    change["violations"] = None if row["violations"] is None else list(row["violations"])
    return {name: spark_value(value, guid) for name, value in change.items()}


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
