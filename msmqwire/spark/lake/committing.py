"""Runs of a lake: ``accounting`` is the log of the lake, and the other tables take over what it has.

A run writes its files where they will stay, then commits its rows of ``accounting``, which name these files. Of several
runs that began at the same state of ``accounting``, deltalake accepts one, since the transaction of each follows the
state that it began at: this is a compare-and-swap. Before, a run has brought every table up to the run before it; so a
table lacks at most the files of the last run, and takes them over in one transaction with the number of this run. A
reader adds them itself. Captures that replace others are a run of their own, so that a table has either only files
added by a run, or replaced.
"""

from __future__ import annotations

import os
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from deltalake.exceptions import DeltaError

from msmqwire.capture.files.listing import SourceFile
from msmqwire.capture.parquet import Compression
from msmqwire.columns.arrow_arrays import integers
from msmqwire.errors import LakeError
from msmqwire.spark.lake.accounting import ACCOUNTING, Decoded, SourceAccount
from msmqwire.spark.lake.places import PLACE, are_deleted, united
from msmqwire.spark.lake.planning import KNOWN, Known, KnownCaptures, Relation
from msmqwire.spark.lake.rewriting import Replacement, parquet_file, with_columns, without
from msmqwire.spark.lake.schemas import ALL_TABLES, LAKE_TABLES, file_schema
from msmqwire.spark.lake.storage import Storage
from msmqwire.spark.lake.tables import LakeTable
from msmqwire.spark.lake.writing import NewFile, WrittenFile, written_file

# After so many runs the small files of every table are merged into files of about so many bytes: opening a table and
# adding to it takes longer with each file. Two sizes, so that a row is copied few times
_MERGED = {1000: 64 << 20, 25: 1 << 20}
# The columns of ``accounting`` that say what a table lacks of a run
_PENDING = ["capture", "run", "files", "replaces", "deletions"]


@dataclass(frozen=True)
class Pending:
    """What a table lacks of the last run.

    Attributes
    ----------
    paths : tuple of str
        Files to add, relative to the table.
    replaced : dict of str to str
        The captures whose rows they replace, and the name that these rows have in ``file``.
    deletions : dict of str to bytes
        The places of deleted rows, by capture.
    """

    table: str
    paths: tuple[str, ...] = ()
    replaced: Mapping[str, str] = field(default_factory=dict)
    deletions: Mapping[str, bytes] = field(default_factory=dict)

    @property
    def columns(self) -> list[str]:
        """The columns that ``is_gone`` takes."""
        there = file_schema(self.table).names
        return [name for name in PLACE if name in there] if self.deletions else ["capture"]

    def is_gone(self, rows: Any) -> Any:
        """Return True if each of some rows of the table is replaced or deleted."""
        replaced: Any = pc.is_in(rows["capture"].cast(pa.string()), pa.array(list(self.replaced), pa.string()))
        return pc.or_(replaced, are_deleted(rows, self.table, self.deletions)) if self.deletions else replaced

    def kept(self, rows: Any) -> Any:
        """The rows of the table that are neither replaced nor deleted."""
        return rows.filter(pc.invert(self.is_gone(rows))) if self.removes else rows

    @property
    def removes(self) -> bool:
        """True if rows of the table are replaced or deleted."""
        return bool(self.replaced or self.deletions)

    def __bool__(self) -> bool:
        return bool(self.paths) or self.removes


class Lake:
    """A lake, as it was when ``accounting`` was last read; only the methods that say so write.

    Attributes
    ----------
    storage : Storage
    run : int
        The number of the last run.

    Raises
    ------
    LakeError
        It is a lake of an earlier version, or not a lake, or has malformed files.
    """

    def __init__(self, storage: Storage, *, create: bool = False) -> None:
        self.storage = storage
        self._accounting = LakeTable(storage, "accounting")
        self._tables = {name: LakeTable(storage, name) for name in LAKE_TABLES}
        self._known: KnownCaptures | None = None
        self._last: pa.Table | None = None
        self._written: dict[str, WrittenFile] = {}
        #: The state in which it was last compared with what other writers did.
        self.noted: tuple[int, ...] | None = None
        self.run = 0
        if storage.exists("_lake.json"):
            raise LakeError(f"{storage.uri}: a lake of an earlier version; run the pipeline again into a new lake")
        if not self._accounting.exists:
            if any(table.exists for table in self._tables.values()):
                raise LakeError(f"{storage.uri}: accounting is missing, so the captures in these tables are unknown")
            if not create:
                raise LakeError(f"{storage.uri}: is not a lake: msmqwire pipeline makes one")
            _ = self._accounting.delta
        self.look()

    @property
    def known(self) -> KnownCaptures:
        """The captures that the lake has."""
        if self._known is None:
            self._known = KnownCaptures()
            self._known.read(self.read_accounting(list(KNOWN)))
        return self._known

    def rows_by_capture(self) -> dict[str, Counter[str]]:
        """How many rows each capture has in each table, as ``accounting`` says."""
        found: dict[str, Counter[str]] = {name: Counter() for name in LAKE_TABLES}
        for one in self._counts("table", "capture"):
            found[one["table"]][one["capture"]] = one["count_sum"]
        return found

    def rows_by_table(self) -> Counter[str]:
        """How many rows each table has, as ``accounting`` says."""
        return Counter({one["table"]: one["count_sum"] for one in self._counts("table")})

    def _counts(self, *keys: str) -> list[dict[str, Any]]:
        """The sums of the counts of rows in ``accounting``, without deleted rows."""
        rows = self.read_accounting(["capture", "rows", "faults", "deleted"]).combine_chunks()
        counts = []
        for name in ("rows", "faults", "deleted"):
            chunks: Any = rows[name].chunks
            for chunk, captures in zip(chunks, rows["capture"].chunks, strict=True):
                # By code; this table has no column for it
                tables = pa.repeat("faults", len(chunk.keys)) if name == "faults" else chunk.keys
                numbers = pc.negate(chunk.items) if name == "deleted" else chunk.items
                # list_parent_indices takes no maps
                sizes: Any = pc.subtract(chunk.offsets[1:], chunk.offsets[:-1])
                of = captures.take(integers(np.repeat(np.arange(len(chunk)), sizes.to_pylist())))
                counts.append(pa.table({"table": tables, "capture": of, "count": numbers}))
        if not counts:
            return []
        return pa.concat_tables(counts).group_by(list(keys)).aggregate([("count", "sum")]).to_pylist()

    def table(self, name: str) -> LakeTable:
        """A table of the lake.

        Raises
        ------
        ValueError
            There is no such table.
        """
        name = name.lower()
        if name not in ALL_TABLES:
            raise ValueError(f"table={name!r} is not one of {', '.join(ALL_TABLES)}")
        return self._accounting if name == "accounting" else self._tables[name]

    def create(self, tables: Iterable[str]) -> None:
        """Make tables that are missing, so that other readers find them though they have no rows."""
        for name in tables:
            self._tables[name].create()

    def look(self) -> None:
        """Read the current ``accounting``."""
        self._accounting.refresh()
        self._known = self._last = None
        self.run = self._accounting.run

    def pending(self, name: str) -> Pending:
        """What a table lacks of the last run of ``accounting``; a later run may have completed it meanwhile."""
        if name == "accounting" or not self.run:
            return Pending(name)
        table = self._tables[name]
        table.refresh()
        if table.has_log and table.run >= self.run:
            return Pending(name)
        if self._last is None:
            last = self.read_accounting(_PENDING, run=self.run)
            self._last = last.filter(pc.equal(last["run"], pa.scalar(self.run)))
        files: Any = pc.list_flatten(self._last["files"])
        paths = [file.partition("/")[2] for file in files.unique().to_pylist() if file.startswith(f"{name}/")]
        if not paths and not table.has_log:
            return Pending(name)
        replaced: Any = pc.list_flatten(self._last["replaces"])
        deleted = self._last.filter(pc.is_valid(self._last["deletions"]))
        captures, places = (deleted[one].to_pylist() for one in ("capture", "deletions"))
        deletions: dict[Any, Any] = dict(zip(captures, places, strict=True))
        return Pending(name, tuple(paths), {one["capture"]: one["file"] for one in replaced.to_pylist()}, deletions)

    def check_order(self) -> None:
        """Refuse a lake with a table that has more runs than ``accounting``.

        Raises
        ------
        LakeError
            A table has a run that ``accounting`` does not have.
        """
        while ahead := [table for table in self._tables.values() if table.has_log and table.run > self.run]:
            run = self.run
            self.look()
            if self.run == run:
                raise LakeError(
                    f"{self._accounting.path}: ends with run {run}, but {ahead[0].name} with run {ahead[0].run}: "
                    "entries of its log are lost"
                )

    def apply_committed_runs(self) -> None:
        """Bring every table up to ``accounting``; this writes.

        Raises
        ------
        LakeError
            A file that a run has committed is missing, or is not as it was written; or as ``check_order``.
        """
        self.check_order()
        for name, table in self._tables.items():
            if pending := self.pending(name):
                try:
                    self._take_over(table, pending)
                except LakeError:
                    # Another process may have done so, and the files were merged and deleted since
                    if self.pending(name):
                        raise

    def _take_over(self, table: LakeTable, pending: Pending) -> None:
        files = [self.written(table.name, path) for path in pending.paths]
        if not table.has_log and sum(file.rows for file in files) < self.rows_by_capture()[table.name].total():
            raise LakeError(f"{table.path}: is missing, but accounting has rows of it")
        choose = partial(self._without, table, pending) if pending.removes else None
        # False where another process has done so
        table.commit(self.run, files, choose)

    def written(self, table: str, path: str) -> WrittenFile:
        """A file that a run has committed, and the table may not have yet."""
        name = f"{table}/{path}"
        if name not in self._written:
            self._written[name] = written_file(self.storage, table, path)
        return self._written[name]

    def _without(self, table: LakeTable, pending: Pending) -> list[Replacement]:
        files = [
            file
            for file in table.files()
            if (file.may_have("capture", pending.replaced) and file.may_have("file", pending.replaced.values()))
            or file.may_have("capture", pending.deletions)
        ]
        return list(without(self.storage, table.name, files, table.schema, pending.columns, pending.is_gone))

    def commit(
        self,
        groups: Iterable[Decoded],
        compression: Compression,
        relate: Callable[[SourceAccount, Sequence[Known]], Relation],
        *,
        overwrite_before: int = 0,
    ) -> list[Decoded]:
        """Make captures part of the lake; their rows replace those that the lake had of them.

        Other runs may commit meanwhile. A group with a capture that they have committed, or that an earlier group has,
        is left out.

        Parameters
        ----------
        groups : iterable of Decoded
        compression : str
            Of the files of ``accounting``.
        relate : callable
            Compares a capture with captures that another run has committed since it was compared with the others.
        overwrite_before : int
            Replace captures of runs up to this one.

        Returns
        -------
        list of Decoded
            Those that are left out, with all their captures, since the captures of a group share files.
        """
        waiting, refused = list(groups), []
        for replaces in (False, True):
            while waiting:
                self.apply_committed_runs()
                chosen, waiting, more = self._chosen(waiting, relate, overwrite_before, replaces)
                refused += more
                if not chosen:
                    break
                if self._committed(chosen, compression):
                    self.apply_committed_runs()
                    self._tidy()
                    break
                waiting = [*chosen, *waiting]
                self.look()
        return refused

    def commit_rows(
        self,
        rows: Sequence[Mapping[str, object]],
        gone: Sequence[Known],
        files: Sequence[WrittenFile] = (),
        notes: Mapping[str, str] | None = None,
        compression: Compression = "snappy",
    ) -> bool:
        """Commit rows of ``accounting`` as the next run, without bringing the tables up to it.

        Parameters
        ----------
        rows : sequence of mappings
            As ``SourceAccount.values`` has them.
        gone : sequence of Known
            Rows that are removed.
        notes : mapping of str to str, optional
            For the history.

        Returns
        -------
        bool
            False when another run has come first.
        """
        run, name = self.run + 1, uuid.uuid4().hex
        values = pa.Table.from_pylist([{**row, "run": run} for row in rows], schema=ACCOUNTING)
        path = f"{name}.parquet"
        with closing(NewFile(self.storage, "accounting", path, ACCOUNTING, compression)) as new:
            new.write(values)
            written = new.finish()
        self.storage.sync([f"accounting/{path}"])
        keys = pa.array([b"%d " % one.run + os.fsencode(one.name) for one in gone], pa.binary())

        def is_gone(rows: pa.Table) -> Any:
            names: Any = pc.coalesce(rows["name"], rows["file"].cast(pa.binary()))
            runs = rows["run"].cast(pa.string()).cast(pa.binary())
            found: Any = pc.binary_join_element_wise(runs, names, b" ")
            return pc.is_in(found, keys)

        def rewritten() -> list[Replacement]:
            runs = {one.run for one in gone}
            found = [file for file in self._accounting.files() if file.may_have("run", runs)]
            return list(
                without(self.storage, "accounting", found, self._accounting.schema, ["run", "file", "name"], is_gone)
            )

        if not self._accounting.commit(run, [written], rewritten if gone else None, notes, after=self.run):
            # It may have been accepted, and only the answer was lost
            self._accounting.refresh()
            if self._accounting.run < run or path not in {file.path for file in self._accounting.files()}:
                return False
        self._written = {f"{file.table}/{file.path}": file for file in files}
        self.run, self._last = run, values.select(_PENDING)
        if self._known is not None:
            self._known.remove(gone)
            self._known.read(values.select(list(KNOWN)))
        return True

    def read_accounting(self, columns: list[str] | None = None, *, run: int | None = None) -> pa.Table:
        """Rows of ``accounting``, with ``run`` from the files that may have some of it."""
        wanted = ACCOUNTING if columns is None else pa.schema([ACCOUNTING.field(name) for name in columns])

        def read() -> list[pa.Table]:
            tables = []
            for one in self._accounting.files():
                if run is None or one.may_have("run", [run]):
                    with parquet_file(self.storage, f"accounting/{one.path}") as file:
                        there = [name for name in wanted.names if name in file.schema_arrow.names]
                        tables.append(with_columns(file.read(there, use_threads=False), wanted))
            return tables

        return pa.concat_tables(self._accounting.current(read) or [wanted.empty_table()])

    def _chosen(
        self,
        groups: Iterable[Decoded],
        relate: Callable[[SourceAccount, Sequence[Known]], Relation],
        overwrite_before: int,
        replaces: bool,
    ) -> tuple[list[Decoded], list[Decoded], list[Decoded]]:
        """The groups that are committed now, those that are committed later, and those that are refused."""
        chosen: list[Decoded] = []
        later: list[Decoded] = []
        refused: list[Decoded] = []
        taken: set[str | None] = set()
        for group in groups:
            captures = [row for row in group.accounts if row.is_capture]
            keys = [row.capture for row in captures]
            is_new = all(self._is_new(row, relate, overwrite_before) for row in captures)
            # A deletion since the captures were decoded
            replaced = [[one for one in self._replaced(row) if one.is_capture] for row in captures]
            is_stale = any(
                row.deletions != united(one.deletions for one in rows)
                for row, rows in zip(captures, replaced, strict=True)
            )
            # New captures are committed before those that replace others, for readers that skip commits of changes
            is_mixed = any(replaced) and not all(replaced)
            if not is_new or is_stale or is_mixed or len(set(keys)) < len(keys) or not taken.isdisjoint(keys):
                refused.append(group)
                continue
            taken.update(keys)
            rows = [row for row in group.accounts if row.is_capture or self._is_news(row)]
            for row in rows:
                row.replaces = self._replaced(row)
            if not rows:
                continue
            replacing = any(one.is_capture for row in rows for one in row.replaces)
            (later if replacing and not replaces else chosen).append(Decoded(rows, group.files))
        return chosen, later, refused

    def _is_new(
        self,
        row: SourceAccount,
        relate: Callable[[SourceAccount, Sequence[Known]], Relation],
        overwrite_before: int,
    ) -> bool:
        assert row.identity is not None
        found = self.known.capture(row.capture)
        if found is not None and found.settings == row.settings and found.run > overwrite_before:
            return False
        fresh = [one for one in self.known.alike(row.identity, row.file) if one.run > row.planned_at]
        if fresh:
            relation = relate(row, fresh)
            if relation.part_of is not None or relation.unclear is not None:
                return False
            row.grown_from += relation.grown_from
            row.planned_at = self.run
        return True

    def _is_news(self, row: SourceAccount) -> bool:
        """Return True if the row of a file without rows differs from what ``accounting`` has."""
        others = self.known.others(row.file)
        if row.problem is not None:
            return not any(one.problem == row.problem for one in others)
        noted = self.known.noted(SourceFile(row.file, row.size, row.modified_ns))
        return noted is None or any(one.problem is not None for one in others)

    def _replaced(self, row: SourceAccount) -> list[Known]:
        """The rows of accounting whose place a row takes: of its captures and their copies, and of the same file."""
        captures = [row.capture, *(one.capture for one in row.grown_from)] if row.is_capture else []
        found = [one for one in map(self.known.capture, captures) if one is not None]
        copies = (copy for one in found for copy in self.known.copies(one.capture))
        return list(dict.fromkeys([*found, *copies, *self.known.others(row.file)]))

    def _committed(self, groups: Sequence[Decoded], compression: Compression) -> bool:
        """Commit groups as the next run; False when another run has come first."""
        rows = [row for group in groups for row in group.accounts]
        captures = [row for row in rows if row.is_capture]
        count = sum(sum(row.rows.values()) for row in captures)
        values = [
            row.values(0, (file for file in group.files if row.capture in file.captures))
            for group in groups
            for row in group.accounts
        ]
        values += [row.values(0) for row in self._copies(rows)]
        gone = list(dict.fromkeys(one for row in rows for one in row.replaces))
        files = [file for group in groups for file in group.files]
        notes = {"captures": str(len(captures)), "rows": str(count)}
        return self.commit_rows(values, gone, files, notes, compression)

    def _copies(self, rows: Sequence[SourceAccount]) -> Iterable[SourceAccount]:
        """Rows for the other files of replaced captures, which are copies now: no run takes them for captures."""
        names = {row.file for row in rows}
        for row in rows:
            for one in row.replaces:
                if one.name not in names and one.problem is None:
                    names.add(one.name)
                    copy = SourceAccount(one.name, one.identity, bytes=one.size, size=one.size)
                    copy.modified_ns, copy.settings = one.modified_ns, one.settings
                    copy.duplicate_of = row.capture if row.is_capture else row.duplicate_of
                    yield copy

    def _tidy(self) -> None:
        """Keep the tables in few files."""
        size = next((size for runs, size in _MERGED.items() if self.run % runs == 0), None)
        if size is None:
            return
        for table in (self._accounting, *self._tables.values()):
            # The run itself is done; lake check and the next merge name a file that cannot be read
            with suppress(LakeError, DeltaError):
                if table.has_log:
                    table.merge(size)
