"""Captures to a lake of Parquet tables by day: those of ``capture.TABLES``, ``faults`` and ``accounting``.

A task for each capture decodes it and writes its Parquet files itself, since rows on their way through the JVM cost a
hundred times their decoding; the driver sees only accounts. It checks them, then moves the files into place. A source
is known by its content: running again replaces what it wrote and adds nothing.
"""

from __future__ import annotations

import hashlib
import os
import time
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from msmqwire.capture import CAPTURE, TABLES, StreamStats
from msmqwire.columns.schema import UINT32, Column, Enumeration
from msmqwire.errors import CaptureError
from msmqwire.spark.accounting import SourceAccount, path_key, write_account
from msmqwire.spark.lake import Compression, DayFiles, Lake
from msmqwire.spark.reading import ReadingOptions, Scan
from msmqwire.spark.schema import arrow_schema, spark_columns
from msmqwire.spark.sources import expand

__all__ = ["FAULTS", "PipelineMode", "Summary", "run"]

PipelineMode = Literal["PERMISSIVE", "FAILFAST"]
_MOST_PARTITIONS = 1000
# What a summary adds up over accounts
_TOTALS = (
    "bytes",
    "frames",
    "payloads",
    "segments",
    "fragments",
    "other",
    "damaged",
    "cut_files",
    "incomplete_datagrams",
    "fragment_conflicts",
    "streams",
)

# The lake's table `faults`
FAULTS = spark_columns(
    (
        *CAPTURE.columns,
        Column("table", Enumeration(), "the table that has the payload's row"),
        Column("code", Enumeration(), "what is wrong"),
        Column("field", Enumeration(), "where, by its name in the specification"),
        Column("offset", UINT32, "byte offset in the payload"),
    )
)


class _HashedFile:
    """A file that knows the digest of what was read from it, so that rows and digest are of the same bytes."""

    def __init__(self, path: str) -> None:
        self.name = path
        self.bytes = 0
        self._file = open(path, "rb", buffering=0)  # noqa: SIM115 (closed by __exit__)
        self._hash = hashlib.sha256()

    def __enter__(self) -> _HashedFile:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def readinto(self, view: memoryview) -> int:
        count = self._file.readinto(view) or 0
        self._hash.update(view[:count])
        self.bytes += count
        return count

    def digest(self) -> str:
        """The digest of the whole file, of which what was left is read now."""
        rest = memoryview(bytearray(1 << 20))
        while self.readinto(rest):
            pass
        return self._hash.hexdigest()


@dataclass(frozen=True)
class _Job:
    """What every task needs to know."""

    files: tuple[str, ...]
    staging: str
    options: ReadingOptions
    compression: Compression

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The accounts of the sources whose numbers come in."""
        for batch in batches:
            for number in batch.column(0).to_numpy():
                account = self.process(self.files[number])
                yield pa.record_batch({"account": pa.array([account.to_json()])})

    def process(self, path: str) -> SourceAccount:
        """Decode one source into files in staging.

        Raises
        ------
        CaptureError, DecodeError
            In mode FAILFAST, for whatever cannot be decoded. Otherwise the account says what is wrong.
        """
        account = SourceAccount(path)
        # An attempt that is repeated must not meet what the first left
        folder = Path(self.staging) / uuid.uuid4().hex
        folder.mkdir()
        try:
            with _HashedFile(path) as file:
                try:
                    self._decode(file, folder, account)
                except CaptureError as error:
                    if self.options.mode == "FAILFAST":
                        raise
                    account = SourceAccount(path, problem=str(error))
                account.digest, account.bytes = file.digest(), file.bytes
        except OSError as error:
            if self.options.mode == "FAILFAST":
                raise
            account = SourceAccount(path, problem=f"{path}: {error.strerror or error}")
        return account

    def _decode(self, file: Any, folder: Path, account: SourceAccount) -> None:
        scan = Scan(self.options)
        with ExitStack() as stack:

            def files_of(table: str, schema: pa.Schema) -> DayFiles:
                return stack.enter_context(DayFiles(folder, table, schema, self.compression))

            writers = {table: files_of(table, arrow_schema(columns)) for table, columns in scan.columns.items()}
            faults = files_of("faults", arrow_schema(FAULTS))
            for table, batch in scan.batches(file):
                writers[table].write(batch)
                if batch.column("fault").null_count < len(batch):
                    faults.write(fault_rows(batch, table))
                times = pc.min_max(batch.column("time_ns"))
                account.seen(times["min"].as_py(), times["max"].as_py())
        account.take(scan.stats, scan.tables, scan.payloads)
        account.files = [file for writer in (*writers.values(), faults) for file in writer.files]


def fault_rows(batch: pa.RecordBatch, table: str) -> pa.RecordBatch:
    """The rows of ``faults`` for those of ``table`` that have one."""
    faulty = batch.filter(batch.column("fault").is_valid())
    for name in ("code", "field", "offset"):
        faulty = faulty.append_column(name, pc.struct_field(faulty.column("fault"), name))
    faulty = faulty.append_column("table", pa.array([table] * len(faulty)))
    return faulty.select([column.name for column in FAULTS])


@dataclass
class Summary:
    """What a run did; printed, it is the report for the person who started it.

    Attributes
    ----------
    sources, bytes, frames, payloads, segments, fragments, other, damaged, cut_files : int
        Totals of the sources whose rows are in the lake now.
    incomplete_datagrams, fragment_conflicts : int
    streams : StreamStats
        Likewise.
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
        """How many things cannot be read: frames, datagrams in fragments, places in streams, ends of files."""
        datagrams = self.incomplete_datagrams + self.fragment_conflicts
        return self.damaged + datagrams + self.streams.problems + self.cut_files

    def __str__(self) -> str:
        rows = ", ".join(f"{count:,} rows of {table}" for table, count in self.rows.items()) or "no rows"
        faults = ", ".join(f"{code} {count:,}" for code, count in self.faults.most_common())
        lines = [
            f"{self.sources:,} captures, {self.bytes:,} bytes in {self.seconds:.1f} s: {rows}",
            f"{self.frames:,} frames: {self.payloads:,} datagrams, {self.segments:,} TCP segments, "
            f"{self.fragments:,} fragments, {self.other:,} of other protocols, {self.damaged:,} that cannot be read",
            *self._losses(),
            f"{self.faults.total():,} faults" + (f": {faults}" if faults else ""),
            *(f"not read: {problem}" for problem in self.problems),
            *(f"the same content as another: {file}" for file in self.duplicates),
        ]
        return "\n".join(lines)

    def _losses(self) -> Iterator[str]:
        streams = self.streams
        if streams.problems:
            yield (
                f"TCP streams: {streams.missing:,} bytes missing in {streams.gaps:,} gaps, {streams.skipped:,} bytes "
                f"of no whole packet, {streams.conflicts:,} conflicts, {streams.evictions:,} forgotten"
            )
        if self.incomplete_datagrams or self.fragment_conflicts:
            yield (
                f"IP fragments: {self.incomplete_datagrams:,} datagrams that are not whole, "
                f"{self.fragment_conflicts:,} conflicts"
            )
        if self.cut_files:
            yield f"{self.cut_files:,} compressed captures that are cut"


def run(
    spark: SparkSession,
    sources: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    lake: str | os.PathLike[str],
    *,
    tables: Iterable[str] = tuple(TABLES),
    mode: PipelineMode = "PERMISSIVE",
    ports: Iterable[int] | None = None,
    compression: Compression = "snappy",
) -> Summary:
    """Decode captures into the Parquet tables of a lake, by day.

    Parameters
    ----------
    spark : SparkSession
    sources : path, folder, glob, or a list of these
        Local files, or on a file system that driver and workers see under the same names.
    lake : path
        The folder of the lake; made when it is not there.
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

    Raises
    ------
    FileNotFoundError
        A source names no file.
    ValueError
        There is no such table or mode.
    AccountingError
        The numbers of a source do not add up; nothing is committed.
    """
    started = time.monotonic()
    options = _options(tables, mode, ports)
    files = expand(sources)
    store = Lake(lake)
    with store.staging() as staging:
        job = _Job(files, str(staging), options, compression)
        numbers = spark.range(0, len(files), 1, min(len(files), _MOST_PARTITIONS))
        rows = numbers.mapInArrow(job.run, "account string").collect()
        accounts = sorted((SourceAccount.from_json(row.account) for row in rows), key=lambda one: one.file)
        for account in accounts:
            account.check()
        for table in options.tables:
            store.found(table, arrow_schema(options.columns(table)))
        store.found("faults", arrow_schema(FAULTS))
        summary = _commit(store, staging, accounts, compression)
    summary.seconds = time.monotonic() - started
    return summary


def _options(tables: Iterable[str], mode: str, ports: Iterable[int] | None) -> ReadingOptions:
    names = (tables,) if isinstance(tables, str) else tuple(tables)
    if mode == "DROPMALFORMED":
        raise ValueError("mode='DROPMALFORMED': a lake keeps an account of every payload; filter on fault when reading")
    return ReadingOptions(names, mode, ports=None if ports is None else frozenset(ports))  # type: ignore[arg-type]


def _commit(store: Lake, staging: Path, accounts: Iterable[SourceAccount], compression: Compression) -> Summary:
    summary = Summary()
    committed: set[str] = set()
    for account in accounts:
        if account.key in committed:
            summary.duplicates.append(account.file)
            continue
        store.commit(account.key, [*account.files, write_account(account, staging, compression)])
        if account.digest is not None:
            # It may not have been readable when a run met it before
            store.forget(path_key(account.file))
        committed.add(account.key)
        summary.add(account)
    return summary
