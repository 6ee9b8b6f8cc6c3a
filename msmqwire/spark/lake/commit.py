"""Runs of a lake: ``accounting`` is the log of the lake, and the other tables are brought up to it in order.

A run writes its files where they will stay, then its plan (the files to add and the captures to delete, by table), then
commits its rows of ``accounting`` with the name of the plan. Of several runs that began at the same state of
``accounting``, deltalake accepts one, since the transaction of each follows the state that it began at: this is a
compare-and-swap. Whoever opens the lake next settles it: applies to each table the plans that it does not have yet,
each in one transaction with the number of the run. So no plan is applied twice, whatever number of processes settle,
and a reader of a table sees the rows of a replaced capture or the rows that replace them, never both or neither.
"""

from __future__ import annotations

import json
import re
import uuid
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from deltalake.exceptions import DeltaError

from msmqwire.capture.files.listing import SourceFile
from msmqwire.capture.parquet import Compression
from msmqwire.spark.lake.accounting import ACCOUNTING, Decoded, Ending, SourceAccount
from msmqwire.spark.lake.captures import HEAD, KNOWN, Known, KnownCaptures, capture_numbers
from msmqwire.spark.lake.dayfiles import NewFile, WrittenFile
from msmqwire.spark.lake.rewriting import parquet_file
from msmqwire.spark.lake.schemas import ALL_TABLES, LAKE_TABLES
from msmqwire.spark.lake.storage import RUNS, LakeError, Storage, mend, parsed
from msmqwire.spark.lake.tables import LakeTable
from msmqwire.spark.lake.verification import differences

# After so many runs the small files of every table are merged into files of about so many bytes: opening a table and
# adding to it takes longer with each file. Two sizes, so that a row is copied few times
_MERGED = {1000: 64 << 20, 25: 1 << 20}
_PLAN = re.compile(r"[0-9a-f]{32}")


class MissingPlanError(LakeError):
    """The plan of a run is missing."""


@dataclass(frozen=True)
class _Plan:
    """The changes of a run.

    Attributes
    ----------
    run : int
    add : dict of str to list of WrittenFile
        By table.
    delete : dict of str to list of int
        Numbers of captures, by table.
    endings : dict of str to list of Ending
        The rows to delete of captures that have grown, by table.
    latest : dict of str to (int, str)
        The last run that changes a table, up to this one, and the name of its plan.
    previous : dict of str to (int, str)
        Likewise before this run.
    """

    run: int
    add: dict[str, list[WrittenFile]]
    delete: dict[str, list[int]]
    endings: dict[str, list[Ending]] = field(default_factory=dict)
    latest: dict[str, tuple[int, str]] = field(default_factory=dict)
    previous: dict[str, tuple[int, str]] = field(default_factory=dict)

    def to_json(self) -> str:
        add = {
            table: [[file.path, file.size, file.rows, file.statistics] for file in files]
            for table, files in self.add.items()
        }
        endings = {table: [vars(ending) for ending in endings] for table, endings in self.endings.items()}
        return json.dumps({**vars(self), "add": add, "endings": endings})

    @classmethod
    def from_json(cls, text: bytes) -> _Plan:
        values = parsed(text)
        add = {table: [WrittenFile(table, *file) for file in files] for table, files in values["add"].items()}
        links = {name: {table: (run, plan) for table, (run, plan) in values[name].items()} for name in _LINKS}
        numbers = {table: [int(number) for number in captures] for table, captures in values["delete"].items()}
        endings = {table: [Ending(**ending) for ending in endings] for table, endings in values["endings"].items()}
        return cls(int(values["run"]), add, numbers, endings, **links)


_LINKS = ("latest", "previous")


class Lake:
    """A lake, as it was when ``accounting`` was last read.

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

    def __init__(self, storage: Storage, *, create: bool = False, settle: bool = True) -> None:
        self.storage = storage
        self._accounting = LakeTable(storage, "accounting")
        self._tables = {name: LakeTable(storage, name) for name in LAKE_TABLES}
        self._known: KnownCaptures | None = None
        self._plan = ""
        if storage.exists("_lake.json"):
            raise LakeError(f"{storage.uri}: a lake of an earlier version; run the pipeline again into a new lake")
        if not self._accounting.exists:
            if any(table.exists for table in self._tables.values()):
                raise LakeError(f"{storage.uri}: accounting is missing, so the captures in these tables are unknown")
            if not create:
                raise LakeError(f"{storage.uri}: is not a lake: msmqwire pipeline makes one")
        if settle:
            self.look()
        else:
            self._read()

    @property
    def known(self) -> KnownCaptures:
        """The captures that the lake knows."""
        if self._known is None:
            self._known = KnownCaptures()
            self._known.add(self.read_accounting(list(KNOWN)))
        return self._known

    @property
    def plan_file(self) -> str:
        """The plan of the last run; empty when there was none."""
        return f"{RUNS}/{self._plan}.json" if self._plan else ""

    def rows_by_capture(self) -> dict[str, Counter[int]]:
        """How many rows each capture has in each table, as ``accounting`` says."""
        found: dict[str, Counter[int]] = {name: Counter() for name in LAKE_TABLES}
        for account in self.read_accounting(["capture", "rows", "faults"]).to_pylist():
            for name, count in (*account["rows"], *(("faults", count) for _, count in account["faults"])):
                found[name][account["capture"]] += count
        return found

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
        """Make tables that are missing, so that they can be read though they have no rows."""
        for name in tables:
            self._tables[name].create()

    def commit(
        self,
        groups: Iterable[Decoded],
        compression: Compression,
        is_earlier: Callable[[SourceAccount, Known], bool] = lambda row, known: False,
        *,
        overwrite_before: int = 0,
    ) -> list[Decoded]:
        """Make captures part of the lake as one run; their rows replace those that the lake had of them.

        Other runs may commit meanwhile. A group with a capture that they have committed, or that an earlier group has,
        is left out.

        Parameters
        ----------
        groups : iterable of Decoded
        compression : str
            Of the file of ``accounting``.
        is_earlier : callable, optional
            Whether a small capture is what a known capture was before it has grown; it is left out then.
        overwrite_before : int
            Replace captures of runs up to this one, even if the lake has all their bytes.

        Returns
        -------
        list of Decoded
            Those that are left out, with all their captures, since the captures of a group share files. Decode the
            captures that the lake does not have again.
        """
        waiting = list(groups)
        while True:
            # Settling and merging files read accounting again; another run may have committed meanwhile
            if self._accounting.run != self.run:
                self.look()
            kept, refused = self._chosen(waiting, is_earlier, overwrite_before)
            if not kept or self._committed(kept, compression):
                break
            self.look()
        if kept:
            self.settle()
            self._tidy()
        return refused

    def commit_repair(
        self, rows: Sequence[Mapping[str, object]], gone: Collection[int], delete: Mapping[str, list[int]]
    ) -> bool:
        """Commit rows of ``accounting`` as a run, and delete rows of captures; False when another run has come first.

        Parameters
        ----------
        rows : sequence of mappings
            As ``SourceAccount.values`` has them.
        gone : collection of int
            Numbers of captures whose earlier rows of ``accounting`` are deleted.
        delete : mapping of str to list of int
            Numbers of captures, by other tables.
        """
        name = uuid.uuid4().hex
        runs = {table.name: table.run for table in self._tables.values() if table.has_log}
        run = max(self.run, *runs.values()) + 1
        previous = {table: (number, name) for table, number in runs.items()}
        latest = {**previous, **dict.fromkeys(delete, (run, name))}
        plan = _Plan(run, {}, dict(delete), latest=latest, previous=previous)
        self.storage.write(f"{RUNS}/{name}.json", plan.to_json().encode())
        values = pa.Table.from_pylist([{**row, "run": run, "plan": name} for row in rows], schema=ACCOUNTING)
        file = self._write_rows(values, name, "snappy")
        if not self._accounting.commit(run, [file], gone, notes={"captures": "0", "rows": "0"}, after=self.run):
            return False
        self._read()
        self.settle()
        return True

    def settle(self) -> None:
        """Bring every table up to ``accounting``.

        Raises
        ------
        LakeError
            A plan or a file that a run has committed is missing, or is not as it was written.
        """
        if not self.run:
            return
        if not self._plan:
            raise LakeError(f"{self._accounting.path}: has no plan of run {self.run}; {mend(self.storage)}")
        for name, (run, plan) in self._last_plan().latest.items():
            table = self.table(name)
            table.refresh()
            plans = []
            # A run has a transaction only in tables that it changes, so the plans of a table are linked
            while run > table.run:
                plans.append(self._read_plan(plan))
                # A repair knows the tables only as it found them, so that its plan stands for those of earlier runs
                if plans[-1].run != run:
                    raise LakeError(
                        f"{table.path}: ends with run {table.run}, not {run}: entries of its log are lost; "
                        f"{mend(self.storage)}"
                    )
                run, plan = plans[-1].previous.get(name, (0, ""))
            for one in reversed(plans):
                # False where another process has done so
                table.commit(one.run, one.add.get(name, ()), one.delete.get(name, ()), one.endings.get(name, ()))

    def look(self) -> None:
        """Read the current ``accounting``, and settle.

        Raises
        ------
        LakeError
            As ``settle``; or a table has rows of a run that ``accounting`` does not have.
        """
        self._read()
        self.settle()
        while ahead := [table for table in self._tables.values() if table.has_log and table.run > self.run]:
            run = self.run
            self._read()
            if self.run == run:
                raise LakeError(
                    f"{self._accounting.path}: ends with run {run}, but {ahead[0].name} with run {ahead[0].run}: "
                    f"entries of its log are lost; {mend(self.storage)}"
                )
            self.settle()

    def _read(self) -> None:
        """Read the current ``accounting``."""
        _ = self._accounting.delta
        self._accounting.refresh()
        self._known = None
        self.run = -1
        # Where vacuum has deleted files of this version, a newer one is read, whose last run may be another
        while self.run != self._accounting.run:
            self.run = self._accounting.run
            self._plan = self._plan_of(self.run) if self.run else ""

    def _last_plan(self) -> _Plan:
        """The plan of the last run; where it is gone though every table is complete, it is written again."""
        try:
            return self._read_plan(self._plan)
        except MissingPlanError:
            said = self.rows_by_capture()
            tables = self._tables.items()
            found = (differences(self.storage, table, said[name], every_byte=False) for name, table in tables)
            if problems := [problem for problems in found for problem in problems]:
                raise LakeError(
                    f"{self.storage.path(self.plan_file)}: is missing, and {problems[0]}; {mend(self.storage)}"
                ) from None
            return self.write_plan()

    def write_plan(self) -> _Plan:
        """Write the plan of the last run for tables that are complete."""
        tables = (table for table in self._tables.values() if table.has_log)
        latest = {table.name: (table.run, self._plan) for table in tables if table.run}
        plan = _Plan(self.run, {}, {}, latest=latest)
        self.storage.write(self.plan_file, plan.to_json().encode())
        return plan

    def _plan_of(self, run: int) -> str:
        rows = self.read_accounting(["run", "plan"], run=run)
        plans = rows.filter(pc.equal(rows["run"], pa.scalar(run)))["plan"].unique().to_pylist()
        if len(plans) > 1:
            raise LakeError(f"{self.storage.uri}: accounting has {len(plans)} plans of run {run}")
        return str(plans[0]) if plans else ""

    def read_accounting(self, columns: list[str] | None = None, *, run: int | None = None) -> pa.Table:
        """Rows of ``accounting``, with ``run`` from the files that may have some of it."""
        wanted = ACCOUNTING if columns is None else pa.schema([ACCOUNTING.field(name) for name in columns])

        def read() -> list[pa.Table]:
            files = self._accounting.active()
            if run is not None and "max.run" in files.column_names:
                may: Any = pc.fill_null(pc.greater_equal(files["max.run"], pa.scalar(run)), pa.scalar(True))
                files = files.filter(may)
            tables = []
            for path in files["path"].to_pylist():
                with parquet_file(self.storage, f"accounting/{path}") as file:
                    tables.append(file.read(columns, use_threads=False))
            return tables

        tables = self._accounting.current(read)
        return pa.concat_tables([table.select(wanted.names).cast(wanted) for table in tables] or [wanted.empty_table()])

    def _read_plan(self, name: str) -> _Plan:
        if not _PLAN.fullmatch(name):
            raise LakeError(f"{self.storage.uri}: {name!r} is not the name of a plan")
        path = f"{RUNS}/{name}.json"
        try:
            plan = _Plan.from_json(self.storage.read(path))
        except FileNotFoundError:
            raise MissingPlanError(
                f"{self.storage.path(path)}: is missing, but a run has committed it; {mend(self.storage)}"
            ) from None
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise LakeError(f"{self.storage.path(path)}: is no plan: {error}") from None
        if not {*plan.add, *plan.delete, *plan.endings, *plan.latest, *plan.previous} <= set(self._tables):
            raise LakeError(f"{self.storage.path(path)}: names a table that a lake does not have")
        if any(run >= plan.run for run, _ in plan.previous.values()):
            raise LakeError(f"{self.storage.path(path)}: is of run {plan.run}, but follows a later one")
        return plan

    def _chosen(
        self, groups: Iterable[Decoded], is_earlier: Callable[[SourceAccount, Known], bool], overwrite_before: int
    ) -> tuple[list[Decoded], list[Decoded]]:
        """The groups that are new, with the rows that they replace; and those with a capture that is known now."""
        kept, refused = [], []
        taken: set[str | None] = set()
        for group in groups:
            captures = [row for row in group.accounts if row.is_capture]
            keys = [row.key for row in captures]
            is_new = all(self._is_new(row, is_earlier, overwrite_before) for row in captures)
            if not is_new or len(set(keys)) < len(keys) or not taken.isdisjoint(keys):
                refused.append(group)
                continue
            taken.update(keys)
            rows = [row for row in group.accounts if row.is_capture or self._is_news(row)]
            for row in rows:
                row.replaces = self._replaced(row)
            if rows:
                kept.append(Decoded(rows, group.files))
        if copies := list(_copies([row for group in kept for row in group.accounts])):
            kept.append(Decoded(copies, []))
        return kept, refused

    def _is_new(
        self, row: SourceAccount, is_earlier: Callable[[SourceAccount, Known], bool], overwrite_before: int
    ) -> bool:
        if row.grown is not None:
            return self.known.numbered(row.capture) == row.grown
        found = self.known.capture(row.key)
        if self.known.numbered(row.capture) is not None:
            return False
        if found is None:
            first_time = None if row.first_ns is None else row.first_ns // 1000
            longer = self.known.longer(first_time, row.length) if row.length < HEAD else []
            return not any(is_earlier(row, known) for known in longer)
        if row.length < found.length:
            return False
        if row.length > found.length or found.settings != row.settings:
            return True
        return found.run <= overwrite_before

    def _is_news(self, row: SourceAccount) -> bool:
        """Whether the row of a file without rows differs from what ``accounting`` has."""
        noted = self.known.problem(row.file)
        if row.problem is None:
            file = SourceFile(row.file, row.size, row.modified_ns)
            return noted is not None or self.known.noted(file) is None
        return noted is None or noted.problem != row.problem

    def _replaced(self, row: SourceAccount) -> list[Known]:
        found = self.known.replaced_by(row.file, row.key if row.is_capture else None, row.grown_from)
        return [one for one in found if one != row.grown]

    def _committed(self, groups: Sequence[Decoded], compression: Compression) -> bool:
        """Commit groups as the next run; False when another run has come first."""
        run, name = self.run + 1, uuid.uuid4().hex
        rows = [row for group in groups for row in group.accounts]
        add: dict[str, list[WrittenFile]] = {}
        for group in groups:
            for file in group.files:
                add.setdefault(file.table, []).append(file)
        replaced = [one for row in rows for one in row.replaces]
        delete = self._tables_of([one.capture for one in replaced if one.is_capture])
        endings = _by_table(row.ending for row in rows if row.ending is not None)
        previous = self._read_plan(self._plan).latest if self._plan else {}
        latest = {**previous, **dict.fromkeys([*add, *delete, *endings], (run, name))}
        plan = _Plan(run, add, delete, endings, latest, previous)
        self.storage.write(f"{RUNS}/{name}.json", plan.to_json().encode())
        captures = [row for row in rows if row.is_capture]
        count = sum(sum(account.read.rows.values()) for account in captures)
        notes = {"captures": str(len(captures)), "rows": str(count)}
        values = pa.Table.from_pylist([row.values(run, name) for row in rows], schema=ACCOUNTING)
        file = self._write_rows(values, name, compression)
        gone = [*replaced, *(row.grown for row in rows if row.grown is not None)]
        if not self._accounting.commit(run, [file], [one.capture for one in gone], notes=notes):
            # It may have been accepted, and only the answer was lost
            self._accounting.refresh()
            if self._accounting.run < run or self._plan_of(self._accounting.run) != name:
                return False
        self.run, self._plan = run, name
        self.known.add(values)
        return True

    def _write_rows(self, values: pa.Table, plan: str, compression: Compression) -> WrittenFile:
        path = f"{plan}.parquet"
        with closing(NewFile(self.storage, "accounting", path, ACCOUNTING, compression)) as file:
            file.write(values)
            written = file.finish()
        self.storage.sync([f"accounting/{path}"])
        return written

    def _tables_of(self, captures: Collection[int]) -> dict[str, list[int]]:
        """By table, the numbers of the captures that have rows in it."""
        if not captures:
            return {}
        found = self.read_accounting(["capture", "rows", "faults"])
        found = found.filter(pc.is_in(found["capture"], pa.array(captures, pa.int64())))
        tables: dict[str, list[int]] = {}
        for account in found.to_pylist():
            names = [name for name, count in account["rows"] if count]
            for name in (*names, *(["faults"] if account["faults"] else ())):
                tables.setdefault(name, []).append(account["capture"])
        return tables

    def _tidy(self) -> None:
        """Keep the tables in few files."""
        size = next((size for runs, size in _MERGED.items() if self.run % runs == 0), None)
        if size is None:
            return
        for table in (self._accounting, *(self._tables[name] for name in self._read_plan(self._plan).latest)):
            # The run itself is done; lake check and the next merge name a file that cannot be read
            with suppress(LakeError, DeltaError):
                table.merge(size)


def _by_table(endings: Iterable[Ending]) -> dict[str, list[Ending]]:
    found: dict[str, list[Ending]] = {}
    for ending in endings:
        for table in ending.rows:
            found.setdefault(table, []).append(ending)
    return found


def _copies(rows: Sequence[SourceAccount]) -> Iterator[SourceAccount]:
    """Rows for the other files of replaced captures, which are copies now, so that no run takes them for captures."""
    numbers = capture_numbers()
    names = {row.file for row in rows}
    for row in rows:
        for one in row.replaces:
            if one.name not in names and one.key is not None and one.problem is None:
                names.add(one.name)
                yield SourceAccount(
                    file=one.name,
                    capture=next(numbers),
                    key=one.key,
                    length=one.length,
                    bytes=one.size,
                    size=one.size,
                    modified_ns=one.modified_ns,
                    settings=one.settings,
                    duplicate_of=row.capture if row.is_capture else row.duplicate_of,
                )
