"""What other writers of Delta tables did to the rows of a lake, as the logs of its tables and their files say.

Readers read what the tables say. Rows that another writer has deleted are noted in ``accounting`` by the next run, so
that they do not come back when their capture is decoded again.
"""

from __future__ import annotations

import json
import os
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc

from msmqwire.errors import LakeError, counted
from msmqwire.spark.lake.committing import Lake
from msmqwire.spark.lake.deleting import commit_deletions
from msmqwire.spark.lake.places import PLACES, places, unlike
from msmqwire.spark.lake.rewriting import places_in
from msmqwire.spark.lake.schemas import LAKE_TABLES
from msmqwire.spark.lake.storage import LakeOptions, Storage
from msmqwire.spark.lake.tables import LakeTable

Places = dict[str, pa.Table]
# The key, in the history of accounting, of the version of each table up to which deletions were noted
_NOTED = "noted"


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
        Whether its files are there; otherwise the places of the rows are unknown.
    vanished : int
        Of unknown places, how many rows the log says that the table lost by it.
    """

    version: int
    operation: str
    lost: Places
    gained: Places
    is_known: bool = True
    vanished: int = 0

    def __str__(self) -> str:
        lost, gained = (sum(map(len, one.values())) for one in (self.lost, self.gained))
        counts = ((lost + self.vanished, "deleted"), (gained, "added"))
        lines = [f"{counted(count, 'row')} {'was' if count == 1 else 'were'} {what}" for count, what in counts if count]
        what = " and ".join(lines) or ("rows were changed" if self.is_known else "rows were changed or deleted")
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


def explained(store: Lake, name: str, said: Counter[str], there: Counter[str]) -> Counter[str]:
    """The rows by capture that a table has to have after what other writers did, if it does not have those ``said``."""
    found = Counter(said)
    changes = _Changes(store, name, said, there)
    for capture in changes.captures:
        found[capture] += len(changes.back[capture]) - len(changes.lost[capture]) - changes.vanished[capture]
    return found


def note_deletions(store: Lake) -> None:
    """Note the rows that other writers have deleted as deletions of the lake; this writes, if there are any."""
    while (state := _state(store)) != store.noted:
        found: dict[str, list[pa.Table]] = defaultdict(list)
        vanished: dict[str, dict[str, tuple[int, pa.Table]]] = defaultdict(dict)
        noted: dict[str, int] = {}
        differ = _differ(store)
        said = store.rows_by_capture() if differ else {}
        for name in differ:
            left = _there(store, name)
            there = Counter({capture: len(rows) for capture, rows in left.items()})
            changes = _Changes(store, name, said[name], there)
            noted[name] = changes.version
            for capture in changes.captures:
                lost, gone = changes.lost[capture], changes.vanished[capture]
                # Otherwise rows were lost as well, and which of them cannot be told
                if said[name][capture] - there[capture] == len(lost) + gone > 0:
                    found[capture].append(lost)
                    if gone:
                        vanished[capture][name] = gone, left.get(capture, _NONE)
        if not found:
            store.noted = state
        elif not commit_deletions(store, found, vanished=vanished, notes={_NOTED: json.dumps(noted)}):
            store.look()
            store.apply_committed_runs()


def _state(store: Lake) -> tuple[int, ...]:
    """The versions that the rows of the tables depend on."""
    tables = [store.table(name) for name in LAKE_TABLES if store.table(name).has_log]
    for table in tables:
        table.refresh()
    return (store.run, *(table.delta.version() for table in tables))


def _differ(store: Lake) -> list[str]:
    """The tables that do not have as many rows as accounting says."""
    said = store.rows_by_table()
    return [name for name in LAKE_TABLES if store.table(name).has_log and store.table(name).rows() != said[name]]


class _Changes:
    """What other writers did to the rows of a table, of the captures that have not as many rows as accounting says.

    Attributes
    ----------
    captures : list of str
    lost, back : dict of str to pyarrow.Table
        The places of rows that they deleted and that are not noted, and that they put back or added.
    vanished : Counter of str
        How many more rows they deleted, of which the log has nothing but the number.
    version : int
        Of the table, when they did the last of this; -1 where they did nothing.
    """

    def __init__(self, store: Lake, name: str, said: Counter[str], there: Counter[str]) -> None:
        self.captures = sorted(capture for capture in {*said, *there} if said[capture] != there[capture])
        self.lost: Places = {}
        self.back: Places = {}
        self.vanished: Counter[str] = Counter()
        table = store.table(name)
        done = _acts(store.storage, table) if self.captures else []
        self.version = max((act.version for act in done), default=-1)
        now = _there(store, name) if any(act.is_known for act in done) else {}
        for capture in self.captures:
            known, here = store.known.capture(capture), now.get(capture, _NONE)
            gone = unlike(_united(act.lost.get(capture, _NONE) for act in done), here)
            again = _common(_united(act.gained.get(capture, _NONE) for act in done), here)
            if known is not None:
                gone = unlike(gone, known.deletions)
                again = _NONE if known.deletions is None else _common(again, known.deletions)
            self.lost[capture], self.back[capture] = gone, again
        lacking = Counter(
            {
                capture: said[capture] + len(self.back[capture]) - len(self.lost[capture]) - there[capture]
                for capture in self.captures
            }
        )
        lacking = +lacking
        if lacking and any(act.vanished for act in done):
            noted = _noted(store).get(name, -1)
            if lacking.total() <= sum(act.vanished for act in done if act.version > noted):
                self.vanished = lacking


def _noted(store: Lake) -> dict[str, int]:
    """The version of each table up to which deletions of other writers were noted."""
    found: dict[str, int] = {}
    # The last one is the first
    for entry in reversed(store.table("accounting").delta.history()):
        found |= json.loads(entry.get(_NOTED, "{}"))
    return found


def _there(store: Lake, name: str) -> Places:
    table = store.table(name)
    return _by_capture(
        table.current(lambda: [places_in(store.storage, name, file.path) for file in table.files()]), name
    )


def _acts(storage: Storage, table: LakeTable) -> list[Act]:
    return [_act(storage, table, *change) for change in table.foreign()]


def _act(storage: Storage, table: LakeTable, version: int, operation: str, removed: list[str], added: list[str]) -> Act:
    name = table.name
    try:
        before, after = (
            _by_capture([places_in(storage, name, unquote(path)) for path in paths], name) for paths in (removed, added)
        )
    except (FileNotFoundError, LakeError):
        return Act(version, operation, {}, {}, is_known=False, vanished=_vanished(table, version))
    lost = {capture: unlike(rows, after.get(capture, _NONE)) for capture, rows in before.items()}
    gained = {capture: unlike(rows, before.get(capture, _NONE)) for capture, rows in after.items()}
    return Act(version, operation, lost, gained)


def _vanished(table: LakeTable, version: int) -> int:
    """How many rows the log says that a table lost by a commit."""
    try:
        before, after = (table.rows(one) for one in (version - 1, version))
    except LakeError:
        return 0  # the log does not reach back so far
    return 0 if before is None or after is None else max(0, before - after)


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
