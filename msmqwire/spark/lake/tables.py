"""One Delta table of a lake: its files, and the changes that a run makes to it."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import count, takewhile
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, PostCommitHookProperties, Transaction
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from deltalake.transaction import AddAction, RemoveAction

from msmqwire.errors import MsmqWireError
from msmqwire.spark.lake.dayfiles import NO_DAY, WrittenFile
from msmqwire.spark.lake.schemas import table_schema
from msmqwire.spark.lake.storage import Storage

__all__ = ["RUN", "LakeError", "LakeTable"]

# The name under which transactions number themselves, so that none is made twice
_APPLICATION = "msmqwire"
#: The key of the number of a run in the history of a table.
RUN = "msmqwire.run"
# With more commits than this after it, a checkpoint of the log is written
_CHECKPOINT_INTERVAL = "20"
# Cleaning up reads the names of the whole log, so it is left to compact
_NO_CLEANUP = PostCommitHookProperties(cleanup_expired_logs=False)
# How often a commit is repeated that lost to another one; each time, another process has succeeded
_ATTEMPTS = 1000
_NAME = r"[0-9a-f]{32}(-[0-9]+)?\.parquet"
_WRITTEN = re.compile(rf"day=([0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}|{NO_DAY})/{_NAME}|{_NAME}")


class LakeError(MsmqWireError):
    """A lake cannot be read or written: it is no lake, or it is not as this program left it."""


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
        LakeError
            It has other columns.
        """
        if self._delta is not None and self._is_stale:
            self._delta.update_incremental()
            self._is_stale = False
        if self._delta is None:
            self._delta = self._opened() or self._created()
            # Lists and maps may name their items otherwise
            found = [field.name for field in self._delta.schema().fields]
            if found != table_schema(self.name).names:
                raise LakeError(
                    f"{self._storage.path(self.name)}: its columns are those of another version of msmqwire; "
                    "run the pipeline again into a new lake"
                )
        return self._delta

    def _opened(self) -> DeltaTable | None:
        try:
            return DeltaTable(self._uri, storage_options=dict(self._storage.options))
        except TableNotFoundError:
            return None

    def _created(self) -> DeltaTable:
        try:
            return DeltaTable.create(
                self._uri,
                table_schema(self.name),
                partition_by=self._partition_by,
                configuration={"delta.checkpointInterval": _CHECKPOINT_INTERVAL},
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
        """Whether there is such a table."""
        if self._delta is None:
            self._delta = self._opened()
        return self._delta is not None

    def create(self) -> None:
        """Create the table if it does not exist; a table that exists is not read."""
        first, checkpoint = self._log_entry(0), f"{self.name}/_delta_log/_last_checkpoint"
        if self._delta is None and not (self._storage.exists(first) or self._storage.exists(checkpoint)):
            _ = self.delta

    def refresh(self) -> None:
        """Use the current version of the table."""
        # To update the table lists its log, which takes longer with each commit
        if self._delta is not None and self._storage.exists(self._log_entry(self._delta.version() + 1)):
            self._is_stale = True

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

    def add(self, files: Sequence[WrittenFile], run: int, notes: Mapping[str, str] | None = None) -> bool:
        """Add the files of a run in one transaction; False if another process has added those of a run meanwhile.

        Parameters
        ----------
        files : sequence of WrittenFile
        run : int
        notes : mapping of str to str, optional
            What the history of the table has of the commit.

        Raises
        ------
        LakeError
            A file is not there, or is not as it was written.
        """
        self._check(files)
        now = time.time_ns() // 1_000_000
        actions: list[AddAction | RemoveAction] = [_added(file, now) for file in files]
        properties = CommitProperties(
            {RUN: str(run), **(notes or {})}, app_transactions=[Transaction(_APPLICATION, run)]
        )
        before = self.delta.version()
        try:
            self.delta.create_write_transaction(
                actions, "append", self.delta.schema(), self._partition_by,
                commit_properties=properties, post_commithook_properties=_NO_CLEANUP,
            )  # fmt: skip
        except CommitFailedError:
            return False
        self._is_stale = True
        self._sync_log(before)
        return True

    def delete(self, captures: Collection[int], run: int) -> None:
        """Delete the rows of captures; commits of others meanwhile stay."""
        if not captures:
            return
        predicate = (
            f"capture >= {min(captures)} AND capture <= {max(captures)} "
            f"AND capture IN ({', '.join(map(str, sorted(captures)))})"
        )
        for attempt in range(_ATTEMPTS):
            self.refresh()
            before = self.delta.version()
            try:
                properties = CommitProperties({RUN: str(run)})
                self.delta.delete(predicate, commit_properties=properties, post_commithook_properties=_NO_CLEANUP)
            except CommitFailedError:
                if attempt == _ATTEMPTS - 1:
                    raise
                continue
            self.refresh()
            self._sync_rewritten(before)
            return

    def compact(self, size: int | None = None) -> None:
        """Merge small files into files of about ``size`` bytes; the default is the table's own.

        Raises
        ------
        CommitFailedError
            Another process has deleted rows meanwhile.
        """
        before = self.delta.version()
        try:
            self.delta.optimize.compact(target_size=size)
        finally:
            self.refresh()
        self._sync_rewritten(before)

    def active(self, version: int | None = None) -> pa.Table:
        """The files of the table: their paths, sizes and statistics.

        Raises
        ------
        LakeError
            A name is not that of a file of the table.
        """
        delta = self.delta if version is None else self.at_version(version)
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
        versions = sorted((entry["version"], int(entry.get(RUN, 0))) for entry in self.delta.history())
        later = [version for version, number in versions if number > run]
        if not later:
            return self.delta.version()
        return min(later) - 1 if min(later) > versions[0][0] else None

    @property
    def _uri(self) -> str | Path:
        path = self._storage.path(self.name)
        return Path(path) if self._storage.is_local else path

    @property
    def _partition_by(self) -> list[str]:
        return [] if self.name == "accounting" else ["day"]

    def _check(self, files: Sequence[WrittenFile]) -> None:
        for file in files:
            if not _WRITTEN.fullmatch(file.path) or file.table != self.name:
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

    def _sync_rewritten(self, before: int) -> None:
        """Make the files durable that deltalake itself has written after a version, and the entries of the log."""
        if not self._storage.is_local:
            return
        entries = map(self._storage.read, self._log_after(before))
        actions = [json.loads(line) for entry in entries for line in entry.splitlines()]
        added = [unquote(action["add"]["path"]) for action in actions if "add" in action]
        self._storage.sync([f"{self.name}/{path}" for path in added])
        self._sync_log(before)


def _is_inside(name: str) -> bool:
    """Whether a name that was read from a file is a relative path that does not leave its folder."""
    return not (":" in name or "%" in name or "\\" in name) and all(
        part not in ("", ".", "..") for part in name.split("/")
    )


def _added(file: WrittenFile, now: int) -> AddAction:
    day = file.path.partition("/")[0].removeprefix("day=") if "/" in file.path else None
    partition = {} if day is None else {"day": None if day == NO_DAY else day}
    return AddAction(file.path, file.size, partition, now, True, file.statistics)
