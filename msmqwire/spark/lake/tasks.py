"""The tasks of the pipeline: identify captures, and decode captures into files of the lake."""

from __future__ import annotations

import json
import pickle
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from msmqwire.capture import Checkpoint, checkpoints
from msmqwire.capture.files.listing import is_compressed, opened
from msmqwire.capture.files.remote import StorageOptions
from msmqwire.capture.files.sources import shown_name
from msmqwire.capture.parquet import Compression
from msmqwire.errors import CaptureError
from msmqwire.spark.executors import Sent
from msmqwire.spark.lake.accounting import SourceAccount
from msmqwire.spark.lake.captures import CapturedFile
from msmqwire.spark.lake.dayfiles import DayFiles, WrittenFile
from msmqwire.spark.lake.schemas import FAULTS, file_columns
from msmqwire.spark.lake.storage import Storage
from msmqwire.spark.schema import SparkColumn
from msmqwire.spark.source.scan import Scan, ScanOptions

__all__ = ["Cut", "Cutting", "Decoded", "Decoding", "Numbered", "Reading", "Stage"]

_Rows: TypeAlias = Iterator[tuple[str, pa.RecordBatch]]
_Read: TypeAlias = Callable[[Scan, SourceAccount], _Rows]
#: A source, the number of its capture, and the lengths of small captures that were known under its name.
Numbered: TypeAlias = tuple[str, int, list[int]]


@dataclass(frozen=True)
class Stage(Sent):
    """Work on parts of a list of sources, a part for each task.

    Attributes
    ----------
    storage : Storage
    parts : str
        A file with the parts, each as JSON: a task reads its own.
    places : list of int
        Where in the file each part begins, and where the last one ends.
    work : callable
        The function that is called with each part.
    """

    storage: Storage
    parts: str
    places: list[int]
    work: Callable[[Any], Any]

    def run(self, numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The results of the parts whose numbers come in, pickled."""
        for batch in numbers:
            for number in map(int, batch.column(0).to_numpy()):
                start, end = self.places[number : number + 2]
                part = json.loads(self.storage.read(self.parts, start, end - start))
                yield pa.record_batch({"result": [pickle.dumps(self.work(part))]})


@dataclass(frozen=True)
class Reading:
    """Calls a function of ``captures`` for each of some sources: the results by name, without unreadable sources."""

    function: Callable[..., Any]
    storage_options: StorageOptions = field(repr=False)

    def __call__(self, sources: Sequence[Sequence[Any]]) -> dict[str, Any]:
        """The results for sources, each with the further arguments of the function."""
        found = {}
        for source, *arguments in sources:
            # Decoding fails likewise, and reports it
            with suppress(CaptureError, OSError):
                found[source] = self.function(source, self.storage_options, *arguments)
        return found


@dataclass(frozen=True)
class Decoded:
    """The result of a task: an account of each of its sources, and the files with the rows of all of them."""

    accounts: list[SourceAccount]
    files: list[WrittenFile]


class _SpoiledError(Exception):
    """Reading has failed after rows of the source were written."""

    def __init__(self, account: SourceAccount) -> None:
        super().__init__(account)
        self.account = account


@dataclass(frozen=True)
class Decoding:
    """Decodes sources into Parquet files that they share, where these will stay.

    Attributes
    ----------
    storage : Storage
    options : ScanOptions
    compression : str
    marks : str or None
        The folder for a file whose name says how many captures and frames a task has decoded; None for no such file.
    digest : bool
        Whether each account has the SHA-256 of its source.
    """

    storage: Storage
    options: ScanOptions
    compression: Compression
    marks: str | None = None
    digest: bool = False

    @cached_property
    def columns(self) -> dict[str, tuple[SparkColumn, ...]]:
        """The columns of each table."""
        return {table: self.options.columns(table) for table in self.options.tables}

    def __call__(self, sources: Sequence[Numbered]) -> Decoded:
        """Decode the sources.

        Raises
        ------
        CaptureError, DecodeError
            In mode FAILFAST, for whatever cannot be decoded or read. Otherwise the accounts say what is wrong.
        """
        lengths = {source: known for source, _, known in sources}
        return self._decoded(sources, partial(self._whole, lengths=lengths), len(sources))

    def part(self, part: tuple[str, int, str, int, int]) -> Decoded:
        """Decode a part of a source; the account is that of the part.

        Parameters
        ----------
        part : (str, int, str, int, int)
            The source, the number of its capture, the folder with its checkpoints, the number of the part, and how many
            parts there are.
        """
        source, capture, folder, number, count = part
        resume = None if number == 0 else self._checkpoint(folder, number - 1)
        read = partial(self._part, resume=resume, stop=self._checkpoint(folder, number))
        return self._decoded([(source, capture, [])], read, 1 if number == count - 1 else 0)

    def _checkpoint(self, folder: str, number: int) -> Checkpoint:
        return Checkpoint.from_bytes(self.storage.read(f"{folder}/{number}"))

    def _decoded(self, sources: Sequence[Numbered], read: _Read, captures: int) -> Decoded:
        spoiled: dict[str, SourceAccount] = {}
        while True:
            name = uuid.uuid4().hex
            try:
                decoded = self._written(sources, read, name, spoiled)
            except _SpoiledError as error:
                spoiled[error.account.file] = error.account
                continue
            self.storage.sync(f"{file.table}/{file.path}" for file in decoded.files)
            if self.marks is not None:
                frames = sum(account.frames for account in decoded.accounts)
                with self.storage.create(f"{self.marks}/{name}-{captures}-{frames}"):
                    pass
            return decoded

    def _written(
        self,
        sources: Sequence[Numbered],
        read: _Read,
        name: str,
        spoiled: Mapping[str, SourceAccount],
    ) -> Decoded:
        writers = {
            table: DayFiles(self.storage, table, file_columns(table), self.compression, name)
            for table in (*self.columns, "faults")
        }
        try:
            with ExitStack() as stack:
                for writer in writers.values():
                    stack.enter_context(writer)
                accounts = [
                    spoiled.get(source) or self._account(SourceAccount(source, capture), read, writers)
                    for source, capture, _ in sources
                ]
        except BaseException:
            self.storage.delete(name for writer in writers.values() for name in writer.names)
            raise
        return Decoded(accounts, [file for writer in writers.values() for file in writer.files])

    def _account(
        self,
        account: SourceAccount,
        read: _Read,
        writers: Mapping[str, DayFiles],
    ) -> SourceAccount:
        """Write the rows of a source, and complete its account."""
        written = False
        for table, batch in self._rows(account, read):
            writers[table].write(batch, account.capture)
            if batch.column("fault").null_count < len(batch):
                writers["faults"].write(fault_rows(batch, table), account.capture)
            times = pc.min_max(batch.column("time").cast(pa.int64()))
            account.seen(times["min"].as_py(), times["max"].as_py())
            written = True
        if account.problem is None:
            return account
        unread = account.unread_because(account.problem)
        if written:
            raise _SpoiledError(unread)
        return unread

    def _rows(self, account: SourceAccount, read: _Read) -> _Rows:
        """Read a source; its account is complete at the end, also where it cannot be read."""
        scan = Scan(self.options, self.columns)
        try:
            yield from read(scan, account)
        except CaptureError as error:
            account.problem = str(error)
        except OSError as error:
            account.problem = f"{shown_name(account.file)}: {error.strerror or error}"
        if account.problem is None:
            account.take(scan.stats, scan.tables, scan.payloads)
        elif self.options.mode == "FAILFAST":
            raise CaptureError(account.problem)

    def _whole(self, scan: Scan, account: SourceAccount, lengths: Mapping[str, list[int]]) -> _Rows:
        with CapturedFile(account.file, self.options.storage_options, digest=self.digest) as file:
            try:
                yield from scan.rows(file)  # type: ignore[arg-type]
            except CaptureError as error:
                # A file that is no capture has a size and a digest, too
                account.problem = str(error)
            file.finish()
            account.digest, account.bytes = file.digest, file.bytes
            if account.problem is None:
                account.identify(file.identity(scan.stats.bytes_read, lengths[account.file]))

    def _part(self, scan: Scan, account: SourceAccount, resume: Checkpoint | None, stop: Checkpoint) -> _Rows:
        with opened([account.file], self.options.storage_options) as files:
            yield from scan.rows(files, resume=resume, stop=stop)


@dataclass(frozen=True)
class Cut:
    """A large capture that was cut into parts.

    Attributes
    ----------
    account : SourceAccount
        What one pass over its frames found, with the digest of what was read.
    folder : str
        Where the checkpoints are at which parts end, by number.
    parts : int
    """

    account: SourceAccount
    folder: str
    parts: int

    def joined(self, parts: Sequence[Decoded]) -> Decoded:
        """The capture as decoded in these parts.

        Raises
        ------
        AccountingError
            Their counts are not those that the pass found.
        """
        found = self.account
        names = ("file", "capture", "key", "length", "grown_from", "digest", "bytes")
        account = SourceAccount(**{name: getattr(found, name) for name in names})
        for part in parts:
            (read,) = part.accounts
            if read.problem is not None:
                return Decoded([found.unread_because(read.problem)], [])
            account.add(read)
        account.agree(found)
        return Decoded([account], [file for part in parts for file in part.files])


@dataclass(frozen=True)
class Cutting:
    """Cuts large captures, and identifies them, in one pass over the frames of each.

    Those that cannot be cut or read are left out.

    Attributes
    ----------
    storage : Storage
    scratch : str
        The folder for the checkpoints.
    options : ScanOptions
    size : int
        Of a part, in bytes.
    digest : bool
    """

    storage: Storage
    scratch: str
    options: ScanOptions
    size: int
    digest: bool = False

    def __call__(self, sources: Sequence[Numbered]) -> list[Cut]:
        """Cut the sources."""
        cuts = []
        for source, capture, lengths in sources:
            try:
                cut = self._cut(SourceAccount(source, capture), lengths)
            except (CaptureError, OSError):
                # Decoding fails likewise, and reports it
                continue
            if cut.parts > 1:
                cuts.append(cut)
        return cuts

    def _cut(self, account: SourceAccount, lengths: Sequence[int]) -> Cut:
        source, options = account.file, self.options
        folder = f"{self.scratch}/{uuid.uuid4().hex}"
        if is_compressed(source, options.storage_options):
            return Cut(account, folder, 1)
        parts = 0
        with (
            CapturedFile(source, options.storage_options, digest=self.digest) as captured,
            checkpoints(captured, self.size, options.payloads) as found,  # type: ignore[arg-type]
        ):
            for checkpoint in found:
                with self.storage.create(f"{folder}/{parts}") as checkpoint_file:
                    checkpoint_file.write(checkpoint.to_bytes())
                parts += 1
            account.take(found.stats, {}, 0)
            captured.finish()
            account.digest, account.bytes = captured.digest, captured.bytes
            account.identify(captured.identity(captured.bytes, lengths))
        return Cut(account, folder, parts)


def fault_rows(batch: pa.RecordBatch, table: str) -> pa.RecordBatch:
    """The rows of ``faults`` for those of ``table`` that have one."""
    faulty = batch.filter(batch.column("fault").is_valid())
    for name in ("code", "field", "offset"):
        faulty = faulty.append_column(name, pc.struct_field(faulty.column("fault"), name))
    faulty = faulty.append_column("table", pa.array([table] * len(faulty)))
    return faulty.select(list(dict.fromkeys(column.source for column in FAULTS)))
