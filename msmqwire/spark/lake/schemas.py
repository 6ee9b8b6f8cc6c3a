"""The columns of the tables of a lake."""

from __future__ import annotations

import pyarrow as pa

from msmqwire.capture import CAPTURE, TABLES
from msmqwire.columns.schema import UINT32, Column, Enumeration
from msmqwire.spark.lake.accounting import ACCOUNTING
from msmqwire.spark.schema import arrow_schema, spark_columns
from msmqwire.spark.source.scan import ScanOptions

__all__ = ["CAPTURE_NUMBER", "FAULTS", "LAKE_TABLES", "file_schema", "table_schema"]

#: The column that rows have their capture in.
CAPTURE_NUMBER = pa.field("capture", pa.int64())

#: The columns of the table ``faults``, but for the number of the capture.
FAULTS = spark_columns(
    (
        *CAPTURE.columns,
        Column("table", Enumeration(), "the table that has the payload's row"),
        Column("code", Enumeration(), "what is wrong"),
        Column("field", Enumeration(), "where, by its name in the specification"),
        Column("offset", UINT32, "byte offset in the payload"),
    )
)

#: The tables that a run adds files to, when it has committed to ``accounting``.
LAKE_TABLES = (*TABLES, "faults")


def file_schema(table: str) -> pa.Schema:
    """The columns of the files of a table."""
    if table == "accounting":
        return ACCOUNTING
    columns = FAULTS if table == "faults" else ScanOptions((table,)).columns(table)
    return arrow_schema(columns).append(CAPTURE_NUMBER)


def table_schema(table: str) -> pa.Schema:
    """The columns of a table: those of its files, and the day, which is in their names."""
    schema = file_schema(table)
    return schema if table == "accounting" else schema.append(pa.field("day", pa.date32()))
