"""Maintenance of a lake: merge small files, delete files, list runs, check files and rows."""

from __future__ import annotations

import datetime
import os
import time
from collections import Counter
from dataclasses import dataclass

from msmqwire.errors import LakeError
from msmqwire.spark.lake.checking import differences
from msmqwire.spark.lake.committing import Lake
from msmqwire.spark.lake.others import note_deletions
from msmqwire.spark.lake.schemas import ALL_TABLES
from msmqwire.spark.lake.storage import SCRATCH, LakeOptions, Storage
from msmqwire.spark.lake.tables import RUN, LakeTable

_HOUR = 3600
# A run that has written nothing for so long is not under way any more
_UNDER_WAY_HOURS = 24


@dataclass(frozen=True)
class Run:
    """A run of a lake: its number, when it was committed, how many captures and rows it added, and deleted rows."""

    number: int
    committed: datetime.datetime
    captures: int
    rows: int
    deleted: int = 0


def optimize(lake: str | os.PathLike[str], *, lake_options: LakeOptions | None = None) -> dict[str, tuple[int, int]]:
    """Merge small files of every table into large ones; runs may commit meanwhile.

    Returns
    -------
    dict of str to (int, int)
        The number of files before and afterwards, by table. The files before are deleted by ``vacuum``.

    Raises
    ------
    LakeError
        It is not a lake, or cannot be written.
    OSError
        It cannot be written.
    """
    store = Lake(Storage.of(lake, lake_options))
    store.apply_committed_runs()
    counts = {}
    for name in ALL_TABLES:
        table = store.table(name)
        if table.exists:
            before = len(table.active())
            table.merge()
            table.checkpoint()
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
        It is not a lake.
    """
    store = Lake(Storage.of(lake, lake_options))
    storage = store.storage
    if not dry_run:
        # The files that other writers have removed say which rows they deleted
        store.apply_committed_runs()
        note_deletions(store)
    now = time.time()
    gone = []
    for name in ALL_TABLES:
        table = store.table(name)
        if not table.exists:
            continue
        pending = store.pending(name).paths
        written = {file.name: file.modified for file in storage.list(name)}
        removed = set(table.expired(hours))
        for path in table.expired(hours, orphans=True):
            file = f"{name}/{path}"
            # A file that the log has never named may be of a run that has not committed yet
            age = 0 if path in removed else max(hours, _UNDER_WAY_HOURS) * _HOUR
            if path not in pending and file in written and written[file] <= now - age:
                gone.append(file)
    age = max(hours, _UNDER_WAY_HOURS) * _HOUR
    gone += [file.name for file in storage.list(SCRATCH) if file.modified <= now - age]
    if not dry_run:
        storage.delete(gone)
    return gone


def history(lake: str | os.PathLike[str], *, lake_options: LakeOptions | None = None) -> list[Run]:
    """The runs of a lake, the last one first, as far as the log of ``accounting`` reaches back.

    Raises
    ------
    LakeError
        It is not a lake.
    """
    store = Lake(Storage.of(lake, lake_options))
    runs = []
    for entry in store.table("accounting").delta.history():
        if RUN in entry and "captures" in entry:
            moment = datetime.datetime.fromtimestamp(entry["timestamp"] / 1000, datetime.UTC)
            counts = (int(entry.get(name, 0)) for name in ("captures", "rows", "deleted"))
            runs.append(Run(int(entry[RUN]), moment, *counts))
    return runs


def check(lake: str | os.PathLike[str], *, lake_options: LakeOptions | None = None) -> list[str]:
    """Compare a lake with itself: every file can be read and is as it was written, and the rows of every capture.

    Returns
    -------
    list of str
        What is wrong; empty when nothing is.

    Raises
    ------
    LakeError
        It is not a lake.
    """
    storage = Storage.of(lake, lake_options)
    while True:
        before = _logs(storage)
        # A run that commits meanwhile makes tables and accounting differ
        if not (problems := _problems(storage)) or _logs(storage) == before:
            return problems


def _logs(storage: Storage) -> list[list[str]]:
    return [[file.name for file in LakeTable(storage, name).entries()] for name in ALL_TABLES]


def _problems(storage: Storage) -> list[str]:
    problems: dict[str, None] = {}
    store: Lake | None = None
    said: dict[str, Counter[str]] = {}
    try:
        found = Lake(storage)
        found.check_order()
        said, store = found.rows_by_capture(), found
    except LakeError as error:
        if not LakeTable(storage, "accounting").has_log:
            raise
        problems[str(error)] = None
    for name in ALL_TABLES:
        try:
            problems |= dict.fromkeys(differences(store, storage, name, said.get(name)))
        except LakeError as error:
            problems[str(error)] = None
    return list(problems)
