"""Maintenance of a lake: merge small files, delete files, list runs, check files and rows."""

from __future__ import annotations

import datetime
import os
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow.parquet as pq

from msmqwire.spark.lake.commit import RUNS, Lake
from msmqwire.spark.lake.schemas import LAKE_TABLES
from msmqwire.spark.lake.storage import LakeOptions, Storage
from msmqwire.spark.lake.tables import RUN

__all__ = ["Run", "check", "history", "optimize", "vacuum"]

_HOUR = 3600
# A run that has written nothing for so long is not under way any more
_UNDER_WAY_HOURS = 24
_TABLES = (*LAKE_TABLES, "accounting")


@dataclass(frozen=True)
class Run:
    """A run of a lake: its number, when it was committed, and how many captures and rows it added."""

    number: int
    committed: datetime.datetime
    captures: int
    rows: int


def optimize(lake: str | os.PathLike[str], *, lake_options: LakeOptions | None = None) -> dict[str, tuple[int, int]]:
    """Merge small files of every table into large ones; runs may commit meanwhile.

    Returns
    -------
    dict of str to (int, int)
        The number of files before and afterwards, by table. The files before are deleted by ``vacuum``.

    Raises
    ------
    LakeError
        It is no lake.
    """
    store = Lake(Storage.of(lake, lake_options))
    counts = {}
    for name in _TABLES:
        table = store.table(name)
        if table.exists:
            before = len(table.active())
            table.merge()
            table.delta.create_checkpoint()
            counts[name] = before, len(table.active())
    return counts


def vacuum(
    lake: str | os.PathLike[str],
    *,
    hours: int = 168,
    dry_run: bool = False,
    lake_options: LakeOptions | None = None,
) -> list[str]:
    """Delete the files that no table has had for some time, and the files that killed runs have left.

    The files of every table as the runs of the last ``hours`` left it are kept, so that ``read(..., run=...)`` can read
    them; and files of runs under way: those of the last 24 hours if ``hours`` is less.

    Parameters
    ----------
    lake : path or URI
    hours : int
    dry_run : bool
        Delete nothing.
    lake_options : mapping of str to str, optional

    Returns
    -------
    list of str
        The files that were deleted, or would be, relative to the lake.

    Raises
    ------
    LakeError
        It is no lake.
    """
    store = Lake(Storage.of(lake, lake_options))
    storage = store.storage
    now = time.time()
    gone = []
    for name in _TABLES:
        table = store.table(name)
        if not table.exists:
            continue
        written = {file.name: file.modified for file in storage.list(name)}
        removed = set(table.expired(hours))
        for path in table.expired(hours, orphans=True):
            file = f"{name}/{path}"
            # A file that the log has never named may be of a run that has not committed yet
            age = 0 if path in removed else max(hours, _UNDER_WAY_HOURS) * _HOUR
            if file in written and written[file] <= now - age:
                gone.append(file)
    needed = store.plan_file
    gone += [
        file.name
        for file in storage.list(RUNS)
        if file.name != needed and file.modified <= now - max(hours, _UNDER_WAY_HOURS) * _HOUR
    ]
    if not dry_run:
        storage.delete(gone)
    return gone


def history(lake: str | os.PathLike[str], *, lake_options: LakeOptions | None = None) -> list[Run]:
    """The runs of a lake, the last one first, as far as the log of ``accounting`` reaches back.

    Raises
    ------
    LakeError
        It is no lake.
    """
    store = Lake(Storage.of(lake, lake_options))
    runs = []
    for entry in store.table("accounting").delta.history():
        if RUN in entry and "captures" in entry:
            moment = datetime.datetime.fromtimestamp(entry["timestamp"] / 1000, datetime.UTC)
            runs.append(Run(int(entry[RUN]), moment, int(entry["captures"]), int(entry["rows"])))
    return runs


def check(lake: str | os.PathLike[str], *, lake_options: LakeOptions | None = None) -> list[str]:
    """Compare a lake with itself: the files of every table are there, and the rows of every capture.

    Returns
    -------
    list of str
        What is wrong; empty when nothing is.

    Raises
    ------
    LakeError
        It is no lake, or it cannot be settled.
    """
    return list(_problems(Lake(Storage.of(lake, lake_options))))


def _problems(store: Lake) -> Iterator[str]:
    counted = store.rows_by_capture()
    for name in LAKE_TABLES:
        table = store.table(name)
        if not table.exists:
            continue
        files = table.active()
        paths = [f"{name}/{path}" for path in files["path"].to_pylist()]
        found: Counter[int] = Counter()
        for path, wanted, size in zip(paths, files["size_bytes"].to_pylist(), store.storage.sizes(paths), strict=True):
            if size != wanted:
                yield f"{path}: is missing" if size is None else f"{path}: has {size} bytes, not {wanted}"
                continue
            with store.storage.open(path) as file:
                captures: Any = pq.ParquetFile(file).read(["capture"], use_threads=False)["capture"]
            for one in captures.value_counts().to_pylist():
                found[one["values"]] += one["counts"]
        said = counted[name]
        for capture in sorted({*said, *found}):
            if said[capture] != found[capture]:
                yield f"{name}: {found[capture]} rows of capture {capture}, but {said[capture]} in accounting"
