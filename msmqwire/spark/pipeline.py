"""Captures to a lake of Delta tables by day: those of ``capture.TABLES``, ``faults`` and ``accounting``.

Tasks decode captures and write their Parquet files themselves, since moving rows through the JVM costs a hundred times
their decoding; the driver gets only accounts. It checks them, then commits the files. A capture is known by its
content: running again reads what is new and adds nothing twice.
"""

from __future__ import annotations

from msmqwire.errors import require

require("pyarrow", "msmqwire.spark.pipeline")
require("pyspark", "msmqwire.spark.pipeline")
require("deltalake", "msmqwire.spark.pipeline")

import datetime
import json
import logging
import os
import pickle
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any, Literal, TypeVar, get_args

from pyspark.sql import SparkSession

from msmqwire.capture import TABLES, ReadOptions
from msmqwire.capture.files.listing import SourceFile, find_files
from msmqwire.capture.files.remote import StorageOptions
from msmqwire.capture.files.sources import shown_name
from msmqwire.capture.options import Ports
from msmqwire.capture.parquet import Compression
from msmqwire.capture.stats import FrameCounts
from msmqwire.errors import CaptureError, counted
from msmqwire.spark.executors import map_in_arrow
from msmqwire.spark.lake.accounting import Decoded, SourceAccount, check_files
from msmqwire.spark.lake.committing import Lake
from msmqwire.spark.lake.decoding import CaptureSplitter, Decoding, SourceCalls, SplitCapture, Stage, ToRead
from msmqwire.spark.lake.deleting import delete
from msmqwire.spark.lake.maintenance import vacuum
from msmqwire.spark.lake.others import note_deletions
from msmqwire.spark.lake.places import united
from msmqwire.spark.lake.planning import Identity, Known, KnownCaptures, Relation, identify, relate, tails
from msmqwire.spark.lake.storage import SCRATCH, LakeOptions, Storage, one_line
from msmqwire.spark.source.planning import MANY, large, pack, task_size
from msmqwire.spark.source.scan import ScanOptions

__all__ = [
    "Compression",
    "LakeOptions",
    "PipelineMode",
    "Progress",
    "StorageOptions",
    "Summary",
    "run",
]

Result = TypeVar("Result")
PipelineMode = Literal["PERMISSIVE", "FAILFAST"]
# Parts that are decoded before a commit; a killed run loses at most these
_PARTS_OF_A_COMMIT = 1000
_LOG = logging.getLogger(__name__)
_INTERVAL = 0.2
# Bytes that the driver decompresses itself
_LITTLE = 64 << 20
# Captures that a task identifies at least
_FEWEST_OF_A_CHUNK = 256


@dataclass(frozen=True)
class Progress:
    """How far a run has come: captures that are decoded of those to decode, and the frames in them."""

    captures: int
    total: int
    frames: int


@dataclass
class Summary(FrameCounts):
    """What a run did; printed, it is the report for the person who started it.

    Attributes
    ----------
    sources, bytes, encrypted, unread : int
        Totals of the sources that this run decoded. Their rows are in the lake now.
    frames, payloads, segments, fragments, other, unsupported, malformed, bytes_skipped : int
    incomplete_datagrams, fragment_conflicts, invalid_times, truncated_files : int
    unsupported_links, unsupported_encapsulations : dict of str to int
    streams : StreamStats
        Likewise, as in ``CaptureStats``.
    known : int
        Sources that were in the lake already.
    rows, faults : Counter
        By table, and by code.
    problems : list of str
        Sources that are no captures or cannot be read.
    duplicates : list of str
        Sources whose content another source of this run has; it is in the lake once.
    notes : list of str
        Sources that were added though a capture of the lake begins with the same 64 KiB, and which; folders without a
        capture.
    deleted : Counter
        Rows that were older than ``retention_days``, by table.
    seconds : float
    """

    sources: int = 0
    bytes: int = 0
    encrypted: int = 0
    unread: int = 0
    known: int = 0
    rows: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)
    duplicates: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    deleted: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0

    def add(self, account: SourceAccount) -> None:
        """Count a source in."""
        if account.problem is not None:
            self.problems.append(account.problem)
            return
        self.sources += 1
        self.bytes += account.bytes
        self.encrypted += account.encrypted
        self.unread += account.unread
        self.count_in(account)
        self.rows.update(account.rows)
        self.faults.update(account.faults)

    @property
    def lost(self) -> int:
        """How many things cannot be read, as in ``CaptureStats``; and messages."""
        return super().lost + self._unread_messages

    @property
    def _unread_messages(self) -> int:
        """Messages that cannot be decoded and, for want of their table, are no faults."""
        return 0 if "messages" in self.rows else self.unread

    def __str__(self) -> str:
        lines = [f"{counted(self.sources, 'capture')}, {counted(self.bytes, 'byte')} in {self.seconds:.1f} s"]
        if self.sources:
            unread = self._unread_messages
            lines += self.report(self.rows, self.faults, encrypted=self.encrypted, unread=unread)
        if self.known:
            lines.append(f"{counted(self.known, 'capture')} already in the lake")
        lines += (f"not read: {problem}" for problem in self.problems)
        lines += (f"the same content as another: {shown_name(file)}" for file in self.duplicates)
        lines += self.notes
        if self.deleted.total():
            lines.append(f"{counted(self.deleted.total(), 'row')} deleted: older than the retention")
        return "\n".join(lines)


def run(
    spark: SparkSession,
    sources: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    lake: str | os.PathLike[str],
    *,
    tables: Iterable[str] = tuple(TABLES),
    mode: PipelineMode = "PERMISSIVE",
    ports: Ports | None = None,
    compression: Compression = "snappy",
    recursive: bool = False,
    storage_options: StorageOptions | None = None,
    lake_options: LakeOptions | None = None,
    digest: bool = False,
    overwrite: bool = False,
    vacuum_hours: int | None = None,
    retention_days: int | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Summary:
    """Decode captures into the Delta tables of a lake, by day.

    Parameters
    ----------
    spark : SparkSession
    sources : path, folder, glob, or a list of these
        Files that driver and workers see under the same names, or URIs: ``s3://``, ``gs://``, ``hdfs://``, ``abfs://``
        and what fsspec knows.
    lake : path or URI
        A folder that driver and workers see under the same name, or what deltalake knows: ``s3://``, ``gs://``,
        ``abfss://``; made when it is not there.
    tables : iterable of str
        The tables to write beside ``faults`` and ``accounting``, all by default. A capture's rows are replaced
        together: those of a table that is left out here are gone from the lake.
    mode : {"PERMISSIVE", "FAILFAST"}
        Report what cannot be decoded or read, in the lake and in the summary, or fail and commit nothing.
    ports : iterable of int, or mapping of transports to iterables of int; optional
        Ports whose payloads belong; those of each table's protocol by default. Datagrams of such a port are rows of
        every table that is read from datagrams.
    compression : str
        Of the Parquet files, as pyarrow names it.
    recursive : bool
        Read the captures in the folders below a folder as well.
    storage_options : mapping, optional
        Keyword arguments of the file system of the captures' URIs. They are sent to the workers as they are.
    lake_options : mapping of str to str, optional
        deltalake's ``storage_options`` of the lake's URI; they are sent to the workers as they are.
    digest : bool
        Note the SHA-256 of every capture's bytes in ``accounting``, as evidence.
    overwrite : bool
        Decode captures though the lake has them, with these tables and ports, and replace their rows.
    vacuum_hours : int, optional
        Afterwards delete files that no table has had for so many hours, as ``lake.vacuum`` does; none by default.
    retention_days : int, optional
        Afterwards delete rows of days before the last so many, in UTC, as ``lake.delete`` does; none by default.
    progress : callable, optional
        Called with the progress of decoding a few times a second, from another thread. What it raises is logged, and
        it is not called again.

    Raises
    ------
    FileNotFoundError
        A source names no file.
    ValueError
        There is no such table, mode or compression, or ``vacuum_hours`` or ``retention_days`` is negative.
    LakeError
        It is a lake of an earlier version, or a file that a run has committed is missing.
    AccountingError
        The numbers of a source do not add up; it is not committed, nor what was decoded with it.
    """
    started = time.monotonic()
    if compression not in get_args(Compression):
        raise ValueError(f"compression={compression!r} is not one of {', '.join(get_args(Compression))}")
    for name, number in (("vacuum_hours", vacuum_hours), ("retention_days", retention_days)):
        if number is not None and number < 0:
            raise ValueError(f"{name}={number} is negative")
    options = _options(tables, mode, ports, storage_options)
    folders: list[str] = []
    files = find_files(sources, recursive=recursive, storage_options=storage_options, empty=folders.append)
    store = Lake(Storage.of(lake, lake_options), create=True)
    summary = _Run(spark, store, options, compression, digest, overwrite, progress).run(files)
    if retention_days is not None:
        before = datetime.datetime.now(datetime.UTC).date() - datetime.timedelta(days=retention_days)
        summary.deleted = Counter(delete(lake, before=before, lake_options=lake_options))
    if vacuum_hours is not None:
        vacuum(lake, hours=vacuum_hours, lake_options=lake_options)
    summary.notes += folders
    summary.seconds = time.monotonic() - started
    return summary


def _options(
    tables: Iterable[str], mode: str, ports: Ports | None, storage_options: StorageOptions | None
) -> ScanOptions:
    if mode == "DROPMALFORMED":
        raise ValueError("mode='DROPMALFORMED': a lake keeps an account of every payload; filter on fault when reading")
    return ScanOptions(
        tuple(table.lower() for table in ((tables,) if isinstance(tables, str) else tables)),
        mode,  # type: ignore[arg-type] # checked there
        ReadOptions(ports=ports, guid="text", storage_options=storage_options or {}),
    )


class _Run:
    """One run: what is new among the sources, decoded and committed."""

    def __init__(
        self,
        spark: SparkSession,
        lake: Lake,
        options: ScanOptions,
        compression: Compression,
        digest: bool,
        overwrite: bool,
        progress: Callable[[Progress], None] | None,
    ) -> None:
        self.spark = spark
        self.lake = lake
        self.options = options
        self.compression = compression
        self.digest = digest
        self.progress = progress
        self.summary = Summary()
        # With other settings a source has other rows
        ports = None if options.read.ports is None else sorted(set().union(*options.read.ports.values()))
        self.settings = json.dumps([sorted(options.tables), ports])
        # Captures of runs up to this one are decoded though the lake has them
        self.overwrite_before = lake.run if overwrite else 0
        self.scratch = f"{SCRATCH}/{uuid.uuid4().hex}"
        self.files: dict[str, SourceFile] = {}
        self.identities: dict[str, Identity] = {}
        self.planned_at = 0
        #: What the captures of files to read replace.
        self.grown_from: dict[str, list[Known]] = {}
        #: The files whose captures replace others, which are committed after new captures.
        self.replacing: set[str] = set()
        #: The places of rows of these files that were deleted.
        self.deletions: dict[str, bytes | None] = {}
        #: The captures that this run has decoded.
        self.read: set[str] = set()
        self.decoded: list[Decoded] = []
        #: To be compared with the captures of the lake again.
        self.waiting: list[SourceFile] = []

    def run(self, files: Sequence[SourceFile]) -> Summary:
        lake, storage = self.lake, self.lake.storage
        self.files = {file.name: file for file in files}
        try:
            lake.apply_committed_runs()
            note_deletions(lake)
            changed = [file for file in files if self.overwrite_before or not lake.known.unchanged(file, self.settings)]
            self._identify(changed)
            new, copies = self._plan(changed)
            read = {file.name for file in new}
            self.summary.known = len(files) - len(new) - len(copies) - len(self.decoded)
            with _reported(self.progress, storage, f"{self.scratch}/done", len(new)) as marks:
                decoding = Decoding(storage, self.options, self.compression, marks, self.digest)
                self._decode_all(decoding, new)
                # What they are copies of may be no capture, or others may have committed some of the captures meanwhile
                while again := [*self._commit(), *self._orphans(copies)]:
                    new, copies = self._plan(again)
                    read.update(file.name for file in new)
                    self.summary.duplicates += (file.name for file in again if file not in new and file not in copies)
                    self._decode(decoding, [[file] for file in new])
            read.difference_update(self.summary.duplicates)
            self._note_copies([file for file in files if file.name not in read])
        finally:
            storage.delete_folder(self.scratch)
        lake.create((*self.options.tables, "faults"))
        return self.summary

    def _plan(self, files: Sequence[SourceFile]) -> tuple[list[SourceFile], list[SourceFile]]:
        """The files whose captures are to be decoded, each capture once; and copies of these.

        Files whose captures the lake has are left out, and files of which this cannot be told: they are problems.
        """
        known, planned = self.lake.known, KnownCaptures()
        self.planned_at = self.lake.run
        new, copies = [], []
        for file in sorted(files, key=self._length, reverse=True):
            identity = self.identities.get(file.name)
            if identity is None:
                new.append(file)
                continue
            if self._is_known(identity.capture):
                continue
            relation = self._relate(file.name, identity, planned.alike(identity, file.name))
            if planned.capture(identity.capture) is not None or relation.part_of is not None:
                copies.append(file)
                continue
            relation = self._relate(file.name, identity, known.alike(identity, file.name))
            if relation.part_of is not None:
                continue
            if relation.unclear is not None and (not self.overwrite_before or relation.unclear.deletions):
                self._add_problem(file, relation.unclear)
                continue
            self.grown_from[file.name] = relation.grown_from
            before = known.capture(identity.capture)
            replaced = relation.grown_from if before is None else [*relation.grown_from, before]
            self.deletions[file.name] = united(one.deletions for one in replaced)
            if replaced:
                self.replacing.add(file.name)
            for one in known.same_beginning(identity):
                if one not in relation.grown_from:
                    self.summary.notes.append(
                        f"{shown_name(file.name)}: begins with the same 64 KiB as {one.file}, and differs later: added"
                    )
            planned.add(self._planned(file, identity))
            new.append(file)
        return sorted(new), copies

    def _relate(self, name: str, identity: Identity, candidates: Sequence[Known]) -> Relation:
        return relate(name, identity, candidates, self._tails)

    def _tails(self, name: str, lengths: Iterable[int]) -> Mapping[int, str]:
        found: dict[str, dict[int, str]] = SourceCalls(tails, self.options.storage_options)([(name, list(lengths))])
        return found.get(name, {})

    def _planned(self, file: SourceFile, identity: Identity) -> Known:
        size, modified = file.size, file.modified_ns
        named = (identity.length, identity.head, identity.tail, identity.openings)
        return Known(identity.capture, 0, "", file.name, *named, size, modified, self.settings, None, None, None)

    def _add_problem(self, file: SourceFile, other: Known) -> None:
        account = SourceAccount(file.name, bytes=file.size)
        account.problem = (
            f"{shown_name(file.name)}: begins like {other.file}, which is longer and cannot be read to compare them"
        )
        if self.options.mode == "FAILFAST":
            raise CaptureError(account.problem)
        self._complete(account)
        self.decoded.append(Decoded([account], []))

    def _identify(self, files: Sequence[SourceFile]) -> None:
        """Identify files; those that are no captures, pipes or gone stay without an identity."""
        identifying = SourceCalls(identify, self.options.storage_options)
        named = [(file.name, file.size) for file in files if file.size]
        if len(named) <= _FEWEST_OF_A_CHUNK and sum(size for name, size in named if _may_be_compressed(name)) < _LITTLE:
            # A job would take longer
            self.identities = identifying(named)
        else:
            for found in self._on_workers(identifying, _chunks(named)):
                self.identities |= found

    def _is_known(self, capture: str) -> bool:
        found = self.lake.known.capture(capture)
        return found is not None and found.settings == self.settings and found.run > self.overwrite_before

    def _length(self, file: SourceFile) -> int:
        """How long a capture is, as far as is known."""
        identity = self.identities.get(file.name)
        return 0 if identity is None else identity.length

    def _decode_all(self, decoding: Decoding, files: Sequence[SourceFile]) -> None:
        """Decode captures: the large ones in parts, unless they change meanwhile, the others as they are."""
        splits = self._split(files)
        changed = self._decode_parts(decoding, splits)
        left = [file for file in files if file.name not in splits or file.name in changed]
        # The captures of a task are committed together
        for replaces in (False, True):
            some = [file for file in left if (file.name in self.replacing) == replaces]
            self._decode(decoding, list(pack(some, task_size(left))))

    def _decode(self, decoding: Decoding, parts: Sequence[Sequence[SourceFile]]) -> None:
        for start in range(0, len(parts), _PARTS_OF_A_COMMIT):
            tasks = [list(map(self._to_read, part)) for part in parts[start : start + _PARTS_OF_A_COMMIT]]
            self._add(self._on_workers(decoding, tasks))

    def _to_read(self, file: SourceFile) -> ToRead:
        return ToRead.of(self.files[file.name], self.identities.get(file.name), self.deletions.get(file.name))

    def _orphans(self, copies: Sequence[SourceFile]) -> list[SourceFile]:
        """Copies of files that were decoded as another capture, or turned out to be none."""
        orphans = []
        for file in copies:
            identity = self.identities[file.name]
            relation = self._relate(file.name, identity, self.lake.known.alike(identity, file.name))
            if identity.capture in self.read or self._is_known(identity.capture) or relation.part_of is not None:
                self.summary.duplicates.append(file.name)
            else:
                orphans.append(file)
        return orphans

    def _split(self, files: Sequence[SourceFile]) -> dict[str, SplitCapture]:
        """Split the large captures."""
        work = CaptureSplitter(self.lake.storage, self.scratch, self.options, task_size(files), self.digest)
        results = self._on_workers(work, [[self._to_read(file)] for file in large(files)])
        return {split.account.file: split for splits in results for split in splits}

    def _decode_parts(self, decoding: Decoding, splits: Mapping[str, SplitCapture]) -> set[str]:
        """Decode the parts of captures; the names of files that have changed meanwhile: their parts are dropped."""
        changed: set[str] = set()
        waiting: list[SplitCapture] = []
        for number, split in enumerate(splits.values(), 1):
            waiting.append(split)
            if number < len(splits) and sum(len(one.checkpoints) for one in waiting) < _PARTS_OF_A_COMMIT:
                continue
            results = iter(self._on_workers(decoding.part, [part for one in waiting for part in one.parts]))
            for one in waiting:
                decoded = [next(results) for _ in one.parts]
                if decoding.has_changed(one.source):
                    changed.add(one.account.file)
                else:
                    self._add([one.joined(decoded)])
            waiting = []
        return changed

    def _on_workers(self, work: Callable[[Any], Result], parts: Sequence[Any]) -> list[Result]:
        """The results of ``work`` for each part, from tasks."""
        if not parts:
            return []
        name = f"{self.scratch}/{uuid.uuid4().hex}"
        texts = [json.dumps(part).encode() for part in parts]
        with self.lake.storage.create(name) as file:
            file.write(b"".join(texts))
        stage = Stage(self.lake.storage, name, [0, *accumulate(map(len, texts))], work)
        numbers = self.spark.range(0, len(parts), 1, len(parts))
        results = map_in_arrow(numbers, stage.run, "result binary")
        return [pickle.loads(row.result) for row in results.collect()]

    def _add(self, results: Iterable[Decoded]) -> None:
        """Check the results of tasks, and commit them unless the mode is FAILFAST, which commits once at the end."""
        for result in results:
            read = [account for account in result.accounts if account.problem is None]
            for account in read:
                account.check()
                account.grown_from = list(self.grown_from.get(account.file, ()))
            check_files(read, result.files)
            for account in result.accounts:
                self._complete(account)
            self.decoded.append(result)
        if self.options.mode == "PERMISSIVE":
            self.waiting = self._commit()

    def _commit(self) -> list[SourceFile]:
        """Commit the results of tasks; the files that are to be compared with the captures of the lake again."""
        # Other writers may have deleted rows of captures that were decoded meanwhile
        note_deletions(self.lake)
        groups, again = self.decoded, self.waiting
        self.decoded, self.waiting = [], []
        refused = self.lake.commit(
            groups,
            self.compression,
            lambda row, known: self._relate(row.file, self.identities[row.file], known),
            overwrite_before=self.overwrite_before,
        )
        for group in groups:
            for row in group.accounts:
                if group in refused:
                    again.append(self.files[row.file])
                else:
                    self.summary.add(row)
                    self.read.update([row.capture] if row.capture else [])
        return again

    def _complete(self, account: SourceAccount) -> None:
        """Add what this run knows of the file of an account."""
        file = self.files[account.file]
        account.size, account.modified_ns, account.settings = file.size, file.modified_ns, self.settings
        account.planned_at = self.planned_at
        if account.is_capture:
            account.deletions = self.deletions.get(account.file)

    def _note_copies(self, files: Sequence[SourceFile]) -> None:
        """Commit rows for files whose captures the lake has under another name or time, so that no run opens them."""
        known = self.lake.known
        rows = []
        for file in files:
            noted, identity = known.noted(file), self.identities.get(file.name)
            if identity is None:
                # It is unchanged, and may have been unreadable in between
                if noted is None or all(one.problem is None for one in known.others(file.name)):
                    continue
                identity = noted.identity
                found = known.capture(noted.duplicate_of or noted.capture)
            elif noted is not None and noted.duplicate_of is not None and known.capture(noted.duplicate_of) is not None:
                continue
            else:
                found = known.capture(identity.capture)
                found = found or self._relate(file.name, identity, known.alike(identity, file.name)).part_of
            if found is None:
                continue
            account = SourceAccount(file.name, identity, bytes=file.size)
            account.duplicate_of = found.capture
            self._complete(account)
            rows.append(account)
        self.lake.commit([Decoded(rows, [])], self.compression, lambda row, known: Relation())


def _may_be_compressed(name: str) -> bool:
    """Return True if reading all of a file may be needed to identify it, as far as its name says."""
    return not name.lower().endswith((".pcap", ".pcapng", ".cap"))


def _chunks(items: Sequence[Any]) -> list[Sequence[Any]]:
    """Chunks of items for tasks, when an item takes little time."""
    size = max(_FEWEST_OF_A_CHUNK, -(-len(items) // MANY))
    return [items[start : start + size] for start in range(0, len(items), size)]


@contextmanager
def _reported(
    progress: Callable[[Progress], None] | None, storage: Storage, folder: str, total: int
) -> Iterator[str | None]:
    """Report how many captures are decoded; tasks create files in this folder whose names have the numbers.

    No error of a report ends the run: each is logged. After one of ``progress`` it is not called again.
    """
    if progress is None:
        yield None
        return
    over = threading.Event()

    def report() -> None:
        last = failed = False
        while not last:
            last = over.wait(_INTERVAL)
            try:
                marks = [os.path.basename(file.name).split("-") for file in storage.list(folder)]
            except Exception as error:  # each library has its own exceptions
                if not failed:
                    _LOG.warning("progress cannot be counted for now: %s", one_line(error))
                failed = True
                continue
            # A task whose result was lost leaves two marks
            captures = min(total, sum(int(mark[1]) for mark in marks))
            try:
                progress(Progress(captures, total, sum(int(mark[2]) for mark in marks)))
            except Exception:
                _LOG.exception("progress is not reported any more")
                return

    reporter = threading.Thread(target=report, daemon=True)
    reporter.start()
    try:
        yield folder
    finally:
        over.set()
        reporter.join()
