"""The columns of every table in Spark's types, derived from the tables' own columns.

Spark has no unsigned integers, nanoseconds or UUIDs: integers are widened, a time in microseconds is followed by a
column with its nanoseconds, and GUIDs are text (or 16 bytes in the order of the text).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args

import pyarrow as pa
import pyarrow.compute as pc

from msmqwire.capture import ALL_TABLES, CAPTURE
from msmqwire.columns.schema import TIMESTAMP, Column, GuidForm

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType

ArrowRows = TypeVar("ArrowRows", pa.RecordBatch, pa.Table)
SparkGuid = Literal["text", "binary"]
GUID_FORMS: tuple[SparkGuid, ...] = get_args(SparkGuid)

#: Batches with fewer rows are put together before ``convert``, which takes as long for some hundred rows as for few.
FEW_ROWS = 512

# Counted by this package, from 0 or 1: they cannot reach 2^63
_COUNTED = frozenset({"frame", "first_frame", "stream_offset"})


@dataclass(frozen=True)
class SparkColumn:
    """A column in Spark.

    Attributes
    ----------
    name : str
    source : str
        The column of the table from which it is made.
    arrow : pyarrow.DataType
    """

    name: str
    source: str
    arrow: pa.DataType

    @property
    def spark(self) -> DataType:
        """The type in Spark."""
        # A lake is read without Spark, too
        from pyspark.sql.pandas.types import from_arrow_type

        return from_arrow_type(self.arrow)


def spark_columns(columns: Iterable[Column], guid: GuidForm = "text") -> tuple[SparkColumn, ...]:
    """The columns of a table in Spark's types; a time is followed by its nanoseconds, ``<name>_ns``.

    Raises
    ------
    ValueError
        ``guid`` is not ``text`` or ``binary``.
    """
    if guid not in GUID_FORMS:
        raise ValueError(f"guid={guid!r} is not one of {', '.join(map(repr, GUID_FORMS))}")
    result = []
    for column in columns:
        name = column.name
        result.append(SparkColumn(name, name, pa.int64() if name in _COUNTED else column.type.spark(guid)))
        if column.type == TIMESTAMP:
            result.append(SparkColumn(f"{name}_ns", name, pa.int64()))
    return tuple(result)


@cache
def table_columns(table: str, guid: GuidForm = "text") -> tuple[SparkColumn, ...]:
    """All columns of one of ``capture.ALL_TABLES``, the capture columns first."""
    return spark_columns((*CAPTURE.all_columns, *ALL_TABLES[table].table.all_columns), guid)


def struct_type(columns: Iterable[SparkColumn]) -> StructType:
    """The columns as a schema of Spark."""
    from pyspark.sql.types import StructField, StructType

    return StructType([StructField(column.name, column.spark) for column in columns])


def arrow_schema(columns: Iterable[SparkColumn]) -> pa.Schema:
    """The columns as the Arrow schema that Spark expects of a batch of them."""
    return pa.schema([(column.name, column.arrow) for column in columns])


def convert(rows: ArrowRows, columns: Sequence[SparkColumn]) -> ArrowRows:
    """Rows of a table, which has GUIDs as requested, as exactly these columns."""
    arrays = [_convert_column(rows.column(column.source), column) for column in columns]
    return type(rows).from_arrays(arrays, schema=arrow_schema(columns))


def _convert_column(array: Any, column: SparkColumn) -> Any:
    # Casting to the same type takes time too; lists may differ in the names of their items
    if array.type == column.arrow and not pa.types.is_nested(array.type):
        return array
    if pa.types.is_timestamp(array.type) and pa.types.is_timestamp(column.arrow):
        return _in_microseconds(array, column.arrow)
    return array.cast(column.arrow)


def _in_microseconds(times: Any, type_: pa.DataType) -> Any:
    """Times rounded down, before 1970 too, as days are; the next column has the nanoseconds."""
    # Casting rounds towards zero. The least time takes a fourth of the time of casting, and no capture has such times
    least: Any = pc.min(times)
    if not least.is_valid or least.value >= 0:
        return times.cast(type_, safe=False)
    numbers = times.cast(pa.int64())
    cut = pc.divide(numbers, 1000)
    return pc.subtract(cut, pc.less(numbers, pc.multiply(cut, 1000)).cast(pa.int64())).cast(type_)
