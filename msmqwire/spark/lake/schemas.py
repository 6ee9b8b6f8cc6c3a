"""The columns of the tables of a lake."""

from __future__ import annotations

from functools import cache

import pyarrow as pa

from msmqwire.capture import CAPTURE, TABLES
from msmqwire.columns.schema import INT64, UINT32, Column, Enumeration
from msmqwire.spark.lake.accounting import ACCOUNTING
from msmqwire.spark.schema import SparkColumn, arrow_schema, spark_columns, table_columns

# The column that rows have their capture in
_CAPTURE = SparkColumn("capture", "capture", pa.string())

#: The columns of the table ``faults``, but for the capture.
FAULTS = spark_columns(
    (
        *CAPTURE.columns,
        Column("table", Enumeration(), "the table that has the payload's row"),
        Column("code", Enumeration(), "what is wrong"),
        Column("field", Enumeration(), "where, by its name in the specification"),
        Column("offset", UINT32, "byte offset in the payload"),
        Column("value", INT64, "the number that was read; null where the fault is of none"),
        Column("needed", INT64, "the number that is needed; null where the fault is of none"),
    )
)

#: The tables that a run adds files to, when it has committed to ``accounting``.
LAKE_TABLES = (*TABLES, "faults")

#: All tables of a lake.
ALL_TABLES = (*LAKE_TABLES, "accounting")


@cache
def file_columns(table: str) -> tuple[SparkColumn, ...]:
    """The columns of the files of one of ``LAKE_TABLES``.

    The capture is the first: readers of Delta tables look at the statistics of the first 32 columns.
    """
    return (_CAPTURE, *(FAULTS if table == "faults" else table_columns(table)))


def file_schema(table: str) -> pa.Schema:
    """The schema of the files of a table."""
    return ACCOUNTING if table == "accounting" else arrow_schema(file_columns(table))


def table_schema(table: str) -> pa.Schema:
    """Return the columns of a table: the columns in its files, and the day, which is in their paths."""
    schema = file_schema(table)
    return schema if table == "accounting" else schema.append(pa.field("day", pa.date32()))


def lake_columns(table: str) -> tuple[SparkColumn, ...]:
    """The columns of a table for Spark."""
    return tuple(SparkColumn(field.name, field.name, field.type) for field in table_schema(table))
