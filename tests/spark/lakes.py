"""What is in a lake: its rows, its counts of each capture, and results of tasks that a test has changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from msmqwire.capture import TABLES
from msmqwire.spark import pipeline
from msmqwire.spark.lake.accounting import Decoded
from msmqwire.spark.lake.decoding import Decoding
from tests.spark.rows import in_spark_types, read_table

ALL_TABLES = (*TABLES, "faults", "accounting")
NO_DAY = "__HIVE_DEFAULT_PARTITION__"
#: What tells one run from another.
OF_RUNS = ("run", "files", "replaces")
PLACE = ("file", "frame", "stream_offset", "index")


def files_of(lake: str | Path, name: str) -> list[str]:
    """The files of a table, relative to it."""
    return [
        row["path"] for row in pa.table(DeltaTable(Path(lake, name)).get_add_actions()).select(["path"]).to_pylist()
    ]


def read(lake: str | Path, name: str = "topology", columns: Sequence[str] | None = None) -> pa.Table:
    """The rows of a table; ``day`` is a date, from the names of the files."""
    delta = DeltaTable(Path(lake, name))
    schema = pa.schema(delta.schema().to_arrow())  # type: ignore[arg-type]  # the stub knows no __arrow_c_schema__
    tables = [pa.schema([one for one in schema if one.name != "day"]).empty_table()]
    days: list[pa.Array[Any]] = [pa.array([], pa.date32())]
    for path in files_of(lake, name):
        read = pq.ParquetFile(Path(lake, name, path)).read()
        tables.append(read.cast(tables[0].schema))
        folder = path.rpartition("/")[0]
        day = None if folder == f"day={NO_DAY}" else folder.removeprefix("day=")
        days.append(pa.array([day or None] * len(read), pa.string()).cast(pa.date32()))
    table = pa.concat_tables(tables)
    if "day" in schema.names:
        table = table.append_column("day", pa.chunked_array(days))
    return table if columns is None else table.select(list(columns))


def contents(lake: Path) -> dict[str, list[dict[str, Any]]]:
    """All rows of all tables, without what tells one run from another."""
    tables = {name: read(lake, name) for name in ALL_TABLES}
    found = {
        name: table.drop([one for one in OF_RUNS if one in table.column_names]).to_pylist()
        for name, table in tables.items()
    }
    return {name: sorted(rows, key=lambda row: str(list(row.values())[:9])) for name, rows in found.items()}


def assert_rows(lake: Path, *files: Path | str, tables: Sequence[str] = tuple(TABLES)) -> None:
    """In every column of the tables, the rows that one process reads of each file, each once."""
    for table in tables:
        found = read(lake, table).drop(["day", "capture"])
        order: list[tuple[str, Literal["ascending", "descending"]]] = [
            (name, "ascending") for name in PLACE if name in found.column_names
        ]
        wanted = pa.concat_tables(in_spark_types(read_table(file, table), found.schema) for file in files)
        assert found.sort_by(order).equals(wanted.sort_by(order)), table


def rows(lake: Path, table: str = "topology") -> Counter[tuple[str, int]]:
    """File and frame of each row of a table."""
    return places(read(lake, table, ["file", "frame"]))


def wanted(*files: Path | str, table: str = "topology") -> Counter[tuple[str, int]]:
    """File and frame of each row that one process reads of the files."""
    readers = (read_table(file, table, columns=["file", "frame"]) for file in files)
    return sum((places(pa.Table.from_batches(reader, reader.schema)) for reader in readers), Counter())


def places(table: pa.Table) -> Counter[tuple[str, int]]:
    """Its files and frames."""
    files: list[Any] = table["file"].to_pylist()
    frames: list[Any] = table["frame"].to_pylist()
    return Counter(zip(files, frames, strict=True))


def accounts(lake: Path) -> dict[str, dict[str, Any]]:
    """The row of each capture in ``accounting``, which has one."""
    found = [row for row in read(lake, "accounting").to_pylist() if row["duplicate_of"] is None]
    assert len({row["file"] for row in found}) == len(found)
    return {row["file"]: row for row in found}


def change_result(monkeypatch: pytest.MonkeyPatch, change: Callable[[Decoded], None], which: int = -1) -> None:
    """Change one of the results that tasks of decoding send back to the driver, the last by default."""
    on_workers = pipeline._Run._on_workers

    def changed(self: pipeline._Run, work: Callable[[Any], Any], parts: Sequence[Any]) -> list[Any]:
        results = on_workers(self, work, parts)
        if isinstance(getattr(work, "__self__", work), Decoding) and results:
            change(results[which])
        return results

    monkeypatch.setattr(pipeline._Run, "_on_workers", changed)
