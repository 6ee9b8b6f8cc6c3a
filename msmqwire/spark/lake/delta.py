"""Tables of a lake as Delta tables: each commit of the lake is one transaction of each table."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import CommitProperties, DeltaTable, Transaction
from deltalake.transaction import AddAction, RemoveAction

from msmqwire.spark.lake.dayfiles import NO_DAY

__all__ = ["active_files", "change", "create"]

# The name under which transactions number themselves, so that none is made twice
_APPLICATION = "msmqwire.spark.pipeline"


def create(table: Path, schema: pa.Schema) -> DeltaTable:
    """The Delta table in a folder, made when it is not there."""
    with_day = schema.append(pa.field("day", pa.date32()))
    return DeltaTable.create(str(table), with_day, mode="ignore", partition_by=["day"])


def active_files(table: Path) -> set[str]:
    """The files that are part of a table now, relative to it."""
    if not DeltaTable.is_deltatable(str(table)):
        return set()
    return {"/".join(uri.split("/")[-2:]) for uri in DeltaTable(str(table)).file_uris()}


def change(table: Path, number: int, adds: Iterable[str], removes: Iterable[str]) -> None:
    """Add files to a table and take others out, in one transaction, unless the one of this number was made already.

    What is taken out stays on disk for those who read an earlier version, until somebody vacuums the table.

    Parameters
    ----------
    adds, removes : iterable of str
        Files, in place, relative to the table: ``day=2024-03-04/<name>.parquet``.
    """
    added = list(adds)
    delta = create(table, pq.read_schema(table / added[0])) if added else DeltaTable(str(table))
    if (delta.transaction_version(_APPLICATION) or 0) >= number:
        return
    now = time.time_ns() // 1_000_000
    actions: list[AddAction | RemoveAction] = [_add(table, name, now) for name in added]
    actions += [_remove(table, name, now) for name in removes]
    properties = CommitProperties(app_transactions=[Transaction(_APPLICATION, number)])
    delta.create_write_transaction(
        actions, mode="append", schema=delta.schema(), partition_by=["day"], commit_properties=properties
    )


def _day(name: str) -> str | None:
    day = name.split("/")[0].removeprefix("day=")
    return None if day == NO_DAY else day


def _add(table: Path, name: str, now: int) -> AddAction:
    rows = pq.read_metadata(table / name).num_rows
    size = (table / name).stat().st_size
    return AddAction(name, size, {"day": _day(name)}, now, True, json.dumps({"numRecords": rows}))


def _remove(table: Path, name: str, now: int) -> RemoveAction:
    size = (table / name).stat().st_size
    return RemoveAction(name, True, now, size, {"day": _day(name)})
