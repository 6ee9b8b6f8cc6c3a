"""What the oracle and the single machine expect of Spark: rows as dictionaries."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from typing import Any

from pyspark.sql import DataFrame, Row

from tests.mqsd.rows import arrow_text, read_all
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


def as_dicts(rows: Iterable[Row] | DataFrame) -> list[dict[str, Any]]:
    """Rows with all the structs in them as dictionaries."""
    collected = rows.collect() if isinstance(rows, DataFrame) else rows
    return [row.asDict(recursive=True) for row in collected]
