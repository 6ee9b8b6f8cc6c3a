"""One Delta table of a lake: its files, and the changes that a run makes to it."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count, takewhile
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, PostCommitHookProperties, Schema, Transaction
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from deltalake.transaction import AddAction, RemoveAction

from msmqwire.errors import LakeError
from msmqwire.spark.lake.rewriting import ActiveFile, Replacement, bins, rewrite
from msmqwire.spark.lake.schemas import file_schema, table_schema
from msmqwire.spark.lake.storage import Storage, StoredFile, one_line, parsed
from msmqwire.spark.lake.writing import NO_DAY, WRITTEN, WrittenFile

# The name under which transactions number themselves, so that none is made twice
_APPLICATION = "msmqwire"
#: The key of the number of a run in the history of a table.
RUN = "msmqwire.run"
# Says what a commit of this package did: the history has the same name for all of them
_ACT = "msmqwire.act"
# The property of every table with the version of the lake: another one, if lakes of this one cannot be read any more
_VERSION = "msmqwire.lake"
LAKE_VERSION = 2
# The file of the log that names its last checkpoint
LAST_CHECKPOINT = "_last_checkpoint"
_ENTRY = re.compile(r"([0-9]{20})\.json")
#: The names of this file and of checkpoints, which may be in several parts, and have a UUID.
CHECKPOINT = re.compile(rf"{LAST_CHECKPOINT}|[0-9]{{20}}\.checkpoint\.(.+\.)?(parquet|json)")
# With more commits than this after it, a checkpoint of the log is written
_CHECKPOINT_INTERVAL = "20"
# A log that is only one entry may begin with any version
_MOST_CHECKED = 100_000
# The columns whose ranges are looked at to find the files that may have some rows
_BOUNDS = ("run", "capture", "file")
# Cleaning up reads the names of the whole log, so it is left to merges
_NO_CLEANUP = PostCommitHookProperties(cleanup_expired_logs=False)
#: The size of the files that a merge makes.
MERGED_BYTES = 100 << 20

Result = TypeVar("Result")

# What object stores report of themselves, as in "Generic S3 error"
_OUT_OF_REACH = re.compile("Generic (?!delta kernel)")


class ColumnsError(LakeError):
    """A table has other columns than this version of msmqwire writes."""


class DeletionVectorsError(LakeError):
    """Another program has deleted rows of a table and left them in its files."""


class LakeTable:
    """A Delta table, as it was when its log was last read.

    Attributes
    ----------
    name : str
    """

    def __init__(self, storage: Storage, name: str) -> None:
        self.name = name
        self._storage = storage
        self._delta: DeltaTable | None = None
        self._is_stale = False
        self._run_at: tuple[int, int] | None = None

    @property
    def delta(self) -> DeltaTable:
        """The table; made when it is not there.

        Raises
        ------
        ColumnsError
            It has other columns.
        DeletionVectorsError
            Rows of it are deleted by deletion vectors.
        """
        if self._delta is not None and self._is_stale:
            with self._readable():
                before = self._delta.version()
                self._delta.update_incremental()
                self._check_log(before + 1)
            self._check_deletions(self._delta)
            self._is_stale = False
        if self._delta is None:
            self._delta = self._opened() or self._created()
        return self._delta

    def _opened(self) -> DeltaTable | None:
        with self._readable():
            try:
                opened = DeltaTable(self._uri, storage_options=dict(self._storage.options))
            except TableNotFoundError:
                return None
            self._delta = opened
            self._check_log(self._checkpoint() + 1)
        self._check_columns(opened)
        self._check_deletions(opened)
        return opened

    def _check_columns(self, opened: DeltaTable) -> None:
        """Refuse a table with a column of a type that this version cannot read; columns may be added or missing."""
        version = opened.metadata().configuration.get(_VERSION, str(LAKE_VERSION))
        if version != str(LAKE_VERSION):
            self._delta = None
            raise LakeError(f"{self.path}: is of version {version} of lakes; this msmqwire reads {LAKE_VERSION}")
        found = pa.schema(opened.schema().to_arrow())  # type: ignore[arg-type] # the stub knows no __arrow_c_schema__
        for field in table_schema(self.name):
            if field.name in found.names and not _is_readable_as(found.field(field.name).type, field.type):
                self._delta = None
                raise ColumnsError(
                    f"{self.path}: its column {field.name} has the type {found.field(field.name).type}, not "
                    f"{field.type}: it is of another version of msmqwire; run msmqwire pipeline into a new lake"
                )

    @property
    def schema(self) -> pa.Schema:
        """The columns of its files, also those that other writers have added."""
        found = pa.schema(self.delta.schema().to_arrow())  # type: ignore[arg-type]
        known = file_schema(self.name)
        fields = [known.field(one.name) if one.name in known.names else one for one in found]
        return pa.schema([one for one in fields if one.name not in self._partition_by])

    def _add_columns(self) -> None:
        """Add columns that this version writes and the table lacks."""
        while True:
            there = {field.name for field in self.delta.schema().fields}
            missing = [field for field in table_schema(self.name) if field.name not in there]
            if not missing:
                return
            try:
                self.delta.alter.add_columns(Schema.from_arrow(pa.schema(missing)).fields)
            except CommitFailedError as error:
                self.refresh()
                if not self._is_stale:
                    raise LakeError(f"{self.path}: cannot be committed to: {one_line(error)}") from None
            self._is_stale = True

    def _check_deletions(self, delta: DeltaTable) -> None:
        """Refuse a table whose files have rows that are deleted: they would be read, and added again by a merge."""
        if _has_deletions(delta):
            self._delta = None
            raise DeletionVectorsError(
                f"{self._storage.path(self.name)}: another program has deleted rows of it by deletion vectors, which "
                "msmqwire does not read: purge them with that program (in Spark, REORG TABLE ... APPLY (PURGE))"
            )

    @contextmanager
    def _readable(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            self._delta = None
            if error.filename is not None:
                raise
            raise LakeError(f"{self.path}: cannot be read: {one_line(error)}") from None
        except (DeltaError, ValueError) as error:
            self._delta = None
            if _OUT_OF_REACH.search(str(error)):
                raise LakeError(f"{self.path}: cannot be read: {one_line(error)}") from None
            raise LakeError(f"{self.path}: Delta cannot read its log{self._malformed()}: {one_line(error)}") from None

    def _checkpoint(self) -> int:
        """The version of the last checkpoint of the log."""
        try:
            found = parsed(self._storage.read(f"{self.name}/_delta_log/{LAST_CHECKPOINT}"))
        except FileNotFoundError:
            return -1
        version = found.get("version") if isinstance(found, dict) else None
        if not isinstance(version, int) or version < 0:
            raise ValueError(f"{LAST_CHECKPOINT} names no version")
        return version

    def _check_log(self, start: int) -> None:
        """Refuse entries of the log without content, which deltalake takes for commits that change nothing."""
        assert self._delta is not None
        end = self._delta.version() + 1
        names = [self._log_entry(version) for version in range(max(start, end - _MOST_CHECKED), end)]
        if 0 in self._storage.sizes(names):
            raise ValueError("it is empty")

    def _malformed(self) -> str:
        """The first file of its log that is missing or malformed, for a message; empty if none is found."""
        names = {file.name.rpartition("/")[2] for file in self.entries()}
        versions = sorted(int(match[1]) for match in map(_ENTRY.fullmatch, names) if match)[-_MOST_CHECKED:]
        for version in range(versions[0], versions[-1] + 1) if versions else ():
            name = self._log_entry(version)
            try:
                lines = self._storage.read(name).splitlines()
                if lines and all(isinstance(parsed(line), dict) for line in lines):
                    continue
            except (FileNotFoundError, ValueError):
                pass
            return f", {name.rpartition('/')[2]}"
        return f", {LAST_CHECKPOINT}" if LAST_CHECKPOINT in names else ""

    def _created(self) -> DeltaTable:
        if self._storage.is_local:
            # deltalake says of a folder that it cannot make that there is no table
            os.makedirs(self._uri, exist_ok=True)
        try:
            return DeltaTable.create(
                self._uri,
                table_schema(self.name),
                partition_by=self._partition_by,
                configuration={"delta.checkpointInterval": _CHECKPOINT_INTERVAL, _VERSION: str(LAKE_VERSION)},
                raise_if_key_not_exists=False,
                storage_options=dict(self._storage.options),
            )
        except DeltaError:
            # Another process may have made it meanwhile
            opened = self._opened()
            if opened is None:
                raise
            return opened

    @property
    def exists(self) -> bool:
        """True if there is such a table."""
        if self._delta is None:
            self._delta = self._opened()
        return self._delta is not None

    def create(self) -> None:
        """Create the table if it does not exist; a table that exists is not read."""
        if not self.has_log:
            _ = self.delta

    @property
    def has_log(self) -> bool:
        """True if there is such a table, as ``exists``, but the table is not read."""
        first, last = self._log_entry(0), f"{self.name}/_delta_log/{LAST_CHECKPOINT}"
        if self._delta is not None or self._storage.exists(first) or self._storage.exists(last):
            return True
        # The first entry may have been cleaned up, and the file that names the last checkpoint is optional
        return any(CHECKPOINT.fullmatch(file.name.rpartition("/")[2]) for file in self.entries())

    def refresh(self) -> None:
        """Use the current version of the table."""
        # To update the table lists its log, which takes longer with each commit
        if self._delta is not None and self._storage.exists(self._log_entry(self._delta.version() + 1)):
            self._is_stale = True

    def entries(self) -> list[StoredFile]:
        """The files of its log."""
        return sorted(self._storage.list(f"{self.name}/_delta_log"))

    def at_version(self, version: int) -> DeltaTable:
        """The table as it was."""
        return DeltaTable(self._uri, version=version, storage_options=dict(self._storage.options))

    @property
    def run(self) -> int:
        """The number of the last run whose files are in the table."""
        delta = self.delta
        if self._run_at is None or self._run_at[0] != delta.version():
            self._run_at = delta.version(), delta.transaction_version(_APPLICATION) or 0
        return self._run_at[1]

    def commit(
        self,
        run: int,
        files: Sequence[WrittenFile],
        choose: Callable[[], list[Replacement]] | None = None,
        notes: Mapping[str, str] | None = None,
        *,
        after: int | None = None,
    ) -> bool:
        """Add the files of a run and replace others, in one transaction.

        Parameters
        ----------
        run : int
        files : sequence of WrittenFile
        choose : callable, optional
            Writes the files that replace others.
        notes : mapping of str to str, optional
            What the history of the table has of the commit.
        after : int, optional
            The run that this one follows; any earlier one where it is absent.

        Returns
        -------
        bool
            False if the table has a commit of this run or of a later one, or of another one than ``after``.

        Raises
        ------
        LakeError
            A file is not there, or is not as it was written.
        """
        self._check(files)
        self._add_columns()
        metadata = {RUN: str(run), _ACT: "add" if choose is None else "replace", **(notes or {})}

        def is_next() -> bool:
            return self.run < run and after in (None, self.run)

        while is_next():
            properties = CommitProperties(metadata, app_transactions=[Transaction(_APPLICATION, run)])
            replacements = [] if choose is None else self.current(choose)
            # Where files were gone, a newer version was read, and another process may have committed this run in it
            if is_next() and self._transact(files, replacements, properties):
                return True
        return False

    def merge(self, size: int = MERGED_BYTES) -> None:
        """Merge small files into files of about ``size`` bytes; others may write meanwhile.

        Raises
        ------
        LakeError
            A file cannot be read.
        """
        while merged := self.current(lambda: self._merged(size)):
            count = len(merged)
            while merged and not self._transact([], merged, CommitProperties({_ACT: "merge"})):
                active = {file.path for file in self.files()}
                # Another process may have replaced some of the files meanwhile
                merged = [one for one in merged if active.issuperset(file.path for file in one.removed)]
            if len(merged) == count:
                return

    def checkpoint(self) -> None:
        """Write a checkpoint of the log, from which readers start.

        Raises
        ------
        LakeError
            It cannot be written.
        """
        try:
            self.delta.create_checkpoint()
        except DeltaError as error:
            raise LakeError(f"{self.path}: a checkpoint of its log cannot be written: {one_line(error)}") from None

    def replace(self, choose: Callable[[], list[Replacement]]) -> None:
        """Replace files by those that a function has written; again when the table has changed meanwhile."""
        while replacements := self.current(choose):
            if self._transact([], replacements, CommitProperties({_ACT: "repair"})):
                return

    def _merged(self, size: int) -> list[Replacement]:
        return [rewrite(self._storage, self.name, files, self.schema) for files in bins(self.files(), size)]

    def files(self) -> list[ActiveFile]:
        """The files of the table."""
        active = self.active()
        names = active.column_names
        columns = [
            active[name].to_pylist() if name in names else [None] * len(active)
            for name in ("path", "size_bytes", "partition.day", "num_records")
        ]
        bounds = []
        for bound in ("min.", "max."):
            bounded = [name for name in (f"{bound}{column}" for column in _BOUNDS) if name in names]
            rows = active.select(bounded).rename_columns([name.removeprefix(bound) for name in bounded]).to_pylist()
            bounds.append(rows or [{} for _ in range(len(active))])
        return [
            ActiveFile(path, size, (NO_DAY if day is None else str(day)) if self._partition_by else None, *rest)
            for path, size, day, *rest in zip(*columns, *bounds, strict=True)
        ]

    def current(self, read: Callable[[], list[Result]]) -> list[Result]:
        """The result of a function that reads files of the table, repeated when the table has other files by now.

        Raises
        ------
        LakeError
            A file of the table is missing.
        """
        while True:
            version = self.delta.version()
            try:
                return read()
            except FileNotFoundError as error:
                # Another process may have replaced and deleted it
                self.refresh()
                if self.delta.version() == version:
                    raise LakeError(f"{error.filename or error}: is missing") from None

    def _transact(
        self,
        files: Sequence[WrittenFile],
        replacements: Sequence[Replacement],
        properties: CommitProperties,
    ) -> bool:
        """Commit files and replacements; False if another process has committed something that rules it out.

        Since https://github.com/delta-io/delta-rs/pull/3982 deltalake lets two transactions succeed that remove the
        same file when the first one removed it with ``data_change=False``, as OPTIMIZE does: the rows of the file would
        be doubled. So a commit that removes files follows the version that it has read, with no retries; and it says
        ``data_change=True``, also of a merge, so that a merge by another program that began before it is refused.
        """
        now = time.time_ns() // 1_000_000
        actions: list[AddAction | RemoveAction] = [_added(file, now) for file in files]
        for one in replacements:
            actions += [RemoveAction(file.path, True, now, file.size, _partition(file.day)) for file in one.removed]
            if one.added is not None:
                actions.append(_added(one.added, now))
        if replacements:
            properties.max_commit_retries = 0
            active = {file.path for file in self.files()}
            if not active.issuperset(file.path for one in replacements for file in one.removed):
                return False
        before = self.delta.version()
        try:
            self.delta.create_write_transaction(
                actions, "append", self.delta.schema(), self._partition_by,
                commit_properties=properties,
                post_commithook_properties=None if replacements else _NO_CLEANUP,
            )  # fmt: skip
        except CommitFailedError as error:
            self.refresh()
            if not self._is_stale:
                raise LakeError(f"{self.path}: cannot be committed to: {one_line(error)}") from None
            return False
        self._is_stale = True
        self._sync_log(before)
        return True

    def rows(self, version: int | None = None) -> int | None:
        """How many rows the log says that the table has, or had in a version; None if it does not say."""
        active = self.active(version)
        counts: Any = active["num_records"] if "num_records" in active.column_names else pa.nulls(len(active))
        return None if counts.null_count else sum(counts.to_pylist())

    def foreign(self) -> list[tuple[int, str, list[str], list[str]]]:
        """The commits of other writers that changed rows: version, operation, files removed and added."""
        found = []
        with self._readable():
            history = self.delta.history()
        for entry in reversed(history):
            version = entry["version"]
            if _ACT in entry or not self._storage.exists(self._log_entry(version)):
                continue
            removed: list[str] = []
            added: list[str] = []
            for line in self._storage.read(self._log_entry(version)).splitlines():
                action = parsed(line)
                for name, paths in (("remove", removed), ("add", added)):
                    if name in action and action[name].get("dataChange", True):
                        paths.append(str(action[name]["path"]))
            if removed or added:
                found.append((int(version), str(entry.get("operation", "?")), removed, added))
        return found

    def active(self, version: int | None = None) -> pa.Table:
        """The files of the table: their paths, sizes and statistics.

        Raises
        ------
        LakeError
            A name is not that of a file of the table.
        """
        with self._readable():
            delta = self.delta if version is None else self.at_version(version)
            if version is not None:
                self._check_deletions(delta)
            files = pa.table(delta.get_add_actions(flatten=True))
        for path in map(str, files["path"].to_pylist()):
            if not _is_inside(path):
                raise LakeError(f"{self._storage.path(self.name)}: its log names {path!r}, which is not in the table")
        return files

    def expired(self, hours: int, *, orphans: bool = False) -> list[str]:
        """The files that the table has not had for so many hours, also those that it never had."""
        return self.delta.vacuum(hours, dry_run=True, enforce_retention_duration=False, full=orphans)

    def version_of(self, run: int) -> int | None:
        """The newest version without anything of a later run; None when the log does not reach back so far."""
        if self.run <= run:
            return self.delta.version()
        later = [entry["version"] for entry in self.delta.history() if int(entry.get(RUN, 0)) > run]
        version = min(later, default=0) - 1
        if version < 0:
            return None
        try:
            # Entries that were cleaned up may have been of later runs, too
            return version if (self.at_version(version).transaction_version(_APPLICATION) or 0) <= run else None
        except DeltaError:
            return None

    @property
    def path(self) -> str:
        """Its path or URI."""
        return self._storage.path(self.name)

    @property
    def _uri(self) -> str | Path:
        path = self._storage.path(self.name)
        return Path(path) if self._storage.is_local else path

    @property
    def _partition_by(self) -> list[str]:
        return [] if self.name == "accounting" else ["day"]

    def _check(self, files: Sequence[WrittenFile]) -> None:
        for file in files:
            if not WRITTEN.fullmatch(file.path) or file.table != self.name:
                raise LakeError(f"{self._storage.uri}: {file.path!r} is not the name of a file of {self.name}")
        sizes = self._storage.sizes([f"{self.name}/{file.path}" for file in files])
        for file, size in zip(files, sizes, strict=True):
            if size != file.size:
                found = "is missing" if size is None else f"has {size} bytes, not {file.size}"
                raise LakeError(f"{self._storage.path(self.name)}/{file.path}: {found}, but a run has committed it")

    def _log_entry(self, version: int) -> str:
        return f"{self.name}/_delta_log/{version:020}.json"

    def _log_after(self, version: int) -> Iterator[str]:
        """The entries of the log after a version."""
        return takewhile(self._storage.exists, map(self._log_entry, count(version + 1)))

    def _sync_log(self, before: int) -> None:
        """Make the entries of the log after a version durable."""
        if self._storage.is_local:
            self._storage.sync(self._log_after(before))


def _has_deletions(delta: DeltaTable) -> bool:
    """Return True if files of a table have deletion vectors."""
    if "deletionVectors" not in (delta.protocol().reader_features or ()):
        return False
    try:
        return pa.table(delta.deletion_vectors()).num_rows > 0
    except DeltaError as error:
        if _OUT_OF_REACH.search(str(error)):
            raise
        # The file of one cannot be read
        return True


def _is_inside(name: str) -> bool:
    """Return True if a name that was read from a file is a relative path that does not leave its folder."""
    return not (":" in name or "%" in name or "\\" in name) and all(
        part not in ("", ".", "..") for part in name.split("/")
    )


def _is_readable_as(found: pa.DataType, wanted: pa.DataType) -> bool:
    """Return True if values of a type can be read as another; lists and maps may name their items otherwise."""
    if pa.types.is_struct(found) and pa.types.is_struct(wanted):
        names = {found.field(at).name: found.field(at).type for at in range(found.num_fields)}
        members = [wanted.field(at) for at in range(wanted.num_fields)]
        return all(one.name not in names or _is_readable_as(names[one.name], one.type) for one in members)
    if pa.types.is_map(found) and pa.types.is_map(wanted):
        return _is_readable_as(found.key_type, wanted.key_type) and _is_readable_as(found.item_type, wanted.item_type)
    if _is_list(found) and _is_list(wanted):
        return _is_readable_as(found.field(0).type, wanted.field(0).type)
    texts = (pa.string(), pa.large_string(), pa.string_view())
    blobs = (pa.binary(), pa.large_binary(), pa.binary_view())
    return found == wanted or any(found in kinds and wanted in kinds for kinds in (texts, blobs))


def _is_list(type_: pa.DataType) -> bool:
    return pa.types.is_list(type_) or pa.types.is_large_list(type_) or pa.types.is_list_view(type_)


def _partition(day: str | None) -> dict[str, str | None]:
    return {} if day is None else {"day": None if day == NO_DAY else day}


def _added(file: WrittenFile, now: int) -> AddAction:
    return AddAction(file.path, file.size, _partition(file.day), now, True, file.statistics)
