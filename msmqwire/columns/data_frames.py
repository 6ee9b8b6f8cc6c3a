"""Tables of Arrow as Python has them, and as pandas and polars do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from msmqwire.errors import require

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa


def python_rows(table: pa.RecordBatch | pa.Table) -> list[dict[str, Any]]:
    """The rows as Python has them, and times as text: datetime has no nanoseconds."""
    columns = [_python_values(column) for column in table.columns]
    return [dict(zip(table.schema.names, row, strict=True)) for row in zip(*columns, strict=True)]


def _python_values(column: Any) -> list[Any]:
    if not str(column.type).startswith("timestamp[ns"):
        values: list[Any] = column.to_pylist()
        return values
    times = column.cast("int64").to_pylist()
    return [None if time is None else f"{np.datetime64(time, 'ns')}Z" for time in times]


def pandas_frame(table: pa.Table, options: dict[str, Any]) -> pd.DataFrame:
    """A DataFrame of pandas, made with options of ``pyarrow.Table.to_pandas``.

    A column of uint64 with nulls is of pandas' UInt64, unless an option says otherwise: other numbers with nulls are
    floats, which have 53 bits.
    """
    require("pandas", "to_pandas")
    import pandas as pd
    import pyarrow as pa

    wide = []
    if not options.keys() & {"types_mapper", "integer_object_nulls"}:
        wide = [name for name in table.schema.names if table.schema.field(name).type == pa.uint64()]
    exact = {
        name: table[name].to_pandas(types_mapper=lambda _: pd.UInt64Dtype()) for name in wide if table[name].null_count
    }
    frame: pd.DataFrame = table.to_pandas(**options)
    for name, values in exact.items():
        frame[name] = values
    return frame


def polars_frame(table: pa.Table) -> pl.DataFrame:
    """A DataFrame of polars."""
    require("polars", "to_polars")
    import polars as pl

    found = pl.from_arrow(table)
    assert isinstance(found, pl.DataFrame)
    return found
