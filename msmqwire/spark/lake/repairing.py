"""Repair a lake: of rows that are there twice one is kept, and captures that lack rows are marked to be read again.

No row is removed of which there is no other. A repair that was killed is completed by the next one.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from functools import partial

from msmqwire.errors import counted
from msmqwire.spark.lake.checking import Contents, read_contents
from msmqwire.spark.lake.committing import Lake
from msmqwire.spark.lake.others import explained, note_deletions
from msmqwire.spark.lake.rewriting import Replacement, without_copies
from msmqwire.spark.lake.schemas import LAKE_TABLES
from msmqwire.spark.lake.storage import LakeOptions, Storage
from msmqwire.spark.lake.tables import LakeTable

# No run has these settings, so the next one takes the capture for one that was decoded otherwise
_OTHER_SETTINGS = "repair"


def repair(
    lake: str | os.PathLike[str],
    *,
    dry_run: bool = False,
    lake_options: LakeOptions | None = None,
) -> list[str]:
    """Remove rows that are there twice, and mark captures that lack rows; runs may commit meanwhile.

    Rows are copies if they have the same ``capture``, ``frame``, ``stream_offset``, ``index`` and ``table``, of those
    that their table has; the first one is kept. A capture that lacks rows keeps the others: the next run that finds its
    file reads it again.

    Parameters
    ----------
    lake : path or URI
    dry_run : bool
        Change nothing.
    lake_options : mapping of str to str, optional

    Returns
    -------
    list of str
        What was done, or would be; empty where nothing is to be done.

    Raises
    ------
    LakeError
        It is not a lake, or has a log or a file that cannot be read.
    """
    store = Lake(Storage.of(lake, lake_options))
    done: dict[str, None] = {}
    while True:
        if not dry_run:
            store.apply_committed_runs()
            note_deletions(store)
        contents = {name: read_contents(store, store.storage, name, every_byte=False) for name in LAKE_TABLES}
        done |= dict.fromkeys(_remove_copies(store, contents, dry_run))
        if (marked := _mark(store, contents, dry_run)) is not None:
            return [*done, *marked]
        # A run has committed meanwhile
        store.look()


def _remove_copies(store: Lake, contents: Mapping[str, Contents], dry_run: bool) -> list[str]:
    """Keep one of the rows that are there several times."""
    done = []
    for name, found in contents.items():
        if not found.copies:
            continue
        removed: Counter[str] = Counter(found.copies)

        def chosen(table: LakeTable, removed: Counter[str]) -> list[Replacement]:
            replaced, counts = without_copies(store.storage, table.name, table.files(), table.schema, dry_run=False)
            # Another repair may have removed some
            removed.clear()
            removed.update(counts)
            return replaced

        if not dry_run:
            table = store.table(name)
            table.replace(partial(chosen, table, removed))
        done += [
            f"{_file(store, capture)}: {counted(count, 'row')} of {name} that other rows are copies of: removed"
            for capture, count in sorted(removed.items())
        ]
    return done


def _mark(store: Lake, contents: Mapping[str, Contents], dry_run: bool) -> list[str] | None:
    """Mark captures with other rows than accounting says; None when a run has committed meanwhile."""
    said = store.rows_by_capture()
    for name, counts in said.items():
        said[name] = explained(store, name, counts, contents[name].rows)
    wrong = {
        capture
        for name, counts in said.items()
        for capture in counts
        if counts[capture] != contents[name].rows[capture]
    }
    rows = [
        {**row, "settings": _OTHER_SETTINGS, "files": [], "replaces": []}
        for row in store.read_accounting().to_pylist()
        if row["capture"] in wrong and row["duplicate_of"] is None and row["settings"] != _OTHER_SETTINGS
    ]
    lines = []
    for row in rows:
        differ = ((name, contents[name].rows[row["capture"]], said[name][row["capture"]]) for name in LAKE_TABLES)
        what = ", ".join(
            f"{counted(there, 'row')} of {name}, not {count}" for name, there, count in differ if there != count
        )
        lines.append(f"{row['file']}: {what}: kept; the next run that finds this capture reads it again")
    if rows and not dry_run:
        gone = [found for row in rows if (found := store.known.capture(row["capture"])) is not None]
        if not store.commit_rows(rows, gone, notes={"captures": "0", "rows": "0"}):
            return None
    return lines


def _file(store: Lake, capture: str) -> str:
    found = store.known.capture(capture)
    return f"capture {capture}" if found is None else found.file
