"""The tables of a lake, read without the package: by deltalake and pyarrow."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable

NO_DAY = "__HIVE_DEFAULT_PARTITION__"


def lake_files(lake: str | Path, name: str) -> list[str]:
    """The files of a table, relative to it."""
    return list(pa.table(DeltaTable(Path(lake, name)).get_add_actions())["path"].to_pylist())


def lake_table(lake: str | Path, name: str, columns: Sequence[str] | None = None) -> pa.Table:
    """The rows of a table; ``day`` is a date, from the names of the files."""
    delta = DeltaTable(Path(lake, name))
    schema = pa.schema(delta.schema().to_arrow())
    tables = [pa.schema([one for one in schema if one.name != "day"]).empty_table()]
    days = [pa.array([], pa.date32())]
    for path in lake_files(lake, name):
        read = pq.ParquetFile(Path(lake, name, path)).read()
        tables.append(read.cast(tables[0].schema))
        folder = path.rpartition("/")[0]
        day = None if folder == f"day={NO_DAY}" else folder.removeprefix("day=")
        days.append(pa.array([day or None] * len(read), pa.string()).cast(pa.date32()))
    table = pa.concat_tables(tables)
    if "day" in schema.names:
        table = table.append_column("day", pa.chunked_array(days))
    return table if columns is None else table.select(list(columns))
