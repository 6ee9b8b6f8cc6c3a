"""Mend a lake from what is in it: logs, files that cannot be read, rows that differ from their account or have none.

Each step is a commit of its own that any reader may see, and follows from what is in the lake: a repair that was killed
is continued by the next one. What runs commit meanwhile is looked at again.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from msmqwire.capture import TABLES
from msmqwire.errors import counted
from msmqwire.spark.lake.accounting import ACCOUNTING, SourceAccount
from msmqwire.spark.lake.captures import capture_numbers
from msmqwire.spark.lake.commit import Lake
from msmqwire.spark.lake.logs import mend_log
from msmqwire.spark.lake.rewriting import Replacement, parquet_file
from msmqwire.spark.lake.schemas import ALL_TABLES, LAKE_TABLES
from msmqwire.spark.lake.storage import LakeError, LakeOptions, Storage
from msmqwire.spark.lake.tables import LakeTable
from msmqwire.spark.lake.verification import read_contents

_LOST = "its rows in the lake were not those of accounting and are gone; the next run reads it again"


def repair(
    lake: str | os.PathLike[str], *, dry_run: bool = False, lake_options: LakeOptions | None = None
) -> list[str]:
    """Mend a lake from what is in it; runs may commit meanwhile.

    Logs are made readable. Files that cannot be read are left out, and so are the rows of every capture that then lacks
    some, or has some twice: ``accounting`` says so, and the next run reads these captures again. Rows of captures that
    ``accounting`` does not have get their account back; where this is lost, the rows stay until a run reads a file of
    the same name. A plan of a run that is missing is written again.

    Parameters
    ----------
    lake : path or URI
    dry_run : bool
        Change nothing.
    lake_options : mapping of str to str, optional

    Returns
    -------
    list of str
        What was done, or would be; empty for a lake that ``check`` finds sound.

    Raises
    ------
    LakeError
        It is not a lake.
    """
    storage = Storage.of(lake, lake_options)
    if not storage.list("accounting"):
        raise LakeError(f"{storage.uri}: is not a lake: msmqwire pipeline makes one")
    done = [line for name in ALL_TABLES for line in mend_log(storage, name, dry_run=dry_run)]
    if dry_run and done:
        return [*done, "what else is to be done can be told once the logs can be read"]
    done += _drop_unreadable(storage, dry_run)
    if dry_run and any(line.startswith("accounting/") for line in done):
        return [*done, "what else is to be done can be told once accounting can be read"]
    while (found := _Findings(storage).lines(dry_run)) is None:
        # A run has committed meanwhile
        continue
    return done + found


def _drop_unreadable(storage: Storage, dry_run: bool) -> list[str]:
    """Leave the files out of their tables that cannot be read."""
    done: dict[str, None] = {}
    for name in ALL_TABLES:
        table = LakeTable(storage, name)
        if not table.exists:
            continue

        def unreadable(table: LakeTable = table) -> list[Replacement]:
            found = read_contents(storage, table, every_byte=True).unreadable
            done.update({f"{table.name}/{file.path}: {problem}: left out": None for file, problem in found.items()})
            return [] if dry_run else [Replacement([file], None) for file in found]

        table.replace(unreadable)
    return list(done)


@dataclass
class _Changes:
    """What is to be committed.

    Attributes
    ----------
    rows : list of dict
        Of ``accounting``.
    gone : set of int
        Numbers of captures whose rows of ``accounting`` are deleted.
    delete : dict of str to list of int
        Numbers of captures, by other tables.
    lines : list of str
        For people.
    """

    rows: list[dict[str, object]] = field(default_factory=list)
    gone: set[int] = field(default_factory=set)
    delete: dict[str, list[int]] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)


class _Findings:
    """The tables of a lake beside its accounting."""

    def __init__(self, storage: Storage) -> None:
        self.storage = storage
        self.lake = Lake(storage, settle=False)
        self.is_settled = True
        try:
            self.lake.settle()
        except LakeError:
            self.is_settled = False
        self.tables = {name: table for name in LAKE_TABLES if (table := self.lake.table(name)).has_log}
        self.contents = {name: read_contents(storage, table, every_byte=False) for name, table in self.tables.items()}
        self.numbers = capture_numbers()
        rows = sorted(self.lake.read_accounting().to_pylist(), key=lambda row: int(row["run"]))
        self.accounts: dict[int, dict[str, Any]] = {row["capture"]: row for row in rows}
        # A log that was mended may have files again whose rows others have replaced, or are in another file as well
        counts = Counter(row["capture"] for row in rows)
        self.twice = {capture for capture, count in counts.items() if count > 1}
        self.replaced = {number for row in rows for number in row["replaces"] or ()} & self.accounts.keys()
        for number in self.replaced:
            del self.accounts[number]

    def lines(self, dry_run: bool) -> list[str] | None:
        """Mend what differs; what was done, or None when a run has committed meanwhile."""
        changes = self._changes()
        accounting = LakeTable(self.storage, "accounting")
        if accounting.run != self.lake.run:
            return None
        lines = changes.lines
        if changes.rows:
            if not dry_run and not self.lake.commit_repair(changes.rows, changes.gone, changes.delete):
                return None
        elif not self.is_settled:
            lines.append(f"{self.lake.plan_file}: is written again")
            if not dry_run:
                self.lake.write_plan()
        return lines

    def _changes(self) -> _Changes:
        changes = _Changes()
        wrong = {capture for capture, row in self.accounts.items() if _counts(row) != self._found(capture)}
        for capture in sorted(wrong):
            changes.rows.append(self._lost(capture))
            changes.lines.append(f"{self.accounts[capture]['file']}: {_LOST}")
        kept = {capture: row for capture, row in self.accounts.items() if capture not in wrong}
        if again := self.replaced | self.twice:
            changes.rows += (row for capture, row in kept.items() if capture in again)
            changes.lines.append(f"accounting: {counted(len(again), 'row')} replaced or there twice: removed")
        changes.gone = wrong | again
        unknown = {capture for contents in self.contents.values() for capture in contents.rows} - self.accounts.keys()
        unwanted = wrong | self._take_in(unknown, kept, changes)
        for name, contents in self.contents.items():
            if gone := sorted(unwanted & contents.rows.keys()):
                changes.delete[name] = gone
        if not changes.rows and (changes.gone or changes.delete or self._lacks_run()):
            account = SourceAccount("msmqwire lake repair", next(self.numbers), problem="rows of accounting were lost")
            changes.rows.append(account.values(0, ""))
            changes.lines.append("accounting: a run is added, since entries of its log are lost")
        return changes

    def _found(self, capture: int) -> dict[str, int]:
        """The rows of a capture in the files of each table that has some."""
        return {name: found.rows[capture] for name, found in self.contents.items() if found.rows[capture]}

    def _lacks_run(self) -> bool:
        """Whether the last run of accounting is unknown, or not the last one of the tables."""
        unknown = bool(self.lake.run) and not self.lake.plan_file
        return unknown or any(table.run > self.lake.run for table in self.tables.values())

    def _lost(self, capture: int) -> dict[str, object]:
        """The row that says of a capture that its rows are gone."""
        before = self.accounts[capture]
        name = before["file"] if before["name"] is None else os.fsdecode(before["name"])
        account = SourceAccount(name, next(self.numbers), problem=f"{before['file']}: {_LOST}")
        return {**account.values(0, ""), "replaces": [capture]}

    def _take_in(self, unknown: set[int], kept: dict[int, dict[str, Any]], changes: _Changes) -> set[int]:
        """Find accounts for captures that have none; those whose rows are in the lake under another number."""
        replaced = {number for row in kept.values() for number in row["replaces"] or ()}
        keys = {row["key"] for row in kept.values()}
        counts = {(row["file"], frozenset(_counts(row).items())) for row in kept.values()}
        files = self._files_of_accounting(unknown - replaced)
        unwanted = set()
        for capture in sorted(unknown):
            rows = self._found(capture)
            row = files.get(capture)
            if row is not None and _counts(row) != rows:
                row = None
            text = f"{counted(sum(rows.values()), 'row')} of capture {capture}"
            if row is not None and row["key"] not in keys and capture not in replaced:
                changes.rows.append({**row, "replaces": []})
                changes.lines.append(f"{row['file']}: its row of accounting is restored")
                continue
            name = self._name(capture)
            if row is not None or capture in replaced or (name, frozenset(rows.items())) in counts:
                unwanted.add(capture)
                changes.lines.append(f"{name}: {text}, which the lake has from another file or run: removed")
                continue
            account = SourceAccount(name, capture, rows=rows, faults=self._faults(capture))
            account.rows.pop("faults", None)
            changes.rows.append(account.values(0, ""))
            changes.lines.append(f"{name}: {text} without accounting: kept until a run reads the file again")
        return unwanted

    def _files_of_accounting(self, captures: set[int]) -> dict[int, dict[str, Any]]:
        """The rows of some captures in files that are in the folder of accounting, but not in the table."""
        found: dict[int, dict[str, Any]] = {}
        if not captures:
            return found
        active = {f"accounting/{file.path}" for file in self.lake.table("accounting").files()}
        for file in self.storage.list("accounting"):
            if file.name in active or not file.name.endswith(".parquet") or "/_delta_log/" in file.name:
                continue
            try:
                with parquet_file(self.storage, file.name) as source:
                    read = source.read(ACCOUNTING.names, use_threads=False).cast(ACCOUNTING).to_pylist()
            except (LakeError, FileNotFoundError):
                # No row is taken from it
                continue
            found.update({row["capture"]: row for row in read if row["capture"] in captures and row["problem"] is None})
        return found

    def _rows(self, table: str, capture: int, column: str) -> Iterator[Any]:
        for path in self.contents[table].files.get(capture, ()):
            with parquet_file(self.storage, f"{table}/{path}") as source:
                read = source.read(["capture", column], use_threads=False)
            for batch in read.to_batches():
                here = batch.column("capture").to_numpy() == capture
                yield from batch.column(column).filter(pa.array(here)).to_pylist()

    def _name(self, capture: int) -> str:
        """The name of a capture, as its rows have it."""
        return str(next(name for table in self.contents for name in self._rows(table, capture, "file")))

    def _faults(self, capture: int) -> dict[str, int]:
        codes = self._rows("faults", capture, "code") if "faults" in self.contents else ()
        return dict(Counter(str(code) for code in codes))


def _counts(row: dict[str, Any]) -> dict[str, int]:
    """The rows by table that a row of accounting says."""
    rows = {name: count for name, count in row["rows"] if name in TABLES}
    rows["faults"] = sum(count for _, count in row["faults"])
    return {name: count for name, count in rows.items() if count}
