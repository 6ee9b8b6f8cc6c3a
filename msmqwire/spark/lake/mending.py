"""Mend a lake from what is in it: logs, files that cannot be read, rows that are there twice or have no account.

No step removes the last copy of a row. Each step is a commit of its own that any reader may see, and follows from what
is in the lake: a repair that was killed is continued by the next one. What runs commit meanwhile is looked at again.
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
from msmqwire.spark.lake.rewriting import Replacement, parquet_file, without_copies_of
from msmqwire.spark.lake.schemas import ALL_TABLES, LAKE_TABLES
from msmqwire.spark.lake.storage import LakeError, LakeOptions, Storage
from msmqwire.spark.lake.tables import LakeTable
from msmqwire.spark.lake.verification import read_contents

_MARKED = "kept; the next run that finds this capture reads it again"
# No run has these settings, so the next one takes the capture for one that was decoded otherwise
_OTHER_SETTINGS = "repair"


def repair(
    lake: str | os.PathLike[str], *, dry_run: bool = False, lake_options: LakeOptions | None = None
) -> list[str]:
    """Mend a lake from what is in it; runs may commit meanwhile.

    Logs are made readable. Files that cannot be read are left out. Of rows that are there twice, one is kept. A capture
    whose rows are not those that ``accounting`` has keeps them; the next run that finds this capture reads it again.
    Rows of captures that ``accounting`` does not have get their account back; where this is lost, the rows stay until a
    run reads a file of the same name. A plan of a run that is missing is written again.

    Parameters
    ----------
    lake : path or URI
    dry_run : bool
        Change nothing.
    lake_options : mapping of str to str, optional

    Returns
    -------
    list of str
        What was done, or would be; empty for a lake that ``check`` finds sound, and where nothing is left to be done.

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
    while True:
        findings = _Findings(storage)
        done += findings.remove_copies(dry_run)
        # None where a run has committed meanwhile
        if (found := findings.lines(dry_run)) is not None:
            return list(dict.fromkeys([*done, *found]))


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
    restored : list of dict
        Those of them that accounting did not have.
    gone : set of int
        Numbers of captures whose rows of ``accounting`` are deleted.
    delete : dict of str to list of int
        Numbers of captures, by other tables.
    lines : list of str
        For people.
    """

    rows: list[dict[str, Any]] = field(default_factory=list)
    restored: list[dict[str, Any]] = field(default_factory=list)
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

    def remove_copies(self, dry_run: bool) -> list[str]:
        """Keep one of the rows that are there several times; what was done, or would be."""
        done = []
        for name, contents in list(self.contents.items()):
            said = Counter({capture: _counts(row).get(name, 0) for capture, row in self.accounts.items()})
            suspects = {capture for capture, count in contents.rows.items() if count != said[capture]}
            removed: Counter[int] = Counter()

            def without_copies(
                name: str = name, suspects: set[int] = suspects, removed: Counter[int] = removed
            ) -> list[Replacement]:
                found, counts = without_copies_of(self.storage, name, self.tables[name].files(), suspects, dry_run)
                removed.clear()
                removed.update(counts)
                return found

            if not suspects:
                continue
            self.tables[name].replace(without_copies)
            if dry_run:
                contents.rows.subtract(removed)
            else:
                # Another repair may have removed some
                self.contents[name] = read_contents(self.storage, self.tables[name], every_byte=False)
            done += [
                f"{self.accounts[capture]['file'] if capture in self.accounts else self._name(capture)}: "
                f"{counted(count, 'row')} of {name} that other rows are copies of: removed"
                for capture, count in sorted(removed.items())
            ]
        return done

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
        kept = {capture: row for capture, row in self.accounts.items() if capture not in wrong}
        unknown = {capture for contents in self.contents.values() for capture in contents.rows} - self.accounts.keys()
        unwanted = self._take_in(unknown, kept, changes)
        # Their complete successors are in the lake
        superseded = {
            capture
            for capture, row in self.accounts.items()
            if any(row["key"] == one["key"] and row["length"] <= one["length"] for one in changes.restored)
        }
        for capture in sorted(wrong - superseded):
            row = self.accounts[capture]
            if row["settings"] != _OTHER_SETTINGS:
                changes.rows.append({**row, "settings": _OTHER_SETTINGS, "replaces": []})
                changes.gone.add(capture)
                changes.lines.append(f"{row['file']}: {_difference(_counts(row), self._found(capture))}: {_MARKED}")
        if again := self.replaced | self.twice:
            named = {row["capture"] for row in changes.rows} | superseded
            changes.rows += (self.accounts[capture] for capture in again & self.accounts.keys() - named)
            changes.lines.append(f"accounting: {counted(len(again), 'row')} replaced or there twice: removed")
        changes.gone |= again | superseded
        for name, contents in self.contents.items():
            if gone := sorted((unwanted | superseded) & contents.rows.keys()):
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

    def _take_in(self, unknown: set[int], kept: dict[int, dict[str, Any]], changes: _Changes) -> set[int]:
        """Find accounts for captures that have none; those whose rows are in the lake under another number."""
        replaced = {number for row in kept.values() for number in row["replaces"] or ()}
        lengths = {row["key"]: row["length"] for row in kept.values()}
        counts = {(row["file"], frozenset(_counts(row).items())): capture for capture, row in kept.items()}
        files = self._files_of_accounting(unknown - replaced)
        unwanted = set()
        for capture in sorted(unknown):
            rows = self._found(capture)
            row = files.get(capture)
            if row is not None and _counts(row) != rows:
                row = None
            text = f"{counted(sum(rows.values()), 'row')} of capture {capture}"
            is_longest = row is not None and lengths.get(row["key"], -1) < row["length"]
            if row is not None and is_longest and capture not in replaced:
                changes.restored.append({**row, "replaces": []})
                changes.lines.append(f"{row['file']}: its row of accounting is restored")
                continue
            name = self._name(capture)
            other = counts.get((name, frozenset(rows.items())))
            is_same = other is not None and self._places(capture) == self._places(other)
            if row is not None or capture in replaced or is_same:
                unwanted.add(capture)
                changes.lines.append(f"{name}: {text}, which the lake has from another file or run: removed")
                continue
            account = SourceAccount(name, capture, rows=rows, faults=self._faults(capture))
            account.rows.pop("faults", None)
            changes.rows.append(account.values(0, ""))
            changes.lines.append(f"{name}: {text} without accounting: kept until a run reads the file again")
        changes.rows += changes.restored
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

    def _places(self, capture: int) -> dict[str, Counter[tuple[Any, ...]]]:
        """Where each row of a capture comes from, by table."""
        names = ("frame", "stream_offset", "time_ns")
        tables = (table for table, found in self.contents.items() if found.rows[capture])
        return {
            table: Counter(zip(*(self._rows(table, capture, name) for name in names), strict=True)) for table in tables
        }

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


def _difference(said: dict[str, int], found: dict[str, int]) -> str:
    """How the rows of a capture differ from its account."""
    differ = [name for name in {**said, **found} if said.get(name, 0) != found.get(name, 0)]
    return ", ".join(f"{counted(found.get(name, 0), 'row')} of {name}, not {said.get(name, 0)}" for name in differ)
