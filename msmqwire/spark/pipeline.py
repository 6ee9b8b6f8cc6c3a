"""Captures to a lake of Parquet tables by day: those of ``capture.TABLES``, ``faults`` and ``accounting``.

Tasks decode captures and write their Parquet files themselves, since rows on their way through the JVM cost a hundred
times their decoding; the driver sees only accounts. It checks them, then commits the files. A source is known by its
content: running again reads what is new and adds nothing twice.
"""

from __future__ import annotations

import json
import os
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

from pyspark.sql import SparkSession

from msmqwire.capture import TABLES, ReadOptions, StreamStats
from msmqwire.capture.files.sources import shown_name
from msmqwire.spark.lake.accounting import ACCOUNTING, COUNTS, SourceAccount, check_files, path_key, write_accounts
from msmqwire.spark.lake.dayfiles import Compression, StagedFile
from msmqwire.spark.lake.store import Content, Lake, LakeForm, StagedGroup, Stamp
from msmqwire.spark.lake.tasks import FAULTS, Cut, Cutting, Decoded, Decoding, Digesting, Stage
from msmqwire.spark.schema import arrow_schema
from msmqwire.spark.source.files import SourceFile, find_files
from msmqwire.spark.source.remote import StorageOptions
from msmqwire.spark.source.scan import ScanOptions

__all__ = ["PipelineMode", "Progress", "Summary", "run"]

PipelineMode = Literal["PERMISSIVE", "FAILFAST"]
# Sources are put together into parts of so many bytes, with so many for opening one, but not into fewer parts than this
# unless they are smaller than what a task costs before its first row
_PART_BYTES = 128 << 20
_SMALLEST_PART_BYTES = 16 << 20
_OPENING_BYTES = 1 << 20
_FEW_PARTS = 64
# Parts that are decoded before there is a commit; what a killed run loses
_PARTS_OF_A_COMMIT = 1000
# What is larger than so many bytes is read once to be cut into parts, which tasks decode side by side
_LARGE_BYTES = 2 * _PART_BYTES
_INTERVAL = 0.2
# The attributes that a summary adds up
_TOTALS = ("bytes", *(name for name in COUNTS if name != "bytes_skipped"), "streams", "encrypted", "unread")


@dataclass(frozen=True)
class Progress:
    """How far a run has come: captures that are decoded of those to decode, and the frames in them."""

    captures: int
    total: int
    frames: int


@dataclass
class Summary:
    """What a run did; printed, it is the report for the person who started it.

    Attributes
    ----------
    sources, bytes, frames, payloads, segments, fragments, other, damaged, cut_files : int
        Totals of the sources that this run decoded; their rows are in the lake now.
    incomplete_datagrams, fragment_conflicts, encrypted, unread : int
    streams : StreamStats
        Likewise.
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
    frames: int = 0
    payloads: int = 0
    segments: int = 0
    fragments: int = 0
    other: int = 0
    damaged: int = 0
    cut_files: int = 0
    incomplete_datagrams: int = 0
    fragment_conflicts: int = 0
    streams: StreamStats = field(default_factory=StreamStats)
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
        for name in _TOTALS:
            setattr(self, name, getattr(self, name) + getattr(account, name))
        self.rows.update(account.rows)
        self.faults.update(account.faults)

    @property
    def lost(self) -> int:
        """How many things cannot be read: frames, IP datagrams, places in streams, messages, ends of files."""
        datagrams = self.incomplete_datagrams + self.fragment_conflicts
        return self.damaged + datagrams + self.streams.problems + self._unread_messages + self.cut_files

    @property
    def _unread_messages(self) -> int:
        """Messages that cannot be decoded and, for want of their table, are no faults."""
        return 0 if "messages" in self.rows else self.unread

    def __str__(self) -> str:
        rows = ", ".join(_counted(count, f"row of {table}", f"rows of {table}") for table, count in self.rows.items())
        lines = [
            f"{_counted(self.sources, 'capture')}, {_counted(self.bytes, 'byte')} in {self.seconds:.1f} s: "
            f"{rows or 'no rows'}",
            *(self._contents() if self.sources else ()),
            *([f"{_counted(self.known, 'capture')} already in the lake"] if self.known else []),
            *(f"not read: {problem}" for problem in self.problems),
            *(f"the same content as another: {shown_name(file)}" for file in self.duplicates),
        ]
        return "\n".join(lines)

    def _contents(self) -> Iterator[str]:
        yield (
            f"{_counted(self.frames, 'frame')}: {_counted(self.payloads, 'datagram')}, "
            f"{_counted(self.segments, 'TCP segment')}, {_counted(self.fragments, 'fragment')}, "
            f"{self.other:,} of other protocols, {self.damaged:,} that cannot be read"
        )
        yield from self._losses()
        faults = ", ".join(f"{code} {count:,}" for code, count in self.faults.most_common())
        yield _counted(self.faults.total(), "fault") + (f": {faults}" if faults else "")

    def _losses(self) -> Iterator[str]:
        streams = self.streams
        if streams.problems:
            yield (
                f"TCP streams: {_counted(streams.missing, 'byte')} missing in {_counted(streams.gaps, 'gap')}, "
                f"{_counted(streams.skipped, 'byte')} of no whole packet, {_counted(streams.conflicts, 'conflict')}, "
                f"{_counted(streams.uncompared, 'segment')} not compared, {streams.evictions:,} forgotten"
            )
        if self.incomplete_datagrams or self.fragment_conflicts:
            whole = "datagram that is not whole", "datagrams that are not whole"
            yield (
                f"IP fragments: {_counted(self.incomplete_datagrams, *whole)}, "
                f"{_counted(self.fragment_conflicts, 'conflict')}"
            )
        if self.cut_files:
            yield _counted(self.cut_files, "compressed capture that is cut", "compressed captures that are cut")
        if self._unread_messages:
            yield _counted(self.unread, "message that cannot be decoded", "messages that cannot be decoded")
        if self.encrypted:
            yield _counted(self.encrypted, "message with encrypted changes", "messages with encrypted changes")


def _counted(count: int, one: str, several: str | None = None) -> str:
    """A number of things, in words."""
    return f"{count:,} {one if count == 1 else several or one + 's'}"


def run(
    spark: SparkSession,
    sources: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    lake: str | os.PathLike[str],
    *,
    tables: Iterable[str] = tuple(TABLES),
    mode: PipelineMode = "PERMISSIVE",
    ports: Iterable[int] | None = None,
    compression: Compression = "snappy",
    format: LakeForm = "parquet",
    recursive: bool = False,
    storage_options: StorageOptions | None = None,
    again: bool = False,
    progress: Callable[[Progress], None] | None = None,
) -> Summary:
    """Decode captures into the Parquet tables of a lake, by day.

    Parameters
    ----------
    spark : SparkSession
    sources : path, folder, glob, or a list of these
        Files that driver and workers see under the same names, or URIs: ``s3://``, ``gs://``, ``hdfs://``, ``abfs://``
        and what fsspec knows.
    lake : path
        The folder of the lake; made when it is not there. Driver and workers must see it under the same name.
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
    format : {"parquet", "delta"}
        Plain Parquet files, or Delta tables, which need ``msmqwire[delta]``; a lake stays what it is.
    recursive : bool
        Read the captures in the folders below a folder as well.
    storage_options : mapping, optional
        Keyword arguments of the file system of URIs. What they hold is sent to the workers as it is.
    again : bool
        Decode captures though the lake has them, with these tables and ports, and replace their rows.
    progress : callable, optional
        Is told how far decoding has come, a few times a second, from another thread.

    Raises
    ------
    FileNotFoundError
        A source names no file.
    ValueError
        There is no such table, mode, format or compression, or the lake is a URI.
    LakeError
        Another run is writing to the lake, or it is damaged.
    AccountingError
        The numbers of a source do not add up; it is not committed, nor what was decoded with it.
    """
    started = time.monotonic()
    if compression not in get_args(Compression):
        raise ValueError(f"compression={compression!r} is not one of {', '.join(get_args(Compression))}")
    options = _options(tables, mode, ports, storage_options)
    files = find_files(sources, recursive=recursive, storage_options=storage_options)
    with Lake(lake, format) as store:
        summary = _Run(spark, store, options, compression, again, progress).run(files)
    summary.seconds = time.monotonic() - started
    return summary


def _options(
    tables: Iterable[str], mode: str, ports: Iterable[int] | None, storage_options: StorageOptions | None
) -> ScanOptions:
    if mode == "DROPMALFORMED":
        raise ValueError("mode='DROPMALFORMED': a lake keeps an account of every payload; filter on fault when reading")
    return ScanOptions(
        (tables,) if isinstance(tables, str) else tuple(tables),
        mode,  # type: ignore[arg-type] # checked there
        ReadOptions(ports=ports),
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
        again: bool,
        progress: Callable[[Progress], None] | None,
    ) -> None:
        self.spark = spark
        self.lake = lake
        self.options = options
        self.compression = compression
        self.again = again
        self.progress = progress
        self.summary = Summary()
        # With other settings a source has other rows
        ports = None if options.read.ports is None else sorted(set().union(*options.read.ports.values()))
        self.settings = json.dumps([sorted(options.tables), ports])
        self.stamps: dict[str, Stamp] = {}
        self.decoded: list[Decoded] = []
        # Of contents that another source of this run has, when both were looked at
        self.copies: dict[SourceFile, str] = {}
        # To be noted with the next commit: the keys of files, and those of sources that the lake is rid of
        self.read: dict[str, str] = {}
        self.withdrawn: set[str] = set()
        self.taken: set[str] = set()

    def run(self, files: Sequence[SourceFile]) -> Summary:
        new = self._without_known_contents([file for file in files if not self._is_unchanged(file)])
        self.summary.known = len(files) - len(new) - len(self.copies)
        self.stamps = {file.name: Stamp(file.size, file.modified_ns) for file in files}
        # What can be read may not have been readable when a run met it before
        self.withdrawn = {path_key(file.name) for file in set(files).difference(new)}
        earlier = self._write_earlier(new, files)
        with _told(self.progress, self.lake.staging / "done", len(new)):
            cuts = self._cut(new, earlier)
            decoding = Decoding(str(self.lake.staging), self.options, self.compression, earlier)
            # While a capture is read in parts it may have become another one
            changed = self._decode_parts(decoding, cuts)
            self._decode(decoding, [file for file in new if file.name not in cuts or file.name in changed])
            self._decode(decoding, self._orphans())
        self._commit()
        schemas = {table: arrow_schema(self.options.columns(table)) for table in self.options.tables}
        self.lake.found({**schemas, "faults": arrow_schema(FAULTS), "accounting": ACCOUNTING})
        return self.summary

    def _is_unchanged(self, file: SourceFile) -> bool:
        """Whether the lake has what is in a file, going by its size and time."""
        seen = self.lake.seen(file.name)
        if seen is None or file.modified_ns is None or seen[0] != Stamp(file.size, file.modified_ns):
            return False
        return self._is_held(seen[1])

    def _is_held(self, key: str) -> bool:
        return not self.again and self.lake.holds(key, self.settings)

    def _without_known_contents(self, files: Sequence[SourceFile]) -> list[SourceFile]:
        """The files whose content the lake has not, each content once.

        Only files of the size of others are read for it.
        """
        sizes = Counter(file.size for file in files)
        held = {content.bytes for key, content in self.lake.sources() if self._is_held(key)}
        alike = [file for file in files if file.size and (sizes[file.size] > 1 or file.size in held)]
        digests: dict[str, str] = {}
        for result in self._on_workers(Digesting(self.options.storage_options), _parts(alike)):
            digests.update(json.loads(result))
        new = []
        found: set[str] = set()
        for file in files:
            digest = digests.get(file.name)
            if digest is None:
                new.append(file)
            elif self._is_held(digest):
                self.read[file.name] = digest
            elif digest in found:
                self.copies[file] = digest
            else:
                found.add(digest)
                new.append(file)
        return new

    def _write_earlier(self, new: Sequence[SourceFile], files: Sequence[SourceFile]) -> str:
        """Put down the contents of files that have changed since, or are gone: what begins with one has grown of it."""
        changed = {file.name for file in new}
        folders = {os.path.dirname(name) for name in changed}
        unchanged = {file.name for file in files} - changed - self.read.keys()
        still_there = {*self.read.values(), *(seen[1] for name in unchanged if (seen := self.lake.seen(name)))}
        earlier: dict[int, list[str]] = {}
        for key, content in self.lake.sources():
            if not content.bytes or key in still_there:
                continue
            # To look for a file takes longest, so that comes last
            if content.file in changed or (
                os.path.dirname(content.file) in folders and not os.path.lexists(content.file)
            ):
                earlier.setdefault(content.bytes, []).append(key)
        path = self.lake.staging / "earlier.json"
        path.write_text(json.dumps(earlier), "utf-8")
        return str(path)

    def _decode(self, decoding: Decoding, files: Sequence[SourceFile]) -> None:
        """Decode captures that are read whole."""
        parts = _parts(files)
        for start in range(0, len(parts), _PARTS_OF_A_COMMIT):
            results = self._on_workers(decoding, parts[start : start + _PARTS_OF_A_COMMIT])
            self._add(Decoded.from_json(result) for result in results)

    def _orphans(self) -> list[SourceFile]:
        """Copies of what has turned out to be something else, or no capture; the others are noted."""
        there = self.taken | {account.key for decoded in self.decoded for account in decoded.accounts}
        for file, digest in self.copies.items():
            if digest in there:
                self.read[file.name] = digest
                self.summary.duplicates.append(file.name)
        return [file for file, digest in self.copies.items() if digest not in there]

    def _cut(self, files: Sequence[SourceFile], earlier: str) -> dict[str, Cut]:
        """Cut the large captures."""
        work = Cutting(str(self.lake.staging), self.options, earlier, _PART_BYTES)
        results = self._on_workers(work, [[file.name] for file in files if file.size > _LARGE_BYTES])
        cuts = [Cut.from_dict(values) for result in results for values in json.loads(result)]
        return {cut.account.file: cut for cut in cuts}

    def _decode_parts(self, decoding: Decoding, cuts: Mapping[str, Cut]) -> set[str]:
        """Decode what was cut; the names of files that have changed meanwhile, of which nothing is kept."""
        changed: set[str] = set()
        waiting: list[Cut] = []
        for number, cut in enumerate(cuts.values(), 1):
            waiting.append(cut)
            if number < len(cuts) and sum(one.parts for one in waiting) < _PARTS_OF_A_COMMIT:
                continue
            parts = [(one.account.file, one.folder, at, one.parts) for one in waiting for at in range(one.parts)]
            results = iter([Decoded.from_json(result) for result in self._on_workers(decoding.part, parts)])
            for one in waiting:
                decoded = [next(results) for _ in range(one.parts)]
                if self._has_changed(one.account.file):
                    changed.add(one.account.file)
                else:
                    self._add([one.joined(decoded)])
            waiting = []
        return changed

    def _has_changed(self, file: str) -> bool:
        """Whether a file is another one than when this run began."""
        try:
            found = find_files(file, storage_options=self.options.storage_options)
        except FileNotFoundError:
            return True
        return [Stamp(one.size, one.modified_ns) for one in found] != [self.stamps[file]]

    def _on_workers(self, work: Callable[[Any], str], parts: Sequence[Any]) -> list[str]:
        """What ``work`` gives for each part."""
        if not parts:
            return []
        folder = self.lake.staging / uuid.uuid4().hex
        folder.mkdir()
        for number, part in enumerate(parts):
            (folder / f"{number}.json").write_text(json.dumps(part), "utf-8")
        numbers = self.spark.range(0, len(parts), 1, len(parts))
        rows = numbers.mapInArrow(Stage(str(folder), work).run, "result string").collect()
        return [row.result for row in rows]

    def _add(self, results: Iterable[Decoded]) -> None:
        """Take what tasks have decoded, and commit it, unless all or nothing is wanted."""
        self.decoded += results
        if self.options.mode == "PERMISSIVE":
            self._commit()

    def _commit(self) -> None:
        """Check what tasks have decoded, and make it part of the lake."""
        groups: list[StagedGroup] = []
        problems: list[SourceAccount] = []
        for result in self.decoded:
            read = [account for account in result.accounts if account.problem is None]
            problems += [account for account in result.accounts if account.problem is not None]
            for account in read:
                account.check()
            check_files(read, result.files)
            kept, files = self._without_doubled(read, result.files)
            for account in kept:
                self.withdrawn |= {path_key(account.file), *account.grown_from} - self.taken
            if kept:
                groups.append(self._group(kept, files))
        if problems:
            groups.append(self._group(problems, ()))
        seen = {file: (self.stamps[file], key) for file, key in self.read.items()}
        self.lake.commit(groups, withdrawn=self.withdrawn, seen=seen, compression=self.compression)
        self.decoded, self.read, self.withdrawn = [], {}, set()

    def _without_doubled(
        self, accounts: Sequence[SourceAccount], files: Sequence[StagedFile]
    ) -> tuple[list[SourceAccount], list[StagedFile]]:
        """Leave out sources that took on the content of another one while they were decoded."""
        kept, doubled = [], []
        for account in accounts:
            self.read[account.file] = account.key
            if account.key in self.taken or self._is_held(account.key):
                doubled.append(account.file)
            else:
                self.taken.add(account.key)
                kept.append(account)
        if doubled:
            self.summary.duplicates += doubled
            files = [left for file in files if (left := self.lake.staged_without(file, doubled, self.compression))]
        return kept, list(files)

    def _group(self, accounts: Sequence[SourceAccount], files: Sequence[StagedFile]) -> StagedGroup:
        for account in accounts:
            self.summary.add(account)
        sources = {account.key: Content(account.file, account.bytes) for account in accounts}
        written = write_accounts(accounts, self.lake.staging, self.compression)
        return StagedGroup(self.settings, sources, [*files, *written])


def _parts(files: Sequence[SourceFile]) -> list[list[str]]:
    """Names of files that lie side by side put together for tasks: neither many small tasks nor few big ones.

    Rows know their source by its name as it is shown: in files that it shares, no other may have that.
    """
    size = sum(_OPENING_BYTES + file.size for file in files)
    most = max(_SMALLEST_PART_BYTES, min(_PART_BYTES, size // _FEW_PARTS))
    parts: list[list[str]] = []
    room = 0
    names: set[str] = set()
    for file in files:
        cost = _OPENING_BYTES + file.size
        shown = shown_name(file.name)
        if not parts or cost > room or shown in names:
            parts.append([])
            room = most
            names = set()
        names.add(shown)
        parts[-1].append(file.name)
        room -= cost
    return parts


@contextmanager
def _told(progress: Callable[[Progress], None] | None, folder: Path, total: int) -> Iterator[None]:
    """Tell how many captures are done, going by the marks that tasks leave in a folder."""
    folder.mkdir()
    if progress is None:
        yield
        return
    over = threading.Event()

    def tell() -> None:
        last = False
        while not last:
            last = over.wait(_INTERVAL)
            marks = [name.rsplit("-", 2) for name in os.listdir(folder)]
            # A task whose result was lost leaves two marks
            captures = min(total, sum(int(mark[1]) for mark in marks))
            progress(Progress(captures, total, sum(int(mark[2]) for mark in marks)))

    teller = threading.Thread(target=tell, daemon=True)
    teller.start()
    try:
        yield
    finally:
        over.set()
        teller.join()
