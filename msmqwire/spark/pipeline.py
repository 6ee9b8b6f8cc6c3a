"""Captures to a lake of Delta tables by day: those of ``capture.TABLES``, ``faults`` and ``accounting``.

Tasks decode captures and write their Parquet files themselves, since moving rows through the JVM costs a hundred times
their decoding; the driver gets only accounts. It checks them, then commits the files. A capture is known by its
content: running again reads what is new and adds nothing twice.
"""

from __future__ import annotations

import json
import logging
import math
import os
import pickle
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Any, Literal, TypeVar, get_args

from pyspark.sql import SparkSession

from msmqwire.capture import TABLES, ReadOptions
from msmqwire.capture.files.listing import SourceFile, find_files
from msmqwire.capture.files.remote import StorageOptions
from msmqwire.capture.files.sources import shown_name
from msmqwire.capture.parquet import Compression
from msmqwire.capture.stats import FrameCounts
from msmqwire.errors import CaptureError, counted
from msmqwire.spark.executors import map_in_arrow
from msmqwire.spark.lake.accounting import Decoded, Seam, SourceAccount, check_files
from msmqwire.spark.lake.captures import HEAD, Identity, Known, capture_numbers, identify, measure
from msmqwire.spark.lake.commit import Lake
from msmqwire.spark.lake.growth import SMALLEST, digest_before, seam_name
from msmqwire.spark.lake.maintenance import vacuum
from msmqwire.spark.lake.storage import RUNS, LakeOptions, Storage, one_line
from msmqwire.spark.lake.tasks import CaptureSplitter, Decoding, Numbered, SourceCalls, SplitCapture, Stage
from msmqwire.spark.source.planning import MANY, large, pack, task_size
from msmqwire.spark.source.scan import ScanOptions

__all__ = ["PipelineMode", "Progress", "Summary", "run"]

Result = TypeVar("Result")
PipelineMode = Literal["PERMISSIVE", "FAILFAST"]
# Parts that are decoded before a commit; a killed run loses at most these
_PARTS_OF_A_COMMIT = 1000
_LOG = logging.getLogger(__name__)
_INTERVAL = 0.2
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
        Totals of what this run read of the sources that it decoded: of a capture that has grown, what is new. Their
        rows are in the lake now.
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
        return "\n".join(lines)


def run(
    spark: SparkSession,
    sources: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    lake: str | os.PathLike[str],
    *,
    tables: Iterable[str] = tuple(TABLES),
    mode: PipelineMode = "PERMISSIVE",
    ports: Iterable[int] | None = None,
    compression: Compression = "snappy",
    recursive: bool = False,
    storage_options: StorageOptions | None = None,
    lake_options: LakeOptions | None = None,
    digest: bool = False,
    again: bool = False,
    vacuum_hours: int | None = None,
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
    ports : iterable of int, optional
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
    again : bool
        Decode captures though the lake has them, with these tables and ports, and replace their rows.
    vacuum_hours : int, optional
        Afterwards delete files that no table has had for so many hours, as ``lake.vacuum`` does; none by default.
    progress : callable, optional
        Called with the progress of decoding a few times a second, from another thread. What it raises is logged, and
        it is not called again.

    Raises
    ------
    FileNotFoundError
        A source names no file.
    ValueError
        There is no such table, mode or compression, or ``vacuum_hours`` is negative.
    LakeError
        It is a lake of an earlier version, or a file that a run has committed is missing.
    AccountingError
        The numbers of a source do not add up; it is not committed, nor what was decoded with it.
    """
    started = time.monotonic()
    if compression not in get_args(Compression):
        raise ValueError(f"compression={compression!r} is not one of {', '.join(get_args(Compression))}")
    if vacuum_hours is not None and vacuum_hours < 0:
        raise ValueError(f"vacuum_hours={vacuum_hours} is negative")
    options = _options(tables, mode, ports, storage_options)
    files = find_files(sources, recursive=recursive, storage_options=storage_options)
    store = Lake(Storage.of(lake, lake_options), create=True)
    summary = _Run(spark, store, options, compression, digest, again, progress).run(files)
    if vacuum_hours is not None:
        vacuum(lake, hours=vacuum_hours, lake_options=lake_options)
    summary.seconds = time.monotonic() - started
    return summary


def _options(
    tables: Iterable[str], mode: str, ports: Iterable[int] | None, storage_options: StorageOptions | None
) -> ScanOptions:
    if mode == "DROPMALFORMED":
        raise ValueError("mode='DROPMALFORMED': a lake keeps an account of every payload; filter on fault when reading")
    return ScanOptions(
        tuple(table.lower() for table in ((tables,) if isinstance(tables, str) else tables)),
        mode,  # type: ignore[arg-type] # checked there
        ReadOptions(ports=ports, guid="text"),
        dict(storage_options or {}),
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
        again: bool,
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
        self.overwrite_before = lake.run if again else 0
        self.scratch = f"{RUNS}/{uuid.uuid4().hex}"
        self.files: dict[str, SourceFile] = {}
        self.identities: dict[str, Identity] = {}
        #: The lengths of small captures that files may have grown from.
        self.lengths: dict[str, list[int]] = {}
        #: The keys of decoded captures, by these keys and those that they had before they have grown.
        self.states: dict[str, str] = {}
        self.decoded: list[Decoded] = []
        #: To be decoded again.
        self.waiting: list[SourceFile] = []
        self.numbers = capture_numbers()
        #: What the lake has of captures that have grown, where only what is new of them is read; by file.
        self.grown: dict[str, tuple[Known, Seam]] = {}

    def run(self, files: Sequence[SourceFile]) -> Summary:
        lake, storage = self.lake, self.lake.storage
        self.files = {file.name: file for file in files}
        try:
            changed = [file for file in files if self.overwrite_before or not lake.known.unchanged(file, self.settings)]
            new, copies = self._new(changed)
            self.summary.known = len(files) - len(new) - len(copies)
            with _reported(self.progress, storage, f"{self.scratch}/done", len(new)) as marks:
                decoding = Decoding(storage, self.options, self.compression, marks, self.digest)
                self._decode_all(decoding, new)
                self._decode_all(decoding, self._orphans(copies))
                # Others may have committed some of the captures that share a task's files meanwhile
                while again := self._commit():
                    self._decode(decoding, [[file] for file in again])
            decoded = {file.name for file in new}.difference(self.summary.duplicates)
            self._note_copies([file for file in files if file.name not in decoded])
        finally:
            storage.delete_folder(self.scratch)
        lake.create((*self.options.tables, "faults"))
        return self.summary

    def _new(self, files: Sequence[SourceFile]) -> tuple[list[SourceFile], list[SourceFile]]:
        """The files whose captures the lake does not have, each capture once; and copies of these."""
        known = self.lake.known
        self._identify(files)
        # Whether a capture with a key is new, or is known with other settings
        found: dict[str, bool] = {}
        new, copies = [], []
        for file in sorted(files, key=self._length, reverse=True):
            identity = self.identities.get(file.name)
            if identity is None:
                new.append(file)
            elif self._is_known(identity):
                continue
            elif identity.key in found:
                copies += [file] if found[identity.key] else []
            else:
                capture = known.capture(identity.key)
                is_new = capture is None or self._length(file) >= capture.length
                found.update(dict.fromkeys((identity.key, *identity.grown_from), is_new))
                new += [file] if is_new else []
                if capture is not None and is_new:
                    self._find_seam(file, identity, capture)
        return sorted(new), copies

    def _find_seam(self, file: SourceFile, identity: Identity, known: Known) -> None:
        """Find where reading of a capture that has grown resumes: where the lake has kept it, and it is the same file.

        The digest of a capture takes reading all of it.
        """
        grows = known.name == file.name and known.settings == self.settings and known.length >= SMALLEST
        if self.overwrite_before or self.digest or not grows or (identity.length or 0) <= known.length:
            return
        with suppress(CaptureError, OSError):
            data = self.lake.storage.read(seam_name(known.capture, known.length))
            seam = Seam.from_bytes(data)
            if digest_before(file.name, self.options.storage_options, seam.checkpoint.offset) == seam.before:
                # Another run may replace the one of the lake
                with self.lake.storage.create(self._seam_copy(known)) as copy:
                    copy.write(data)
                self.grown[file.name] = known, seam

    def _seam_copy(self, known: Known) -> str:
        return f"{self.scratch}/{known.capture}.seam"

    def _identify(self, files: Sequence[SourceFile]) -> None:
        """Identify files; those that are no captures, pipes or gone stay without an identity."""
        known, options = self.lake.known, self.options.storage_options
        self.identities = self._identified([(file.name, []) for file in files if file.size])
        self.lengths = self._lengths_before()
        self.identities |= self._identified(list(self.lengths.items()))
        # The length of a compressed capture tells whether it has grown, and takes reading all of it
        keys = Counter(identity.key for identity in self.identities.values())
        unmeasured = [
            name
            for name, identity in self.identities.items()
            if identity.length is None and (keys[identity.key] > 1 or known.capture(identity.key))
        ]
        for lengths in self._on_workers(SourceCalls(measure, options), [[(name,)] for name in unmeasured]):
            for name, length in lengths.items():
                self.identities[name] = replace(self.identities[name], length=length)

    def _identified(self, named: Sequence[tuple[str, list[int]]]) -> dict[str, Identity]:
        """The identities of files, each with the lengths of captures that it may have grown from."""
        identifying = SourceCalls(identify, self.options.storage_options)
        if len(named) <= _FEWEST_OF_A_CHUNK:
            # A job would take longer
            return identifying(named)
        return {name: one for found in self._on_workers(identifying, _chunks(named)) for name, one in found.items()}

    def _lengths_before(self) -> dict[str, list[int]]:
        """The lengths of small captures of the lake and of this run that files may have grown from."""
        of_run: dict[str, set[int]] = {}
        for identity in self.identities.values():
            if identity.is_small:
                of_run.setdefault(identity.openings[-1], set()).add(identity.length or 0)
        found = {}
        for name, identity in self.identities.items():
            most = HEAD if identity.length is None else identity.length
            alike = set().union(*(of_run.get(opening, ()) for opening in identity.openings))
            lengths = self.lake.known.lengths(identity).union(length for length in alike if length < most)
            if lengths:
                found[name] = sorted(lengths)
        return found

    def _is_known(self, identity: Identity) -> bool:
        return not self.overwrite_before and self.lake.known.holds(identity.key, identity.length or 0, self.settings)

    def _length(self, file: SourceFile) -> float:
        """How long a capture is; endless where only reading all of it would tell."""
        identity = self.identities.get(file.name)
        return math.inf if identity is None or identity.length is None else identity.length

    def _decode_all(self, decoding: Decoding, files: Sequence[SourceFile]) -> None:
        """Decode captures: the large ones in parts, unless they change meanwhile, the others as they are."""
        unread = [replace(file, size=file.size - self._resumes_at(file)) for file in files]
        splits = self._split(unread)
        changed = self._decode_parts(decoding, splits)
        left = [file for file in unread if file.name not in splits or file.name in changed]
        self._decode(decoding, list(pack(left, task_size(left))))

    def _decode(self, decoding: Decoding, parts: Sequence[Sequence[SourceFile]]) -> None:
        for start in range(0, len(parts), _PARTS_OF_A_COMMIT):
            tasks = [list(map(self._numbered, part)) for part in parts[start : start + _PARTS_OF_A_COMMIT]]
            self._add(self._on_workers(decoding, tasks))

    def _resumes_at(self, file: SourceFile) -> int:
        return self.grown[file.name][1].checkpoint.offset if file.name in self.grown else 0

    def _numbered(self, file: SourceFile) -> Numbered:
        name, size = file.name, self.files[file.name].size
        if name in self.grown:
            known, _ = self.grown[name]
            return Numbered(name, known.capture, [], size, self._seam_copy(known))
        return Numbered(name, next(self.numbers), self.lengths.get(name, []), size)

    def _orphans(self, copies: Sequence[SourceFile]) -> list[SourceFile]:
        """Copies of files that were decoded as another capture, or turned out to be none."""
        orphans = []
        for file in copies:
            identity = self.identities[file.name]
            if identity.key in self.states or self._is_known(identity):
                self.summary.duplicates.append(file.name)
            else:
                orphans.append(file)
        return orphans

    def _split(self, files: Sequence[SourceFile]) -> dict[str, SplitCapture]:
        """Split the large captures."""
        work = CaptureSplitter(self.lake.storage, self.scratch, self.options, task_size(files), self.digest)
        results = self._on_workers(work, [[self._numbered(file)] for file in large(files)])
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
                if self._has_changed(one.account):
                    changed.add(one.account.file)
                    self.grown.pop(one.account.file, None)
                else:
                    self._add([one.joined(decoded, self.lake.storage)])
            waiting = []
        return changed

    def _has_changed(self, account: SourceAccount) -> bool:
        """Whether a file is another one than when this run began; it may have grown."""
        file, options = self.files[account.file], self.options.storage_options
        try:
            (found,) = find_files(file.name, storage_options=options)
            if found.size <= file.size:
                return (found.size, found.modified_ns) != (file.size, file.modified_ns)
            return identify(file.name, options).key != account.key
        except (CaptureError, OSError):
            return True

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
                self.states.update(dict.fromkeys((str(account.key), *account.grown_from), str(account.key)))
            check_files(read, result.files)
            self.decoded.append(result)
        if self.options.mode == "PERMISSIVE":
            self.waiting = self._commit()

    def _commit(self) -> list[SourceFile]:
        """Commit the results of tasks; the files that are to be decoded again."""
        groups, again = self.decoded, self.waiting
        self.decoded, self.waiting = [], []
        for account in (account for group in groups for account in group.accounts):
            self._complete(account)
        refused = self.lake.commit(groups, self.compression, self._is_earlier, overwrite_before=self.overwrite_before)
        for group in groups:
            for row in group.accounts:
                if group not in refused:
                    self.summary.add(row.read)
                    if row.grown is not None:
                        self.lake.storage.delete([seam_name(row.grown.capture, row.grown.length)])
                elif row.is_capture and self._is_held(row):
                    self.summary.duplicates.append(row.file)
                else:
                    self.grown.pop(row.file, None)
                    again.append(self.files[row.file])
        return again

    def _is_held(self, row: SourceAccount) -> bool:
        """Whether the lake has a capture by now, of another file or of another run."""
        key = str(row.key)
        if self.states.get(key, key) != key:
            return True
        found = self.lake.known.capture(key)
        return (
            found is not None
            and found.run > self.overwrite_before
            and self.lake.known.holds(key, row.length, self.settings)
        )

    def _is_earlier(self, row: SourceAccount, known: Known) -> bool:
        """Whether a small capture is what a known one was before it has grown; the file of this is read again."""
        lengths = [row.length, known.length]
        identity = SourceCalls(identify, self.options.storage_options)([(known.name, lengths)]).get(known.name)
        if identity is None or not {row.key, known.key} <= {identity.key, *identity.grown_from}:
            return False
        self.states[str(row.key)] = str(known.key)
        return True

    def _complete(self, account: SourceAccount) -> None:
        """Add what this run knows of the file of an account."""
        file = self.files[account.file]
        account.size, account.modified_ns, account.settings = file.size, file.modified_ns, self.settings
        if account.new is not None:
            account.grown, seam = self.grown[account.file]
            account.ending = seam.ending
        elif account.file in self.grown:
            account.capture = next(self.numbers)

    def _note_copies(self, files: Sequence[SourceFile]) -> None:
        """Commit rows for files whose captures the lake has under another name or time, so that no run opens them."""
        known = self.lake.known
        rows = []
        for file in files:
            noted = known.noted(file)
            identity = self.identities.get(file.name)
            key = identity.key if identity is not None else None if noted is None else noted.key
            found = known.capture(key) or known.capture(self.states.get(str(key)))
            if found is None or (noted is not None and known.problem(file.name) is None):
                continue
            account = SourceAccount(file.name, next(self.numbers), key, found.length, bytes=file.size)
            if identity is not None:
                account.length, account.grown_from = identity.length or found.length, identity.grown_from
            account.duplicate_of = found.capture
            self._complete(account)
            rows.append(account)
        self.lake.commit([Decoded(rows, [])], self.compression)


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
