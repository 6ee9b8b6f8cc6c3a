"""What other writers of Delta tables did to the rows of a lake, as the logs of its tables and their files say.

Readers read what the tables say. Rows that another writer has deleted are noted in ``accounting`` by the next run, so
that they do not come back when their capture is decoded again.
"""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc

from msmqwire.errors import counted
from msmqwire.spark.lake.commit import Lake
from msmqwire.spark.lake.deleting import commit_deletions
from msmqwire.spark.lake.places import PLACES, places, unlike
from msmqwire.spark.lake.rewriting import places_in
from msmqwire.spark.lake.schemas import LAKE_TABLES
from msmqwire.spark.lake.storage import LakeError, LakeOptions, Storage
from msmqwire.spark.lake.tables import LakeTable

Places = dict[str, pa.Table]


@dataclass(frozen=True)
class Act:
    """A commit of another writer that changed rows of a table.

    Attributes
    ----------
    version : int
    operation : str
    lost, gained : dict of str to pyarrow.Table
        The places of rows that were there before and not after it, and the other way round, by capture.
    is_known : bool
        Whether its files are there; otherwise nothing is known of the rows.
    """

    version: int
    operation: str
    lost: Places
    gained: Places
    is_known: bool = True

    def __str__(self) -> str:
        lost, gained = (sum(map(len, one.values())) for one in (self.lost, self.gained))
        counts = ((lost, "deleted"), (gained, "added"))
        lines = [f"{counted(count, 'row')} {'was' if count == 1 else 'were'} {what}" for count, what in counts if count]
        what = " and ".join(lines) or "rows were changed" if self.is_known else "rows were changed or deleted"
        return f"{what} by another writer in version {self.version} ({self.operation})"


def acts(lake: str | os.PathLike[str], *, lake_options: LakeOptions | None = None) -> list[str]:
    """What other writers did to rows, a line for each of their commits, as far as the logs reach back.

    Raises
    ------
    LakeError
        It is not a lake, or a log cannot be read.
    """
    store = Lake(Storage.of(lake, lake_options))
    return [
        f"{name}: {act}"
        for name in LAKE_TABLES
        if (table := store.table(name)).exists
        for act in _acts(store.storage, table)
    ]


def explained(store: Lake, name: str, captures: Iterable[str]) -> Counter[str]:
    """By how much other writers changed the rows that a table has of some captures, apart from noted deletions."""
    found: Counter[str] = Counter()
    lost, back = _changes(store, name, set(captures))
    found.update({capture: len(rows) for capture, rows in back.items()})
    found.subtract({capture: len(rows) for capture, rows in lost.items()})
    return found


def note_deletions(store: Lake) -> None:
    """Note the rows that other writers have deleted as deletions of the lake; this writes, if there are any."""
    while (state := _state(store)) != store.noted:
        found: dict[str, list[pa.Table]] = defaultdict(list)
        differ = _differ(store)
        said = store.rows_by_capture() if differ else {}
        for name in differ:
            there = Counter({capture: len(rows) for capture, rows in _there(store, name).items()})
            wrong = {capture for capture, count in said[name].items() if there[capture] < count}
            for capture, rows in _changes(store, name, wrong)[0].items():
                # Otherwise rows were lost as well, and which of them cannot be told
                if len(rows) == said[name][capture] - there[capture]:
                    found[capture].append(rows)
        if not found:
            store.noted = state
        elif not commit_deletions(store, found):
            store.look()
            store.settle()


def _state(store: Lake) -> tuple[int, ...]:
    """The versions that the rows of the tables depend on."""
    tables = [store.table(name) for name in LAKE_TABLES if store.table(name).has_log]
    for table in tables:
        table.refresh()
    return (store.run, *(table.delta.version() for table in tables))


def _differ(store: Lake) -> list[str]:
    """The tables that do not have as many rows as accounting says."""
    said = store.rows_by_table()
    return [name for name in LAKE_TABLES if store.table(name).has_log and store.table(name).rows != said[name]]


def _changes(store: Lake, name: str, captures: set[str]) -> tuple[Places, Places]:
    """The places of rows of captures that other writers deleted and are not noted, and that they put back or added."""
    table = store.table(name)
    done = [act for act in _acts(store.storage, table) if act.is_known] if captures else []
    there = _there(store, name) if done else {}
    lost: Places = {}
    back: Places = {}
    for capture in captures:
        known = store.known.capture(capture)
        now = there.get(capture, _NONE)
        gone = unlike(_united(act.lost.get(capture, _NONE) for act in done), now)
        again = _common(_united(act.gained.get(capture, _NONE) for act in done), now)
        if known is not None:
            lost[capture] = unlike(gone, known.deletions)
            again = _NONE if known.deletions is None else _common(again, known.deletions)
        back[capture] = again
    return lost, back


def _there(store: Lake, name: str) -> Places:
    table = store.table(name)
    return _by_capture(
        table.current(lambda: [places_in(store.storage, name, file.path) for file in table.files()]), name
    )


def _acts(storage: Storage, table: LakeTable) -> list[Act]:
    return [_act(storage, table.name, *change) for change in table.foreign()]


def _act(storage: Storage, name: str, version: int, operation: str, removed: list[str], added: list[str]) -> Act:
    try:
        before, after = (
            _by_capture([places_in(storage, name, unquote(path)) for path in paths], name) for paths in (removed, added)
        )
    except (FileNotFoundError, LakeError):
        return Act(version, operation, {}, {}, is_known=False)
    lost = {capture: unlike(rows, after.get(capture, _NONE)) for capture, rows in before.items()}
    gained = {capture: unlike(rows, before.get(capture, _NONE)) for capture, rows in after.items()}
    return Act(version, operation, lost, gained)


def _by_capture(read: list[pa.Table], name: str) -> Places:
    found: dict[str, list[pa.Table]] = defaultdict(list)
    for rows in read:
        for capture in map(str, rows["capture"].unique().to_pylist()):
            found[capture].append(places(rows.filter(pc.equal(rows["capture"], pa.scalar(capture))), name))
    return {capture: pa.concat_tables(some) for capture, some in found.items()}


_NONE = pa.Table.from_batches([], PLACES)  # empty_table imports pandas


def _common(some: pa.Table, others: pa.Table | bytes) -> pa.Table:
    return unlike(some, unlike(some, others))


def _united(some: Iterable[pa.Table]) -> pa.Table:
    rows = pa.concat_tables([_NONE, *some])
    return rows.group_by(rows.column_names, use_threads=False).aggregate([])
