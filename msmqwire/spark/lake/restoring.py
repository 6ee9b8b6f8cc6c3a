"""Restore a lake as an earlier run left it: all tables together, as one run of the lake."""

from __future__ import annotations

import os
from itertools import groupby
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from msmqwire.errors import LakeError, counted
from msmqwire.spark.lake.committing import Lake
from msmqwire.spark.lake.rewriting import ActiveFile, rewrite
from msmqwire.spark.lake.scanning import LakeScan, Within
from msmqwire.spark.lake.schemas import LAKE_TABLES
from msmqwire.spark.lake.storage import LakeOptions, Storage
from msmqwire.spark.lake.writing import WrittenFile, day_name

# What a capture has the same rows with
_STATE = ("settings", "rows", "faults", "deleted", "deletions")


def restore(
    lake: str | os.PathLike[str], run: int, *, dry_run: bool = False, lake_options: LakeOptions | None = None
) -> list[str]:
    """Take all tables back to their state after a run; other runs may commit meanwhile.

    Rows that were deleted since are back, if ``vacuum`` has not deleted their files. The next run of the pipeline reads
    files again that it does not find in the lake any more.

    Parameters
    ----------
    lake : path or URI
    run : int
    dry_run : bool
        Change nothing.
    lake_options : mapping of str to str, optional

    Returns
    -------
    list of str
        What was done, or would be; empty where the lake is as that run left it.

    Raises
    ------
    ValueError
        There is no such run.
    LakeError
        It is not a lake, or its logs or files do not reach back so far.
    """
    store = Lake(Storage.of(lake, lake_options))
    while True:
        if not dry_run:
            store.apply_committed_runs()
        scan = LakeScan.of(store, "accounting", run=run)
        before = _captures([row for batch in scan.batches() for row in batch.to_pylist()])
        now = _captures(store.read_accounting().to_pylist())
        same = {capture for capture in before.keys() & now.keys() if _state(before[capture]) == _state(now[capture])}
        back = [row for capture, row in before.items() if capture not in same]
        gone = [row for capture, row in now.items() if capture not in same]
        done = [f"{row['file']}: {counted(sum(dict(row['rows']).values()), 'row')}: removed" for row in gone]
        done += [f"{row['file']}: {counted(sum(dict(row['rows']).values()), 'row')}: restored" for row in back]
        if dry_run or not done or _commit(store, run, before, back, gone):
            return done
        # Another run has come first
        store.look()


def _captures(rows: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {row["capture"]: row for row in rows if row["duplicate_of"] is None and row["problem"] is None}


def _state(row: dict[str, Any]) -> list[Any]:
    return [sorted(row[name]) if isinstance(row[name], list) else row[name] for name in _STATE]


def _commit(
    store: Lake, run: int, before: dict[str, dict[str, Any]], back: list[dict[str, Any]], gone: list[dict[str, Any]]
) -> bool:
    """Commit the rows of captures that come back, and remove others; False when another run has come first."""
    # A row of accounting says what the tables remove
    rows = [dict(row) for row in back or list(before.values())[:1]]
    if not rows:
        raise LakeError(f"{store.storage.uri}: run {run} has no capture, so it cannot be restored: make a new lake")
    files = [file for name in LAKE_TABLES for file in _written(store, name, run, [row["capture"] for row in back])]
    for row in rows:
        row.update(files=[], replaces=[])
    rows[0]["files"] = [f"{file.table}/{file.path}" for file in files]
    rows[0]["replaces"] = [{"capture": row["capture"], "file": row["file"]} for row in gone]
    left = before.keys()
    known = [store.known.capture(row["capture"]) for row in (*gone, *rows)]
    copies = [copy for row in gone if row["capture"] not in left for copy in store.known.copies(row["capture"])]
    removed = list(dict.fromkeys(one for one in (*known, *copies) if one is not None))
    if not store.commit_rows(rows, removed, files, {"captures": str(len(back)), "rows": "0"}):
        return False
    store.apply_committed_runs()
    return True


def _written(store: Lake, name: str, run: int, captures: list[str]) -> list[WrittenFile]:
    """New files with the rows of captures that a table had after a run."""
    table = store.table(name)
    if not captures or not table.exists:
        return []
    wanted = pa.array(captures, pa.string())

    def others(rows: pa.Table) -> Any:
        return pc.invert(pc.is_in(rows["capture"], wanted))

    found = LakeScan.of(store, name, [Within("capture", tuple((one, one) for one in captures))], run=run).files
    files = [ActiveFile(file.path, file.size, day_name(file.day), None, {}, {}) for file in found]
    written = []
    for _, of_day in groupby(sorted(files, key=lambda file: str(file.day)), key=lambda file: file.day):
        try:
            written.append(rewrite(store.storage, name, list(of_day), table.schema, others).added)
        except FileNotFoundError as error:
            raise LakeError(f"{error.filename or error}: is gone; vacuum has deleted files of run {run}") from None
    return [file for file in written if file is not None]
