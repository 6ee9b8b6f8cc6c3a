"""What is in a lake: its rows, its counts of each capture, and results of tasks that a test has changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pytest

from msmqwire.capture import TABLES, read_table
from msmqwire.spark import pipeline
from msmqwire.spark.lake.tasks import Decoded, Decoding
from tests.spark.rows import in_spark_types

ALL_TABLES = (*TABLES, "faults", "accounting")
PLACE = ("file", "frame", "stream_offset", "index")


def read(lake: Path, table: str = "topology", columns: Sequence[str] | None = None) -> pa.Table:
    """The rows of a table, with their day."""
    return ds.dataset(lake / table, partitioning="hive").to_table(columns=columns)


def contents(lake: Path) -> dict[str, list[dict[str, Any]]]:
    """All rows of all tables."""
    found = {name: read(lake, name).to_pylist() for name in ALL_TABLES}
    return {name: sorted(rows, key=lambda row: str(list(row.values())[:9])) for name, rows in found.items()}


def assert_rows(lake: Path, *files: Path | str, tables: Sequence[str] = tuple(TABLES)) -> None:
    """In every column of the tables, the rows that one process reads of each file, each once."""
    for table in tables:
        found = read(lake, table).drop(["day"])
        order = [(name, "ascending") for name in PLACE if name in found.column_names]
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
    return Counter(zip(table["file"].to_pylist(), table["frame"].to_pylist(), strict=True))


def accounts(lake: Path) -> dict[str, dict[str, Any]]:
    """The row of each capture in ``accounting``, which has one."""
    found = read(lake, "accounting").to_pylist()
    assert len({row["file"] for row in found}) == len(found)
    return {row["file"]: row for row in found}


def change_last_result(monkeypatch: pytest.MonkeyPatch, change: Callable[[Decoded], None]) -> None:
    """Change the last of the results that tasks send back to the driver."""
    on_workers = pipeline._Run._on_workers

    def changed(self: pipeline._Run, work: Callable[[Any], str], parts: Sequence[Any]) -> list[str]:
        results = on_workers(self, work, parts)
        if isinstance(getattr(work, "__self__", work), Decoding) and results:
            decoded = Decoded.from_json(results[-1])
            change(decoded)
            results[-1] = decoded.to_json()
        return results

    monkeypatch.setattr(pipeline._Run, "_on_workers", changed)
